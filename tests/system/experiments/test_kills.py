"""A rank killed at a random moment on real processes: some methods go on without it, the others say who and when."""

import multiprocessing
import random
import re
import threading

import pytest

from experiments.execution.run import run
from experiments.runs import store
from experiments.specification.experiment import Experiment
from tests.patience import wait_until

SURVIVES = {  # algorithm -> the ranks that it can do without, of 3 workers and their servers
    "asgd": (1, 2, 3),
    "downpour": (1, 2, 3),
    "easgd": (1, 2, 3),
    "ssp": (1, 2, 3),
    "softsync": (1, 2, 3),
    "dc_asgd": (1, 2, 3),
    "agn": (1, 2, 3),
    "project_adam": (1, 2, 3),
    "gossipgrad": (0, 1, 2),
    "push_sum": (0, 1, 2),
    "adpsgd": (0, 1, 2),
}
AGREE = ("gossipgrad", "push_sum")  # all on when the time is up, which nobody can with one who is lost
STOPS = {"sync_sgd": (0, 1, 2), "dpsgd": (0, 1, 2), "asgd": (0,), "easgd": (0,), "gpipe": (0, 1, 2)}
CASES = [(name, ranks, True) for name, ranks in SURVIVES.items()] + [(n, ranks, False) for n, ranks in STOPS.items()]


def killed(algorithm, rank, after, seconds):
    """The run of about so many `seconds` whose `rank` was killed `after` some of training."""

    def kill(progress):
        if not shots and len(progress.curve["loss"]):
            victims = [c for c in multiprocessing.active_children() if c.name == f"rank {rank}"]
            shots.append(threading.Timer(after, lambda: [victim.kill() for victim in victims]))
            shots[0].start()

    shots = []
    budget = {"steps": round(600 * seconds)} if algorithm in AGREE else {"seconds": seconds}
    values = {"algorithm": algorithm, "workers": 3, "evaluations": 2, "cluster": "processes", **budget}
    done = run(Experiment.of(values), kill)
    for shot in shots:
        shot.cancel()  # it would hit nobody, or the next run
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "ranks", "survives"), CASES, ids=lambda value: str(value))
def test_killed_at_random_moments_it_goes_on_or_names_the_rank_and_loses_nothing(algorithm, ranks, survives, tmp_path):
    draw = random.Random(f"{algorithm} {survives}")
    rank, seconds = draw.choice(ranks), 0.8
    while True:
        done = killed(algorithm, rank, draw.uniform(0.0, 0.3), seconds)
        told = next((note for note in done.notes if " was lost " in note), "") if survives else done.error
        if done.status != "finished" or told:
            break
        seconds *= 2  # it had finished before the shot
    assert done.status == ("finished" if survives else "failed"), done.error
    assert re.match(rf"rank {rank} was lost at [\d.]+ s( \(step \d+\))?; ", told)
    assert len(done.losses["loss"]) > 0
    assert store.load(store.save(done, tmp_path)).summary == done.summary
    wait_until(lambda: not multiprocessing.active_children())

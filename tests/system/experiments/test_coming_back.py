"""Coming back: a worker is lost, comes back with nothing, and the run goes on with it; or is refused beforehand."""

import os
import pickle
import re
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import algorithms
from cluster.real.checkpoint import SharedCheckpoint
from experiments.execution.run import check, run
from experiments.runs.difference import difference
from experiments.specification.experiment import Experiment
from tests.tiers import slow_except
from tracing import KINDS

STEPS, WORKERS = 24, 3
OTHER_FORMS = [
    ("downpour", {"overlap": True}),
    ("downpour", {"shards": 2, "n_push": 2, "n_fetch": 3}),
    ("easgd", {"momentum": 0.5}),
    ("softsync", {"hard": True}),
    ("softsync", {"hard": True, "splits": 1}),
    ("ssp", {"bound": 0}),
    ("ssp", {"cache": True}),
    ("asgd", {"compression": "top_k"}),
]
NAMES = [name for name in algorithms.names() if algorithms.find(name).restartable]
FORMS = [(name, {}) for name in NAMES] + OTHER_FORMS


def experiment(name, lost=None, back=None, **values):
    """Worker 1 of three is lost and comes back at these parts of the time that the run takes without that."""
    rate = algorithms.find(name).Settings().learning_rate / 4  # small batches, and gradients that are added
    values = {"algorithm": name, "workers": WORKERS, "steps": STEPS, "evaluations": 25, "batch": 8, **values}
    values = {"learning_rate": rate, **values}
    whole = Experiment.of(values)
    if lost is None:
        return whole
    seconds = length(whole.query())
    return whole.change(crash=f"{whole.servers + 1}:{lost * seconds:.9f}-{back * seconds:.9f}")


@cache
def length(query):
    return run(Experiment.from_query(query)).summary["seconds"]


def steps_of_workers(done):
    ranks = range(done.experiment.servers, done.experiment.ranks)
    return [done.losses["step"][done.losses["rank"] == rank].tolist() for rank in ranks]


WHEN = {"away": (0.3, 0.6), "at once": (0.4, 0.400001), "long": (0.5, 1.5)}
CASES = [(*form, when) for form in FORMS for when in WHEN]
QUICK = [(*form, when) for *form, when in CASES if not form[1] or when == "away"]  # the next test draws from all


@pytest.mark.parametrize(("name", "knobs", "when"), slow_except(QUICK, CASES), ids=lambda value: str(value or ""))
def test_every_worker_makes_every_step_once_and_the_run_learns_with_it(name, knobs, when):
    e = experiment(name, *WHEN[when], **knobs)
    done = run(e)
    rank = e.servers + 1
    assert done.status == "finished"
    assert [note.split(" at ")[0] for note in done.notes if "was lost" in note] == [f"rank {rank} was lost"]
    assert steps_of_workers(done) == WORKERS * [list(range(STEPS))]
    _, returned = e.crash.by_rank[rank]
    mine = done.losses["rank"] == rank
    again = mine & (done.losses["seconds"] > returned)
    assert again.any() and done.losses["loss"][again].mean() < done.losses["loss"][mine & ~again].mean()


PARTS = st.tuples(st.floats(0, 1), st.floats(1e-5, 2))  # of the run's time: when it is lost, how long it is away


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FORMS), st.lists(PARTS, min_size=1, max_size=WORKERS), st.sampled_from(["none", "pareto"]))
def test_whenever_they_are_lost_and_come_back_every_step_is_made_once(form, away, jitter):
    name, knobs = form
    whole = experiment(name, steps=8, jitter=jitter, **knobs)
    seconds = length(whole.query())
    times = enumerate(((lost * seconds, (lost + part) * seconds) for lost, part in away), whole.servers)
    done = run(whole.change(crash=",".join(f"{rank}:{lost:.9f}-{back:.9f}" for rank, (lost, back) in times)))
    assert done.status == "finished" and steps_of_workers(done) == WORKERS * [list(range(8))]


ALIKE = [("asgd", {}), ("easgd", {}), ("softsync", {}), *OTHER_FORMS]


@pytest.mark.parametrize(("name", "knobs"), slow_except(ALIKE, FORMS), ids=lambda value: str(value or ""))
def test_two_runs_are_the_same_bit_for_bit(name, knobs):
    e = experiment(name, 0.3, 0.6, **knobs, jitter="cloud")
    assert difference(run(e), run(Experiment.from_query(e.query()))) == ""


def test_where_both_its_lives_wait_for_the_same_update_it_is_answered_once():
    e = experiment("softsync", 0.38, 0.381, hard=True, splits=1, slow="1:100")
    done = run(e)
    ((lost, _),) = e.crash.by_rank.values()
    assert len(done.notes) == 1  # none of an answer that nobody read
    pushed = done.trace.messages["sent"][done.trace.messages["src"] == 2]
    updates = done.trace.messages["sent"][done.trace.messages["src"] == 0]
    assert ((updates[updates < lost].max() < pushed) & (pushed < updates[updates > lost].min())).sum() == 2


def test_a_new_life_that_does_not_fetch_any_more_waits_for_no_answer():
    e = experiment("downpour", n_fetch=2 * STEPS, overlap=True)
    mine = run(e).losses
    lost = mine["seconds"][(mine["rank"] == 2) & (mine["step"] == 9)][0]
    done = run(e.change(crash=f"2:{lost:.9f}-{lost + 1e-5:.9f}"))
    assert done.status == "finished" and len(done.notes) == 1, done.notes
    assert done.losses["step"].size == WORKERS * STEPS


def test_the_time_away_is_a_gap_in_its_trace():
    e = experiment("asgd", 0.3, 0.6)
    ((lost, back),) = e.crash.by_rank.values()
    spans = run(e).trace.spans
    mine = spans["rank"] == 2
    inside = mine & (spans["start"] < back) & (spans["end"] > lost)
    assert [KINDS[kind] for kind in spans["kind"][inside]] == ["idle"]
    assert spans["end"][inside] == back and spans["start"][inside] <= lost
    assert (spans["start"][mine] >= back).any()


def test_its_new_life_begins_with_the_newest_model_that_the_server_had_reported():
    seen = []

    def worker(comm, task, s):
        if comm.rank == 2 and task.event_log.clock() > 0:
            seen.append((task.event_log.clock(), task.start()))
        return algorithms.find("asgd").worker(comm, task, s)

    e = experiment("asgd", 0.3, 0.6, evaluations=200)  # all models
    run(e, worker_override=worker)
    seconds, w = seen[0]
    workload = check(e)
    tried = run(e).evaluations
    newest = tried["seconds"] <= seconds
    assert workload.evaluate(w).loss == tried["loss"][newest][-1] != tried["loss"][0]


def test_how_often_a_model_is_evaluated_changes_nothing():
    e = experiment("asgd", 0.3, 0.6, evaluations=200)
    few, many = run(e.change(evaluations=1)), run(e)
    assert np.array_equal(few.parameters, many.parameters) and len(many.evaluations["loss"]) > 20


def test_two_workers_may_come_back_in_one_run():
    e = experiment("downpour", 0.3, 0.6)
    done = run(e.change(crash=f"{e.crash.text},3:{e.crash.text[2:]}"))
    assert done.status == "finished" and len(done.notes) == 2 and done.losses["step"].size == WORKERS * STEPS


@pytest.mark.parametrize("name", [name for name in algorithms.names() if name not in NAMES])
def test_every_other_method_says_before_it_begins_that_it_cannot(name):
    rank = min(1, Experiment.of({"algorithm": name}).ranks - 1)
    e = Experiment.of({"algorithm": name, "crash": f"{rank}:0.1-0.2"})
    with pytest.raises(ValueError, match=f"rank {rank} would have lost its state, and other ranks of {name}") as told:
        check(e)
    assert "use easgd, asgd" in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(("name", "knobs"), [("easgd", {"synchronous": True}), ("downpour", {"warm": 9})])
def test_a_form_that_cannot_says_so(name, knobs):
    with pytest.raises(ValueError, match=f"{name} with these settings"):
        check(Experiment.of({"algorithm": name, "crash": "1:0.1-0.2", **knobs}))


def test_a_server_cannot_come_back_without_its_model():
    with pytest.raises(ValueError, match=r"rank 1 is a server.*ranks 2 to 5"):
        check(Experiment.of({"algorithm": "downpour", "shards": 2, "crash": "1:0.1-0.2"}))


def test_what_can_be_lost_for_good_still_can():
    assert check(Experiment.of({"algorithm": "sync_sgd", "crash": "1:0.1"}))


REAL = {"algorithm": "downpour", "workers": 3, "batch": 8, "steps": 400, "latency": 2e-3, "evaluations": 10}
AWAY = {**REAL, "crash": "2:0.5-1"}  # in a run that takes 1.6 s of latency at least


@cache
def real():
    return run(Experiment.of({**AWAY, "cluster": "processes"}))


def test_a_process_that_comes_back_goes_on_where_it_was():
    done = real()
    assert done.status == "finished" and steps_of_workers(done) == WORKERS * [list(range(400))]
    mine = done.losses["rank"] == 2
    seconds, losses = done.losses["seconds"][mine], done.losses["loss"][mine]
    assert seconds.min() < 1 <= seconds.max()
    spans = done.trace.spans
    (away,) = [i for i in range(len(spans["rank"])) if spans["rank"][i] == 2 and KINDS[spans["kind"][i]] == "idle"]
    assert spans["end"][away] >= 1 and not ((seconds > spans["start"][away]) & (seconds < spans["end"][away])).any()
    assert losses[seconds > 1][:5].mean() < losses[:5].mean()  # it begins with a model that has been trained


def test_a_process_that_comes_back_has_the_notes_of_the_simulated_rank_but_for_times():
    def told(done):
        return [TIMES.sub("*", note) for note in done.notes if "was lost" in note]

    simulated = run(Experiment.of(AWAY))
    assert (
        told(simulated) == told(real()) == ["rank 2 was lost at * s (step *); it restarted at * s without its memory"]
    )


TIMES = re.compile(r"(?<= at )[\d.e-]+|(?<=step )\d+")


def test_the_checkpoint_of_processes_has_every_part_as_it_was_last_reported():
    w = check(Experiment.of(AWAY)).start(0)
    newest = SharedCheckpoint(w)
    with closing(newest):
        sent = pickle.loads(pickle.dumps(newest))  # to another process
        assert sent.read(1.0) is None
        assert np.array_equal(pickle.loads(pickle.dumps(newest.after([]))).read(1.0), w)
        sent.write(0.1, slice(None), w + 1)
        sent.write(0.2, slice(0, 3), w[:3] + 2)
        sent.write(0.3, np.array([5, 7]), w[[5, 7]] + 3)
        model = newest.after([(0, 8, 0.1, 2.0)]).read(1.0)
        assert np.array_equal(model[:3], w[:3] + 2) and np.array_equal(model[[5, 7]], w[[5, 7]] + 3)
        assert np.array_equal(model[8:], w[8:] + 1)


def test_neither_memory_nor_files_of_the_checkpoint_are_left_behind():
    before = open_memory()
    run(Experiment.of({**AWAY, "cluster": "processes", "steps": 20}))
    assert open_memory() == before


def open_memory():
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += "lockstep" in os.readlink(descriptor)
    return found


def test_a_run_that_is_over_before_the_loss_has_no_note_of_it():
    done = run(Experiment.of({**AWAY, "cluster": "processes", "steps": 5, "crash": "2:3000-3001"}))
    assert done.status == "finished" and not [note for note in done.notes if "was lost" in note]


@pytest.mark.parametrize("cluster", ["threads", "gpus"])
def test_other_real_clusters_say_that_they_cannot(cluster, monkeypatch):
    monkeypatch.setattr("cluster.real.gpus.count", lambda: 8)
    with pytest.raises(ValueError, match=r"^crash: ") as told:
        check(Experiment.of({**AWAY, "latency": None, "cluster": cluster}))
    assert "processes" in str(told.value) and "\n" not in str(told.value)


def test_ranks_of_another_launcher_say_that_they_cannot():
    with pytest.raises(ValueError, match=r"crash: .*processes of this machine"):
        check(Experiment.of({**AWAY, "cluster": "processes"}), here=False)


@pytest.mark.parametrize(("name", "why"), [("sync_sgd", "messages it never sends"), ("downpour", "rank 0 is a server")])
def test_processes_accept_it_under_the_rules_of_the_simulated_cluster(name, why):
    rank = 1 if name == "sync_sgd" else 0
    with pytest.raises(ValueError, match=why):
        check(Experiment.of({"algorithm": name, "workers": 2, "cluster": "processes", "crash": f"{rank}:0.1-0.2"}))

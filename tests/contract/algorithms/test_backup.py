from itertools import pairwise

import numpy as np
import pytest

from algorithms import find
from cluster.comm import RankLost
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, Springs, train

RATE = {"learning_rate": 0.1}
IDEAL = {"network": NETWORKS["ideal"]}
WILD = Faults(jitter=JITTERS["exponential"])


def dropped(run):
    """How many gradients had been dropped after each step."""
    return [int(row[3]) for row in run.outcome.event_logs[0].measures]


def computed(run):
    """How many gradients each worker computed."""
    return [len(event_log.losses) for event_log in run.outcome.event_logs[1:]]


def served(run):
    """What the server's parameters were after every step."""
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


def test_with_constant_times_the_same_n_always_win_and_ties_go_by_rank():
    centres = [1.0, 2.0, 4.0, 100.0, 200.0]  # of the workers 1 to 5
    run = train("backup", Springs(centres), 5, RATE | {"backups": 2}, steps=12, **IDEAL)
    w = 1.0
    for reached in served(run):
        w -= 0.1 * (w - (1 + 2 + 4) / 3)
        assert reached == pytest.approx(w, rel=1e-14)
    assert dropped(run) == list(range(0, 24, 2))


def test_late_gradients_never_change_w():
    where = {"faults": Faults(slow={3: 1.7})}

    def course(late):  # worker 3 is always late: what it computes makes no difference
        return train("backup", Springs([1.0, 2.0, late]), 3, RATE | {"backups": 1}, steps=20, **where)

    one, other = course(4.0), course(-1e6)
    assert served(one) == served(other) and min(computed(one)) > 5


@pytest.mark.parametrize("backups", [0, 1, 3])
def test_every_gradient_was_one_of_the_n_of_its_step_or_was_dropped(backups):
    run = train("backup", Springs([0.0] * 6), 6, RATE | {"backups": backups}, steps=50, faults=WILD)
    assert len(served(run)) == 50
    finishing = sum(computed(run)) - dropped(run)[-1] - 50 * (6 - backups)
    assert finishing == (backups if backups else 0)  # the stragglers of the last step
    assert (dropped(run)[-1] > 0) == (backups > 0)


def test_a_step_is_the_mean_of_exactly_n_gradients_taken_at_one_w():
    springs = Springs([3.0, 5.0, 7.0, 9.0])
    run = train("backup", springs, 4, RATE | {"backups": 2}, steps=30, faults=WILD)
    reached = [1.0, *served(run)]
    for before, after in pairwise(reached):
        centre = before - (before - after) / 0.1
        pairs = [(a + b) / 2 for a in (3, 5, 7, 9) for b in (3, 5, 7, 9) if a < b]
        assert np.abs(np.array(pairs) - centre).min() < 1e-9
    assert all(float(w[0]) in reached for seen in springs.seen.values() for w in seen)


@pytest.mark.parametrize("slow", [{}, {1: 3.0}, {2: 3.0}, {1: 2.0, 2: 3.0}], ids=str)
def test_the_server_adds_by_rank_whoever_comes_first(slow):
    springs = Springs([1e16, 2.0, -1e16])  # gradients -1e16, -1, 1e16: the order decides whether the -1 survives
    run = train("backup", springs, 3, RATE | {"backups": 0}, steps=1, faults=Faults(slow=slow))
    assert served(run) == [1.0]


def test_a_straggler_goes_on_from_the_newest_w():
    springs = Springs([0.0, 0.0, 5.0])
    where = {"faults": Faults(slow={3: 3.3}), **IDEAL}
    run = train("backup", springs, 3, RATE | {"backups": 1}, steps=12, **where)
    path = [1.0, *served(run)]
    seen = [path.index(float(w[0])) for w in springs.seen[5.0]]
    assert seen == [0, 3, 6, 9]  # it finishes after 3.3, 6.6, 9.9 steps of the others


def test_all_end_with_the_same_model():
    run = train("backup", ScalarChain(), 4, RATE | {"backups": 2}, steps=30, faults=WILD)
    assert all(np.array_equal(w, run.shipped) for w in run.outcome.results)


@pytest.mark.parametrize("update", ["momentum", "adam"])
def test_without_backups_the_server_does_what_every_worker_of_synchronous_sgd_does(update):
    settings = {"learning_rate": 0.02, "update": update}
    mine = train("backup", ScalarChain(), 4, settings | {"backups": 0}, batch=2, steps=20)
    theirs = train("sync_sgd", ScalarChain(), 4, settings, batch=2, steps=20)
    assert np.allclose(mine.shipped, theirs.models[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("workers, waited_for", [(1, 1), (2, 1), (4, 3), (26, 25), (27, 25), (100, 96)])
def test_by_default_one_in_25_is_a_backup(workers, waited_for):
    assert find("backup").Settings().workers_needed(workers) == waited_for


@pytest.mark.parametrize("backups", [4, 5, 100])
def test_more_backups_than_can_be_are_refused_in_one_sentence(backups):
    with pytest.raises(ValueError, match=f"^{backups} backups .*4 workers.* fewer "):
        check(Experiment.of({"algorithm": "backup", "workers": 4, "backups": backups}))
    check(Experiment.of({"algorithm": "backup", "workers": 4, "backups": 3}))


# stragglers


def test_one_slow_worker_costs_nothing_when_there_is_a_backup():
    def seconds(backups, slow):
        where = {"faults": Faults(slow=slow), **IDEAL}
        run = train("backup", Springs([0.0] * 4), 4, RATE | {"backups": backups}, steps=20, **where)
        return run.outcome.event_logs[0].reports[-1][1]

    assert seconds(0, {2: 3.0}) == pytest.approx(3 * seconds(0, {}), rel=0.01)
    assert seconds(1, {2: 3.0}) == pytest.approx(seconds(0, {}), rel=0.01)


@pytest.mark.parametrize("jitter", ["cloud", "noisy cloud", "shifted exponential", "exponential", "pareto"])
def test_backups_are_never_slower_than_none_for_the_same_draws_and_the_same_n(jitter):
    for seed in range(10):
        where = {"faults": Faults(jitter=JITTERS[jitter], seed=seed), **IDEAL}

        def first(workers, backups, where=where):
            settings = RATE | {"backups": backups}
            run = train("backup", Springs([0.0] * workers), workers, settings, steps=1, **where)
            return run.outcome.event_logs[0].reports[0][1]

        times = [first(8 + backups, backups) for backups in (0, 1, 2, 4)]
        assert times == sorted(times, reverse=True) and times[0] > times[-1]


# lost workers


@pytest.mark.parametrize("crash", [{3: 0.004}, {1: 0.004, 4: 0.006}])
def test_as_many_workers_may_be_lost_as_there_are_backups_and_the_run_says_so(crash):
    run = train("backup", Springs([0.0] * 4), 4, RATE | {"backups": 2}, steps=40, fails=True,
                faults=Faults(crash=crash))  # fmt: skip
    assert run.outcome.error is None and len(served(run)) == 40
    assert [note.split(" at ")[0] for note in run.outcome.notes] == [f"rank {rank} was lost" for rank in crash]


def test_one_more_ends_the_run_with_its_rank_and_step_and_everything_recorded():
    run = train("backup", Springs([0.0] * 4), 4, RATE | {"backups": 1}, steps=400, fails=True,
                faults=Faults(crash={2: 0.004, 3: 0.008}))  # fmt: skip
    assert isinstance(run.outcome.error, RankLost) and run.outcome.error.rank == 3
    assert run.outcome.error.step == len(run.outcome.event_logs[3].losses) > 10  # the one it was in
    assert "rank 3 was lost at 0.008 s" in str(run.outcome.error)
    assert 20 < len(served(run)) < 400


def test_a_lost_server_ends_the_run_with_its_rank_and_step():
    run = train("backup", Springs([0.0] * 3), 3, RATE, steps=400, fails=True,
                faults=Faults(crash={0: 0.004}))  # fmt: skip
    assert isinstance(run.outcome.error, RankLost) and run.outcome.error.rank == 0
    assert all(len(event_log.losses) > 5 for event_log in run.outcome.event_logs[1:])


def test_what_is_sent_to_a_lost_worker_is_nobodys_mistake():
    slow, crash = {1: 3.0, 2: 3.0}, {3: 0.0006}  # worker 3 is lost while it waits for an answer
    run = train("backup", Springs([0.0] * 3), 3, RATE | {"backups": 1}, steps=9, fails=True,
                faults=Faults(slow=slow, crash=crash))  # fmt: skip
    assert run.outcome.error is None and len(run.outcome.notes) == 1

from itertools import pairwise

import numpy as np
import pytest

import workloads
from algorithms.parts.lbfgs import remember
from algorithms.parts.sharded_vectors import G0, PAIRS, W0, G, W
from cluster.comm import RankLost
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from experiments.execution.run import check, run
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.training import ScalarChain, train
from tests.unit.algorithms.test_lbfgs import Here

SLOW = Faults(slow={4: 6.0}, jitter=JITTERS["cloud"])


def digits(hidden="16"):
    module = workloads.find("digits")
    return module.build(module.Settings(hidden=hidden), np.dtype("float64"))


def losses(run):
    """f before every step."""
    return [row[3] for row in run.outcome.event_logs[0].losses]


def course(settings, workers=3, steps=6, workload=None, **where):
    return train("sandblaster", workload or digits(), workers, settings, steps=steps, **where)


@pytest.mark.parametrize("shards", [2, 3, 7])
def test_many_shards_do_what_one_does(shards):
    one, many = (course({"shards": n}, steps=5) for n in (1, shards))
    assert np.allclose(one.shipped, many.shipped, rtol=1e-9)
    assert losses(one) == pytest.approx(losses(many), rel=1e-9)


def test_f_never_rises_and_falls_faster_than_steepest_descent():
    quasi, steepest = (losses(course({"memory": m}, steps=15)) for m in (10, 0))
    assert all(after <= before for before, after in pairwise(quasi))
    assert quasi[-1] < 0.5 * steepest[-1]


@pytest.mark.parametrize("backups", [False, True])
@pytest.mark.parametrize("portion", [7, 100, 1000])
def test_the_gradient_is_that_of_the_whole_batch_however_it_is_portioned(portion, backups):
    workload = digits()
    run = course({"memory": 0, "portion": portion, "backups": backups}, steps=1, faults=SLOW, workload=workload)
    w = workload.start(0)
    f, g = workload.gradient(w, workload.batch(np.arange(workload.samples)))
    assert losses(run)[0] == pytest.approx(f, rel=1e-12)
    step = run.shipped - w
    assert np.allclose(step / np.linalg.norm(step), -g / np.linalg.norm(g), atol=1e-10)


def test_on_any_network_it_is_the_same_to_rounding():
    ideal, ragged = (course({}, network=NETWORKS[n], faults=d) for n, d in (("ideal", Faults()), ("1GbE", SLOW)))
    assert np.allclose(ideal.shipped, ragged.shipped, rtol=1e-8)


def test_portions_and_backup_tasks_shorten_the_wait_for_a_slow_worker():
    slow = Faults(slow={5: 8.0})

    def seconds(**settings):
        run = course({"every": 1, **settings}, 4, 3, digits("128,128"), faults=slow)
        return run.outcome.trace().seconds()

    samples = digits().samples
    static = seconds(portion=-(-samples // 4), backups=False)
    small = seconds(portion=samples // 32, backups=False)
    backed_up = seconds(portion=samples // 32)
    assert backed_up < small < 0.6 * static


def test_scalars_and_not_vectors_go_through_the_coordinator():
    run = course({"shards": 2})
    for row in run.outcome.event_logs[0].messages:
        assert row[2] <= 8 * 5


@pytest.mark.parametrize("when", [0.001, 0.002, 0.004])
def test_a_lost_worker_is_not_missed(when):
    run = course({"shards": 2}, fails=True, faults=Faults(crash={4: when}))
    assert run.outcome.error is None and "rank 4 was lost" in run.outcome.notes[0]
    assert losses(run) == pytest.approx(losses(course({"shards": 2})), rel=1e-8)


def test_a_step_on_which_the_gradient_did_not_grow_is_not_remembered():
    flat = Here({W: [1.0, 2.0], W0: [0.0, 0.0], G: [3.0, 1.0], G0: [3.0, 1.0]})  # y = 0
    turning = Here({W: [1.0, 2.0], W0: [0.0, 0.0], G: [2.0, 0.0], G0: [3.0, 1.0]})  # s . y = -3
    curved = Here({W: [1.0, 2.0], W0: [0.0, 0.0], G: [4.0, 1.0], G0: [3.0, 1.0]})
    for vectors, remembered in ((flat, 0), (turning, 0), (curved, 1)):
        pairs, unused = [], [(PAIRS, PAIRS + 1)]
        remember(vectors, pairs, unused, (W, W0), (G, G0))
        assert (len(pairs), len(unused)) == (remembered, 1 - remembered)
    assert curved[PAIRS].tolist() == [1, 2] and curved[PAIRS + 1].tolist() == [1, 0]


def test_the_oldest_step_is_forgotten():
    vectors = Here({W: [1.0], W0: [0.0], G: [1.0], G0: [0.0]})
    pairs = [("s1", "y1"), ("s2", "y2")]
    remember(vectors, pairs, [], (W, W0), (G, G0))
    assert pairs == [("s2", "y2"), ("s1", "y1")] and vectors["s1"].tolist() == [1]


def test_workers_may_be_more_than_mini_batches():
    check(Experiment.of({"algorithm": "sandblaster", "workers": 64}))


def test_an_epoch_is_a_step():
    done = run(Experiment.of({"algorithm": "sandblaster", "epochs": 3, "hidden": "8"}))
    assert done.summary["steps"] == len(done.losses["loss"]) == 3


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_lost_coordinator_or_shard_ends_it_with_rank_and_step(rank):
    run = course({"shards": 2}, fails=True, faults=Faults(crash={rank: 0.003}))
    assert isinstance(run.outcome.error, RankLost) and run.outcome.error.rank == rank


def test_it_solves_the_chain_exactly():
    run = course({}, workload=ScalarChain(w=(0.5, 0.6, 0.7), x=np.ones(24)), steps=30)
    assert run.shipped.prod() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"portion": 2000}, "portion … 2000 … at most 1437"),
        ({"shards": 20, "workload": "quadratic"}, "20 shards … at most 10"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(settings, complaint):
    with pytest.raises(ValueError, match=quote(complaint)):
        check(Experiment.of({"algorithm": "sandblaster", **settings}))

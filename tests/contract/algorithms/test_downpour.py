import math

import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, Springs, train
from tracing import HELD

PLAIN = {"update": "sgd", "learning_rate": 0.1}


def served(run):
    """What the first server's parameters were after every push."""
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


@pytest.mark.parametrize("shards", [1, 2])
def test_the_first_push_to_adagrad_moves_every_coordinate_that_has_a_gradient_by_exactly_the_rate(shards):
    chain = ScalarChain(w=(0.5, 0.0, 0.7, 2.0))  # the gradients of all weights but the second are zero
    run = train("downpour", chain, 1, {"learning_rate": 0.125, "shards": shards}, steps=1)
    assert np.array_equal(np.abs(run.shipped - chain.w), [0, 0.125, 0, 0])


def test_a_server_keeps_squares_for_adagrad_alone():
    for update, vectors in (("adagrad", 1), ("sgd", 0)):
        server = train("downpour", Springs(parameters=3), 1, {"update": update}, steps=2).outcome.event_logs[0]
        assert server.held[HELD.index("optimizer state")] == vectors * 3 * 8


def test_the_second_push_moves_by_the_rate_over_the_root_of_all_squares():
    run = train("downpour", Springs(), 1, {"learning_rate": 0.1}, steps=4)
    assert served(run) == pytest.approx([0.9, 0.83310353, 0.78045618, 0.73622313])


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("update", ["sgd", "adagrad"])
def test_many_shards_do_what_one_does(workers, update):
    chain = ScalarChain(w=(0.5, 0.6, 0.7, 1.2, 0.9), dtype=np.float32)
    settings = {"update": update, "learning_rate": 0.05}
    one, many = (
        train("downpour", chain, workers, settings | {"shards": shards}, steps=8, network=NETWORKS["ideal"])
        for shards in (1, 3)
    )  # messages of no size: every shard hears of everybody's pushes and fetches in the same order
    assert np.array_equal(one.shipped, many.shipped)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_in_round_robin_every_gradient_is_n_minus_1_updates_old(workers):
    run = train("downpour", Springs([0.0] * workers), workers, PLAIN, steps=12)
    w = [1.0] * workers
    for _ in range(12 * workers):
        w.append(w[-1] - 0.1 * w[-workers])
    assert served(run) == w[workers:]
    (staleness,) = run.staleness[:1]
    assert staleness == [min(k, workers - 1) for k in range(12 * workers)]


def test_a_fixed_delay_of_two_makes_the_steps_of_the_book():
    run = train("downpour", Springs([0.0] * 3), 3, PLAIN, steps=2)
    assert served(run) == pytest.approx([0.9, 0.8, 0.7, 0.61, 0.53, 0.46])


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_the_critical_rate_shrinks_with_the_staleness(workers, share, settles):
    critical = 2 * math.sin(math.pi / (2 * (2 * (workers - 1) + 1)))
    settings = {"update": "sgd", "learning_rate": share * critical}
    w = np.abs(served(train("downpour", Springs([0.0] * workers), workers, settings, steps=600)))
    early, late = w[len(w) // 4 : len(w) // 2].max(), w[-len(w) // 4 :].max()
    assert (late < early / 2) == settles
    assert (late > early * 2) != settles


@pytest.mark.parametrize(
    "faults",
    [
        Faults(slow={2: 2.0, 3: 3.7, 4: 9.0}),
        Faults(jitter=JITTERS["exponential"]),
        Faults(slow={1: 0.3}, jitter=JITTERS["cloud"]),
    ],
    ids=["unequal speeds", "random speeds", "both"],
)
def test_the_mean_staleness_is_n_minus_1_whatever_the_speeds(faults):
    workers = 5
    run = train(
        "downpour", Springs([0.0] * workers), workers, PLAIN | {"learning_rate": 0.01}, steps=None,
        budget={"seconds": 0.2}, faults=faults,
    )  # fmt: skip
    (staleness,) = run.staleness[:1]
    assert len(staleness) > 500
    assert np.mean(staleness[50:]) == pytest.approx(workers - 1, rel=0.03)


def test_each_server_counts_its_own_staleness():
    springs, where = Springs([0.0] * 2, parameters=5), {"network": NETWORKS["ideal"]}
    run = train("downpour", springs, 2, PLAIN | {"shards": 2}, steps=4, **where)
    assert run.staleness == [[0, 1, 1, 1, 1, 1, 1, 1]] * 2 + [[], []]


def test_overlapping_the_fetch_hides_the_network_and_adds_one_step_of_staleness():
    def course(overlap):
        return train("downpour", Springs(), 1, PLAIN | {"overlap": overlap}, steps=20)

    waiting, hiding = course(False), course(True)
    assert waiting.staleness[0] == [0] * 20
    assert hiding.staleness[0] == [0, *[1] * 19]
    assert hiding.outcome.trace().seconds() < waiting.outcome.trace().seconds()
    assert not [row for row in hiding.outcome.event_logs[1].spans if row[4] == "receive"][1:]  # but the last


def test_a_replica_pushes_the_sum_of_its_gradients_and_moves_by_itself_in_between():
    springs = Springs()
    run = train("downpour", springs, 1, PLAIN | {"n_push": 3, "n_fetch": 2}, steps=6)
    #         fetch 1.0   alone    fetch 1.0   alone   fetch .729   alone
    #                              push of three gradients        push
    path = np.ravel(springs.seen[0.0])
    first = 1 - 0.1 * (1 + 0.9 + 1)
    assert path[:4] == pytest.approx([1, 0.9, 1, 0.9])
    assert path[4:] == pytest.approx([first, 0.9 * first])
    assert served(run) == pytest.approx([first, first - 0.1 * (0.9 + first + 0.9 * first)])


def test_a_replica_that_is_lost_does_not_stop_the_others():
    run = train(
        "downpour", Springs([0.0] * 3), 3, PLAIN, steps=40, fails=True, faults=Faults(crash={2: 0.004})
    )  # fmt: skip
    assert run.outcome.error is None and "rank 2 was lost" in run.outcome.notes[0]
    assert len(served(run)) > 80


def test_with_a_warm_start_the_others_begin_when_the_first_has_made_its_pushes():
    run = train("downpour", Springs([0.0] * 3), 3, PLAIN | {"warm": 5}, steps=8)
    (staleness,) = run.staleness[:1]
    assert staleness[:5] == [0] * 5 and max(staleness) == 2
    first, *others = run.outcome.event_logs[1:]
    assert all(event_log.losses[0][2] > first.losses[4][2] for event_log in others)
    assert all(len(event_log.losses) == 8 for event_log in (first, *others))


@pytest.mark.parametrize("where", [{"crash": {1: 0.003}}, {}], ids=["lost", "short"])
def test_the_others_begin_as_well_if_the_first_ends_before(where):
    settings = PLAIN | {"warm": 10**6}
    run = train("downpour", Springs([0.0] * 3), 3, settings, steps=8, fails=True, faults=Faults(**where))
    assert run.outcome.error is None
    assert [len(event_log.losses) for event_log in run.outcome.event_logs[2:]] == [8, 8]


def test_a_warm_start_makes_a_rate_safe_that_diverges_without():
    """Ten replicas at once on a valley whose slope is steep at first: w^4, near the edge of stability."""

    class Valley(Springs):
        def gradient(self, w, batch):
            super().gradient(w, batch)
            with np.errstate(all="ignore"):
                return float((w**4).sum()), 4 * w**3

    def reached(warm):
        settings = {"update": "sgd", "learning_rate": 0.1, "warm": warm}
        return abs(train("downpour", Valley([0.0] * 10), 10, settings, steps=20, fails=True).shipped[0])

    assert reached(50) < 0.5
    assert not reached(0) < 1e3


def test_more_shards_than_parameters_are_refused():
    with pytest.raises(ValueError, match=r"20 shards .*10 parameters"):
        check(Experiment.of({"algorithm": "downpour", "workload": "quadratic", "shards": 20}))

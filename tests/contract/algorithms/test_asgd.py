import math
from collections import Counter

import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from tests.training import Springs, train


def served(run):
    """What the server's parameters were after every push."""
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


def long(workers, settings=None, steps=None, seconds=0.3, name="asgd", **faults):
    """A run of many pushes on a bowl, under jitter or unequal speeds."""
    return train(
        name, Springs([0.0] * workers), workers, settings or {"learning_rate": 0.01}, steps=steps,
        budget=None if steps else {"seconds": seconds}, faults=Faults(**faults),
        network=NETWORKS["ideal"],
    )  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_in_round_robin_it_is_sgd_with_a_delay_of_n_minus_1_bit_for_bit(workers):
    run = train("asgd", Springs([0.0] * workers), workers, {"learning_rate": 0.1}, steps=12)
    w = [1.0] * workers
    for _ in range(12 * workers):
        w.append(w[-1] - 0.1 * w[-workers])
    assert served(run) == w[workers:]
    assert run.staleness[0] == [min(k, workers - 1) for k in range(12 * workers)]


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_the_critical_rate_of_a_fixed_delay_is_that_of_theory(workers, share, settles):
    critical = 2 * math.sin(math.pi / (2 * (2 * (workers - 1) + 1)))
    w = np.abs(served(long(workers, {"learning_rate": share * critical}, steps=600)))
    early, late = w[len(w) // 4 : len(w) // 2].max(), w[-len(w) // 4 :].max()
    assert (late < early / 2) == settles
    assert (late > early * 2) != settles


@pytest.mark.parametrize(
    "faults",
    [{"slow": {2: 2.0, 3: 3.7, 4: 9.0}}, {"jitter": JITTERS["exponential"]}],
    ids=["unequal speeds", "random speeds"],
)
def test_the_mean_staleness_is_n_minus_1_whatever_the_speeds(faults):
    (staleness,) = long(5, **faults).staleness[:1]
    assert len(staleness) > 500
    assert np.mean(staleness[50:]) == pytest.approx(4, rel=0.03)


def test_exponential_work_times_make_staleness_geometric():
    workers = 4
    (staleness,) = long(workers, seconds=1.0, jitter=JITTERS["exponential"]).staleness[:1]
    counts, n = Counter(staleness[100:]), len(staleness) - 100
    assert n > 5000
    for k in range(4):
        share = (1 / workers) * (1 - 1 / workers) ** k
        assert counts[k] / n == pytest.approx(share, abs=5 * math.sqrt(share / n))


def test_random_delays_forgive_a_rate_at_which_equal_fixed_ones_diverge():
    workers, settings = 8, {"learning_rate": 0.3}  # the critical rates are 0.209 and, from theory of one run, 0.69
    fixed, random = (
        long(workers, settings, steps=300),
        long(workers, settings, steps=300, jitter=JITTERS["exponential"]),
    )
    assert abs(served(fixed)[-1]) > 1e6
    assert abs(served(random)[-1]) < 1e-6


def test_a_lost_worker_does_not_stop_the_others():
    run = train(
        "asgd", Springs([0.0] * 3), 3, steps=40, fails=True, faults=Faults(crash={2: 0.004})
    )  # fmt: skip
    assert run.outcome.error is None and "rank 2 was lost" in run.outcome.notes[0]
    assert len(served(run)) > 80

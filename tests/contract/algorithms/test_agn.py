from itertools import pairwise

import numpy as np
import pytest

from cluster.faults import JITTERS
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train


def test_one_worker_moves_the_centre_by_the_mean_of_its_local_steps():
    run = train("agn", Springs(), 1, {"learning_rate": 0.1, "period": 4}, steps=8)
    w = 1.0
    for _ in range(2):
        steps = [0.1 * w * 0.9**k for k in range(4)]
        w -= sum(steps) / 4
    assert served(run)[-1] == pytest.approx(w, rel=1e-14)


@pytest.mark.parametrize("period", [2, 5])
def test_a_commit_is_never_longer_than_the_longest_local_step(period):
    springs = Springs([3.0, -1.0, 0.5])
    run = train("agn", springs, 3, {"learning_rate": 0.2, "period": period}, steps=20)
    places = [1.0, *served(run)]
    longest = max(0.2 * abs(x[0] - c) for c, seen in springs.seen.items() for x in seen)
    assert max(abs(a - b) for a, b in pairwise(places)) <= longest * (1 + 1e-12)


def test_it_converges_where_commits_of_whole_sums_diverge():
    settings = {"learning_rate": 0.1, "period": 10}
    where = {"steps": 600, "jitter": JITTERS["cloud"]}
    mean = long(6, settings, name="agn", **where)
    whole = long(6, {"update": "sgd", "learning_rate": 0.1, "n_push": 10, "n_fetch": 10}, name="downpour", **where)
    assert abs(served(mean)[-1]) < 1e-3
    assert not abs(served(whole)[-1]) < 1e3


def test_staleness_counts_commits():
    run = long(4, {"learning_rate": 0.01, "period": 3}, name="agn", steps=60)
    assert run.staleness[0] == [min(k, 3) for k in range(4 * 20)]
    assert np.isfinite(served(run)).all()

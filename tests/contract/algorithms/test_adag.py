import numpy as np
import pytest

from cluster.faults import JITTERS
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train


def test_the_first_commit_is_taken_whole_and_the_second_less_for_the_way_the_centre_has_moved():
    w = served(train("adag", Springs([0.0, 0.0]), 2, {"learning_rate": 0.1, "period": 1}, steps=1))
    assert w[0] == 0.9
    assert w[1] == pytest.approx(0.9 - 0.1 / (0.1**2 / 0.1 + 1), rel=1e-14)


def test_it_settles_where_asynchronous_sgd_diverges():
    where = {"steps": 400, "jitter": JITTERS["none"]}
    distance = long(8, {"learning_rate": 0.3, "period": 1}, name="adag", **where)
    plain = long(8, {"learning_rate": 0.3}, **where)
    assert max(map(abs, served(distance)[-100:])) < 1
    assert abs(served(plain)[-1]) > 1e6


@pytest.mark.parametrize("period", [1, 4])
def test_where_nothing_has_moved_meanwhile_it_is_agn_bit_for_bit(period):
    settings = {"learning_rate": 0.1, "period": period}
    alone = [served(train(name, Springs(), 1, settings, steps=12)) for name in ("adag", "agn")]
    assert len(alone[0]) == 12 // period
    assert alone[0] == alone[1]


def test_no_step_is_longer_than_that_of_agn_nor_turned_back():
    run = long(6, {"learning_rate": 0.2, "period": 1}, name="adag", steps=100, jitter=JITTERS["cloud"])
    w = np.array([1.0, *served(run)])
    seen = w[np.arange(len(w) - 1) - run.staleness[0]]  # where each gradient was taken; on this bowl it is its length
    shares = (w[:-1] - w[1:]) / (0.2 * seen)
    assert shares.min() > 0 and shares.max() <= 1 + 1e-9

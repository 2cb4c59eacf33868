import pytest

from cluster.disturbances import JITTERS
from tests.algorithms.test_asgd import long, served
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

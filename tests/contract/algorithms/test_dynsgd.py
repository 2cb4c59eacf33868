import pytest

from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train


def test_a_commit_is_divided_by_the_commits_of_others_in_between_plus_one():
    w = served(train("dynsgd", Springs([0.0] * 3), 3, {"learning_rate": 0.3}, steps=1))
    assert w == pytest.approx([0.7, 0.7 - 0.15, 0.7 - 0.15 - 0.1])


def test_it_settles_at_a_rate_at_which_asynchronous_sgd_diverges():
    dynamic, plain = (long(8, {"learning_rate": 0.5}, name=name, steps=300) for name in ("dynsgd", "asgd"))
    assert abs(served(dynamic)[-1]) < 1e-3
    assert abs(served(plain)[-1]) > 1e6


def test_a_worker_commits_the_sum_of_its_local_steps():
    w = served(train("dynsgd", Springs(), 1, {"learning_rate": 0.1, "period": 3}, steps=6))
    assert w == pytest.approx([0.9**3, 0.9**6])

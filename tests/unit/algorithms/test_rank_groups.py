import numpy as np
import pytest

from algorithms.parts.rank_groups import divisors, elements_per_rank
from theory.traffic import hybrid


def test_one_group_sends_activations_only_and_a_group_for_each_rank_gradients_only():
    assert elements_per_rank(units=100, parameters=10**9, batch=8, ranks=4, groups=1) == 2 * 3 / 4 * 8 * 100
    assert elements_per_rank(units=10**9, parameters=100, batch=8, ranks=4, groups=4) == 2 * 3 / 4 * 100


def test_with_many_ranks_the_short_formula_is_the_long_one():
    for groups in (2, 8, 32):
        exact = elements_per_rank(4096, 4096**2, 2**16, 1024, groups)
        members = 1024 // groups
        corrected = 2 * 4096 * (2**16 / groups * (members - 1) / members + 4096 / members * (groups - 1) / groups)
        assert exact == pytest.approx(corrected)
        few = 1 / min(groups, members) + 0.01
        assert hybrid(groups, 1024, 2**16, 4096, itemsize=1) == pytest.approx(exact, rel=few)


def test_the_groups_there_can_be_divide_the_ranks():
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    assert np.all(12 % np.array(divisors(12)) == 0)


@pytest.mark.parametrize("units", [64, 512])
def test_the_more_samples_for_the_weights_the_more_groups_from_model_parallel_to_data_parallel(units):
    def least(batch):
        return min(divisors(16), key=lambda groups: elements_per_rank(units, units**2, batch, ranks=16, groups=groups))

    chosen = [least(batch) for batch in (1, units // 16, units, 16 * units, 256 * units)]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (1, 16)

"""The table of learning rates is whole, and its defaults can be compared."""

from statistics import median

import pytest

import algorithms
from algorithms import rates


def test_every_algorithm_has_a_line_for_the_workload_that_its_experiments_begin_with():
    own = {name: algorithms.find(name).defaults.get("workload") for name in algorithms.names()}
    assert list(rates.table()["digits-mlp"]) == [name for name, workload in own.items() if not workload]
    assert all(name in rates.table()[workload] for name, workload in own.items() if workload)


@pytest.mark.parametrize("part", rates.table())
def test_defaults_are_the_best_rates_or_a_stated_fraction_of_them(part):
    for name, line in rates.table()[part].items():
        assert line.best / line.rate in (1, 2), name
        assert line.rate / line.many in (1, 2, 4, 8, 16), name


def test_methods_compared_at_their_defaults_on_digits_spread_by_what_they_are():
    losses = [line.loss for line in rates.table()["digits-mlp"].values()]
    assert max(losses) < 3 * median(losses) and median(losses) < 2 * min(losses)


def test_the_table_names_no_algorithm_that_is_not_there():
    assert {name for lines in rates.table().values() for name in lines} <= set(algorithms.names())

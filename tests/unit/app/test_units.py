import math

import pytest

from app import units


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0 s"), (2.04e-5, "20.4 µs"), (0.00123, "1.23 ms"), (1.0, "1 s"), (75, "1.25 min"), (3e-10, "0.3 ns"),
     (59.999, "1 min"), (0.9999, "1 s"), (7200, "120 min"), (math.inf, "∞"), (math.nan, "-")],
)  # fmt: skip
def test_a_time_reads_as_people_say_it(value, words):
    assert units.seconds(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0 B"), (999, "999 B"), (104_384, "104 kB"), (1.25e8, "125 MB"), (2e12, "2 TB")]
)
def test_a_size_reads_as_people_say_it(value, words):
    assert units.size(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.187, "0.187"), (12_800, "12,800"), (2e-7, "2.00e-7"), (3.1e9, "3.10e9"), (0.0, "0"), (math.inf, "∞")],
)
def test_a_number_has_no_exponent_where_one_can_do_without(value, words):
    assert units.number(value) == words


@pytest.mark.parametrize(("value", "words"), [(0, "0 FLOP"), (999, "999 FLOP"), (2.51e9, "2.51 GFLOP")])
def test_work_reads_as_people_say_it(value, words):
    assert units.flops(value) == words


def test_shares_and_counts():
    assert units.percent(0.9306) == "93.1 %"
    assert units.count(25_600) == "25,600"
    assert units.rate(1.17e9) == "1.17 GB/s"

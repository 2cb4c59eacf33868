import math
from types import SimpleNamespace

import pytest

from experiments.runs.figures import figure_text, run_figure_text
from experiments.wording import units


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


def test_the_percents_of_one_whole_add_up_to_100():
    assert units.percents([55.4, 36.3, 8.3]) == ["56 %", "36 %", "8 %"]
    assert units.percents([1, 1, 1]) == ["34 %", "33 %", "33 %"]
    assert units.percents([1, 0]) == ["100 %", "0 %"] and units.percents([0, 0]) == ["0 %", "0 %"]


def test_a_rate_has_three_digits_and_an_estimate_of_a_time_two():
    rates = [units.samples_per_second(value) for value in (298_808, 12_345_678, 999.6, 41.27, 0.0, math.nan)]
    assert rates == ["299,000", "12,300,000", "1,000", "41.3", "0", "-"]
    assert figure_text("samples_per_second", 298_808) == "299,000"
    assert [units.about(value) for value in (69.6, 8.21, 200, 4321)] == ["70 s", "8.2 s", "3.3 min", "72 min"]


def test_a_figure_with_an_error_has_two_digits_of_it_in_the_same_unit():
    assert figure_text("seconds", 0.0204, 0.00031) == "20.40 ± 0.31 ms"
    assert figure_text("bytes", 1.5e6, 2.5e4) == "1.500 ± 0.025 MB"
    assert figure_text("samples_per_second", 298808.0, 1234.0) == "298,808 ± 1,234"
    assert figure_text("staleness_mean", 3.1, 0.12) == "3.10 ± 0.12 updates"
    assert figure_text("held_out_loss", None) == "–"


def test_an_accuracy_is_told_with_its_standard_error_and_a_loss_alone():
    summary = {"accuracy": 0.9333, "accuracy_error": 0.0131, "held_out_loss": 0.2376}
    run = SimpleNamespace(status="finished", summary=summary)
    assert run_figure_text(run, "accuracy") == "93.3 ± 1.3 %"
    assert run_figure_text(run, "held_out_loss") == "0.238" and run_figure_text(run, "staleness_mean") == "–"


def test_losses_side_by_side_have_the_same_number_of_digits():
    told = {0.17: "0.170", 0.0989: "0.0989", 0.12937: "0.129", 2.0: "2.00", 12.0: "12.0", 123.0: "123", 0.0: "0"}
    assert {value: units.loss(value) for value in told} == told
    assert figure_text("held_out_loss", 0.17) == "0.170" and units.loss(math.inf) == "diverged"
    assert figure_text("held_out_loss", 0.17, 0.012) == "0.170 ± 0.012"


def test_a_moment_reads_as_a_date_and_a_time_of_day():
    assert units.moment("2026-01-01T12:00+00:00") == "1 January 2026, 12:00"
    assert units.moment("2026-11-23T09:05:07.123+01:00") == "23 November 2026, 09:05"


def test_sizes_and_counts_are_read_as_people_write_them():
    for text, value in (("4e9", 4e9), ("4GB", 4e9), ("4 gb", 4e9), ("500kB", 5e5), ("8B", 8.0)):
        assert units.parse_size(text) == value
    for text, value in (("7.5e9", 7.5e9), ("7.5B", 7.5e9), ("350m", 3.5e8)):
        assert units.parse_count(text, "parameters") == value
    for text in ("", "4XB", "1e", "1.2.3", "-4"):
        with pytest.raises(ValueError, match="4GB"):
            units.parse_size(text)
        with pytest.raises(ValueError, match=r"parameters is .* not a number above 0"):
            units.parse_count(text, "parameters")


def test_a_number_of_fewer_digits_than_its_integer_part_is_rounded_without_an_exponent():
    assert [units.number(value, 2) for value in (268, 99.6, 999.6, 5.04, 0.012)] == [
        "270",
        "100",
        "1,000",
        "5",
        "0.012",
    ]
    assert units.number(268) == "268" and units.number(995.4, 4) == "995.4" and units.updates(1) == "1 update"


def test_a_large_count_is_told_in_words_of_its_size():
    said = {7.5e9: "7.5 billion", 7.7e7: "77 million", 1.8e12: "1.8 trillion", 12800: "12,800"}
    assert {value: units.in_millions(value) for value in said} == said

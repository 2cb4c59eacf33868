"""Golden files: what is written is read back, and changes are reported."""

import math

import numpy as np
import pytest

from lessons import golden
from lessons.figure import Look, figure
from tests.book import differences_under_one_seed


@figure("Is it?", source="nobody", claims={"it is": lambda rows: True}, look=Look("n", ("t",), log="x"))
def made(run):
    """It is."""
    return [{"n": np.int64(1), "t": 1 / 3, "kind": "a"}, {"n": 2, "t": math.inf, "kind": "b"}]


def test_what_is_written_is_what_is_read(tmp_path):
    recorded = golden.record_figure("here.made", made, {0: made.rows(None)}, ["x=1", "x=2", "x=1"])
    whole = golden.Golden(
        {"here.made": recorded}, {"item": [({"n": 1}, 2.5), ({"n": 2}, "one")]}, {"item": [[2, 3], ["one"]]}
    )
    golden.write(whole, tmp_path / "golden.json")
    back = golden.read(tmp_path / "golden.json")
    assert (back.answers, back.samples) == (whole.answers, whole.samples)
    assert back.figure("here.made").plain() == recorded.plain()
    assert back.figure("here.made").rows[0] == {"n": 1, "t": 0.333333, "kind": "a"}
    assert back.figure("here.made").runs == ("x=1", "x=2")
    assert back.answer("item", {"n": 2}) == "one"


def test_rows_are_rounded_when_they_are_written_and_not_before():
    recorded = golden.record_figure("here.made", made, {0: made.rows(None)})
    assert recorded.rows[0]["t"] == 1 / 3 and type(recorded.rows[0]["n"]) is int
    assert recorded.plain()["rows"][0]["t"] == 0.333333


def test_a_record_has_the_mean_over_seeds_what_they_range_over_and_how_many_show_a_claim():
    samples = {seed: [{"n": 8, "loss": loss, "seconds": 1.0}] for seed, loss in enumerate((0.25, 0.5, 0.75))}
    low = figure("?", source="nobody", claims={"it is low": lambda rows: rows[0]["loss"] < 0.6})(lambda run: samples[0])
    recorded = golden.record_figure("here.low", low, samples)
    assert recorded.rows == [{"n": 8, "loss": 0.5, "seconds": 1.0}] and type(recorded.rows[0]["n"]) is int
    assert recorded.spread == [{"loss": (0.25, 0.75)}] and [*map(recorded.under, samples)] == [*samples.values()]
    assert recorded.claims == {"it is low": 2} and not recorded.shows("it is low")
    assert recorded.table() == [{"n": 8, "loss": 0.5, "loss, lowest": 0.25, "loss, highest": 0.75, "seconds": 1.0}]
    assert golden.RecordedFigure.of("here.low", recorded.plain()) == recorded
    assert "seeds 0 to 2" in recorded.seeds_sentence()


def test_a_row_has_a_line_of_its_own(tmp_path):
    golden.write(
        golden.Golden({"here.made": golden.record_figure("here.made", made, {0: made.rows(None)})}, {}), tmp_path / "g"
    )
    assert '    {"n": 2, "t": Infinity, "kind": "b"}' in (tmp_path / "g").read_text().splitlines()


def test_a_folder_without_a_golden_file_has_nothing(tmp_path):
    assert golden.read(tmp_path / "golden.json") == golden.EMPTY
    with pytest.raises(ValueError, match=r"here.made is not in the golden file"):
        golden.EMPTY.figure("here.made")
    with pytest.raises(ValueError, match="no answer to item"):
        golden.EMPTY.answer("item", {})


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([{"n": 1, "t": 10.2}, {"n": 2, "t": math.inf}], 0),
        ([{"n": 1, "t": 11.0}, {"n": 2, "t": math.inf}], 1),
        ([{"n": 1, "t": 10.0}, {"n": 3, "t": 5.0}], 2),
        ([{"n": 1, "t": 10.0}], 1),
        ([{"n": 1, "s": 10.0}, {"n": 2, "s": math.inf}], 1),
        ([{"n": 1, "t": "10"}, {"n": 2, "t": math.inf}], 1),
    ],
)
def test_numbers_may_move_a_little_and_nothing_else_may(now, told):
    assert len(golden.differences([{"n": 1, "t": 10.0}, {"n": 2, "t": math.inf}], now)) == told


@pytest.mark.parametrize(("here", "factor", "found"), [("Haswell", 1.00001, 0), ("Haswell", 1.001, 1), ("Zen", 1.3, 0)])
def test_under_the_kernels_of_its_record_a_row_may_not_be_where_another_seed_is(monkeypatch, here, factor, found):
    """What moves it farther than its last digits is a change of the code, which must not pass as another processor."""
    by_seed = {seed: [{"loss": float(seed)}] for seed in (1, 2, 3)}
    monkeypatch.setattr(golden, "kernels", lambda: "Haswell")
    kept = golden.record_figure("here.made", made, by_seed)
    assert golden.RecordedFigure.of("here.made", kept.plain()).kernels == "Haswell"
    moved = figure("?", source="nobody", claims={})(lambda run: [{"loss": by_seed[run.seed][0]["loss"] * factor}])
    monkeypatch.setattr(golden, "kernels", lambda: here)
    assert len(differences_under_one_seed(kept, moved, "here")) == found

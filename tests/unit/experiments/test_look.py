"""Look: rows are drawn as declared, or in the way that suggests itself."""

import pytest

from experiments.viewer.look import Look, guess
from tests.unit.experiments.test_figure_frame import drawn

ROWS = [
    {"law": law, "workers": n, "step": n * k, "theory": n + k, "note": "-"}
    for law, k in (("flat", 1), ("steep", 2.5))
    for n in (2, 8, 32)
]


@pytest.mark.parametrize(
    ("rows", "look"),
    [
        (ROWS, Look("workers", ("step",), "law")),
        ([{"start": "none", "loss": 2.0}, {"start": "gradual", "loss": 1.0}], Look("start", ("loss",), kind="bar")),
        ([{"b": 1, "s": 9, "t": 1.0}, {"b": 2, "s": 9, "t": 2.0}], Look("b", ("s",))),
        ([{"k": "a", "on": True, "v": 1}, {"k": "a", "on": False, "v": 2}], Look("k", ("v",), "on", "bar")),
        ([{"only": 3}], Look("only", ("only",))),
        (
            [{"n": 2, "ring": 1, "tree": 2, "bytes": 90}, {"n": 4, "ring": 5, "tree": 3, "bytes": 90}],
            Look("n", ("ring", "tree")),
        ),
    ],
)
def test_what_was_varied_goes_across_and_what_came_of_it_goes_up(rows, look):
    assert guess(rows) == look
    assert len(drawn(rows, None)[0]["lines"]) >= len(look.y)


def test_a_look_survives_json():
    look = Look("workers", ("step", "theory"), "law", "bar", title="t")
    assert Look.of(look.plain()) == look

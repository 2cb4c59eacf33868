"""Where a prediction and its measurement part, on traces made by hand."""

import math

import numpy as np
import pytest

from experiments.runs.parting import Parting, parting, totals
from tracing import COMMUNICATE, COMPUTE, UPDATE, WAIT, Trace


def trace(*spans):
    """A trace of two ranks with these spans: (rank, kind, step, seconds), one after the other."""
    ends = np.cumsum([seconds for *_, seconds in spans])
    rank, kind, step = np.array([span[:3] for span in spans]).T.reshape(3, -1)
    starts = ends - [seconds for *_, seconds in spans]
    columns = {"rank": rank, "kind": kind, "start": starts, "end": ends, "step": step, "label": 0 * rank}
    return Trace(2, columns, {"sent": np.zeros(0), "arrived": np.zeros(0)}, ("",))


PREDICTED = trace(
    *((1, WAIT, -1, 0.5), (0, COMPUTE, 0, 1.0), (1, COMPUTE, 0, 1.0), (0, COMMUNICATE, 0, 0.4)),
    *((0, COMPUTE, 1, 1.0), (1, COMPUTE, 1, 1.0), (0, COMMUNICATE, 1, 0.4), (1, WAIT, 1, 1e-6)),
    *((0, COMPUTE, 2, 1.0), (1, COMPUTE, 2, 1.0), (0, COMMUNICATE, 2, 0.4)),
)
MEASURED = trace(
    *((1, WAIT, -1, 2.0), (0, COMPUTE, 0, 1.1), (1, COMPUTE, 0, 1.1), (0, COMMUNICATE, 0, 0.4)),
    *((0, COMPUTE, 1, 1.0), (1, COMPUTE, 1, 1.2), (0, COMMUNICATE, 1, 1.0), (1, WAIT, 1, 2e-6)),
    *((0, COMPUTE, 2, 1.0), (1, COMPUTE, 2, 1.5), (0, COMMUNICATE, 2, 0.5), (0, UPDATE, 2, 0.25)),
)


def test_they_part_in_the_first_step_that_differs_by_more_than_a_tenth_and_in_the_kind_that_differs_most():
    assert parting(PREDICTED, MEASURED) == Parting(1, "communicate", pytest.approx(0.4), pytest.approx(1.0), 2, 3)


def test_a_tenth_more_and_what_lies_before_the_first_step_is_no_difference():
    measured = trace((1, WAIT, -1, 9.0), (0, COMPUTE, 0, 1.1), (1, COMPUTE, 0, 1.1), (0, COMMUNICATE, 0, 0.4))
    assert parting(PREDICTED, measured) is None


def test_twice_as_much_of_what_takes_no_part_in_a_step_is_no_difference():
    one, other = trace((0, COMPUTE, 0, 1.0), (0, WAIT, 0, 1e-6)), trace((0, COMPUTE, 0, 1.0), (0, WAIT, 0, 2e-6))
    assert parting(one, other) is None


def test_a_kind_that_was_not_predicted_at_all_differs():
    one, other = trace((0, COMPUTE, 0, 1.0)), trace((0, COMPUTE, 0, 1.0), (0, WAIT, 0, 0.5))
    assert parting(one, other) == Parting(0, "wait", 0.0, pytest.approx(0.5), 1, 1)


def test_a_run_parts_nowhere_from_itself_and_one_without_steps_from_nothing():
    assert parting(MEASURED, MEASURED) is None
    assert parting(trace((0, WAIT, -1, 1.0)), MEASURED) is None


def test_totals_are_of_all_ranks_and_the_whole_run():
    rows = totals(PREDICTED, MEASURED)
    assert [row.kind for row in rows] == ["compute", "update", "communicate", "wait"]
    assert [row.predicted for row in rows] == pytest.approx([6.0, 0.0, 1.2, 0.500001])
    assert [row.measured for row in rows] == pytest.approx([6.9, 0.25, 1.9, 2.000002])
    assert rows[0].ratio == pytest.approx(1.15) and math.isnan(rows[1].ratio)

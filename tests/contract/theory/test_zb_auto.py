"""Schedules that are found for given times: the bubbles of the paper's Table 5."""

import pytest

from algorithms.pipelined import zb_auto
from tests.unit.theory.test_schedules import PROFILES
from theory.pipeline_memory import Sizes, peak_bytes
from theory.schedule_timing import bubble_of_span, simulate

AUTOMATIC = [0.0433, 0.0039, 0.0026, 0.0029, 0.0022, 0.0010, 0.0066, 0.0054, 0.0028, 0.0038, 0.0029]  # printed: ZB-2p


@pytest.mark.parametrize(
    ("row", "zb_2p"),
    list(zip(PROFILES, AUTOMATIC, strict=True)),
    ids=[f"{row[0]}x{row[1]}-{row[2]}" for row in PROFILES],
)
def test_the_schedules_that_are_found_have_the_papers_bubbles_to_four_digits_and_keep_within_memory(row, zb_2p):
    stages, chunks, f, i, w, latency, _, zb_1p, _ = row  # what the paper finds in the memory of 1F1B is as good as H1
    for limit, printed in ((1, zb_1p), (2, zb_2p)):
        lists = zb_auto.best(stages, chunks, limit * stages, f, i, w, latency)
        assert round(bubble_of_span(simulate(lists, {"F": f, "I": i, "W": w}, latency)), 4) == printed
        late = zb_auto.KEPT
        held = peak_bytes(lists, Sizes([0] * stages, [1] * stages, [0] * stages, [late] * stages))
        assert max(held) <= limit * stages + 1e-9

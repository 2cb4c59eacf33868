"""Schedules that are found for given times: the bubbles of the paper's Table 5, the authors' program, H1 and H2."""

from itertools import product

import pytest

from algorithms.parts.pipeline.ops import check
from algorithms.pipelined import zb_auto
from tests.unit.theory.test_schedules import PROFILES
from theory import schedules
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


def span(lists, f, i, w, latency):
    return max(simulate(lists, {"F": f, "I": i, "W": w}, latency).span)


FOUND = [  # S, M, (f, i, w, c), and the longest spans that the authors' heuristic finds with limit 1 and with limit 2
    (3, 3, (8, 9, 8, 1), 97, 97),
    (4, 4, (8, 9, 8, 1), 133, 133),
    (6, 6, (8, 9, 8, 1), 205, 205),
    (7, 7, (8, 9, 8, 1), 241, 241),
    (6, 7, (8, 9, 8, 1), 240, 222),
    (4, 9, (8, 9, 8, 1), 264, 231),
    (4, 4, (10, 11, 6, 2), 165, 165),
    (7, 7, (10, 11, 6, 2), 303, 303),
    (6, 7, (10, 11, 6, 2), 304, 278),
    (4, 9, (10, 11, 6, 2), 312, 270),
    (4, 4, (4, 4, 4, 4), 84, 84),
    (7, 7, (4, 4, 4, 4), 156, 156),
    (6, 7, (4, 4, 4, 4), 184, 140),
]


@pytest.mark.parametrize(("stages", "chunks", "times", "tight", "wide"), FOUND)
def test_where_links_are_slow_and_micro_batches_few_it_is_as_quick_as_the_authors_heuristic(
    stages, chunks, times, tight, wide
):
    found = [span(zb_auto.best(stages, chunks, limit * stages, *times), *times) for limit in (1, 2)]
    assert found == [tight, wide]


def test_no_schedule_that_is_found_is_longer_than_h1_or_h2_at_the_same_limit():
    for stages, chunks in product((1, 2, 3, 5), (1, 2, 3, 5, 6, 9, 14)):
        for times in ((1, 1, 1, 0), (1, 1, 1, 1), (1, 2, 2, 4), (6, 2, 7, 1), (8, 9, 8, 1), (3, 2, 0, 2)):
            for limit in (1, 2):
                lists = zb_auto.best(stages, chunks, limit * stages, *times)
                check(lists)
                late = zb_auto.KEPT
                held = peak_bytes(lists, Sizes([0] * stages, [1] * stages, [0] * stages, [late] * stages))
                assert max(held) <= limit * stages + 1e-9
                others = ["zb_h1"] + ["zb_h2"] * (limit == 2 and chunks >= 2 * stages - 1)
                most = min(span(schedules.lists(name, stages, chunks), *times) for name in others)
                assert span(lists, *times) <= most, (stages, chunks, times, limit)

"""The check of the chapter on long sequences: near misses of its exercise lose the marks that they should."""

from types import SimpleNamespace

import numpy as np
import pytest

from lessons.grading.hosted import SolutionError
from lessons.long_sequences.check import SequenceSide, SharedSequence, textbook
from lessons.long_sequences.solution import worker
from tests.system.lessons.near_misses import begun, lost, solution

CHAPTER = "long_sequences"
RIGHT, MERGED, SMALL, HIDDEN, EVEN, MASKED, SENT, GENERAL = [
    "every position attends to the whole sequence",
    "blocks are merged correctly, even where scores are in the thousands",
    "no rank holds more than two blocks of keys and values",
    "messages hide behind the computation of scores",
    "all ranks compute for the same time",
    "scores that the mask hides are not computed",
    "ranks send no more than they must",
    "it works on one rank, and with two positions on a rank",
]
SENDS = "            comm.isend(block, (comm.rank + 1) % comm.size)\n"
RECEIVES = "            coming = comm.irecv((comm.rank - 1) % comm.size)\n"
LARGER = "    larger = np.maximum(most, scores.max(axis=1))\n"
EARLY, LATE = "early, late = rank * half", "(2 * ranks - 1 - rank) * half"
SEEN = "if theirs[others][0] <= mine[some][-1]:"
SAFE = "    before = np.exp(most - larger)\n    weights = np.exp(scores - larger[:, None])\n"
NO_NAN = "    before = np.exp(np.where(larger > -np.inf, most - larger, 0))\n" + (
    "    weights = np.exp(scores - np.where(larger > -np.inf, larger, 0)[:, None])\n"
)


@pytest.mark.parametrize("play", [worker, textbook])
@pytest.mark.parametrize("ranks", [2, 5])
def test_solution_and_textbook_compute_what_their_halves_may_see_while_blocks_travel(ranks, play):
    half, width = 60, 32
    sequence = SharedSequence(ranks, 2 * ranks * half, width, seed=1)
    sequence.play([play] * ranks)
    assert play is textbook or not sequence.error()
    square = 2 * width * half**2 / 1e12  # s for the scores of half a block and half a block
    assert sequence.busiest() == pytest.approx((2 * ranks + 1) * square)
    assert sequence.mean() == pytest.approx(sequence.busiest())
    assert sequence.seconds() == pytest.approx(sequence.busiest(), rel=0.05)


def test_the_rows_of_a_query_are_known_by_their_bits():
    sequence = SharedSequence(1, 4, 8, seed=1)

    side = SequenceSide(sequence, SimpleNamespace(rank=0), SimpleNamespace(per_epoch=1))
    q, k, _ = side.start(np.arange(4))
    with pytest.raises(SolutionError, match=r"given queries that task\.start did not give"):
        side.forward(q / 2, k)


@pytest.mark.slow
def test_the_start_file_earns_only_that_its_attention_is_right():
    assert lost(CHAPTER, begun(CHAPTER)) == (16, [MERGED, SMALL, HIDDEN, EVEN, MASKED, SENT, GENERAL])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        (((LARGER, "    larger = np.zeros_like(most)\n"),), [MERGED]),
        (((f"{LARGER}", "    larger = np.where(most > -np.inf, most, scores.max(axis=1))\n"),), [MERGED]),
        (
            (
                ("    block = k, v\n", "    block = k, v\n    kept = []\n"),
                (
                    "            block = coming.wait()\n",
                    "            block = coming.wait()\n            kept.append(block)\n",
                ),
            ),
            [SMALL],
        ),
        (
            (
                (SENDS + RECEIVES, "            coming = True\n"),
                ("        if coming:\n", f"        if coming:\n{SENDS}{RECEIVES}"),
            ),
            [HIDDEN],
        ),
        (((EARLY, "early, late = 2 * rank * half"), (LATE, "(2 * rank + 1) * half")), [EVEN]),
        (((SEEN, "if True:"), (SAFE, NO_NAN)), [MASKED]),
        (((SENDS, SENDS.replace("block,", "(*block, q[: len(q) // 20]),")),), [SENT]),
        ((("slice(None, len(places) // 2),", "slice(None, max(2, len(places) // 2)),"),), [GENERAL]),
    ],
)
def test_a_near_miss_loses_its_mark_alone(changes, marks):
    assert lost(CHAPTER, solution(CHAPTER, *changes))[1] == marks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("theirs[others] > mine", "theirs[others] >= mine"),
        ("total[:] = before * total", "total[:] = total"),
        ("task.forward(q[some], block[0][others])", "q[some] @ block[0][others].T / s.width**0.5"),
    ],
)
def test_other_attention_than_the_whole_sequences_earns_nothing(old, new):
    assert lost(CHAPTER, solution(CHAPTER, (old, new)))[0] == 0

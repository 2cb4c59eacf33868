"""What tests ask of the book: its blocks without folds, and whether a record is what a figure gives today."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

from lessons import golden, seeds
from lessons.golden import RecordedFigure
from lessons.markup import Block, Fold

SAME = 1e-4  # tolerance with the recorded kernels, where rows are equal except for rounding in the file


def unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks in order, with each fold replaced by its blocks."""
    for block in blocks:
        yield from block.blocks if isinstance(block, Fold) else (block,)


def differences_under_one_seed(recorded: RecordedFigure, figure, chapter: str) -> list[str]:
    """Run a figure of a chapter again with one of its recorded seeds; return the differences, one sentence each.

    Under the kernels of the record no processor explains a row that moved: its code has left it behind.
    """
    seed = pick_seed(chapter, recorded.seeds)
    run = seeds.Seeded(seed)
    rows = figure.rows(run)
    tolerance = {"close": SAME} if recorded.kernels == golden.kernels() else {"spread": recorded.spread}
    found = golden.differences(recorded.under(seed), rows, **tolerance)
    if run.used and len(recorded.seeds) == 1:
        found.append("it depends on the seed, and was recorded under one alone.")
    if not recorded.samples:  # of what seeds change the record shows the claims, the same on every processor
        found += [f"it does not show: {claim}." for claim, holds in figure.claims.items() if not holds(rows)]
    return found


def pick_seed(chapter: str, of: Sequence[int]) -> int:
    """Return one of the seeds `of`, the same for all figures of a chapter, since they share runs."""
    return of[zlib.crc32(chapter.encode()) % len(of)]

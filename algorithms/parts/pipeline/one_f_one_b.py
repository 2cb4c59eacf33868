"""1F1B: alternate one forward and one backward once enough micro-batches are in flight.

    stage 0   F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3        2 ahead, 4 micro-batches
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..        1 ahead
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..        none

DAPPLE, PipeDream, PipeDream-2BW, SpecTrain, XPipe and the systolic pipelines differ in how far a stage runs ahead and
how often it updates.

Source: Harlap et al., arXiv:1806.03377 (PipeDream).
"""

from collections.abc import Iterator
from itertools import count
from math import inf

from algorithms.parts.pipeline.ops import Op


def one_f_one_b(stage: int, ahead: int, per_update: float, chunks: float = inf) -> Iterator[Op]:
    """Yield `ahead` forwards, then one forward and one backward in turn; endless by default.

    An update follows every `per_update` backwards.

    At the end, when no forward is left, the last `ahead` backwards follow one another.
    """
    for chunk in range(int(min(ahead, chunks))):
        yield Op("F", stage, chunk)
    for chunk in count():
        if chunk == chunks:
            return
        if chunk + ahead < chunks:
            yield Op("F", stage, chunk + ahead)
        yield Op("B", stage, chunk)
        if (chunk + 1) % per_update == 0:
            yield Op("U", stage, int(chunk // per_update))

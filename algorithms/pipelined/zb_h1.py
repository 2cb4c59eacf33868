"""ZB-H1 splits the backward in two, and fills the bubble with the half that no other stage waits for.

I is the gradient of a stage's inputs, which the stage before needs; W, that of its weights, may come any time before
the update. Stage s goes forward S-1-s micro-batches ahead, then F, I and W take turns, W lagging s micro-batches
behind I:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. I0 W0 F3 I1 W1 I2 W2 I3 W3
    stage 1   .. F0 F1 .. I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
    stage 2   .. .. F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3        . idle: (S-1)(f+i-w), 2 of 14; 1F1B has 6 of 18

The formula holds as long as w <= f, w <= i and M >= S; each micro-batch fewer than S leaves w more.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. Stage s holds S-s micro-batches,
as 1F1B does, and what W needs of s more: no stage more than 1F1B's first. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241, Figure 3 (top) and Table 2; the order is that of torch.distributed. That
nobody waits for W, and that I therefore comes first, is already in Oh et al., "Out-of-Order BackProp", EuroSys 2022.
"""

from collections.abc import Iterator

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import FlushSettings as Settings


def schedule(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """Return the ops of one mini-batch. No rank needs more memory than the first rank needs in 1F1B."""
    return lagging(rank, ahead=ranks - 1 - rank, lag=rank, chunks=chunks)


def lagging(stage: int, ahead: int, lag: int, chunks: int) -> Iterator[Op]:
    """Yield `ahead` forwards, then F, I and W in turn, each W `lag` micro-batches after its I."""
    for chunk in range(min(ahead, chunks)):
        yield Op("F", stage, chunk)
    for chunk in range(chunks):
        if chunk + ahead < chunks:
            yield Op("F", stage, chunk + ahead)
        yield Op("I", stage, chunk)
        if chunk >= lag:
            yield Op("W", stage, chunk - lag)
    for chunk in range(max(0, chunks - lag), chunks):
        yield Op("W", stage, chunk)
    yield Op("U", stage, 0)


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"zb_h1": schedule},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "it adds gradients in the order of micro-batches, as DAPPLE does",
            to="dapple",
            workers=3,
            settings={"chunks": 4},
            to_settings={"chunks": 4},
        ),
    ),
)

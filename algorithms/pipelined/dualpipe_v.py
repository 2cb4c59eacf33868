"""DualPipeV is DualPipe cut in half: the second direction is the return path of the first; no stage is held twice.

Rank r of S holds the stages r and 2S-1-r, as in ZB-V; a forward of one is done together with a backward of the other,
and towards the ends of the pipeline the backward is split, with W in the holes:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 f0 i0 w0 f1 F3+b1 f2+B0 b2 f3+B1 b3 I2 W2 I3 W3
    rank 1   .. F0 f0 F1 f1 F2 b0 f2+B0 F3+b1 f3+B1 b2 B2 i3 I3 w3 W3        (capitals: way down, small letters: way up)

Price: DualPipe's bubble on half as many ranks, with one copy of the weights: 2 batch a per step over each of 2S-1
boundaries except the one at the bottom. Staleness: none.
Source: Qi, Wan, Huang & Lin (Sea AI Lab), "DualPipe could be better without the Dual", 2025, who cut DeepSeek-AI's
DualPipe (arXiv:2412.19437) in half; the steps are those of DeepSeek's code, github.com/deepseek-ai/DualPipe.
"""

from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import AS_DAPPLE
from algorithms.parts.pipeline.settings import FlushSettings as Settings
from algorithms.pipelined.dualpipe import eight_steps
from knobs import Refusal


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """Return the ops of one mini-batch on two stages per rank, down and back up."""
    if chunks < 2 * ranks:
        raise Refusal(
            f"{chunks} micro-batches do not fill {ranks} ranks with two stages; use {2 * ranks} or more.", [2 * ranks]
        )
    down, up = (rank, 0), (2 * ranks - 1 - rank, 0)
    return eight_steps(near=down, far=up, h=rank, half=ranks, chunks=chunks)


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"dualpipe_v": schedule},
    equivalences=(AS_DAPPLE,),
)

"""Published numbers that this book recomputes: theirs as printed, ours from the rows of a figure or a closed form.

Source: Seide, Fu, Droppo, Li & Yu, ICASSP 2014, abstract: a network of 46M parameters and mini-batches of 1,024. Its
other number, that splitting the model is best on 3 GPUs, is not computed here. It depends on the widths of the layers
and on what a message costs, and the abstract, which is all that we found of the paper, has neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lessons
from cluster.devices import DEVICES
from theory.collective_costs import share

SPEECH, BATCH = 46e6, 1024  # parameters; samples of a step
PCIE = 15.75e9  # bytes/s each way over 16 lanes of PCIe 3.0, at their peak


@dataclass(frozen=True)
class Published:
    """A number from a paper on `method`. `ours` recomputes it, from a figure or, if `figure` is "", in closed form."""

    work: str
    method: str
    theirs: str
    ours: Callable[[], str]
    figure: str = ""


def two_gpus(batch: float = BATCH) -> float:
    """Return the speed-up of two K40s over one K40, if the GPUs and their link run at peak speed. A step sums the
    gradients of `SPEECH` parameters after the backward pass.

    A step sums the gradients of `SPEECH` parameters after the backward pass.
    """
    alone = 6 * SPEECH * batch / DEVICES["K40"].flops
    return alone / (alone / 2 + share(2) * 4 * SPEECH / PCIE)


def _rows(figure: str) -> list[dict[str, Any]]:
    return lessons.chapter(figure.partition(".")[0]).golden.figures[figure].rows


def _planned() -> str:
    figure = "choosing.where_to_cut"
    row = next(r for r in _rows(figure) if (r["model"], r["network"]) == ("VGG-16", "10GbE"))
    speed = f"{row['planned']:.2f} times as fast as one GPU, with the plan {row['plan']}"
    return f"{speed}, if all-reduces overlap the forward pass, too"


def _bubbles() -> str:
    rows = _rows("pipelines.published_table")
    same = sum(round(row["bubble"], 4) == row["paper"] for row in rows)
    return f"{same} of {len(rows)} bubbles agree in all four digits"


def _stripes() -> str:
    speed = {row["machines"]: row["speed-up"] for row in _rows("pipelined_backprop.stripes") if row["top"] == "striped"}
    return f"{speed[2]:.1f} times as fast on two machines as on one, {speed[4]:.1f} on four"


def _alike() -> str:
    speed = {row["machines"]: row["alike"] for row in _rows("pipelines.uneven_stages")}
    return ", ".join(f"{speed[machines]:.1f} on {machines}" for machines in (2, 4, 8))


PUBLISHED = (
    Published(
        "Seide et al.: on parallelizability",
        "sync_sgd",
        "data parallelism with a mini-batch of 1,024 does not even scale to 2 GPUs",
        lambda: f"two K40s are {two_gpus():.2f} times as fast as one, if they and PCIe 3.0 run at peak speed",
    ),
    Published(
        "Chen et al.: pipelined back-propagation for speech",
        "chen",
        "1.9 times as fast on two machines as on one, 3.3 on four",
        _stripes,
        "pipelined_backprop.stripes",
    ),
    Published(
        "Huang et al.: GPipe",
        "gpipe",
        "Transformer, relative to 2 machines without micro-batches: 1.8 on 2, 3.4 on 4, 6.3 on 8",
        _alike,
        "pipelines.uneven_stages",
    ),
    Published(
        "Narayanan et al.: PipeDream",
        "pipedream",
        "VGG-16 over 10 Gb/s: 6.98 times as fast as one GPU, with the plan 7-1",
        _planned,
        "choosing.where_to_cut",
    ),
    Published(
        "Qi et al.: zero bubble",
        "zb_h1",
        "44 bubbles of table 5, for 1F1B, ZB-H1, ZB-H2 and ZB-2p",
        _bubbles,
        "pipelines.published_table",
    ),
)

"""A comparison of this chapter's strategies with those that torch offers."""

from dataclasses import dataclass
from functools import cached_property

from cluster.devices import Device
from lessons.choosing.case import Case
from lessons.choosing.experiments import MS
from lessons.choosing.rehearsal import bytes_to_send, rehearse
from lessons.choosing.strategies import CLOSED_FORMS, states, zero3_with_prefetching
from lessons.figure import Look, figure, value
from theory.published_models import FLOAT32, LayerShape
from theory.zero_memory import RECIPES, Recipe

WIDTH, DEPTH, BATCH = 128, 8, 256
FLOPS = 2e10  # FLOP/s: a sum over 1 GbE takes nearly as long as computing
LIBRARY = {"overlapped": "DDP", "ZeRO-3": "FSDP2", "1F1B": "Schedule1F1B"}
TIME, SENT, STATES = "ms of a step", "MB sent by a rank", "MB of states on a rank"


@dataclass(frozen=True)
class DenseCase(Case):
    """A chain of equal dense layers that is small enough for torch to train it on a CPU."""

    @cached_property
    def layers(self) -> list[LayerShape]:
        parameters = WIDTH * WIDTH + WIDTH
        return [LayerShape(f"{i}", parameters, WIDTH * WIDTH, WIDTH, 2 * WIDTH, 1, WIDTH) for i in range(DEPTH)]

    @property
    def flops(self) -> float:
        return FLOPS

    @property
    def recipe(self) -> Recipe:
        return RECIPES["float32 Adam"]


CASE = DenseCase("dense layers", "V100", "1GbE", BATCH, bucket=2 * FLOAT32 * (WIDTH * WIDTH + WIDTH), shrink=1)


@figure(
    "Do torch's own strategies cost what ours cost?",
    source="DistributedDataParallel, fully_shard and Schedule1F1B of torch 2.13, on simulated machines",
    claims={
        "all three of torch's strategies send as many bytes as ours, within 1 %": lambda rows: all(
            abs(_torch_to_ours(rows, SENT, name) - 1) < 0.01 for name in LIBRARY
        ),
        "all three of torch's strategies hold as many bytes of model states as ours, within 1 %": lambda rows: all(
            abs(_torch_to_ours(rows, STATES, name) - 1) < 0.01 for name in LIBRARY
        ),
        "DDP and the pipeline take as long as ours, within 5 %": lambda rows: all(
            abs(_torch_to_ours(rows, TIME, name) - 1) < 0.05 for name in ("overlapped", "1F1B")
        ),
        "FSDP2 fetches the next layer while it computes, which saves over a fifth of our ZeRO-3's time": lambda rows: (
            _torch_to_ours(rows, TIME, "ZeRO-3") < 0.8
        ),
        "FSDP2 takes as long as a formula with prefetching predicts, within 5 %": lambda rows: (
            abs(_torch_to_ours(rows, TIME, "ZeRO-3", "formula") - 1) < 0.05
        ),
        "the formula fails for torch's pipeline as for ours, because links are slower than stages": lambda rows: (
            _torch_to_ours(rows, TIME, "1F1B", "formula") > 1.2
        ),
    },
    look=Look(
        "strategy",
        ("torch", "ours"),
        slider="what",
        kind="bar",
        theory=("formula",),
        log="y",
        title="ms, or MB per rank",
    ),
)
def torch_beside_ours(run):
    """Eight ranks train eight dense layers of width 128 with Adam, each on 256 samples, over 1 GbE.

    Torch's programs run on simulated machines: gradients are computed, but time is virtual. Ours send the messages and
    train nothing. In both, a rank computes at 20 GFLOP/s on a device that queues its kernels, as a GPU does; kernels
    have no other cost. Torch's steps include the update, and skip the gradient of the first layer's inputs, which
    nobody needs.
    """
    # with torch, which takes seconds to import
    from cluster.torch import simulate
    from lessons.choosing.torch_programs import PROGRAMS

    free = Device(FLOPS, 1e18, 0.0, is_asynchronous=True)
    for strategy in LIBRARY:
        short, long = (
            simulate(
                PROGRAMS[strategy],
                CASE.ranks,
                args=(WIDTH, DEPTH, BATCH, steps, CASE.bucket),
                network=CASE.network,
                device=free,
            ).summary
            for steps in (2, 3)
        )
        held = sum(long.memory[kind].max() for kind in ("parameters", "gradients", "optimizer state"))
        seconds = zero3_with_prefetching if strategy == "ZeRO-3" else CLOSED_FORMS[strategy]
        bytes_sent, bytes_held = bytes_to_send(CASE, strategy) / 1e6, states(CASE, strategy) / 1e6
        for what, *columns in (
            (TIME, MS * (long.seconds - short.seconds), MS * rehearse(CASE, strategy), MS * seconds(CASE)),
            (SENT, (long.sent - short.sent).max() / 1e6, bytes_sent, bytes_sent),
            (STATES, held / 1e6, bytes_held, bytes_held),
        ):
            names = "torch", "ours", "formula"
            yield {"what": what, "strategy": strategy} | dict(zip(names, map(float, columns), strict=True))


def _torch_to_ours(rows, what, strategy, column="ours"):
    row = {"what": what, "strategy": strategy}
    return value(rows, "torch", **row) / value(rows, column, **row)

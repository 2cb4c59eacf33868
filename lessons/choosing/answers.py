"""Answers to the quiz on choosing, from closed forms, counted profiles, and training runs to a target loss."""

from dataclasses import replace

from lessons.choosing.case import Case
from lessons.choosing.experiments.digits import TRIED, on_average
from lessons.choosing.experiments.replicas import where_to_cut
from lessons.choosing.experiments.seconds import tensor_cores
from lessons.choosing.strategies import CLOSED_FORMS, fits
from lessons.figure import value
from theory import published_models, zero_memory

US = 1e6
NAMED = {"10-gigabit Ethernet": "10GbE", "25-gigabit Ethernet": "25GbE", "100-gigabit InfiniBand": "EDR"}


def per_weight(run, side: int) -> int:
    """Return how often a convolution uses each of its weights for an image. A dense layer uses each weight once.

    The output of the convolution has `side` by `side` positions.
    """
    return side * side


def fastest(run, what: str) -> str:
    """Return the strategy that processes the most samples per second, of those that fit into memory.

    `what` describes the model and the network. Local SGD is left out if `what` contains "every step".
    """
    network = NAMED[what.partition("over ")[2].partition(",")[0]]
    case = Case("VGG-16", "V100", network, batch=32) if "VGG" in what else Case("GPT-2 XL", "V100", network, batch=1)
    allowed = [name for name in CLOSED_FORMS if fits(case, name) and not ("every step" in what and name == "local SGD")]
    return min(allowed, key=lambda name: CLOSED_FORMS[name](case)).split()[0]


def cut(run, network: str, precision: str) -> str:
    """Return the number of replicas of each stage in PipeDream's plan for VGG-16 on eight machines, such as "7-1" or
    "8".
    """
    return value(
        where_to_cut.rows(run), "plan", model="VGG-16", network=NAMED[network], precision=precision.split(",")[0]
    )


def faster(run, strategy: str) -> str:
    """Return by about what factor tensor cores increase the samples per second of VGG-16.

    The answer is "eight", "most" for most of eight, or "two".
    """
    case = "VGG-16, V100, EDR" if "InfiniBand" in strategy else "VGG-16, V100, 10GbE"
    name = "local SGD" if "average" in strategy else "overlapped"
    times = value(tensor_cores.rows(run), "faster", case=case, strategy=name)
    return "eight" if times > 7 else "most" if times > 4 else "two"


def states(run, ranks: int, stage: int) -> float:
    """Return the memory of weights, gradients and optimizer state on each of `ranks` ranks, in GB.

    The ranks train the largest GPT-2 with this stage of ZeRO.
    """
    parameters = sum(layer.parameters for layer in published_models.gpt2_xl())
    return zero_memory.nbytes(parameters, ranks, stage, zero_memory.RECIPES["float32 Adam"]) / 1e9


def samples(run, method: str) -> float:
    """Return the number of samples that eight workers need to reach the target loss, as a multiple of the number that
    one machine needs.
    """
    name = "local SGD, 16" if "16" in method else "doubling"
    return on_average(run, name, network="ideal")[1] / on_average(run, "one machine", network="ideal")[1]


def first(run, latency: int) -> str:
    """Return the strategy that reaches the target loss first, or "every" if that strategy exchanges something in every
    step.
    """
    name = min(TRIED, key=lambda name: on_average(run, name, latency=latency / US)[0])
    return "every" if name in ("doubling", "server") else name


def crossing(run, compute: str) -> float:
    """Return the latency at which two runs take equally long, in microseconds. One takes 48 steps with an all-reduce
    each, the other 80 steps with only five all-reduces.
    """
    t, sums, alone, period = float(compute) / 1000, 48, 80, 16
    return US * (alone - sums) * t / (3 * (sums - alone / period))


def upgrade(run, bought: str) -> str:
    """Return the strategy that gains most if the GPU or the network becomes twice as fast. It trains VGG-16 over
    10-gigabit Ethernet.
    """
    now = Case("VGG-16", "V100", "10GbE", batch=32)
    then = replace(now, **({"speed": 2} if "compute" in bought else {"bandwidth": 2}))
    names = ("one machine", "all-reduce", "server", "local SGD")
    return max(names, key=lambda name: CLOSED_FORMS[name](now) / CLOSED_FORMS[name](then)).split()[0]


def bubble(run, chunks: int) -> float:
    """Return the speed-up of a pipeline of eight equal stages over one machine. `chunks` is the number of
    micro-batches.
    """
    return 8 * chunks / (chunks + 7)

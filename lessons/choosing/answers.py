"""Answers to the quiz on choosing: closed forms, counted profiles, and runs to a loss."""

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
    """Return how many times as often a convolution with an output of `side` by `side` uses a weight as a dense layer
    does.
    """
    return side * side


def fastest(run, what: str) -> str:
    """Return which strategy processes the most samples per second in the case that `what` describes, of those that fit
    into memory. Local SGD is left out if `what` says "every step".
    """
    network = NAMED[what.partition("over ")[2].partition(",")[0]]
    case = Case("VGG-16", "V100", network, batch=32) if "VGG" in what else Case("GPT-2 XL", "V100", network, batch=1)
    allowed = [name for name in CLOSED_FORMS if fits(case, name) and not ("every step" in what and name == "local SGD")]
    return min(allowed, key=lambda name: CLOSED_FORMS[name](case)).split()[0]


def cut(run, network: str, precision: str) -> str:
    """Return PipeDream's plan for VGG-16 on eight machines, as the replicas of each stage: "7-1" or "8"."""
    return value(
        where_to_cut.rows(run), "plan", model="VGG-16", network=NAMED[network], precision=precision.split(",")[0]
    )


def faster(run, strategy: str) -> str:
    """Return by about what factor tensor cores increase the samples per second of VGG-16: "eight", "most" of eight, or
    "two".
    """
    case = "VGG-16, V100, EDR" if "InfiniBand" in strategy else "VGG-16, V100, 10GbE"
    name = "local SGD" if "average" in strategy else "overlapped"
    times = value(tensor_cores.rows(run), "faster", case=case, strategy=name)
    return "eight" if times > 7 else "most" if times > 4 else "two"


def states(run, ranks: int, stage: int) -> float:
    """Return the gigabytes of weights, gradients and optimizer state that a rank holds for the largest GPT-2 under this
    stage of ZeRO.
    """
    parameters = sum(layer.parameters for layer in published_models.gpt2_xl())
    return zero_memory.nbytes(parameters, ranks, stage, zero_memory.RECIPES["float32 Adam"]) / 1e9


def samples(run, method: str) -> float:
    """Return how many times as many samples eight workers need as one machine until the target loss is reached."""
    name = "local SGD, 16" if "16" in method else "doubling"
    return on_average(run, name, network="ideal")[1] / on_average(run, "one machine", network="ideal")[1]


def first(run, latency: int) -> str:
    """Return the strategy that reaches the target loss first; "every" if it exchanges something in every step."""
    name = min(TRIED, key=lambda name: on_average(run, name, latency=latency / US)[0])
    return "every" if name in ("doubling", "server") else name


def crossing(run, compute: str) -> float:
    """Return the latency, in microseconds, at which 48 steps with an all-reduce each take as long as 80 steps with five
    all-reduces.
    """
    t, sums, alone, period = float(compute) / 1000, 48, 80, 16
    return US * (alone - sums) * t / (3 * (sums - alone / period))


def upgrade(run, bought: str) -> str:
    """Return the strategy that speeds up most on VGG-16 over 10-gigabit Ethernet if the GPU or the network becomes
    twice as fast.
    """
    now = Case("VGG-16", "V100", "10GbE", batch=32)
    then = replace(now, **({"speed": 2} if "compute" in bought else {"bandwidth": 2}))
    names = ("one machine", "all-reduce", "server", "local SGD")
    return max(names, key=lambda name: CLOSED_FORMS[name](now) / CLOSED_FORMS[name](then)).split()[0]


def bubble(run, chunks: int) -> float:
    """Return the speed-up of eight equal stages over one machine, with this many micro-batches."""
    return 8 * chunks / (chunks + 7)

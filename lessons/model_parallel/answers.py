"""Answers to the quiz on model parallelism, computed by the simulator and by the closed forms that it is tested
against.
"""

import numpy as np

from algorithms.parts.sequence import indices_of, pieces_of
from lessons.model_parallel.experiments import (
    EXCHANGES,
    LONG,
    RANKS,
    four_steps,
    step_of_groups,
    step_on_nodes,
    units_in_shares,
)
from theory.zero_memory import RECIPES, nbytes

FUNCTIONS = {  # the first word -> the function of the numbers and of dice
    "relu": lambda x, dice: np.maximum(x, 0),
    "no": lambda x, dice: x,
    "a": lambda x, dice: 3 * x,
    "the": lambda x, dice: x + 1,
    "dropout,": lambda x, dice: x * dice.choice([0, 2], x.shape),
}
SPLITS = {  # numbers sent for each sample, as multiples of the width and of the units in the middle
    "the first by columns, the second by rows": (2, 0),
    "both by columns": (1, 1),
    "the first by rows, the second by columns": (1, 2),
}
MANY = {1: "one", 2: "two", 4: "four", 8: "eight"}


def cut(run, ranks: int, where: str) -> str:
    """Compare the time of a step on this many ranks with one rank: "less", "as long" or "longer".

    Each rank holds either some of the layers or a part of each layer, as `where` says.
    """
    if where.startswith("It is cut"):
        one, many = (four_steps(run, workers).trace.seconds() for workers in (1, ranks))
    else:
        one = units_in_shares(run, 1).trace.seconds()
        message = one / 4 / 96 if "as long as" in where else 0.0  # four steps of 32 layers, three passes
        many = units_in_shares(run, ranks, message).trace.seconds()
    return "less" if many < 0.7 * one else "as long" if many < 1.3 * one else "longer"


def held(run, ranks: int, stage: int) -> float:
    """Return how many bytes a rank holds per parameter at a stage of ZeRO, with Adam in single precision."""
    return nbytes(1, ranks, stage, RECIPES["float32 Adam"])


def machines(run, arithmetic: float, message: float) -> float:
    """Return the number of machines on which a layer is computed fastest.

    `arithmetic` is the time on one machine and `message` the time per message, both in ms. Receiving all inputs takes 2
    ms.
    """
    return min(range(1, 100), key=lambda n: arithmetic / n + 2 * (n - 1) / n + message * (n - 1))


def phi_first(run, function: str) -> str:
    """Return what changes if ranks apply a function to their partial sums, not to the total: nothing ("same"), single
    numbers but not their mean ("mean"), or the mean as well ("other").

    The ranks hold rows of the first matrix.
    """
    dice, phi = np.random.default_rng(0), FUNCTIONS[function.split()[0]]
    x, u = dice.normal(size=(8, 6)), dice.normal(size=(6, 10))
    halves = [x[:, half] @ u[half] for half in (slice(3), slice(3, 6))]
    pairs = [(sum(phi(part, dice) for part in halves), phi(x @ u, dice)) for _ in range(4000)]
    if all(np.allclose(*pair) for pair in pairs):
        return "same"
    return "mean" if np.allclose(*np.mean(pairs, axis=0), atol=0.5) else "other"


def split(run, matrices: str, ranks: int) -> float:
    """Return how many thousand numbers a rank sends in the forward pass.

    Every collective is a ring; there are 100 samples, and widths of 100 and 400.
    """
    narrow, wide = SPLITS[matrices]
    return (100 * narrow + 400 * wide) * 100 * (ranks - 1) / ranks / 1000


def node(run, node: int, batch: int) -> str:
    """Return how many ranks should split every matrix for the fastest step, as a word such as "two".

    The cluster and the model are those of `tensor_inside_the_node`.
    """
    return MANY[min(MANY, key=lambda tensor: step_on_nodes(run, node, tensor, batch).trace.seconds())]


def weigh(run, batch: int) -> str:
    """Return what eight ranks should split to send the least: the "model", the "data", or both ("between").

    The layers are those of `share_model_or_data`.
    """
    sent = {groups: step_of_groups(run, batch, groups).summary["bytes"] for groups in (1, 2, 4, RANKS)}
    best = min(sent, key=sent.get)
    return {1: "model", RANKS: "data"}.get(best, "between")


def between_nodes(run, millions: int, where: str) -> float:
    """Return how many million numbers pass between two nodes of four ranks in a step.

    The model has `millions` million parameters, and collectives are rings.
    """
    groups = {"inside each node": 2, "inside each pair": 4, "over all eight": 1}[where[:16].rstrip()]
    kind = {"algorithm": "zero3"} if groups == 1 else {"algorithm": "hsdp", "groups": groups}
    done = run(
        **kind, learning_rate=0.01, workers=8, per_node=4, collective="ring", hidden="64,64", batch=4, steps=1,
        evaluations=1,
    )  # fmt: skip
    nodes = np.arange(8) // 4
    return millions * float(done.trace.traffic()[nodes[:, None] != nodes].sum()) / 4 / len(done.parameters)


def last_piece(run, ranks: int, pieces: str) -> float:
    """Return how much attention the busiest rank computes, divided by the mean over ranks."""
    positions = "consecutive" if "consecutive" in pieces else "zigzag"
    seen = [sum(indices_of(pieces_of(rank, ranks, 2 * ranks * 64, positions)) + 0.5) for rank in range(ranks)]
    return float(max(seen) / np.mean(seen))


def meeting(run, heads: int, wanted: str) -> str:
    """Return the exchange with the least traffic on eight ranks, in the setting of `ways_to_meet`.

    If `wanted` begins with "never", return the exchange in which no rank ever holds the keys of the whole sequence.
    """
    if wanted.startswith("never"):
        return "ring"
    sent = {
        exchange: run(**LONG | {"context": 64, "heads": heads}, workers=RANKS, exchange=exchange).summary["bytes"]
        for exchange in EXCHANGES
        if exchange != "ulysses" or heads % RANKS == 0
    }
    return min(sent, key=sent.get)


def popular(run, tokens: int, room: str) -> float:
    """Return the load of the busiest of eight experts, as a multiple of an equal share.

    One expert attracts a quarter of all tokens. An expert takes at most as many as `room` says.
    """
    wanted = np.array([0.25] + [0.75 / 7] * 7) * 8 * tokens
    most = np.inf if "all" in room else float(room.split("at most ")[1].split()[0]) * tokens
    return float(np.minimum(wanted, most).max() / tokens)

"""Collectives: how many ranks add up what they have, and what that costs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cluster import simulated
from lessons.collectives.exchanges import (
    FREE,
    MS,
    NETWORK,
    all_at_once,
    all_reduce,
    by_everybody,
    by_many_servers,
    by_one_server,
    exchanged,
    took,
)
from lessons.figure import column, figure, value
from theory import collective_costs, nccl

ALPHA, BETA = NETWORK.between.alpha, 1 / NETWORK.between.bandwidth


# every all-reduce has its size

RANKS = 8
HALVING, RING = (collective_costs.doubling_up_to(RANKS, ALPHA, BETA, other) for other in ("halving_doubling", "ring"))
SIZES = [256 * round(nbytes / 256) for nbytes in (256, 8e3, 0.9 * HALVING, 1.1 * HALVING, 0.9 * RING, 1.1 * RING, 4e6)]
CLOSED = "ring", "recursive_doubling", "halving_doubling", "tree"


@figure(
    "Which all-reduce is quickest for a short vector, and which for a long one?",
    source="Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005",
    claims={
        "the fewest messages win while the vector is short: recursive doubling": lambda rows: (
            quickest(rows[0]) == quickest(rows[1]) == "recursive_doubling"
        ),
        "the fewest bytes win when it is long: halving/doubling, with the ring close behind": lambda rows: (
            quickest(rows[-1]) == "halving_doubling" and rows[-1]["ring"] < 1.05 * rows[-1]["halving_doubling"]
        ),
        "doubling gives way to halving/doubling at 56 kB, where the closed forms cross": lambda rows: (
            [row["recursive_doubling"] < row["halving_doubling"] for row in rows]
            == [row["bytes"] < HALVING for row in rows]
        ),
        "and is passed by the ring at 206 kB": lambda rows: (
            [row["recursive_doubling"] < row["ring"] for row in rows] == [row["bytes"] < RING for row in rows]
        ),
        "two trees at once carry a long vector nearly as fast as the ring, one tree three times slower": lambda rows: (
            rows[-1]["double_tree"] < 1.25 * rows[-1]["ring"] < rows[-1]["tree"] / 2.5
        ),
    },
)
def message_size(run):
    """Milliseconds of an all-reduce among 8 ranks. Latency decides on the left, bandwidth on the right; between them
    lie the crossings of the closed forms, and rows just before and just after each."""
    return [
        {"bytes": nbytes}
        | {name: took(all_reduce, RANKS, nbytes, collective=name) for name in (*CLOSED, "double_tree")}
        for nbytes in SIZES
    ]


def quickest(row):
    return min((name for name in row if name != "bytes"), key=row.get)


# more ranks

SMALL = 4096  # bytes


@figure(
    "What does a small all-reduce cost when ranks are added?",
    source="Sanders, Speck & Traeff, Parallel Computing 35(12), 2009",
    claims={
        "twice the ranks take the ring twice as long": lambda rows: all(
            1.9 < b / a < 2.2 for a, b in pairwise(column(rows, "ring")[2:])
        ),
        "twice the ranks take recursive doubling one more round, the same every time": lambda rows: (
            np.ptp(np.diff(column(rows, "recursive_doubling"))) < 1e-9
        ),
        "both trees add as much for each doubling as well": lambda rows: all(
            np.ptp(np.diff(column(rows, name)[1:])) < 0.02 for name in ("tree", "double_tree")
        ),
        "with 128 ranks the ring is more than 20 times slower than doubling": lambda rows: (
            value(rows, "ring", ranks=128) > 20 * value(rows, "recursive_doubling", ranks=128)
        ),
    },
)
def more_ranks(run):
    """Milliseconds for 4 kB, nearly all of them latency: the messages that follow each other grow in number with the
    ranks of a ring, and with their logarithm everywhere else."""
    names = "recursive_doubling", "halving_doubling", "tree", "double_tree"
    return [
        {"ranks": ranks, "ring": took(all_reduce, ranks, SMALL)}
        | {name: took(all_reduce, ranks, SMALL, collective=name) for name in names}
        for ranks in (2, 4, 8, 16, 32, 64, 128)
    ]


@figure(
    "When does NCCL expect trees to be quicker than its ring?",
    source="NVIDIA's NCCL, src/graph/tuning.cc",
    claims={
        "within one node there is no reason for a tree": lambda rows: rows[0]["ring"] < rows[0]["tree"],
        "from two nodes on there is, for short vectors": lambda rows: all(
            row["tree"] < row["ring"] for row in rows[1:]
        ),
        "every doubling of the nodes adds the same to the tree and ever more to the ring": lambda rows: (
            np.ptp(np.diff(column(rows, "tree"))) < 1e-9
            and all(b > 1.5 * a for a, b in pairwise(np.diff(column(rows, "ring"))[1:]))
        ),
    },
)
def what_nccl_expects(run):
    """Microseconds of latency that NCCL's tuner counts for nodes of 8 GPUs, by its protocol for short vectors (LL)."""
    return [
        {"nodes": nodes} | {name: 1e6 * nccl.latency(name, "LL", nodes, 8) for name in ("ring", "tree")}
        for nodes in (1, 2, 4, 8, 16, 32)
    ]


# servers


MODEL = 1 << 20  # bytes


@figure(
    "Is a parameter server slower than an all-reduce?",
    source="Li et al., OSDI 2014; Patarasuk & Yuan, JPDC 69(2), 2009",
    claims={
        "the time of one server grows as the number of its workers": lambda rows: all(
            1.9 < b / a < 2.1 for a, b in pairwise(column(rows, "one server"))
        ),
        "with as many servers as workers it does not grow at all": lambda rows: (
            max(column(rows, "as many servers")) < 1.001 * min(column(rows, "as many servers"))
        ),
        "where every worker serves a piece, it is the ring without the ring's latency": lambda rows: all(
            abs(row["ring"] - row["everybody serves"] - MS * (2 * row["workers"] - 4) * ALPHA) < 1e-6 for row in rows
        ),
        "unless all begin with the same one: the crowd before its port costs half as much again": lambda rows: (
            rows[-1]["all at once"] > 1.4 * rows[-1]["everybody serves"]
        ),
        "every message being sent takes the time of the formulas": lambda rows: all(
            math.isclose(row[name], row[f"{name}, formula"], rel_tol=1e-9)
            for row in rows
            for name in ("one server", "as many servers", "everybody serves")
        ),
    },
)
def servers(run):
    """Milliseconds to add up 1 MiB of every worker and give everybody the sum. It is not the idea of a server that is
    slow but the one port of one server."""
    rows = []
    for workers in (2, 4, 8, 16, 32):
        formulas = {
            "one server": collective_costs.server(workers, MODEL, ALPHA, BETA),
            "as many servers": collective_costs.server(workers, MODEL, ALPHA, BETA, shards=workers),
            "everybody serves": collective_costs.colocated(workers, MODEL, ALPHA, BETA),
        }
        rows.append(
            {
                "workers": workers,
                "one server": took(by_one_server, workers + 1, MODEL),
                "as many servers": took(by_many_servers, 2 * workers, MODEL),
                "everybody serves": took(by_everybody, workers, MODEL),
                "all at once": took(all_at_once, workers, MODEL),
                "ring": took(all_reduce, workers, MODEL),
            }
            | {f"{name}, formula": MS * seconds for name, seconds in formulas.items()}
        )
    return rows


# nodes

GPUS = 8  # ranks of a node, behind one port
SHORT, LONG = 1 << 14, 1 << 20  # bytes


@figure(
    "What is gained by adding up within a node first?",
    source="Cho et al., arXiv:1708.02188 (an all-reduce that knows the topology)",
    claims={
        "a short vector saves most of its steps within the nodes, a quarter of the time and more": lambda rows: all(
            slower(rows, "ring", nodes=nodes, bytes=SHORT) > 4 / 3 for nodes in (2, 4, 8)
        ),
        "a long one between 2 nodes passes the port half as often: the ring takes 1.4 times as long": lambda rows: (
            slower(rows, "ring", nodes=2, bytes=LONG) > 1.4
        ),
        "between 8 nodes the ring is as good, for it does both at once": lambda rows: (
            0.9 < slower(rows, "ring", nodes=8, bytes=LONG) < 1.1
        ),
        "where every rank has a port of its own all pieces leave at once: twice as fast as the ring and more": (
            lambda rows: all(row["ring"] > 2 * row["a port each"] for row in rows if row["bytes"] == LONG)
        ),
        "who does not look where the others are sends everything through the port 8 times": lambda rows: (
            slower(rows, "recursive_doubling", nodes=2, bytes=LONG) > 6
        ),
        "the part of the bytes that leaves a node is (k-1)/(P-1)": lambda rows: all(
            math.isclose(row["leaving"], collective_costs.leaving(row["nodes"], GPUS), rel_tol=1e-9) for row in rows
        ),
    },
)
def nodes_of_eight(run):
    """Milliseconds of an all-reduce of 16 kB and of 1 MB among nodes of 8 ranks that share one port of 10 GbE and talk
    to each other at 8 GB/s. The ring goes through node after node. `leaving`: the part of the hierarchical one's bytes
    that passes a port. `a port each`: its time by the formula, if no rank had to share."""
    network = replace(NETWORK, per_node=GPUS)
    within = network.within.alpha, 1 / network.within.bandwidth
    rows = []
    for nbytes in (SHORT, LONG):
        for nodes in (2, 4, 8):
            outcome = exchanged(all_reduce, GPUS * nodes, nbytes, "hierarchical", network)
            traffic, node = outcome.trace().traffic(), np.arange(GPUS * nodes) // GPUS
            rows.append(
                {
                    "bytes": nbytes,
                    "nodes": nodes,
                    "ring": took(all_reduce, GPUS * nodes, nbytes, network=network),
                    "recursive_doubling": took(
                        all_reduce, GPUS * nodes, nbytes, collective="recursive_doubling", network=network
                    ),
                    "hierarchical": MS * max(outcome.results),
                    "a port each": MS
                    * collective_costs.hierarchical(nodes, GPUS, nbytes, within, (ALPHA, BETA), shared=False),
                    "leaving": float(traffic[node[:, None] != node].sum() / traffic.sum()),
                }
            )
    return rows


def slower(rows, name, **where):
    """How many times longer than the hierarchical one."""
    return value(rows, name, **where) / value(rows, "hierarchical", **where)


# sums


@figure(
    "Does it matter in which order numbers are added?",
    source="Higham, SIAM Journal on Scientific Computing 14(4), 1993",
    claims={
        "the same four numbers give 0, 1 or 2, and the ring gives two answers in one vector": lambda rows: (
            {digit for row in rows for digit in row["1e8 + 1 - 1e8 + 1"].split()} == {"0", "1", "2"}
            and value(rows, "1e8 + 1 - 1e8 + 1", algorithm="ring") == "0 1"
        ),
        "trees and doubling add the same pairs, to the same bits; no others agree": lambda rows: (
            value(rows, "bits of", algorithm="tree") == "recursive_doubling"
            and all(row["bits of"] == row["algorithm"] for row in rows if row["algorithm"] != "tree")
        ),
        "adding by pairs, 6 additions deep, loses less than going round the ring, 63 deep": lambda rows: (
            value(rows, "error", algorithm="ring") > 1.5 * value(rows, "error", algorithm="tree")
        ),
    },
)
def order_of_sums(run):
    """First, four ranks with one number each, in float32, where 1e8 + 1 is 1e8: what comes out, place by place. Then
    64 ranks with random numbers between 0 and 1: the error of the sum, in the mean, in units of the last place."""
    few = np.array([1e8, 1, -1e8, 1], np.float32)
    many = np.random.default_rng(run.seed).random((64, 4096), np.float32)
    exact = many.sum(axis=0, dtype=np.float64)

    def summed(collective, vectors):
        outcome = simulated.run(
            lambda comm: comm.all_reduce(vectors[comm.rank].copy()), len(vectors), device=FREE, collective=collective
        )
        return outcome.results[0]

    rows, first = [], {}
    for name in ("ring", "recursive_doubling", "halving_doubling", "tree", "double_tree"):
        found = sorted(set(summed(name, np.repeat(few[:, None], 8, axis=1)).tolist()))
        total = summed(name, many)
        rows.append(
            {
                "algorithm": name,
                "1e8 + 1 - 1e8 + 1": " ".join(f"{number:g}" for number in found),
                "error": float(np.abs(total - exact).mean() / np.spacing(np.float32(32))),
                "bits of": first.setdefault(total.tobytes(), name),  # the first that had the same
            }
        )
    return rows

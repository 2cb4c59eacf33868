"""Figures on collectives: how ranks sum their vectors, and what that costs."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cluster import simulated
from cluster.network import NETWORKS
from lessons.collectives.exchanges import (
    FREE,
    MS,
    NETWORK,
    all_at_once,
    all_reduce,
    by_a_ring_per_gpu,
    by_everybody,
    by_many_servers,
    by_one_server,
    run_exchange,
    took,
)
from lessons.figure import Look, column, figure, matching, ratio, value
from theory import collective_costs, nccl

ALPHA, BETA = NETWORK.between.alpha, 1 / NETWORK.between.bandwidth


# what leaves a rank

DIVISIBLE = 4 * 40_320  # bytes of a vector, divisible by every number of ranks below


@figure(
    "How much must leave the busiest rank before everybody has the sum?",
    source="Patarasuk & Yuan, JPDC 69(2), 2009",
    claims={
        "with any number of ranks, the ring sends as little as any all-reduce can": lambda rows: all(
            math.isclose(row["ring"], row["least"], rel_tol=1e-4) for row in rows
        ),
        "the ring sends less than two vectors, however many ranks there are": lambda rows: (
            max(column(rows, "ring")) < 2
        ),
        "with 2, 4, 8, ... ranks halving/doubling sends as much as the ring, with others up to 1.5 times as much": (
            lambda rows: (
                all(
                    (row["halving_doubling"] / row["least"] < 1.0001) == (row["ranks"] & (row["ranks"] - 1) == 0)
                    for row in rows
                )
                and max(row["halving_doubling"] / row["least"] for row in rows) < 1.51
            )
        ),
        "recursive doubling sends a whole vector in each of its rounds": lambda rows: all(
            row["recursive_doubling"] == math.log2(row["ranks"])
            for row in rows
            if row["ranks"] & (row["ranks"] - 1) == 0
        ),
        "one server sends a vector to each of its workers": lambda rows: (
            column(rows, "one server") == [row["ranks"] for row in rows]
        ),
    },
    look=Look(
        "ranks",
        ("one server", "recursive_doubling", "halving_doubling", "ring"),
        theory=("least",),
        log="xy",
        title="vectors that the busiest rank sends",
    ),
)
def busiest(run):
    """The bytes that leave the busiest rank, as a multiple of the vector's size. They are counted in a simulation of
    every message.

    `least` is 2 (P - 1) / P. The server is one more rank, in addition to its workers.
    """
    nbytes = DIVISIBLE
    for ranks in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        ways = {name: (all_reduce, ranks, name) for name in ("recursive_doubling", "halving_doubling", "ring")}
        ways = {"one server": (by_one_server, ranks + 1, "fast")} | ways
        sent = {
            name: run_exchange(exchange, size, nbytes, collective).trace().traffic().sum(axis=1).max() / nbytes
            for name, (exchange, size, collective) in ways.items()
        }
        yield {"ranks": ranks} | {k: float(v) for k, v in sent.items()} | {"least": collective_costs.share(ranks)}


# every all-reduce has its size

RANKS = 8
HALVING, RING = (collective_costs.doubling_up_to(RANKS, ALPHA, BETA, other) for other in ("halving_doubling", "ring"))
SIZES = [256 * round(nbytes / 256) for nbytes in (256, 8e3, 0.9 * HALVING, 1.1 * HALVING, 0.9 * RING, 1.1 * RING, 4e6)]
CLOSED = "ring", "recursive_doubling", "halving_doubling", "tree"
DRAWN = (*CLOSED, "double_tree")


@figure(
    "Which all-reduce is fastest for a short vector, and which for a long one?",
    source="Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005",
    claims={
        "for short vectors the fewest messages win: recursive doubling": lambda rows: (
            quickest(rows[0]) == quickest(rows[1]) == "recursive_doubling"
        ),
        "serving pieces from each of the 8 ranks is fastest from 50 kB to 4 MB": lambda rows: all(
            row["everybody serves"] < row[quickest(row)] for row in rows[2:]
        ),
        "for long vectors the fewest bytes win: halving/doubling, with the ring less than 5 % behind": lambda rows: (
            quickest(rows[-1]) == "halving_doubling" and rows[-1]["ring"] < 1.05 * rows[-1]["halving_doubling"]
        ),
        "halving/doubling overtakes recursive doubling at 56 kB, where the closed forms cross": lambda rows: (
            [row["recursive_doubling"] < row["halving_doubling"] for row in rows]
            == [row["bytes"] < HALVING for row in rows]
        ),
        "the ring overtakes recursive doubling at 206 kB": lambda rows: (
            [row["recursive_doubling"] < row["ring"] for row in rows] == [row["bytes"] < RING for row in rows]
        ),
        "for a long vector two trees take under 1.25 times the ring's time, one tree over 3 times": lambda rows: (
            rows[-1]["double_tree"] < 1.25 * rows[-1]["ring"] < rows[-1]["tree"] / 2.5
        ),
        "for the shortest and longest vectors the fastest is within 3 % of the limit; at 50 kB none is": lambda rows: (
            all(row[quickest(row)] < 1.03 * row["limit"] for row in (rows[0], rows[-1]))
            and rows[2]["bytes"] < HALVING
            and min(rows[2][name] for name in (*DRAWN, "everybody serves")) > 1.4 * rows[2]["limit"]
        ),
    },
    look=Look(
        "bytes", (*DRAWN, "everybody serves"), theory=("limit",), log="xy", title="milliseconds of an all-reduce"
    ),
)
def message_size(run):
    """The time of an all-reduce among 8 ranks, in milliseconds. Latency dominates on the left, and bandwidth on the
    right.

    In between, the closed forms cross; there is a row just before and a row just after each crossing. `limit`: no
    all-reduce in rounds takes less than the latency of its rounds, or than the transfer of its bytes.
    """
    return [
        {"bytes": nbytes}
        | {name: took(all_reduce, RANKS, nbytes, collective=name) for name in DRAWN}
        | {"everybody serves": took(by_everybody, RANKS, nbytes)}
        | {"limit": MS * collective_costs.least(RANKS, nbytes, ALPHA, BETA)}
        for nbytes in SIZES
    ]


def quickest(row):
    return min(DRAWN, key=row.get)


# more ranks

SMALL = 4096  # bytes
ROUNDS = "recursive_doubling", "halving_doubling", "tree", "double_tree"  # their number is a logarithm


@figure(
    "How does the cost of a small all-reduce grow with the number of ranks?",
    source="Sanders, Speck & Traeff, Parallel Computing 35(12), 2009",
    claims={
        "with 8 or more ranks, doubling their number about doubles the time of the ring": lambda rows: all(
            1.9 < b / a < 2.2 for a, b in pairwise(column(rows, "ring")[2:])
        ),
        "each doubling of the ranks adds one round of the same length to recursive doubling": lambda rows: (
            np.ptp(np.diff(column(rows, "recursive_doubling"))) < 1e-9
        ),
        "with 4 or more ranks, each doubling adds a constant time to either tree as well": lambda rows: all(
            np.ptp(np.diff(column(rows, name)[1:])) < 0.02 for name in ("tree", "double_tree")
        ),
        "with 128 ranks the ring takes more than 20 times as long as recursive doubling": lambda rows: (
            value(rows, "ring", ranks=128) > 20 * value(rows, "recursive_doubling", ranks=128)
        ),
        "if all of 128 ranks serve, each starts 254 messages, and a sum takes over 5 times recursive doubling's time": (
            lambda rows: value(rows, "everybody serves", ranks=128) > 5 * value(rows, "recursive_doubling", ranks=128)
        ),
    },
    look=Look(
        "ranks",
        ("ring", *ROUNDS, "everybody serves"),
        theory=("limit",),
        log="xy",
        title="milliseconds of an all-reduce of 4 kB",
    ),
)
def more_ranks(run):
    """The time to sum 4 kB, in milliseconds. Nearly all of it is latency.

    In a ring, the number of messages that follow one another grows in proportion to the number of ranks. With pairs or
    trees it grows with the logarithm. `limit` is the latency of the fewest rounds possible.
    """
    return [
        {"ranks": ranks, "ring": took(all_reduce, ranks, SMALL)}
        | {name: took(all_reduce, ranks, SMALL, collective=name) for name in ROUNDS}
        | {"everybody serves": took(by_everybody, ranks, SMALL)}
        | {"limit": MS * collective_costs.least(ranks, SMALL, ALPHA, BETA)}
        for ranks in (2, 4, 8, 16, 32, 64, 128)
    ]


@figure(
    "When does NCCL expect trees to be faster than its ring?",
    source="NVIDIA's NCCL, src/graph/tuning.cc",
    claims={
        "within one node the ring has the lower latency": lambda rows: rows[0]["ring"] < rows[0]["tree"],
        "with two or more nodes the tree has the lower latency": lambda rows: all(
            row["tree"] < row["ring"] for row in rows[1:]
        ),
        "each doubling of the nodes adds a constant time to the tree, and more and more to the ring": lambda rows: (
            np.ptp(np.diff(column(rows, "tree"))) < 1e-9
            and all(b > 1.5 * a for a, b in pairwise(np.diff(column(rows, "ring"))[1:]))
        ),
    },
    look=Look("nodes", ("ring", "tree"), log="x", title="microseconds of latency"),
)
def what_nccl_expects(run):
    """The latency that NCCL's tuner assumes for nodes of 8 GPUs with the protocol for short vectors (LL), in
    microseconds.
    """
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
        "with one server the time grows in proportion to the number of workers": lambda rows: all(
            1.9 < b / a < 2.1 for a, b in pairwise(column(rows, "one server"))
        ),
        "with one server per worker the time does not grow at all": lambda rows: (
            max(column(rows, "as many servers")) < 1.001 * min(column(rows, "as many servers"))
        ),
        "if every worker serves a piece, a sum takes the ring's time minus 2N - 4 latencies": lambda rows: all(
            abs(row["ring"] - row["everybody serves"] - MS * (2 * row["workers"] - 4) * ALPHA) < 1e-6 for row in rows
        ),
        "if all 32 workers begin with the same server, a sum is more than 40 % slower: they queue at its port": (
            lambda rows: rows[-1]["all at once"] > 1.4 * rows[-1]["everybody serves"]
        ),
        "in simulation, all three ways to serve take exactly as long as their formulas say": lambda rows: all(
            math.isclose(row[name], row[f"{name}, formula"], rel_tol=1e-9)
            for row in rows
            for name in ("one server", "as many servers", "everybody serves")
        ),
    },
    look=Look(
        "workers",
        ("one server", "as many servers", "everybody serves", "all at once", "ring"),
        theory=("one server, formula", "as many servers, formula", "everybody serves, formula"),
        log="xy",
        title="milliseconds to sum 1 MiB",
    ),
)
def servers(run):
    """The time to sum 1 MiB from every worker and return the sum to all of them, in milliseconds. It is not the idea of
    a server that is slow, but the single port of a single server.
    """
    for workers in (2, 4, 8, 16, 32):
        formulas = {
            "one server": collective_costs.server(workers, MODEL, ALPHA, BETA),
            "as many servers": collective_costs.server(workers, MODEL, ALPHA, BETA, shards=workers),
            "everybody serves": collective_costs.colocated_servers(workers, MODEL, ALPHA, BETA),
        }
        yield (
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


# nodes

GPUS = 8  # ranks of a node
SHORT, LONG, LONGEST = 1 << 14, 1 << 20, 1 << 26  # bytes
LENGTHS = {SHORT: "16 kB", LONG: "1 MB", LONGEST: "64 MB"}
SHRUNK = 64  # the longest vector and its bandwidth are both scaled down by this, which changes no time
BY_NODES = "recursive_doubling", "halving_doubling", "hierarchical"
OLD, SHARED, OWN = "10 Gb/s, one port a node", "400 Gb/s, one port a node", "400 Gb/s, a port for each GPU"
BARS = "ring", *BY_NODES, "a ring per GPU"
BOXES = {
    OLD: NETWORK.on_nodes(GPUS),
    SHARED: NETWORKS["NDR"].on_nodes(GPUS, nics=1),
    OWN: NETWORKS["NDR"].on_nodes(GPUS, nics=GPUS),
}


@figure(
    "What is gained on nodes of eight GPUs by more ports, and what by first summing within each node?",
    source="Cho et al., arXiv:1708.02188 (an all-reduce that knows the topology); NVIDIA, NCCL (a ring for each NIC)",
    claims={
        "with one port of 10 Gb/s, the ring takes more than 4/3 of the hierarchy's time for 16 kB": lambda rows: all(
            slower(rows, "ring", box=OLD, nodes=nodes, bytes=SHORT) > 4 / 3 for nodes in (2, 8)
        ),
        "for 1 MB or more the ring takes over 1.4 times the hierarchy's time on 2 nodes, and 0.9 to 1.1 times on 8": (
            lambda rows: all(
                slower(rows, "ring", box=OLD, nodes=2, bytes=n) > 1.4
                and 0.9 < slower(rows, "ring", box=OLD, nodes=8, bytes=n) < 1.1
                for n in (LONG, LONGEST)
            )
        ),
        "with one port, recursive doubling sends 8 vectors through it per round, and is slowest for 1 MB or more": (
            lambda rows: all(
                slower(rows, "recursive_doubling", box=box, nodes=nodes, bytes=n) > 4
                for box in (OLD, SHARED)
                for nodes in (2, 8)
                for n in (LONG, LONGEST)
            )
        ),
        "halving/doubling, nearest first, is under 15 % slower than the hierarchy, whatever the ports": lambda rows: (
            all(row["halving_doubling"] < 1.15 * row["hierarchical"] for row in rows)
        ),
        "at 400 Gb/s, 1 MB is a short vector: on 8 nodes the ring takes over twice the hierarchy's time": (
            lambda rows: slower(rows, "ring", box=SHARED, nodes=8, bytes=LONG) > 2
        ),
        "a port for each GPU gains nothing for one ring, which leaves a node through one GPU": lambda rows: all(
            math.isclose(row["ring"], value(rows, "ring", **{**among(row), "box": SHARED}), rel_tol=1e-3)
            for row in matching(rows, box=OWN)
        ),
        "for 64 MB a port per GPU makes the hierarchy over 3 times as fast, recursive doubling over 6 times": (
            lambda rows: all(
                value(rows, name, box=SHARED, nodes=nodes, bytes=LONGEST)
                > times * value(rows, name, box=OWN, nodes=nodes, bytes=LONGEST)
                for name, times in (("hierarchical", 3), ("recursive_doubling", 6))
                for nodes in (2, 8)
            )
        ),
        "with a port for each GPU, recursive doubling is the fastest for 16 kB": lambda rows: all(
            row["recursive_doubling"] == min(row[name] for name in BARS) for row in matching(rows, box=OWN, bytes=SHORT)
        ),
        "for 64 MB a ring for each GPU is the fastest: at least 4.5 times as fast as one ring": lambda rows: all(
            row["a ring per GPU"] == min(row[name] for name in BARS) and row["ring"] > 4.5 * row["a ring per GPU"]
            for row in matching(rows, box=OWN, bytes=LONGEST)
        ),
        "between k nodes with P ranks in all, (k-1)/(P-1) of the bytes of the hierarchy leave their node": (
            lambda rows: all(
                math.isclose(row["leaving"], collective_costs.leaving(row["nodes"], GPUS), rel_tol=1e-9) for row in rows
            )
        ),
    },
    look=Look(
        "among",
        BARS,
        slider="box",
        kind="bar",
        log="y",
        title="milliseconds of an all-reduce",
    ),
)
def nodes_of_eight(run):
    """The time of an all-reduce among nodes of 8 GPUs, in milliseconds.

    First the nodes are as in 2017: a node has one 10 GbE port, and its GPUs reach each other at 8 GB/s. Then there is
    NVLink within a node and 400-gigabit InfiniBand between nodes, through one port, or one for each GPU, as in a DGX
    H100. A ring goes through one node after the other; with a port for each GPU there is also a ring for each, with an
    eighth of the vector. `leaving` is the fraction of the hierarchical all-reduce's bytes that leaves a node.
    """
    for box, network in BOXES.items():
        for nbytes, size in LENGTHS.items():
            scale = SHRUNK if nbytes == LONGEST else 1
            where = {"ranks": 0, "nbytes": nbytes // scale, "network": slow_down(network, scale)}
            for nodes in (2, 8):
                where["ranks"] = GPUS * nodes
                outcome = run_exchange(all_reduce, collective="hierarchical", **where)
                traffic, node = outcome.trace().traffic(), np.arange(GPUS * nodes) // GPUS
                ring = took(all_reduce, **where)
                yield {
                    "box": box,
                    "among": f"{nodes} nodes, {size}",
                    "bytes": nbytes,
                    "nodes": nodes,
                    "ring": ring,
                    **{name: took(all_reduce, collective=name, **where) for name in BY_NODES[:2]},
                    "hierarchical": MS * max(outcome.results),
                    "a ring per GPU": took(by_a_ring_per_gpu, **where) if box == OWN else ring,
                    "leaving": float(traffic[node[:, None] != node].sum() / traffic.sum()),
                }


def slow_down(network, times):
    """Return the network with all bandwidths divided by `times`."""
    between, within = (replace(one, bandwidth=one.bandwidth / times) for one in (network.between, network.within))
    return replace(network, between=between, within=within)


def slower(rows, name, **where):
    """Return the time of this all-reduce as a multiple of the time of the hierarchical one."""
    return value(rows, name, **where) / value(rows, "hierarchical", **where)


def among(row):
    return {name: row[name] for name in ("nodes", "bytes")}


# sums

PAIRED = "recursive_doubling", "halving_doubling", "tree"


@figure(
    "Does the order of additions matter?",
    source="Higham, SIAM Journal on Scientific Computing 14(4), 1993",
    claims={
        "the same four numbers add up to 0 or 1, never to 2; the ring's result contains both": lambda rows: (
            {digit for row in rows for digit in row["1e8 + 1 - 1e8 + 1"].split()} == {"0", "1"}
            and value(rows, "1e8 + 1 - 1e8 + 1", algorithm="ring") == "0 1"
        ),
        "all-reduces that begin with neighbours add the same pairs and agree bit for bit; no others do": lambda rows: (
            all(
                row["bits of"] == ("recursive_doubling" if row["algorithm"] in PAIRED else row["algorithm"])
                for row in rows
            )
        ),
        "pairwise sums, 6 additions deep, lose less precision than sums around the ring, 63 deep": lambda rows: (
            ratio(rows, "error", algorithm=("ring", "tree")) > 1.5
        ),
    },
    look=Look("algorithm", ("error",), kind="bar", title="mean error of a sum, units in the last place"),
)
def order_of_sums(run):
    """The mean error of a sum over 64 ranks, in units in the last place. Each rank has random numbers between 0 and 1.

    The table also has the sums of four ranks with one number each, in float32, where 1e8 + 1 is 1e8. A vector may hold
    different sums of the same four numbers.
    """
    few = np.array([1e8, 1, -1e8, 1], np.float32)
    many = np.random.default_rng(run.seed).random((64, 4096), np.float32)
    exact = many.sum(axis=0, dtype=np.float64)

    def summed(name, vectors):
        def program(comm):
            x = vectors[comm.rank].copy()
            by_one_server(comm, x) if name == "one server" else comm.all_reduce(x)
            return x

        collective = "fast" if name == "one server" else name
        return simulated.run(program, len(vectors), device=FREE, collective=collective).results[0]

    first = {}
    for name in ("one server", "ring", *PAIRED, "double_tree"):
        found = sorted(set(summed(name, np.repeat(few[:, None], 8, axis=1)).tolist()))
        total = summed(name, many)
        yield {
            "algorithm": name,
            "1e8 + 1 - 1e8 + 1": " ".join(f"{number:g}" for number in found),
            "error": float(np.abs(total - exact).mean() / np.spacing(np.float32(32))),
            "bits of": first.setdefault(total.tobytes(), name),  # the first with the same sum
        }


# in training

MODELS = {"small": "16", "large": "1024,256"}  # hidden layers
WORKERS = 16


@figure(
    "Does the choice of all-reduce matter in training?",
    source="Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, put into a training step",
    claims={
        "no all-reduce is best for both: recursive doubling for the small model, halving/doubling for the large": (
            lambda rows: first(rows, "small") == "recursive_doubling" and first(rows, "large") == "halving_doubling"
        ),
        "the small model's step takes more than three times as long with the ring as with recursive doubling": (
            lambda rows: ratio(rows, "step", model="small", collective=("ring", "recursive_doubling")) > 3
        ),
        "the large model's step takes over 1.5 times as long with recursive doubling as with the ring": lambda rows: (
            ratio(rows, "step", model="large", collective=("recursive_doubling", "ring")) > 1.5
        ),
        "the closed forms predict every step within 1 %": lambda rows: all(
            abs(row["step"] - row["formula"]) < 0.01 * row["step"] for row in rows
        ),
        "the trained models differ by rounding only": lambda rows: all(
            np.ptp(column(rows, "loss", model=model)) < 1e-4 for model in MODELS
        ),
    },
    look=Look("collective", ("step", "formula"), "model", kind="bar", log="y", title="milliseconds of a step"),
)
def in_training(run):
    """The time of a step of synchronous SGD on digits, in milliseconds, with 16 workers over 10 GbE.

    One model has one small hidden layer, the other two large ones. `formula` is the time of a step on a network that
    takes no time, plus the closed form of the all-reduce.
    """
    for model in MODELS:
        for name in CLOSED:
            alone, _ = step(run, name, model, WORKERS, network="ideal")
            measured, done = step(run, name, model, WORKERS)
            nbytes = 4 * len(done.parameters)
            total = collective_costs.time(name, WORKERS, nbytes, ALPHA, BETA)
            yield {
                "model": model,
                "collective": name,
                "kB": nbytes / 1000,
                "step": measured,
                "formula": alone + MS * total,
                "loss": done.summary["held_out_loss"],
            }


def step(run, collective, model, workers, network="10GbE"):
    """Train with this all-reduce, and return the time of a step, in ms, and the Run."""
    done = run(
        algorithm="sync_sgd", workers=workers, hidden=MODELS[model], batch=16, steps=10, learning_rate=0.05,
        evaluations=1, network=network, collective=collective,
    )  # fmt: skip
    return MS * done.summary["seconds"] / done.summary["steps"], done


def first(rows, model):
    return min((row for row in rows if row["model"] == model), key=lambda row: row["step"])["collective"]

"""How fast neighbours agree, and where their mean settles if their data differ."""

import numpy as np

from algorithms.decentralized.gossipgrad import Settings as Gossip
from algorithms.decentralized.gossipgrad import partners
from algorithms.parts.topology import mixing, neighbours, ring, spectral_gap
from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value
from lessons.gossip.experiments import BOWL


@figure(
    "How far apart do neighbours stay?",
    source="Lian et al., NIPS 2017; Xiao & Boyd, 2004; the formula for this bowl is ours",
    claims={
        "from ring to random, torus, exponential and complete, the spectral gap grows and the distance falls": (
            lambda rows: (
                is_rising([row["gap"] for row in rows if row["graph"] != "star"])
                and is_falling([row["apart"] for row in rows if row["graph"] != "star"])
            )
        ),
        "the star is the exception: its spectral gap exceeds the ring's, but its workers are the farthest apart": (
            lambda rows: (
                value(rows, "gap", graph="star") > value(rows, "gap", graph="ring")
                and value(rows, "apart", graph="star") == max(column(rows, "apart"))
            )
        ),
        "all distances match the eigenvalues' prediction within a tenth": lambda rows: all(
            abs(row["apart"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "the mean of all workers is equally good on every graph": lambda rows: (
            max(column(rows, "loss of the mean")) < 1.001 * min(column(rows, "loss of the mean"))
        ),
    },
    look=Look("graph", ("apart",), kind="bar", theory=("theory",), title="mean squared distance from the mean"),
)
def disagreement(run):
    """D-PSGD with 16 workers on a round bowl, where only noise drives them apart. `apart` is the mean squared distance
    of the workers from their mean.

    The gap is 1 - |second eigenvalue| of the mixing matrix: how fast the slowest mode of disagreement decays. Noise
    feeds all modes equally, and the distance is a sum over all of them: a ring has few slow modes, a star 14 of 15. The
    mean does not depend on the graph because the gradient of a bowl is linear.
    """
    workers, rate, dimension = 16, 0.05, 50
    for graph in ("star", "ring", "random", "torus", "exponential", "complete"):
        known = neighbours(graph, workers)
        w = mixing(known)
        done, distance = apart(run, graph, workers, rate, dimension)
        stubborn = np.linalg.eigvalsh(w)[:-1] - rate
        yield {
            "graph": graph,
            "neighbours": sum(map(len, known)) / workers,
            "gap": spectral_gap(w),
            "apart": distance,
            "theory": float(dimension * rate**2 * (1 / (1 - stubborn**2)).sum() / workers),
            "loss of the mean": done.summary["held_out_loss"],
        }


def apart(run, graph, workers=16, rate=0.05, dimension=50):
    """Return the Run of D-PSGD on a round bowl, and the mean squared distance of its workers from their mean.

    The distance is taken once it has settled.
    """
    steps = 240
    done = run(
        algorithm="dpsgd",
        topology=graph,
        workers=workers,
        dimension=dimension,
        points=workers * steps,
        steps=steps,
        learning_rate=rate,
        evaluations=steps,
        **BOWL,
    )
    return done, float(done.evaluations["spread"][steps // 4 :].mean())


UNLIKE = {"workload": "quadratic", "dimension": 1, "start": 0, "points": 512, "kinds": 2, "apart": 2, "unequal": 5}
SEATS = {"two halves": (*range(0, 16, 2), *range(1, 16, 2)), "in turn": tuple(range(16))}  # worker i sees kind i % 2


@figure(
    "Where does the mean settle if the workers' data differ?",
    source="Lian et al., NIPS 2017, whose bound grows with the spread between the workers; the fixed point is ours",
    claims={
        "the mean settles at the fixed point that the mixing matrix predicts": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-3 for row in rows
        ),
        "with each kind of data in one half, the ring settles over 7 times as far off as the complete graph": (
            lambda rows: (
                off(rows, graph="ring", seats="two halves") > 7 * off(rows, graph="complete", seats="two halves")
            )
        ),
        "the star settles within 5 % of where the ring does, though its spectral gap is larger": lambda rows: (
            abs(ratio(rows, "settled", graph=("star", "ring"), seats="two halves") - 1) < 0.05
        ),
        "with the two kinds of data alternating, the ring settles closest of all to the optimum": lambda rows: (
            off(rows, graph="ring", seats="in turn")
            == min(off(rows, graph=row["graph"], seats=row["seats"]) for row in rows)
        ),
        "D-PSGD settles at the optimum on no graph": lambda rows: all(
            row["settled"] - row["optimum"] > 0.01 for row in rows
        ),
        "gradient tracking settles at the optimum on every graph": lambda rows: all(
            abs(row["tracked"] - row["optimum"]) < 1e-3 for row in rows
        ),
        "at a third of the rate D-PSGD would settle less than half as far from the optimum": lambda rows: all(
            row["a third of the rate"] - row["optimum"] < (row["settled"] - row["optimum"]) / 2 for row in rows
        ),
    },
    look=Look("graph", ("settled",), "seats", kind="bar", theory=("optimum",), title="where the mean settles"),
)
def unlike_neighbours(run):
    """D-PSGD with 16 workers at learning rate 0.1, without noise. Eight workers are in a bowl around -1, and eight in
    one around +1 that is five times as flat. The optimum of all is -2/3.

    `seats` says whether each kind fills one half of the ranks, or the kinds alternate. `formula` is the mean of the
    fixed point x of a step, W x - 0.1 h (x - c) = x; `a third of the rate` is the same with 0.1 / 3. `tracked` is the
    same run with gradient tracking, whose steps follow a gossiped mean of all gradients.
    """
    kind = np.arange(16) % 2
    h, centres = np.array([1, 0.2])[kind], np.array([-1, 1])[kind]
    for graph in ("complete", "exponential", "torus", "ring", "star"):
        for seats, at in SEATS.items():
            edges = [(at[i], at[j]) for i, others in enumerate(neighbours(graph, 16)) for j in others if i < j]
            seated = ",".join(f"{i}-{j}" for i, j in edges)
            values = {"workers": 16, "edges": seated, "learning_rate": 0.1, "steps": 300}
            values |= {"evaluations": 2, "network": "ideal", **UNLIKE}
            done, tracked = (run(algorithm=name, mix="before", **values) for name in ("dpsgd", "gradient_tracking"))
            w = mixing(neighbours("ring", 16, seated))
            fixed = [np.linalg.solve(np.eye(16) - w + rate * np.diag(h), rate * h * centres) for rate in (0.1, 0.1 / 3)]
            yield {
                "graph": graph,
                "seats": seats,
                "settled": float(done.parameters[0]),
                "formula": float(fixed[0].mean()),
                "tracked": float(tracked.parameters[0]),
                "a third of the rate": float(fixed[1].mean()),
                "optimum": float(h @ centres / h.sum()),
            }


def off(rows, **where):
    """Return how far above the optimum the mean of the workers settles."""
    return value(rows, "settled", **where) - rows[0]["optimum"]


def _mixings(way, workers):
    """Yield the mixing matrix of each step, (workers, workers). It is GossipGraD's or, if `way` is "ring", the
    ring's.
    """
    step, s = 0, Gossip(rotate=False)
    while True:
        if way == "ring":
            yield mixing(ring(workers))
        else:
            w = np.eye(workers) / 2
            for rank in range(workers):
                w[rank, partners(rank, workers, step, s)[1]] += 0.5
            yield w
        step += 1


@figure(
    "After how many steps has every worker heard from every other?",
    source="Daily et al., GossipGraD, 2018; the errors with 6 and 12 workers are our own finding",
    claims={
        "with changing partners all have heard from all after log2 N steps, rounded up": lambda rows: all(
            row["heard of"] == row["workers"] for row in rows if row["way"] == "gossip" and row["last"]
        ),
        "if N is a power of two, every worker has the exact mean after log2 N steps": lambda rows: all(
            value(rows, "error", way="gossip", workers=workers, last=True) < 1e-15 for workers in (8, 16)
        ),
        "with 6 and 12 workers the largest error of a model's weight in a mean is 0.02 to 0.1 after log2 N steps": (
            lambda rows: all(
                0.02 < value(rows, "error", way="gossip", workers=workers, last=True) < 0.1 for workers in (6, 12)
            )
        ),
        "on a ring of 16, each worker has heard from nine after four steps, itself included": lambda rows: (
            value(rows, "heard of", way="ring", workers=16, last=True) == 9
        ),
    },
    look=Look("steps", ("heard of",), "way+workers", title="workers that every worker has heard from"),
)
def who_has_heard(run):
    """The product of the mixing matrices of the first k steps, without any training. Row i holds the weight of every
    worker's initial model in worker i's model.

    `heard of`: the smallest number of positive weights in any row. `error`: the largest difference between a weight and
    the fair share 1/N. A gradient that is sent to one partner in one step spreads no further. Models are mixed again
    and again, so they pass on what they have received.
    """
    for way, workers in (("gossip", 6), ("gossip", 8), ("gossip", 12), ("gossip", 16), ("ring", 16)):
        product, rounds = np.eye(workers), (workers - 1).bit_length()
        for step, w in zip(range(1, rounds + 1), _mixings(way, workers), strict=False):
            product = w @ product
            yield {
                "way": way,
                "workers": workers,
                "steps": step,
                "heard of": int((product > 0).sum(1).min()),
                "error": float(np.abs(product - 1 / workers).max()),
                "last": step == rounds,
            }

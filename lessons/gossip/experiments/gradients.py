"""What happens to neighbours that exchange gradients instead of models."""

import numpy as np

from algorithms.parts.topology import neighbours
from lessons.figure import Look, column, figure, is_rising, ratio, value
from lessons.gossip.experiments import BOWL


@figure(
    "Should partners exchange gradients, or models?",
    source="Daily et al., GossipGraD, 2018, whose abstract says gradients; that only models spread is our own finding",
    claims={
        "workers that exchange gradients keep drifting apart": lambda rows: is_rising(
            column(rows, "apart", exchange="gradient")
        ),
        "workers that exchange models stay together, and move closer again in the end": lambda rows: (
            column(rows, "apart", exchange="model")[-1] < max(column(rows, "apart", exchange="model"))
        ),
        "after 400 steps the mean squared distance is over 30 times as large with gradients as with models": (
            lambda rows: ratio(rows, "apart", exchange=("gradient", "model"), steps=400) > 30
        ),
        "on these images the losses of the two means differ by less than a tenth": lambda rows: all(
            abs(ratio(rows, "loss", exchange=("gradient", "model"), steps=n) - 1) < 0.1 for n in (25, 50, 100, 200, 400)
        ),
    },
    look=Look("steps", ("apart",), "exchange", log="xy", title="mean squared distance from the mean"),
)
def models_or_gradients(run):
    """GossipGraD on digits, with 8 workers and batches of 8. `apart` is the mean squared distance of the workers from
    their mean.

    A gradient reaches one partner and is then forgotten: where the loss is flat, nothing pulls the replicas together
    again. Their mean is still a good model as long as they are close enough for the loss between them to be a bowl.
    That is true of a problem this small, but cannot be relied on.
    """
    for exchange in ("gradient", "model"):
        done = run(
            algorithm="gossipgrad",
            mode=exchange,
            workers=8,
            batch=8,
            hidden="32",
            steps=400,
            evaluations=400,
            learning_rate=0.1,
        )
        for steps in (25, 50, 100, 200, 400):
            yield {
                "exchange": exchange,
                "steps": steps,
                "apart": float(done.evaluations["spread"][steps - 10 : steps].mean()),
                "loss": float(done.evaluations["loss"][steps]),
            }


def _worst(graph, workers):
    """Return the smallest eigenvalue of I + A, where A is the graph's adjacency matrix."""
    joined = np.eye(workers)
    for rank, others in enumerate(neighbours(graph, workers)):
        joined[rank, others] = 1
    return float(np.linalg.eigvalsh(joined)[0])


@figure(
    "What happens to neighbours that exchange gradients and never average?",
    source="the scheme: Viviani et al., Deep Learning at Scale, 2019; the finding is our own",
    claims={
        "on rings and tori the growth of disagreement is within 6 % of what theory predicts": lambda rows: all(
            abs(row["growth"] / row["growth, theory"] - 1) < 0.06 for row in rows if row["graph"] != "complete"
        ),
        "on an even torus disagreement grows about three times as fast as on an even ring": lambda rows: (
            2.8 < ratio(rows, "growth", graph=("torus", "ring"), workers=16) < 3.3
        ),
        "on an odd ring of 9 disagreement still grows by more than 3 % per step": lambda rows: (
            value(rows, "growth", graph="ring", workers=9) > 3
        ),
        "only on the complete graph do the replicas stay together": lambda rows: (
            value(rows, "apart", graph="complete", workers=16) < 1e-20
        ),
        "while replicas drift apart, the loss of their mean stays below 1 and reveals nothing": lambda rows: (
            max(column(rows, "loss of the mean")) < 1 < 1e6 < value(rows, "apart", graph="torus", workers=16)
        ),
    },
    look=Look(
        "among",
        ("growth",),
        kind="bar",
        theory=("growth, theory",),
        title="growth of disagreement, percent per step",
    ),
)
def never_averaged(run):
    """Plain SGD on a round bowl of curvature 1, at a learning rate of 0.05. Each worker has points of its own, and
    there are no restarts.

    Disagreement along an eigenvector of I + A, with eigenvalue e, is multiplied by 1 - 0.05 e in every step. On an even
    ring, neighbours displaced in opposite directions have e = -1: two gradients push each worker further out, and only
    its own pulls it back. `apart` is the mean squared distance of the workers from their mean.
    """
    rate, tail = 0.05, 80
    for graph, workers in (("complete", 16), ("ring", 9), ("ring", 16), ("torus", 25), ("torus", 16)):
        tried, worst = raw(run, graph, workers, rate), _worst(graph, workers)
        distance = tried["spread"]
        yield {
            "among": f"{graph} of {workers}",
            "graph": graph,
            "workers": workers,
            "worst e": worst,
            "growth": 100 * (float((distance[-1] / distance[-1 - tail]) ** (0.5 / tail)) - 1),
            "growth, theory": -100 * rate * worst,
            "apart": float(distance[-1]),
            "loss of the mean": float(tried["loss"][-1]),
        }


def raw(run, graph, workers, rate=0.05, weights="one"):
    """Return the evaluations of a run of 240 steps on a round bowl.

    Neighbours exchange gradients and never average their models.
    """
    steps = 240
    return run(
        algorithm="nearest_neighbour",
        update="sgd",
        synchronous=True,
        restart="none",
        weights=weights,
        topology=graph,
        workers=workers,
        learning_rate=rate,
        dimension=4,
        points=workers * steps,
        precision="float64",
        steps=steps,
        evaluations=steps,
        **BOWL,
    ).evaluations


@figure(
    "What keeps neighbours that exchange gradients together?",
    source="Viviani et al., Deep Learning at Scale, 2019, whose code restarts from the best; the rest is ours",
    claims={
        "with plain SGD and no remedy the replicas diverge": (
            lambda rows: value(rows, "apart", cure="none", steps=200) > 1e15
        ),
        "with Adagrad and no remedy the replicas keep moving apart, but more slowly": lambda rows: (
            is_rising(column(rows, "apart", cure="Adagrad")) and value(rows, "apart", cure="Adagrad", steps=200) < 1
        ),
        "restarts and lazy weights keep the distance within a factor of 3": lambda rows: all(
            max(column(rows, "apart", cure=cure)) < 3 * min(column(rows, "apart", cure=cure))
            for cure in ("restart from the best", "restart from the mean", "lazy weights")
        ),
        "restarts from the best of 16 end at more than twice the loss of restarts from the mean": lambda rows: (
            ratio(rows, "loss of the mean", cure=("restart from the best", "restart from the mean"), steps=200) > 2
        ),
        "lazy weights need no restarts, and give single workers the lowest loss": lambda rows: (
            value(rows, "loss of a worker", cure="lazy weights", steps=200)
            == min(column(rows, "loss of a worker", steps=200))
        ),
    },
    look=Look("steps", ("apart",), "cure", log="xy", title="mean squared distance from the mean"),
)
def kept_together(run):
    """Workers on a 4 x 4 torus descend a round bowl with noise at a learning rate of 0.05. Restarts come every 10
    steps.

    Values are means of the last 10 steps, since restarts make them a sawtooth. A worker's step and those of its
    neighbours add up to five steps; lazy weights scale them down to one, which descends more slowly and leaves less
    noise. Adagrad is still descending after 200 steps, because its steps shrink with all past gradients. A worker's own
    loss is that of the mean plus half of `apart`: without a remedy the mean is good, but no worker holds it.
    """
    cures = {
        "none": {"update": "sgd", "restart": "none"},
        "Adagrad": {"update": "adagrad", "restart": "none"},
        "restart from the best": {"update": "sgd", "restart": "best"},
        "restart from the mean": {"update": "sgd", "restart": "mean"},
        "lazy weights": {"update": "sgd", "restart": "none", "weights": "lazy"},
    }
    for cure, values in cures.items():
        tried = run(
            algorithm="nearest_neighbour",
            workers=16,
            synchronous=True,
            period=10,
            learning_rate=0.05,
            dimension=50,
            points=16 * 200,
            precision="float64",
            steps=200,
            evaluations=200,
            **{**BOWL, "start": 1},
            **values,
        ).evaluations
        for steps in (50, 100, 200):
            distance, loss = (float(tried[name][steps - 9 : steps + 1].mean()) for name in ("spread", "loss"))
            yield {
                "cure": cure,
                "steps": steps,
                "apart": distance,
                "loss of the mean": loss,
                "loss of a worker": loss + distance / 2,
            }

"""Gossip: workers that ask nobody but their neighbours, how soon all agree, and what becomes of those who never do."""

import numpy as np

from algorithms.decentralized.gossipgrad import Settings as Gossip
from algorithms.decentralized.gossipgrad import partners
from algorithms.parts.topology import mixing, neighbours, ring, spectral_gap
from lessons.figure import column, figure, value

BOWL = {"workload": "quadratic", "condition": 1, "noise": 1, "start": 0, "batch": 1, "network": "ideal"}


@figure(
    "What does a step cost when messages take long to arrive?",
    source="Lian et al., NIPS 2017",
    claims={
        "a ring all-reduce waits for 2 (N - 1) messages, one after the other": lambda rows: all(
            abs(row["messages in a row"] - 2 * (row["workers"] - 1)) < 0.01
            for row in rows
            if row["method"] == "ring all-reduce"
        ),
        "neighbours wait for one, however many they are": lambda rows: all(
            abs(row["messages in a row"] - 1) < 0.01 for row in rows if row["method"] != "ring all-reduce"
        ),
        "for as many numbers": lambda rows: (
            0.9
            < value(rows, "kB per worker", method="ring all-reduce", workers=32)
            / value(rows, "kB per worker", method="D-PSGD", workers=32)
            < 1
        ),
        "at 1 ms, 32 neighbours are more than 30 times as fast": lambda rows: (
            30 * value(rows, "at 1 ms", method="D-PSGD", workers=32)
            < value(rows, "at 1 ms", method="ring all-reduce", workers=32)
        ),
        "and at 10 us still more than 3 times": lambda rows: (
            3 * value(rows, "at 10 us", method="D-PSGD", workers=32)
            < value(rows, "at 10 us", method="ring all-reduce", workers=32)
        ),
    },
)
def one_hop(run):
    """Milliseconds of a step on digits, by the latency of the network; its bandwidth is that of 10 Gb Ethernet.

    `messages in a row` is by how many latencies a step grows when each grows. The model is small, which is where
    latency counts: with one so large that its numbers take longer than any latency, the all-reduce is as good, since
    as many numbers pass each link. GossipGraD and push-sum send to one worker instead of two, so half as many.
    """
    methods = {
        "ring all-reduce": {"algorithm": "sync_sgd", "collective": "ring"},
        "D-PSGD": {"algorithm": "dpsgd"},
        "GossipGraD": {"algorithm": "gossipgrad"},
    }
    rows, small = [], {"steps": 5, "batch": 16, "learning_rate": 0.2, "evaluations": 1}
    for workers in (4, 16, 32):
        for method, values in methods.items():
            done = {
                latency: run(workers=workers, latency=latency, **small, **values).summary
                for latency in (1e-5, 1e-3, 2e-3)
            }
            step = {latency: summary["seconds"] / 5 for latency, summary in done.items()}
            rows.append(
                {
                    "workers": workers,
                    "method": method,
                    "at 10 us": 1e3 * step[1e-5],
                    "at 1 ms": 1e3 * step[1e-3],
                    "messages in a row": (step[2e-3] - step[1e-3]) / 1e-3,
                    "kB per worker": done[1e-5]["bytes"] / 5 / workers / 1e3,
                }
            )
    return rows


@figure(
    "How far apart do neighbours keep each other?",
    source="Lian et al., NIPS 2017; Xiao & Boyd, 2004; the formula for this bowl is ours",
    claims={
        "ring, random, torus, exponential, complete: the larger the gap, the nearer they are": lambda rows: (
            (np.diff([row["gap"] for row in rows if row["graph"] != "star"]) > 0).all()
            and (np.diff([row["apart"] for row in rows if row["graph"] != "star"]) < 0).all()
        ),
        "not so the star: its gap is that of the ring, and its workers are farthest apart": lambda rows: (
            value(rows, "gap", graph="star") > value(rows, "gap", graph="ring")
            and value(rows, "apart", graph="star") == max(column(rows, "apart"))
        ),
        "all are as far apart as the eigenvalues say": lambda rows: all(
            abs(row["apart"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "and the mean of all is as good with every graph": lambda rows: (
            max(column(rows, "loss of the mean")) < 1.001 * min(column(rows, "loss of the mean"))
        ),
    },
)
def disagreement(run):
    """D-PSGD with 16 workers in a round bowl where only noise drives them apart; `apart` is their mean squared
    distance from their mean.

    A gap is 1 - |the second eigenvalue| of the mixing matrix: how fast the most stubborn disagreement fades. Noise
    feeds all kinds of disagreement alike, and a sum over all of them is what one sees: a ring has few stubborn ones,
    a star 14 of 15. That the mean does not feel the graph at all is so in a bowl, whose gradient is linear.
    """
    workers, rate, dimension, steps, rows = 16, 0.05, 50, 240, []
    for graph in ("star", "ring", "random", "torus", "exponential", "complete"):
        known = neighbours(graph, workers)
        w = mixing(known)
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
        stubborn = np.linalg.eigvalsh(w)[:-1] - rate
        rows.append(
            {
                "graph": graph,
                "neighbours": sum(map(len, known)) / workers,
                "gap": spectral_gap(w),
                "apart": float(done.evaluations["spread"][steps // 4 :].mean()),
                "theory": float(dimension * rate**2 * (1 / (1 - stubborn**2)).sum() / workers),
                "loss of the mean": done.summary["held_out_loss"],
            }
        )
    return rows


def _mixings(way, workers):
    """The mixing matrices of gossip's steps, one after the other, or a ring's, which is always the same."""
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
    "After how many steps has everybody heard of everybody?",
    source="Daily et al., GossipGraD, 2018; the errors at 6 and 12 workers are ours",
    claims={
        "with changing partners, after log2 N steps": lambda rows: all(
            row["heard of"] == row["workers"] for row in rows if row["way"] == "gossip" and row["last"]
        ),
        "at powers of two everybody then has the exact mean": lambda rows: all(
            value(rows, "error", way="gossip", workers=workers, last=True) < 1e-15 for workers in (8, 16)
        ),
        "at 6 and 12 nearly": lambda rows: all(
            0.02 < value(rows, "error", way="gossip", workers=workers, last=True) < 0.1 for workers in (6, 12)
        ),
        "on a ring after as many steps 16 workers have heard of nine": lambda rows: (
            value(rows, "heard of", way="ring", workers=16, last=True) == 9
        ),
    },
)
def who_has_heard(run):
    """Nobody trains here: the mixing matrices of k steps are multiplied, and one looks at what is in a row.

    `heard of`: of how many workers each has a part, the least of all. `error`: how far such a part is from
    the fair share 1/N at most. A gradient that is sent to one partner in one step has none of this; it is
    the models, mixed again and again, that carry the news on.
    """
    rows = []
    for way, workers in (("gossip", 6), ("gossip", 8), ("gossip", 12), ("gossip", 16), ("ring", 16)):
        product, rounds = np.eye(workers), (workers - 1).bit_length()
        for step, w in zip(range(1, rounds + 1), _mixings(way, workers), strict=False):
            product = w @ product
            rows.append(
                {
                    "way": way,
                    "workers": workers,
                    "steps": step,
                    "heard of": int((product > 0).sum(1).min()),
                    "error": float(np.abs(product - 1 / workers).max()),
                    "last": step == rounds,
                }
            )
    return rows


@figure(
    "Should partners exchange gradients, or models?",
    source="Daily et al., GossipGraD, 2018, whose abstract says gradients; that only models spread is ours",
    claims={
        "whoever exchanges gradients drifts apart, and goes on doing so": lambda rows: (
            np.diff(column(rows, "apart", exchange="gradient")) > 0
        ).all(),
        "models stay together, and in the end even come nearer": lambda rows: (
            column(rows, "apart", exchange="model")[-1] < max(column(rows, "apart", exchange="model"))
        ),
        "then those who exchange gradients are 30 times as far apart": lambda rows: (
            value(rows, "apart", exchange="gradient", steps=400)
            > 30 * value(rows, "apart", exchange="model", steps=400)
        ),
        "the mean of all does not care on these images": lambda rows: all(
            abs(value(rows, "loss", exchange="gradient", steps=n) / value(rows, "loss", exchange="model", steps=n) - 1)
            < 0.1
            for n in (25, 50, 100, 200, 400)
        ),
    },
)
def models_or_gradients(run):
    """GossipGraD on digits, 8 workers with 8 images each; `apart` is the mean squared distance from the mean.

    A gradient is heard by one partner and then forgotten: where the loss is flat nothing leads replicas back to each
    other. Their mean is a good model all the same, as long as they are near enough for the loss to be a bowl; that is
    so on a problem this small, and cannot be relied on.
    """
    rows = []
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
            rows.append(
                {
                    "exchange": exchange,
                    "steps": steps,
                    "apart": float(done.evaluations["spread"][steps - 10 : steps].mean()),
                    "loss": float(done.evaluations["loss"][steps]),
                }
            )
    return rows


PEERS = {
    "synchronous": {"algorithm": "sync_sgd", "collective": "ring"},
    "D-PSGD": {"algorithm": "dpsgd"},
    "GossipGraD": {"algorithm": "gossipgrad"},
    "push-sum": {"algorithm": "push_sum"},
    "AD-PSGD": {"algorithm": "adpsgd", "topology": "ring"},
}


@figure(
    "Does training without a sum over all need more steps, and how much less time?",
    source="Lian et al., NIPS 2017 and ICML 2018; Assran et al., 2019",
    claims={
        "step by step, all end within a tenth of synchronous SGD": lambda rows: all(
            abs(row["loss"] / value(rows, "loss", method="synchronous", latency=row["latency"]) - 1) < 0.1
            for row in rows
        ),
        "in the time that synchronous SGD takes the others could do it more than twice": lambda rows: all(
            value(rows, "seconds", method=method, latency="24 us")
            < value(rows, "seconds", method="synchronous", latency="24 us") / 2
            for method in PEERS
            if method != "synchronous"
        ),
        "and on a network with long delays more than ten times": lambda rows: all(
            value(rows, "seconds", method=method, latency="1 ms")
            < value(rows, "seconds", method="synchronous", latency="1 ms") / 10
            for method in PEERS
            if method != "synchronous"
        ),
        "who sends to one worker in a step sends half as much": lambda rows: all(
            value(rows, "megabytes", method=method, latency="1 ms")
            < 0.6 * value(rows, "megabytes", method="synchronous", latency="1 ms")
            for method in ("GossipGraD", "push-sum", "AD-PSGD")
        ),
    },
)
def against_the_sum(run):
    """Digits, 16 workers with 8 images each, 150 steps of each; 1 Gb Ethernet, and the same with longer delays.

    The loss is that of the mean of all workers, which nobody has until somebody collects it.
    """
    rows = []
    for latency, delay in (("24 us", None), ("1 ms", 1e-3)):
        for method, values in PEERS.items():
            done = run(
                workers=16,
                batch=8,
                hidden="32",
                steps=150,
                learning_rate=0.3,
                network="1GbE",
                latency=delay,
                evaluations=2,
                **values,
            ).summary
            rows.append(
                {
                    "latency": latency,
                    "method": method,
                    "loss": done["held_out_loss"],
                    "seconds": done["seconds"],
                    "megabytes": done["bytes"] / 1e6,
                }
            )
    return rows


@figure(
    "What does one slow worker cost the others?",
    source="Lian et al., ICML 2018",
    claims={
        "with a barrier everybody is soon as slow as the slowest": lambda rows: all(
            -1 <= value(rows, "mini-batches", method="D-PSGD", slowed=times) - 100 / times <= 4
            for times in (1, 2, 10, 100)
        ),
        "without one it takes away little more than its own work, if it is one that asks": lambda rows: all(
            row["mini-batches"] > 87 for row in rows if row["method"] == "AD-PSGD, slow one asks"
        ),
        "and the loss at the same time hardly suffers": lambda rows: (
            value(rows, "loss", method="AD-PSGD, slow one asks", slowed=100)
            < 1.15 * value(rows, "loss", method="AD-PSGD, slow one asks", slowed=1)
        ),
        "one that asks holds up nobody, and one that answers its two neighbours": lambda rows: all(
            value(rows, "held up", method="AD-PSGD, slow one asks", slowed=times) == 0
            and value(rows, "held up", method="AD-PSGD, slow one answers", slowed=times) == 2
            for times in (10, 100)
        ),
        "from 2 times on D-PSGD is left behind in any case": lambda rows: all(
            value(rows, "loss", method="D-PSGD", slowed=times)
            > 1.3 * value(rows, "loss", method="AD-PSGD, slow one answers", slowed=times)
            for times in (2, 10, 100)
        ),
    },
)
def one_slow_worker(run):
    """Digits on a ring of 8, of whom one takes so many times as long for a gradient; the loss of the mean, and the
    mini-batches of a worker in the mean, when D-PSGD without a slow one would have made 100 steps. `held up` are the
    others that have made fewer than 70 by then.

    The network takes no time here. In D-PSGD one can be ahead of a slow one by a step for each hop between them, four
    at most. In AD-PSGD every second worker asks and the others answer, in this book between
    two steps; its authors have a thread for answering, so that a slow one would hold up nobody in either role.
    """
    small = {"hidden": "32", "batch": 16, "workers": 8, "network": "ideal", "learning_rate": 0.1, "topology": "ring"}
    barrier = {
        times: run(algorithm="dpsgd", steps=100, evaluations=100, slow=f"7:{times}", **small)
        for times in (1, 2, 10, 100)
    }
    end = barrier[1].summary["seconds"]
    rows = []
    for times, done in barrier.items():
        tried = done.evaluations
        loss = float(tried["loss"][tried["seconds"] <= end][-1])
        made = _made(done, end)
        rows.append(
            {
                "slowed": times,
                "method": "D-PSGD",
                "loss": loss,
                "mini-batches": float(made.mean()),
                "held up": int((made[:7] < 70).sum()),
            }
        )
        for role, rank in (("asks", 6), ("answers", 7)):
            done = run(algorithm="adpsgd", seconds=end, evaluations=2, slow=f"{rank}:{times}", **small)
            each = np.delete(_made(done, end), rank)
            rows.append(
                {
                    "slowed": times,
                    "method": f"AD-PSGD, slow one {role}",
                    "loss": done.summary["held_out_loss"],
                    "mini-batches": float(_made(done, end).mean()),
                    "held up": int((each < 70).sum()),
                }
            )
    return rows


def _made(done, until):
    """Mini-batches of each worker until then."""
    return np.bincount(done.losses["rank"][done.losses["seconds"] <= until], minlength=8)


GOES_ON = ("GossipGraD", "push-sum", "AD-PSGD")


@figure(
    "Who notices that a worker is lost?",
    source="Daily et al., 2018; Assran et al., 2019; Lian et al., 2018; that D-PSGD stops is so in this book",
    claims={
        "a sum over all stops, and so do fixed neighbours": lambda rows: all(
            value(rows, "status", method=method) == "failed" for method in ("synchronous", "D-PSGD")
        ),
        "gossip goes on": lambda rows: all(value(rows, "status", method=method) == "finished" for method in GOES_ON),
        "the others make all their steps": lambda rows: all(
            value(rows, "mini-batches", method=method) > 7 * 100 for method in GOES_ON
        ),
        "and end within a tenth of what they would have reached with it": lambda rows: all(
            value(rows, "loss", method=method) < 1.1 * value(rows, "loss if not", method=method) for method in GOES_ON
        ),
        "agreeing with each other not much worse": lambda rows: all(
            value(rows, "apart", method=method) < 3 * value(rows, "apart if not", method=method)
            for method in ("GossipGraD", "push-sum")
        ),
    },
)
def a_lost_worker(run):
    """Digits, 8 workers with 16 images each, 100 steps; worker 2 is lost for good at a third of the time.

    Its images are not seen any more, either; seven eighths of them are enough here. What is on its way to a lost
    worker is lost with it: of x and of its weight alike, so that push-sum's x / p stays right.
    """
    rows = []
    for method, values in PEERS.items():
        small = {"hidden": "32", "batch": 16, "workers": 8, "steps": 100, "learning_rate": 0.2, "evaluations": 100}
        whole = run(**small, **values)
        left = run(crash=f"2:{whole.summary['seconds'] / 3:.9f}", **small, **values)
        rows.append(
            {
                "method": method,
                "status": left.status,
                "mini-batches": left.summary["samples"] // 16,
                "loss": left.summary["held_out_loss"],
                "loss if not": whole.summary["held_out_loss"],
                "apart": float(left.evaluations["spread"][-2]),
                "apart if not": float(whole.evaluations["spread"][-2]),
            }
        )
    return rows


def _worst(graph, workers):
    """The smallest eigenvalue of I + A, A the adjacency matrix."""
    joined = np.eye(workers)
    for rank, others in enumerate(neighbours(graph, workers)):
        joined[rank, others] = 1
    return float(np.linalg.eigvalsh(joined)[0])


@figure(
    "What happens to neighbours who exchange gradients and never average?",
    source="the scheme: Viviani et al., Deep Learning at Scale, 2019; the finding is ours",
    claims={
        "on a ring and on a torus disagreement grows in every step, as fast as theory says": lambda rows: all(
            abs((row["factor per step"] - 1) / (row["theory"] - 1) - 1) < 0.06
            for row in rows
            if row["graph"] != "complete"
        ),
        "on an even torus three times as fast as on an even ring": lambda rows: (
            2.8
            < (value(rows, "factor per step", graph="torus", workers=16) - 1)
            / (value(rows, "factor per step", graph="ring", workers=16) - 1)
            < 3.3
        ),
        "an odd ring does not save them": lambda rows: value(rows, "factor per step", graph="ring", workers=9) > 1.03,
        "only if everybody hears everybody they stay one": lambda rows: (
            value(rows, "apart", graph="complete", workers=16) < 1e-20
        ),
        "while the mean of all looks as if nothing were wrong": lambda rows: (
            max(column(rows, "loss of the mean")) < 1 < 1e6 < value(rows, "apart", graph="torus", workers=16)
        ),
    },
)
def never_averaged(run):
    """A round bowl of curvature 1, plain steps at rate 0.05, every worker's points being its own; no restarts.

    A disagreement in the pattern of an eigenvector of I + A, with eigenvalue e, is multiplied by 1 - 0.05 e in every
    step. On an even ring neighbours that pull in opposite directions have e = -1: each is told by two others to go
    further the wrong way, and only by itself to come back. `apart` is the mean squared distance from the mean.
    """
    rate, steps, tail, rows = 0.05, 240, 80, []
    for graph, workers in (("complete", 16), ("ring", 9), ("ring", 16), ("torus", 25), ("torus", 16)):
        tried = run(
            algorithm="nearest_neighbour",
            update="sgd",
            synchronous=True,
            restart="none",
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
        apart, worst = tried["spread"], _worst(graph, workers)
        rows.append(
            {
                "graph": graph,
                "workers": workers,
                "worst e": worst,
                "theory": 1 - rate * worst,
                "factor per step": float((apart[-1] / apart[-1 - tail]) ** (0.5 / tail)),
                "apart": float(apart[-1]),
                "loss of the mean": float(tried["loss"][-1]),
            }
        )
    return rows


@figure(
    "What keeps nearest neighbours together?",
    source="Viviani et al., Deep Learning at Scale, 2019, whose code restarts from the best; the others are ours",
    claims={
        "with plain steps and nothing else they explode": lambda rows: (
            value(rows, "apart", cure="none", steps=200) > 1e15
        ),
        "Adagrad slows that down, but they go on moving apart": lambda rows: (
            (np.diff(column(rows, "apart", cure="Adagrad")) > 0).all()
            and value(rows, "apart", cure="Adagrad", steps=200) < 1
        ),
        "restarts, averages and lazy weights keep them where they were": lambda rows: all(
            max(column(rows, "apart", cure=cure)) < 3 * min(column(rows, "apart", cure=cure))
            for cure in ("restart from the best", "restart from the mean", "lazy weights")
        ),
        "the best is one of 16, and more than twice as far up as their mean": lambda rows: (
            2 * value(rows, "loss of the mean", cure="restart from the mean", steps=200)
            < value(rows, "loss of the mean", cure="restart from the best", steps=200)
        ),
        "lazy weights need no restart, and stay nearest the optimum": lambda rows: (
            value(rows, "loss of a worker", cure="lazy weights", steps=200)
            == min(column(rows, "loss of a worker", steps=200))
        ),
    },
)
def kept_together(run):
    """A torus of 4 x 4 in a round bowl with noise, rate 0.05; restarts come every 10 steps.

    Values are the means of the last 10 steps: with restarts they are a saw tooth. A step and that of the neighbours are
    together as long as five steps; lazy weights make them as long as one, which takes longer to come down and leaves
    less noise. Adagrad is still on its way after 200 steps, which shrink for all that it has seen. A worker's own loss
    is that of the mean and half of `apart`: without a cure the mean is good, and nobody has it.
    """
    cures = {
        "none": {"update": "sgd", "restart": "none"},
        "Adagrad": {"update": "adagrad", "restart": "none"},
        "restart from the best": {"update": "sgd", "restart": "best"},
        "restart from the mean": {"update": "sgd", "restart": "mean"},
        "lazy weights": {"update": "sgd", "restart": "none", "weights": "lazy"},
    }
    rows = []
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
            apart, loss = (float(tried[name][steps - 9 : steps + 1].mean()) for name in ("spread", "loss"))
            rows.append(
                {
                    "cure": cure,
                    "steps": steps,
                    "apart": apart,
                    "loss of the mean": loss,
                    "loss of a worker": loss + apart / 2,
                }
            )
    return rows

"""Gossip: workers that communicate with neighbours only, how soon they agree, and what happens without averaging."""

import numpy as np

from algorithms.decentralized.gossipgrad import Settings as Gossip
from algorithms.decentralized.gossipgrad import partners
from algorithms.parts.topology import mixing, neighbours, ring, spectral_gap
from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value

BOWL = {"workload": "quadratic", "condition": 1, "noise": 1, "start": 0, "batch": 1, "network": "ideal"}


@figure(
    "What does a step cost on a network with high latency?",
    source="Lian et al., NIPS 2017",
    claims={
        "a ring all-reduce waits for 2 (N - 1) messages in a row": lambda rows: all(
            abs(row["messages in a row"] - 2 * (row["workers"] - 1)) < 0.01
            for row in rows
            if row["method"] == "ring all-reduce"
        ),
        "neighbours wait for one, at any number of workers": lambda rows: all(
            abs(row["messages in a row"] - 1) < 0.01 for row in rows if row["method"] != "ring all-reduce"
        ),
        "at 32 workers the all-reduce sends 90 to 100 % of the bytes of D-PSGD": lambda rows: (
            0.9 < ratio(rows, "kB per worker", method=("ring all-reduce", "D-PSGD"), workers=32) < 1
        ),
        "at 1 ms, D-PSGD on 32 workers is more than 30 times as fast": lambda rows: (
            ratio(rows, "at 1 ms", method=("ring all-reduce", "D-PSGD"), workers=32) > 30
        ),
        "and at 10 us still more than 3 times as fast": lambda rows: (
            ratio(rows, "at 10 us", method=("ring all-reduce", "D-PSGD"), workers=32) > 3
        ),
    },
    look=Look("workers", ("at 10 us", "at 1 ms"), "method", log="xy", title="milliseconds of a step"),
)
def one_hop(run):
    """Milliseconds of a step on digits, by the latency of the network; its bandwidth is that of 10 Gb Ethernet.

    `messages in a row`: the number of latencies that a step contains. The model is small, so latency matters. If the
    model is so large that bandwidth dominates, the all-reduce is just as fast, since the same number of bytes passes
    each link. GossipGraD and push-sum send to one worker instead of two, so half as much.
    """
    methods = {
        "ring all-reduce": {"algorithm": "sync_sgd", "collective": "ring"},
        "D-PSGD": {"algorithm": "dpsgd"},
        "GossipGraD": {"algorithm": "gossipgrad"},
    }
    small = {"steps": 5, "batch": 16, "learning_rate": 0.2, "evaluations": 1}
    for workers in (4, 16, 32):
        for method, values in methods.items():
            done = {
                latency: run(workers=workers, latency=latency, **small, **values).summary
                for latency in (1e-5, 1e-3, 2e-3)
            }
            step = {latency: summary["seconds"] / 5 for latency, summary in done.items()}
            yield {
                "workers": workers,
                "method": method,
                "at 10 us": 1e3 * step[1e-5],
                "at 1 ms": 1e3 * step[1e-3],
                "messages in a row": (step[2e-3] - step[1e-3]) / 1e-3,
                "kB per worker": done[1e-5]["bytes"] / 5 / workers / 1e3,
            }


@figure(
    "How far apart do neighbours stay?",
    source="Lian et al., NIPS 2017; Xiao & Boyd, 2004; the formula for this bowl is ours",
    claims={
        "ring, random, torus, exponential, complete: the larger the gap, the closer the workers": lambda rows: (
            is_rising([row["gap"] for row in rows if row["graph"] != "star"])
            and is_falling([row["apart"] for row in rows if row["graph"] != "star"])
        ),
        "except the star: its gap is larger than the ring's, yet its workers are farthest apart": lambda rows: (
            value(rows, "gap", graph="star") > value(rows, "gap", graph="ring")
            and value(rows, "apart", graph="star") == max(column(rows, "apart"))
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
    """D-PSGD with 16 workers on a round bowl where only noise drives them apart; `apart` is their mean squared distance
    from their mean.

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
    """Return a run of D-PSGD on a round bowl, and the mean squared distance of its workers from their mean once
    settled.
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
        "it settles at the fixed point that the mixing matrix predicts": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-3 for row in rows
        ),
        "with the kinds in two halves, the ring ends over seven times as far off as the complete graph": lambda rows: (
            off(rows, graph="ring", seats="two halves") > 7 * off(rows, graph="complete", seats="two halves")
        ),
        "the star ends as far off as the ring, though its gap is larger": lambda rows: (
            abs(ratio(rows, "settled", graph=("star", "ring"), seats="two halves") - 1) < 0.05
        ),
        "with the two kinds alternating, the ring ends nearest of all": lambda rows: (
            off(rows, graph="ring", seats="in turn")
            == min(off(rows, graph=row["graph"], seats=row["seats"]) for row in rows)
        ),
        "no graph settles at the optimum": lambda rows: all(row["settled"] - row["optimum"] > 0.01 for row in rows),
        "with gradient tracking all of them do": lambda rows: all(
            abs(row["tracked"] - row["optimum"]) < 1e-3 for row in rows
        ),
        "at a third of the rate each of them would settle less than half as far off": lambda rows: all(
            row["a third of the rate"] - row["optimum"] < (row["settled"] - row["optimum"]) / 2 for row in rows
        ),
    },
    look=Look("graph", ("settled",), "seats", kind="bar", theory=("optimum",), title="where the mean settles"),
)
def unlike_neighbours(run):
    """D-PSGD with 16 workers at rate 0.1, without noise: eight in a bowl around -1, and eight in one around +1 that is
    five times as flat. The optimum of all is -2/3.

    `seats`: whether the two kinds fill one half of the ranks each, or alternate. formula: the mean of the x that a step
    leaves where it is, W x - 0.1 h (x - c) = x; and the same at a third of the rate. tracked: the same steps along a
    mean of all gradients, which is gossiped, too.
    """
    kind = np.arange(16) % 2
    h, centres = np.array([1, 0.2])[kind], np.array([-1, 1])[kind]
    for graph in ("complete", "exponential", "torus", "ring", "star"):
        for seats, at in SEATS.items():
            edges = [(at[i], at[j]) for i, others in enumerate(neighbours(graph, 16)) for j in others if i < j]
            seated = ",".join(f"{i}-{j}" for i, j in edges)
            values = {"algorithm": "dpsgd", "workers": 16, "edges": seated, "learning_rate": 0.1, "steps": 300}
            values |= {"evaluations": 2, "network": "ideal", **UNLIKE}
            done, tracked = run(**values), run(worker_override=_tracking, **values)
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


def _tracking(comm, task, s):
    """Gradient tracking: DIGing of Nedic, Olshevsky & Shi, 2017. Train like a worker of D-PSGD, but along y.

    It starts as the worker's own gradient and is mixed as x is; then each new gradient adds its change from the last.
    """
    graph = neighbours(s.topology, comm.size, s.edges)
    share = mixing(graph)[comm.rank]
    x, last, y = task.start(), 0.0, 0.0  # (d,) from the first step on
    for _ in task.steps(together=True):
        _, g = task.gradient(x)
        y, last = y + g - last, g.copy()
        both = np.stack([x, y])
        for other in graph[comm.rank]:
            comm.send(both, other)
        mixed = share[comm.rank] * both + sum(share[other] * comm.recv(other) for other in graph[comm.rank])
        x, y = mixed[0] - s.learning_rate * y, mixed[1]
        task.report(x)
    return x


def off(rows, **where):
    """Return how far from the optimum the mean settles."""
    return value(rows, "settled", **where) - rows[0]["optimum"]


def _mixings(way, workers):
    """Yield the mixing matrix of each step of gossip, or a ring's, which is always the same."""
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
    source="Daily et al., GossipGraD, 2018; the errors at 6 and 12 workers are ours",
    claims={
        "with changing partners, after log2 N steps, rounded up": lambda rows: all(
            row["heard of"] == row["workers"] for row in rows if row["way"] == "gossip" and row["last"]
        ),
        "at powers of two every worker then has the exact mean": lambda rows: all(
            value(rows, "error", way="gossip", workers=workers, last=True) < 1e-15 for workers in (8, 16)
        ),
        "at 6 and 12 workers its weights are off by 0.02 to 0.1": lambda rows: all(
            0.02 < value(rows, "error", way="gossip", workers=workers, last=True) < 0.1 for workers in (6, 12)
        ),
        "on a ring of 16 each worker has then heard from nine, itself included": lambda rows: (
            value(rows, "heard of", way="ring", workers=16, last=True) == 9
        ),
    },
    look=Look("steps", ("heard of",), "way+workers", title="workers that every worker has heard from"),
)
def who_has_heard(run):
    """The product of the mixing matrices of k steps, without training; a row holds the weights of all workers in the
    model of one.

    `heard of`: the number of weights above zero in a row, the least of all rows. `error`: the largest distance of a
    weight from the fair share 1/N. A gradient that is sent to one partner in one step spreads no further; models are
    mixed again and again, so they pass on what they have received.
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


@figure(
    "Should partners exchange gradients, or models?",
    source="Daily et al., GossipGraD, 2018, whose abstract says gradients; that only models spread is ours",
    claims={
        "workers that exchange gradients keep drifting apart": lambda rows: is_rising(
            column(rows, "apart", exchange="gradient")
        ),
        "with models they stay together, and in the end even move closer": lambda rows: (
            column(rows, "apart", exchange="model")[-1] < max(column(rows, "apart", exchange="model"))
        ),
        "after 400 steps those with gradients are over 30 times as far apart": lambda rows: (
            ratio(rows, "apart", exchange=("gradient", "model"), steps=400) > 30
        ),
        "on these images the loss of the mean is the same within a tenth": lambda rows: all(
            abs(ratio(rows, "loss", exchange=("gradient", "model"), steps=n) - 1) < 0.1 for n in (25, 50, 100, 200, 400)
        ),
    },
    look=Look("steps", ("apart",), "exchange", log="xy", title="mean squared distance from the mean"),
)
def models_or_gradients(run):
    """GossipGraD on digits, 8 workers with 8 images each; `apart` is the mean squared distance from the mean.

    A gradient reaches one partner and is then forgotten: where the loss is flat, nothing pulls the replicas together
    again. Their mean is still a good model while they are close enough for the loss between them to be a bowl. That
    holds on a problem this small, and cannot be relied on.
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


PEERS = {
    "synchronous": {"algorithm": "sync_sgd", "collective": "ring"},
    "D-PSGD": {"algorithm": "dpsgd"},
    "GossipGraD": {"algorithm": "gossipgrad"},
    "push-sum": {"algorithm": "push_sum"},
    "AD-PSGD": {"algorithm": "adpsgd", "topology": "ring"},
}


@figure(
    "Does training without an all-reduce need more steps, and how much less time?",
    source="Lian et al., NIPS 2017 and ICML 2018; Assran et al., 2019",
    claims={
        "after the same steps all end within a fifth of the loss of synchronous SGD": lambda rows: all(
            abs(row["loss"] / value(rows, "loss", method="synchronous", latency=row["latency"]) - 1) < 0.2
            for row in rows
        ),
        "on 1 Gb Ethernet the others need less than half the time of synchronous SGD": lambda rows: all(
            ratio(rows, "seconds", method=(method, "synchronous"), latency="24 us") < 1 / 2
            for method in PEERS
            if method != "synchronous"
        ),
        "and with a latency of 1 ms less than a tenth": lambda rows: all(
            ratio(rows, "seconds", method=(method, "synchronous"), latency="1 ms") < 1 / 10
            for method in PEERS
            if method != "synchronous"
        ),
        "with one partner per step, workers send under 0.6 times its bytes": lambda rows: all(
            ratio(rows, "megabytes", method=(method, "synchronous"), latency="1 ms") < 0.6
            for method in ("GossipGraD", "push-sum", "AD-PSGD")
        ),
    },
    look=Look("method", ("seconds",), "latency", kind="bar", log="y", title="seconds of 150 steps"),
)
def against_the_sum(run):
    """Digits, 16 workers with 8 images each, 150 steps each, all at rate 0.3; 1 Gb Ethernet, and the same with a
    latency of 1 ms.

    The loss is that of the mean of all workers, which no worker holds until it is collected.
    """
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
            yield {
                "latency": latency,
                "method": method,
                "loss": done["held_out_loss"],
                "seconds": done["seconds"],
                "megabytes": done["bytes"] / 1e6,
            }


ON_A_RING = {"hidden": "32", "batch": 16, "workers": 8, "network": "ideal", "learning_rate": 0.1, "topology": "ring"}


@figure(
    "What does one slow worker cost the others?",
    source="Lian et al., ICML 2018",
    claims={
        "with a barrier all workers are soon as slow as the slowest": lambda rows: all(
            -1 <= value(rows, "mini-batches", method="D-PSGD", slowed=times) - 100 / times <= 4
            for times in (1, 2, 10, 100)
        ),
        "without one, a slow worker that asks costs little more than its own work": lambda rows: all(
            row["mini-batches"] > 87 for row in rows if row["method"] == "AD-PSGD, slow one asks"
        ),
        "and at the same time the loss is less than 15 % higher, even if it is 100 times slower": lambda rows: (
            ratio(rows, "loss", method="AD-PSGD, slow one asks", slowed=(100, 1)) < 1.15
        ),
        "a slow worker that asks holds up nobody; one that answers holds up its two neighbours": lambda rows: all(
            value(rows, "held up", method="AD-PSGD, slow one asks", slowed=times) == 0
            and value(rows, "held up", method="AD-PSGD, slow one answers", slowed=times) == 2
            for times in (10, 100)
        ),
        "if it is twice as slow or more, D-PSGD has over 1.3 times the loss of AD-PSGD in either role": lambda rows: (
            all(
                ratio(rows, "loss", method=("D-PSGD", "AD-PSGD, slow one answers"), slowed=times) > 1.3
                for times in (2, 10, 100)
            )
        ),
    },
    look=Look("slowed", ("mini-batches",), "method", log="x", title="mean mini-batches per worker"),
)
def one_slow_worker(run):
    """Digits on a ring of 8 at rate 0.1, where one worker takes `slowed` times as long for a gradient. The loss of the
    mean and the mean mini-batches per worker are taken at the time that D-PSGD needs for 100 steps without a slow
    worker. `held up` counts the others with fewer than 70 by then.

    The network takes no time here. In D-PSGD a worker can be ahead of the slow one by one step per hop between them,
    four at most. In AD-PSGD every second worker asks and the others answer, in this book between two steps. Its authors
    answer in a thread, so a slow worker would hold up nobody in either role.
    """
    barrier = {
        times: run(algorithm="dpsgd", steps=100, evaluations=100, slow=f"7:{times}", **ON_A_RING)
        for times in (1, 2, 10, 100)
    }
    end = barrier[1].summary["seconds"]
    for times, done in barrier.items():
        tried = done.evaluations
        loss = float(tried["loss"][tried["seconds"] <= end][-1])
        each = count_batches(done, end)
        yield {
            "slowed": times,
            "method": "D-PSGD",
            "loss": loss,
            "mini-batches": float(each.mean()),
            "held up": int((each[:7] < 70).sum()),
        }
        for role, rank in (("asks", 6), ("answers", 7)):
            done = run(algorithm="adpsgd", seconds=end, evaluations=2, slow=f"{rank}:{times}", **ON_A_RING)
            others = np.delete(count_batches(done, end), rank)
            yield {
                "slowed": times,
                "method": f"AD-PSGD, slow one {role}",
                "loss": done.summary["held_out_loss"],
                "mini-batches": float(count_batches(done, end).mean()),
                "held up": int((others < 70).sum()),
            }


def count_batches(done, until):
    """Return the mini-batches of each worker until then."""
    return np.bincount(done.losses["rank"][done.losses["seconds"] <= until], minlength=8)


GOES_ON = ("GossipGraD", "push-sum", "AD-PSGD")


@figure(
    "Which methods survive the loss of a worker?",
    source="Daily et al., 2018; Assran et al., 2019; Lian et al., 2018; that D-PSGD stops is true of this book's form",
    claims={
        "an all-reduce stops, and so does D-PSGD with its fixed neighbours": lambda rows: all(
            value(rows, "status", method=method) == "failed" for method in ("synchronous", "D-PSGD")
        ),
        "GossipGraD, push-sum and AD-PSGD finish": lambda rows: all(
            value(rows, "status", method=method) == "finished" for method in GOES_ON
        ),
        "their other workers take all their steps": lambda rows: all(
            value(rows, "mini-batches", method=method) > 7 * 100 for method in GOES_ON
        ),
        "and end less than a tenth above the loss without a failure": lambda rows: all(
            value(rows, "loss", method=method) < 1.1 * value(rows, "loss if not", method=method) for method in GOES_ON
        ),
        "with GossipGraD and push-sum they are less than 3 times as far apart": lambda rows: all(
            value(rows, "apart", method=method) < 3 * value(rows, "apart if not", method=method)
            for method in ("GossipGraD", "push-sum")
        ),
    },
    look=Look("method", ("mini-batches",), kind="bar", title="mini-batches of all workers, of 800"),
)
def a_lost_worker(run):
    """Digits, 8 workers with 16 images each, 100 steps; worker 2 is lost for good after a third of the time.

    Its images are lost as well; the other seven eighths are enough here. Messages in flight to a lost worker are lost
    with it, x and its weight alike, so that push-sum's x / p stays right.
    """
    for method, values in PEERS.items():
        whole, left = run_with_loss(run, values)
        yield {
            "method": method,
            "status": left.status,
            "mini-batches": left.summary["samples"] // 16,
            "loss": left.summary["held_out_loss"],
            "loss if not": whole.summary["held_out_loss"],
            "apart": float(left.evaluations["spread"][-2]),
            "apart if not": float(whole.evaluations["spread"][-2]),
        }


def run_with_loss(run, method):
    """Return the run of a method on digits, and the same with worker 2 lost after a third of the time."""
    small = {"hidden": "32", "batch": 16, "workers": 8, "steps": 100, "learning_rate": 0.2, "evaluations": 100}
    whole = run(**small, **method)
    return whole, run(crash=f"2:{whole.summary['seconds'] / 3:.9f}", **small, **method)


def _worst(graph, workers):
    """Return the smallest eigenvalue of I + A, where A is the adjacency matrix."""
    joined = np.eye(workers)
    for rank, others in enumerate(neighbours(graph, workers)):
        joined[rank, others] = 1
    return float(np.linalg.eigvalsh(joined)[0])


@figure(
    "What happens to neighbours that exchange gradients and never average?",
    source="the scheme: Viviani et al., Deep Learning at Scale, 2019; the finding is ours",
    claims={
        "on rings and tori disagreement grows within 6 % of the rate that theory predicts": lambda rows: all(
            abs(row["growth"] / row["growth, theory"] - 1) < 0.06 for row in rows if row["graph"] != "complete"
        ),
        "on an even torus it grows about three times as fast as on an even ring": lambda rows: (
            2.8 < ratio(rows, "growth", graph=("torus", "ring"), workers=16) < 3.3
        ),
        "on an odd ring of 9 it still grows by over 3 % per step": lambda rows: (
            value(rows, "growth", graph="ring", workers=9) > 3
        ),
        "only on the complete graph do the replicas stay together": lambda rows: (
            value(rows, "apart", graph="complete", workers=16) < 1e-20
        ),
        "meanwhile the loss of the mean stays below 1 and shows nothing": lambda rows: (
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
    """A round bowl of curvature 1, plain SGD at rate 0.05, each worker with points of its own; no restarts.

    Disagreement along an eigenvector of I + A, with eigenvalue e, is multiplied by 1 - 0.05 e in every step. On an even
    ring, neighbours displaced in opposite directions have e = -1: two gradients push each worker further out, and only
    its own pulls it back. `apart` is the mean squared distance from the mean.
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
    """Return the evaluations of 240 steps in which neighbours exchange gradients and never average, on a round bowl."""
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
    "What keeps nearest neighbours together?",
    source="Viviani et al., Deep Learning at Scale, 2019, whose code restarts from the best; the others are ours",
    claims={
        "with plain SGD and no remedy they diverge": lambda rows: value(rows, "apart", cure="none", steps=200) > 1e15,
        "Adagrad slows that down, but they keep moving apart": lambda rows: (
            is_rising(column(rows, "apart", cure="Adagrad")) and value(rows, "apart", cure="Adagrad", steps=200) < 1
        ),
        "restarts and lazy weights keep the distance within a factor of 3": lambda rows: all(
            max(column(rows, "apart", cure=cure)) < 3 * min(column(rows, "apart", cure=cure))
            for cure in ("restart from the best", "restart from the mean", "lazy weights")
        ),
        "restarts from the best of 16 end at over twice the loss of restarts from the mean": lambda rows: (
            ratio(rows, "loss of the mean", cure=("restart from the best", "restart from the mean"), steps=200) > 2
        ),
        "lazy weights need no restart, and give the lowest loss of a worker": lambda rows: (
            value(rows, "loss of a worker", cure="lazy weights", steps=200)
            == min(column(rows, "loss of a worker", steps=200))
        ),
    },
    look=Look("steps", ("apart",), "cure", log="xy", title="mean squared distance from the mean"),
)
def kept_together(run):
    """A 4 x 4 torus on a round bowl with noise, rate 0.05; restarts come every 10 steps.

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

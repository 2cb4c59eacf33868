"""How much time neighbours save, and what a slow or lost worker costs the others."""

import numpy as np

from lessons.figure import Look, figure, ratio, value
from lessons.gossip.experiments import PEERS


@figure(
    "What does a step cost on a network with high latency?",
    source="Lian et al., NIPS 2017",
    claims={
        "a ring all-reduce waits for 2 (N - 1) messages in a row": lambda rows: all(
            abs(row["messages in a row"] - 2 * (row["workers"] - 1)) < 0.01
            for row in rows
            if row["method"] == "ring all-reduce"
        ),
        "a step with neighbours waits for one message, for any number of workers": lambda rows: all(
            abs(row["messages in a row"] - 1) < 0.01 for row in rows if row["method"] != "ring all-reduce"
        ),
        "with 32 workers the all-reduce sends 90 to 100 % of D-PSGD's bytes": lambda rows: (
            0.9 < ratio(rows, "kB per worker", method=("ring all-reduce", "D-PSGD"), workers=32) < 1
        ),
        "at a latency of 1 ms, D-PSGD on 32 workers is over 30 times as fast as the all-reduce": lambda rows: (
            ratio(rows, "at 1 ms", method=("ring all-reduce", "D-PSGD"), workers=32) > 30
        ),
        "at a latency of 10 us, D-PSGD on 32 workers is still over 3 times as fast as the all-reduce": lambda rows: (
            ratio(rows, "at 10 us", method=("ring all-reduce", "D-PSGD"), workers=32) > 3
        ),
    },
    look=Look("workers", ("at 10 us", "at 1 ms"), "method", log="xy", title="milliseconds per step"),
)
def one_hop(run):
    """The time of a step on digits at two latencies, in milliseconds. The bandwidth is that of 10 Gb Ethernet.

    `messages in a row`: the number of latencies that a step contains. The model is small, so latency matters. If a
    model is so large that bandwidth dominates, the all-reduce is just as fast, since the same number of bytes passes
    over each link. GossipGraD and push-sum send to one worker instead of two, so they send half the bytes.
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
    "Does training without an all-reduce need more steps, and how much time does it save?",
    source="Lian et al., NIPS 2017 and ICML 2018; Assran et al., 2019",
    claims={
        "after the same number of steps every loss differs by less than a fifth from synchronous SGD's": (
            lambda rows: all(
                abs(row["loss"] / value(rows, "loss", method="synchronous", latency=row["latency"]) - 1) < 0.2
                for row in rows
            )
        ),
        "on 1 Gb Ethernet the other methods need less than half of synchronous SGD's time": lambda rows: all(
            ratio(rows, "seconds", method=(method, "synchronous"), latency="24 us") < 1 / 2
            for method in PEERS
            if method != "synchronous"
        ),
        "at a latency of 1 ms the other methods need less than a tenth of synchronous SGD's time": lambda rows: all(
            ratio(rows, "seconds", method=(method, "synchronous"), latency="1 ms") < 1 / 10
            for method in PEERS
            if method != "synchronous"
        ),
        "methods with one partner per step send less than 60 % of synchronous SGD's bytes": lambda rows: all(
            ratio(rows, "megabytes", method=(method, "synchronous"), latency="1 ms") < 0.6
            for method in ("GossipGraD", "push-sum", "AD-PSGD")
        ),
    },
    look=Look("method", ("seconds",), "latency", kind="bar", log="y", title="seconds for 150 steps"),
)
def against_the_sum(run):
    """Sixteen workers train on digits with batches of 8 for 150 steps at learning rate 0.3, on 1 Gb Ethernet and on the
    same network with a latency of 1 ms.

    The loss is that of the mean of all workers' models, which no worker holds until it is collected at the end.
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
        "without a barrier, a slow worker that asks costs little more than its own work": lambda rows: all(
            row["mini-batches"] > 87 for row in rows if row["method"] == "AD-PSGD, slow one asks"
        ),
        "one worker that asks, 100 times slower than the rest, raises the loss after the same time by under 15 %": (
            lambda rows: ratio(rows, "loss", method="AD-PSGD, slow one asks", slowed=(100, 1)) < 1.15
        ),
        "a slow worker that asks holds up nobody; one that answers holds up its two neighbours": lambda rows: all(
            value(rows, "held up", method="AD-PSGD, slow one asks", slowed=times) == 0
            and value(rows, "held up", method="AD-PSGD, slow one answers", slowed=times) == 2
            for times in (10, 100)
        ),
        "if a worker is at least twice as slow, D-PSGD has over 1.3 times the loss of AD-PSGD": lambda rows: all(
            ratio(rows, "loss", method=("D-PSGD", "AD-PSGD, slow one answers"), slowed=times) > 1.3
            for times in (2, 10, 100)
        ),
    },
    look=Look("slowed", ("mini-batches",), "method", log="x", title="mean mini-batches per worker"),
)
def one_slow_worker(run):
    """Eight workers on a ring train on digits at learning rate 0.1. One of them takes `slowed` times as long for a
    gradient.

    The loss of the mean and the mean mini-batches per worker are taken at the time that D-PSGD needs for 100 steps
    without a slow worker. `held up` counts the other workers that have finished fewer than 70 mini-batches by then.

    The network takes no time here. In D-PSGD a worker can be ahead of the slow one by one step per hop between them,
    four at most. In AD-PSGD every second worker asks and the others answer. In this book they answer between two steps;
    in the authors' version a thread does, so a slow worker would hold up nobody in either role.
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
    """Return the number of mini-batches that each worker has finished at the time `until`, (workers,). The time is in
    s.
    """
    return np.bincount(done.losses["rank"][done.losses["seconds"] <= until], minlength=8)


GOES_ON = ("GossipGraD", "push-sum", "AD-PSGD")


@figure(
    "Which methods survive the loss of a worker?",
    source="Daily et al., 2018; Assran et al., 2019; Lian et al., 2018; it is this book's form of D-PSGD that stops",
    claims={
        "an all-reduce stops, and so does D-PSGD with its fixed neighbours": lambda rows: all(
            value(rows, "status", method=method) == "failed" for method in ("synchronous", "D-PSGD")
        ),
        "GossipGraD, push-sum and AD-PSGD finish": lambda rows: all(
            value(rows, "status", method=method) == "finished" for method in GOES_ON
        ),
        "with GossipGraD, push-sum and AD-PSGD, the remaining workers take all their steps": lambda rows: all(
            value(rows, "mini-batches", method=method) > 7 * 100 for method in GOES_ON
        ),
        "with GossipGraD, push-sum and AD-PSGD, the loss is under a tenth higher than without a failure": lambda rows: (
            all(
                value(rows, "loss", method=method) < 1.1 * value(rows, "loss if not", method=method)
                for method in GOES_ON
            )
        ),
        "with GossipGraD and push-sum the mean squared distance is less than 3 times that without a failure": (
            lambda rows: all(
                value(rows, "apart", method=method) < 3 * value(rows, "apart if not", method=method)
                for method in ("GossipGraD", "push-sum")
            )
        ),
    },
    look=Look("method", ("mini-batches",), kind="bar", title="mini-batches of all workers, out of 800"),
)
def a_lost_worker(run):
    """Eight workers train on digits for 100 steps with batches of 16. Worker 2 is lost for good after a third of the
    time.

    Its images are lost as well, but the other seven eighths are enough here. Messages in flight to a lost worker are
    lost with it, both x and its weight, so push-sum's x / p stays right.
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
    """Run a method on digits without a failure, and again with worker 2 lost after a third of the time. Return both
    Runs.
    """
    small = {"hidden": "32", "batch": 16, "workers": 8, "steps": 100, "learning_rate": 0.2, "evaluations": 100}
    whole = run(**small, **method)
    return whole, run(crash=f"2:{whole.summary['seconds'] / 3:.9f}", **small, **method)

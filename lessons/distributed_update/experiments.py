"""Figures on the distributed update: a synchronous step in which the update is sharded or gradients are accumulated."""

import numpy as np

from algorithms.synchronous.muon import orthogonal
from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value
from theory.zero_memory import RECIPES, nbytes
from tracing import HELD

MS = 1e3
ADAM = HELD.index("optimizer state")
STATES = [HELD.index(kind) for kind in ("parameters", "gradients", "optimizer state")]


@figure(
    "One batch is divided among more and more ranks: what happens to the time of an update?",
    source="Rajbhandari et al., SC 2020; Sridharan et al., arXiv:1801.08030",
    claims={
        "if every rank updates everything, the update takes as long on 16 ranks as on one": lambda rows: (
            abs(rows[-1]["update, everybody"] / rows[0]["update, everybody"] - 1) < 0.05
        ),
        "if each of eight or more ranks updates everything, the update takes longer than the gradient": (
            lambda rows: all(row["update, everybody"] > row["gradient"] for row in rows if row["ranks"] >= 8)
        ),
        "if each rank updates its own shard, the update takes 1/N of one rank's time, within a fifth": lambda rows: all(
            abs(row["update, owners"] * row["ranks"] / rows[0]["update, owners"] - 1) < 0.2 for row in rows
        ),
        "on 16 ranks a step with shards takes less than two thirds as long as a step without": lambda rows: (
            rows[-1]["step, owners"] < 2 / 3 * rows[-1]["step, everybody"]
        ),
    },
    look=Look(
        "ranks",
        ("gradient", "update, everybody", "update, owners", "step, everybody", "step, owners"),
        log="xy",
        title="milliseconds of a step",
    ),
)
def who_updates(run):
    """The time of a step with Adam on a dense model with 167,178 weights. The 64 images of every step are divided among
    the ranks, and the network is fast (HDR).

    Every rank updates all weights (sync_sgd), or only its shard (zero1).
    """
    for ranks in (1, 2, 4, 8, 16):
        row = {"ranks": ranks}
        for who, name in (("everybody", "sync_sgd"), ("owners", "zero1")):
            done = run(
                algorithm=name,
                update="adam",
                learning_rate=0.01,
                hidden="512,256",
                workers=ranks,
                batch=64 // ranks,
                steps=10,
                network="HDR",
                evaluations=1,
            )
            step = MS * done.trace.seconds() / 10
            row |= {f"step, {who}": step, f"update, {who}": step * done.summary["share_update"]}
            row["gradient"] = step * done.summary["share_compute"]
        yield row


@figure(
    "How much of Adam's state does a rank keep when the update is sharded?",
    source="Rajbhandari et al., SC 2020; Sridharan et al., arXiv:1801.08030",
    claims={
        "each of N ranks keeps an Nth of Adam's state": lambda rows: all(
            abs(row["kB of Adam, zero1"] * row["ranks"] / row["kB of Adam, sync_sgd"] - 1) < 0.01 for row in rows
        ),
        "zero1 and sync_sgd send the same number of bytes": lambda rows: (
            column(rows, "MB, zero1") == column(rows, "MB, sync_sgd")
        ),
        "zero1 and sync_sgd train bit-identical models": lambda rows: all(row["same model"] for row in rows),
    },
    look=Look("ranks", ("kB of Adam, sync_sgd", "kB of Adam, zero1"), log="xy", title="kB of Adam's moments on a rank"),
)
def distributed_update(run):
    """Synchronous training on digits with Adam for 20 steps. Each rank updates the whole model (sync_sgd) or its shard
    (zero1).
    """
    for ranks in (1, 2, 4, 8):
        done = {
            name: run(algorithm=name, update="adam", learning_rate=0.01, workers=ranks, steps=20, evaluations=1)
            for name in ("sync_sgd", "zero1")
        }
        w = done["zero1"].parameters
        yield (
            {
                "ranks": ranks,
                "same model": bool(np.array_equal(w, done["sync_sgd"].parameters)),
            }
            | {f"kB of Adam, {name}": float(run.peaks()[:, ADAM].max()) / 1e3 for name, run in done.items()}
            | {f"MB, {name}": float(run.trace.traffic().sum()) / 1e6 for name, run in done.items()}
        )


@figure(
    "By what factor does a rank need less memory when the update is sharded?",
    source="Rajbhandari et al., SC 2020, sections 5 and 7",
    claims={
        "in single precision measurements agree with the formula within 2 %": lambda rows: all(
            abs(row["float32, measured"] / row["float32, formula"] - 1) < 0.02 for row in rows
        ),
        "in single precision the factor stays below 2, however many ranks there are": lambda rows: all(
            row["float32, measured"] < 2 for row in rows
        ),
        "in mixed precision the factor is less than 4": lambda rows: all(row["mixed, formula"] < 4 for row in rows),
        "eight ranks have at least three quarters of the possible gain in single precision": lambda rows: (
            value(rows, "float32, measured", ranks=8) - 1 > 0.75
        ),
    },
    look=Look(
        "ranks",
        ("float32, measured", "mixed, formula"),
        theory=("float32, formula",),
        log="x",
        title="factor by which a rank needs less memory, without activations",
    ),
)
def how_much_less(run):
    """The memory of weights, gradients and moments on a rank of synchronous SGD, divided by that on a rank of ZeRO-1.
    Adam trains on digits.

    The simulator computes in single precision, so mixed precision is by formula only.
    """
    for ranks in (1, 2, 4, 8, 16, 32, 64):
        held = []
        for name in ("sync_sgd", "zero1"):
            done = run(
                algorithm=name, update="adam", learning_rate=0.01, workers=ranks, batch=1, steps=2, evaluations=1
            )
            held.append(float(done.peaks()[:, STATES].sum(axis=1).max()))
        row = {"ranks": ranks, "float32, measured": held[0] / held[1]}
        for kind, recipe in {"float32": "float32 Adam", "mixed": "mixed Adam"}.items():
            whole, sharded = (nbytes(len(done.parameters), ranks, stage, RECIPES[recipe]) for stage in (0, 1))
            row[f"{kind}, formula"] = whole / sharded
        yield row


@figure(
    "When does gradient accumulation pay?",
    source="Goyal et al., arXiv:1706.02677; no_sync() of PyTorch's DistributedDataParallel",
    claims={
        "on a slow network, eight mini-batches per exchange more than halve the time per mini-batch": lambda rows: (
            ratio(rows, "ms per mini-batch", network="1GbE", accumulate=(8, 1)) < 1 / 2
        ),
        "on a fast network eight mini-batches gain less than half of what they gain on a slow one": (
            lambda rows: gain(rows, "HDR") < gain(rows, "1GbE") / 2
        ),
    },
    look=Look("accumulate", ("ms per mini-batch",), "network", log="xy", title="milliseconds of a mini-batch"),
)
def accumulated(run):
    """Eight workers train on digits for 120 mini-batches each, all at the same learning rate."""
    for network in ("1GbE", "HDR"):
        for accumulate in (1, 2, 4, 8):
            done = run(
                algorithm="accumulation",
                accumulate=accumulate,
                learning_rate=0.2,
                workers=8,
                batch=8,
                steps=120,
                network=network,
                evaluations=1,
            )
            yield {
                "network": network,
                "accumulate": accumulate,
                "ms per mini-batch": MS * done.trace.seconds() / 120,
                "MB": float(done.trace.traffic().sum()) / 1e6,
                "loss": done.summary["held_out_loss"],
            }


def gain(rows, network):
    per_mini_batch = column(rows, "ms per mini-batch", network=network)
    return per_mini_batch[0] / per_mini_batch[-1]


@figure(
    "Does a rate that grows with the batch win back what accumulation loses?",
    source="Goyal et al., arXiv:1706.02677, section 2.1",
    claims={
        "at the same rate, the loss with eight mini-batches per update is over four times that with one": lambda rows: (
            rows[-1]["loss, same rate"] > 4 * rows[0]["loss, same rate"]
        ),
        "at a rate multiplied by their number, the loss with up to four per update is under 1.5 times that with one": (
            lambda rows: all(row["loss, scaled rate"] < 1.5 * rows[0]["loss, scaled rate"] for row in rows[:-1])
        ),
        "even at the multiplied rate, the loss with eight mini-batches per update exceeds that with one": lambda rows: (
            rows[-1]["loss, scaled rate"] > rows[0]["loss, scaled rate"]
        ),
    },
    look=Look(
        "accumulate", ("loss, same rate", "loss, scaled rate"), log="xy", title="held-out loss after 240 mini-batches"
    ),
)
def accumulated_and_scaled(run):
    """Eight workers train on digits for 240 mini-batches of 8 images each, on a slow network (1GbE). The learning rate
    is 0.05 for any batch, or 0.05 times the number of mini-batches in an update.
    """
    for accumulate in (1, 2, 4, 8):
        row = {"accumulate": accumulate}
        for kind, rate in {"same": 0.05, "scaled": 0.05 * accumulate}.items():
            done = run(
                algorithm="accumulation",
                accumulate=accumulate,
                learning_rate=rate,
                workers=8,
                batch=8,
                steps=240,
                network="1GbE",
                evaluations=1,
            )
            row[f"loss, {kind} rate"] = done.summary["held_out_loss"]
        yield row | {"updates": done.updates, "ms per mini-batch": MS * done.trace.seconds() / 240}


@figure(
    "Can an update rule be applied to each piece of a matrix separately?",
    source="Jordan et al., 2024; Liu, Su et al., arXiv:2502.16982",
    claims={
        "Adam's step does not depend on the number of pieces": lambda rows: all(row["Adam"] == 0 for row in rows),
        "with two pieces Muon's step differs from the whole matrix's by more than a tenth of its length": lambda rows: (
            value(rows, "Muon", pieces=2) > 10
        ),
        "Muon's error grows with the number of pieces": lambda rows: is_rising(column(rows, "Muon")),
    },
    look=Look(
        "pieces", ("Adam", "Muon"), log="x", title="distance from the whole matrix's step, percent of its length"
    ),
)
def a_cut_matrix(run):
    """How far the step for a hidden 64 x 64 matrix changes if each rank computes it for its own rows only. The gradient
    is the first one on digits.
    """
    values = {"algorithm": "sgd", "workers": 1, "batch": 64, "hidden": "64,64", "steps": 1, "learning_rate": 0.1}
    g = run(**values, evaluations=1, worker_override=_gradient).parameters[64 * 64 + 64 :][: 64 * 64].reshape(64, 64)
    for pieces in (1, 2, 4, 8):
        row = {"pieces": pieces}
        for name, step in (("Adam", np.sign), ("Muon", orthogonal)):  # Adam's first step is the sign of the gradient
            cut = np.concatenate([step(rows) for rows in np.split(g, pieces)])
            row[name] = float(100 * np.linalg.norm(cut - step(g)) / np.linalg.norm(step(g)))
        yield row


def _gradient(comm, task, s):
    """Report the gradient at the initial weights, in place of a model."""
    for _ in task.steps():
        task.report(task.gradient(task.start())[1])


@figure(
    "How many ranks can share the update of four matrices?",
    source="Liu, Su et al., arXiv:2502.16982",
    claims={
        "up to four ranks, Muon's step takes 1/N of the time on N ranks, within 10 %": lambda rows: all(
            abs(row["step, Muon"] * row["ranks"] / rows[0]["step, Muon"] - 1) < 0.1 for row in rows if row["ranks"] <= 4
        ),
        "from 4 to 16 ranks the time of Muon's step changes by less than 5 %": lambda rows: (
            abs(ratio(rows, "step, Muon", ranks=(16, 4)) - 1) < 0.05
        ),
        "with ZeRO-1 every doubling of the ranks shortens the step": lambda rows: is_falling(
            column(rows, "step, ZeRO-1")
        ),
        "with Muon the fullest of 16 ranks keeps more than twice as much state as with ZeRO-1": lambda rows: (
            rows[-1]["kB, Muon"] > 2 * rows[-1]["kB, ZeRO-1"]
        ),
        "with Muon all ranks together send as many bytes as with ZeRO-1, but the busiest of 16 over twice as many": (
            lambda rows: (
                all(abs(row["MB, Muon"] - row["MB, ZeRO-1"]) < 0.01 for row in rows)
                and rows[-1]["MB of the busiest, Muon"] > 2 * rows[-1]["MB of the busiest, ZeRO-1"]
            )
        ),
    },
    look=Look("ranks", ("step, Muon", "step, ZeRO-1"), log="xy", title="milliseconds per step"),
)
def owners_of_matrices(run):
    """The time of a step of a dense model with five layers of 256 units, and so with four hidden matrices. The ranks
    share the 64 images of every step, on a fast network (HDR).

    The table also shows the optimizer state on the fullest rank, and the bytes sent per step, by all ranks together and
    by the one that sends most.
    """
    for ranks in (1, 2, 4, 8, 16):
        row = {"ranks": ranks}
        for who, rule in (("Muon", {"algorithm": "muon"}), ("ZeRO-1", {"algorithm": "zero1", "update": "adam"})):
            done = run(
                **rule, learning_rate=0.005, hidden="256,256,256,256,256", workers=ranks, batch=64 // ranks, steps=2,
                network="HDR", evaluations=1,
            )  # fmt: skip
            sent = done.trace.traffic().sum(axis=1) / 2e6
            row |= {
                f"step, {who}": MS * done.trace.seconds() / 2,
                f"kB, {who}": float(done.peaks()[:, ADAM].max()) / 1e3,
                f"MB, {who}": float(sent.sum()),
                f"MB of the busiest, {who}": float(sent.max()),
            }
        yield row


RATES = {  # on average over ten seeds, the best is neither the first nor the last
    "Nesterov": ({"algorithm": "sync_sgd", "update": "nesterov"}, (0.02, 0.04, 0.08, 0.16)),
    "Adam": ({"algorithm": "sync_sgd", "update": "adam"}, (0.004, 0.008, 0.016)),
    "Muon": ({"algorithm": "muon"}, (0.004, 0.008, 0.016, 0.032)),
}


@figure(
    "Does a rule that uses whole matrices reach a lower loss?",
    source="Jordan et al., 2024",
    claims={
        "with each rule at its own best rate, Muon's loss is less than a fifth above Nesterov's or Adam's": (
            lambda rows: all(lowest(rows, "Muon") < 1.2 * lowest(rows, other) for other in ("Nesterov", "Adam"))
        ),
    },
    look=Look("rate", ("loss",), "rule", log="xy", title="training loss in the third epoch"),
)
def whole_matrices(run):
    """A dense model with four layers of 64 units trains on digits for three epochs in batches of 64, at several
    learning rates per update rule.
    """
    for rule, (settings, rates) in RATES.items():
        for rate in rates:
            done = run(
                **settings, learning_rate=rate, workers=1, batch=64, hidden="64,64,64,64", steps=66, evaluations=1
            )
            yield {"rule": rule, "rate": rate, "loss": float(done.losses["loss"][-22:].mean())}


def lowest(rows, rule):
    return min(column(rows, "loss", rule=rule))

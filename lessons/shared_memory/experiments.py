"""Shared memory: threads that update one vector without locks, where they interfere, and where they do not.

All figures come from the simulated cluster, where every read and every write has its time, so that the writes in
between can be counted; on real threads the same code runs at full speed, and nothing is counted.
"""

from __future__ import annotations

import numpy as np

from lessons.figure import Look, column, figure, value

ROWS = {"workload": "sparse", "rows": 4096, "nonzeros": 8, "batch": 16, "evaluations": 2, "learning_rate": 0.5}
GAP = {"workload": "sparse", "rows": 1024, "features": 200, "nonzeros": 8, "l2": 1e-3, "judged": "gap"}


def _shares(done):
    """Of the coordinates written: the part that another had written since the look, and the part that was lost."""
    return {name: float(done.measured(name)["value"].mean()) for name in ("conflicts", "lost")}


@figure(
    "How sparse must samples be for threads not to interfere?",
    source="Niu, Recht, Re & Wright, 2011; the simulated version is ours",
    claims={
        "with ten times the features a write conflicts about a tenth as often": lambda rows: all(
            5 < few / many < 20
            for few, many in zip(
                column(rows, "conflicts", skew=0.0), column(rows, "conflicts", skew=0.0)[1:], strict=False
            )
        ),
        "popular features cause conflicts: at 10,000 features over ten times as many as without skew": lambda rows: (
            value(rows, "conflicts", features=10_000, skew=1.0)
            > 10 * value(rows, "conflicts", features=10_000, skew=0.0)
        ),
        "fewer additions are lost than there are conflicts": lambda rows: all(
            row["lost"] < row["conflicts"] for row in rows
        ),
    },
    look=Look("features", ("conflicts", "lost"), "skew", log="xy", title="fraction of the coordinates written"),
)
def conflicts_against_sparsity(run):
    """Eight threads, rows with eight features out of more and more; with skew 1 feature v is drawn 1/v times as often.

    A conflict is a coordinate that another thread writes between a thread's read and its own write: the gradient was
    computed from a stale value. An addition is lost only if the two writes themselves overlap.
    """
    rows = []
    for skew in (0.0, 1.0):
        for features in (100, 1000, 10_000):
            done = run(algorithm="hogwild", workers=8, features=features, skew=skew, steps=16, **ROWS)
            rows.append({"skew": skew, "features": features, **_shares(done)})
    return rows


@figure(
    "What does each further thread cost?",
    source="Niu, Recht, Re & Wright, 2011; the simulated version is ours",
    claims={
        "conflicts grow in proportion to the number of other threads": lambda rows: all(
            0.7 < row["conflicts"] / (row["threads"] - 1) / (rows[1]["conflicts"] / (rows[1]["threads"] - 1)) < 1.3
            for row in rows[1:]
        ),
        "between a read and its write each other thread writes about once": lambda rows: all(
            abs(row["staleness"] - (row["threads"] - 1)) <= 0.1 * row["threads"] for row in rows
        ),
        "time still falls almost in proportion to the threads": lambda rows: (
            rows[-1]["microseconds"] < 1.3 * rows[0]["microseconds"] / rows[-1]["threads"]
        ),
        "and the final loss is the same within 3 %": lambda rows: (
            max(column(rows, "loss")) < 1.03 * min(column(rows, "loss"))
        ),
    },
    look=Look("threads", ("conflicts", "lost"), title="fraction of the coordinates written"),
)
def conflicts_against_workers(run):
    """4,096 rows, each with eight of 2,000 features; the same number of samples for 1 to 16 threads.

    That cores share memory bandwidth is not simulated here, so the speed-up is an upper bound.
    """
    rows = []
    for threads in (1, 2, 4, 8, 16):
        done = run(algorithm="hogwild", workers=threads, features=2000, epochs=1, steps=None, **ROWS)
        rows.append(
            {
                "threads": threads,
                **_shares(done),
                "staleness": float(done.applied["staleness"].mean()),
                "microseconds": 1e6 * float(done.losses["seconds"].max()),
                "loss": done.summary["held_out_loss"],
            }
        )
    return rows


@figure(
    "What do lost additions cost?",
    source="a finding of ours on the simulated cluster; the failure is Hogwild's on dense problems",
    claims={
        "the descent equals the fraction of additions that is not lost, within 5 %": lambda rows: all(
            abs(row["descent"] / row["not lost"] - 1) < 0.05 for row in rows
        ),
        "atomic additions lose nothing": lambda rows: all(row["not lost"] == 1 for row in rows if row["atomic"]),
        "without them, the more threads, the more is lost": lambda rows: (
            np.diff(column(rows, "not lost", atomic=False)) < 0
        ).all(),
    },
    look=Look("threads", ("descent",), "atomic", theory=("not lost",), title="descent, relative to one thread"),
)
def lost_additions(run):
    """A round bowl in a thousand dimensions, where every write covers the whole vector; a rate so small that stale
    gradients are as good as fresh ones.

    `descent` is how far all threads together descend, relative to one thread on the same number of samples. Lost
    additions do not mislead; they are steps not made: a smaller rate at the full price.

    How much is lost is within a factor of two of what two cores lose that share a cache; cores farther apart lose up to
    five times as much. That it grows with the threads does not depend on it.
    """
    bowl = {"workload": "quadratic", "dimension": 1000, "condition": 1, "points": 2048, "precision": "float64"}
    rows = []
    for atomic in (False, True):
        for threads in (1, 2, 4, 8):
            done = run(
                algorithm="hogwild", workers=threads, batch=16, epochs=1, steps=None, learning_rate=1e-4,
                atomic=atomic, evaluations=2, **bowl,
            )  # fmt: skip
            loss, samples = done.evaluations["loss"], 2048 // (16 * threads) * 16 * threads
            descent = float(np.log(loss[0] / loss[-1]) / 2 / -np.log(1 - 1e-4) / samples)
            kept = 1 - _shares(done)["lost"]
            rows.append({"atomic": atomic, "threads": threads, "descent": descent, "not lost": kept})
    return rows


@figure(
    "How many samples should a thread accumulate before it writes?",
    source="Sallinen, Satish, Smelyanskiy, Sury & Re, 2016",
    claims={
        "the more, the less is written, and the shorter is an epoch": lambda rows: all(
            (np.diff(column(rows, quantity)) < 0).all() for quantity in ("written", "epoch")
        ),
        "the samples needed to come within 0.02 of the minimum differ by a factor below 1.7": lambda rows: (
            max(column(rows, "samples")) < 1.7 * min(column(rows, "samples"))
        ),
        "so 64 at a time take less than three quarters of the time of single samples": lambda rows: (
            value(rows, "time", per_write=64) < 0.75 * value(rows, "time", per_write=1)
        ),
    },
    look=Look("per_write", ("time", "epoch"), log="xy", title="microseconds"),
)
def samples_per_write(run):
    """Four threads, rows that mostly share the same few features, one rate per sample; until the objective is within
    0.02 of its minimum.

    `written` is in coordinates per sample, times are microseconds of the simulated clock. That clock does not charge
    for a coordinate that another core has just written. This cost is why accumulation gained up to twenty times in the
    paper; here it gains less.
    """
    rows = []
    for per_write in (1, 4, 16, 64):
        done = run(
            algorithm="hogbatch",
            workers=4,
            batch=64,
            per_write=per_write,
            epochs=8,
            steps=None,
            learning_rate=0.3,
            evaluations=40,
            skew=1.0,
            **GAP,
        )
        tried = done.evaluations
        near = np.flatnonzero(tried["loss"] <= 0.02)[0]
        rows.append(
            {
                "per_write": per_write,
                "written": float(done.measured("written")["value"].mean()),
                "lost": _shares(done)["lost"],
                "epoch": 1e6 * float(tried["seconds"][-1]) / 8,
                "samples": int(tried["samples"][near]),
                "time": 1e6 * float(tried["seconds"][near]),
            }
        )
    return rows


def _slopes(rows):
    """How much the logarithm of AsySVRG's gap falls with a pass, from row to row."""
    gap, passes = (column(rows, quantity, method="AsySVRG") for quantity in ("gap", "passes"))
    return -np.diff(np.log(gap)) / np.diff(passes)


@figure(
    "Do threads without locks reach the optimum?",
    source="Zhao & Li, 2016",
    claims={
        "Hogwild at a constant rate stalls well above it": lambda rows: (
            column(rows, "gap", method="Hogwild")[-1] > 0.3 * column(rows, "gap", method="Hogwild")[2]
        ),
        "at a decaying rate it gets closer, more and more slowly": lambda rows: (
            column(rows, "gap", method="Hogwild, 0.8 per epoch")[-1] < column(rows, "gap", method="Hogwild")[-1] / 5
            and column(rows, "gap", method="Hogwild, 0.8 per epoch")[-1]
            > column(rows, "gap", method="Hogwild, 0.8 per epoch")[-2] / 3
        ),
        "AsySVRG shrinks the gap by about the same factor in every pass": lambda rows: (
            max(_slopes(rows)) < 2 * min(_slopes(rows))
        ),
        "it starts worse, and ends over a thousand times closer": lambda rows: (
            column(rows, "gap", method="AsySVRG")[0] > column(rows, "gap", method="Hogwild")[0]
            and column(rows, "gap", method="AsySVRG")[-1]
            < column(rows, "gap", method="Hogwild, 0.8 per epoch")[-1] / 1000
        ),
    },
    look=Look("passes", ("gap",), "method", log="y", title="objective above its minimum"),
)
def gap_per_pass(run):
    """Four threads on 1,024 sparse rows with an L2 penalty; passes count gradients computed, of which AsySVRG needs
    five for every three samples.

    The noise of single samples does not vanish at the optimum, so at a constant rate the model keeps moving around it.
    """
    methods = {
        "Hogwild": {"algorithm": "hogwild", "learning_rate": 0.5},
        "Hogwild, 0.8 per epoch": {"algorithm": "hogwild", "learning_rate": 0.5, "back_off": 0.8},
        "AsySVRG": {"algorithm": "async_svrg", "learning_rate": 1.0},
    }
    rows = []
    for method, values in methods.items():
        gradients = 5 / 3 if method == "AsySVRG" else 1  # for a look at a sample, each of which counts as one
        done = run(
            workers=4,
            batch=8,
            steps=None,
            epochs=25 / gradients,
            evaluations=5,
            precision="float64",
            **GAP,
            **values,
        )
        for samples, gap in zip(done.evaluations["samples"][1:], done.evaluations["loss"][1:], strict=True):
            rows.append({"method": method, "passes": float(samples) / 1024, "gap": float(gap)})
    return rows

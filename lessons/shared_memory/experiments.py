"""Shared memory: threads that update one vector without locks, where they interfere, and where they do not.

All figures come from the simulated cluster, where every read and every write has its time, so the writes in between can
be counted. On real threads the same code runs at full speed, and nothing is counted.
"""

from math import inf
from statistics import fmean

import numpy as np

from lessons.figure import Look, column, figure, interior, is_falling, ratio, value
from lessons.shared_memory.closed_forms import SparseRows

ROWS = {"workload": "sparse", "nonzeros": 8, "evaluations": 2, "epochs": 1, "steps": None, "learning_rate": 0.5}


def shares(done):
    """Return two fractions of the coordinates written: "conflicts", which another thread wrote between the read and the
    write, and "lost", whose write overwrote another thread's addition.
    """
    return {name: float(done.measurements(name)["value"].mean()) for name in ("conflicts", "lost")}


def per_second(done):
    """Return the throughput of all threads together, in samples per second. Each thread is timed until its own last
    step.
    """
    losses = done.losses
    return sum(
        losses["samples"][losses["rank"] == rank].max() / losses["seconds"][losses["rank"] == rank].max()
        for rank in set(losses["rank"])
    )


@figure(
    "Are sixteen threads faster than one?",
    source="Niu, Recht, Re & Wright, 2011, for the shape of the curve; the simulated version is ours",
    claims={
        "without a lock sixteen threads process at least thirteen times as many samples a second as one": lambda rows: (
            value(rows, "speed-up", threads=16, lock="none") > 13
        ),
        "with one lock for all, no number of threads is even a quarter faster than one": lambda rows: (
            max(column(rows, "speed-up", lock="one for all")) < 1.25
        ),
        "the speed-up agrees with its closed form within a fifth": lambda rows: all(
            abs(row["speed-up"] / row["at most"] - 1) < 0.2 for row in rows
        ),
    },
    look=Look(
        "threads",
        ("speed-up",),
        "lock",
        theory=("at most",),
        log="xy",
        title="samples per second, relative to one thread",
    ),
)
def speed_up(run):
    """The speed-up of 1 to 16 threads on the same number of samples, on rows with eight of 2,000 features. It is
    measured once with a lock that a thread holds while it reads and while it writes, and once without.

    `at most`: N threads are N times as fast, and a lock lets through one step in the time for which it is held. Neither
    shared memory bandwidth nor the cost of taking a lock is simulated.
    """
    rows, law = [], SparseRows(2000)
    for lock in ("none", "one for all"):
        for threads in (1, 2, 4, 8, 16):
            done = run(
                algorithm="hogwild", workers=threads, locked=lock != "none", rows=512, features=2000, batch=32, **ROWS
            )
            rows.append({"lock": lock, "threads": threads, "speed": per_second(done)})
    alone = rows[0]["speed"]
    for row in rows:
        row["speed-up"] = row.pop("speed") / alone
        row["at most"] = float(row["threads"] if row["lock"] == "none" else min(row["threads"], 1 / alone / law.lock))
    return rows


@figure(
    "How sparse must samples be for threads not to collide?",
    source="Niu, Recht, Re & Wright, 2011; the closed form is elementary",
    claims={
        "with four times the features a write conflicts about a quarter as often": lambda rows: all(
            2 < few / many < 6
            for few, many in zip(
                column(rows, "conflicts", skew=0.0), column(rows, "conflicts", skew=0.0)[1:], strict=False
            )
        ),
        "popular features cause conflicts: at 3,200 features over ten times as many as without skew": lambda rows: (
            ratio(rows, "conflicts", features=3200, skew=(1.0, 0.0)) > 10
        ),
        "where the closed form predicts conflicts in over 1 % of writes, it is right within a quarter": (
            lambda rows: all(
                abs(row["conflicts"] / row["closed form"] - 1) < 0.25 for row in rows if row["closed form"] > 0.01
            )
        ),
    },
    look=Look(
        "features", ("conflicts",), "skew", theory=("closed form",), log="xy", title="conflicts per coordinate written"
    ),
)
def conflicts_against_sparsity(run):
    """Conflicts of eight threads, on rows with eight out of a growing number of features. With skew 1, the v-th feature
    is drawn 1/v times as often as the first.

    A conflict is a coordinate that another thread writes between a thread's read and its own write: the gradient was
    computed from a stale value.
    """
    for skew in (0.0, 1.0):
        for features in (50, 200, 800, 3200):
            done = run(algorithm="hogwild", workers=8, features=features, skew=skew, rows=512, batch=32, **ROWS)
            law = SparseRows(features, skew=skew)
            yield {
                "skew": skew,
                "features": features,
                "conflicts": shares(done)["conflicts"],
                "closed form": law.conflicts(8),
            }


@figure(
    "How many additions are lost?",
    source="a measurement of ours on the simulated cluster; the closed forms are elementary",
    claims={
        "an addition is lost less than a fifth as often as a write conflicts": lambda rows: all(
            row["lost"] < row["conflicts"] / 5 for row in rows
        ),
        "conflicts agree with their closed form within a fifth": lambda rows: all(
            abs(row["conflicts"] / row["conflicts, closed form"] - 1) < 0.2 for row in rows
        ),
        "with eight or more threads, 0.6 to 1 times as many additions are lost as the closed form says": (
            lambda rows: all(0.6 < row["lost"] / row["lost, closed form"] < 1 for row in rows[2:])
        ),
        "between a read and its write every other thread writes about once": lambda rows: all(
            abs(row["staleness"] - (row["threads"] - 1)) <= 0.2 * row["threads"] for row in rows
        ),
    },
    look=Look(
        "threads",
        ("conflicts", "lost"),
        theory=("conflicts, closed form", "lost, closed form"),
        log="xy",
        title="fraction of the coordinates written",
    ),
)
def conflicts_against_workers(run):
    """Conflicts and lost additions of 2 to 16 threads on the same number of samples, on rows with eight of 200
    features.

    An addition is lost only if two writes to one coordinate overlap: both threads have loaded the old value before
    either stores.
    """
    for threads in (2, 4, 8, 16):
        done = run(algorithm="hogwild", workers=threads, features=200, rows=1024, batch=64, **ROWS)
        law = SparseRows(200)
        yield {
            "threads": threads,
            **shares(done),
            "conflicts, closed form": law.conflicts(threads),
            "lost, closed form": law.lost_fraction(threads, threads / per_second(done)),
            "staleness": float(done.applied["staleness"].mean()),
        }


KINDS = {
    "sparse": {"features": 400, "nonzeros": 8},
    "dense": {"features": 8, "nonzeros": 40},  # enough draws of eight that hardly any is missing
}
SMALL, RATES = 0.25, (0.25, 1.0, 4.0)


@figure(
    "Does the model notice stale reads and lost additions?",
    source="a comparison of ours",
    claims={
        "on sparse rows, at a small rate, sixteen threads are at most 5 % behind one": lambda rows: (
            value(rows, "behind", samples="sparse, small rate", additions="plain") < 1.05
        ),
        "at the best rate sixteen threads are at most 30 % behind one, and with atomic additions at most 10 %": (
            lambda rows: (
                value(rows, "behind", samples="sparse, best rate", additions="plain") < 1.3
                and value(rows, "behind", samples="sparse, best rate", additions="atomic") < 1.1
            )
        ),
        "on dense rows, at a small rate, plain additions end over 1.05 times as far above the minimum as atomic ones": (
            lambda rows: ratio(rows, "behind", samples="dense, small rate", additions=("plain", "atomic")) > 1.05
        ),
    },
    look=Look(
        "samples", ("behind",), "additions", kind="bar", title="objective above its minimum, relative to one thread"
    ),
)
def nobody_notices(run):
    """How far above its minimum the objective ends with sixteen threads on 512 samples, relative to one thread on the
    same samples. Sparse rows have eight of 400 features, and dense ones all of eight features.

    The best learning rate is the middle one of three, for one thread and for sixteen. At that learning rate the noise
    of single samples dominates on dense rows, so only the small one is shown for them.
    """
    for kind, rates in (("sparse", RATES), ("dense", (SMALL,))):
        one = {rate: gap(run, kind, 1, rate) for rate in rates}
        for additions in ("plain", "atomic"):
            many = {rate: gap(run, kind, 16, rate, additions == "atomic") for rate in rates}
            yield {"samples": f"{kind}, small rate", "additions": additions, "behind": many[SMALL] / one[SMALL]}
            if len(rates) > 1:
                behind = many[interior(many)] / one[interior(one)]
                yield {"samples": f"{kind}, best rate", "additions": additions, "behind": behind}


def gap(run, kind, threads, rate, atomic=False):
    """Return how far the objective is above its minimum after one pass."""
    values = ROWS | KINDS[kind] | {"learning_rate": rate, "l2": 1e-3, "judged": "gap"}
    done = run(algorithm="hogwild", workers=threads, atomic=atomic, rows=512, batch=32, **values)
    return done.summary["held_out_loss"]


@figure(
    "What do lost additions cost?",
    source="a finding of ours on the simulated cluster",
    claims={
        "the descent equals the fraction of additions that is not lost, within 5 %": lambda rows: all(
            abs(row["descent"] / row["not lost"] - 1) < 0.05 for row in rows
        ),
        "atomic additions lose nothing": lambda rows: all(
            row["not lost"] == 1 for row in rows if row["additions"] == "atomic"
        ),
        "without atomics, the more threads, the more is lost": lambda rows: is_falling(
            column(rows, "not lost", additions="plain")
        ),
    },
    look=Look("threads", ("descent",), "additions", theory=("not lost",), title="descent, relative to one thread"),
)
def lost_additions(run):
    """A round bowl in a thousand dimensions, where every write covers the whole vector. The learning rate is so small
    that stale gradients are as good as fresh ones.

    `descent` is how far all threads together descend, relative to one thread on the same number of samples. Lost
    additions do not mislead: they are steps not taken, like a smaller rate at the full price.

    How much is lost depends on the simulator: real threads lose whole cache lines, and lose between a twentieth and
    four times as much. In any case, more threads lose more.
    """
    bowl = {"workload": "quadratic", "dimension": 1000, "condition": 1, "points": 512, "precision": "float64"}
    for additions in ("plain", "atomic"):
        for threads in (1, 2, 4, 8):
            done = run(
                algorithm="hogwild", workers=threads, batch=16, epochs=1, steps=None, learning_rate=1e-4,
                atomic=additions == "atomic", evaluations=2, **bowl,
            )  # fmt: skip
            loss, samples = done.evaluations["loss"], 512 // (16 * threads) * 16 * threads
            descent = float(np.log(loss[0] / loss[-1]) / 2 / -np.log(1 - 1e-4) / samples)
            kept = 1 - shares(done)["lost"]
            yield {"additions": additions, "threads": threads, "descent": descent, "not lost": kept}


@figure(
    "How many writes are saved if a thread gathers several rows before it writes?",
    source="Sallinen, Satish, Smelyanskiy, Sury & Re, 2016; the closed form is elementary",
    claims={
        "measurements agree with the closed form within 6 %": lambda rows: all(
            abs(row["written"] / row["closed form"] - 1) < 0.06 for row in rows
        ),
        "with skew, 64 rows at a time write less than a third of what single rows write": lambda rows: (
            ratio(rows, "written", skew=1.0, gathered=(64, 1)) < 1 / 3
        ),
        "without skew, 64 rows at a time write more than 0.9 of what single rows write": lambda rows: (
            ratio(rows, "written", skew=0.0, gathered=(64, 1)) > 0.9
        ),
    },
    look=Look("gathered", ("written",), "skew", theory=("closed form",), log="x", title="coordinates written per row"),
)
def written_per_row(run):
    """Coordinates written per row, if 1 to 64 rows are gathered for one write. Rows have eight of 4,000 features
    without skew, or eight of 200 features with skew.

    A coordinate that several of the gathered rows share is written once.
    """
    for skew, features in ((0.0, 4000), (1.0, 200)):
        for per_write in (1, 8, 64):
            done = run(
                algorithm="hogbatch", workers=4, batch=64, per_write=per_write, rows=512, features=features,
                skew=skew, **ROWS,
            )  # fmt: skip
            written = float(done.measurements("written")["value"].mean())
            law = SparseRows(features, skew=skew).coordinates_written(per_write)
            yield {"skew": skew, "gathered": per_write, "written": written, "closed form": law}


GATHERING = {1: (0.3, 0.6, 1.2, 2.4), 8: (0.3, 0.6, 1.2, 2.4), 64: (0.15, 0.3, 0.6, 1.2)}  # rates tried
NEAR = 0.03  # above the minimum
REPEATED = 2  # one run of 24 steps is judged at only seven of them, so its result is a matter of luck


@figure(
    "How many samples should a thread gather before it writes?",
    source="Sallinen, Satish, Smelyanskiy, Sury & Re, 2016",
    claims={
        "each at its best rate, gathering 8 or 64 samples takes less time than writing after every one": lambda rows: (
            min(value(rows, "time", gathered=count) for count in (8, 64)) < 1
        ),
        "gathering 64 needs over 1.2 times as many samples as writing after every one": (
            lambda rows: value(rows, "samples", gathered=64) > 1.2
        ),
    },
    look=Look(
        "gathered",
        ("time", "samples"),
        log="x",
        title="time and samples until near the minimum, relative to one sample per write",
    ),
)
def samples_per_write(run):
    """Samples and time that four threads take until the objective is within 0.03 of its minimum, averaged over two
    runs. Rows mostly share the same few features.

    For each number of samples per write, the learning rate is the one of four that takes the fewest samples, and so the
    least time; it is never the smallest or largest. The simulated clock charges nothing for a coordinate that another
    core has just written, the very cost that the paper avoids.
    """
    rows = []
    for per_write, rates in GATHERING.items():
        done = {rate: [gather(run, per_write, rate, seed) for seed in range(REPEATED)] for rate in rates}
        tried = {rate: fmean(samples_until_near(one) for one in runs) for rate, runs in done.items()}
        best = interior(tried)
        speed = fmean(per_second(one) for one in done[best])
        rows.append({"gathered": per_write, "time": tried[best] / speed, "samples": tried[best], "rate": best})
    first = dict(rows[0])
    for row in rows:
        row |= {what: row[what] / first[what] for what in ("time", "samples")}
    return rows


def gather(run, per_write, rate, seed):
    return run(
        algorithm="hogbatch", workers=4, batch=64, per_write=per_write, epochs=1.5, steps=None, learning_rate=rate,
        evaluations=24, skew=1.0, workload="sparse", rows=1024, features=200, nonzeros=8, l2=1e-3, judged="gap",
        seed=seed,
    )  # fmt: skip


def samples_until_near(done):
    """Return how many samples it takes until the gap falls to NEAR; infinite if it never does. The logarithm of the gap
    is interpolated.
    """
    gap, samples = np.log(done.evaluations["loss"] / NEAR), done.evaluations["samples"]
    near = np.flatnonzero(gap <= 0)
    if not len(near):
        return inf
    before, after = gap[near[0] - 1], gap[near[0]]
    return float(samples[near[0] - 1] + before / (before - after) * (samples[near[0]] - samples[near[0] - 1]))


TO_THE_OPTIMUM = {
    "Hogwild, constant rate": {"algorithm": "hogwild", "learning_rate": 0.25},
    "Hogwild, falling rate": {"algorithm": "hogwild", "learning_rate": 0.5, "back_off": 0.8},
    "AsySVRG": {"algorithm": "async_svrg", "learning_rate": 0.5},
}


@figure(
    "Do threads without locks reach the optimum?",
    source="Zhao & Li, 2016",
    claims={
        "at a constant rate, Hogwild's gap shrinks less than threefold after its second point": lambda rows: (
            min(column(rows, "gap", method="Hogwild, constant rate")[1:])
            > column(rows, "gap", method="Hogwild, constant rate")[1] / 3
        ),
        "AsySVRG's gap shrinks over twentyfold after its third point, and ends the smallest, by a factor of three": (
            lambda rows: (
                column(rows, "gap", method="AsySVRG")[-1] < column(rows, "gap", method="AsySVRG")[2] / 20
                and 3 * column(rows, "gap", method="AsySVRG")[-1]
                < min(column(rows, "gap", method=f"Hogwild, {one} rate")[-1] for one in ("constant", "falling"))
            )
        ),
    },
    look=Look("passes", ("gap",), "method", log="y", title="objective above its minimum"),
)
def gap_per_pass(run):
    """The objective above its minimum, for four threads on 192 sparse rows with an L2 penalty. Passes count computed
    gradients; AsySVRG computes five for every three samples.

    The noise of single samples does not vanish at the optimum, so at a constant learning rate the model keeps moving
    around it. Compare the shapes: other learning rates move the lines, but the line of a constant one still bends.
    """
    for method, values in TO_THE_OPTIMUM.items():
        gradients = 5 / 3 if method == "AsySVRG" else 1  # per read of a sample, each of which counts as one
        tried = run(
            workers=4, batch=8, steps=None, epochs=20 / gradients, evaluations=6, precision="float64",
            workload="sparse", network="ideal", rows=192, features=64, nonzeros=8, l2=1e-2, judged="gap", **values,
        ).evaluations  # fmt: skip
        within = slice(1, -1)  # the last is at the end of a pass, where some of the noise has cancelled
        for samples, gap in zip(tried["samples"][within], tried["loss"][within], strict=True):
            yield {"method": method, "passes": float(samples) / 192, "gap": float(gap)}

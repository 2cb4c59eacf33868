"""Training in which workers take many steps alone, then exchange with one other worker instead of summing over all."""

from lessons.figure import Look, figure, ratio, value

LATE = {
    "all are late now and then": {"jitter": "exponential"},
    "one is three times as slow": {"slow": "7:3"},
}  # fmt: skip
METHODS = {"sum of all (DiLoCo)": "diloco", "in pairs (NoLoCo)": "noloco"}
BOWL = {
    "workload": "quadratic", "dimension": 20, "points": 512, "learning_rate": 0.2, "batch": 64, "evaluations": 1,
    "network": "ideal", "device": "1e9:1e15:0",
}  # fmt: skip


def step_time(run, method, late, **values):
    """Return the time per step of eight workers, as a multiple of the time of one undisturbed worker.

    The workers take an outer step after every four steps.
    """
    steps = {"algorithm": method, "workers": 8, "steps": 384, "period": 4, "update": "sgd"}
    done = run(**steps, **late, **values, **BOWL).summary["seconds"] / 384
    alone = run(algorithm="sgd", workers=1, steps=10, **BOWL).summary["seconds"] / 10
    return done / alone


@figure(
    "Who waits for whom if outer steps are taken in pairs?",
    source="Kolehmainen et al., 2025, on waiting for all or for one; the case of a slow worker is ours",
    claims={
        "if all workers are late now and then, pairs take less than nine tenths of the time of a sum": lambda rows: (
            0.9 * value(rows, "slowdown", late="all are late now and then", method="sum of all (DiLoCo)")
            > value(rows, "slowdown", late="all are late now and then", method="in pairs (NoLoCo)")
        ),
        "if one worker is always slow, pairs and a sum of all take the same time, within 5 %": lambda rows: (
            abs(ratio(rows, "slowdown", late="one is three times as slow", method=(*METHODS,)) - 1) < 0.05
        ),
    },
    look=Look("late", ("slowdown",), "method", kind="bar", title="time relative to one undisturbed worker"),
)
def waiting_in_pairs(run):
    """Eight workers take 96 outer steps, with four inner steps before each. The network takes no time, so all extra
    time is waiting.
    """
    for late, values in LATE.items():
        for method, algorithm in METHODS.items():
            yield {"late": late, "method": method, "slowdown": step_time(run, algorithm, values)}


@figure(
    "What keeps models together if they are averaged only in pairs?",
    source="Kolehmainen et al., 2025; the measurements on digits are ours",
    claims={
        "without a spring the mean squared distance is over five times that with a pull of 1": lambda rows: (
            ratio(rows, "apart", pull=(0.0, 1.0)) > 5
        ),
        "a spring that is too soft or too stiff leaves models farther apart than a pull of 1": lambda rows: (
            value(rows, "apart", pull=1.0) < min(value(rows, "apart", pull=0.25), value(rows, "apart", pull=1.8)) / 1.2
        ),
    },
    look=Look("pull", ("apart",), log="y", title="mean squared distance from the mean"),
)
def springs_in_pairs(run):
    """NoLoCo on digits with Adam as the inner optimizer. Eight workers make 16 exchanges, with ten steps before each,
    and use an outer momentum of 0.5.

    The distance is averaged over the last eight evaluations before the end.
    """
    for pull in (0.0, 0.25, 0.5, 1.0, 1.4, 1.8):
        done = run(
            algorithm="noloco", pull=pull, workers=8, batch=16, hidden="32", steps=160, period=10, outer_momentum=0.5,
            learning_rate=0.01, network="ideal", evaluations=16,
        )  # fmt: skip
        apart = float(done.evaluations["spread"][8:16].mean())
        yield {"pull": pull, "apart": apart, "loss": done.summary["held_out_loss"]}

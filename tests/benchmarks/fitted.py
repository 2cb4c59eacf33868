"""The simulated cluster, fitted to this machine, against real processes on it. `python -m tests.benchmarks.fitted`

Step times of two ranks with messages above 1 MB (an MLP of 64-1024-1024-10, 4.5 MB of parameters), and whether the
strategies come in the same order. A step is the median of a run; each strategy is run a few times in turn with the
others, and its quickest run counts, since whatever else the machine does only slows down.

A machine that is quiet itself may have a host that is not, and then is quicker in one minute than in the next. So it is
fitted before the runs, between them and after them, and the median of the three predictions is held against the runs.

Two strategies have an order if a measurement can tell them apart: the medians of their runs differ by more than the
runs of either do, the middle half of them.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import os  # noqa: E402
import tempfile  # noqa: E402
from itertools import combinations  # noqa: E402
from statistics import median, quantiles  # noqa: E402

from experiments.execution.run import run  # noqa: E402
from experiments.measure.fit import fit  # noqa: E402
from experiments.runs.record import Run  # noqa: E402
from experiments.specification.experiment import Experiment  # noqa: E402
from experiments.viewer.curves import step_time  # noqa: E402

STRATEGIES = {
    "sync_sgd": {},
    "zero1": {"update": "sgd"},
    "local_sgd, period 8": {"algorithm": "local_sgd", "period": 8},
    "dpsgd": {},
    "sync_sgd, recursive doubling": {"algorithm": "sync_sgd", "collective": "recursive_doubling"},
}
SERVED = {"asgd, 1 worker and its server": {"algorithm": "asgd", "workers": 1}}
TURNS = 9


def fitted() -> dict[str, str]:
    """Return the device and the network of this machine as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOCKSTEP_RUNS"] = folder
        made = fit()
    return {"device": made.device, "network": made.network}


def finished(experiment: Experiment) -> Run:
    """Return the run of this experiment. Raises RuntimeError if it failed."""
    done = run(experiment)
    if done.error:
        raise RuntimeError(done.error)
    return done


def step(experiment: Experiment) -> float:
    """Return the seconds of a step of this experiment."""
    return step_time(finished(experiment))


def main() -> None:
    """Print the rows."""
    common = {"workers": 2, "hidden": "1024,1024", "batch": 64, "steps": 24, "evaluations": 1}
    asked = {name: Experiment.of({"algorithm": name, **common, **own}) for name, own in (STRATEGIES | SERVED).items()}
    runs: dict[str, list[float]] = {name: [] for name in asked}
    guesses: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(TURNS + 1):
        if turn in (0, TURNS // 2, TURNS):
            here = fitted()
            print(f"device {here['device']}, network {here['network']}")
            for name, e in asked.items():
                guesses[name].append(step(e.change(**here)))
        if turn < TURNS:
            for name, e in asked.items():
                runs[name].append(step(e.change(cluster="processes")))
    predicted = {name: median(some) for name, some in guesses.items()}
    for name, took in runs.items():
        a, b = predicted[name], min(took)
        told = f"{1e3 * a:.2f} ms, measured {1e3 * b:.2f} ms ({1e3 * median(took):.2f} in the median): {a / b:.2f}x"
        row(f"step of {name}, simulated after fitting, against measured", told, "within 15 %", abs(a / b - 1) <= 0.15)
    pairs = told_apart(runs)
    swapped = [f"{a} and {b}" for a, b in pairs if predicted[a] > predicted[b]]
    order = ", ".join(f"{name} {_around(runs[name])}" for name in sorted(runs, key=lambda name: median(runs[name])))
    told = f"{len(pairs)} of 15 pairs told apart, {'; '.join(swapped) or 'none'} swapped: {order}"
    row("order of the strategies", told, "preserved where told apart", not swapped)


def told_apart(runs: dict[str, list[float]]) -> list[tuple[str, str]]:
    """Return the pairs of strategies, the quicker first, whose medians differ by more than the runs of either."""
    ordered = combinations(sorted(runs, key=lambda name: median(runs[name])), 2)
    return [(a, b) for a, b in ordered if median(runs[b]) - median(runs[a]) > max(spread(runs[a]), spread(runs[b]))]


def spread(took: list[float]) -> float:
    """Return the width of the middle half of these runs."""
    low, _, high = quantiles(took, n=4)
    return high - low


def _around(took: list[float]) -> str:
    return f"{1e3 * median(took):.2f} (+- {500 * spread(took):.2f}) ms"


if __name__ == "__main__":
    main()

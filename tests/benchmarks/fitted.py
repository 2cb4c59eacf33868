"""The simulated cluster, fitted to this machine, against real processes on it. `python -m tests.benchmarks.fitted`

Step times of two ranks with messages above 1 MB (an MLP of 64-1024-1024-10, 4.5 MB of parameters), and whether the
strategies come in the same order. A step is the median of a run; each strategy is run a few times in turn with the
others, and its quickest run counts, since whatever else the machine does only slows down.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import os  # noqa: E402
import tempfile  # noqa: E402

from experiments.experiment import Experiment  # noqa: E402
from experiments.measure.fit import fit  # noqa: E402
from experiments.plots.curves import step_time  # noqa: E402
from experiments.run import run  # noqa: E402
from experiments.runs.record import Run  # noqa: E402

STRATEGIES = {
    "sync_sgd": {},
    "zero1": {"update": "sgd"},
    "local_sgd, period 8": {"algorithm": "local_sgd", "period": 8},
    "dpsgd": {},
    "sync_sgd, recursive doubling": {"algorithm": "sync_sgd", "collective": "recursive_doubling"},
}
SERVED = {"asgd, 1 worker and its server": {"algorithm": "asgd", "workers": 1}}
TURNS = 3


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
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOCKSTEP_RUNS"] = folder
        made = fit()
    print(f"device {made.device}, network {made.network}")
    common = {"workers": 2, "hidden": "1024,1024", "batch": 64, "steps": 24, "evaluations": 1}
    asked = {name: Experiment.of({"algorithm": name, **common, **own}) for name, own in (STRATEGIES | SERVED).items()}
    measured = {name: float("inf") for name in asked}
    for _ in range(TURNS):
        for name, e in asked.items():
            measured[name] = min(measured[name], step(e.change(cluster="processes")))
    here = {"device": made.device, "network": made.network}
    predicted = {name: step(e.change(**here)) for name, e in asked.items()}
    for name in asked:
        a, b = predicted[name], measured[name]
        told = f"{1e3 * a:.2f} ms, measured {1e3 * b:.2f} ms: {a / b:.2f}x"
        row(f"step of {name}, simulated after fitting, against measured", told, "within 15 %", abs(a / b - 1) <= 0.15)
    order = sorted(asked, key=measured.get) == sorted(asked, key=predicted.get)
    row("order of the strategies", " < ".join(sorted(asked, key=measured.get)), "preserved", order)


if __name__ == "__main__":
    main()

"""Strategies on an emulated network and device, against their simulation. `python -m tests.benchmarks.emulated`

Four workers on an emulated 1GbE, one of them three times slower, all on an emulated device that is slow enough for
this machine's cores to compute for all of them: what is emulated should decide on the time of a run, and not the cores.
A run counts whole, from its first second to its last mini-batch; the median of a few runs is held against the simulated
one. A pipeline, whose workers share one mini-batch, has as large a one as the others together.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import sys  # noqa: E402
from statistics import median  # noqa: E402

from experiments.specification.experiment import Experiment  # noqa: E402
from tests.benchmarks import fitted  # noqa: E402

STRATEGIES = fitted.STRATEGIES | {
    "asgd": {},
    "gpipe": {"batch": 256},
    "pipedream": {"batch": 256},
    "downpour": {},
    "easgd": {},
}
CONDITIONS = {"network": "1GbE", "slow": "2:3", "device": "2e9:2e9:5e-5"}
COMMON = {"workers": 4, "hidden": "256,256,256", "batch": 32, "steps": 24, "evaluations": 1}
TURNS = 3
BAR = 0.1


def seconds(experiment: Experiment) -> float:
    """Return when the last mini-batch of this experiment was done, in s of its clock."""
    return float(max(fitted.finished(experiment).losses["seconds"]))


def main() -> None:
    """Print the rows, of all strategies or of those named."""
    for name in sys.argv[1:] or STRATEGIES:
        asked = Experiment.of({"algorithm": name, **COMMON, **CONDITIONS, **STRATEGIES[name]})
        took = [seconds(asked.change(cluster="processes")) for _ in range(TURNS)]
        a, b = seconds(asked), median(took)
        spread = f"{1e3 * min(took):.0f} to {1e3 * max(took):.0f}"
        told = f"{1e3 * a:.0f} ms, measured {1e3 * b:.0f} ms ({spread}): {a / b:.2f}x"
        row(f"{name}, emulated, simulated against measured", told, "within 10 %", abs(a / b - 1) <= BAR)


if __name__ == "__main__":
    main()

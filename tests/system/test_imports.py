"""The house is light: what a fresh Python has loaded after an import."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imported_by(statement: str, *names: str) -> list[str]:
    """Which of `names` a fresh Python has loaded after `statement`."""
    code = f"import sys\n{statement}\nprint(*[n for n in {names!r} if n in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_core_imports_without_torch():
    rooms = "import kernels, workloads.task, cluster.simulated, algorithms, experiments.execution.run"
    rooms += ", experiments.runs.store"
    every = "; [algorithms.find(name) for name in algorithms.names()]; [workloads.find(n) for n in workloads.WORKLOADS]"
    assert imported_by(rooms + every, "torch", "streamlit", "plotly", "sklearn") == []


def test_the_catalogue_imports_without_a_compiler():
    every = "import algorithms, kernels; [algorithms.find(name) for name in algorithms.names()]"
    assert imported_by(every, "numba", "torch", "scipy") == []
    assert (
        imported_by(
            "from experiments.specification.experiment import Experiment; Experiment()", "numba", "torch", "scipy"
        )
        == []
    )


def test_building_workloads_loads_no_compiler_no_torch_and_no_scikit_learn():
    building = (
        "import workloads, workloads.mnist, workloads.torch_module\n"
        "for name in ('digits', 'spirals', 'text', 'quadratic'):\n"
        "    module = workloads.find(name)\n"
        "    module.build(module.Settings(), 'float32').start(0)"
    )
    assert imported_by(building, "numba", "torch", "sklearn", "scipy") == []


def test_a_schedule_is_generated_and_timed_without_training_or_a_compiler():
    timing = (
        "from theory.schedule_timing import simulate\n"
        "from theory.schedules import SCHEDULES, lists\n"
        "for name in SCHEDULES: simulate(lists(name, 4, 8), dict.fromkeys('FRBIW', 1))"
    )
    assert imported_by(timing, "numba", "torch", "scipy", "workloads", "cluster", "experiments") == []

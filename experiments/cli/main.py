"""The command line: list, run, sweep, compare, replay and export experiments, and measure what they run on.

    lockstep run easgd --workers 8 --period 10 --network 10GbE

Exit codes: 0 done; 1 the run failed or diverged, or a replay differs; 2 the request was invalid, as one sentence
explains; 130 interrupted, with everything recorded so far kept.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import chain
from typing import Any

import click

from experiments.cli.add import add_command
from experiments.cli.catalogue import list_command
from experiments.cli.collective import collective_command
from experiments.cli.compare import compare_command
from experiments.cli.console import ByPurpose
from experiments.cli.entry import run_group
from experiments.cli.export import export_command
from experiments.cli.fit import fit_command
from experiments.cli.kernels import kernels_command
from experiments.cli.memory import memory_command
from experiments.cli.partition import partition_command
from experiments.cli.plan import plan_command
from experiments.cli.profile import profile_command
from experiments.cli.replay import replay_command
from experiments.cli.run import run_command
from experiments.cli.runs import kept_command, runs_command, show_command
from experiments.cli.schedule import schedule_command
from experiments.cli.script import script_command
from experiments.cli.sweep import sweep_command
from experiments.cli.tune import tune_command
from experiments.runs import store
from workloads import own_module

PURPOSES = {
    "Run": (run_command, script_command, list_command, add_command),
    "Compare": (runs_command, show_command, compare_command, sweep_command, tune_command, replay_command),
    "Study": (
        *(plan_command, collective_command, memory_command, schedule_command, profile_command, partition_command),
        *(kernels_command, fit_command),
    ),
    "Share": (export_command, kept_command),
}


def with_own_modules(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with permission to execute the user's own torch modules. Commands have it; a server does not."""

    @wraps(call)
    def called(*args: Any, **options: Any) -> Any:
        with own_module.allow_folder(store.home() / "modules"):
            return call(*args, **options)

    return called


for command in chain(*PURPOSES.values()):
    assert command.callback  # only a group may lack one
    command.callback = with_own_modules(command.callback)

START = (
    ("lockstep run", "train, and see what it costs"),
    ("lockstep run easgd --slow 2:5", "another method, one worker slow"),
    ("lockstep sweep --workers 1,2,4,8", "how it scales"),
    ("lockstep script train.py --ranks 64", "your own torch.distributed script"),
)


@click.group(
    cls=ByPurpose,
    purposes=PURPOSES,
    start=START,
    context_settings={"max_content_width": 120},
)
def cli() -> None:
    """See what distributed training does. Use COMMAND --help for details."""


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code. A user's mistake becomes one sentence on stderr."""
    return run_group(cli, args, "lockstep")

"""`script`: run an unmodified torch.distributed script on simulated machines, and say where its time went.

lockstep script train.py --ranks 64 --network 10GbE --slow 5:4 -- --epochs 3
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cluster.faults import JITTERS
from experiments.cli import console, show_script
from experiments.cli.options import runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import check_writable, stoppable
from experiments.runs.progress import Progress
from experiments.specification.script import MOST_RANKS, ScriptExperiment
from experiments.wording import units
from experiments.wording.script_summary import position

if TYPE_CHECKING:
    from cluster.event_log import EventLog
    from experiments.runs.script_run import ScriptRun

OUTPUTS = ("all", "first", "none")


class ScriptCommand(click.Command):
    """A command whose own options may appear anywhere; those of the script come after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            advice = "Write the script's own options after --, as in: train.py --ranks 4 -- --epochs 3."
            raise click.NoSuchOption(error.option_name, f"{error.message} {advice}", ctx=error.ctx) from None


@click.command("script", cls=ScriptCommand, short_help="Run your torch.distributed script on simulated machines.")
@click.argument("path", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option(
    "--ranks", default=4, type=click.IntRange(1, MOST_RANKS), metavar="INT", help="number of ranks [default 4]"
)
@click.option("--network", default="10GbE", metavar="TEXT", help="a preset, here, or latency:bandwidth:overhead")
@click.option("--per-node", default=1, type=click.IntRange(1), metavar="INT", help="ranks per node [default 1]")
@click.option(
    "--device", default="laptop", metavar="TEXT", help="hardware of a rank: a preset, here, or FLOP/s:bytes/s:overhead"
)
@click.option("--slow", default="", metavar="TEXT", help="slow ranks as rank:factor, for example 5:4")
@click.option("--pause", default="", metavar="TEXT", help="ranks that stop for a while, as rank:from-to in seconds")
@click.option("--crash", default="", metavar="TEXT", help="ranks that crash, as rank:second")
@click.option("--jitter", default="none", metavar="TEXT", help=f"variation of compute times: {', '.join(JITTERS)}")
@click.option("--seed", default=0, type=click.IntRange(0), metavar="INT", help="seed of the jitter [default 0]")
@click.option(
    "--eager", default="0", metavar="SIZE", help="sends up to this size do not wait for their receiver [default 0]"
)
@click.option("--clock", default="roofline", metavar="TEXT", help="roofline: repeatable; measured: this machine's time")
@click.option(
    "--steps", type=click.IntRange(1), metavar="INT", help="stop each rank after this many steps of its optimizer"
)
@click.option("--output", default="all", type=click.Choice(OUTPUTS), help="ranks whose output to print [default all]")
@click.option("--trace", metavar="FILE", help="write the timeline for ui.perfetto.dev")
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON, in bytes and seconds")
@runs_option
def script_command(
    path: str, arguments: tuple[str, ...], as_json: bool, trace: str | None, runs: str, **given: Any
) -> int:
    """Run an unmodified torchrun script on simulated machines: its numbers are real, its time is virtual.

    DistributedDataParallel, FSDP2, pipelining, tensor parallelism and plain collectives run on the CPU of this machine,
    whatever backend the script names. The summary says how long a step takes and who waits for whom. The run is stored:
    lockstep show, compare, replay and export take its name.

    \b
    lockstep script train.py --ranks 64 --network 10GbE --slow 5:4
    lockstep script train.py --ranks 8 -- --epochs 3      the script's own options
    """
    output, eager = given.pop("output"), given.pop("eager")
    given["eager"] = int(units.parse_size(eager)) if eager != "0" else 0
    experiment = ScriptExperiment.read(path, arguments, **given)
    if trace and not Path(trace).resolve().parent.is_dir():
        raise ValueError(
            f"--trace: there is no folder {Path(trace).resolve().parent}; create it, or choose another file."
        )
    check_writable(runs)
    run = run_script(experiment, "none" if as_json else output)
    return show_script.conclude(run, runs, as_json, trace)


def run_script(experiment: ScriptExperiment, output: str = "none", title: str = "") -> ScriptRun:
    """Run a script with a progress bar and return its record. Print the lines of the ranks that `output` names."""
    from cluster.torch.launch import warn_of_version
    from experiments.execution.script import measure_progress, run

    if warning := warn_of_version():
        console.complain(f"{warning}.")

    def print_line(rank: int, line: str) -> None:
        if output == "all" or (output == "first" and rank == 0):
            click.echo(f"rank {rank}: {line}")

    with stoppable() as stop, Bar(title or experiment.name) as bar:

        def show_progress(logs: list[EventLog], seconds: float) -> None:
            step, loss, fraction = measure_progress(logs, experiment.steps)
            bar(Progress(fraction, seconds, loss, None, {}, {}, position(step, seconds)))

        return run(experiment, print_line, show_progress, stop)

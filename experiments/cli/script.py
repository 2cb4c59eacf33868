"""`script`: run an unmodified torch.distributed script on simulated machines, and say where its time went.

lockstep script train.py --ranks 64 --network 10GbE --slow 5:4 -- --epochs 3
"""

from __future__ import annotations

import json
import math
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from cluster.comm import Cancelled, ClusterError, RankFailed
from cluster.faults import JITTERS, Faults, parse_crash, parse_pause, parse_slow
from cluster.network import parse_network
from experiments.cli import console
from experiments.cli.progress_bar import Bar
from experiments.cli.running import EXIT, stoppable
from experiments.runs.progress import Progress
from experiments.wording import units
from knobs import match_name

if TYPE_CHECKING:
    from cluster.event_log import EventLog
    from cluster.torch.launch import Recorded
    from cluster.torch.machines import SimulatedMachines
    from cluster.torch.summary import Summary

NAMED = 4  # ranks that others wait for, in the summary
WORTH = 0.001  # the least share of the time that ranks wait which is worth a line
OUTPUTS = ("all", "first", "none")


class ScriptCommand(click.Command):
    """A command whose own options may stand anywhere; those of the script come after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            error.possibilities = None
            error.message += " Write the script's own options after --, as in: train.py --ranks 4 -- --epochs 3."
            raise


@click.command("script", cls=ScriptCommand, short_help="Run your torch.distributed script on simulated machines.")
@click.argument("path", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option("--ranks", default=4, type=click.IntRange(1, 1024), metavar="INT", help="number of ranks [default 4]")
@click.option("--network", default="10GbE", metavar="TEXT", help="a preset, or latency:bandwidth:overhead")
@click.option("--per-node", default=1, type=click.IntRange(1), metavar="INT", help="ranks per node [default 1]")
@click.option(
    "--device", default="laptop", metavar="TEXT", help="hardware of a rank: a preset, or FLOP/s:bytes/s:overhead"
)
@click.option("--slow", default="", metavar="TEXT", help="slow ranks as rank:factor, for example 5:4")
@click.option("--pause", default="", metavar="TEXT", help="ranks that stop for a while, as rank:from-to in seconds")
@click.option("--crash", default="", metavar="TEXT", help="ranks that crash, as rank:second")
@click.option("--jitter", default="none", metavar="TEXT", help=f"variation of compute times: {', '.join(JITTERS)}")
@click.option("--seed", default=0, type=click.IntRange(0), metavar="INT", help="of the jitter [default 0]")
@click.option(
    "--eager", default="0", metavar="SIZE", help="sends up to this size do not wait for their receiver [default 0]"
)
@click.option(
    "--clock", default="roofline", metavar="TEXT", help="roofline: repeatable; measured: the time of this machine"
)
@click.option(
    "--steps", type=click.IntRange(1), metavar="INT", help="stop each rank after so many steps of its optimizer"
)
@click.option("--output", default="all", type=click.Choice(OUTPUTS), help="whose output to print [default all]")
@click.option("--trace", metavar="FILE", help="write the timeline for ui.perfetto.dev")
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON, in bytes and seconds")
def script_command(path: str, arguments: tuple[str, ...], as_json: bool, trace: str | None, **given: Any) -> int:
    """Run a script for torchrun on simulated machines, unmodified: its numbers are real, its time is virtual.

    DistributedDataParallel, FSDP2, pipelining, tensor parallelism and plain collectives run on the CPU of this machine,
    whatever backend the script names. The summary says how long a step takes and who waits for whom.

    \b
    lockstep script train.py --ranks 64 --network 10GbE --slow 5:4
    lockstep script train.py --ranks 8 -- --epochs 3      the script's own options
    """
    output = given.pop("output")
    machines, words = (
        _machines(given),
        f"{Path(path).name} on {units.count_with_noun(given['ranks'], 'rank')}, {given['network']}",
    )
    if trace and not Path(trace).resolve().parent.is_dir():
        raise ValueError(
            f"--trace: there is no folder {Path(trace).resolve().parent}; make it, or choose another file."
        )
    try:
        recorded = _run(path, arguments, machines, "none" if as_json else output)
    except ClusterError as error:  # there is nothing to summarize
        return _conclude(error)
    from cluster.torch.summary import summarize

    summary, outcome = summarize(recorded), recorded.outcome
    with console.unheard(sys.stdout):
        if as_json:
            click.echo(json.dumps(_plain(summary, recorded), indent=1))
        elif summary.seconds or not outcome.error:
            _tell(words, summary, outcome.notes)
        sys.stdout.flush()
    if trace:
        _write_trace(outcome.trace(), trace)
    return _conclude(outcome.error)


def _machines(given: dict[str, Any]) -> SimulatedMachines:
    """Return what the options describe. Raise ValueError for the first one that is invalid."""
    from cluster.torch.machines import SimulatedMachines

    ranks, jitter = given["ranks"], match_name(given["jitter"], JITTERS)
    if jitter not in JITTERS:
        raise ValueError(f"jitter: there is no {given['jitter']!r}; use {', '.join(JITTERS)}.")
    crash = parse_crash(given["crash"], ranks)
    faults = Faults(
        slow=parse_slow(given["slow"], ranks),
        jitter=JITTERS[jitter],
        pause=parse_pause(given["pause"], ranks),
        crash={rank: at for rank, (at, _) in crash.items()},
        back={rank: back for rank, (_, back) in crash.items() if back < math.inf},
        seed=given["seed"],
    )
    return SimulatedMachines(
        ranks=ranks,
        network=parse_network(given["network"]).on_nodes(given["per_node"]),
        device=given["device"],
        faults=faults,
        eager=int(units.parse_size(given["eager"])) if given["eager"] != "0" else 0,
        clock=given["clock"],
        steps=given["steps"] or math.inf,
    )


def _run(path: str, arguments: tuple[str, ...], machines: SimulatedMachines, output: str) -> Recorded:
    from cluster.torch.launch import warn_of_version
    from cluster.torch.script import run_script

    if warning := warn_of_version():
        console.complain(f"{warning}.")

    def on_line(rank: int, line: str) -> None:
        if output == "all" or (output == "first" and rank == 0):
            click.echo(f"rank {rank}: {line}")

    with stoppable() as stop, Bar(Path(path).name) as bar:

        def on_progress(logs: list[EventLog], seconds: float) -> None:
            step = max(log.step for log in logs)
            losses = [log.losses[-1][3] for log in logs if log.losses]
            phase = f"step {step}, {units.seconds(seconds)} of virtual time" if step >= 0 else units.seconds(seconds)
            loss = float(np.mean(losses)) if losses else math.nan
            fraction = max(0, step) / machines.steps
            bar(Progress(fraction, seconds, loss, None, {}, {}, phase))

        return run_script(path, machines, arguments, on_line=on_line, on_progress=on_progress, stop=stop)


def _tell(words: str, summary: Summary, notes: tuple[str, ...]) -> None:
    console.say((words, console.HEAD))
    for label, text in _lines(summary, notes):
        console.say((f"  {label:<10}", console.DIM), console.wrap(" " * 12 + text, " " * 12).lstrip())


def _lines(summary: Summary, notes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the lines of the summary, as (label, text)."""
    total = summary.seconds or 1.0
    lines = [("time", f"{units.seconds(summary.seconds)} of virtual time" + _per_step(summary))]
    if losses := list(summary.losses.values()):
        first, last = (units.loss(loss) for loss in (losses[0], losses[-1]))
        lines.append(
            ("loss", f"{first} in the first step, {last} in the last: the mean of what backward() is called of")
        )
    kinds = {"computing": summary.compute, "communicating": summary.communicate, "waiting": summary.wait}
    kinds["idle"] = summary.idle
    shares = [
        f"{name} {units.percent(float(seconds.mean()) / total)}" for name, seconds in kinds.items() if seconds.any()
    ]
    if shares:
        lines.append(("ranks", f"{', '.join(shares)} of the time on average"))
    if summary.waiting_share >= WORTH:
        most = int(summary.wait.argmax())
        lines.append(
            ("waiting", f"rank {most} waits most: {units.percent(float(summary.wait[most]) / total)} of the time")
        )
    worth = [wait for wait in summary.waits if wait.seconds / wait.ranks >= WORTH * total]
    for wait in worth[:NAMED]:
        where = f" at {wait.line}" if wait.line else ""
        each = units.seconds(wait.seconds / wait.ranks)
        who = f"{units.count_with_noun(wait.ranks, 'rank')} wait{'s' * (wait.ranks == 1)}"
        lines.append(("", f"{who} for rank {wait.culprit} in {wait.what}{where}: {each} each"))
    held = {kind: int(nbytes.max()) for kind, nbytes in summary.memory.items() if nbytes.any()}
    if held:
        parts = ", ".join(f"{kind} {units.size(nbytes)}" for kind, nbytes in held.items())
        lines.append(("memory", f"at most {units.size(sum(held.values()))} on a rank, without activations: {parts}"))
    most_sent = float(summary.sent.max())
    if most_sent:
        lines.append(("sent", f"at most {units.size(most_sent)} by a rank" + _sent_per_step(most_sent, summary)))
    return [*lines, *(("note", note) for note in notes)]


def _per_step(summary: Summary) -> str:
    if not summary.steps:
        return ", without a step of an optimizer"
    return f", {units.count_with_noun(summary.steps, 'step')}, {units.seconds(summary.step_seconds)} each (median)"


def _sent_per_step(nbytes: float, summary: Summary) -> str:
    return f", {units.size(nbytes / summary.steps)} per step" if summary.steps and nbytes else ""


def _plain(summary: Summary, recorded: Recorded) -> dict[str, Any]:
    """Return the summary as plain values for JSON."""
    outcome = recorded.outcome
    values = {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(summary).items()
    }
    values["memory"] = {kind: nbytes.tolist() for kind, nbytes in summary.memory.items()}
    values["step_seconds"] = None if math.isnan(summary.step_seconds) else summary.step_seconds
    values["waits"] = [asdict(wait) for wait in summary.waits]
    error = str(outcome.error) if outcome.error else ""
    return {"error": error, "notes": list(outcome.notes), "printed": recorded.printed, "summary": values}


def _write_trace(trace: Any, path: str) -> None:
    from experiments.exports.export import chrome_trace

    Path(path).write_text(chrome_trace(trace), "utf-8")
    console.note(f"timeline  {path}: open it at ui.perfetto.dev")


def _conclude(error: Exception | None) -> int:
    """Print why the run ended early, with the script's own traceback, and return the exit code."""
    if error is None:
        return 0
    if isinstance(error, RankFailed) and error.__cause__:
        click.echo("".join(_traceback(error.__cause__)), err=True, nl=False)
    console.complain(str(error))
    return EXIT["cancelled" if isinstance(error, Cancelled) else "failed"]


def _traceback(error: BaseException) -> list[str]:
    """Return the traceback of the script's exception, from the script's first line on."""
    from cluster.torch.process import is_library

    frames = error.__traceback__
    while frames and is_library(frames.tb_frame.f_code):
        frames = frames.tb_next
    return traceback.format_exception(type(error), error, frames)

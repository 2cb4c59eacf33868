"""`runs`, `show` and `kept`: list the stored runs, newest first; print the summary of a run; move runs that were saved
elsewhere.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from experiments.cli import console, show, show_script
from experiments.cli.comparison import short_names
from experiments.cli.options import json_option, runs_option
from experiments.cli.run import tell
from experiments.runs import ending, store
from experiments.runs.run_files import RunHeader
from experiments.runs.script_files import ScriptHeader
from experiments.runs.script_run import ScriptRun
from experiments.specification.experiment import Experiment
from experiments.specification.script import SETTINGS, ScriptExperiment
from experiments.wording import units
from experiments.wording.units import DIVERGED

MOST = 20  # runs listed by default
LEAST = 24  # columns reserved for what was run; on a narrower terminal the table continues below


@click.command("runs", short_help="List stored runs, newest first.")
@click.option(
    "--most", type=click.IntRange(1), default=MOST, metavar="INT", help=f"show at most INT runs [default: {MOST}]"
)
@runs_option
@json_option
def runs_command(most: int, runs: str, as_json: bool) -> None:
    """List stored runs, newest first: what was run and when, and the final loss.

    Use the name in the first column to refer to a run in show, compare, replay, export and --from.
    """
    folders = store.recent(runs)
    shown = folders[:most]
    names = [folder.name for folder in shown] if as_json else short_names(shown)
    rows = [_row(name, folder) for name, folder in zip(names, shown, strict=True)]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        console.note(f"no runs are stored in {runs} yet; start one with lockstep run.")
        return
    click.echo(show.table(_fit([_told(row) for row in rows], console.width()), words=3, keys=1))
    console.say()
    if len(folders) > len(shown):
        console.note(f"{len(folders) - len(shown):,} more: --most {len(folders)} lists all.")
    console.note("lockstep compare RUN RUN compares runs; lockstep replay RUN repeats one.")


def _row(name: str, folder: Path) -> dict[str, Any]:
    """Return the row of a stored run; if the run cannot be read, its status is "unreadable"."""
    when = datetime.fromtimestamp(folder.stat().st_mtime).astimezone().isoformat(timespec="seconds")
    try:
        one = store.header(folder)
        what = _script(one) if isinstance(one, ScriptHeader) else _experiment(one)
    except (ValueError, OSError):
        return {"run": name, "status": "unreadable", "when": when, "held_out_loss": None}
    return {"run": name, **what, "status": one.status, "when": when, "held_out_loss": one.summary.get("held_out_loss")}


def _experiment(one: RunHeader) -> dict[str, Any]:
    e = Experiment.from_json(json.dumps(one.experiment))
    return {"algorithm": e.algorithm, "workers": e.workers, "seed": e.seed, "cluster": e.cluster}


def _script(one: ScriptHeader) -> dict[str, Any]:
    """Return the script's name, and the settings of its machines that are not at their defaults."""
    e = ScriptExperiment(source="", **one.experiment)
    return {"script": e.name, **e.changes(), "step_seconds": one.summary["step_seconds"]}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in words. Defaults are left out: seed 0, the simulated cluster, this year, and the status
    "finished".
    """
    what, ended = [], [row["status"]] * (row["status"] != "finished")
    if "algorithm" in row:
        what = [row["algorithm"], units.count_with_noun(row["workers"], "worker"), *ended]
        what += [f"seed {row['seed']}"] * bool(row["seed"]) + [row["cluster"]] * (row["cluster"] != "simulated")
    if "script" in row:
        others = [f"{name.replace('_', ' ')} {row[name]}" for name in SETTINGS if name in row and name != "ranks"]
        what = [row["script"], units.count_with_noun(row["ranks"], "rank"), *ended, *others]
    what = what or ended
    when = datetime.fromisoformat(row["when"])
    year = "" if when.year == datetime.now().year else f" {when.year}"
    loss = DIVERGED if row["status"] == DIVERGED else row["held_out_loss"]
    day = f"{when.day} {when:%b}{year} {when:%H:%M}"
    return {"run": row["run"], "what": ", ".join(what), "when": day, "held_out_loss": loss}


def _fit(rows: list[dict[str, Any]], wide: int) -> list[dict[str, Any]]:
    """Return the rows with each run's description shortened, so that the table fits into `wide` columns if possible."""
    others = [name for name in rows[0] if name != "what"]
    room = wide - sum(2 + max(len(show.head(name)), *map(len, show.column(rows, name))) for name in others)
    if room < LEAST:
        return rows
    return [{**row, "what": row["what"] if len(row["what"]) <= room else f"{row['what'][: room - 1]}…"} for row in rows]


@click.command("show", short_help="Print the summary of a stored run.")
@click.argument("name", default="", metavar="RUN")
@runs_option
@json_option
def show_command(name: str, runs: str, as_json: bool) -> None:
    """Print the summary of a stored run, and why it ended early if it did. --json includes what a script printed."""
    folder = store.find(name, runs)
    run = store.load_any(folder)
    if isinstance(run, ScriptRun):
        show_script.tell(run, folder.resolve(), as_json)
        show_script.complain_of(run)
        return
    tell(run, folder.resolve(), as_json)
    if run.error:
        why = ending.explain_error(run)
        console.complain(f"{why.rstrip('.')}.")


@click.command("kept", short_help="List runs saved in the temporary folder for lack of space.")
@click.option("--move", is_flag=True, help="move them to the folder of runs")
@runs_option
def kept_command(move: bool, runs: str) -> int:
    """List runs that were saved in the temporary folder because the folder of runs was full or not writable."""
    folders, code = store.elsewhere(), 0
    for folder in folders:
        try:
            place = store.move(folder, runs) if move else folder
        except (ValueError, OSError) as error:
            console.complain(str(error))
            code = 2
        else:
            console.say(str(place.resolve()))
    if not folders:
        console.note("there are none.")
    elif not move:
        console.note(f"lockstep kept --move moves them to {runs}.")
    return code

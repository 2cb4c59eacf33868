"""Run a reader's script on simulated machines, in a process of the pool.

The script is executed with the rights of the user who started the workbench, and therefore only if that user has set
$LOCKSTEP_SCRIPTS. The job checks this again, because not only pages can submit one. It runs in an empty folder, which
is removed afterwards.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.comm import Cancelled
from cluster.real.signals import catch_signals, interrupt_at_once
from experiments.execution import script
from experiments.jobs.spec import JobSpec
from experiments.runs import store
from experiments.runs.script_run import ScriptRun
from experiments.runs.summary import source_version
from experiments.specification.script import ScriptExperiment, check_name
from experiments.wording import units
from experiments.wording.script_summary import position
from installation import document

if TYPE_CHECKING:
    from cluster.event_log import EventLog

real_time = time.monotonic  # a script's time is virtual
SETTING = "LOCKSTEP_SCRIPTS"
MOST_BYTES = 200_000  # of a script
MOST_LINES = 1_000_000  # that a script may print
KEPT_LINES = 20_000  # of its output
LONGEST = 480.0  # s of real time: less than the pool allows, so that the recording is stored
EXAMPLES = {
    "ddp.py": "DistributedDataParallel",
    "fsdp2.py": "FSDP2",
    "pipeline.py": "torch.distributed.pipelining",
    "ring.py": "An all-reduce by hand",
}
"""The worked examples, and what each is about."""


def is_allowed() -> bool:
    """Return True if the user who started this process lets readers run scripts."""
    return os.environ.get(SETTING) == "1"


def example(name: str) -> str:
    """Return the text of one of EXAMPLES."""
    return document(f"docs/scripts/{name}").read_text("utf-8")


def job_spec(source: str, file: str, settings: dict[str, Any]) -> JobSpec:
    """Return the job that runs the script `source`, from a file called `file`, with the `settings` of a
    ScriptExperiment.

    Raise ValueError if there is no script, it is too long, it has the name of a module that torch imports,
    or a setting is invalid.
    """
    check_name(file)
    if not source.strip():
        raise ValueError(f"{file} is empty; write or upload a script, or start from an example.")
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{file} has characters that are not text; paste it again, or upload it in UTF-8.") from None
    if size > MOST_BYTES:
        raise ValueError(f"{file} has {size:,} bytes; use a script of at most {MOST_BYTES:,}.")
    stem = re.sub(r"\W", "_", Path(file).stem, flags=re.ASCII)[:40] or "script"
    return JobSpec("script", asdict(ScriptExperiment(source, f"{stem}.py", **settings)))


def perform(values: dict[str, Any], root: Path, progress: Callable[..., None]) -> Path:
    """Run the script (see experiments.jobs.spec), unless its run is stored, and return the folder of the run. If the
    script stops early, the run is stored up to that point.

    SIGTERM ends the script, with KeyboardInterrupt if it has not begun. Raise ValueError if scripts are not allowed
    here, or if this one is not Python.
    """
    if not is_allowed():
        raise ValueError(
            f"scripts are off here, because they execute a reader's file; on your own machine, set {SETTING}=1 before "
            "you start the workbench."
        )
    experiment = ScriptExperiment(**values)
    if stored := store.find_stored_run(experiment, source_version(), root):
        return stored
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(experiment.path).write_text(
            experiment.source, "utf-8"
        )  # for tracebacks, and for scripts that read themselves
        return store.save(_shorten(_run(experiment, progress)), root)


def _run(experiment: ScriptExperiment, progress: Callable[..., None]) -> ScriptRun:
    end, printed, reached = real_time() + LONGEST, 0, ""

    def on_line(rank: int, line: str) -> None:
        nonlocal printed
        printed += 1
        if printed > MOST_LINES:  # which ends the run at once, even between two operations of torch
            raise Cancelled(f"it was ended after {MOST_LINES:,} lines of output; print less")

    def on_progress(logs: list[EventLog], seconds: float) -> None:
        progress(*_progress(logs, seconds, experiment.steps))

    def stop() -> bool:
        nonlocal reached
        if real_time() > end:
            reached = f"the limit of {LONGEST:g} s ended it; use fewer steps or ranks"
        return bool(reached) or stopped()

    with catch_signals(signal.SIGTERM) as stopped, interrupt_at_once():
        run = script.run(experiment, on_line, on_progress, stop)
    if run.status == "cancelled" and printed <= MOST_LINES:
        run = replace(run, error=f"{reached or 'you stopped it'}.")
    return run


def _shorten(run: ScriptRun) -> ScriptRun:
    """Return the run with the first and last KEPT_LINES / 2 lines that it printed, and a note if any were dropped."""
    lines, half = run.printed, KEPT_LINES // 2
    if len(lines) <= KEPT_LINES:
        return run
    note = f"ranks printed {units.count(len(lines))} lines; only the first and the last {units.count(half)} are kept"
    return replace(run, printed=(*lines[:half], *lines[-half:]), notes=(*run.notes, note))


def _progress(logs: list[EventLog], seconds: float, steps: int | None) -> tuple[float, str]:
    """Return the fraction done, or 0 if unknown, and a phrase such as "step 3, 1.2 ms of virtual time"."""
    step, loss, fraction = script.measure_progress(logs, steps)
    phrase = position(step, seconds)
    if math.isfinite(loss):
        phrase += f", loss {units.loss(loss)}"
    return fraction, phrase

"""ScriptRun: everything recorded of one run of a script on simulated machines, in plain columns."""

from __future__ import annotations

import hashlib
import os
import traceback
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.comm import Cancelled, RankFailed
from cluster.script_summary import Summary, Waited
from cluster.waiting.causes import Causes, causes
from experiments.runs.holdings import Holdings
from experiments.runs.summary import environment
from experiments.specification.script import ScriptExperiment
from installation import ROOT
from tracing import LOSSES, MEASURES, MEMORY, Trace, join_tables, number_words, sort_rows

OURS = (*(f"{ROOT / room}{os.sep}" for room in ("cluster", "experiments")), str(ROOT / "lockstep.py"))
"""Folders and a file whose lines are left out of a script's traceback."""

if TYPE_CHECKING:
    from cluster.torch.launch import Recorded

HASHED = 64_000_000  # bytes at the start of a file that its digest covers, so that large data costs no time


@dataclass(repr=False)
class ScriptRun(Holdings):
    """The record of one run of a script.

    summary      its numbers: time per step, losses, waits, memory, traffic
    losses       columns of tracing.LOSSES: the losses that backward() was called on; one row per call
    measures     columns of tracing.MEASURES, quantity indexing `quantities`: what the script logged
    memory       columns of tracing.MEMORY, kind indexing tracing.HELD
    waits        every wait of a rank, with the line of the script
    printed      (rank, line), in the order in which they were printed
    status       "finished", "failed" or "cancelled"; `error` says why, and `traceback` is the script's own
    files        those of its folder that the script imported or read: a digest by path in the folder
    digest       16 hexadecimal digits that depend on everything recorded, including times
    """

    experiment: ScriptExperiment
    summary: Summary
    trace: Trace
    losses: dict[str, np.ndarray]
    measures: dict[str, np.ndarray]
    memory: dict[str, np.ndarray]
    quantities: tuple[str, ...] = ()
    waits: tuple[Waited, ...] = ()
    printed: tuple[tuple[int, str], ...] = ()
    status: str = "finished"
    error: str = ""
    traceback: str = ""
    notes: tuple[str, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    digest: str = ""

    def __repr__(self) -> str:
        return f"<ScriptRun of {self.experiment.name}: {self.status}>"

    @cached_property
    def causes(self) -> Causes:
        """Who and what caused each wait of the run."""
        return causes(self.trace, self.waits)

    @property
    def tables(self) -> dict[str, dict[str, np.ndarray]]:
        """The columns of every table, by its name in a run folder."""
        return {
            "losses": self.losses,
            "measures": self.measures,
            "memory": self.memory,
            "spans": self.trace.spans,
            "messages": self.trace.messages,
        }


def record(experiment: ScriptExperiment, recorded: Recorded) -> ScriptRun:
    """Return the ScriptRun of `experiment`, with everything that was `recorded` until it stopped."""
    from cluster.torch.summary import summarize  # with torch

    outcome = recorded.outcome
    logs, error = outcome.event_logs, outcome.error
    measures = join_tables(logs, "measures", MEASURES, "i4 i4 f8 O f8")
    measures["quantity"], quantities = number_words(measures["quantity"])
    run = ScriptRun(
        experiment=experiment,
        summary=summarize(recorded),
        trace=outcome.trace(),
        losses=sort_rows(join_tables(logs, "losses", LOSSES, "i4 i4 i8 f8 f8"), "seconds", "rank"),
        measures=sort_rows(measures, "seconds", "rank"),
        memory=sort_rows(join_tables(logs, "memory", MEMORY, "i4 i4 f8 i1 i8"), "seconds", "rank"),
        quantities=quantities,
        waits=tuple(recorded.waits),
        printed=tuple(recorded.printed),
        status="finished" if not error else "cancelled" if isinstance(error, Cancelled) else "failed",
        error=str(error) if error else "",
        traceback=script_traceback(error),
        notes=tuple(outcome.notes),
        environment=environment(),
        files={_place(file, experiment): found for file in recorded.files if (found := hash_file(file))},
    )
    run.digest = digest(run)
    return run


def _place(file: str, experiment: ScriptExperiment) -> str:
    """Return the path of a file relative to the script's folder."""
    return Path(file).relative_to(Path(experiment.path).resolve().parent).as_posix()


def hash_file(file: str | Path) -> str:
    """Return a digest of the size and the first HASHED bytes of a file, or "" if it cannot be read."""
    try:
        with Path(file).open("rb") as stream:
            state = hashlib.sha256(stream.read(HASHED))
            state.update(f" of {stream.seek(0, os.SEEK_END)}".encode())
    except OSError:
        return ""
    return state.hexdigest()


def script_traceback(error: BaseException | None) -> str:
    """Return the traceback of the script's own exception, without the lines of Lockstep, or "" if there is none."""
    cause = error.__cause__ if isinstance(error, RankFailed) else None
    if cause is None:
        return ""
    shown = traceback.TracebackException.from_exception(cause)
    whole: traceback.TracebackException | None = shown
    while whole:
        whole.stack[:] = [frame for frame in whole.stack if not frame.filename.startswith(OURS)]
        whole = whole.__cause__ or whole.__context__
    return "".join(shown.format())


def digest(run: ScriptRun) -> str:
    """Return 16 hexadecimal digits that are equal if two runs are bitwise identical and equally fast."""
    state = hashlib.sha256()
    for table in run.tables.values():
        for column in table.values():
            state.update(np.ascontiguousarray(column).tobytes())
    words = run.trace.labels, run.quantities, run.waits, run.printed, run.status
    state.update(repr(words).encode("utf-8", "surrogatepass"))
    return state.hexdigest()[:16]

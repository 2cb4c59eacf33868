"""A job of the pool: its work, its owners, its progress and how it ended."""

import signal
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from experiments.jobs import turns
from experiments.jobs.dask_cluster import DaskChild
from experiments.jobs.process import Child
from experiments.jobs.spec import JobSpec
from experiments.specification.experiment import Experiment

Status = Literal["queued", "running", "finished", "failed", "cancelled"]

FOREVER = float("inf")
UNRECORDED = "stopped before anything was recorded"
ENDS: dict[str, Status] = {"finished": "finished", "diverged": "finished", "cancelled": "cancelled"}
"""The status of a job, by the status of its run. If a run has any other status, its job is "failed"."""


@dataclass(frozen=True)
class JobState:
    """The state of a job, as the pool reports it.

    curve has seconds, step, samples, loss; tried has seconds, loss, accuracy (see experiments.runs.progress.Progress).
    `folder` is the stored run. Every finished job has one (a diverged job counts as finished, and has a `message`), and
    so does a failed or cancelled one that had something to store.
    """

    status: Status
    place: int = 0  # in the queue, from 1; 0 when not waiting
    fraction: float = 0.0
    seconds: float = 0.0  # of the run's own clock
    phase: str = ""  # what a real cluster does before that clock starts, or a note that kernels are being compiled
    message: str = ""  # one sentence: why it failed, or what is worth knowing about it
    curve: dict[str, np.ndarray] = field(default_factory=dict)
    tried: dict[str, np.ndarray] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def active(self) -> bool:
        return self.status in ("queued", "running")


@dataclass(eq=False)
class Job:
    """A job, queued, running or ended.

    `ending` says why its process is being ended, or "". `ended_by` says who ends it: a limit that it exceeds, a reader
    who no longer wants it, or the pool, which is closing.
    """

    name: str
    work: Experiment | JobSpec
    state: JobState
    owners: set[str] = field(default_factory=set)
    version: str = ""  # version of the source when it was requested
    length: float = FOREVER  # see experiments.jobs.turns.length
    far: bool = False  # whether it runs on the Dask cluster
    child: Child | DaskChild = field(init=False, repr=False)  # once it runs
    deadline: float = FOREVER
    ending: str = ""
    ended_by: Literal["limit", "reader", "pool"] = "reader"
    result: dict[str, str] | None = None

    @property
    def readers(self) -> frozenset[str]:
        """The readers whose tabs own the job."""
        return frozenset(map(turns.reader, self.owners))

    @property
    def on_gpus(self) -> bool:
        """True if the job's memory includes CUDA's host memory, which takes gigabytes per rank."""
        return isinstance(self.work, Experiment) and self.work.cluster == "gpus"

    def hear(self, line: dict[str, Any]) -> None:
        """Process one line of the job's output (see experiments.jobs.worker)."""
        if line["kind"] == "progress":
            self.state = replace(
                self.state,
                fraction=float(line["fraction"]),
                seconds=float(line["seconds"]),
                phase=str(line.get("phase", "")),
                curve={name: np.array(column, np.float32) for name, column in line["curve"].items()},
                tried={name: np.array(column, np.float32) for name, column in line["tried"].items()},
            )
        elif line["kind"] == "phase":
            self.state = replace(self.state, phase=str(line["phase"]))
        elif line["kind"] == "begun":
            self.state = replace(self.state, phase="")
        elif line["kind"] == "result":
            self.result = {name: str(line[name]) for name in ("status", "error", "folder")}
        elif line["kind"] == "error":
            self.result = {"status": "failed", "error": str(line["error"]), "folder": ""}

    def end(self, code: int, limits: dict[str, int]) -> None:
        """Record that the process exited with `code` under `limits`."""
        if self.result is None and self.ending:
            status: Status = "failed" if self.ended_by == "limit" else "cancelled"
            at_once = self.ended_by == "reader" and code == -signal.SIGTERM  # it had not begun to record
            self.state = replace(self.state, status=status, message=f"{UNRECORDED if at_once else self.ending}.")
        elif self.result is None:
            self.state = replace(self.state, status="failed", message=_why(self.child, code, limits))
        else:
            status, folder = ENDS.get(self.result["status"], "failed"), self.result["folder"]
            self.state = replace(
                self.state,
                status=status,
                fraction=1.0 if status == "finished" else self.state.fraction,
                message=self.result["error"],
                folder=Path(folder) if folder else None,
            )


def _why(child: Child | DaskChild, code: int, limits: dict[str, int]) -> str:
    """Return a sentence on why a process ended with `code` and without any result."""
    ended = signal.Signals(-code).name if -code in set(signal.Signals) else ""
    if ended == "SIGXCPU":
        return f"it used more than {limits['cpu']} s of CPU time; use fewer steps or workers."
    if ended == "SIGKILL":
        return "it was killed from outside; most likely the machine ran out of memory."
    if ended == "SIGSEGV":
        return "it crashed with a segmentation fault."
    if code < 0:
        return f"it was ended by signal {-code}."
    return f"it ended with code {code} and without a result. {child.last_words()}".strip()

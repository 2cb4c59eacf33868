"""A job spec: work other than a run, to be done in a process of the pool. Its result is a folder among the runs.

    JobSpec("study", {"schedule": "1f1b", "ranks": 64})

The module of its kind has `perform(values, root, progress) -> Path`: it does the job, calls progress(part) or
progress(part, phase) now and then, and returns where the result is. A job takes plain values and makes files, so the
process that requested it needs no other memory.
"""

import errno
import hashlib
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.runs import sealed
from experiments.runs.record import Run
from experiments.runs.summary import ROOT, source_version

KINDS = {
    "fit": "experiments.measure.fit",
    "study": "experiments.study.schedules",
    "collective": "experiments.study.collectives",
    "rate": "experiments.study.rates",
    "kernels": "experiments.measure.kernel_times",
    "threads": "experiments.measure.warps",
    "learning": "experiments.learning.replay",
    "lesson": "lessons.job_specs",
    "script": "experiments.jobs.script",
    "upload": "experiments.jobs.upload",
}
"""Kinds of jobs, and the modules whose function `perform` does them."""
NEXT = "experiments.learning.record"
"""The module whose `spec(run)` returns the job to do after a run, since readers look at its result next."""
RECORDING = "experiments.learning.recording"
"""The module whose function `record(experiment, on_progress, stop)` returns (run, Recording or None)."""
SOON = 5.0  # s; a run that took longer and was not recorded is not replayed until a reader asks for it
MANY_THREADS = ("script",)
"""Kinds that run a thread per rank, each of which reserves address space that it never uses."""


@dataclass(frozen=True)
class JobSpec:
    """A kind of job, one of KINDS, and its values as plain JSON."""

    kind: str
    values: dict[str, Any]

    def key(self) -> str:
        """Return the key of this job: its kind and 16 hexadecimal digits. Equal specs have equal keys."""
        text = json.dumps(self.values, sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def place(self, root: str | Path, source: str = "") -> Path:
        """Return the folder for the result of this version of the source, by default the version on disk."""
        path = ROOT / f"{KINDS[self.kind].replace('.', '/')}.py"
        version = hashlib.sha256((source or source_version()).encode() + path.read_bytes()).hexdigest()[:8]
        return Path(root) / f"{self.key()}-{version}"

    def find_result(self, root: str | Path, source: str = "") -> Path | None:
        """Return the folder with the result of this version of the source, or None if it is missing or damaged."""
        place = self.place(root, source)
        return place if place.is_dir() and not sealed.altered_files(place) else None

    def perform(
        self, root: str | Path, progress: Callable[..., None] = lambda part, phase="": None, **known: Any
    ) -> Path:
        """Do the job in this process and return the path of its result. Raise ValueError or OSError if it fails.

        `known` holds results that this process already has, as keyword arguments of the module's `perform`.
        """
        return importlib.import_module(KINDS[self.kind]).perform(self.values, Path(root), progress, **known)

    def keep(self, root: Path, write: Callable[[Path], object]) -> Path:
        """Create the files of the result with write(folder), and return their folder. They are created completely or
        not at all.
        """
        return keep(self.place(root), write)

    def keep_json(self, root: Path, file: str, found: Any) -> Path:
        """Store the result as a single JSON file, and return its folder."""
        text = json.dumps(found, ensure_ascii=False)
        return self.keep(root, lambda folder: (folder / file).write_text(text, "utf-8"))


def following(run: Run, is_recorded: bool = False) -> JobSpec | None:
    """Return the job to do after `run`, or None. The process of `run` does it, since that has everything loaded.

    A run that `is_recorded` needs no replay, so its job follows however long the run took.
    """
    if run.status != "finished" or (run.summary["wall_seconds"] > SOON and not is_recorded):
        return None
    try:
        return importlib.import_module(NEXT).spec(run)
    except ValueError:  # there is nothing to see, which the page explains
        return None


def keep(place: Path, write: Callable[[Path], object]) -> Path:
    """Create the folder `place` with write(folder), unless it exists undamaged, and return it. It is created completely
    or not at all.
    """
    with sealed.under_way(place.parent) as part:
        write(part)
        sealed.seal(part)
        if place.exists() and sealed.altered_files(place):
            sealed.put_aside(place)
        try:
            sealed.settle(part, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    return place

"""Do a job in the process of a Dask worker, as `worker.py` does one in a process of this machine.

Status lines go through the scheduler; the last one and the files of the result come back as the task's result. A worker
runs one job at a time.
"""

import contextlib
import io
import json
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker
from distributed.utils import sync

from experiments.jobs.dask_cluster import ENDS, other_version
from experiments.jobs.worker import StatusWriter, attempt
from experiments.runs.progress import Progress
from experiments.runs.summary import source_version

BRIEF = 0.2  # s in which a job sends no progress: a shorter one is over before anybody could see it
ATTEMPTS = 2  # times that a job is begun; each worker that ends meanwhile takes one of them
VERSION = source_version()  # of the source that this process has loaded
_stops: dict[str, threading.Event] = {}  # of the jobs in this process, by key


class DaskReport(StatusWriter):
    """A reporter that sends status lines to `topic`, and keeps the line that ends the job as `end`.

    Lines are sent as text, so that the scheduler does not take curves apart.
    """

    def __init__(self, worker: Worker, topic: str, key: str, stop: threading.Event):
        self.worker, self.topic, self.key, self.stop = worker, topic, key, stop
        self.end: dict[str, Any] = {}
        self.began = time.monotonic()

    def __call__(self, kind: str, **values: Any) -> None:
        line = {"kind": kind, **values}
        if kind in ENDS:
            self.end = line
        else:
            self.send(line)

    def send(self, line: dict[str, Any]) -> None:
        self.worker.log_event(self.topic, {"key": self.key, "line": json.dumps(line)})

    def progress(self, progress: Progress) -> None:
        """Send a line with the progress of a run, unless the job began less than BRIEF seconds ago."""
        if time.monotonic() >= self.began + BRIEF:
            super().progress(progress)

    def part(self, fraction: float, phase: str = "") -> None:
        """Send a line with the progress of a job that is not a run. Raise KeyboardInterrupt if it has been stopped."""
        if self.stop.is_set():
            raise KeyboardInterrupt
        super().part(fraction, phase)


def perform(text: str, topic: str, key: str) -> tuple[dict[str, Any], bytes]:
    """Do the job whose spec is the JSON `text`. Return its last status line and the packed folder of its result.

    Where the server shares the disk, nothing is packed, and the line is also sent to `topic`, which is sooner and
    cheaper than fetching it.
    """
    spec = json.loads(text)
    worker, stop = get_worker(), _stops.setdefault(key, threading.Event())
    report = DaskReport(worker, topic, key, stop)
    earlier = sync(worker.loop, worker.scheduler.events, topic=attempts_topic(topic, key))
    worker.log_event(attempts_topic(topic, key), worker.address)
    report("begun", address=worker.address)
    try:
        if why := _refusal(spec, len(earlier), worker.address):
            return {"kind": "error", "error": why}, b""
        if (Path(spec["root"]) / spec["shared"]).exists():
            attempt(spec, report, stop)
            report.send(report.end)
            return report.end, b""
        with tempfile.TemporaryDirectory() as folder:
            attempt({**spec, "root": folder}, report, stop)
            return {**report.end, "folder": Path(report.end.get("folder", "")).name}, pack(report.end.get("folder", ""))
    finally:
        _stops.pop(key, None)


async def stop(key: str) -> None:
    """Stop the job of this process with that key, if it has one; what it recorded is stored."""
    with contextlib.suppress(KeyError):
        _stops[key].set()


def version() -> str:
    """Return the version of the source that this worker has loaded."""
    return VERSION


def attempts_topic(topic: str, key: str) -> str:
    """Return the topic to which each attempt at this job adds a line."""
    return f"{topic}-{key}"


def pack(folder: str) -> bytes:
    """Return the files of a folder as a tar archive, or b"" if there is no folder."""
    out = io.BytesIO()
    if folder:
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(folder, ".")
    return out.getvalue()


def _refusal(spec: dict[str, Any], earlier: int, address: str) -> str:
    """Return a sentence on why this process must not do the job, or "" if it may."""
    if earlier >= ATTEMPTS:
        return (
            f"{earlier} Dask workers ended while they ran it, most likely because they had too little memory; use a "
            "smaller model or fewer workers, or start Dask workers with a larger --memory-limit."
        )
    if (mine := version()) != spec["version"]:
        return other_version(address, mine, spec["version"])
    return ""

"""A Dask cluster on which the pool runs jobs.

    cluster = DaskCluster("tcp://scheduler:8786")       or "local:4": four processes of this machine
    child = cluster.child(selector)                     what `process.Child` is for a job on this machine

A thread of its own keeps the connection, so that neither the pool nor a page ever waits for the network. Results arrive
as the files of the stored run. A shared disk is not needed; where there is one, workers write to it.
"""

import contextlib
import io
import json
import queue
import re
import secrets
import selectors
import signal
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from experiments.jobs.spec import JobSpec, keep
from experiments.jobs.worker import UNBEGUN, within_bound
from experiments.runs import sealed
from experiments.runs.summary import source_version
from experiments.specification.experiment import Experiment

VARIABLE = "LOCKSTEP_POOL"
ADDRESS = re.compile(r"local:[1-9]\d{0,3}|\w+://\S+:\d+")
KINDS = ("study", "collective", "rate")
"""Kinds of job specs that may leave this machine: they hold plain values, and neither code nor files of a reader."""
BUILT_IN = ("digits", "spirals", "text", "quadratic", "sparse")
"""Workloads whose data every installation has."""
EVERY = 1.0  # s between two looks at the cluster
LOCAL = {
    "distributed.worker.profile.enabled": False,  # it samples every thread a hundred times a second
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.preload": ["import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"],
}
"""Settings of a local cluster. Its scheduler shares this machine's cores with the runs. A terminal sends Ctrl-C to its
workers as well, which ignore it: the command stops their runs, which are then stored."""
CONNECT = 5.0  # s for a connection
POLITE = 10.0  # s that a worker has to stop a job before its process is restarted
WAITING = "waiting for a Dask worker"
ENDS = ("result", "error")  # kinds of lines that end a job


def may_leave(work: Experiment | JobSpec) -> bool:
    """Return True if this work can be repeated on another machine and contains no code or data of a reader."""
    if isinstance(work, JobSpec):
        experiment = work.values.get("experiment")
        return work.kind in KINDS and (experiment is None or may_leave(Experiment.of(experiment)))
    return work.is_repeatable and work.workload in BUILT_IN and not work.files


@contextlib.contextmanager
def mapping(address: str) -> Iterator[Callable[[Callable, Iterable], Iterator]]:
    """Yield `imap(function, items)`, which calls an importable function on the workers and yields its results in order.

    Raise ValueError if the cluster cannot be reached, or if a worker has another version of the source.
    """
    from experiments.jobs import dask_job

    try:
        client, local = connect(address)
    except OSError as error:
        raise ValueError(
            f"the Dask scheduler at {address} does not answer ({type(error).__name__}); check that it is running."
        ) from None
    try:
        here = source_version()
        for worker, version in client.run(dask_job.version).items():
            if version != here:
                raise ValueError(other_version(worker, version, here))
        yield lambda function, items: (future.result() for future in client.map(function, items, pure=False))
    finally:
        client.close()
        if local:
            local.close()


def connect(address: str, local: Any = None) -> tuple[Any, Any]:
    """Return (client of the scheduler at `address`, local cluster or None). An address such as "local:4" starts a local
    cluster, unless `local` already is one.

    Raise ValueError without Dask or with an invalid address, and OSError if the scheduler does not answer.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError(
            f"the pool {address[:60]!r} needs Dask, which is missing; pip install 'lockstep[cluster]' installs it."
        ) from None
    if not ADDRESS.fullmatch(address):
        raise ValueError(
            f"the pool is {address[:60]!r}; give the address of a Dask scheduler, such as tcp://10.0.0.1:8786, or "
            "local:4 for four processes of this machine."
        )
    if address.startswith("local:") and local is None:
        count = int(address.partition(":")[2])
        with dask.config.set(LOCAL):
            local = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # or Dask warns where another scheduler runs
                memory_limit=0,
                silence_logs="ERROR",
            )
    return Client(local or address, timeout=CONNECT, set_as_default=False, name="lockstep"), local


def other_version(worker: str, version: str, here: str) -> str:
    """Return a sentence saying that a worker has another version of the source."""
    return (
        f"the Dask worker {worker} has version {version} of Lockstep's source, but the server has {here}; install the "
        "same version on both."
    )


class DaskCluster:
    """The Dask cluster of the scheduler at `address`, whose results are stored below `root`.

    `workers` are the addresses of its workers; `trouble` is a sentence saying why jobs cannot be sent to it, or "".
    Raise ValueError like `connect`.
    """

    def __init__(self, address: str, root: Path):
        self.address, self.root, self.trouble = address, root, ""
        self.workers: tuple[str, ...] = ()
        self._client: Any = None
        self._local: Any = None
        self._token, self._topic = f".shared-{secrets.token_hex(8)}", f"lockstep-{secrets.token_hex(8)}"
        self._children: dict[str, DaskChild] = {}
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._doomed: dict[str, float] = {}  # worker -> when its process is restarted, unless its job ends before
        try:
            self._connect()
            self._look()
        except OSError as error:
            self._lose(error)
        root.mkdir(parents=True, exist_ok=True)
        (root / self._token).touch()
        self._thread = threading.Thread(target=self._loop, name="experiments.jobs.dask_cluster", daemon=True)
        self._thread.start()

    @property
    def slots(self) -> int:
        """The number of jobs sent to the cluster at a time: one more than it has workers, so that no worker waits for
        its next job.
        """
        return len(self.workers) + 1

    def child(self, selector: selectors.BaseSelector) -> "DaskChild":
        """Return a DaskChild for a job that has not begun. Raise OSError if jobs cannot be sent to the cluster."""
        if self.trouble:
            raise OSError(self.trouble)
        return DaskChild(self, selector)

    def close(self) -> None:
        """End the connection, and the processes of a local cluster."""
        self._requests.put(None)
        self._thread.join()
        for one in (self._client, self._local):
            if one is not None:
                with contextlib.suppress(Exception):
                    one.close()
        (self.root / self._token).unlink(missing_ok=True)

    # called by jobs, in the pool's thread

    def submit(self, child: "DaskChild", spec: dict[str, Any]) -> None:
        """Send a job to the cluster."""
        self._children[child.key] = child
        text = json.dumps({**spec, "shared": self._token, "follow": False, "memory": None})
        self._requests.put(lambda: self._send(child, text))

    def stop(self, child: "DaskChild", by_force: bool) -> None:
        """Ask the worker of this job to stop it; `by_force` restarts the worker's process if it does not."""
        self._requests.put(lambda: self._stop(child, by_force))

    # done in this object's own thread

    def _loop(self) -> None:
        looked = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                request = self._requests.get(timeout=max(0.0, looked + EVERY - time.monotonic()))
                if request is None:
                    return
                request()
            if time.monotonic() >= looked + EVERY:
                self._look()
                looked = time.monotonic()

    def _look(self) -> None:
        """Connect if necessary, update the list of workers, and restart those that did not stop a job in time."""
        try:
            if self._client is None or self._client.status != "running":
                self._connect()
            self._client.subscribe_topic(self._topic, self._hear)  # again, in case the scheduler has restarted
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            self.workers = tuple(found)
            several = [worker for worker, facts in found.items() if facts["nthreads"] != 1]
            self.trouble = (
                f"the Dask worker {several[0]} has {found[several[0]]['nthreads']} threads; start workers with "
                "--nthreads 1, since a job needs a process of its own."
                if several
                else ""
            )
            now = time.monotonic()
            for worker in [worker for worker, when in self._doomed.items() if now >= when]:
                del self._doomed[worker]
                with contextlib.suppress(Exception):  # it has no nanny, or is gone
                    self._client.restart_workers([worker], timeout=CONNECT, raise_for_error=False)
        except Exception as error:  # whatever the network does
            self._lose(error)

    def _connect(self) -> None:
        """Connect to the scheduler. Raise OSError if it does not answer."""
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.close(timeout=0)
        self._client, self._local = connect(self.address, self._local)

    def _lose(self, error: Exception) -> None:
        """Record that the cluster does not answer, and end its jobs."""
        self.workers, self.trouble = (), self._unreachable(error)
        for child in [*self._children.values()]:
            self._end(child, {"kind": "error", "error": self.trouble})

    def _send(self, child: "DaskChild", text: str) -> None:
        from experiments.jobs import dask_job

        try:
            child.future = self._client.submit(
                dask_job.perform, text, self._topic, child.key, key=child.key, pure=False
            )
            child.future.add_done_callback(lambda future: self._receive(child, future))
        except Exception as error:
            self._lose(error)

    def _receive(self, child: "DaskChild", future: Any) -> None:
        """Tell the pool how a job has ended, unless an event has already told it. Called by Dask in a thread of its
        own.
        """
        if child.key in self._children:
            self._end(child, self._fetch(future))
        child.future = None  # or Dask would compute the result again if the worker that holds it dies

    def _fetch(self, future: Any) -> dict[str, Any]:
        """Store the files of a job's result, and return the job's last line."""
        try:
            line, files = future.result(timeout=CONNECT)
            if files:
                line["folder"] = str(unpack(files, line["folder"], self.root))
            return line
        except Exception as error:
            return {"kind": "error", "error": self._why(error)}

    def _why(self, error: Exception) -> str:
        """Return a sentence on why a job came back without a result."""
        if type(error).__name__ == "KilledWorker":
            return "the Dask workers that ran it ended, most likely because they had too little memory."
        if isinstance(error, ModuleNotFoundError):
            return f"a Dask worker has no module {error.name}; install Lockstep where the workers run."
        if isinstance(error, ValueError | OSError):
            return f"its result could not be received or stored: {error}"
        return self._unreachable(error)

    def _unreachable(self, error: Exception) -> str:
        return (
            f"the Dask scheduler at {self.address} does not answer ({type(error).__name__}); stored results can still "
            "be shown, and runs start again once it is back."
        )

    def _stop(self, child: "DaskChild", by_force: bool) -> None:
        from experiments.jobs import dask_job

        if child.key not in self._children:  # it has ended meanwhile
            return
        try:
            if child.address:
                self._client.run(dask_job.stop, child.key, workers=[child.address], wait=False)
                if by_force:
                    self._doomed[child.address] = time.monotonic() + POLITE
            else:
                child.future.cancel()
                self._end(child, {"kind": "result", "status": "cancelled", "error": UNBEGUN, "folder": ""})
        except Exception as error:
            self._lose(error)

    def _hear(self, event: tuple[float, dict[str, str]]) -> None:
        """Pass a status line on to its job. Called in the client's thread."""
        child = self._children.get(event[1]["key"])
        if child is None:
            return
        line = json.loads(event[1]["line"])
        if line["kind"] == "begun":
            child.address = line["address"]
        if line["kind"] in ENDS:
            self._end(child, line)
        else:
            child.tell(line)

    def _end(self, child: "DaskChild", line: dict[str, Any]) -> None:
        """Pass a job's last line to `child`, then finish `child`. Do nothing if it is already finished."""
        if self._children.pop(child.key, None) is None:
            return
        self._doomed.pop(child.address, None)
        child.tell(line)
        child.finish()


class DaskChild:
    """A job on a Dask cluster, as the pool sees it: it has the methods of `process.Child`."""

    pidfd, flooded = -1, False  # its end is an event of the selector

    def __init__(self, cluster: DaskCluster, selector: selectors.BaseSelector):
        self.cluster, self.selector = cluster, selector
        self.heard: Callable[[dict[str, Any]], Any] = lambda line: None
        self.key = f"lockstep-{secrets.token_hex(8)}"
        self.address = ""  # of the worker, once it has begun
        self.future: Any = None  # Dask's, once it is sent
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._code: int | None = None
        self._bell, self._ring = socket.socketpair()
        for end in (self._bell, self._ring):
            end.setblocking(False)
        selector.register(self._bell, selectors.EVENT_READ, lambda bell: self._read())

    def begin(self, spec: dict[str, Any], heard: Callable[[dict[str, Any]], None]) -> None:
        """Send `spec` to the cluster, and call `heard` with each status line."""
        self.heard = heard
        heard({"kind": "phase", "phase": WAITING})
        self.cluster.submit(self, spec)

    def ask(self) -> None:
        """Ask the worker to stop the job and store what it recorded."""
        self.cluster.stop(self, by_force=False)

    def kill(self) -> None:
        """Give up the job. Its worker process is restarted unless it stops the job within POLITE seconds."""
        if self._code is None:
            self._code = -signal.SIGKILL
            self.cluster.stop(self, by_force=True)
            self._wake()

    def has_exited(self) -> bool:
        """Return True if the job has ended."""
        return self._code is not None

    def reap(self) -> int:
        """Read the remaining lines, and return 0, or a negative code if the job was killed."""
        self._read()
        self.selector.unregister(self._bell)
        for end in (self._bell, self._ring):
            end.close()
        return self._code or 0

    def last_words(self) -> str:
        """Return "": all messages of a job are status lines."""
        return ""

    # called by the cluster's threads

    def tell(self, line: dict[str, Any]) -> None:
        """Pass a status line on to the pool."""
        self._lines.put(line)
        self._wake()

    def finish(self) -> None:
        """Record that the job has ended, after its last line."""
        if self._code is None:
            self._code = 0
        self._wake()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            self._bell.recv(4096)
        with contextlib.suppress(queue.Empty):
            while True:
                self.heard(self._lines.get_nowait())

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the pool has been woken already, or has reaped the job
            self._ring.send(b".")


def unpack(files: bytes, name: str, root: Path) -> Path:
    """Store a packed result below `root` as `name`, unless it is already there, and return its folder.

    Raise ValueError if it is damaged, or OSError if it cannot be written.
    """

    def extract(part: Path) -> None:
        try:
            with tarfile.open(fileobj=io.BytesIO(files)) as tar:
                tar.extractall(part, filter="data")
        except tarfile.TarError as error:
            raise ValueError(f"{error}.") from None
        if altered := sealed.altered_files(part):
            raise ValueError(f"{altered[0]} is damaged.")

    with within_bound({"root": str(root)}):
        return keep(root / name, extract)

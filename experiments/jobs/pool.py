"""The pool runs experiments and other jobs of many readers, a few at a time, each in its own process.

    pool = Pool("runs")
    job = pool.submit(owner, experiment)      # at once; the same experiment submitted twice is one job
    pool.state(job)                           # queued with its place, running with its curve, finished with its folder
    pool.cancel(job, owner)

One thread owns the processes: it starts them, reads their status, enforces their limits, and reaps them. A prewarmed
pool starts the next process before there is a job for it. Other threads only make requests and read states. A job that
crashes, runs away or exhausts the memory ends in a state that says so; it cannot affect this process. An owner's new
job replaces the old one; a job that has lost its last owner is killed together with its descendants. Readers take turns
(see experiments.jobs.turns).
"""

import atexit
import contextlib
import json
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from experiments.jobs import memory, turns
from experiments.jobs.dask_cluster import DaskChild, DaskCluster, may_leave
from experiments.jobs.job import FOREVER, Job, JobState
from experiments.jobs.process import Child
from experiments.jobs.spare import Spare
from experiments.jobs.spec import MANY_THREADS, JobSpec
from experiments.runs import cached, store
from experiments.runs.summary import source_version
from experiments.specification.experiment import Experiment
from kernels import compiling

COMMAND = (sys.executable, "-u", "-m", "experiments.jobs.worker")
FRESH = 1.0  # s for which the version of the source is remembered: reading all files takes 10 ms
KEPT = 1000  # finished jobs that are remembered
POLITE = 60.0  # s for a stopped job to store what it recorded; a busy machine took more than 10
UNSTORED = "the recorded data could not be stored in time"


class Pool:
    """A pool that runs `slots` jobs at a time (default: one fewer than cores) and queues up to `queue` more. Readers
    share both fairly.

    Each job may use `wall` seconds, and on POSIX `cpu` seconds of CPU time and `memory` bytes per process; on Linux the
    limit applies to all its processes together, except for ranks on GPUs. A run that reaches a time limit stops and
    keeps what it recorded; if it does not stop within POLITE seconds, it is killed, as is any other job. An owner's
    lease ends `lease` seconds after its last renewal, or `grace` seconds after its release. To run several jobs at
    once, an owner submits them as "ada", "ada/study" and so on, which are released together.

    With `dask`, the address of a Dask scheduler, jobs that hold no code or data of a reader run on its workers. The
    source's version is read again when it is `fresh` seconds old; a pool that serves one command reads it once.
    """

    def __init__(
        self,
        root: str | Path,
        slots: int | None = None,
        *,
        queue: int = 100,
        wall: float = 600.0,
        cpu: int = 600,
        memory: int = 4_000_000_000,
        lease: float = 600.0,
        grace: float = 30.0,
        command: Sequence[str] = COMMAND,
        dask: str = "",
        fresh: float = FRESH,
    ):
        self.root, self.wall, self.lease, self.grace = Path(root).resolve(), wall, lease, grace
        self.slots, self.most = slots or max(1, (os.cpu_count() or 2) - 1), queue
        self.limits, self.command = {"cpu": cpu, "memory": memory}, tuple(command)
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._queue: list[Job] = []  # in the order they were requested
        self._turns, self._look = turns.Turns(), 0.0  # and when memory is checked next
        self._running: list[Job] = []
        self._fresh, self._version, self._read = fresh, "", -FOREVER  # version of the source, and when it was read
        self._owners: dict[str, float] = {}  # owner -> monotonic time at which its lease ends
        self._closing = False
        self._selector = selectors.DefaultSelector()
        self._spare = Spare(self.command, self._selector)
        self.dask = DaskCluster(dask, self.root) if dask else None
        self._bell, self._ring = socket.socketpair()  # because a selector on Windows accepts no pipe
        for end in (self._bell, self._ring):
            end.setblocking(False)
        self._selector.register(self._bell, selectors.EVENT_READ, lambda bell: bell.recv(4096))
        self._thread = threading.Thread(target=self._loop, name="experiments.jobs.pool", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    # asked by any thread

    @property
    def capacity(self) -> int:
        """The number of jobs that can run at a time, here and on the Dask cluster."""
        return self.slots + (self.dask.slots if self.dask else 0)

    def submit(self, owner: str, work: Experiment | JobSpec) -> str:
        """Submit `work` for `owner`, unless its result is stored. Return the job's id, which is the work's key.

        The owner's other job, if any, is given up. If the queue is full, a job of the reader with the most jobs makes
        way. Raise ValueError if that is this reader, if nobody has more than one, or if an experiment names files of
        this machine, since it may have come from anywhere.
        """
        if isinstance(work, Experiment) and work.files:
            raise ValueError(
                f"the experiment gives a {work.files[0]}, but readers may not name files of this machine; "
                "run it on the command line."
            )
        name, version, far = work.key(), self._source_version(), self.dask is not None and may_leave(work)
        folder = self._stored(work, version)
        with self._lock:
            if self._closing:
                raise ValueError("the pool is closed; start the workbench again.")
            self._owners[owner] = time.monotonic() + self.lease
            for other in [*self._queue, *self._running]:
                if other.name != name:
                    self._leave(other, owner, "replaced by a newer run")
            job = self._jobs.get(name)
            if job is None or not job.state.active or job.ending:
                if folder is not None:
                    cached.use(folder)
                    self._remember(Job(name, work, JobState("finished", fraction=1.0, folder=folder)))
                    return name
                self._make_room(turns.reader(owner))
                job = Job(name, work, JobState("queued"), version=version, length=turns.length(work), far=far)
                self._remember(job)
                self._queue.append(job)
            job.owners.add(owner)
        self._wake()
        return name

    def reattach(self, owner: str, work: Experiment | JobSpec) -> str | None:
        """Transfer the job of `work` to `owner` from an owner that was released, for example when a page was reloaded.

        Return the job's id, or None if there is no such job. Nothing is started. A job that has ended counts, too,
        during the grace period of its previous owner.
        """
        with self._lock:
            job, now = self._jobs.get(work.key()), time.monotonic()
            left = {one for one in job.owners if self._owners.get(one, FOREVER) - now <= self.grace} if job else set()
            if not job or not left:
                return None
            self._owners[owner] = now + self.lease
            job.owners.difference_update(left)
            job.owners.add(owner)
            return job.name

    def has_other_readers(self, owner: str) -> bool:
        """Return True if a job of another reader is waiting or running."""
        with self._lock:
            return any(job.readers - {turns.reader(owner)} for job in [*self._queue, *self._running])

    def state(self, job: str) -> JobState:
        """Return the state of `job`. Raise ValueError if this pool has no such job."""
        with self._lock:
            known = self._jobs.get(job)
            if known is None:
                raise ValueError(f"there is no job {job[:40]!r}; it was never submitted, or was dropped long ago.")
            if known in self._queue:
                place = self._turns.order(self._queue, self._running).index(known) + 1
                phases = {job.state.phase for job in self._running} & {compiling.WORDS}
                return replace(known.state, place=place, phase="".join(phases))
            return known.state

    def cancel(self, job: str, owner: str | None = None) -> bool:
        """Stop `job` and keep what it recorded. If other owners still wait for it, only remove `owner` from its owners.
        Without an `owner`, stop it in any case.

        Return True if it stops or has ended, False if another owner still waits for it.
        """
        with self._lock:
            known = self._jobs.get(job)
            if known is None or not known.state.active:
                return True
            if owner is not None and known.owners - {owner}:
                known.owners.discard(owner)
                return False
            if known in self._queue:
                self._drop(known, "stopped before it began")
            elif not known.ending:
                known.ending, known.deadline = UNSTORED, time.monotonic() + POLITE
                known.child.ask()
        self._wake()
        return True

    def touch(self, owner: str) -> None:
        with self._lock:
            self._owners[owner] = time.monotonic() + self.lease

    def release(self, owner: str) -> None:
        """Let the lease of `owner` end after the grace period, unless it is renewed.

        This includes every owner whose name continues it after a slash, such as "ada/study" for "ada".
        """
        with self._lock:
            for name in self._owners:
                if name == owner or name.startswith(f"{owner}/"):
                    self._owners[name] = time.monotonic() + self.grace
        self._wake()

    def prewarm(self) -> None:
        """Keep a process ready, so that the next job starts without importing anything."""
        self._spare.wanted = True
        self._wake()

    def close(self) -> None:
        """Kill all jobs and wait until they are gone."""
        atexit.unregister(self.close)
        with self._lock:
            self._closing = True
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the thread has been woken already, or has ended
            self._ring.send(b".")

    # done by the pool's own thread

    def _loop(self) -> None:
        while True:
            with self._lock:
                self._expire()
                if self._closing:
                    for job in [*self._queue]:
                        self._drop(job, "the pool was closed")
                    for job in self._running:
                        self._kill(job, "the pool was closed", "pool")
                    if not self._running:
                        break
                if any(not self._has_slot(job) for job in self._queue):
                    for job in [job for job in self._running if not job.owners]:
                        self._kill(job, "a run needed its slot", "pool")
                while able := [*filter(self._has_slot, self._turns.order(self._queue, self._running))]:
                    job = able[0]
                    self._turns.take(job)
                    self._queue.remove(job)
                    self._start(job)
                patience = self._patience()
            asked = any(job.owners for job in self._running)
            self._spare.prepare(free=bool(self._queue) or not asked)  # it shares no core with a job of a reader
            events = self._selector.select(patience)
            with self._lock:
                for key, _ in events:
                    key.data(key.fileobj)
                for job in [job for job in self._running if job.child.has_exited()]:
                    self._running.remove(job)
                    job.end(job.child.reap(), self.limits)
            self._weigh()
        self._spare.dismiss()
        if self.dask:
            self.dask.close()
        self._selector.close()
        for end in (self._bell, self._ring):
            end.close()

    def _has_slot(self, job: Job) -> bool:
        """Return True if a slot is free where this job would run."""
        taken = sum(other.far == job.far for other in self._running)
        return taken < (self.dask.slots if job.far and self.dask else self.slots)

    def _child(self, job: Job) -> Child | DaskChild:
        """Return the process or Dask job that will do `job`. Raise OSError if it cannot be started."""
        if job.far and self.dask:
            return self.dask.child(self._selector)
        return self._spare.take(job.version) or Child(self.command, self._selector)

    def _start(self, job: Job) -> None:
        spec: dict[str, Any] = {"root": str(self.root), "parent": os.getpid(), "version": job.version, **self.limits}
        if isinstance(job.work, JobSpec):
            spec["job_spec"] = asdict(job.work)
            if job.work.kind in MANY_THREADS and memory.WATCHED:
                spec["memory"] = None
        else:
            spec |= {"experiment": json.loads(job.work.json()), "wall": self.wall, "polite": POLITE, "follow": True}
            if job.work.cluster != "simulated":
                spec["memory"] = None  # torch, and even more so CUDA, reserve far more address space than they use
        try:
            job.child = self._child(job)
        except OSError as error:
            why = f"no process could be started: {error.strerror}." if error.strerror else str(error)
            job.state = replace(job.state, status="failed", message=why)
            return
        job.child.begin(spec, partial(self._hear, job))
        job.state = replace(job.state, status="running")
        job.deadline = FOREVER if job.far else time.monotonic() + self.wall + spec.get("polite", 0.0)
        self._running.append(job)

    def _hear(self, job: Job, line: dict[str, Any]) -> None:
        """Process one line of the job's output. If another job follows, the process and later lines belong to that job.

        A job that followed belongs to nobody until a reader submits it, and ends when another job needs its place.
        """
        if line["kind"] == "begun":  # by a Dask worker, for which it may have waited
            job.deadline = time.monotonic() + self.wall + POLITE
        if line["kind"] != "follows":
            return job.hear(line)
        work = JobSpec(**line["job_spec"])
        known = self._jobs.get(work.key())
        if job not in self._running or job.ending or (known and known.state.active):
            job.child.heard = lambda _: None
            return job.child.kill()  # it has stored its own result
        after = Job(work.key(), work, JobState("running"), version=job.version, deadline=time.monotonic() + self.wall)
        after.child = job.child
        after.child.heard = partial(self._hear, after)
        self._running[self._running.index(job)] = after
        self._remember(after)
        job.end(0, self.limits)

    def _expire(self) -> None:
        """Kill jobs that exceed the wall-clock limit or print a line too long to read, and drop jobs whose owners are
        all gone.
        """
        now = time.monotonic()
        for job in self._running:
            if job.child.flooded:
                self._kill(job, "it wrote a line that is too long to read", "limit")
            elif now >= job.deadline:
                self._kill(job, f"it took longer than {self.wall:g} s; use fewer steps or workers", "limit")
        for owner in [owner for owner, until in self._owners.items() if now >= until]:
            del self._owners[owner]
            for job in [*self._queue, *self._running]:
                self._leave(job, owner, "its reader has left")

    def _weigh(self) -> None:
        """Kill each job on this machine that exceeds the memory limit, counting its descendants; jobs on GPUs have no
        limit. Do nothing if the last check was too recent.
        """
        began = time.monotonic()
        if not memory.WATCHED or began < self._look:
            return
        children = [(job.child, job) for job in self._running if not job.on_gpus]
        watched = {child.process.pid: job for child, job in children if isinstance(child, Child)}
        most = self.limits["memory"]
        for leader, processes in (memory.groups(watched) if watched else {}).items():
            if memory.memory_used(processes, most) > most:
                with self._lock:
                    self._kill(watched[leader], memory.excess(most), "limit")
        now = time.monotonic()
        self._look = now + max(memory.EVERY, 4 * (now - began))  # a close look at gigabytes takes a second

    def _patience(self) -> float:
        """Return how many seconds the pool's thread may wait for events: until its next deadline or check."""
        due = [job.deadline for job in self._running]
        if due or self._queue:
            due += self._owners.values()
        longest = 0.05 if any(job.child.pidfd is None for job in self._running) else 5.0
        if self._running and memory.WATCHED:
            longest = min(longest, memory.EVERY)
        return max(0.0, min([longest, *(moment - time.monotonic() for moment in due)]))

    def _source_version(self) -> str:
        """Return the version of the source on disk, read at most `fresh` seconds ago."""
        now = time.monotonic()
        if now - self._read >= self._fresh:
            self._version, self._read = source_version(), now
        return self._version

    def _stored(self, work: Experiment | JobSpec, version: str) -> Path | None:
        if isinstance(work, JobSpec):
            return work.find_result(self.root)
        return store.find_stored_run(work, version, self.root)

    # with the lock held, by any thread

    def _make_room(self, reader: str) -> None:
        """If the queue is full, drop a job of the reader with the most jobs. Raise ValueError if none can be dropped.

        A job for which a slot is free does not count as queued, even if the pool's thread has not started it yet.
        """
        free = max(0, self.capacity - len(self._running))
        waiting = self._turns.order(self._queue, self._running)[free:]
        if len(waiting) < self.most:
            return
        job = turns.job_to_drop(waiting, reader)
        if job is None:
            mine = sum(reader in job.readers for job in waiting)
            raise ValueError(
                f"the queue is full: {len(waiting)} runs are waiting, {mine} of them yours; try again in a minute."
            )
        self._drop(job, "the queue was full, and other readers had fewer jobs in it; try again in a minute")

    def _leave(self, job: Job, owner: str, why: str) -> None:
        if owner not in job.owners:
            return
        job.owners.discard(owner)
        if not job.owners:
            if job in self._queue:
                self._drop(job, why)
            else:
                self._kill(job, why, "reader")

    def _kill(self, job: Job, why: str, by: Literal["limit", "reader", "pool"]) -> None:
        if not job.ending:
            job.ending, job.ended_by = why, by
        job.deadline = FOREVER
        job.child.kill()

    def _drop(self, job: Job, why: str) -> None:
        self._queue.remove(job)
        job.state = replace(job.state, status="cancelled", message=f"{why}.")
        job.owners.clear()

    def _remember(self, job: Job) -> None:
        self._jobs.pop(job.name, None)
        self._jobs[job.name] = job
        ended = [name for name, old in self._jobs.items() if not old.state.active]
        for name in ended[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[name]

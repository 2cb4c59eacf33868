"""Shared memory for the ranks of one computer: one vector, not locked unless its guard asks for it.

If two ranks add to one element at the same moment, one addition may be lost. That race is the subject of Hogwild, and
here it is real. The memory is anonymous: it is freed when the last rank that maps it ends, even if it is killed.
"""

import mmap
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

import kernels
from cluster.shared_memory import Guard, SharedSteps
from kernels import METER, meter_kernels

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt as windows

    msvcrt: Any = windows  # elsewhere, type checkers do not know this module
    fcntl = None  # type: ignore[assignment]  # which is asked below

BEYOND = 1 << 40  # the byte that is locked on Windows to lock a whole file; nobody reads it
TURN = 1e-4  # s between two attempts to lock it


class MappedVector:
    """A vector in memory that every rank maps; implements `Shared`.

    `descriptor` is this rank's own file descriptor of the memory, which only locks need.
    """

    def __init__(self, vector: np.ndarray, guard: Guard = "none", descriptor: int = -1):
        self.vector, self._guard, self.descriptor = vector, guard, descriptor
        self._copy = vector.copy() if descriptor >= 0 else None

    def read(self, where: Any = None) -> np.ndarray:
        with self.lock() if self._guard == "locked" else nullcontext():
            values = self.vector.copy() if where is None else np.array(self.vector[where])
        _charge(2 * values.nbytes)
        return values

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        where = slice(None) if where is None else where
        if self._guard == "atomic":
            self._add_atomically(delta, where)
        else:
            with nullcontext() if self._guard == "none" else self.lock():
                if isinstance(where, slice):
                    self.vector[where] += delta
                else:
                    np.add.at(self.vector, where, delta)
        _charge(3 * np.asarray(delta).nbytes)

    def _add_atomically(self, delta: np.ndarray, where: Any) -> None:
        """Add `delta` without losing other ranks' additions: a contiguous slice in one call, otherwise row by row."""
        target, delta = self.vector[where], np.ascontiguousarray(delta, self.vector.dtype)
        if delta.shape != target.shape:
            delta = np.broadcast_to(delta, target.shape).copy()
        if isinstance(where, slice) and target.flags.c_contiguous:
            rows, parts = [target], [delta]
        else:
            rows = [self.vector[place : place + 1] for place in places(where, len(self.vector))]
            parts = list(delta.reshape(-1, self.vector[:1].size))
        with meter_kernels(None):
            for row, part in zip(rows, parts, strict=True):
                kernels.descend_atomic(row.reshape(-1), part.reshape(-1), -1.0)

    def walk(self, walk: SharedSteps) -> tuple[float, None]:
        """Take the steps directly in the memory or, with a lock, one by one on copies.

        Return the sum of their losses, and None in place of write counts.
        """
        if self._copy is None:
            return walk(self.vector, self._guard == "atomic"), None
        return sum(self._step(part, self._copy) for part in walk.parts()), None

    def _step(self, part: SharedSteps, own: np.ndarray) -> float:
        where = part.where
        with self.lock() if self._guard == "locked" else nullcontext():
            own[where] = self.vector[where]
        before = own[where].copy()
        loss = part(own, False)
        new = own[where]
        with self.lock():
            now = self.vector[where]
            self.vector[where] = np.where(now == before, new, now + (new - before))
        return loss

    def lock(self) -> AbstractContextManager:
        """Return a context that holds the lock during its block. The system releases the lock if the rank is killed."""
        return hold_lock(self.descriptor)

    def __del__(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)


def places(where: Any, length: int) -> np.ndarray:
    """Return the non-negative indices of `where`, a slice, index array or mask, in an array of this length."""
    if isinstance(where, slice):
        return np.arange(*where.indices(length))
    where = np.asarray(where)
    return np.flatnonzero(where) if where.dtype == bool else where.reshape(-1) % length


@contextmanager
def hold_lock(descriptor: int) -> Iterator[None]:
    """Hold the lock of this memory during the block. The system releases it if the process is killed."""
    if fcntl:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    else:
        _lock_byte(descriptor)
    try:
        yield
    finally:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        else:
            os.lseek(descriptor, BEYOND, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)


def _lock_byte(descriptor: int) -> None:
    """Lock a file on Windows, whose own blocking lock tries only once per second and gives up after ten attempts."""
    while True:
        os.lseek(descriptor, BEYOND, os.SEEK_SET)
        with suppress(OSError):  # another process holds it
            return msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        time.sleep(TURN)


def create(nbytes: int) -> tuple[int, str]:
    """Return (file descriptor, path) of new memory. The path is valid on this computer until `forget` is called."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lockstep")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="lockstep-")
    os.ftruncate(descriptor, max(1, nbytes))
    return descriptor, path


def open_path(path: str) -> int:
    """Return a file descriptor for another rank's memory."""
    return os.open(path, os.O_RDWR)


def attach(descriptor: int, like: np.ndarray) -> np.ndarray:
    """Map the memory of `descriptor` and return it as an array with the type and shape of `like`."""
    mapped = mmap.mmap(descriptor, max(1, like.nbytes))
    return np.frombuffer(mapped, like.dtype, like.size).reshape(like.shape)


def forget(descriptor: int, path: str) -> None:
    """Close the descriptor, and remove `path` unless it is "". Ranks that have attached the memory keep it."""
    os.close(descriptor)
    if path and not path.startswith("/proc/"):
        with suppress(PermissionError):  # Windows cannot remove a mapped file; it stays in the temporary folder
            os.unlink(path)


def computer() -> str:
    """Return a string that identifies this computer: it is the same for all processes that can share memory."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{os.uname().nodename if hasattr(os, 'uname') else os.environ.get('COMPUTERNAME', '')} {boot}"


def _charge(moved: float) -> None:
    meter = METER.get()
    if meter is not None:
        meter.charge("shared memory", 0.0, moved)

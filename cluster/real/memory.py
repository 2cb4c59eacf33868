"""Memory that all ranks of one computer see: one vector, nothing locked.

Two ranks that add to the same number at the same moment may lose one of the two: that race is the subject of
Hogwild, and here it is a real one. The memory has no name anybody could leave behind: it is gone when the last rank
that holds it is, however that ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from kernels import METER


class SharedVector:
    """The Shared contract on memory mapped by every rank."""

    def __init__(self, vector: np.ndarray):
        self._vector = vector

    def read(self, where: Any = None) -> np.ndarray:
        values = self._vector.copy() if where is None else np.array(self._vector[where])
        _charge(2 * values.nbytes)
        return values

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        if where is None:
            self._vector += delta
        elif isinstance(where, slice):
            self._vector[where] += delta
        else:
            np.add.at(self._vector, where, delta)
        _charge(3 * np.asarray(delta).nbytes)


def create(nbytes: int) -> tuple[int, str]:
    """(file descriptor, path) of new memory; the path works until `forget` was called, on this computer only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lockstep")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="lockstep-")
    os.ftruncate(descriptor, max(1, nbytes))
    return descriptor, path


def open_path(path: str) -> int:
    """A descriptor of another rank's memory."""
    return os.open(path, os.O_RDWR)


def attach(descriptor: int, like: np.ndarray) -> np.ndarray:
    """The memory behind `descriptor` as a vector shaped as `like`."""
    mapped = mmap.mmap(descriptor, max(1, like.nbytes))
    return np.frombuffer(mapped, like.dtype, like.size).reshape(like.shape)


def forget(descriptor: int, path: str) -> None:
    """Close the descriptor, and take `path` away if one is given; whoever has attached keeps the memory."""
    os.close(descriptor)
    if path and not path.startswith("/proc/"):
        os.unlink(path)


def computer() -> str:
    """A text that is the same for processes that can share memory."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{os.uname().nodename if hasattr(os, 'uname') else os.environ.get('COMPUTERNAME', '')} {boot}"


def _charge(moved: float) -> None:
    meter = METER.get()
    if meter is not None:
        meter.charge("shared memory", 0.0, moved)

"""The GPUs of this machine: how many there are, and which ranks use them.

They are counted without loading torch and without creating a CUDA context, which a forked process could not use.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

NVML = "libnvidia-ml.so.1"


@cache
def count() -> int:
    """Return the number of CUDA GPUs that processes of this machine may use; 0 without a driver."""
    try:
        nvml, found = ctypes.CDLL(NVML), ctypes.c_uint(0)
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(found)):
            return 0
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found.value if visible is None else min(found.value, _count_named(visible))


def place_of(backend: str, local: int) -> str:
    """Return the device for the arrays of rank `local` of this computer, such as "cuda:0".

    It is "cpu" if the backend is not NCCL, or if there is no GPU.

    Ranks share GPUs if there are more ranks than GPUs.
    """
    if backend != "nccl":
        return "cpu"
    from torch import cuda

    there = cuda.device_count() if cuda.is_available() else 0
    return f"cuda:{local % there}" if there else "cpu"


def common_place(place: str, places: Sequence[str]) -> str:
    """Return `place`, the device of this rank. Return "cpu" if at least one rank, in `places`, has no GPU."""
    return "cpu" if "cpu" in places else place


class Allotment(NamedTuple):
    """The number of GPUs that a run uses (0 on the CPU), and a note unless each rank has a GPU of its own."""

    gpus: int
    notes: tuple[str, ...] = ()


def allot(computers: Sequence[str], places: Sequence[str]) -> Allotment:
    """Return how many GPUs the ranks use. Rank r runs on computers[r], where its device would be places[r]."""
    size, without, there = len(places), places.count("cpu"), len(set(zip(computers, places, strict=True)))
    if without:
        found = "no CUDA GPU was found" if without == size else f"only {size - without} of {size} ranks have a CUDA GPU"
        return Allotment(0, (f"{found}; the run used the CPU, over gloo",))
    if there < size:
        shared = (
            f"{size} ranks shared {there} GPU{'s' * (there > 1)}: their kernels took turns, and their messages and "
            "all-reduces went through CPU memory, because NCCL allows one rank per GPU"
        )
        return Allotment(there, (shared,))
    return Allotment(there)


def _count_named(visible: str) -> int:
    """Return the number of devices in a list such as "0,2", without the devices after the first -1, which are hidden.

    >>> [_count_named(text) for text in ("", "-1", "0", "2,3", "1,-1,0")]
    [0, 0, 1, 2, 1]
    """
    names = [name.strip() for name in visible.split(",")]
    return next((place for place, name in enumerate(names) if name in ("", "-1")), len(names))

"""GPUs of this machine, counted without loading torch and without a CUDA context, which no forked process could use."""

from __future__ import annotations

import ctypes
import os
from functools import cache

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
    return found.value if visible is None else min(found.value, _named(visible))


def _named(visible: str) -> int:
    """Return how many devices a list names; what follows the first -1 is hidden.

    >>> [_named(text) for text in ("", "-1", "0", "2,3", "1,-1,0")]
    [0, 0, 1, 2, 1]
    """
    names = [name.strip() for name in visible.split(",")]
    return next((place for place, name in enumerate(names) if name in ("", "-1")), len(names))

"""Allocator: memory of arrays that are freed stays in the process, for those of the next step.

glibc returns the end of its heap to the system as soon as a few megabytes are free, which is after every backward pass,
and maps large arrays anew. The next pass then touches each page for the first time: of a step of a text model of 2 MB
a tenth was the system's zeroing of pages. Other C libraries are left as they are.
"""

import ctypes
import sys

KEPT = 1 << 27  # bytes at the end of the heap; what is free beyond them goes back to the system
MAPPED = 1 << 25  # bytes from which on an array is mapped by itself; glibc takes no more

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


def keep_freed() -> bool:
    """Keep freed memory in this process; return whether its C library can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return bool(mallopt and mallopt(_TRIM_THRESHOLD, KEPT) and mallopt(_MMAP_THRESHOLD, MAPPED))

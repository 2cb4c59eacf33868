"""Allocator: keep the memory of freed arrays in the process, for the arrays of the next step.

glibc returns the end of its heap to the system as soon as a few megabytes are free, which is after every backward pass,
and maps large arrays again. The next pass then touches each page for the first time: with a text model of 2 MB, the
system spent a tenth of each step zeroing pages. Other C libraries are left as they are.
"""

import ctypes
import sys

KEPT = 1 << 27  # free bytes kept at the end of the heap; any more are returned to the system
MAPPED = 1 << 25  # arrays of at least this many bytes get their own mapping; the most that glibc accepts

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


def keep_freed() -> bool:
    """Keep freed memory in this process; return False if the C library cannot do this."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return bool(mallopt and mallopt(_TRIM_THRESHOLD, KEPT) and mallopt(_MMAP_THRESHOLD, MAPPED))

"""The memory of a job, including every process it started.

Linux limits the address space of one process, but a real cluster consists of many, so their sum is checked
periodically. A page that several processes share counts once, divided among them (PSS): ranks are forked and share
torch.
"""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")
WATCHED = (PROC / "self" / "smaps_rollup").exists()  # elsewhere there is no such sum, so no such limit
EVERY = 1.0  # s between two checks


def excess(most: int) -> str:
    """Return a sentence saying that a job needs more than `most` bytes."""
    return f"it needs more than {most / 1e9:.1f} GB of memory; use a smaller model or fewer workers"


def groups(leaders: Collection[int]) -> dict[int, list[int]]:
    """Return the processes in each of the process groups that `leaders` lead."""
    found: dict[int, list[int]] = {leader: [] for leader in leaders}
    for name in os.listdir(PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                group = int((PROC / name / "stat").read_bytes().rpartition(b")")[2].split()[2])
                if group in found:
                    found[group].append(int(name))
    return found


def memory_used(processes: Collection[int], enough: int) -> int:
    """Return the bytes of memory that these processes use together. If a quick overestimate is at most `enough`, return
    that instead.
    """
    resident = sum(_resident(pid) for pid in processes)  # counts shared pages once per process
    return resident if resident <= enough else sum(_proportional(pid) for pid in processes)


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int((PROC / str(pid) / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0

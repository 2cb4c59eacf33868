"""Bubblewrap: start a program in Linux namespaces of its own, where `bwrap` is installed and may do so.

It finds the files that it is given, read-only, and no network and no process but its own. System calls are filtered
from within all the same (`sandbox.py`), since namespaces alone would let it fork and fill the memory with files.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

SEALED = "--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--dev", "/dev"


def command(readable: Iterable[str]) -> list[str]:
    """Return the beginning of a command line: whatever follows finds only these paths, where they exist."""
    binds = [("--ro-bind-try", path, path) for path in sorted(set(readable))]  # sorted: a folder before what is in it
    return [shutil.which("bwrap") or "bwrap", *SEALED, *(word for bind in binds for word in bind)]


@functools.cache
def works(readable: tuple[str, ...]) -> bool:
    """Return whether Python can be started so: `bwrap` may be missing, or the kernel refuse namespaces to us."""
    python = [sys.executable, "-I", "-c", "import numpy, greenlet"]
    try:
        return subprocess.run([*command(readable), *python], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def start(program: list[str], readable: Iterable[str], pass_fds=(), **options: Any) -> tuple[subprocess.Popen, int]:
    """Start `program` and return the process of bwrap and the pid of the program, as seen from here.

    The process ends with the program, a signal n as exit code 128 + n. `options` are those of subprocess.Popen.
    """
    info, theirs = os.pipe()
    with open(info) as info:
        try:
            whole = [*command(readable), "--info-fd", str(theirs), *program]
            process = subprocess.Popen(whole, pass_fds=[*pass_fds, theirs], **options)
        finally:
            os.close(theirs)
        told = info.read()  # to the end: bwrap closes it once the program runs
    return process, json.loads(told)["child-pid"] if told else process.pid

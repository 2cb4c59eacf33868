"""Bubblewrap: start a program in Linux namespaces of its own, where `bwrap` is installed and permitted.

The program sees the given files, read-only, and neither the network nor any process but its own. System calls are
still filtered from within (`sandbox.py`): namespaces alone would let it fork, and fill memory with temporary files.
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
    """Return the prefix of a command line that runs a program with only these paths, as far as they exist."""
    binds = [("--ro-bind-try", path, path) for path in sorted(set(readable))]  # sorted: a folder precedes its contents
    return [shutil.which("bwrap") or "bwrap", *SEALED, *(word for bind in binds for word in bind)]


@functools.cache
def works(readable: tuple[str, ...]) -> bool:
    """Probe whether Python starts so: `bwrap` may be missing, or the kernel may refuse us namespaces."""
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
    with open(info, encoding="utf-8") as info:
        try:
            whole = [*command(readable), "--info-fd", str(theirs), *program]
            process = subprocess.Popen(whole, pass_fds=[*pass_fds, theirs], **options)
        finally:
            os.close(theirs)
        status = info.read()  # until bwrap closes it, once the program runs
    return process, json.loads(status)["child-pid"] if status else process.pid

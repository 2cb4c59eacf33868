"""Start a program in its own Linux namespaces with Bubblewrap. This works where `bwrap` is installed and permitted.

The program sees the given files, read-only, and neither the network nor any process but its own. System calls are
still filtered from within (`sandbox.py`): namespaces alone would let it fork, and fill memory with temporary files.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from typing import Any

from lessons.grading.reachable import Reachable

SEALED = "--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--dev", "/dev"


def command(files: Reachable) -> list[str]:
    """Return the command prefix that runs a program with access only to the reachable files that exist.

    A hidden folder is empty except for the named files.
    """
    places = [(path, ("--ro-bind-try", path, path)) for path in files.readable]
    places += [(path, ("--tmpfs", path)) for path in files.hidden]
    words = [word for _, mount in sorted(set(places)) for word in mount]  # sorted: a folder precedes its contents
    closed = [word for path in sorted(set(files.hidden)) for word in ("--remount-ro", path)]
    return [shutil.which("bwrap") or "bwrap", *SEALED, *words, *closed]


@functools.cache
def works(files: Reachable) -> bool:
    """Return whether Python starts in Bubblewrap. It does not if `bwrap` is missing or Linux refuses namespaces."""
    python = [sys.executable, "-I", "-c", "import numpy, greenlet"]
    try:
        return subprocess.run([*command(files), *python], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def start(program: list[str], files: Reachable, pass_fds=(), **options: Any) -> tuple[subprocess.Popen, int]:
    """Start `program`, and return bwrap's process and the PID that the program has outside the namespace.

    Bwrap's process ends when the program does. If signal n ended the program, the exit code is 128 + n. `options` are
    those of subprocess.Popen.
    """
    info, theirs = os.pipe()
    with open(info, encoding="utf-8") as info:
        try:
            whole = [*command(files), "--info-fd", str(theirs), *program]
            process = subprocess.Popen(whole, pass_fds=[*pass_fds, theirs], **options)
        finally:
            os.close(theirs)
        status = info.read()  # until bwrap closes it, once the program runs
    return process, json.loads(status)["child-pid"] if status else process.pid

"""Start Streamlit in place of the current program, so that signals reach the server.

start.py uses it before anything is installed, `lockstep` afterwards. Standard library only.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def workbench(python: str, main: str, words: Sequence[str], **environment: str) -> int:
    """Replace this process with Streamlit, which runs the file `main` with the options `words`.

    Return 2 if Streamlit has no option of that form: all of its own have a section, as in --server.port.
    """
    for name in (word.partition("=")[0] for word in words):
        if name.startswith("--") and "." not in name and name != "--help":
            problem = f"lockstep: the workbench has no option {name}; use Streamlit's, such as --server.port 8600"
            print(problem, file=sys.stderr)
            return 2
    print("lockstep: opening the workbench; Ctrl-C stops it, --server.port N uses port N", flush=True)
    return become([python, "-m", "streamlit", "run", main, *words], **environment)


def become(command: Sequence[str], **environment: str) -> int:
    """Replace this process with the command, so that signals reach the command. On Windows, run it and return its exit
    code.
    """
    environment = {**os.environ, **ONE_THREAD, **environment}
    if os.name == "nt":
        return follow(command, environment)
    os.execve(command[0], command, environment)


def follow(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command as a child process, forward signals to it, and return its exit code."""
    with subprocess.Popen(command, env=environment) as child:
        for name in ("SIGTERM", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda *_: child.terminate())
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # of the whole terminal, so the child gets it, too, and ends when it is done
                continue

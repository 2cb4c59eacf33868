"""`python -m experiments` runs the commands of `lockstep` on experiments; see `experiments.cli.main`."""

import signal
import sys
from collections.abc import Sequence

import installation


def interruptible() -> None:
    """Until a command runs, let Ctrl-C end the process immediately, without a traceback from an unfinished import."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def command_line(words: Sequence[str] | None = None) -> int:
    """Load and run the command line, and return its exit code."""
    interruptible()
    with installation.exit_if_missing():
        from experiments.cli.main import main

        return main(words)


if __name__ == "__main__":
    sys.exit(command_line())

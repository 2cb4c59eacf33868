"""`python -m experiments`: the command line, see `experiments.cli.main`."""

import signal
import sys
from collections.abc import Sequence


def command_line(words: Sequence[str] | None = None) -> int:
    """Load and run the command line, and return its exit code; Ctrl-C while it loads ends the process at once."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as long as nothing runs: no traceback out of an import
    from experiments.cli.main import main

    return main(words)


if __name__ == "__main__":
    sys.exit(command_line())

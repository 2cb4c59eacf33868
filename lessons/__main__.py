"""`python -m lessons`: the textbook from the command line (`lessons.cli.main`)."""

import signal
import sys

import installation


def command_line() -> int:
    """Load and run the command line, and return its exit code. Ctrl-C during loading ends the process at once."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as long as nothing runs: no traceback out of an import
    with installation.exit_if_missing():
        from lessons.cli.main import command_line

        return command_line()


if __name__ == "__main__":
    sys.exit(command_line())

"""The program `lockstep`, also `python -m app`: opens the workbench, or runs the given command (see `app.cli`)."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import installation

HELP = ("-h", "--help", "--version")


def main(words: Sequence[str] | None = None) -> int:
    """Open the workbench, or run the command named by the first word; return the exit code."""
    words = sys.argv[1:] if words is None else list(words)
    if words and words[0].startswith("-"):
        words = [word for word in words if word in HELP] or words  # our help, also after options of Streamlit's
    if not words or (words[0].startswith("-") and words[0] not in HELP):
        from app.browser import serve

        with installation.exit_if_missing():
            if find_spec("streamlit") is None:
                raise ModuleNotFoundError(name="streamlit")
        main_file = Path(__file__).with_name("main.py")
        return serve.workbench(sys.executable, str(main_file), words, PYTHONSAFEPATH="1")
    from experiments.__main__ import interruptible

    interruptible()
    with installation.exit_if_missing():
        from app.cli import lockstep
        from experiments.cli.entry import run_group

        return run_group(lockstep, words, "lockstep")


if __name__ == "__main__":
    sys.exit(main())

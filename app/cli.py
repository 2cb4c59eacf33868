"""The commands of `lockstep`: the commands of `experiments.cli` and of the textbook, and torchrun.

lockstep                                        the workbench
lockstep --server.port 8600                     the same; options before any command are Streamlit's
lockstep run easgd --workers 8
lockstep book show stragglers                   the commands of `lessons.cli`
lockstep torch --nproc-per-node 4 easgd         torchrun --nproc-per-node 4 -m algorithms easgd
"""

import os
import sys
from collections.abc import Callable
from importlib import metadata

import click

from app.browser import serve
from experiments.cli.console import ByPurpose
from experiments.cli.main import PURPOSES
from experiments.specification.catalogue import ALGORITHMS
from installation import ROOT

START = (
    ("lockstep", "open the workbench in the browser"),
    ("lockstep --server.port 8600", "the same, on a port other than 8501"),
    ("lockstep run easgd --slow 2:5", "train, with one worker slow"),
    ("lockstep book show stragglers", "read a chapter"),
)


def door(name: str, help_text: str, enter: Callable[[list[str]], int]) -> click.Command:
    """Return a command that passes all its arguments, including `--help`, on to `enter`."""
    return click.Command(
        name,
        callback=lambda words: enter(list(words)),
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        help=help_text,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )


def book(words: list[str]) -> int:
    """Run a command of the textbook; return the exit code."""
    from lessons.cli.main import command_line

    return command_line(words)


def grade(words: list[str]) -> int:
    """Run the textbook's command `grade`."""
    return book(["grade", *words])


def torch(words: list[str]) -> int:
    """Replace this process with torchrun. Words before the first name of an algorithm are torchrun's options."""
    at = next((i for i, word in enumerate(words) if word in ALGORITHMS), None)
    if at is None:
        raise ValueError(
            f"lockstep torch {' '.join(words[:4])}: which algorithm? Give torchrun's options, then a name, then its "
            "options: lockstep torch --nproc-per-node 4 easgd --steps 500. lockstep list prints the names."
        )
    command = [sys.executable, "-m", "torch.distributed.run", *words[:at], "-m", "algorithms", *words[at:]]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return serve.become(command, PYTHONPATH=path, PYTHONSAFEPATH="1")  # a reader's folder `algorithms` is not ours


def version() -> str:
    """Return the version of the installed package, or "a clone" if none is installed."""
    try:
        return metadata.version("lockstep")
    except metadata.PackageNotFoundError:
        return "a clone"


@click.group(
    cls=ByPurpose,
    purposes={
        **PURPOSES,
        "Learn": (
            door("book", "The textbook: chapters, figures, quizzes and exercises.", book),
            door("grade", "What a grading service needs: a zip for Gradescope, a notebook for nbgrader.", grade),
        ),
        "Real clusters": (door("torch", "Run an algorithm on ranks of torchrun, on one machine or several.", torch),),
    },
    start=START,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 80},
)
@click.version_option(version(), prog_name="lockstep")
def lockstep() -> None:
    """Train one model on many machines, and see what happens. Use COMMAND --help for the details of a command."""

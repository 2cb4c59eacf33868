"""Entry: how a command line is run, so that every mistake becomes a sentence and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import click

from cluster.real import launchers
from cluster.real.signals import raising
from experiments.cli.console import abridged, complain, sentence, unheard
from kernels import compiling

WORTH = 0.5  # s that were spent on compiling before it is worth a word


def entered(group: click.Group, args: Sequence[str] | None, program: str) -> int:
    """Run a group of commands and return the exit code; every mistake becomes one sentence on stderr."""
    try:
        words = sys.argv[1:] if args is None else list(args)
        with raising(), compiling.telling(_compiling()), group.make_context(program, words) as context:
            code = group.invoke(context)  # cli.main would end on a closed pipe itself
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        message = ""
    except click.ClickException as error:
        message = _told(error)
    except (ValueError, OSError) as error:
        message = sentence(error)
    except MemoryError as error:
        message = f"the memory of this machine does not suffice{_asked(error)}; use a smaller model or fewer workers."
    if message and _speaks():
        complain(abridged(message))
    with unheard(sys.stdout):
        sys.stdout.flush()
    return 2 if message else 0


def _compiling() -> Callable[[], None]:
    """Return what says, once and for the first of a launcher's ranks, that kernels are being compiled."""
    left = iter([f"{compiling.WORDS}: later runs start at once"] if _speaks() else [])

    def tell() -> None:
        if compiling.seconds() > WORTH:
            for words in left:
                complain(words)

    return tell


def _speaks() -> bool:
    return launchers.variables().get("RANK", "0") == "0"  # of the ranks of a launcher one speaks for all


def _asked(error: MemoryError) -> str:
    return f": {str(error)[:1].lower()}{str(error)[1:]}" if str(error) else ""


def _told(error: click.ClickException) -> str:
    """Return what click says of a mistake; of what is no number within bounds, it would call that no valid range."""
    message, kind = error.format_message(), getattr(getattr(error, "param", None), "type", None)
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return message
    end = f"is not a valid {kind.name}."
    what = "whole number" if isinstance(kind, click.IntRange) else "number"
    return f"{message.removesuffix(end)}is no {what}; allowed is {_bounds(kind)}." if message.endswith(end) else message


def _bounds(kind: click.IntRange | click.FloatRange) -> str:
    """Return the bounds of a number, of which the lower one is always there: "1 to 1000", "at least 1", "above 0"."""
    above = "above " * kind.min_open
    if kind.max is None:
        return f"{above or 'at least '}{kind.min}"
    return f"{above}{kind.min} to {'below ' * kind.max_open}{kind.max}"

"""Entry point of the commands: every mistake becomes a sentence and an exit code."""

import sys
from collections.abc import Callable, Sequence

import click

from cluster.real import launchers
from cluster.real.signals import raise_interrupts
from experiments.cli.console import complain, sentence, shorten_words, unheard
from kernels import compiling

WORTH = 0.5  # s of compiling before the user is told


def run_group(group: click.Group, args: Sequence[str] | None, program: str) -> int:
    """Run a group of commands and return the exit code. A user's mistake becomes one sentence on stderr."""
    try:
        words = sys.argv[1:] if args is None else list(args)
        with raise_interrupts(), compiling.telling(_compiling()), group.make_context(program, words) as context:
            code = group.invoke(context)  # cli.main would end on a closed pipe itself
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # the reader has closed the pipe
        message = ""
    except click.ClickException as error:
        message = _told(error)
    except (ValueError, OSError) as error:
        message = sentence(error)
    except MemoryError as error:
        message = f"this machine does not have enough memory{_asked(error)}; use a smaller model or fewer workers."
    if message and _speaks():
        complain(shorten_words(message))
    with unheard(sys.stdout):
        sys.stdout.flush()
    return 2 if message else 0


def _compiling() -> Callable[[], None]:
    """Return a function that reports that kernels are being compiled: only once, and only on a launcher's first
    rank.
    """
    left = iter([compiling.WORDS] if _speaks() else [])

    def tell() -> None:
        if compiling.seconds() > WORTH:
            for words in left:
                complain(words)

    return tell


def _speaks() -> bool:
    return launchers.variables().get("RANK", "0") == "0"  # one of a launcher's ranks speaks for all


def _asked(error: MemoryError) -> str:
    return f": {str(error)[:1].lower()}{str(error)[1:]}" if str(error) else ""


def _told(error: click.ClickException) -> str:
    """Return the message of a usage error. It is click's own, except for text that should be a number within bounds and
    is not a number: then it gives the bounds.
    """
    message, kind = error.format_message(), getattr(getattr(error, "param", None), "type", None)
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return message
    end = f"is not a valid {kind.name}."
    what = "whole number" if isinstance(kind, click.IntRange) else "number"
    return (
        f"{message.removesuffix(end)}is not a {what}; allowed: {_bounds(kind)}." if message.endswith(end) else message
    )


def _bounds(kind: click.IntRange | click.FloatRange) -> str:
    """Return the bounds of a number in words, such as "1 to 1000", "at least 1" or "above 0". There is always a lower
    bound.
    """
    above = "above " * kind.min_open
    if kind.max is None:
        return f"{above or 'at least '}{kind.min}"
    return f"{above}{kind.min} to {'below ' * kind.max_open}{kind.max}"

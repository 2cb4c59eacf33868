"""Entry: how a command line is run, so that every mistake becomes a sentence and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from cluster.real import launchers
from cluster.real.signals import raising
from experiments.cli.console import abridged, complain, sentence, unheard


def entered(group: click.Group, args: Sequence[str] | None, program: str) -> int:
    """Run a group of commands and return the exit code; every mistake becomes one sentence on stderr."""
    try:
        words = sys.argv[1:] if args is None else list(args)
        with raising(), group.make_context(program, words) as context:
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
        message = error.format_message()
    except (ValueError, OSError) as error:
        message = sentence(error)
    if message and launchers.variables().get("RANK", "0") == "0":  # of the ranks of a launcher one speaks for all
        complain(abridged(message))
    with unheard(sys.stdout):
        sys.stdout.flush()
    return 2 if message else 0

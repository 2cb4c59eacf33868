"""The output of all commands: as wide as the terminal or, without a terminal, of unlimited width and without colours.

Styles are written only to a terminal, so rich is imported only then. NO_COLOR keeps bold and dim.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import Console

NO_EDGE = 10_000  # columns of a file or a pipe
LEAST = 40  # columns: text is never wrapped to fewer
TRAILING = re.compile(r"(?<! ) +\n")  # from the first blank only, since a long line has thousands of them
LONG = re.compile(r"\S{500,}")
MEASURED = re.compile(r"(?<=\d) (?=(?:%|[kMGT]?B|[nµm]?s|min)(?!\w))")  # between a number and its unit
HEADED = re.compile(r"[A-Z][a-z]+: ")  # a line that starts a new paragraph
HEAD, DIM = "bold", "dim"  # styles


def width() -> int:
    """Return the width of the output in columns: the terminal's, or $COLUMNS."""
    return max(shutil.get_terminal_size((NO_EDGE, 0)).columns, LEAST)


def write_utf8() -> None:
    """Make stdout and stderr use UTF-8 for pipes and files, too. On Windows, the default is a code page that lacks some
    of our characters.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def rich_console() -> Console:
    """Return the console on stdout, which writes styles if stdout is a terminal or $FORCE_COLOR is set."""
    from rich.console import Console, ConsoleDimensions

    class Edgeless(Console):
        @property  # type: ignore[misc]  # rich's can be set, which nobody does
        def size(self) -> ConsoleDimensions:
            return ConsoleDimensions(width(), super().size.height)

    file: Any = None if sys.stdout.isatty() else _Unpadded()
    return Edgeless(highlight=False, file=file)


class _Unpadded:
    """The current stdout, without the trailing blanks that rich adds to fill a block of code."""

    @property
    def encoding(self) -> str:
        return sys.stdout.encoding

    def write(self, text: str) -> int:
        return sys.stdout.write(TRAILING.sub("\n", text))

    def flush(self) -> None:
        sys.stdout.flush()


def say(*parts: str | tuple[str, str]) -> None:
    """Print the parts, each a text or a (text, style) pair, without wrapping or cutting them."""
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        click.echo("".join(part if isinstance(part, str) else part[0] for part in parts))
        return
    from rich.text import Text

    rich_console().print(Text.assemble(*parts), soft_wrap=True)


def complain(text: str) -> None:
    """Print a sentence on stderr, wrapped, unless stderr is closed."""
    with unheard(sys.stderr):
        click.echo(prose(text), err=True)


def sentence(error: Exception) -> str:
    """Return an error's message, with the name of the file if there is one."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}." if error.filename else error.strerror


def shorten_words(text: str) -> str:
    """Return the text with words of 500 characters or more cut short, since a user may pass anything as an argument."""
    return LONG.sub(lambda word: f"{word[0][:60]}... ({len(word[0]):,} characters)", text)


@contextmanager
def unheard(stream: TextIO) -> Iterator[None]:
    """Ignore write errors on `stream` and silence further output to it, so that the run is still recorded.

    The reader of a pipe may have closed it, or the terminal may be gone.
    """
    try:
        yield
    except OSError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)


def note(text: str) -> None:
    """Print a dim remark, wrapped."""
    say((wrap(text), DIM))


def wrap(text: str, indent: str = "") -> str:
    """Return the text wrapped to the width of the output, with later lines indented.

    Words stay whole, and a number stays with its unit.
    """
    text = MEASURED.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.fill(text, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def prose(text: str) -> str:
    """Return the text wrapped: paragraphs are refilled, and indented lines continue with more indentation."""
    lines: list[str] = []
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        plain = line[:1].strip() != ""
        if paragraph and (not plain or HEADED.match(line)):
            filled = max(map(len, paragraph)) > width()
            lines += [wrap(" ".join(paragraph))] if filled else paragraph
            paragraph = []
        if plain:
            paragraph.append(line)
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            lines.append(wrap(line, indent + "  ") if len(line) > width() else line)
    return "\n".join(lines[:-1])


def command(label: str, words: str, style: str = DIM) -> None:
    """Print `label` and a command to copy, over several lines if it is long."""
    say((f"{label:<8}", style), wrap_command(words, 8))


def wrap_command(words: str, indent: int) -> str:
    """Return a shell command wrapped to the output's width minus `indent`, with a backslash before each line break."""
    if indent + len(words) <= width():
        return words
    lines = [""]
    for word in map(shlex.quote, shlex.split(words)):
        if lines[-1] and indent + len(lines[-1]) + len(word) + 3 > width():
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return f" \\\n{' ' * indent}".join(lines)


HELP = ["--help", "-h"]


class ByPurpose(click.Group):
    """A command group whose help lists some commands to start with, then describes all commands, by purpose."""

    def __init__(self, *args, purposes: Mapping[str, Sequence[click.Command]], start: Sequence[tuple] = (), **kwargs):
        super().__init__(*args, **kwargs)
        self.purposes, self.start = purposes, start
        self.context_settings.setdefault("help_option_names", HELP)
        for one in self._listed():
            one.context_settings.setdefault("help_option_names", HELP)  # click keeps the names of the first call
            self.add_command(one)

    def make_context(self, *args, **kwargs) -> click.Context:
        write_utf8()
        return super().make_context(*args, **kwargs)

    def _listed(self) -> Iterator[click.Command]:
        for commands in self.purposes.values():
            yield from commands

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands to start with, and a section for each purpose."""
        if self.start:
            with formatter.section("Start here"):
                formatter.write_dl(self.start, col_max=50)
        widest = max(map(len, self.commands))
        for purpose, commands in self.purposes.items():
            with formatter.section(purpose):
                formatter.write_dl([(f"{one.name:<{widest}}", one.get_short_help_str(1000)) for one in commands])


def refuse(without: str, *names: str) -> None:
    """Raise a usage error if the command line has one of the options `names`, which have no effect here.

    `without` completes the message: "only applies to the table; add --costs, or remove it."
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} {without}")

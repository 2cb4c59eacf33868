"""The console of all commands: as wide as the terminal; without an edge and without colours where there is none.

Only a terminal has styles, so rich, which writes them, is imported only there. NO_COLOR leaves bold and dim.
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
from typing import TYPE_CHECKING, TextIO

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import Console

NO_EDGE = 10_000  # columns of a file or a pipe
LEAST = 40  # columns into which text is still folded
LONG = re.compile(r"\S{500,}")
HEADED = re.compile(r"[A-Z][a-z]+: ")  # a line that begins anew
HEAD, DIM = "bold", "dim"  # styles


def width() -> int:
    """Return how many columns the output has: those of the terminal, or of $COLUMNS."""
    return max(shutil.get_terminal_size((NO_EDGE, 0)).columns, LEAST)


def write_utf8() -> None:
    """Have pipes and files get UTF-8, which terminals do; those of Windows would get a code page without our signs."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def rich_console() -> Console:
    """Return the console on stdout, which writes styles if that is a terminal, or $FORCE_COLOR is set."""
    from rich.console import Console, ConsoleDimensions

    class Edgeless(Console):
        @property
        def size(self) -> ConsoleDimensions:
            return ConsoleDimensions(width(), super().size.height)

    return Edgeless(highlight=False, file=None if sys.stdout.isatty() else _Unpadded())


class _Unpadded(io.TextIOBase):
    """What stdout is at the moment, without the blanks by which rich fills a block of code up to an edge."""

    @property
    def encoding(self) -> str:
        return sys.stdout.encoding

    def write(self, text: str) -> int:
        return sys.stdout.write(re.sub(r" +\n", "\n", text))

    def flush(self) -> None:
        sys.stdout.flush()


def say(*parts: str | tuple[str, str]) -> None:
    """Print a line, or lines, of parts: texts, or pairs of a text and its style. Nothing is folded or cut."""
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        click.echo("".join(part if isinstance(part, str) else part[0] for part in parts))
        return
    from rich.text import Text

    rich_console().print(Text.assemble(*parts), soft_wrap=True)


def complain(text: str) -> None:
    """Print a sentence on stderr, in lines that fit, if anybody still reads it."""
    with unheard(sys.stderr):
        click.echo(prose(text), err=True)


def sentence(error: Exception) -> str:
    """Return what an error says, and of which file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}." if error.filename else error.strerror


def abridged(text: str) -> str:
    """Return a text in which no word is longer than that of any path: what was given may be anything."""
    return LONG.sub(lambda word: f"{word[0][:60]}... ({len(word[0]):,} characters)", text)


@contextmanager
def unheard(stream: TextIO) -> Iterator[None]:
    """Go on after an error of writing to `stream`, and write to nobody from then on: what was recorded matters more.

    The reader of a pipe may have seen enough, a terminal may be closed.
    """
    try:
        yield
    except OSError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)


def note(text: str) -> None:
    """Print a remark, dim, in lines that fit."""
    say((folded(text), DIM))


def folded(text: str, indent: str = "") -> str:
    """Return a text in lines that fit, those after the first indented. Words stay whole."""
    return textwrap.fill(text, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def prose(text: str) -> str:
    """Return a text in lines that fit: paragraphs are filled anew, indented lines are folded under themselves."""
    lines, paragraph = [], []
    for line in [*text.splitlines(), ""]:
        plain = line[:1].strip() != ""
        if paragraph and (not plain or HEADED.match(line)):
            filled = max(map(len, paragraph)) > width()
            lines += [folded(" ".join(paragraph))] if filled else paragraph
            paragraph = []
        if plain:
            paragraph.append(line)
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            lines.append(folded(line, indent + "  ") if len(line) > width() else line)
    return "\n".join(lines[:-1])


def command(label: str, words: str, style: str = DIM) -> None:
    """Print `label` and a command that can be copied: on lines of its own, parted between its words, if it is long."""
    say((f"{label:<8}", style), parted(words, 8))


def parted(words: str, indent: int) -> str:
    """Return a shell's command in lines that fit behind `indent` columns, parted by backslashes between words."""
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
    """A group of commands whose help lists them by what they are for, after what to start with; nothing is cut."""

    def __init__(self, *args, purposes: Mapping[str, Sequence[click.Command]], start: Sequence[tuple] = (), **kwargs):
        super().__init__(*args, **kwargs)
        self.purposes, self.start = purposes, start
        self.context_settings.setdefault("help_option_names", HELP)
        for one in self._listed():
            one.context_settings.setdefault("help_option_names", HELP)  # click keeps those of the first call
            self.add_command(one)

    def make_context(self, *args, **kwargs) -> click.Context:
        """Begin a command line."""
        write_utf8()
        return super().make_context(*args, **kwargs)

    def _listed(self) -> Iterator[click.Command]:
        for commands in self.purposes.values():
            yield from commands

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what to start with, and a section for each purpose."""
        if self.start:
            with formatter.section("Start here"):
                formatter.write_dl(self.start, col_max=50)
        widest = max(map(len, self.commands))
        for purpose, commands in self.purposes.items():
            with formatter.section(purpose):
                formatter.write_dl([(one.name.ljust(widest), one.get_short_help_str(1000)) for one in commands])


def refuse(without: str, *names: str) -> None:
    """Raise a usage error if the command line has one of the options of these parameters, which do nothing `without`.

    `without` ends the sentence: "is of the table; add --costs, or leave it out."
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} {without}")

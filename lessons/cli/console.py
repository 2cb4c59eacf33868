"""The console that commands print to, and functions to show errors and text on it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.markdown import Markdown, TableElement
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from experiments.cli.console import rich_console
from lessons.cli import tex

PROSE = 100  # columns of text where there is no terminal

console = rich_console()


def whole(table: Table, width: int) -> Table:
    """Return `table` wrapped to fit `width` columns. Lines break at spaces and, if necessary, within words."""
    wide = console.options.update(width=10_000)
    if Measurement.get(console, wide, table).maximum > width:
        for column in table.columns:
            cells = [column.header, *column.cells]
            column.width = max(Measurement.get(console, wide, cell).minimum for cell in cells)
            column.overflow = "fold"
    return table


class _Table(TableElement):
    def __rich_console__(self, on: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(on, options):
            yield whole(table, options.max_width)


class _Markdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "table_open": _Table}

    def __rich_console__(self, on: Console, options: ConsoleOptions) -> RenderResult:
        yield from super().__rich_console__(on, options.update(max_width=min(options.max_width, PROSE)))


def markdown(text: str) -> Markdown:
    """Return Markdown for the terminal, with formulas as plain text and tables that fit a narrow screen."""
    return _Markdown(tex.readable(text))


def choices(says: Iterable[str]) -> Constrain:
    """Return the choices of a question, each after its letter. Long ones wrap with a hanging indent."""
    lines = Table.grid(padding=(0, 2, 0, 0))
    for letter, one in zip("abcdefgh", says, strict=False):
        lines.add_row(letter, markdown(one))
    return Constrain(Padding(lines, (0, 0, 0, 2), expand=False), PROSE)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a ValueError as a usage error, without a traceback."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None

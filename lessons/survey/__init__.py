"""A companion to the survey: its methods section by section, and their costs. Pure functions that return rows.

survey.rows()                                    section, reference, work, module, chapters, figures
survey.table(MODELS["8 layers of 64"], ...)      computation, communication, memory, staleness, idle time, approximation
survey.first_page()                              Markdown that names the five sources
survey.PUBLISHED                                 published numbers that the book recomputes
survey.markdown(...)                             the whole page as Markdown, for a book without a server
"""

from collections.abc import Iterable

import lessons
from experiments.specification.catalogue import DEVICES, NETWORKS
from lessons import references
from lessons.references import Address
from lessons.survey import costs
from lessons.survey.costs import SYMBOLS
from lessons.survey.methods import chapters_of, figures_of, read_source, sources
from lessons.survey.models import MODELS, Model, Stack
from lessons.survey.prices import (
    CLUSTER,
    QUANTITIES,
    UNITS,
    Cluster,
    Row,
    format_quantity,
    in_one_cell,
    surveyed_algorithms,
    symbols_line,
    symbols_of,
    table,
    the_step,
)
from lessons.survey.published import PUBLISHED


def rows() -> list[Row]:
    """Return a row for each method of each source: its place in the source, and its module and figures here."""
    return [
        {
            "source": source.key,
            "section": one.section,
            "reference": one.reference,
            "work": one.work,
            "module": one.module,
            "declares": read_source(one.module) if one.module else "",
            "chapters": chapters_of(one.name) if one.name else (),
            "figures": figures_of(one.name) if one.name else (),
            "without": one.without or one.note,
        }
        for source in sources()
        for one in source.methods
    ]


MOST = 3  # figures that are named per method


def first_figures(row: Row) -> tuple[dict[str, str], int]:
    """Return {number: name} of the first figures that show the method of `row`, and how many more there are.

    Figures that no text shows have no number and are left out.
    """
    numbers = {lessons.chapter(name.partition(".")[0]).figure_number(name): name for name in row["figures"]}
    ordered = sorted(filter(None, numbers), key=lambda number: [int(part) for part in number.split(".")])
    return {number: numbers[number] for number in ordered[:MOST]}, max(0, len(ordered) - MOST)


def first_page(address: Address | None = None) -> str:
    """Return Markdown on the five sources: what their abstracts claim, and which figure shows it."""
    lines = []
    for source in sources():
        figure = f" Here: {_figure_link(source.figure, address)}." if source.figure else ""
        lines.append(f"- **{source.title}** ({source.venue}). {source.result}{figure} {source.instead}".rstrip())
    return "\n".join(lines)


def markdown(
    model: Model = MODELS["8 layers of 64"], cluster: Cluster = CLUSTER, address: Address | None = None,
    workbench: str = "",
) -> str:  # fmt: skip
    """Return the whole page as Markdown: sources, methods by section, and the table of costs.

    Chapters and figures are linked if there are addresses. Numbers of the table are linked to a run that shows them if
    there is a workbench at the address `workbench`.
    """
    parts = ["# The survey, section by section", first_page(address)]
    for source in sources():
        parts.append(f"## {source.title}\n\n{source.parts}")
        own = [row for row in rows() if row["source"] == source.key]
        parts.append(
            _markdown_table(
                ("section", "reference", "work", "module", "chapters", "figures"),
                [
                    (
                        *(row[key] for key in ("section", "reference", "work")),
                        f"`{row['module']}`" if row["module"] else row["without"],
                        ", ".join(
                            _link(str(lessons.chapter(name).number), name, "", address) for name in row["chapters"]
                        ),
                        _figure_links(row, address),
                    )
                    for row in own
                ],
            )
        )
    parts.append(f"## Published numbers, computed again\n\n{_published(address)}")
    parts.append(f"## What a step costs\n\n{the_step(model, cluster)} Symbols: {symbols_line()}")
    cells = [
        (
            _link(row["method"], next(iter(row["chapters"]), ""), "", address),
            *(_cell(row, quantity, workbench) for quantity in costs.QUANTITIES),
            row["waits"],
            in_one_cell(row["settings"]),
            row["approximation"],
        )
        for row in table(model, cluster)
    ]
    parts.append(_markdown_table(("method", *costs.QUANTITIES, "waits for", "with", "approximation"), cells))
    return "\n\n".join(parts) + "\n"


def _published(address: Address | None) -> str:
    lines = [
        (one.work, one.theirs, one.ours(), _figure_link(one.figure, address) if one.figure else "closed form")
        for one in PUBLISHED
    ]
    return _markdown_table(("work", "published", "here", "from"), lines)


def _cell(row: Row, quantity: str, workbench: str) -> str:
    value = row[f"{quantity} value"]
    if value is None:
        return row[quantity]
    number = format_quantity(value, UNITS[quantity])
    return f"{row[quantity]} = " + (f"[{number}]({workbench}/?{row['run']})" if workbench else number)


def _figure_link(name: str, address: Address | None) -> str:
    chapter, _, short = name.partition(".")
    number = lessons.chapter(chapter).figure_number(name)
    return _link(f"Figure {number}", chapter, references.figure_anchor(name), address) if number else short


def _figure_links(row: Row, address: Address | None) -> str:
    first, more = first_figures(row)
    return ", ".join([*(_figure_link(name, address) for name in first.values()), *([f"+{more}"] if more else [])])


def _link(words: str, chapter: str, anchor: str, address: Address | None) -> str:
    return f"[{words}]({address(chapter, anchor)})" if address and chapter else words


def _markdown_table(heads: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


__all__ = [
    "DEVICES",
    "MODELS",
    "NETWORKS",
    "PUBLISHED",
    "QUANTITIES",
    "SYMBOLS",
    "UNITS",
    "Cluster",
    "Model",
    "Stack",
    "figures_of",
    "first_figures",
    "first_page",
    "format_quantity",
    "in_one_cell",
    "markdown",
    "rows",
    "sources",
    "surveyed_algorithms",
    "symbols_line",
    "symbols_of",
    "table",
    "the_step",
]

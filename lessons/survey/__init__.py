"""A companion to the survey: its methods section by section, and their costs. Pure functions that return rows.

survey.rows()                                    section, reference, work, module, chapters, figures
survey.table(MODELS["8 layers of 64"], ...)      computation, communication, memory, staleness, approximation
survey.first_page()                              Markdown that names the five sources
survey.markdown(...)                             the whole page as Markdown, for a book without a server
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import algorithms
import lessons
from experiments.specification.catalogue import DEVICES, NETWORKS, parse_device, parse_network
from experiments.wording import units
from lessons import references
from lessons.references import Address
from lessons.survey import costs
from lessons.survey.costs import MODELS, SYMBOLS, Stack
from lessons.survey.methods import chapters_of, figures_of, read_source, sources

Row = dict[str, Any]
ITEM = 4  # bytes of a number: float32
QUANTITIES = ("computation", "communication", "memory", "staleness")
UNITS = {
    "computation": "FLOP",
    **dict.fromkeys(("communication", "memory", "server"), "B"),
    "staleness": "updates",
    "seconds": "s",
}
SAY = {"FLOP": units.flops, "B": units.size, "s": units.seconds, "updates": units.number}


@dataclass(frozen=True)
class Cluster:
    """The reader's choices other than the model: workers, samples of each per step, presets, settings by symbol."""

    workers: int = 8
    batch: int = 32
    network: str = "10GbE"
    device: str = "A100"
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """The samples of a step: the same number for every method, even where workers share them."""
        return self.workers * self.batch


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


def surveyed_algorithms() -> set[str]:
    """Return the names of the algorithms that appear in the sources."""
    return {one.method for source in sources() for one in source.methods if one.method}


def table(model: Stack, cluster: Cluster = Cluster()) -> list[Row]:
    """Return a row for each algorithm: cost formulas, their values in FLOPs, bytes and updates, and where it is shown.

    `memory` is that of the worker that holds most, `server` that of the server that holds most, or "". Values are for a
    step of all workers with `cluster.samples` samples in total, however divided. Without a formula, the value is None
    and the formula states why there is none. `computing` and `sending` are seconds if all devices run at their peak,
    and all ports are always busy.
    """
    found = []
    for name, of in costs.every().items():
        method = algorithms.find(name)
        workers = 1 if algorithms.family(name) == "sequential" else cluster.workers
        shards = max(1, min(workers, method.data_shards(workers, method.Settings())))
        symbols = costs.symbols(name, model.symbols(cluster.samples / shards), workers, cluster.settings)
        row = {
            "method": name,
            "family": algorithms.family(name),
            "workers": workers,
            "surveyed": name in surveyed_algorithms(),
        }
        for quantity in costs.QUANTITIES:
            scale = ITEM if UNITS[quantity] == "B" else 1
            number = of.evaluate(quantity, symbols)
            row |= {
                quantity: of.formula_text(quantity),
                f"{quantity} value": None if number is None else number * scale,
            }
        row["computing"] = _over(row["computation value"], workers * parse_device(cluster.device).flops)
        ports = workers + method.servers(method.Settings())
        row["sending"] = _over(row["communication value"], ports * parse_network(cluster.network).between.bandwidth)
        row |= {"approximation": of.approximation, "chapters": chapters_of(name), "figures": figures_of(name)}
        row["run"] = run_of(name, cluster)
        found.append(row)
    return found


def the_step(model: Stack, cluster: Cluster) -> str:
    """Return a sentence on the work that is priced, which is the same for every method."""
    return (
        f"A step takes {cluster.samples:,} samples: {cluster.batch} for each of {cluster.workers} workers, or all "
        f"together where workers share samples. The model has {model.parameters:,} parameters."
    )


def run_of(name: str, cluster: Cluster) -> str:
    """Return the query of an experiment on digits that shows a method's costs with this many workers."""
    settings = {"algorithm": name, "network": cluster.network, "device": cluster.device}
    if algorithms.family(name) != "sequential":
        settings["workers"] = cluster.workers
    return "&".join(f"{key}={value}" for key, value in settings.items())


def format_quantity(value: float | None, unit: str) -> str:
    """Return a number with three digits and its unit, "12.5 MB"; a dash for None."""
    return "\N{EN DASH}" if value is None else SAY[unit](value)


def first_page(address: Address | None = None) -> str:
    """Return Markdown on the five sources: what their abstracts claim, and which figure shows it."""
    lines = []
    for source in sources():
        figure = f" Here: {_figure_link(source.figure, address)}." if source.figure else ""
        lines.append(f"- **{source.title}** ({source.venue}). {source.result}{figure} {source.instead}".rstrip())
    return "\n".join(lines)


def markdown(
    model: Stack = MODELS["8 layers of 64"], cluster: Cluster = Cluster(), address: Address | None = None,
    workbench: str = "",
) -> str:  # fmt: skip
    """Return the whole page as Markdown: sources, methods by section, and the table of costs.

    Chapters and figures are linked if there are addresses, numbers of the table to a run that shows them if there is a
    workbench at the address `workbench`.
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
                        ", ".join(_figure_link(name, address) for name in row["figures"][:3]),
                    )
                    for row in own
                ],
            )
        )
    parts.append(f"## What a step costs\n\n{the_step(model, cluster)} Symbols: {symbols_line()}")
    cells = [
        (
            _link(row["method"], next(iter(row["chapters"]), ""), "", address),
            *(_cell(row, quantity, workbench) for quantity in costs.QUANTITIES),
            row["approximation"],
        )
        for row in table(model, cluster)
    ]
    parts.append(_markdown_table(("method", *costs.QUANTITIES, "approximation"), cells))
    return "\n\n".join(parts) + "\n"


def symbols_of(rows: Iterable[Row]) -> dict[str, str]:
    """Return the symbols in the formulas of these rows of the table, with their meanings."""
    formulas = [getattr(costs.every()[row["method"]], quantity) for row in rows for quantity in costs.QUANTITIES]
    named = {word for formula in formulas for word in re.findall(r"[A-Za-z]+", formula)}
    return {symbol: meaning for symbol, meaning in SYMBOLS.items() if symbol in named}


def symbols_line() -> str:
    """Return the symbols of formulas with their meanings, in one line of Markdown."""
    return "; ".join(f"`{symbol}` {meaning}" for symbol, meaning in SYMBOLS.items()) + "."


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


def _link(words: str, chapter: str, anchor: str, address: Address | None) -> str:
    return f"[{words}]({address(chapter, anchor)})" if address and chapter else words


def _markdown_table(heads: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _over(value: float | None, rate: float) -> float | None:
    return None if value is None else value / rate


__all__ = [
    "DEVICES",
    "MODELS",
    "NETWORKS",
    "SYMBOLS",
    "Cluster",
    "Stack",
    "first_page",
    "markdown",
    "rows",
    "the_step",
    "format_quantity",
    "sources",
    "symbols_of",
    "table",
]

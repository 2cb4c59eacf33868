"""Lab sheets: `lab.md` with its marks filled in, complete for instructors, or as a handout for students.

Text between `<!-- instructor -->` and `<!-- /instructor -->` is left out of the handout. Marks name an
assignment of the chapter's `lab.py` (lessons.instructor.assignment):

    {{ settings meet_seldom }}     on its own line: all settings, with links that open the workbench with them
    {{ table meet_seldom }}        on its own line: expected results; in the handout an empty table to fill in
    {{ noted("meet_seldom.seconds", period=1) | f(".2f") }}     a number from that table, in a sentence

Expected numbers are in the chapter's `lab.json`, a golden file, which `lockstep book lab CHAPTER --record` writes.
"""

import html
import re
from typing import Any

from experiments.runs.figures import FIGURES
from experiments.specification.experiment import format_value
from experiments.viewer.look import Rows, Spread
from experiments.wording import units
from lessons import golden, markup
from lessons.chapters import Chapter, run_figure
from lessons.figure import value
from lessons.instructor.assignment import Assignment, assignments

PRIVATE = re.compile(r"^<!-- instructor -->\n(.*?)^<!-- /instructor -->\n", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^\{\{ (settings|table) (\w+) \}\}$", re.MULTILINE)
NUMBER = re.compile(r"\{\{ ([^{}\n]*noted\([^{}\n]*) \}\}")
APP = "./"  # the workbench, seen from another page of the app
HERE = "http://localhost:8501/"  # the workbench, seen from a printed page
UNITS = {"s": ("ms", 1e3), "bytes": ("MB", 1e-6), "share": ("%", 100.0)}
SEEDS = (
    "(Expected numbers are means over seeds. A link runs only seed 0, whose results lie within the range; to see the "
    "mean of a run, switch *5 seeds* on.)"
)
LABELS = {"learns": "does it learn?", "steps": "steps of a worker"}


def sheet(chapter: Chapter, base: str = APP) -> str:
    """Return the instructors' sheet of a chapter that has a lab, in Markdown, with expected results.

    `base` is the address of the workbench. Raise ValueError if a mark is invalid.
    """
    text = PRIVATE.sub(r"\1", chapter.lab())
    first = next((mark.start() for mark in MARK.finditer(text) if mark[1] == "table"), len(text))
    return _filled(f"{text[:first]}{SEEDS}\n\n{text[first:]}", chapter, base, expected_results(chapter))


def handout(chapter: Chapter, base: str = APP) -> str:
    """Return the students' sheet, in Markdown, without hints and results, and with empty tables to fill in."""
    return _filled(PRIVATE.sub("", chapter.lab()), chapter, base, None)


def page(chapter: Chapter, base: str = HERE) -> str:
    """Return the handout as a self-contained HTML page that prints well."""
    from markdown_it import MarkdownIt

    text = FILL_IN.format(base=base) + handout(chapter, base)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return PAGE.format(title=html.escape(chapter.title()), body=body)


def expected_results(chapter: Chapter) -> golden.Golden:
    """Return the recorded results of the chapter's assignments."""
    return golden.read(chapter.folder / "lab.json")


def record(chapter: Chapter, log=lambda _: None) -> golden.Golden:
    """Run all assignments of the chapter with all seeds, and return the results as a Golden."""
    done = {}
    for name, one in assignments(chapter.name).items():
        log(name)
        done[name] = run_figure(name, one.figure(name), lambda count, name=name: log(f"{name}, run {count}"))
    return golden.Golden(done, {})


def _filled(text: str, chapter: Chapter, base: str, known: golden.Golden | None) -> str:
    """Return `text` with its marks replaced; tables stay empty without the results in `known`."""
    there = assignments(chapter.name)

    def block(mark: re.Match) -> str:
        kind, name = mark.groups()
        if name not in there:
            raise ValueError(f"{chapter.name}: there is no assignment {name!r}; choose one of {', '.join(there)}.")
        return settings(there[name], base) if kind == "settings" else table(there[name], known and known.figure(name))

    def number(mark: re.Match) -> str:
        if known is None:
            raise ValueError(
                f"{chapter.name}: the handout gives a result away: {mark[0]!r}; move it between <!-- instructor --> "
                "and <!-- /instructor -->."
            )
        return _number(mark[1], chapter.name, known)

    return NUMBER.sub(number, MARK.sub(block, text))


def _number(mark: str, chapter: str, known: golden.Golden) -> str:
    def noted(place: str, **where: Any) -> Any:
        name, _, column = place.rpartition(".")
        return value(known.figure(name).rows, column, **where)

    try:
        return str(markup.JINJA.compile_expression(mark, undefined_to_none=False)(noted=noted))
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{chapter}: in the mark {mark[:120]!r}: {error}") from None


def settings(one: Assignment, base: str) -> str:
    """Return Markdown with the settings in words and links that open the workbench with them, or with a sweep over the
    varied setting.
    """
    first = {"algorithm": one.settings["algorithm"], **one.settings}
    said = [f"*{name}* `{_plain(given)}`" for name, given in first.items()]
    said += [f"*{axis}* " + " or ".join(f"`{_plain(v)}`" for v in stops) for axis, stops in one.turn.items()]
    *outer, axis = one.turn or ("",)
    if one.paired:
        links = [(", ".join(f"{n} {_plain(v)}" for n, v in t.items()), one.link(**t)) for t in one.stops()]
    elif outer:
        links = [(f"{name} {_plain(v)}", one.sweep(**{name: v})) for name in outer for v in one.turn[name]]
    else:
        links = [("Open the first run", one.link())] + ([(f"Sweep {axis}", one.sweep())] if axis else [])
    return f"{', '.join(said)}.\n\n{' · '.join(f'[{words}]({base}?{query})' for words, query in links)}"


def table(one: Assignment, known: golden.RecordedFigure | None) -> str:
    """Return a Markdown table of the recorded means with their ranges over seeds. Cells are empty if nothing is
    recorded.
    """
    rows, spread = (known.rows, known.spread) if known else _empty(one)
    if len(one.turn) == 2 and len(one.note) == 1 and not one.paired:
        heads, lines = _crossed(one, rows, spread)
    else:
        heads = [*map(_spoken, one.turn), *map(_label, one.note)]
        lines = [
            [*(_plain(row[axis]) for axis in one.turn), *(_cell(name, row[name], limits) for name in one.note)]
            for row, limits in zip(rows, spread, strict=True)
        ]
    drawn = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in drawn) + (f"\n\n{_said(known, lines)}" if known else "")


def _said(known: golden.RecordedFigure, lines: list[list[str]]) -> str:
    """Return a sentence on the seeds of a table; it mentions ranges only if a cell shows one."""
    if not any(known.spread) or any(cell == "some seeds" or " to " in cell for line in lines for cell in line):
        return known.seeds_sentence()
    return f"Seeds {known.seeds[0]} to {known.seeds[-1]} give the same results, in the digits shown."


def _crossed(one: Assignment, rows: Rows, spread: Spread) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a table with one setting's values down and the other's across."""
    (down, firsts), (across, seconds) = one.turn.items()
    (name,) = one.note
    cells = iter([_cell(name, row[name], limits) for row, limits in zip(rows, spread, strict=True)])
    heads = [f"{_label(name)}: {_spoken(down)} down, {_spoken(across)} across", *map(_plain, seconds)]
    return heads, [[_plain(first), *(next(cells) for _ in seconds)] for first in firsts]


def _empty(one: Assignment) -> tuple[Rows, Spread]:
    rows = [{**turned, **dict.fromkeys(one.note)} for turned in one.stops()]
    return rows, [{} for _ in rows]


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> str:
    return format_value(value) or "none"


def _label(name: str) -> str:
    figure = FIGURES.get(name)
    label, unit = (figure.label, figure.unit) if figure else (LABELS.get(name, _spoken(name)), "")
    return f"{label}, {UNITS[unit][0]}" if unit in UNITS else label


def _cell(name: str, mean: float | None, limits: dict[str, Any]) -> str:
    if mean is None:
        return " "
    low, high = limits.get(name, (mean, mean))
    if name == "learns":
        return ("yes" if mean else "no") if low == high else "some seeds"
    unit = FIGURES[name].unit if name in FIGURES else ""
    scale = UNITS.get(unit, ("", 1.0))[1]
    write = units.samples_per_second if unit == "samples/s" else _short
    said = [write(one * scale) for one in (mean, low, high)]
    return said[0] if said[1] == said[2] else f"{said[0]} ({said[1]} to {said[2]})"


def _short(number: float) -> str:
    if number in (float("inf"), float("-inf")):
        return "diverges"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


FILL_IN = """Name: ____________________________ Date: ____________

The workbench: <{base}>. On paper, where links cannot be followed: set what is in italics, and leave the rest as it is.

"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  body {{ font: 11pt/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; color: #1b2733 }}
  h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.1rem; margin-top: 1.6rem; break-after: avoid }}
  a {{ color: #0072b2 }} code {{ font-size: 0.95em; overflow-wrap: anywhere }}
  table {{ border-collapse: collapse; width: 100%; margin: 1rem 0; break-inside: avoid }}
  th, td {{ border: 1px solid #9aa5b1; padding: 0.3rem 0.5rem; text-align: left; height: 1.4rem; min-width: 3rem }}
  th {{ background: #f4f6f8; font-weight: 600 }}
  @page {{ margin: 18mm }}
  p {{ orphans: 3; widows: 3 }}
  h2 + p, p:has(+ p > a), p:has(> a), p:has(+ table) {{ break-after: avoid }}
  @media print {{ body {{ margin: 0; max-width: none; font-size: 10pt }} a {{ text-decoration: none }} }}
</style>
<body>
{body}
</body>
</html>
"""

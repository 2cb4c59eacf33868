"""`list`, `show` and `run`: read a chapter, and run its figures."""

import difflib
import html
import random
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Group
from rich.markdown import Markdown
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

import lessons
from experiments.cli.console import refuse
from lessons import chapters, golden, markup
from lessons.cli.console import console, markdown, usage_errors

INDENT = 4  # columns by which folds are indented


@click.command(
    "list",
    help="List all chapters in order, with their reading times. With --figures: list all figures.",
)
@click.option("--figures", is_flag=True, help="list the figures of all chapters, with their questions")
def listing(figures: bool) -> None:
    if figures:
        for one in map(lessons.chapter, lessons.CHAPTERS):
            _list_figures(one)
        return
    table = Table("", "name", "title", "minutes", "", box=None, pad_edge=False)
    for one in map(lessons.chapter, lessons.CHAPTERS):
        if one.name in lessons.PARTS:
            table.add_row("", "", f"[bold]{one.part}[/]")
        deeper = f"{one.minutes_folded} deeper" if one.minutes_folded else ""
        more = deeper if one.has_text else f"{len(one.figures_on_page)} figures, no text yet"
        table.add_row(f"{one.number:2}", one.name, one.title(), f"{one.minutes:3}", more)
    console.print(table)
    console.print("\nTo read one: lockstep book show NAME", style="dim")


@click.command(
    help="Print a chapter, or run one of its figures. Example: show collectives order_of_sums. In a terminal, it "
    "pauses after each question on what will happen, so that you can answer it first; in a pipe it does not."
)
@click.argument("name")
@click.argument("figure", required=False)
@click.option("--draft", is_flag=True, help="for authors: also show what is not recorded yet, with ? for its numbers")
def show(name: str, figure: str | None, draft: bool) -> None:
    with usage_errors():
        if figure:
            name = f"{lessons.chapter(name).name}.{figure}"
        if name in lessons.CHAPTERS:
            _show_chapter(lessons.chapter(name), draft)
            return
        found = _find(name)
    with console.status("") as status:
        recorded = chapters.run_figure(found.name, found, lambda count: status.update(f"run {count}"))
    sys.exit(0 if _print(found, recorded) else 1)


def _find(name: str):
    """Return the Figure with this name. If there is none, raise ValueError with a message that suggests a figure or a
    chapter.
    """
    try:
        return lessons.find(name)
    except ValueError:
        if "." not in name and (close := difflib.get_close_matches(name, lessons.CHAPTERS, n=1)):
            raise ValueError(f"there is no chapter {name[:60]!r}; did you mean {close[0]}?") from None
        raise


def _show_chapter(one: chapters.Chapter, draft: bool) -> None:
    known = f" You should know: {', '.join(one.front.background)}." if one.front.background else ""
    before = f" Read before: {', '.join(one.front.prerequisites)}." if one.front.prerequisites else ""
    console.print(f"Chapter {one.number}, {one.length}.{before}{known}", style="dim", highlight=False)
    if not one.has_text:
        _list_figures(one)
        console.print(
            "\nThis chapter has no text yet. To run a figure, give its name after the chapter's.", style="dim"
        )
        return
    for block in one.blocks(draft=draft):
        console.print(_terminal(one, block))
        if isinstance(block, markup.Predict):
            click.pause("What do you expect? Press any key to read on.")  # does nothing without a terminal


def _list_figures(one: chapters.Chapter) -> None:
    console.print(f"\n[bold]{one.number}. {one.title()}[/]", highlight=False)
    figures = Table.grid("", "", padding=(0, 2))
    for name, question in one.figure_questions.items():
        figures.add_row(f"  [bold]{name.partition('.')[2]}[/]", escape(question))
    console.print(figures)


@click.command(
    help="Run all figures of a chapter and print rows and claims. With --out also write CSV files and an HTML page. "
    "With --fresh try the claims under other seeds, and print only what breaks."
)
@click.argument("names", nargs=-1, metavar="[CHAPTER]...")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="folder to write to")
@click.option(
    "--fresh",
    "count",
    type=click.IntRange(1, 100),
    help="for authors: try claims and quiz answers under this many consecutive seeds, the first drawn at random; "
    "without a CHAPTER, in all chapters. A CHAPTER may also be a single figure, such as sgd.longest_step",
)
@click.option("--seed", type=click.IntRange(0, 10**8), help="first seed of --fresh, to try the same seeds again")
def run(names: tuple[str, ...], out: Path | None, count: int | None, seed: int | None) -> None:
    with usage_errors():
        if count:
            refuse("writes the results of the recorded seeds, but --fresh tries others; remove one of them.", "out")
            from lessons import fresh
            from lessons.cli.fresh import try_claims

            held = [try_claims(names, fresh.draw(count) if seed is None else range(seed, seed + count))]
        else:
            refuse("is the first seed of --fresh; add --fresh, or remove it.", "seed")
            if not names:
                raise ValueError("which chapter? Give its name, as in run sgd; `list` prints all names.")
            held = [_run_chapter(one, out) for one in [lessons.chapter(name) for name in names]]
    sys.exit(0 if all(held) else 1)


def _run_chapter(one: chapters.Chapter, out: Path | None) -> bool:
    """Run a chapter's figures and print them. Return whether all claims hold.

    If `out` is given, also write the figures to this folder.
    """
    from experiments.exports.export import csv_text, write_file
    from experiments.exports.page import page, place
    from lessons.book.figures import text_with_code

    body, frames, shown = [f"<h1>{html.escape(one.title())}</h1>"], {}, True
    for full in one.figures:
        figure = lessons.find(full)
        with console.status("") as status:
            recorded = chapters.run_figure(full, figure, lambda n, full=full: status.update(f"{full}, run {n}"))
        shown &= _print(figure, recorded)
        frames[full] = ("curve", recorded.frame())
        body.append(f"<h2>{html.escape(figure.question)}</h2><p>{text_with_code(figure.text)}</p>{place(full)}")
        if out:
            table = recorded.table()
            columns = {name: np.array([row[name] for row in table], object) for name in table[0]}
            console.print(f"{write_file(out / f'{full}.csv', csv_text(columns).encode())}", style="dim")
    if out:
        text = page(one.title(), "\n".join(body), frames)
        console.print(f"{write_file(out / f'{one.name}.html', text.encode())}", style="dim")
    return shown


def _print(figure, recorded: golden.RecordedFigure) -> bool:
    """Print a figure's rows, with the range over seeds, and its claims. Return whether all claims hold."""
    console.print(f"[bold]{figure.question}[/]\n{figure.source}\n", highlight=False)
    table = Table(*recorded.rows[0], box=None, pad_edge=False)
    for row, limits in zip(recorded.rows, recorded.spread, strict=True):
        table.add_row(*(_cell(value, limits.get(name)) for name, value in row.items()))
    console.print(table)
    console.print(f"\n{recorded.seeds_sentence()}\n", style="dim", highlight=False)
    for claim, seeds in recorded.claims.items():
        sign = "[green]yes[/]" if recorded.shows(claim) else "[red]no [/]"
        often = "" if seeds in (0, len(recorded.seeds)) else f" ({seeds} of {len(recorded.seeds)} seeds)"
        console.print(f"{sign}  {claim}{often}", highlight=False)
    console.print()
    return all(map(recorded.shows, recorded.claims))


def _cell(value, limits) -> str:
    """Return a value as text, followed by its range over seeds if seeds differ."""
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{shown}  ({limits[0]:.3g} to {limits[1]:.3g})" if limits else shown


def _terminal(one: chapters.Chapter, block: markup.Block):
    """Return a block of a text as something that the terminal can show."""
    match block:
        case markup.Text(text):
            return markdown(text)
        case markup.Code(_, path, line, source):
            return Markdown(f"*{path}, line {line}*\n```python\n{source}\n```")
        case markup.LiveFigure(name):
            return Markdown(f"> **{_titled(one, name)}** `lockstep book show {name}`")
        case markup.Predict(name):
            return markdown(_asked(one, one.item(name)))
        case markup.Schedule() | markup.Timeline():
            return markdown(f"> **Figure {one.figure_number(block.link)}. {block.caption}.** {block.settings}.")
        case markup.Fold():
            inside = Group(*(_terminal(one, part) for part in block.blocks))
            return Group("", markdown(f"**{block.label}**"), Padding(inside, (0, 0, 1, INDENT)))


def _asked(one: chapters.Chapter, item) -> str:
    """Return a prediction as Markdown, with its choices and how to answer it. Choices are in the order of `quiz --seed
    0`.
    """
    choices = random.Random(0).sample(item.choices, len(item.choices))
    lines = [f"Predict: {item.question(item.prediction(0))}", *(f"- {choice.says}" for choice in choices)]
    lines.append(f"To answer: `lockstep book quiz {one.name}`")
    return "\n>\n".join("> " + line.strip().replace("\n", "\n> ") for line in lines)


def _titled(one: chapters.Chapter, name: str) -> str:
    """Return the number and question of a figure, followed by a note if it is not recorded yet."""
    missing = "" if name in one.golden.figures else " (not recorded yet)"
    return f"Figure {one.figure_number(name)}. {lessons.question(name)}{missing}"

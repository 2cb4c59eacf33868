"""Build the book: all its pages, in their order, and the files next to them."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import lessons
from experiments.viewer import canvases
from installation import document
from lessons import glossary, notation, progress, survey
from lessons.book import chapter as chapters
from lessons.book import documentation, exercises, figures, markdown, paper, questions, search
from lessons.book.chapter import ContentsLine
from lessons.chapters import Chapter
from lessons.links import link_identifiers
from lessons.live import archive, tries

HERE = Path(__file__).parent
SCRIPTS = ("katex/katex.min.js", "formulas.js", "progress.js", "reader.js")  # of every page, in this order
AROUND = ("page.js", "terms.js", "search.js")  # after its own
CHAPTER = ("questions.js", "canvases.js", "figures.js", *AROUND)
LIVE = ("worker.js", "client.js", "trial.js")  # of lessons/live, on pages that compute
MORE = {
    "again": "Review",
    "survey": "The survey",
    "notation": "Notation",
    "glossary": "Glossary",
    "bibliography": "Bibliography",
    "algorithms": "Algorithms",
    "documentation": "Documentation",
}  # pages that are not chapters
PLAYGROUND = {"playground": "Playground"}  # where pages compute
PAGES = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
PAGES.globals["SURE"] = progress.SURE


class Navigation(NamedTuple):
    """The contents that every page lists next to its text: the chapters, and the other pages by name."""

    book: list[ContentsLine]
    more: dict[str, str]


def build(out: Path, workbench: str = "", pyodide: dict[str, bytes] | None = None) -> list[Path]:
    """Write the book into the folder `out` and return its pages. `workbench` is the workbench's address, or "" for
    none.

    With the files of `pyodide` (lessons/live/distribution.py), pages can compute runs. An earlier build in the folder
    is replaced. Raise ValueError if the folder holds anything else.
    """
    _clear(out)
    _copy_assets(out)
    python = archive.publish(pyodide, out / "assets") if pyodide else {}
    book = [lessons.chapter(name) for name in lessons.CHAPTERS]
    values = {one.name: chapters.values(one, workbench.rstrip("/"), bool(python)) for one in book}
    navigation = Navigation([chapters.entry(one) for one in book], MORE | (PLAYGROUND if python else {}))
    sources = markdown.render(link_identifiers(survey.first_page(chapters.address)))
    front = {"title": "Contents", "sources": sources, "live": bool(python)}
    pages = {"index": _page("index", "index.html", navigation, front, ("front.js", *AROUND))}
    for before, one, after in zip(
        [None, *navigation.book], navigation.book, [*navigation.book[1:], None], strict=False
    ):
        given = {"title": one.title, "before": before, "after": after, **values[one.name]}
        pages[one.name] = _page(one.name, "chapter.html", navigation, *_computing(given, CHAPTER, python))
    for name, text in _texts(workbench.rstrip("/")).items():
        given = {"title": MORE[name], "text": markdown.render(text)}
        pages[name] = _page(name, "text.html", navigation, given, AROUND)
    for name, (title, text) in documentation.pages().items():
        pages[name] = _page(name, "text.html", navigation, {"title": title, "text": markdown.render(text)}, AROUND)
    pages["again"] = _again(book, navigation)
    if python:
        pages["playground"] = _playground(navigation, python)
    pages["paper"] = _paper(book, navigation.book, values, sources)
    for name, page in pages.items():
        (out / f"{name}.html").write_text(page, "utf-8")
    for one in book:
        exercises.write_files(one, out)
    found = [section for one in book for section in search.sections(one, chapters.blocks(one))]
    (out / "assets" / "search-index.js").write_text(search.script(found), "utf-8")
    return [out / f"{name}.html" for name in pages]


def _texts(workbench: str) -> dict[str, str]:
    """Return {page: Markdown} for the survey, the notation, the glossary and the bibliography."""
    letters = (
        f"# Notation\n\nA letter has one meaning in all chapters, unless a row says otherwise.\n\n{notation.table()}"
    )
    bibliography = document("docs/bibliography.md").read_text("utf-8")
    methods = survey.markdown(address=chapters.address, workbench=workbench)
    pages = {"survey": methods, "notation": letters, "glossary": glossary.page(), "bibliography": bibliography}
    return {name: link_identifiers(text) for name, text in pages.items()}


def _playground(navigation: Navigation, python: dict[str, int]) -> str:
    """Return the playground, the page on which readers run experiments of their own."""
    values = {"title": PLAYGROUND["playground"], "megabytes": round(python["bytes"] / 1e6)}
    data = {"live": python, "playground": tries.playground()}
    scripts = ("canvases.js", *AROUND, *LIVE, "playground.js")
    return _page("playground", "playground.html", navigation, {**values, "data": data}, scripts)


def _again(book: list[Chapter], navigation: Navigation) -> str:
    """Return the review page, where questions come back."""
    items = {name: item for one in book for name, item in chapters.items(one).items()}
    asked = [asked for one in book for asked in chapters.returning(one)]
    data = {"items": items, "meaning": questions.meaning(), "chapters": [one.name for one in book]}
    given = {"title": "Review", "questions": asked, "data": data}
    return _page("again", "again.html", navigation, given, ("questions.js", "again.js", *AROUND))


def _computing(values: dict[str, Any], scripts: tuple[str, ...], python: dict[str, int]) -> tuple[dict, tuple]:
    """Return a page's values and scripts. If `python` is given and the page can compute something, they include what it
    needs to run Python.
    """
    data = values["data"]
    asks = {"predict.js": any(one["computes"] for one in data["items"].values()), "editor.js": "exercise" in data}
    if not python or not (data["tries"] or any(asks.values())):
        return values, scripts
    return {**values, "data": {**data, "live": python}}, (
        *scripts,
        *LIVE,
        *(name for name, is_needed in asks.items() if is_needed),
    )


def _page(name: str, template: str, navigation: Navigation, values: dict[str, Any], scripts: tuple[str, ...]) -> str:
    given = {"chapter": None, "headings": (), "data": {}, **values}
    given |= {"page": name, "book": navigation.book, "more": navigation.more.items(), "scripts": (*SCRIPTS, *scripts)}
    return PAGES.get_template(template).render(given | {"data": _inside(given["data"])})


def _paper(book: list[Chapter], entries: list[ContentsLine], values: dict[str, dict[str, Any]], sources: Markup) -> str:
    """Return the page that holds all chapters, for printing."""
    article = PAGES.get_template("article.html")
    articles = [Markup(paper.on_one_page(name, article.render(one))) for name, one in values.items()]
    frames = {name: frame for one in values.values() for name, frame in one["data"]["frames"].items()}
    frames |= {name: frame for one in book for name, frame in figures.on_paper(one).items() if name in frames}
    scripts = ("katex/katex.min.js", "formulas.js", "canvases.js", "figures.js")
    return PAGES.get_template("paper.html").render(
        book=entries, sources=Markup(paper.inside(sources)), articles=articles, data=_inside({"frames": frames}),
        scripts=scripts,
    )  # fmt: skip


def _inside(data: dict[str, Any]) -> Markup:
    """Return data as JSON that is safe to embed in a page."""
    return Markup(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/"))


def _clear(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()) and not (out / "assets" / "book.css").is_file():
        raise ValueError(f"{out} contains something other than a book; choose an empty folder, or a new one.")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


def _copy_assets(out: Path) -> None:
    shutil.copytree(HERE / "assets", out / "assets")
    for folder in ("katex", "fonts"):
        shutil.copytree(HERE / "vendor" / folder, out / "assets" / folder)
    shutil.copy(HERE / "progress.js", out / "assets")
    (out / "assets" / "canvases.js").write_text(canvases.script(), "utf-8")

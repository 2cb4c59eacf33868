"""Prepare a chapter for its template.

A chapter is divided into parts. Each part but the first opens when the reader has answered the prediction before it.
"""

from dataclasses import dataclass, field
from typing import Any

import lessons
from lessons import markup
from lessons.book import exercises, figures, markdown, questions
from lessons.book.figures import PageData
from lessons.book.markdown import Heading
from lessons.chapters import Chapter
from lessons.front_matter import DIFFICULTIES
from lessons.live import tries
from lessons.quiz import Item
from lessons.references import fold_anchor


@dataclass
class TextPart:
    """A part of the text that is shown once the questions named in `behind` are answered. Each of its blocks is a pair
    (kind of block, values).
    """

    behind: tuple[str, ...]
    blocks: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class ContentsLine:
    """A chapter's entry in the table of contents."""

    name: str
    number: int
    part: str
    title: str
    written: bool
    facts: tuple[str, ...]
    questions: int


def entry(chapter: Chapter) -> ContentsLine:
    """Return a chapter's entry in the table of contents."""
    alone = () if chapter.has_text else (f"{len(chapter.figures_on_page)} figures without text",)
    facts = (chapter.length, DIFFICULTIES[chapter.front.difficulty], *alone)
    title, has_text = chapter.title(), chapter.has_text
    return ContentsLine(chapter.name, chapter.number, chapter.part, title, has_text, facts, len(chapter.items))


def address(chapter: str, anchor: str) -> str:
    """Return the relative URL of an anchor in another chapter. If `anchor` is "", it leads to the chapter's top."""
    return f"{chapter}.html#{anchor}" if anchor else f"{chapter}.html"


def values(chapter: Chapter, workbench: str, live: bool = False) -> dict[str, Any]:
    """Return the values that the chapter template needs. `workbench` is the address of the workbench, or "" for a page
    without links to it.

    Pages that are `live` can compute runs (lessons/live).
    """
    shown = blocks(chapter)
    predicted = [block.item for block in shown if isinstance(block, markup.Predict)]
    page = PageData(workbench, live)
    written = {"exercise": tries.exercise(chapter)} if live and chapter.exercise else {}
    return {
        "chapter": entry(chapter),
        "facts": _facts(chapter),
        "objectives": [markdown.inline(one) for one in chapter.front.objectives],
        "headings": _headings(chapter, shown),
        "parts": _parts(chapter, shown, predicted, page),
        "quiz": [_question(chapter, item, "quiz", predicted) for item in chapter.quiz],
        "answers": [_answer(chapter, item) for item in chapter.quiz],
        "exercise": exercises.template_values(chapter, workbench),
        "data": {
            "items": items(chapter),
            "meaning": questions.meaning(),
            "frames": page.frames,
            "tries": page.tries,
            **written,
        },
    }


def items(chapter: Chapter) -> dict[str, Any]:
    """Return all questions of a chapter by full name, in the format that the page's script reads."""
    return {f"{chapter.name}.{item.name}": questions.data(chapter, item) for item in chapter.items}


def returning(chapter: Chapter) -> list[dict[str, Any]]:
    """Return all questions of a chapter in the format that the review page uses."""
    return [_question(chapter, item, "again", []) | {"label": chapter.title()} for item in chapter.items]


def blocks(chapter: Chapter) -> list[markup.Block]:
    """Return the blocks of a chapter's text. If it has no text, return the figures in its golden file instead."""
    if chapter.has_text:
        return chapter.blocks(address=address)
    return [markup.LiveFigure(name) for name in chapter.figures_on_page if name in chapter.golden.figures]


def _facts(chapter: Chapter) -> list[str]:
    """Return short phrases in HTML: the chapter's length, its difficulty, and what a reader needs to know before."""
    before = [f"[{lessons.chapter(name).title()}]({address(name, '')})" for name in chapter.front.prerequisites]
    needs = [*before, *chapter.front.background]
    return [*entry(chapter).facts, *([markdown.inline(f"needs {', '.join(needs)}")] if needs else [])]


def _headings(chapter: Chapter, shown: list[markup.Block]) -> list[Heading]:
    found = [one for block in shown if isinstance(block, markup.Text) for one in markdown.headings(block.markdown)]
    found += [Heading(2, "Quiz", "quiz")] if chapter.items else []
    return found + ([Heading(2, "Exercise", "exercise")] if chapter.exercise else [])


def _parts(chapter: Chapter, shown: list[markup.Block], predicted: list[str], page: PageData) -> list[TextPart]:
    parts = [TextPart(())]
    for block in shown:
        if isinstance(block, markup.Predict):
            asked = _question(chapter, chapter.item(block.item), "predict", predicted)
            parts[-1].blocks.append(("question", asked))
            parts.append(TextPart((*parts[-1].behind, block.item)))
        else:
            parts[-1].blocks.append(_block(chapter, block, page))
    return parts


def _block(chapter: Chapter, block: markup.Block, page: PageData) -> tuple[str, Any]:
    """Return (kind of block, the values that its template needs). The block must not be a prediction."""
    match block:
        case markup.Text(text):
            return "html", markdown.render(_without_title(text))
        case markup.Code(_, path, line, source):
            return "code", {"path": path, "line": line, "html": markdown.code(source, "python")}
        case markup.LiveFigure(name, settings):
            return "figure", figures.template_values(chapter, name, page, settings)
        case markup.Schedule() | markup.Timeline():
            return "movement", figures.moving(chapter, block, page)
        case markup.Fold(title, inside):
            return "fold", {
                "anchor": fold_anchor(title, chapter.name),
                "label": markdown.inline(block.label),
                "blocks": [_block(chapter, part, page) for part in inside],
            }


def _without_title(text: str) -> str:
    """Return the text without its first heading, which the page shows separately."""
    return text.partition("\n")[2] if text.startswith("# ") else text


def _label(chapter: Chapter, item: Item, place: str) -> str:
    """Return the label of a question, such as "Predict 5.2". Questions are numbered in the order of the quiz, which
    puts predictions first, as in the text.
    """
    order = [one.name for one in chapter.quiz]
    return f"{'Predict' if place == 'predict' else 'Question'} {chapter.number}.{order.index(item.name) + 1}"


def _question(chapter: Chapter, item: Item, place: str, predicted: list[str]) -> dict[str, Any]:
    return {
        "chapter": chapter.name,
        "name": item.name,
        "place": place,
        "asked_before": place == "quiz" and item.name in predicted,
        "anchor": f"{'quiz' if place == 'quiz' and item.name in predicted else 'item'}-{chapter.name}-{item.name}",
        "label": _label(chapter, item, place),
        "ask": questions.cases(chapter, item)[0]["ask"],
        "choices": [(one.key, markdown.inline(one.says)) for one in questions.choices(chapter, item)],
        "unit": item.unit,
    }


def _answer(chapter: Chapter, item: Item) -> dict[str, Any]:
    """Return the answer to a question, with its explanation, as the printed chapter shows it at its end."""
    first = questions.cases(chapter, item)[0]
    label = _label(chapter, item, "quiz")
    shown = "" if first["told"] else first["shown"].rstrip(".") + "."
    return {"anchor": f"item-{chapter.name}-{item.name}", "label": label, "shown": shown, "why": first["why"]}

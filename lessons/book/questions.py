"""Questions in the form that a page's script needs: each with all its possible parameters and their answers."""

import random
from typing import Any

from lessons.book.markdown import inline, render
from lessons.chapters import Chapter
from lessons.progress import MEANING, SURE
from lessons.quiz import Choice, Item


def data(chapter: Chapter, item: Item) -> dict[str, Any]:
    """Return what the page's script needs for a question: its unit, tolerance, choices and cases."""
    return {
        "unit": item.unit,
        "one": item.unit_for(1),
        "within": item.within,
        "computes": item.answer if item.live else "",
        "choices": {one.key: {"says": inline(one.says), "but": render(one.but)} for one in choices(chapter, item)},
        "cases": cases(chapter, item),
    }


def meaning() -> dict[str, list[str]]:
    """Return the feedback on an answer, {"right" or "wrong": sentences}, with one sentence for each degree of
    confidence.
    """
    return {
        word: [MEANING[right, sure] for sure in range(len(SURE))] for word, right in (("right", True), ("wrong", False))
    }


def cases(chapter: Chapter, item: Item) -> list[dict[str, Any]]:
    """Return a case for each set of parameters of a question.

    A case has the parameters, the answer, and the question and its explanation as HTML.
    """
    found = []
    for parameters in item.all_parameters():
        answer = chapter.golden.answer(item.name, parameters)
        shown = (
            inline(item.choice(answer).says) if item.choices else f"{_number(answer)} {item.unit_for(answer)}".strip()
        )
        words = {"ask": render(item.question(parameters)), "why": render(item.explanation(parameters, answer))}
        told = item.starts_with_answer(parameters, answer)
        first = parameters == parameters | dict(item.first)
        found.append(
            {"parameters": parameters, "answer": answer, "shown": shown, "told": told, "first": first, **words}
        )
    return found


def choices(chapter: Chapter, item: Item) -> list[Choice]:
    """Return the choices in a shuffled order, because authors write the right one first. The order is the same for all
    readers.
    """
    return random.Random(f"{chapter.name} {item.name}").sample(item.choices, len(item.choices))


def _number(value: float) -> str:
    """Return a number with three significant digits and no exponent, such as 0.0123, 12.3 or 1,230."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.10g}"

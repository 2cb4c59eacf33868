"""Choose the questions that come back, their order, and the time when each is due, from a reader's answers.

`book/progress.js` has the same rules, and a test compares the two.
"""

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from lessons.progress import Answer, ReaderProgress, instant
from lessons.quiz import Item

INTERVALS = (
    1,
    3,
    7,
    21,
    60,
)  # days until a question comes back, by how many days in a row it was answered right


def valid_answers(progress: ReaderProgress, chapters: Iterable) -> tuple[Answer, ...]:
    """Return the answers that are valid for questions of these Chapters.

    Each is judged right or wrong again, because a file may claim anything.
    """
    books = {one.name: one for one in chapters}
    items = {(name, item.name): item for name, one in books.items() for item in one.items}
    found = []
    for answer in progress.answers:
        if (item := items.get(answer.question)) and fits(item, answer):
            with suppress(ValueError):  # the golden file is older than the question
                truth = books[answer.chapter].golden.answer(item.name, answer.parameters)
                found.append(answer.model_copy(update={"right": item.right(answer.guess, truth)}))
    return tuple(found)


def fits(item: Item, answer: Answer) -> bool:
    """Return whether an answer is valid for the current form of this item."""
    if item.choices:
        kind = answer.guess in [choice.key for choice in item.choices]
    else:
        kind = not isinstance(answer.guess, str)
    return kind and answer.parameters in item.all_parameters()


class Return(NamedTuple):
    """A question that comes back. Its urgency is 0 (wrong and sure), 1 (wrong), 2 (unsure) or 3 (known), and `at` is
    when it is due.
    """

    chapter: str
    item: str
    urgency: int
    at: str


def returns(answers: Sequence[Answer], chapters: Sequence[str]) -> list[Return]:
    """Return all answered questions, most urgent first. `chapters` are in teaching order.

    Wrong answers are due at once. Right but unsure ones are due after a day. Known ones are due after INTERVALS or, the
    first time, as soon as the reader begins a later chapter.
    """
    histories: dict[tuple[str, str], list[Answer]] = {}
    latest: dict[str, str] = {}  # when each chapter was last worked on
    for answer in answers:
        histories.setdefault(answer.question, []).append(answer)
        latest[answer.chapter] = answer.at
    found = []
    for (chapter, item), history in histories.items():
        last = history[-1]
        if not last.right:
            found.append((Return(chapter, item, 0 if last.sure == 2 else 1, last.at), last.at))
            continue
        days = _right_days(history)
        wait = timedelta(days=INTERVALS[min(days, len(INTERVALS)) - 1] if last.sure else 1)
        at = _later(last.at, wait)
        after = chapters[chapters.index(chapter) + 1 :] if chapter in chapters else ()
        if last.sure and days == 1 and (begun := [latest[c] for c in after if latest.get(c, "") > last.at]):
            at = min(at, *begun)
        found.append((Return(chapter, item, 3 if last.sure else 2, at), last.at))
    return [one for one, last in sorted(found, key=lambda f: (f[0].urgency, f[1], f[0].chapter, f[0].item))]


def due(returning: Iterable[Return], when: str) -> list[Return]:
    """Return the questions that are due at the time `when`."""
    return [one for one in returning if one.at <= when]


def _right_days(history: Sequence[Answer]) -> int:
    """Return on how many days a question was answered correctly, in the unbroken run of right answers that ends with
    the last answer.
    """
    days = set()
    for answer in reversed(history):
        if not answer.right:
            break
        days.add(answer.at[:10])
    return len(days)


def _later(at: str, wait: timedelta) -> str:
    try:
        return instant(datetime.fromisoformat(at) + wait)
    except OverflowError:
        return at


def new_parameters(item: Item, answers: Sequence[Answer], seed: int) -> dict[str, Any]:
    """Return parameters for asking the question again. If possible, they differ from the parameters of the last
    answer.
    """
    asked = answers[-1].parameters if answers else None
    others = [parameters for parameters in item.all_parameters() if parameters != asked]
    return Random(f"{seed} {item.name} {len(answers)}").choice(others or item.all_parameters())


def draw_test(items: Iterable[tuple[str, Item]], seed: int, count: int = 10) -> list[tuple[str, Item, dict[str, Any]]]:
    """Return up to `count` questions for a test, each as (chapter, item, parameters).

    Each item is asked once before any item repeats with other parameters.
    """
    dice = Random(seed)
    pools = [
        [(chapter, item, parameters) for parameters in dice.sample(every, len(every))]
        for chapter, item in items
        if (every := item.all_parameters())
    ]
    dice.shuffle(pools)
    rounds = itertools.zip_longest(*pools)
    return [one for group in rounds for one in group if one][:count]


class Standing(NamedTuple):
    """Counts of a reader's answers: the questions answered, those answered right the first time, and those whose first
    answer was sure but wrong.
    """

    answered: int
    right_at_first: int
    sure_and_wrong: int  # at first


def standing(answers: Iterable[Answer]) -> Standing:
    """Return the Standing of a reader with these answers, which are ordered from old to new."""
    first: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        first.setdefault(answer.question, answer)
    wrong = sum(a.sure == 2 and not a.right for a in first.values())
    return Standing(len(first), sum(a.right for a in first.values()), wrong)

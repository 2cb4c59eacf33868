"""A chapter: a folder, and what is in it.

text.md          the text; its first line is the title (lessons.markup says what may be live in it)
text.ko.md       the same in Korean, where somebody has written it
experiments.py   its figures (lessons.figure)
golden.json      what figures and quiz items gave (lessons.golden)
quiz.toml        questions (lessons.quiz), and answers.py, which answers them
exercise.py      one function to write: a program that works, but not well enough yet
check.py         what is asked of it (lessons.grading.grader)
lab.md           a sheet for 45 minutes with a class
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from lessons import golden, markup, quiz
from lessons.golden import Golden

LANGUAGES = {"en": "English", "ko": "한국어"}


class Chapter:
    """The chapter in `folder`, of that name. Nothing is read before it is asked for, and nothing is computed."""

    def __init__(self, folder: Path):
        self.folder, self.name = folder, folder.name

    @property
    def written(self) -> bool:
        """Whether it has a text; the others are figures only."""
        return (self.folder / "text.md").is_file()

    @property
    def languages(self) -> list[str]:
        """The languages it can be read in."""
        return [one for one in LANGUAGES if self._path("text", one).is_file()]

    def title(self, language: str = "en") -> str:
        """Its title, or its name in words if there is no text."""
        if not self.written:
            return self.name.replace("_", " ").capitalize()
        return self.text(language).lstrip().splitlines()[0].lstrip("# ")

    def text(self, language: str = "en") -> str:
        """The text in this language, or else in English; "" if it is not written."""
        return self._read("text", language)

    def lab(self, language: str = "en") -> str:
        """The lab sheet, likewise."""
        return self._read("lab", language)

    def blocks(self, language: str = "en") -> list[markup.Block]:
        """The text in parts, numbers filled in. ValueError in one sentence if something in it is not right."""
        return markup.blocks(self.text(language), self.name, self.golden)

    @property
    def figures(self) -> list[str]:
        """The full names of the figures that its texts draw or take numbers from."""
        texts = (read(language) for language in self.languages for read in (self.text, self.lab))
        return list(dict.fromkeys(name for text in texts for name in markup.figure_names(text, self.name)))

    @cached_property
    def golden(self) -> Golden:
        """What its golden file has."""
        return golden.read(self.folder / "golden.json")

    @cached_property
    def items(self) -> tuple[quiz.Item, ...]:
        """The questions of its quiz."""
        return quiz.read(self.folder / "quiz.toml")

    def item(self, name: str) -> quiz.Item:
        """The question of this name; ValueError if there is none."""
        for item in self.items:
            if item.name == name:
                return item
        raise ValueError(f"{self.name} has no question {name!r}; it has {', '.join(i.name for i in self.items)}.")

    @property
    def exercise(self) -> str:
        """The source of exercise.py, "" if there is none."""
        path = self.folder / "exercise.py"
        return path.read_text("utf-8") if path.is_file() else ""

    def recompute(self, tell: Callable[[str], None] = lambda _: None) -> Golden:
        """All figures and answers anew, here and now; `tell` hears what is under way."""
        import lessons

        figures = {}
        for name in self.figures:
            tell(name)
            figures[name] = run_figure(name, lessons.find(name), lambda count, name=name: tell(f"{name}, run {count}"))
        answers = {}
        for item in self.items:
            tell(f"{self.name}, {item.name}")
            answers[item.name] = [(values, item.compute(self.name, values)) for values in item.all_parameters()]
        return Golden(figures, answers)

    def _path(self, kind: str, language: str) -> Path:
        return self.folder / (f"{kind}.md" if language == "en" else f"{kind}.{language}.md")

    def _read(self, kind: str, language: str) -> str:
        for one in (language, "en"):
            if self._path(kind, one).is_file():
                return self._path(kind, one).read_text("utf-8")
        return ""


def run_figure(name: str, figure, tell: Callable[[int], None] = lambda _: None) -> golden.RecordedFigure:
    """Run a figure's experiments here and now; `tell` hears how many have begun."""
    from experiments.experiment import Experiment
    from experiments.run import run

    links: list[str] = []

    def run_and_note(**values: Any):
        experiment = Experiment.of(values)
        links.append(experiment.query())
        tell(len(links))
        return run(experiment)

    return golden.record_figure(name, figure, figure.rows(run_and_note), links)

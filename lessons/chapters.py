"""Chapter: a folder with these files.

text.md          the text; its first line is the title (lessons.markup: live numbers, figures and code in it)
text.ko.md       its Korean translation, where there is one
experiments.py   the figures (lessons.figure)
golden.json      recorded results of figures and quiz items (lessons.golden)
quiz.toml        the questions (lessons.quiz); answers.py computes the answers
exercise.py      one function to write: the template works, but not well enough
check.py         how solutions are judged (lessons.grading.grader)
lab.md           a sheet for 45 minutes with a class
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from lessons import golden, markup, quiz, seeds
from lessons.golden import Golden

LANGUAGES = {"en": "English", "ko": "한국어"}


class Chapter:
    """The chapter in `folder`, named like it. Files are read on demand; nothing is run."""

    def __init__(self, folder: Path):
        self.folder, self.name = folder, folder.name

    @property
    def written(self) -> bool:
        """Whether there is a text; other chapters have figures only."""
        return (self.folder / "text.md").is_file()

    @property
    def languages(self) -> list[str]:
        """Languages in which there is a text."""
        return [one for one in LANGUAGES if self._path("text", one).is_file()]

    def title(self, language: str = "en") -> str:
        """Return the title; without a text, the name in words."""
        if not self.written:
            return self.name.replace("_", " ").capitalize()
        return self.text(language).lstrip().splitlines()[0].lstrip("# ")

    def text(self, language: str = "en") -> str:
        """Return the text in this language, else in English, else ""."""
        return self._read("text", language)

    def lab(self, language: str = "en") -> str:
        """Return the lab sheet in this language, else in English, else ""."""
        return self._read("lab", language)

    def blocks(self, language: str = "en") -> list[markup.Block]:
        """Return the blocks of the text, numbers inserted. ValueError, in one sentence, if a mark is invalid."""
        return markup.blocks(self.text(language), self.name, self.golden)

    @property
    def figures(self) -> list[str]:
        """Full names of the figures that its texts show or quote numbers from."""
        texts = (read(language) for language in self.languages for read in (self.text, self.lab))
        return list(dict.fromkeys(name for text in texts for name in markup.figure_names(text, self.name)))

    @cached_property
    def golden(self) -> Golden:
        """Its golden file."""
        return golden.read(self.folder / "golden.json")

    @cached_property
    def items(self) -> tuple[quiz.Item, ...]:
        """Questions of its quiz."""
        return quiz.read(self.folder / "quiz.toml")

    def item(self, name: str) -> quiz.Item:
        """Return the question of this name. ValueError if there is none."""
        for item in self.items:
            if item.name == name:
                return item
        raise ValueError(f"{self.name} has no question {name!r}; it has {', '.join(i.name for i in self.items)}.")

    @property
    def exercise(self) -> str:
        """Source of exercise.py; "" if there is none."""
        path = self.folder / "exercise.py"
        return path.read_text("utf-8") if path.is_file() else ""

    def recompute(self, log: Callable[[str], None] = lambda _: None) -> Golden:
        """Run all figures and quiz items in this process; call `log` with the name of each."""
        import lessons

        figures = {}
        for name in self.figures:
            log(name)
            figures[name] = run_figure(name, lessons.find(name), lambda count, name=name: log(f"{name}, run {count}"))
        answers = {}
        for item in self.items:
            log(f"{self.name}, {item.name}")
            answers[item.name] = [(values, item.compute(self.name, values)) for values in item.all_parameters()]
        return Golden(figures, answers)

    def _path(self, kind: str, language: str) -> Path:
        return self.folder / (f"{kind}.md" if language == "en" else f"{kind}.{language}.md")

    def _read(self, kind: str, language: str) -> str:
        for one in (language, "en"):
            if self._path(kind, one).is_file():
                return self._path(kind, one).read_text("utf-8")
        return ""


def run_figure(name: str, figure, on_run: Callable[[int], None] = lambda _: None) -> golden.RecordedFigure:
    """Run a figure's experiments in this process under all seeds and record them.

    Calls `on_run` with the number of runs started so far.
    """
    from experiments.experiment import Experiment
    from experiments.run import run

    started: list[Experiment] = []

    def run_and_note(experiment: Experiment):
        started.append(experiment)
        on_run(len(started))
        return run(experiment)

    samples = seeds.each(figure.rows, run_and_note)
    links = [experiment.query() for experiment in started[: len(started) // len(samples)]]
    return golden.record_figure(name, figure, samples, links)

"""A chapter is a folder with these files.

chapter.toml     what it requires of a reader, and its objectives (lessons.front_matter)
text.md          the text; its first line is the title (lessons.markup: live numbers, figures and code in it)
experiments.py   the figures (lessons.figure); if there are many, a folder experiments/ with a file for each group
golden.json      recorded results of figures and quiz items (lessons.golden)
quiz.toml        the questions (lessons.quiz); answers.py computes the answers
exercise.py      one function to write: the template works, but not well enough
check.py         how solutions are judged (lessons.grading.grader)
solution.py      a solution with all marks; levels are cut from it (lessons.grading.levels)
exercise.toml    hints and levels (lessons.grading.sheet)
lab.md           a sheet for 45 minutes with a class (lessons.instructor.sheet); lab.py has its assignments
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property, partial
from pathlib import Path

import lessons
from lessons import figure, folds, front_matter, golden, markup, quiz, seeds
from lessons.front_matter import FrontMatter
from lessons.golden import Golden

WORDS_A_MINUTE = 200
COMPUTE = 3  # minutes for a prediction, with a pencil


class Chapter:
    """The chapter in `folder`, which gives it its name. Files are read on demand, and only `recompute` runs
    anything.
    """

    def __init__(self, folder: Path):
        self.folder, self.name = folder, folder.name

    @property
    def has_text(self) -> bool:
        """True if the chapter has a text. Other chapters have only figures."""
        return (self.folder / "text.md").is_file()

    def title(self) -> str:
        """Return the chapter's title. It is the first line of the text or, without a text, the title in chapter.toml.
        If that is missing, too, it is the folder's name in words.
        """
        if not self.has_text:
            return self.front.title or self.name.replace("_", " ").capitalize()
        return self.text().lstrip().splitlines()[0].lstrip("# ")

    def text(self) -> str:
        """Return the text, or "" if there is none."""
        return self._read("text.md")

    def lab(self) -> str:
        """Return the lab sheet, or "" if there is none."""
        return self._read("lab.md")

    def blocks(self, address: markup.Address | None = None, draft: bool = False) -> list[markup.Block]:
        """Return the blocks of the text, with numbers inserted. Raise ValueError if a mark is invalid.

        With an `address` (lessons.references), references are links, and terms of the glossary are explained by HTML's
        <abbr>. In a draft, numbers of figures that are not recorded are "?".
        """
        return markup.blocks(self.text(), self.name, self.golden, address, draft)

    @cached_property
    def front(self) -> FrontMatter:
        return front_matter.read(self.folder / "chapter.toml")

    @property
    def number(self) -> int:
        """The chapter's number in the book, counted from 1. It is 0 if the chapter is not registered."""
        return lessons.CHAPTERS.index(self.name) + 1 if self.name in lessons.CHAPTERS else 0

    @property
    def part(self) -> str:
        """The title of the part of the book that this chapter belongs to, or "" if the chapter is not registered."""
        begun = [lessons.PARTS[name] for name in lessons.CHAPTERS[: self.number] if name in lessons.PARTS]
        return begun[-1] if begun else ""

    @property
    def minutes(self) -> int:
        """The time it takes to read the text without its folds, in minutes. A chapter without a text takes one minute
        per figure.

        A minute is 200 words. Each figure, piece of code or animation adds one minute, and each prediction three.
        """
        return _minutes(folds.path(self.text())) if self.has_text else len(self.figures_on_page)

    @property
    def minutes_folded(self) -> int:
        """The additional time it takes to read the folds, in minutes; 0 if there are none."""
        folded = folds.text_in_folds(self.text())
        return max(1, _minutes(folded)) if folded else 0

    @property
    def length(self) -> str:
        """The reading time in words, such as "22 minutes, 6 more to go deeper"."""
        return f"{self.minutes} minutes" + (f", {self.minutes_folded} more to go deeper" if self.minutes_folded else "")

    @cached_property
    def figure_questions(self) -> dict[str, str]:
        """The questions of all declared figures, as {full name: question}. They are read without running anything."""
        found = figure.questions_in(self.folder)
        return {f"{self.name}.{name}": question for name, question in found.items()}

    @property
    def figures_on_page(self) -> list[str]:
        """The full names of the figures on the page, in order. These are the figures in the text or, if there is no
        text, all declared ones.
        """
        return markup.shown_figures(self.text(), self.name) if self.has_text else list(self.figure_questions)

    def figure_number(self, name: str) -> str:
        """Return the number of a figure, such as "5.2", or "" if the figure is not on the page.

        `name` is the full name of a figure. It may also be the link of a schedule or timeline, since these count as
        figures.
        """
        there = markup.numbered_items(self.text(), self.name) if self.has_text else self.figures_on_page
        return f"{self.number}.{there.index(name) + 1}" if name in there else ""

    @property
    def figures(self) -> list[str]:
        """The full names of the figures that the text and the lab sheet show or quote. Without a text, these are all
        declared figures.
        """
        if not self.has_text:
            return list(self.figure_questions)
        texts = (self.text(), self.lab())
        return list(dict.fromkeys(name for text in texts for name in markup.figure_names(text, self.name)))

    @property
    def timelines(self) -> list[markup.Timeline]:
        """The timelines of runs in the text and lab sheet."""
        found = [block for text in (self.text(), self.lab()) for block in markup.movements(text, self.name)]
        return [block for block in found if isinstance(block, markup.Timeline)]

    @cached_property
    def golden(self) -> Golden:
        return golden.read(self.folder / "golden.json")

    @cached_property
    def items(self) -> tuple[quiz.Item, ...]:
        """The questions of the chapter's quiz."""
        return quiz.read(self.folder / "quiz.toml")

    @property
    def quiz(self) -> tuple[quiz.Item, ...]:
        """The questions in the order in which they are asked: first the predictions in the text, then the others."""
        predicted = markup.predictions(self.text()) if self.has_text else []
        order = {name: place for place, name in enumerate(predicted)}
        return tuple(sorted(self.items, key=lambda item: order.get(item.name, len(order))))

    def item(self, name: str) -> quiz.Item:
        """Return the question with this name. Raise ValueError if there is none."""
        for item in self.items:
            if item.name == name:
                return item
        raise ValueError(f"{self.name} has no question {name!r}; it has {', '.join(i.name for i in self.items)}.")

    @property
    def exercise(self) -> str:
        """The source of exercise.py, or "" if there is none."""
        path = self.folder / "exercise.py"
        return path.read_text("utf-8") if path.is_file() else ""

    def recompute(
        self,
        log: Callable[[str], None] = lambda _: None,
        only: Collection[str] | None = None,
        imap: Callable[[Callable, Iterable], Iterable] | None = None,
    ) -> Golden:
        """Compute the results of figures and quiz items again, and return them as a Golden. Call `log` with the name of
        each.

        They run in this process or, for figures, through `imap`, which may call functions in other processes.

        The figures are the ones that the texts use, and others that are already recorded. `only` names the items and
        figures to compute; all others keep their records. A figure is given by its short or full name, and the chapter
        must declare or show it. Raise ValueError if the chapter has nothing of that name.
        """
        wanted = {name if "." in name else f"{self.name}.{name}" for name in only or ()} | {*(only or ())}
        known = {*self.figures, *self.figure_questions, *(item.name for item in self.items)}
        for name in only or ():
            if name not in known and f"{self.name}.{name}" not in known:
                raise ValueError(f"{self.name} has no figure or question {name!r}; use {', '.join(sorted(known))}.")
        beside = [name for name in self.figure_questions if name in wanted or name in self.golden.figures]
        names = [*dict.fromkeys([*self.figures, *beside])]
        chosen = [name for name in names if only is None or name in wanted]
        figures = {name: self.golden.figures[name] for name in names if name in self.golden.figures}
        run_one = partial(rerun, log=None if imap else log)  # a log cannot be called from another process
        for name, recorded in zip(chosen, (imap or map)(run_one, chosen), strict=True):
            log(name)
            figures[name] = recorded
        figures = {name: figures[name] for name in names if name in figures}
        answers, samples = {}, {}
        for item in self.items:
            if only is None or item.name in wanted:
                log(f"{self.name}, {item.name}")
                samples[item.name] = [item.compute_each(self.name, values) for values in item.all_parameters()]
                answers[item.name] = [
                    *zip(item.all_parameters(), map(item.combine_seeds, samples[item.name]), strict=True)
                ]
            elif item.name in self.golden.answers:
                answers[item.name], samples[item.name] = self.golden.answers[item.name], self.golden.samples[item.name]
        return Golden(figures, answers, samples)

    @property
    def missing_results(self) -> list[str]:
        """The figures and quiz items missing from the golden file."""
        items = (item.name for item in self.items if item.name not in self.golden.answers)
        return [*(name for name in self.figures if name not in self.golden.figures), *items]

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text("utf-8") if path.is_file() else ""


def _minutes(text: str) -> int:
    """Return the time that a reader needs for `text` and its predictions, in minutes. The list of sources does not
    count.
    """
    words = len(markup.MARK.sub("", text.partition("\n## Sources")[0]).split())
    asked = len(markup.predictions(text))
    return round(words / WORDS_A_MINUTE) + len(markup.ALONE_IN_TEXT.findall(text)) + (COMPUTE - 1) * asked


def rerun(name: str, log: Callable[[str], None] | None = None) -> golden.RecordedFigure:
    """Run the figure with this full name, and return its results as a record. Call `log` before each run with the
    figure's name and the number of the run.
    """
    return run_figure(name, lessons.find(name), lambda n: log(f"{name}, run {n}") if log else None)


def run_figure(name: str, figure, on_run: Callable[[int], None] = lambda _: None) -> golden.RecordedFigure:
    """Run a figure's experiments in this process with all seeds, and return the results as a record.

    Call `on_run` before each run with its number, counted from 1 over all seeds.
    """
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment

    started: list[Experiment] = []

    def run_and_note(experiment: Experiment):
        started.append(experiment)
        on_run(len(started))
        return run(experiment)

    samples = seeds.each(figure.rows, run_and_note)
    links = [experiment.query() for experiment in started[: len(started) // len(samples)]]
    return golden.record_figure(name, figure, samples, links)

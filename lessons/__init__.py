"""Textbook: one folder per chapter. `lessons.chapters` lists what a folder contains."""

import difflib
import importlib
import pkgutil
from pathlib import Path

CHAPTERS: tuple[str, ...] = (
    "sgd",
    "stragglers",
    "large_batches",
    "collectives",
    "overlap",
    "distributed_update",
    "compression",
    "averaging",
    "staleness",
    "gossip",
    "little_communication",
    "sandblaster",
    "shared_memory",
    "model_parallel",
    "pipelines",
    "pipelined_backprop",
    "pipedream",
    "decoupled",
    "choosing",
    "step_memory",
    "fully_sharded",
    "long_sequences",
    "layouts",
)
"""In teaching order. This tuple is the only place where a chapter is registered."""

PARTS: dict[str, str] = {"sgd": "Training on many machines", "step_memory": "Training a language model"}
"""First chapter of each part of the book -> the part's title."""


def chapter(name: str):
    """Return the Chapter with this name. Raise ValueError if there is none."""
    from lessons.chapters import Chapter

    if name not in CHAPTERS:
        close = difflib.get_close_matches(name, CHAPTERS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(CHAPTERS)}."
        raise ValueError(f"there is no chapter {name[:60]!r}; {hint}")
    return Chapter(Path(__file__).parent / name)


def written_chapters() -> list:
    """Return the chapters that have a text, in teaching order."""
    return [one for one in map(chapter, CHAPTERS) if one.has_text]


def figures(chapter: str) -> dict:
    """Return a chapter's figures by name (name -> lessons.figure.Figure), in the order in which they are defined."""
    from lessons.figure import Figure

    module = importlib.import_module(f"lessons.{chapter}.experiments")
    groups = sorted(one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."))
    modules = [module, *map(importlib.import_module, groups)]
    return {thing.name: thing for one in modules for thing in vars(one).values() if isinstance(thing, Figure)}


def find(name: str):
    """Return the Figure with this name, which is short, such as "warm_up", or full, such as "large_batches.warm_up".
    Raise ValueError if there is none.
    """
    every = {figure: chapter for chapter in CHAPTERS for figure in figures(chapter)}
    short = name.rpartition(".")[2]
    if short not in every or name not in (short, f"{every[short]}.{short}"):
        close = difflib.get_close_matches(short, every, n=1)
        many = f"the book has {len(every)}; `list` lists the chapters, `show CHAPTER` the figures of one."
        hint = f"did you mean {close[0]}?" if close else many
        raise ValueError(f"there is no figure {name[:60]!r}; {hint}")
    return figures(every[short])[short]


def recorded_figure(name: str):
    """Search the golden files of all chapters for the figure with this full name. Return the first
    golden.RecordedFigure found, or None.
    """
    golden = (chapter(one).golden.figures.get(name) for one in CHAPTERS)
    return next((figure for figure in golden if figure), None)


def question(name: str) -> str:
    """Return the question of the figure with this full name, without running anything. Raise ValueError if there is
    none.
    """
    declared = chapter(name.partition(".")[0]).figure_questions
    if name not in declared:
        raise ValueError(f"there is no figure {name[:60]!r}; choose one of {', '.join(declared)}.")
    return declared[name]

"""`grade`: export an exercise to the grading system of a course."""

from pathlib import Path

import click

import lessons
from lessons.cli.console import console, usage_errors


@click.command(help="Write an autograder for Gradescope, or a notebook for nbgrader.")
@click.option("--gradescope", metavar="CHAPTER", help="the zip from which Gradescope builds an autograder")
@click.option("--nbgrader", metavar="CHAPTER", help="a notebook for nbgrader's `source` folder")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="default: CHAPTER.zip or CHAPTER.ipynb")
@click.option(
    "--seed", type=click.IntRange(0), help="seed of the hidden cases, the same for all students; default: random"
)
def grade(gradescope: str | None, nbgrader: str | None, out: Path | None, seed: int | None) -> None:
    from lessons.grading.seeds import grading_seed
    from lessons.grading.sheet import Sheet
    from lessons.instructor import gradescope as zips
    from lessons.instructor import nbgrader as notebooks

    name = gradescope or nbgrader
    seed = grading_seed() if seed is None else seed
    with usage_errors():
        if not name or (gradescope and nbgrader):
            raise ValueError("choose one format, with its chapter: --gradescope CHAPTER, or --nbgrader CHAPTER.")
        chapter = lessons.chapter(name)
        out = out or Path(f"{name}.zip" if gradescope else f"{name}.ipynb")
        (zips.bundle if gradescope else notebooks.notebook)(chapter, out, seed)
    points = sum(Sheet(chapter).points.values())
    console.print(
        f"{out}: upload it as the autograder of a programming assignment worth {points} points, with Ubuntu 22.04 "
        f"or later as the base image; students hand in one Python file. Grading seed: {seed}."
        if gradescope
        else f"{out}: put it into source/ASSIGNMENT/ on a machine with Lockstep installed; {points} points. "
        f"Grading seed: {seed}.",
        highlight=False, markup=False,
    )  # fmt: skip

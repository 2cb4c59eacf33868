"""Syllabi, read from `course.toml`. Titles and reading times are looked up, so they are always current."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import lessons

FILE = Path(__file__).with_name("course.toml")


@cache
def courses() -> dict[str, tuple[dict[str, Any], ...]]:
    """Return {name of a course: its sessions}. A session has `topic`, `read` and `prepare`, at least one of `lab` and
    `also` (other work in class), and optionally `exercise`.
    """
    return {one["name"]: tuple(one["session"]) for one in tomllib.loads(FILE.read_text("utf-8"))["course"]}


def syllabus(name: str) -> str:
    """Return the syllabus of this course as a Markdown table. Raise KeyError if there is none."""
    lines = ["| | topic | read before | minutes | in class | homework | prepare |", "|---|---|---|---|---|---|---|"]
    for number, session in enumerate(courses()[name], 1):
        chapters = [lessons.chapter(one) for one in session["read"]]
        read = "; ".join(one.title() + ("" if one.has_text else " (figures)") for one in chapters) or "–"
        minutes = str(sum(one.minutes for one in chapters) or "–")
        done = ([f"lab *{session['lab']}*, 45 minutes"] if "lab" in session else []) + [session.get("also", "")]
        lab = "; ".join(filter(None, done))
        home = f"exercise *{session['exercise']}*" if "exercise" in session else "–"
        lines.append(f"| {number} | {session['topic']} | {read} | {minutes} | {lab} | {home} | {session['prepare']} |")
    return "\n".join(lines)

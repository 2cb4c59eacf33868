"""Grade a pile of solutions in parallel, each in its own processes, and write one row per solution to a CSV file.

Everybody gets the same hidden cases. Whatever a solution does, even if it crashes its grader, the others are graded. A
row is written when its solution is done; the next time, only new or changed solutions are graded. Files of level 1 are
refused. "level" and "hints" are those that the file states, and "claimed" is the score that, according to the file, the
solution had on the page, on its own hidden cases.
"""

import csv
import hashlib
import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from cluster.real.processes import METHOD
from experiments.runs.summary import cores
from lessons import harmless
from lessons.chapters import Chapter
from lessons.grading.sheet import NOT_REACHED, Sheet
from lessons.instructor.hand_ins import HandIn

LONGEST = 900.0  # s of one solution, whatever its grader does
FIRST = ("student", "file", "level", "hints", "score", "claimed")
LAST = ("lost", "error", "seconds", "hash", "seed")


def heads(points: Sequence[str]) -> list[str]:
    """Return the names of the CSV file's columns, with one column for each of these marks."""
    return [*FIRST, *points, *LAST]


def grade(
    chapter: Chapter, hand_ins: Sequence[HandIn], to: Path, seed: int, log: Callable[[dict], None] = lambda row: None
) -> list[dict[str, Any]]:
    """Grade the hand-ins that are not in `to` yet, add their rows, and return all rows in the order of `hand_ins`.

    A row is kept if student, hash and seed are the same. Raise ValueError if `to` belongs to another exercise.
    """
    points = Sheet(chapter).points
    kept = _kept(to, points, seed)
    rows = {one.student: kept[key] for one in hand_ins if (key := _key(one)) in kept}
    missing = [one for one in hand_ins if one.student not in rows]
    with to.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, heads(list(points)))
        writer.writeheader()
        writer.writerows(rows.values())
        file.flush()
        for one, report in _reports(chapter.name, missing, seed):
            rows[one.student] = row = _row(one, report, points, seed)
            writer.writerow(row)
            file.flush()  # keep finished rows even after a crash
            log(row)
    ordered = [rows[one.student] for one in hand_ins]
    _write(to, ordered, points)
    return ordered


def seed_of(to: Path) -> int | None:
    """Return the seed that the rows of this file were graded with, or None if there are none."""
    if to.is_file():
        with to.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if str(row.get("seed")).isdigit():
                    return int(row["seed"])
    return None


def alike(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return groups of students whose solutions are identical, leaving out solutions that earned nothing."""
    by_text = defaultdict(list)
    for row in rows:
        if int(row["score"]):
            by_text[row["hash"]].append(row["student"])
    return [students for students in by_text.values() if len(students) > 1]


def _key(one: HandIn) -> tuple[str, str]:
    return harmless.cell(one.student), _hash(one)


def _hash(one: HandIn) -> str:
    return hashlib.sha256((one.source or one.trouble).encode("utf-8", "replace")).hexdigest()[:16]


def _kept(to: Path, points: dict[str, int], seed: int) -> dict[tuple[str, str], dict[str, Any]]:
    if not to.is_file() or not to.stat().st_size:
        return {}
    with to.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != heads(list(points)):
            raise ValueError(f"{to.name} belongs to another exercise, or is not a file of scores; choose another name.")
        return {(row["student"], row["hash"]): row for row in reader if row["seed"] == str(seed)}


def _row(one: HandIn, report: dict[str, Any], points: dict[str, int], seed: int) -> dict[str, Any]:
    earned = {mark["name"]: mark["earned"] for mark in report.get("marks", ())}
    return {
        "student": harmless.cell(one.student), "file": harmless.cell(one.file), "level": report.get("level") or "",
        "hints": ", ".join(report.get("hints", ())), "score": report.get("score", 0),
        "claimed": one.claim_in_words,
        **{name: earned.get(name, 0) for name in points}, "lost": harmless.cell(_first_lost(report))[:500],
        "error": harmless.cell(report.get("error", ""))[:500], "seconds": f"{report.get('seconds', 0):.1f}",
        "hash": _hash(one), "seed": seed,
    }  # fmt: skip


def _first_lost(report: dict[str, Any]) -> str:
    """Return the first judged mark that was not earned, with what was observed. It usually explains the later ones."""
    judged = (mark for mark in report.get("marks", ()) if mark["observed"] != NOT_REACHED)
    first = next((mark for mark in judged if not mark["earned"]), None)
    return f"{first['name']}: {first['observed']}" if first else ""


def _write(to: Path, rows: list[dict[str, Any]], points: dict[str, int]) -> None:
    """Write all rows in order, atomically."""
    part = to.with_name(f"{to.name}.part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, heads(list(points)))
        writer.writeheader()
        writer.writerows(rows)
    part.replace(to)


def _reports(chapter: str, hand_ins: Sequence[HandIn], seed: int) -> Iterator[tuple[HandIn, dict[str, Any]]]:
    """Grade the hand-ins in parallel, one process per core, and yield each with its report as soon as it is graded."""
    context = multiprocessing.get_context(METHOD)
    if METHOD == "forkserver":
        context.set_forkserver_preload(["lessons.grading.grader", f"lessons.{chapter}.check"])
    with ThreadPoolExecutor(cores()) as threads:
        asked = {threads.submit(_report, context, chapter, one, seed): one for one in hand_ins}
        for done in as_completed(asked):
            yield asked[done], done.result()


def _report(context, chapter: str, one: HandIn, seed: int) -> dict[str, Any]:
    """Grade one hand-in in a separate process, so that a crash does not affect the others, and return the report."""
    if one.trouble:
        return {"error": one.trouble}
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_grade, args=(theirs, chapter, one.source, one.file, seed))
    process.start()
    theirs.close()
    try:
        if ours.poll(LONGEST):
            return ours.recv()
        return {"error": f"grading took more than {LONGEST:g} s."}
    except EOFError:
        process.join(5)
        return {"error": f"its grader ended with code {process.exitcode}."}
    finally:
        process.kill()
        process.join()
        ours.close()


def _grade(to, chapter: str, source: str, name: str, seed: int) -> None:
    """Grade `source` and send the report to the pipe `to`. An error in the grader itself is reported, and affects only
    this row.
    """
    import lessons
    from lessons.grading import grader

    try:
        to.send(grader.grade(lessons.chapter(chapter), source, seed, Path(name).name[:80], practice=False).plain())
    except Exception as error:
        to.send({"error": f"the grader itself failed: {type(error).__name__}: {str(error)[:300]}"})

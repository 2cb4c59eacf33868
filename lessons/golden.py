"""Golden file: the recorded results of a chapter's figures and quiz items, kept beside its text.

Numbers in the text and the first rendering of every figure come from it, so a page appears at once and nothing has to
run. `python -m lessons golden <chapter>` writes the file; a slow test runs everything again and compares, a quick one
checks that questions, claims and looks are still those of the figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.plots.chart import Look, Rows, guess

CLOSE = 0.05  # of a number, or of the largest in its column: other processors round otherwise, and training amplifies
RUNS = 60  # most links to single runs that a figure keeps


@dataclass(frozen=True)
class RecordedFigure:
    """Recorded result of a figure: its rows, and the runs they came from, as links into the workbench."""

    name: str  # in full: "stragglers.waiting_for_everybody"
    question: str
    source: str
    text: str
    claims: tuple[str, ...]
    look: Look
    rows: Rows
    runs: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return the record as JSON values, floats rounded to six digits."""
        words = {"question": self.question, "source": self.source, "text": self.text, "claims": list(self.claims)}
        rows = [{column: _rounded(value) for column, value in row.items()} for row in self.rows]
        return {**words, "look": self.look.plain(), "runs": list(self.runs), "rows": rows}

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> RecordedFigure:
        """Return the record that `plain` turned into `values`."""
        words = (values["question"], values["source"], values["text"], tuple(values["claims"]))
        return cls(name, *words, Look.of(values["look"]), values["rows"], tuple(values["runs"]))


@dataclass(frozen=True)
class Golden:
    """Recorded results: `figures` by full name, and `answers` by quiz item, (parameters, answer) pairs."""

    figures: Mapping[str, RecordedFigure]
    answers: Mapping[str, Sequence[tuple[dict[str, Any], Any]]]

    def figure(self, name: str) -> RecordedFigure:
        """Return the figure of this full name. ValueError if the file does not have it."""
        if name not in self.figures:
            raise ValueError(f"{name} is not in the golden file; write it with python -m lessons golden.")
        return self.figures[name]

    def answer(self, item: str, parameters: Mapping[str, Any]) -> Any:
        """Return the answer of quiz item `item` for these parameters. ValueError if the file does not have it."""
        for drawn, answer in self.answers.get(item, ()):
            if drawn == dict(parameters):
                return answer
        raise ValueError(f"the golden file has no answer of {item} for {parameters}; run python -m lessons golden.")


EMPTY = Golden({}, {})


def record_figure(name: str, figure, rows: Rows, runs: Sequence[str] = ()) -> RecordedFigure:
    """Return the record of a figure with these rows. They stay as measured; rounding is left to writing the file."""
    rows = [{column: _plain(value) for column, value in row.items()} for row in rows]
    distinct = tuple(dict.fromkeys(runs))[:RUNS]
    look = figure.look or guess(rows)
    return RecordedFigure(name, figure.question, figure.source, figure.text, tuple(figure.claims), look, rows, distinct)


def read(path: Path) -> Golden:
    """Return the golden file at `path`; EMPTY if there is none."""
    if not path.is_file():
        return EMPTY
    values = json.loads(path.read_text("utf-8"))
    figures = {name: RecordedFigure.of(name, one) for name, one in values["figures"].items()}
    return Golden(figures, {item: [(p, a) for p, a in pairs] for item, pairs in values["answers"].items()})


def write(golden: Golden, path: Path) -> None:
    """Write the golden file with one row per line, for readable diffs."""
    figures = {name: one.plain() for name, one in golden.figures.items()}
    answers = {item: [list(pair) for pair in pairs] for item, pairs in golden.answers.items()}
    path.write_text(_dump({"figures": figures, "answers": answers}) + "\n", "utf-8")


def differences(was: Rows, now: Rows) -> list[str]:
    """Return the differences beyond tolerance between recorded and new rows, a sentence each."""
    if [list(row) for row in was] != [list(row) for row in now]:
        return [f"the record has {len(was)} rows, the new run {len(now)}, or the columns differ."]
    found = []
    for column in was[0] if was else ():
        before, after = [row[column] for row in was], [_rounded(row[column]) for row in now]
        numbers = [abs(v) for v in before if isinstance(v, int | float) and math.isfinite(v)]
        span = max(numbers, default=0.0)
        for place, (a, b) in enumerate(zip(before, after, strict=True)):
            if not _alike(a, b, span):
                found.append(f"{column} in row {place} was {a} and is {b}.")
    return found


def _alike(a: Any, b: Any, span: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE * span / 10)
    return a == b


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, anything else unchanged."""
    return value.item() if hasattr(value, "item") else value


def _rounded(value: Any) -> Any:
    """Return a value as the file stores it: floats to six digits."""
    value = _plain(value)
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value


def _dump(value: Any, indent: str = "") -> str:
    deep = indent + " "
    if isinstance(value, dict) and any(isinstance(part, dict | list) for part in value.values()):
        parts = [f"{json.dumps(k, ensure_ascii=False)}: {_dump(part, deep)}" for k, part in value.items()]
        return "{\n" + ",\n".join(deep + part for part in parts) + "\n" + indent + "}"
    if isinstance(value, list) and value:
        parts = [json.dumps(part, ensure_ascii=False) for part in value]
        return "[\n" + ",\n".join(deep + part for part in parts) + "\n" + indent + "]"
    return json.dumps(value, ensure_ascii=False)

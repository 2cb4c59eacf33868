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

from experiments.plots.chart import Look, Rows, Spread, guess
from lessons import seeds

CLOSE = 0.05  # of a number, or of the largest in its column: other processors round otherwise, and training amplifies
RUNS = 60  # most links to single runs that a figure keeps


@dataclass(frozen=True)
class RecordedFigure:
    """Recorded result of a figure: means over seeds, and the runs of the first seed, as links into the workbench."""

    name: str  # in full: "stragglers.waiting_for_everybody"
    question: str
    source: str
    text: str
    claims: Mapping[str, int]  # how many seeds show each
    look: Look
    seeds: tuple[int, ...]  # one where nothing depends on the seed
    rows: Rows  # means
    spread: Spread  # lowest and highest, where seeds differ
    runs: tuple[str, ...]

    def shows(self, claim: str) -> bool:
        """Return whether every seed shows this claim."""
        return self.claims[claim] == len(self.seeds)

    def said_of_seeds(self) -> str:
        """Return in a sentence with which seeds it was run."""
        if len(self.seeds) == 1:
            return "Nothing here depends on a seed."
        if not any(self.spread):
            return f"The same with seeds {' and '.join(map(str, self.seeds))}."
        return f"Means over seeds {self.seeds[0]} to {self.seeds[-1]}, with the lowest and the highest."

    def table(self) -> Rows:
        """Return the rows, and behind each number in which seeds differ the lowest and the highest."""
        ranged = {name for row in self.spread for name in row}
        return [
            {
                title: value
                for name, mean in row.items()
                for title, value in zip(
                    (name, f"{name}, lowest", f"{name}, highest") if name in ranged else (name,),
                    (mean, *limits.get(name, (mean, mean))),
                    strict=False,
                )
            }
            for row, limits in zip(self.rows, self.spread, strict=True)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the record as JSON values, floats rounded to six digits."""
        words = {"question": self.question, "source": self.source, "text": self.text, "claims": dict(self.claims)}
        rows = [{column: _rounded(value) for column, value in row.items()} for row in self.rows]
        spread = [{column: [_rounded(v) for v in limits] for column, limits in row.items()} for row in self.spread]
        lists = {"seeds": list(self.seeds), "runs": list(self.runs), "rows": rows, "spread": spread}
        return {**words, "look": self.look.plain(), **lists}

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> RecordedFigure:
        """Return the record that `plain` turned into `values`."""
        words = (values["question"], values["source"], values["text"], values["claims"])
        spread = [{column: tuple(limits) for column, limits in row.items()} for row in values["spread"]]
        seeds, runs = tuple(values["seeds"]), tuple(values["runs"])
        return cls(name, *words, Look.of(values["look"]), seeds, values["rows"], spread, runs)


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


def record_figure(name: str, figure, samples: Mapping[int, Rows], runs: Sequence[str] = ()) -> RecordedFigure:
    """Return the record of a figure with these rows by seed. They stay as measured; only the file is rounded."""
    plain = [[{name: _plain(value) for name, value in row.items()} for row in rows] for rows in samples.values()]
    claims = {claim: sum(bool(holds(rows)) for rows in plain) for claim, holds in figure.claims.items()}
    words, shown = (figure.question, figure.source, figure.text, claims), seeds.mean(plain)
    distinct = tuple(dict.fromkeys(runs))[:RUNS]
    look = figure.look or guess(shown)
    return RecordedFigure(name, *words, look, tuple(samples), shown, seeds.spread(plain), distinct)


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

"""The golden file: the recorded results of a chapter's figures and quiz items, stored next to its text.

Numbers in the text and the first rendering of every figure come from it, so a page appears at once and nothing has to
run. `lockstep book golden <chapter>` writes the file, with what each seed gave. Quick tests check that every recorded
seed shows the current claims of the figures, and run a few cheap figures again under one of the seeds; slow tests do so
for every figure and item, and compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.runs.summary import blas, vectors
from experiments.viewer.canvases import figure as canvas
from experiments.viewer.look import Look, Rows, Spread, guess
from lessons import seeds

CLOSE = 0.05  # share of a number, or of the largest in its column, by which another run may differ
BEYOND = 2  # times the range over seeds by which it may leave it: other processors round differently, and training
# amplifies that as much as another seed
RUNS = 60  # most links to single runs that a figure keeps


@dataclass(frozen=True)
class RecordedFigure:
    """The recorded result of a figure: means over seeds, and the runs of the first seed as links to the workbench."""

    name: str  # in full: "stragglers.waiting_for_everybody"
    question: str
    source: str
    text: str
    claims: Mapping[str, int]  # how many seeds show each
    look: Look
    seeds: tuple[int, ...]  # one where nothing depends on the seed
    rows: Rows  # means
    samples: Mapping[int, Rows]  # by seed, where seeds differ: a row has the columns that do
    runs: tuple[str, ...]
    kernels: str = ""  # used for the recording; "" if unknown

    @property
    def spread(self) -> Spread:
        """The lowest and highest value in each row, for the columns in which seeds differ."""
        return seeds.spread([self.under(seed) for seed in self.seeds])

    def under(self, seed: int) -> Rows:
        """Return the figure's rows for one of its seeds."""
        own = self.samples.get(seed) or [{}] * len(self.rows)
        return [row | differing for row, differing in zip(self.rows, own, strict=True)]

    def shows(self, claim: str) -> bool:
        """Return whether this claim holds under every seed."""
        return self.claims[claim] == len(self.seeds)

    def frame(self, look: Look | None = None) -> bytes:
        """Return this figure's frame for the browser. It is drawn with `look` or, by default, with the figure's own
        look.
        """
        told = ". ".join((self.question, *self.claims))
        return canvas.frame(self.rows, look or self.look, self.spread, told, self.name)

    def seeds_sentence(self) -> str:
        """Return a sentence that says which seeds the figure was run with."""
        if len(self.seeds) == 1:
            return "Nothing here depends on a seed."
        if not any(self.spread):
            return f"The same with seeds {' and '.join(map(str, self.seeds))}."
        return f"Means over seeds {self.seeds[0]} to {self.seeds[-1]}, with the lowest and the highest."

    def table(self) -> Rows:
        """Return the rows as a table. If seeds differ, each number is followed by its lowest and highest value."""
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
        """Return the record as JSON values, with floats rounded to six significant digits."""
        words = {"question": self.question, "source": self.source, "text": self.text, "claims": dict(self.claims)}
        rows = [{column: _rounded(value) for column, value in row.items()} for row in self.rows]
        samples = {
            str(seed): [{column: _rounded(value) for column, value in row.items()} for row in differing]
            for seed, differing in self.samples.items()
        }
        lists = {"seeds": list(self.seeds), "runs": list(self.runs), "rows": rows, "samples": samples}
        noted = {"kernels": self.kernels} if self.kernels else {}
        return {**words, "look": self.look.plain(), **noted, **lists}

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> RecordedFigure:
        """Return the record of the figure `name` stored in `values`, which `plain` returned."""
        words = (values["question"], values["source"], values["text"], values["claims"])
        samples = {int(seed): rows for seed, rows in values["samples"].items()}
        seeds, runs = tuple(values["seeds"]), tuple(values["runs"])
        kernels = values.get("kernels", "")
        return cls(name, *words, Look.of(values["look"]), seeds, values["rows"], samples, runs, kernels)


@dataclass(frozen=True)
class Golden:
    """The recorded results of a chapter. `figures` maps full names to records, and `answers` maps quiz items to
    (parameters, answer) pairs.

    `samples` has the answers for each of these pairs, one for each seed, in the order of seeds.SEEDS.
    """

    figures: Mapping[str, RecordedFigure]
    answers: Mapping[str, Sequence[tuple[dict[str, Any], Any]]]
    samples: Mapping[str, Sequence[list]] = field(default_factory=dict)

    def figure(self, name: str) -> RecordedFigure:
        """Return the figure with this full name. Raise ValueError if the file lacks it."""
        if name not in self.figures:
            raise ValueError(f"{name} is not in the golden file; write it with lockstep book golden.")
        return self.figures[name]

    def answer(self, item: str, parameters: Mapping[str, Any]) -> Any:
        """Return the answer to the quiz item `item` for these parameters. Raise ValueError if the file lacks it."""
        for drawn, answer in self.answers.get(item, ()):
            if drawn == dict(parameters):
                return answer
        raise ValueError(f"the golden file has no answer to {item} for {parameters}; run lockstep book golden.")


EMPTY = Golden({}, {})


def record_figure(name: str, figure, samples: Mapping[int, Rows], runs: Sequence[str] = ()) -> RecordedFigure:
    """Return the record of a figure. `samples` has its rows for each seed. Rows are rounded only when the file is
    written.
    """
    plain = [plain_rows(rows) for rows in samples.values()]
    claims = {claim: sum(bool(holds(rows)) for rows in plain) for claim, holds in figure.claims.items()}
    words, shown = (figure.question, figure.source, figure.text, claims), seeds.mean(plain)
    distinct = tuple(dict.fromkeys(runs))[:RUNS]
    look = figure.look or guess(shown)
    differing = seeds.spread(plain)
    own = {
        seed: [{column: row[column] for column in columns} for row, columns in zip(rows, differing, strict=True)]
        for seed, rows in zip(samples, plain, strict=True)
        if any(differing)
    }
    return RecordedFigure(name, *words, look, tuple(samples), shown, own, distinct, kernels())


def kernels() -> str:
    """Return the matrix kernels and vector instructions in use, such as "openblas 0.3.31 Haswell, X86_V3".

    Training is reproducible to the last bit only with the same ones.
    """
    return f"{blas().get('blas_numpy', 'another BLAS')}, {vectors().rpartition(' ')[-1] or 'no vectors'}"


def plain_rows(rows: Rows) -> Rows:
    """Return the rows with NumPy scalars replaced by Python numbers."""
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def read(path: Path) -> Golden:
    """Return the Golden in the file `path`, or EMPTY if there is none."""
    if not path.is_file():
        return EMPTY
    values = json.loads(path.read_text("utf-8"))
    figures = {name: RecordedFigure.of(name, one) for name, one in values["figures"].items()}
    answers = {item: [(p, a) for p, a, _ in some] for item, some in values["answers"].items()}
    return Golden(
        figures, answers, {item: [by_seed for *_, by_seed in some] for item, some in values["answers"].items()}
    )


def write(golden: Golden, path: Path) -> None:
    """Write the golden file with one row per line, for readable diffs."""
    figures = {name: one.plain() for name, one in golden.figures.items()}
    answers = {
        item: [[*pair, by_seed] for pair, by_seed in zip(pairs, golden.samples[item], strict=True)]
        for item, pairs in golden.answers.items()
    }
    path.write_text(_dump({"figures": figures, "answers": answers}) + "\n", "utf-8")


def differences(was: Rows, now: Rows, spread: Spread = (), close: float = CLOSE) -> list[str]:
    """Return a sentence for each number that differs between recorded and new rows by more than the tolerance `close`.

    If the `spread` over seeds is given, a number may also lie anywhere that another seed could have put it.
    """
    if [list(row) for row in was] != [list(row) for row in now]:
        return [f"the record has {len(was)} rows and the new run has {len(now)}, or the columns differ."]
    found = []
    for column in was[0] if was else ():
        before, after = [row[column] for row in was], [_rounded(row[column]) for row in now]
        numbers = [abs(v) for v in before if isinstance(v, int | float) and math.isfinite(v)]
        span = max(numbers, default=0.0)
        for place, (a, b) in enumerate(zip(before, after, strict=True)):
            if not _alike(a, b, span, close) and not _likely(b, spread[place].get(column) if spread else None):
                found.append(f"{column} in row {place} was {a} and is {b}.")
    return found


def _alike(a: Any, b: Any, span: float, close: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or math.isclose(a, b, rel_tol=close, abs_tol=close * span / 10)
    return a == b


def _likely(value: Any, limits: tuple | None) -> bool:
    """Return whether a number could come from another seed. It may lie outside the range over seeds by at most BEYOND
    times that range.
    """
    if limits is None or not isinstance(value, int | float):
        return False
    low, high = limits
    return low - BEYOND * (high - low) <= value <= high + BEYOND * (high - low)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number. Anything else is returned unchanged."""
    return value.item() if hasattr(value, "item") else value


def _rounded(value: Any) -> Any:
    """Return a value as the file stores it, where floats have six significant digits."""
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

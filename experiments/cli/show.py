"""What the command line prints: the summary of a run, tables, and numbers with their units."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.cli import sketch
from experiments.cli.console import DIM, say, width, wrap
from experiments.runs import ending, store
from experiments.runs.figures import measured_meaning, measured_text, messages
from experiments.runs.record import Run
from experiments.runs.seeds import SeedFigure
from experiments.viewer import palette, waits
from experiments.wording import naming, units
from experiments.wording.place import place
from experiments.wording.units import (
    DIVERGED,
    count_with_noun,
    flops,
    percent,
    plus_minus,
    samples_per_second,
    seconds,
    size,
)
from tracing import HELD

HEADS = {
    "held_out_loss": "held-out loss",
    "loss": "training loss",
    "r2": "R²",
    "seconds": "time",
    "samples_per_second": "samples/s",
    "staleness_mean": "staleness",
    "step_seconds": "time per step",
    "speed_up": "speed-up",
}
WRITTEN = {
    **dict.fromkeys(("samples", "updates", "steps"), units.count),
    **dict.fromkeys(("seconds", "step_seconds"), seconds),
    **dict.fromkeys(("accuracy", "efficiency"), percent),
    "samples_per_second": samples_per_second,
    "bytes": size,
    "flops": flops,
}
"""The function that formats a column of numbers, if it is not `number`."""
FOUR_DIGITS = partial(units.number, digits=4)
WEIGHTS = "a hash of the final model: equal hashes mean equal bits; compare shows whether runs differ only by rounding"
GATHERS = ("zero3",)  # algorithms that gather a layer's parameters only while computing it
SKETCH = 33  # columns of a sketch of a run
TURNED = 8  # most rows of a table that are turned into columns
LOSS = palette.RUNS[0].colour


def headline(run: Run) -> str:
    """Return text that says what was run and where, wrapped to the width of the terminal."""
    e = run.experiment
    return wrap(f"{naming.title(e)} ({naming.files(e)}): {naming.team(e)}, {place(e, run.gpus)}", "  ")


def summary(run: Run) -> None:
    """Print the figures of a run, one per line, with the course of its loss and the breakdown of its time."""
    for line in _summary(run):
        say(*line)


def text(run: Run) -> str:
    """Return the headline and summary of a run as plain text, with the reason if it did not finish."""
    lines = ["".join(part if isinstance(part, str) else part[0] for part in line) for line in _summary(run)]
    why = ending.explain_error(run)
    ended = [wrap(f"  {run.status}: {why}", "  ")] if run.error else []
    return "\n".join([headline(run), *lines, *ended])


def _summary(run: Run) -> Iterator[list[str | tuple[str, str]]]:
    """Yield the lines of a summary, each a list of parts: texts or (text, style) pairs."""
    s = run.summary
    lines = [
        ("held-out loss", _join(last_loss(run, "held_out_loss"), f"best {number(s['best_held_out_loss'])}")),
        (
            "accuracy",
            s["accuracy"] is not None and _join(percent(s["accuracy"], s.get("accuracy_error")), _accuracy(s)),
        ),
        (
            "R²",
            s.get("r2") is not None
            and _join(number(s["r2"]), "1 is perfect, 0 is as good as always predicting the mean"),
        ),
        ("samples", _join(f"{s['samples']:,}", _work(s))),
        ("traffic", _join(size(s["bytes"]), _traffic(run))),
        ("compression", s.get("compression_ratio") and fewer(s["compression_ratio"])),
        ("memory", s.get("memory") and _join(size(s["memory"]), _memory(run))),
        (
            "staleness",
            s["staleness_mean"] is not None
            and f"{units.updates(s['staleness_mean'])} on average, {s['staleness_max']} at most",
        ),
        *((quantity, _join(_latest(run, quantity), measured_meaning(quantity))) for quantity in run.quantities),
        ("waiting", waits.totals(run)),
        ("weights", s.get("weights") and f"{s['weights']}, {WEIGHTS}"),
        ("digest", f"{s['digest']}, which also covers all losses and their times{_rounded(s)}"),
    ]
    wide = max(15, *(len(name) + 1 for name, _ in lines))
    clock = f"  {seconds(s['seconds'])}, {seconds(s['wall_seconds'])} of wall time"
    indent, columns = " " * (wide + 2), max(8, min(width() - wide - 2 - len(clock), SKETCH))
    first, last = _ends(run)
    yield [(f"  {'training loss':<{wide}}", DIM), f"{first} ", (sketch.losses(run, columns), LOSS), f" {last}"]
    bar, legend = sketch.shares(run, columns)
    yield [(f"  {'time':<{wide}}", DIM), *bar, clock]
    line: list[Any] = [indent]
    used = len(indent)
    for sign, words in legend:
        if used + 1 + len(words) > width():
            yield [*line[:-1], line[-1].rstrip()]
            line, used = [indent], len(indent)
        line += [sign, f"{words}  "]
        used += 3 + len(words)
    if legend:
        yield [*line[:-1], line[-1].rstrip()]
    for name, told in lines:
        if told:
            label = f"  {name:<{wide}}"
            yield [(label, DIM), wrap(f"{label}{told}", indent)[len(label) :]]


def _ends(run: Run) -> tuple[str, str]:
    """Return the training loss at the start (the mean over the first mini-batch of each worker) and at the end."""
    early = run.losses["loss"][: run.experiment.workers]
    return (number(float(early.mean())) if len(early) else "–"), last_loss(run, "loss")


def last_loss(run: Run, name: str) -> str:
    """Return one of a run's final losses as text, or "diverged" if the run diverged."""
    return DIVERGED if run.status == DIVERGED else number(run.summary[name])


def _rounded(s: dict[str, Any]) -> str:
    """Return a phrase with the run's digest up to rounding, or "" if it has none. Losses that are not finite are
    "diverged".
    """
    numbers = s.get("digest_to_rounding", "").split()
    told = " ".join(one if math.isfinite(float(one)) else DIVERGED for one in numbers)
    return told and f"; mean loss of each quarter, then held out: {told}"


def _work(s: dict[str, Any]) -> str:
    """Return how much work a run did: its steps, updates (if they differ), samples/s and FLOPs."""
    rate = s["samples_per_second"]
    told = [
        count_with_noun(s["steps"], "step"),
        f"{number(rate) if rate is None else samples_per_second(rate)} samples/s",
    ]
    if s.get("updates") not in (None, s["steps"]):
        told.insert(1, f"{count_with_noun(s['updates'], 'update')} of the model")
    return ", ".join(told + ([flops(s["flops"])] if s.get("flops") is not None else []))


def link(run: Run, folder: Path) -> str:
    """Return the link to a stored run in this machine's workbench, or "" if the workbench would not find the run."""
    server = f"http://localhost:{os.environ.get('STREAMLIT_SERVER_PORT', '8501')}/"
    if folder.parent == store.home().resolve():
        return f"{server}?run={folder.name}"
    return f"{server}?{run.experiment.query()}" if run.experiment.cluster == "simulated" else ""


def fewer(ratio: float) -> str:
    """Return a compression ratio in words."""
    if ratio >= 1:
        return f"{number(ratio)} times fewer bytes than whole gradients"
    return f"{number(1 / ratio)} times as many bytes as whole gradients"


def table(
    rows: Sequence[dict[str, Any]],
    words: int = 0,
    keys: int = 0,
    wide: int | None = None,
    heads: Mapping[str, str] = HEADS,
    gap: str = "",
) -> str:
    """Return rows as a table, with the first `words` columns left-aligned and the others right-aligned.

    All rows have the same keys. If the table is wider than `wide` (default: the terminal) and the rows fit next to each
    other, rows become columns, with an empty line before the figure called `gap`. Otherwise the columns that do not fit
    continue below, where the first `keys` columns are repeated as far as they take at most half the width.
    """
    if not rows:
        return ""
    wide = width() if wide is None else wide
    names = [name for name in rows[0] if name != "accuracy_error"]  # which is printed after the accuracy
    columns = [[head(name, heads), *column(rows, name)] for name in names]
    cells = [list(line) for line in zip(*columns, strict=True)]
    whole = align_columns(cells, words)
    if max(map(len, whole.splitlines())) <= wide:
        return whole
    turned = align_columns(columns, 1).splitlines()
    if len(rows) <= TURNED and max(map(len, turned)) <= wide:
        if gap in names[1:]:
            turned.insert(names.index(gap), "")
        return "\n".join(turned)
    return below(cells, words, keys, wide)


def below(cells: Sequence[Sequence[str]], words: int, keys: int, wide: int) -> str:
    """Return an aligned table; columns that do not fit into `wide` continue below, after the first `keys` columns."""
    return "\n\n".join(
        align_columns([[line[n] for n in some] for line in cells], sum(n < words for n in some))
        for some in _folds(cells, keys, wide)
    )


def _folds(cells: Sequence[Sequence[str]], keys: int, wide: int) -> Iterator[list[int]]:
    """Yield the columns of each block that a wide table is split into; the first `keys` are repeated if they fit."""
    widths = [2 + max(map(len, column)) for column in zip(*cells, strict=True)]
    repeated = [n for n in range(keys) if sum(widths[: n + 1]) <= wide / 2]
    fold: list[int] = []
    for column in range(len(widths)):
        if len(fold) > len(repeated) and sum(widths[n] for n in fold) + widths[column] > wide + 2:
            yield fold
            fold = list(repeated)
        fold.append(column)
    yield fold


def align_columns(cells: Sequence[Sequence[str]], words: int = 0) -> str:
    """Return lines of cells as text with aligned columns: the first `words` left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [str.ljust] * words + [str.rjust] * (len(widths) - words)
    lines = ("  ".join(side(text, n) for side, text, n in zip(sides, line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None, error: float | None = None, decimals: int | None = None) -> str:
    """Return a number with four significant digits, or more if its integer part has more.

    With `decimals`, value and error have that many. None is an en dash, infinity and NaN are "diverged".
    """
    if value is None:
        return "–"
    return plus_minus(value, error, FOUR_DIGITS, decimals) if math.isfinite(value) else DIVERGED


def microseconds(seconds: float | None) -> str:
    """Return a time for a column in µs: three significant digits below 1 ms, no decimals above."""
    return "" if seconds is None else f"{1e6 * seconds:.3g}" if seconds < 1e-3 else f"{1e6 * seconds:,.0f}"


def head(name: str, heads: Mapping[str, str] = HEADS) -> str:
    return heads.get(name, name.replace("_", " "))


def column(rows: Sequence[dict[str, Any]], name: str) -> list[str]:
    """Return the values of a column as text; those with errors have the same number of decimals."""
    write: Callable[..., str] = WRITTEN.get(name, number)
    if write in (number, percent):  # other units differ from row to row
        scale = 100 if write is percent else 1
        decimals = units.common_decimals(scale * (_error(row, name) or 0) for row in rows)
        write = partial(write, decimals=decimals)
    return [cell(row, name, write) for row in rows]


def _error(row: dict[str, Any], name: str) -> float | None:
    if isinstance(row[name], SeedFigure):
        return row[name].std
    return row.get("accuracy_error") if name == "accuracy" else None


def cell(row: dict[str, Any], name: str, write: Callable[..., str]) -> str:
    """Return a value of a row as text with its unit. For a figure over several seeds, add the number of runs that have
    it if some do not.
    """
    value = row[name]
    if name == "seeds":
        return str(len(value))
    if isinstance(value, SeedFigure):
        few = f" ({value.n})" if value.n < len(row["seeds"]) else ""
        return "–" if value.mean is None else f"{write(value.mean, value.std)}{few}"
    if value is None:
        return "–"
    if name == "accuracy":
        return write(value, row.get("accuracy_error"))
    return write(value) if isinstance(value, float) or (name in WRITTEN and isinstance(value, int)) else str(value)


def _accuracy(s: dict[str, Any]) -> str:
    """Return the best accuracy as text, and the number of samples behind the last accuracy's standard error."""
    error = f"; ± standard error, {s['held_out_samples']:,} samples" if s.get("accuracy_error") else ""
    return f"best {percent(s['best_accuracy'])}{error}"


def _traffic(run: Run) -> str:
    """Return text with the number of messages in a run, and the bytes sent per step and worker."""
    s, taken, sent = run.summary, _steps_taken(run), messages(run)
    told = [f"in {count_with_noun(sent, 'message')}"] if sent else []
    return ", ".join([*told, f"{size(s['bytes'] / taken)} per step and worker"] if taken and s["bytes"] else told)


def _steps_taken(run: Run) -> int:
    """Return the number of steps summed over workers. A step that all workers share counts once for each worker."""
    if run.experiment.method.shares_samples:
        return run.summary["steps"] * run.experiment.workers
    return len({*zip(run.losses["rank"].tolist(), run.losses["step"].tolist(), strict=True)})


def _latest(run: Run, quantity: str) -> str:
    return measured_text(quantity, float(run.course(quantity)[1][-1]))


def _memory(run: Run) -> str:
    """Return text with the memory of the fullest rank, by kind."""
    held = run.peak_memory()
    fullest = held[held.sum(axis=1).argmax()]
    kinds = [f"{kind} {size(nbytes)}" for kind, nbytes in zip(HELD, fullest.tolist(), strict=True) if nbytes]
    told = f"on the fullest rank: {', '.join(kinds)}"
    if run.experiment.algorithm in GATHERS and (gathered := _gathered(run)) > 0:
        told += f"; {size(gathered)} of the parameters are one gathered layer"
    return told


def _gathered(run: Run) -> float:
    """Return the size, in bytes, of the parameters that the fullest rank holds beyond its own share while it computes a
    layer.
    """
    own = 0 if run.parameters is None else run.parameters.nbytes / run.experiment.workers
    return own and max(run.peaks()[:, HELD.index("parameters")]) - own


def _join(figure: str, remark: str) -> str:
    return f"{figure:<14} {remark}".rstrip()

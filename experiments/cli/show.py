"""What the command line prints: the summary of a run, tables, and numbers with their units."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.runs.figures import plus_minus
from experiments.runs.record import Run
from experiments.runs.seeds import SeedFigure, differ_in_seed
from tracing import HELD, KINDS


def headline(run: Run) -> str:
    """Return what was run, in one line."""
    e = run.experiment
    ranks = f"{e.workers} worker{'s' * (e.workers != 1)}"
    if e.servers:
        ranks += f" and {e.servers} server{'s' * (e.servers != 1)}"
    where = (
        f"{e.network}, simulated"
        if e.cluster == "simulated"
        else {"processes": "real processes", "threads": "real threads"}.get(e.cluster, "GPUs")
    )
    compressed = "" if e.compression == "none" else f" with {e.compression}"
    return f"{e.algorithm}{compressed} on {e.workload}: {ranks}, {where}"


def summary(run: Run) -> str:
    """Return the figures of a run, a line each."""
    s = run.summary
    lines = [
        ("training loss", _join(number(s["loss"]), "mean of the last 20 mini-batches")),
        ("held-out loss", _join(number(s["held_out_loss"]), f"best {number(s['best_held_out_loss'])}")),
        (
            "accuracy",
            s["accuracy"] is not None and _join(percent(s["accuracy"], s.get("accuracy_error")), _accuracy(s)),
        ),
        ("time", _join(f"{number(s['seconds'])} s", f"{s['wall_seconds']:.2f} s to make")),
        ("samples", _join(f"{s['samples']:,}", f"{s['steps']} steps, {number(s['samples_per_second'])} samples/s")),
        ("traffic", _join(size(s["bytes"]), _traffic(run))),
        ("compression", s.get("compression_ratio") and fewer(s["compression_ratio"])),
        ("memory", s.get("memory") and _join(size(s["memory"]), _memory(run))),
        ("workers' time", ", ".join(f"{kind} {percent(s[f'share_{kind}'])}" for kind in KINDS)),
        (
            "staleness",
            s["staleness_mean"] is not None
            and f"{number(s['staleness_mean'])} in the mean, {s['staleness_max']} at most",
        ),
        *((quantity, number(float(run.course(quantity)[1][-1]))) for quantity in run.quantities),
        ("digest", s["digest"]),
        ("to rounding", _join(s.get("digest_to_rounding", ""), "losses by quarters of the run, and held-out")),
    ]
    width = max(15, *(len(name) + 1 for name, _ in lines))
    return "\n".join(f"  {name:<{width}}{text}" for name, text in lines if text)


def fewer(ratio: float) -> str:
    """Return a compression ratio in words."""
    if ratio >= 1:
        return f"{number(ratio)} times fewer bytes than whole gradients"
    return f"{number(1 / ratio)} times more bytes than whole gradients"


def comparison(runs: Sequence[Run], names: Sequence[str], seeds: bool, as_json: bool) -> str:
    """Return runs side by side, as a table that fits the terminal or as JSON: a row each, or one for all `seeds`."""
    from experiments.runs.compare import compare, over_seeds

    rows = over_seeds(runs) if seeds else [{"run": name, **row} for name, row in zip(names, compare(runs), strict=True)]
    together = differ_in_seed([run.experiment for run in runs])
    if as_json:
        if seeds:
            rows = [{"runs": [names[n] for n in some], **row} for some, row in zip(together, rows, strict=True)]
        plain = [{k: v._asdict() if isinstance(v, SeedFigure) else v for k, v in row.items()} for row in rows]
        return json.dumps(plain, indent=1)
    if not rows:
        return ""
    wide = shutil.get_terminal_size((10_000, 0)).columns  # a file has no edge
    told = [table(rows, keys=list(rows[0]).index("status"), wide=wide)]
    if seeds:
        some = any(isinstance(v, SeedFigure) and 0 < v.n < len(row["seeds"]) for row in rows for v in row.values())
        fewer_runs = "; (n): of the n runs that have the figure" if some else ""
        told.append(f"mean ± standard deviation over seeds, with n - 1 in its denominator{fewer_runs}")
    elif any(row["accuracy_error"] for row in rows):
        told.append("accuracy ± its standard error, from the number of held-out samples")
    if not seeds and len(together) < len(runs):
        told.append("some of these runs differ only in their seed; compare --seeds gives mean and spread over them")
    return "\n".join(told)


def table(rows: Sequence[dict[str, Any]], words: int = 0, keys: int = 0, wide: int = 10_000) -> str:
    """Return rows with the same names as aligned columns: the first `words` to the left, the others to the right.

    Where the columns are wider than `wide` characters, those that do not fit follow below, behind as many of the first
    `keys` as take no more than half of it.
    """
    if not rows:
        return ""
    names = [name for name in rows[0] if name != "accuracy_error"]  # which stands behind the accuracy
    cells = [[name.replace("_", " ") for name in names], *([_cell(row, name) for name in names] for row in rows)]
    return "\n\n".join(
        aligned([[line[n] for n in some] for line in cells], words) for some in _folds(cells, keys, wide)
    )


def _folds(cells: Sequence[Sequence[str]], keys: int, wide: int) -> Iterator[list[int]]:
    """Yield the columns that stand beside each other, those that are repeated first."""
    widths = [2 + max(map(len, column)) for column in zip(*cells, strict=True)]
    repeated = [n for n in range(keys) if sum(widths[: n + 1]) <= wide / 2]
    fold = []
    for column in range(len(widths)):
        if len(fold) > len(repeated) and sum(widths[n] for n in fold) + widths[column] > wide + 2:
            yield fold
            fold = list(repeated)
        fold.append(column)
    yield fold


def aligned(cells: Sequence[Sequence[str]], words: int = 0) -> str:
    """Return lines of texts as columns, the first `words` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [str.ljust] * words + [str.rjust] * (len(widths) - words)
    lines = ("  ".join(side(*cell) for side, *cell in zip(sides, line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None) -> str:
    """Return four digits, or all before the point; an en dash for what does not exist."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def percent(value: float | None, error: float | None = None) -> str:
    """Return a share of one as per cent, with its standard error if that is given."""
    return "–" if value is None else f"{plus_minus(100 * value, 100 * (error or 0), '{:.1f}'.format)} %"


def size(nbytes: int) -> str:
    """Return bytes with a prefix."""
    scale, unit = size_unit(nbytes)
    return f"{nbytes:.0f}{unit}" if scale == 1 else f"{nbytes * scale:.3g}{unit}"


def size_unit(nbytes: float) -> tuple[float, str]:
    """Return the unit that suits so many bytes, in one over bytes, and its name."""
    units = ((1, " bytes"), (1e-3, " kB"), (1e-6, " MB"), (1e-9, " GB"))
    return next((unit for unit in units if nbytes * unit[0] < 1000), units[-1])


def duration(seconds: float) -> str:
    """Return a time with a prefix."""
    unit, name = scale(seconds)
    return f"{number(seconds / unit)} {name}"


def scale(seconds: float) -> tuple[float, str]:
    """Return the unit that suits this time, in seconds, and its name."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    return next((unit for unit in units if seconds >= unit[0]), (1.0, "s"))


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, SeedFigure):
        return _seed_figure(name, value, len(row["seeds"]))
    if name == "seeds":
        return str(len(value))
    if name == "bytes" and isinstance(value, int):
        return size(value)
    if name == "accuracy":
        return percent(value, row.get("accuracy_error"))
    return number(value) if value is None or isinstance(value, float) else str(value)


def _seed_figure(name: str, s: SeedFigure, runs: int) -> str:
    """Return a figure over several seeds: its mean and standard deviation, and of how many runs if not of all."""
    if s.mean is None:
        return "–"
    scale, unit = (100, " %") if name == "accuracy" else size_unit(s.mean) if name == "bytes" else (1, "")
    alone = {"accuracy": "{:.1f}".format, "bytes": "{:.3g}".format}.get(name, number)
    told = plus_minus(s.mean * scale, (s.std or 0) * scale, alone)
    return f"{told}{unit}" + (f" ({s.n})" if s.n < runs else "")


def _accuracy(s: dict[str, Any]) -> str:
    """Return the best accuracy, and what the error of the last one is."""
    error = f"; ±: standard error of {s['held_out_samples']:,} held-out samples" if s.get("accuracy_error") else ""
    return f"best {percent(s['best_accuracy'])}{error}"


def _traffic(run: Run) -> str:
    s, each = run.summary, run.summary["steps"] * run.experiment.workers
    share = f", {size(s['bytes'] / each)} per step and worker" if each and s["bytes"] else ""
    return f"in {s['messages']:,} messages{share}"


def _memory(run: Run) -> str:
    """Return what the fullest rank holds."""
    held = run.held()
    fullest = held[held.sum(axis=1).argmax()]
    kinds = [f"{kind} {size(nbytes)}" for kind, nbytes in zip(HELD, fullest.tolist(), strict=True) if nbytes]
    return f"at most on a rank: {', '.join(kinds)}"


def _join(figure: str, remark: str) -> str:
    return f"{figure:<14} {remark}"

"""What the command line prints: the summary of a run, tables, and numbers with their units."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from experiments.runs.record import Run
from tracing import HELD, KINDS

GAP = 2  # blanks between columns
HEADS = {"held_out_loss": "held-out", "samples_per_second": "samples/s", "staleness_mean": "staleness"}
COUNTS = ("samples", "updates")  # written in groups of three digits


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
            s["accuracy"] is not None and _join(percent(s["accuracy"]), f"best {percent(s['best_accuracy'])}"),
        ),
        ("time", _join(f"{number(s['seconds'])} s", f"{s['wall_seconds']:.2f} s to make")),
        ("samples", _join(f"{s['samples']:,}", f"{s['steps']} steps, {number(s['samples_per_second'])} samples/s")),
        ("updates", s.get("updates") is not None and f"{s['updates']:,}"),
        ("computed", s.get("flops") is not None and flops(s["flops"])),
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
    ]
    width = max(15, *(len(name) + 1 for name, _ in lines))
    return "\n".join(f"  {name:<{width}}{text}" for name, text in lines if text)


def fewer(ratio: float) -> str:
    """Return a compression ratio in words."""
    if ratio >= 1:
        return f"{number(ratio)} times fewer bytes than whole gradients"
    return f"{number(1 / ratio)} times more bytes than whole gradients"


def table(rows: Sequence[dict[str, Any]], words: int = 0) -> str:
    """Return rows with the same names as aligned columns: the first `words` to the left, the others to the right."""
    return aligned(_cells(rows), words) if rows else ""


def fitted(rows: Sequence[dict[str, Any]], width: int | None = None) -> str:
    """Return rows as `table` does; where `width` is too narrow, blocks of columns one below the other, rows numbered.

    By default `width` is that of the terminal, or of $COLUMNS.
    """
    width = width or shutil.get_terminal_size().columns
    columns = list(zip(*_cells(rows), strict=True))
    if _width(columns) <= width:
        return table(rows)
    numbers = ("", *map(str, range(1, len(rows) + 1)))
    blocks = [[numbers]]
    for column in columns:
        if len(blocks[-1]) > 1 and _width([*blocks[-1], column]) > width:
            blocks.append([numbers])
        blocks[-1].append(column)
    return "\n\n".join(aligned(list(zip(*block, strict=True))) for block in blocks)


def aligned(cells: Sequence[Sequence[str]], words: int = 0) -> str:
    """Return lines of texts as columns, the first `words` of them to the left, the others to the right."""
    widths = [_longest(column) for column in zip(*cells, strict=True)]
    sides = [str.ljust] * words + [str.rjust] * (len(widths) - words)
    lines = ((" " * GAP).join(side(*cell) for side, *cell in zip(sides, line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None) -> str:
    """Return four digits, or all before the point; an en dash for what does not exist."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def percent(value: float | None) -> str:
    """Return a share of one as per cent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def size(nbytes: int) -> str:
    """Return bytes with a prefix."""
    return _prefixed(nbytes, ("bytes", "kB", "MB", "GB"))


def flops(count: float) -> str:
    """Return floating-point operations with a prefix."""
    return _prefixed(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def duration(seconds: float) -> str:
    """Return a time with a prefix."""
    unit, name = scale(seconds)
    return f"{number(seconds / unit)} {name}"


def scale(seconds: float) -> tuple[float, str]:
    """Return the unit that suits this time, in seconds, and its name."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    return next((unit for unit in units if seconds >= unit[0]), (1.0, "s"))


def _cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    heads = [HEADS.get(name, name.replace("_", " ")) for name in rows[0]] if rows else []
    return [heads, *([_cell(n, v) for n, v in row.items()] for row in rows)]


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(map(_longest, columns)) + GAP * (len(columns) - 1)


def _longest(column: Sequence[str]) -> int:
    return max(map(len, column))


def _cell(name: str, value: Any) -> str:
    if name == "bytes" and isinstance(value, int):
        return size(value)
    if name == "flops" and isinstance(value, int):
        return flops(value)
    if name in COUNTS and isinstance(value, int):
        return f"{value:,}"
    if name == "accuracy":
        return percent(value)
    return number(value) if value is None or isinstance(value, float) else str(value)


def _prefixed(value: float, units: Sequence[str]) -> str:
    for unit in units:
        if value < 1000 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit == units[0] else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


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
    return f"{figure:<12} {remark}"

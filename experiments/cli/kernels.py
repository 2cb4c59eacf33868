"""`kernels`: a table of kernel times on this machine, compared with NumPy and torch."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click

from experiments.cli import console, show
from experiments.measure import kernel_times
from experiments.measure.kernel_times import SIZE, TIMES, Peaks, Report, Row, roof_share
from experiments.wording import units


@click.command("kernels", short_help="Time kernels on this machine, compared with NumPy and torch.")
@click.argument("wanted", nargs=-1, metavar="[NAME]...")
@click.option(
    "--size", "n", default=SIZE, type=click.IntRange(1, 100_000_000), help=f"numbers per call [default {SIZE}]"
)
@click.option("--json", "as_json", is_flag=True, help="print what was measured as JSON, in SI units")
def kernels_command(wanted: Sequence[str], n: int, as_json: bool) -> None:
    """Time the named kernels, or all, on this machine, compared with NumPy and torch."""
    from rich.console import Console
    from rich.progress import track

    each: Iterable[str] = kernel_times.check_kernels(wanted) or kernel_times.names()
    if sys.stderr.isatty():
        each = track(each, "measuring", console=Console(stderr=True), transient=True)
    report = kernel_times.measure(each, n)
    if as_json:
        click.echo(json.dumps(asdict(report), indent=1))
        return
    for line in machine_and_roof(report):
        console.say(console.wrap(line, "  "))
    console.say()
    console.say(show.table(table(report), 1, keys=1))


def machine_and_roof(report: Report) -> list[str]:
    lines = [f"{report.machine}, {units.moment(report.moment)}"]
    for where, peaks in (("CPU, one thread", report.cpu), ("GPU", report.gpu)):
        if peaks:
            sizes = {peaks.streams[0][0], *(row.working_set for row in report.rows), peaks.streams[-1][0]}
            largest = {units.rate(peaks.bandwidth(size)): units.size(size) for size in sorted(sizes)}
            moved = ", ".join(f"{rate} in {size}" for rate, size in largest.items())
            lines.append(f"{where}: {units.flops(peaks.flops)}/s (matrix product); streaming {moved}")
    return lines


def table(report: Report) -> list[dict[str, Any]]:
    """Return rows to print: times in us, ratios to NumPy and torch, and the share of the roof that Numba reaches."""
    rows = []
    for row in report.rows:
        shown = {"kernel": row.kernel, "FLOPs": f"{row.flops:,.0f}", "bytes": f"{row.bytes:,.0f}"}
        shown |= {
            f"{name} us": show.microseconds(getattr(row, name)) for name in TIMES if name[-3:] != "gpu" or report.gpu
        }
        shown["x NumPy"], shown["x torch"] = _ratio(row.numpy, row.cpu), _ratio(row.torch, row.cpu)
        shown["GFLOP/s"] = f"{row.flops / row.cpu / 1e9:.3g}" if row.flops else ""
        shown["GB/s"] = f"{row.bytes / row.cpu / 1e9:.3g}"
        shown["lies in"] = _place(row, report.cpu)
        shown["of roof"] = f"{100 * roof_share(row, report.cpu):.0f} %"
        rows.append(shown)
    return rows


def _place(row: Row, peaks: Peaks) -> str:
    level, size = peaks.level(row.working_set), units.size(row.working_set)
    return f"{level.removesuffix(' cache')} {size}".lstrip()


def _ratio(other: float | None, own: float) -> str:
    return "" if other is None else f"{other / own:.3g}"

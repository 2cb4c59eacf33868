"""`fit`: measure this machine, and fit the constants of the simulated cluster to it."""

import json
import math
from collections.abc import Sequence
from statistics import median

import click

from experiments.cli import console, fit_gpu, show
from experiments.cli.options import FiniteRange
from experiments.measure.gpu_file import PEAKS
from experiments.specification.this_machine import Fit
from experiments.wording import units

GOOD = (("good", 1.15), ("fair", 1.5))  # the median factor by which times may be off
NEAR = 1.25  # a factor


@click.command("fit", short_help="Measure this machine, for --device here --network here.")
@click.option("--json", "as_json", is_flag=True, help="print what was measured and fitted as JSON, in SI units")
@click.option("--anyway", is_flag=True, help="allow the fit to be used even if the machine was busy")
@click.option("--gpu", is_flag=True, help="measure this machine's GPU instead, for lockstep plan --constants")
@click.option("--to", metavar="FILE", help="with --gpu: where to write the constants [default GPU.toml]")
@click.option(
    "--peak",
    type=FiniteRange(*PEAKS["half"][:2]),
    metavar="FLOP/s",
    help="with --gpu: the GPU's peak for 16-bit matrix products",
)
@click.option(
    "--bandwidth",
    type=FiniteRange(*PEAKS["bandwidth"][:2]),
    metavar="BYTES/s",
    help="with --gpu: the GPU's memory bandwidth",
)
def fit_command(
    as_json: bool, anyway: bool, gpu: bool, to: str | None, peak: float | None, bandwidth: float | None
) -> int:
    """Measure this machine and fit the simulated cluster to it, for use with --device here --network here.

    With --gpu, measure matrix products, memory-bound operations and attention on the GPU, and write the
    planner's constants to a file, for lockstep plan --constants. Under torchrun, also measure an all-gather.
    """
    if gpu:
        if anyway:
            raise click.UsageError("--anyway is for the fit of a CPU; remove it, or remove --gpu.")
        return fit_gpu.measure_here(peak, bandwidth, to, as_json)
    if (to, peak, bandwidth) != (None, None, None):
        raise click.UsageError("--to, --peak and --bandwidth are for the fit of a GPU; add --gpu, or remove them.")
    from cluster.comm import ClusterError
    from cluster.network import parse_network
    from experiments.measure.fit import fit
    from experiments.specification import catalogue, this_machine

    try:
        made = fit(anyway=anyway)
    except ClusterError as error:
        raise click.ClickException(f"this machine could not be measured: {error}") from None
    if as_json:
        click.echo(json.dumps(made.model_dump(), indent=1))
        return 1 if made.doubt else 0
    device, network = catalogue.device(made.device), parse_network(made.network)
    link, total = network.between, network.sum
    if made.doubt:
        console.say((console.wrap(f"This fit cannot be used: {made.doubt}"), console.HEAD))
        console.say()
    console.say((f"{made.machine}, {units.moment(made.moment)}", console.HEAD))
    measured = [
        f"device   {units.flops(device.flops)}/s, {units.rate(device.bandwidth)}, "
        f"{units.seconds(device.overhead)} a call",
        f"network  {units.seconds(link.latency)}, {units.rate(link.bandwidth)}",
    ]
    if total:
        measured.append(
            f"         {units.seconds(link.per_byte * 1e9)} of CPU time per GB at each end; "
            f"a sum over two ranks {units.seconds(total.latency)}, {units.rate(total.bandwidth)}"
        )
    measured += _scripts(made)
    for line in measured:
        console.say(console.wrap(line, " " * 9))
    console.say()
    rows = [*made.kernels, *((what, 0.0, nbytes, took, fitted) for what, nbytes, took, fitted in made.messages)]
    rows += [(name, 0.0, 0.0, took, fitted) for name, took, fitted in made.programs]
    console.say(show.table([*map(_row, rows)], 1, keys=1))
    console.say()
    console.say((console.wrap(verdict(rows), "  "), console.HEAD))
    console.note(
        f"rounds of large kernels differed by {100 * made.spread:.0f} %, "
        f"and for {100 * made.starved:.0f} % of the time a process waited for a core"
    )
    console.say(("stored   ", console.DIM), str(this_machine.place().resolve()))
    if made.doubt:
        return 1
    console.say(("use it   ", console.DIM), "--device here --network here")
    console.say(("the same ", console.DIM), f"--device {made.device}")
    console.say(f"         --network {made.network}")
    return 0


def verdict(rows: Sequence[tuple[str, float, float, float, float]]) -> str:
    """Return a sentence on how well a fit matches `rows`, each (name, FLOPs, bytes, s measured, s fitted)."""
    off = [math.exp(abs(math.log(fitted / took))) for *_, took, fitted in rows]  # factors, 1 or more
    typical, near = median(off), sum(factor <= NEAR for factor in off)
    word = next((word for word, most in GOOD if typical <= most), "poor")
    name, _, nbytes, took, fitted = rows[off.index(max(off))]
    way, size = "long" if fitted > took else "short", f" of {nbytes:,.0f} bytes" * bool(nbytes)
    return (
        f"A {word} fit: half of the fitted times are within {100 * (typical - 1):.0f} % of those measured, {near} of "
        f"{len(off)} within a quarter. The worst, {name}{size}, is {max(off):.2g} times too {way}"
        + ("; fit again on a quiet machine before you rely on it." if word == "poor" else ".")
    )


def _scripts(made: Fit) -> list[str]:
    """Return lines with the fitted constants for scripts of torch.distributed, or none if the fit does not cover
    scripts.
    """
    from cluster.network import parse_network
    from cluster.script_device import parse_script_device

    if not made.script_device:
        return []
    device, link = parse_script_device(made.script_device), parse_network(made.script_network).sum
    assert link
    return [
        f"scripts  {units.flops(device.flops)}/s, {units.rate(device.bandwidth)}, {units.seconds(device.view)} a view, "
        f"{units.seconds(device.call)} a Python call",
        f"         a gloo collective {units.seconds(link.latency)}, {units.rate(link.bandwidth)}",
    ]


def _row(measured: tuple[str, float, float, float, float]) -> dict[str, str]:
    what, flops, nbytes, took, predicted = measured
    return {
        "what": what,
        "FLOPs": f"{flops:,.0f}" if flops else "",
        "bytes": f"{nbytes:,.0f}" if nbytes else "",
        "measured us": show.microseconds(took),
        "fitted us": show.microseconds(predicted),
        "ratio": f"{predicted / took:.2f}",
    }

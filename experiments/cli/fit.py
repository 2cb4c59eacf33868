"""`fit`: this machine measured, and the constants of the simulated cluster that fit it."""

from __future__ import annotations

import json

import click

from experiments.cli import show


@click.command("fit")
@click.option("--json", "as_json", is_flag=True, help="print what was measured and fitted as JSON, in SI units")
@click.option("--anyway", is_flag=True, help="let the fit be used even if the machine was busy")
def fit_command(as_json: bool, anyway: bool) -> None:
    """Measure kernels and messages here, and fit the simulated cluster to them: --device here --network here."""
    from cluster.comm import ClusterError
    from experiments import catalogue
    from experiments.measure import this_machine
    from experiments.measure.fit import fit

    try:
        made = fit(anyway=anyway)
    except ClusterError as error:
        raise click.ClickException(f"this machine could not be measured: {error}") from None
    if as_json:
        click.echo(json.dumps(made.model_dump(), indent=1))
        return
    device, network = catalogue.device(made.device), catalogue.network(made.network)
    link, total = network.between, network.sum
    click.echo(f"{made.machine}, {made.moment}")
    click.echo(
        f"device   {device.flops / 1e9:.3g} GFLOP/s, {device.bandwidth / 1e9:.3g} GB/s, "
        f"{device.overhead * 1e6:.3g} us a call          --device {made.device}"
    )
    click.echo(
        f"network  {link.latency * 1e6:.3g} us, {link.bandwidth / 1e9:.3g} GB/s          --network {made.network}"
    )
    if total:
        click.echo(
            f"         {link.per_byte * 1e9:.3g} s of either end's processor per GB; "
            f"a sum of two {total.latency * 1e6:.3g} us, {total.bandwidth / 1e9:.3g} GB/s"
        )
    click.echo()
    click.echo(show.table([*map(_row, made.kernels), *(_row((w, 0.0, n, t, p)) for w, n, t, p in made.messages)], 1))
    click.echo(
        f"\nrounds of large kernels differed by {made.spread:.0%}, "
        f"and for {made.starved:.0%} of the time a core was wanted and not to be had"
    )
    if made.doubt:
        click.echo(f"It cannot be used: {made.doubt}")
    click.echo(f"stored in {this_machine.place()}; --device here --network here use it.")


def _row(measured: tuple[str, float, float, float, float]) -> dict[str, str]:
    what, flops, nbytes, took, predicted = measured
    return {
        "what": what,
        "FLOPs": f"{flops:,.0f}" if flops else "",
        "bytes": f"{nbytes:,.0f}",
        "measured us": f"{1e6 * took:,.3g}" if took < 1e-3 else f"{1e6 * took:,.0f}",
        "fitted us": f"{1e6 * predicted:,.3g}" if predicted < 1e-3 else f"{1e6 * predicted:,.0f}",
        "ratio": f"{predicted / took:.2f}",
    }

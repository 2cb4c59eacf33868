"""Fit to this machine: what a kernel call and a message take here, as the few constants of the simulated cluster.

Two real processes measure at the same time, as they share cores and memory in a run:

    kernels     seconds = overhead + max(FLOPs / flops, bytes / bandwidth)       on arrays in and far beyond the cache
    messages    seconds = overhead + latency + bytes / bandwidth                 to and fro between the two
    all-reduce  the same link both ways at once, ring of two                     of vectors of 1 MB and more

Constants are those with the least sum of squared logarithms of ratios, measured over predicted: a kernel that is twice
too slow counts as one that is twice too fast. One bandwidth cannot tell a cache from memory, so what fits a cache is
predicted too slow; large messages and large layers, for which this is made, are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click
import numpy as np

import kernels
from cluster.devices import Device, parse_device
from cluster.network import Link, parse_network
from experiments import here
from experiments.errand import Errand
from experiments.here import Fit

KERNELS = ("dense_forward", "dense_backward_input", "dense_backward_weights", "sgd", "momentum", "add", "scale")
SIZES = (1_000, 1_000_000, 4_000_000)  # numbers in a call: overhead, a large layer, one far beyond the cache
MESSAGES = (8, 4_096, 65_536, 1 << 20, 1 << 22, 1 << 24)  # bytes
SUMS = (1 << 20, 1 << 22, 1 << 24)  # bytes of an all-reduce
ROUNDS = 7  # of which the median counts: the quickest would be one in which the other process stood still
ROUND = 0.03  # s of calls or exchanges that are timed together

Row = tuple[str, float, float, float]


def fit(progress: Callable[[float], None] = lambda part: None) -> Fit:
    """Measure this machine, fit device and network, and keep them in the user's folder. ClusterError, OSError."""
    from datetime import datetime

    from cluster import processes
    from experiments.kernel_times import machine

    outcome = processes.run(measure, 2, timeout=120, on_progress=lambda journals, seconds: progress(seconds / 20))
    if outcome.error:
        raise outcome.error
    calls, exchanges = outcome.results[0]
    device, link = fitted_device(calls), fitted_link([row for row in exchanges if row[0] == "message"])
    link = fitted_to_sums(link, [row for row in exchanges if row[0] == "all-reduce"], device)
    made = Fit(
        device=device.spelled,
        network=link.spelled,
        machine=machine(),
        moment=datetime.now().astimezone().isoformat(timespec="minutes"),
        kernels=tuple((*row, device.seconds(row[1], row[2])) for row in calls),
        messages=tuple((*row, exchange(row[0], row[1], link, device)) for row in exchanges),
    )
    here.save(made)
    return made


# on both ranks


def measure(comm) -> tuple[list[Row], list[tuple[str, float, float]]]:
    """What kernels and exchanges take on this rank, while the other one does the same."""
    with kernels.metered(None):
        return _kernels(comm), _exchanges(comm)


def _kernels(comm) -> list[Row]:
    from experiments.calls import CALLS

    rows = []
    for name in KERNELS:
        kernel = getattr(kernels, name)
        for n in SIZES:
            args = CALLS[name].arguments(np.random.default_rng(0), n)
            flops, words = kernel.price(*args)
            rows.append((name, float(flops), float(words * args[0].itemsize), _typical(comm, partial(kernel, *args))))
    return rows


def _exchanges(comm) -> list[tuple[str, float, float]]:
    other, rows = 1 - comm.rank, []

    def to_and_fro() -> None:
        if comm.rank == 0:
            comm.send(x, other)
        comm.recv(other)
        if comm.rank == 1:
            comm.send(x, other)

    for nbytes in MESSAGES:
        x = np.zeros(nbytes // 4, np.float32)
        rows.append(("message", float(nbytes), _typical(comm, to_and_fro) / 2))
    for nbytes in SUMS:
        x = np.zeros(nbytes // 4, np.float32)
        rows.append(("all-reduce", float(nbytes), _typical(comm, partial(comm.all_reduce, x))))
    return rows


def _typical(comm, once: Callable[[], Any]) -> float:
    """Seconds of once(), the median of rounds that both ranks begin together and that have as many calls on both."""

    def timed(repeat: int) -> float:
        comm.barrier()
        begin = perf_counter()
        for _ in range(repeat):
            once()
        return (perf_counter() - begin) / repeat

    timed(1)  # compiles, connects, and brings everything near
    agreed = float(comm.all_reduce(np.array([timed(1)]), op="mean")[0])
    repeat = max(1, min(1000, round(ROUND / agreed)))
    return median(timed(repeat) for _ in range(ROUNDS))


# on neither


def fitted_device(rows: list[Row]) -> Device:
    """The device whose kernels take what was measured, as nearly as three constants can."""
    flops, nbytes, took = np.array([row[1:] for row in rows], float).T
    start = (max(flops / took), max(nbytes / took), min(took))
    f, b, o = _least(lambda f, b, o: o + np.maximum(flops / f, nbytes / b), took, start)
    return Device(f, b, o)


def fitted_link(rows: list[tuple[str, float, float]]) -> Link:
    """The link whose messages take what was measured one way."""
    nbytes, took = np.array([row[1:] for row in rows], float).T
    latency, bandwidth = _least(lambda a, b: a + nbytes / b, took, (min(took), max(nbytes / took)))
    return Link(latency, bandwidth)


def fitted_to_sums(link: Link, rows: list[tuple[str, float, float]], device: Device) -> Link:
    """The same latency, with the bandwidth that both ways have at once, which is what training exchanges."""
    nbytes, took = np.array([row[1:] for row in rows], float).T

    def model(b):
        return np.array([exchange("all-reduce", n, Link(link.latency, b), device) for n in nbytes])

    (bandwidth,) = _least(model, took, (link.bandwidth,))
    return Link(link.latency, bandwidth)


def exchange(what: str, nbytes: float, link: Link, device: Device) -> float:
    """Seconds of a message or of an all-reduce of two, as the simulated cluster has it."""
    if what == "message":
        return link.overhead + link.latency + nbytes / link.bandwidth
    half = nbytes / 2
    add = device.seconds(half / 4, 3 * half)
    return 2 * (link.overhead + link.latency + half / link.bandwidth) + add


def _least(model: Callable, took: np.ndarray, start: tuple[float, ...]) -> tuple[float, ...]:
    """The constants, all above 0, for which model(*constants) has the least squared log-ratios to `took`."""
    from scipy.optimize import least_squares

    found = least_squares(lambda logs: np.log(model(*np.exp(logs)) / took), np.log(start), loss="soft_l1")
    return tuple(float(x) for x in np.exp(found.x))


# as an errand, and as a command


def asked(moment: str) -> Errand:
    """The errand that fits this machine; `moment` tells it from those before."""
    return Errand("fit", {"moment": moment})


def errand(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    """Fit, and keep a copy (see experiments.errand)."""
    made = fit(progress)
    return Errand("fit", values).keep(root, lambda folder: (folder / "fit.json").write_text(made.model_dump_json()))


@click.command("fit")
@click.option("--json", "as_json", is_flag=True, help="print what was measured and fitted as JSON, in SI units")
def fit_command(as_json: bool) -> None:
    """Measure kernels and messages here, and fit the simulated cluster to them: --device here --network here."""
    from cluster.comm import ClusterError
    from experiments import show

    try:
        made = fit()
    except ClusterError as error:
        raise click.ClickException(f"this machine could not be measured: {error}") from None
    if as_json:
        click.echo(json.dumps(made.model_dump(), indent=1))
        return
    device, link = parse_device(made.device), parse_network(made.network).between
    click.echo(f"{made.machine}, {made.moment}")
    click.echo(
        f"device   {device.flops / 1e9:.3g} GFLOP/s, {device.bandwidth / 1e9:.3g} GB/s, "
        f"{device.overhead * 1e6:.3g} us a call          --device {made.device}"
    )
    click.echo(
        f"network  {link.latency * 1e6:.3g} us, {link.bandwidth / 1e9:.3g} GB/s          --network {made.network}\n"
    )
    click.echo(show.table([*map(_told, made.kernels), *(_told((w, 0.0, n, t, p)) for w, n, t, p in made.messages)], 1))
    click.echo(f"\nstored in {here.place()}; --device here --network here use it.")


def _told(row: tuple[str, float, float, float, float]) -> dict[str, str]:
    what, flops, nbytes, took, predicted = row
    return {
        "what": what,
        "FLOPs": f"{flops:,.0f}" if flops else "",
        "bytes": f"{nbytes:,.0f}",
        "measured us": f"{1e6 * took:,.3g}" if took < 1e-3 else f"{1e6 * took:,.0f}",
        "fitted us": f"{1e6 * predicted:,.3g}" if predicted < 1e-3 else f"{1e6 * predicted:,.0f}",
        "ratio": f"{predicted / took:.2f}",
    }

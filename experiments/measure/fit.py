"""Fit the constants of the simulated cluster to this machine: the cost of a kernel call and of a message.

Two real processes measure at the same time, because they share cores and memory in a run:

    kernels     seconds = overhead + max(FLOPs / flops, bytes / bandwidth)       each after all others, as in a step
    message     seconds = latency + bytes / bandwidth                            back and forth between the two
    ring        a reduce-scatter and an all-gather: the same link both ways at once
    all-reduce  this cluster's fastest: it has its own latency and bandwidth for large vectors
    scripts of torch.distributed have their own device and network: see `script_fit.py`

The constants minimise the squared logarithms of the ratios measured over predicted, with outliers damped (soft L1): a
kernel predicted twice too slow counts as much as one predicted twice too fast. The fit is made for large layers and
messages above 1 MB: only they determine rates and bandwidth. For small layers, whose numbers stay in a cache, memory is
predicted too slow and arithmetic too fast. On one machine, a rank's CPU copies what it sends and receives: this CPU
time per byte is the extra time of a ring over messages in one direction.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from threading import get_native_id
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from cluster.devices import Device
from cluster.network import Link, Network
from cluster.real.event_log_stream import on_core
from experiments.jobs.spec import JobSpec
from experiments.specification import this_machine
from experiments.specification.this_machine import Fit

KERNELS = ("dense_forward", "dense_backward_input", "dense_backward_weights", "sgd", "momentum", "add", "scale")
SIZES = (1_000, 1_000_000, 4_000_000)  # numbers in a call
LARGE = 1e6  # bytes moved by a kernel, above which the overhead of its call is negligible
MESSAGES = (8, 4_096, 65_536, 1 << 20, 1 << 22, 1 << 24)  # bytes
WAYS = ("message", "ring", "all-reduce")
SUMS = (1 << 20, 1 << 22, 1 << 24)  # bytes of a ring or all-reduce
TIME = 0.3  # s for the rounds of one size; the median counts, since in the fastest round the other process was idle
FEW, MANY = 7, 300  # rounds

Row = tuple[str, float, float, float]


def fit(progress: Callable[[float], None] = lambda part: None, anyway: bool = False) -> Fit:
    """Measure this machine, save the fitted device and network for this user, and return the fit. Raise ClusterError if
    measuring fails, or OSError if the fit cannot be saved.

    A fit made on a busy machine is saved, but using it raises an error unless `anyway` is set.
    """
    from datetime import datetime

    from cluster.real import processes
    from experiments.measure.kernel_times import machine
    from experiments.measure.script_fit import fit_scripts

    outcome = processes.run(measure, 2, timeout=120, on_progress=lambda event_logs, seconds: progress(seconds / 40))
    if outcome.error:
        raise outcome.error
    calls, exchanges, *_ = outcome.results[0]
    device = fit_device(calls)
    network = fit_network(exchanges, device)
    scripts = fit_scripts(lambda part: progress(0.5 + part / 2))
    made = Fit(
        device=device.text,
        network=network.text,
        machine=machine(),
        moment=datetime.now().astimezone().isoformat(timespec="minutes"),
        kernels=tuple((*row, device.seconds(row[1], row[2])) for row in calls),
        messages=tuple((*row, exchange(row[0], row[1], network, device)) for row in exchanges),
        script_device=scripts.device,
        script_network=scripts.network,
        programs=scripts.programs,
        starved=max(starved for _, _, starved, _ in outcome.results),
        spread=max(spread for *_, spread in outcome.results),
        anyway=anyway,
    )
    this_machine.save(made)
    return made


# on both ranks


def measure(comm) -> tuple[list[Row], list[tuple[str, float, float]], float, float]:
    """Return the times of kernels and exchanges on this rank while the other rank does the same, and two measures of
    noise.

    These are the share of time in which this rank, while computing, waited for a core, and the spread of the rounds of
    large kernels. Exchanges give neither: their ranks wait for each other, and their threads share a core.
    """
    with kernels.meter_kernels(None):
        before = on_core(get_native_id())
        calls, spread = _kernels(comm)
        ran, starved = (now - then for now, then in zip(on_core(get_native_id()), before, strict=True))
        return calls, _exchanges(comm), starved / max(ran + starved, 1e-9), spread


def _kernels(comm) -> tuple[list[Row], float]:
    """Return the time of each kernel, and the spread of the rounds of large kernels.

    The kernels are called in turn, so that each finds its data evicted from the cache by the others, as in a step.
    """
    from experiments.measure.kernel_cases import KERNEL_CASES

    rows, spreads = [], []
    for n in SIZES:
        prices: list[tuple[str, float, float]] = []
        calls: list[Callable[[], Any]] = []
        for name in KERNELS:
            kernel, args = getattr(kernels, name), KERNEL_CASES[name].arguments(np.random.default_rng(0), n)
            flops, words = kernel.price(*args)
            prices.append((name, float(flops), float(words * args[0].itemsize)))
            calls.append(partial(kernel, *args))
        laps = [_times(calls) for _ in _rounds(comm, partial(_times, calls))]
        for price, times in zip(prices, zip(*laps, strict=True), strict=True):
            low, middle, high = quantiles(times, n=4)
            rows.append((*price, middle))
            spreads += [(high - low) / middle] * (price[2] >= LARGE)
    return rows, median(spreads or [0.0])


def _exchanges(comm) -> list[tuple[str, float, float]]:
    ways = zip(WAYS, (MESSAGES, SUMS, SUMS), (_to_and_fro, _ring, _all_reduce), strict=True)
    rows = []
    for what, sizes, once in ways:
        for nbytes in sizes:
            took = _typical(comm, partial(once, comm, np.zeros(nbytes // 4, np.float32)))
            rows.append((what, float(nbytes), took / 2 if what == "message" else took))
    return rows


def _to_and_fro(comm, x) -> None:
    other = 1 - comm.rank
    if comm.rank == 0:
        comm.send(x, other)
    comm.recv(other)
    if comm.rank == 1:
        comm.send(x, other)


def _ring(comm, x) -> None:
    comm.all_gather(comm.reduce_scatter(x))


def _all_reduce(comm, x) -> None:
    comm.all_reduce(x)


def _typical(comm, once: Callable[[], Any]) -> float:
    """Return the median time of once() over the rounds, in s."""
    return median(_timed(once) for _ in _rounds(comm, once))


def _rounds(comm, once: Callable[[], Any]) -> Iterator[int]:
    """Yield round numbers for about TIME s. Both ranks have equally many rounds, and start each round together."""
    once()  # compiles, connects, and warms the caches
    agreed = float(comm.all_reduce(np.array([_timed(once)]), op="mean")[0])
    for number in range(max(FEW, min(MANY, round(TIME / agreed)))):
        comm.barrier()
        yield number


def _times(calls: list[Callable[[], Any]]) -> list[float]:
    return [_timed(call) for call in calls]


def _timed(once: Callable[[], Any]) -> float:
    begin = perf_counter()
    once()
    return perf_counter() - begin


# on neither


def fit_device(rows: list[Row]) -> Device:
    """Return the device whose rates fit the large kernels best, and whose overhead fits the small ones best."""
    flops, nbytes, took = np.array([row[1:] for row in rows], float).T
    large = nbytes >= LARGE
    start = (max(flops[large] / took[large]), max(nbytes[large] / took[large]))
    f, b = _least(lambda f, b: np.maximum(flops[large] / f, nbytes[large] / b), took[large], start)
    rest = (took - np.maximum(flops / f, nbytes / b))[~large]
    return Device(f, b, max(0.0, median(rest)))


def fit_network(rows: list[tuple[str, float, float]], device: Device) -> Network:
    """Return the network with the latency of small messages and the rates that fit large exchanges best.

    The bandwidth is that of messages in one direction. The extra time of a ring, which goes both ways at once, is CPU
    time per byte. An all-reduce has its own latency and bandwidth.
    """
    latency = min(took for what, _, took in rows if what == "message")
    by = {what: np.array([row[1:] for row in rows if row[0] == what and row[1] >= LARGE]).T for what in WAYS}

    def network(bandwidth: float, per_byte: float, start: float, rate: float) -> Network:
        link = Link(latency, bandwidth, 0.0, min(max(per_byte, 0.0), 1 / bandwidth))
        return Network(link, link, sum=Link(start, rate))

    def fitted(what: str, model: Callable[..., Network], *start: float) -> tuple[float, ...]:
        sizes, took = by[what]
        return _least(lambda *c: np.array([exchange(what, n, model(*c), device) for n in sizes]), took, start)

    rate = {what: max(sizes / took) for what, (sizes, took) in by.items()}
    (bandwidth,) = fitted("message", lambda b: network(b, 0.0, 0.0, b), rate["message"])
    sizes, took = by["ring"]
    sums = np.array([device.seconds(n / 8, 1.5 * n) for n in sizes])
    per_byte = float(np.median((took - sums) / (2 * sizes)))  # a round carries half of the bytes each way
    start, total = fitted("all-reduce", lambda a, b: network(bandwidth, 0.0, a, b), latency, rate["all-reduce"])
    return network(bandwidth, per_byte, start, total)


def exchange(what: str, nbytes: float, network: Network, device: Device) -> float:
    """Return the time of a message, a ring or an all-reduce of two ranks on the simulated cluster, in s."""
    link, half = network.between, nbytes / 2
    if what == "message":
        return link.latency + nbytes / link.bandwidth
    if what == "all-reduce":
        assert network.sum  # as fit_network gives it
        return network.sum.latency + nbytes / network.sum.bandwidth
    first, busy = link.latency + half / link.bandwidth, half * link.per_byte
    return 2 * max(first, 2 * busy) + device.seconds(half / 4, 3 * half)


def _least(model: Callable, took: np.ndarray, start: tuple[float, ...]) -> tuple[float, ...]:
    """Return the positive constants that minimise the log-ratios of model(*constants) to `took`, in a soft L1 loss."""
    from scipy.optimize import least_squares

    found = least_squares(lambda logs: np.log(model(*np.exp(logs)) / took), np.log(start), loss="soft_l1")
    return tuple(float(x) for x in np.exp(found.x))


# as a job of the pool


def job_spec(moment: str) -> JobSpec:
    """Return the job that fits this machine; `moment` distinguishes it from earlier ones."""
    return JobSpec("fit", {"moment": moment})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    """Fit this machine, store a copy of the fit (see experiments.jobs.spec), and return its folder."""
    return JobSpec("fit", values).keep_json(root, "fit.json", fit(progress).model_dump())

"""Fit what scripts of torch.distributed cost on this machine: a device with the price of Python, and gloo's network.

Two real processes run the programs of `script_programs`, independently but at the same time, and then exchange
messages. The device is fitted to their steps: the operations, views and Python calls of each step are counted on the
simulated cluster, so the fit matches what is predicted. Six numbers describe all programs. The network has the latency
and bandwidth of messages, and those of rings as its `sum`: on one machine, gloo's collectives take longer than their
messages, and their threads compete with computation for the CPU.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from cluster.network import Link, Network
from cluster.script_device import ScriptDevice
from experiments.measure.script_times import measure
from experiments.measure.script_work import StepWork, count_work

RINGS = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 2.0}  # halves of a vector that each rank sends in gloo
LIMITS = ((1e8, 1e15), (1e8, 1e14), (1e-7, 1e-3), (1e-7, 1e-3), (1e-8, 1e-4), (1.0, 100.0))


def fit_device(works: dict[str, StepWork], took: dict[str, float]) -> ScriptDevice:
    """Return the device whose predicted step times come closest to the measured ones, in s."""
    from scipy.optimize import least_squares

    start, bounds = np.log([60e9, 15e9, 2e-6, 2e-6, 5e-7, 4.0]), tuple(np.log(np.array(LIMITS).T))

    def device(logs: np.ndarray) -> ScriptDevice:
        flops, bandwidth, overhead, view, call, slow = np.exp(logs)
        return ScriptDevice(flops, bandwidth, overhead, view=view, call=call, slow=slow)

    def off(logs: np.ndarray) -> list[float]:
        here = device(logs)
        return [np.log(work.seconds(here) / took[name]) for name, work in works.items()]

    return device(least_squares(off, start, bounds=bounds, loss="soft_l1", f_scale=0.1).x)


def fit_network(rows: list[tuple[str, float, float]]) -> Network:
    """Return the network fitted to these exchanges (what, bytes that a rank sends in a round, s)."""
    messages = sorted((nbytes, took) for what, nbytes, took in rows if what == "message")
    latency, bandwidth = _line([nbytes for nbytes, _ in messages], [took for _, took in messages])
    sums = [(RINGS[what] * nbytes, took) for what, nbytes, took in rows if what in RINGS]
    total = Link(*_line(*zip(*sums, strict=True)))
    shares = [
        (took - total.latency) * total.bandwidth / (2 * nbytes) for what, nbytes, took in rows if what == "overlapped"
    ]
    link = Link(latency, bandwidth, per_byte=float(np.clip(median(shares), 0.0, 1.0)) / bandwidth)
    return Network(link, link, sum=total)


def _line(nbytes: Any, took: Any) -> tuple[float, float]:
    """Return the (latency, bandwidth) for which latency + bytes / bandwidth is closest to these times, by ratio."""
    from scipy.optimize import least_squares

    sizes, times = np.array(nbytes, float), np.array(took)
    start = np.log([times.min(), sizes.max() / times.max()])
    logs = least_squares(lambda x: np.log((np.exp(x[0]) + sizes / np.exp(x[1])) / times), start, loss="soft_l1").x
    return float(np.exp(logs[0])), float(np.exp(logs[1]))


class ScriptFit(NamedTuple):
    """A device and a network as text, and (program, s measured, s predicted) of each program."""

    device: str
    network: str
    programs: tuple[tuple[str, float, float], ...]


def fit_scripts(progress: Callable[[float], None] = lambda part: None) -> ScriptFit:
    """Measure this machine with two processes, and return a fit of it for scripts. Raise ClusterError if one of them
    fails.
    """
    from cluster.real import processes
    from experiments.measure.script_programs import PROGRAMS

    with tempfile.TemporaryDirectory() as folder:
        outcome = processes.run(partial(measure, folder), 2, backend="sockets", timeout=120)
    if outcome.error:
        raise outcome.error
    progress(0.5)
    times = [times for times, _ in outcome.results]
    took = {name: median(some for one in times for some in one[name]) for name in PROGRAMS}
    works = {}
    for number, (name, program) in enumerate(PROGRAMS.items()):
        works[name] = count_work(program)
        progress(0.5 + 0.5 * (number + 1) / len(PROGRAMS))
    device, network = fit_device(works, took), fit_network(outcome.results[0][1])
    programs = tuple((name, took[name], work.seconds(device)) for name, work in works.items())
    return ScriptFit(device.text, network.text, programs)

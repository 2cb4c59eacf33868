"""Admission: a cluster obeys what an experiment asks of it, or refuses in a sentence before the first rank starts."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import algorithms
from cluster.devices import Bill, Device
from cluster.network import Network
from experiments.specification.conditions import Conditions
from experiments.specification.experiment import LINKS, Experiment
from experiments.wording import units
from kernels import metered

REFUSED = {
    "threads": {"crash": "a thread cannot be lost without the others of its process; use processes, or let it pause."},
    "gpus": dict.fromkeys(
        (*LINKS, "device"),
        "GPUs talk by NCCL and compute as fast as they do, so it cannot be emulated there; use processes or the "
        "simulated cluster, or leave it out.",
    ),
}
"""Settings that a cluster cannot obey, and refuses: why not, and what to try."""

RESTARTING = ("simulated", "processes")  # clusters on which a lost rank can come back

WAIT = 60.0  # s that a real rank waits for a message before it gives up


def check(experiment: Experiment, asked: Conditions, workload: Any, here: bool) -> None:
    """Raise ValueError, in one sentence, if the cluster cannot obey what is asked; with `here` it is this machine's."""
    _check_restarts(experiment, asked)
    if experiment.cluster == "simulated":
        return
    _check_cluster(experiment, asked, here)
    if here and asked.device:
        _check_device(experiment, workload, asked.device)
    if asked.network:
        _check_length(experiment, workload, asked.network)


def _check_cluster(experiment: Experiment, asked: Conditions, here: bool) -> None:
    cluster = experiment.cluster
    fast = [f"{rank}:{factor:g}" for rank, factor in asked.faults.slow.items() if factor < 1]
    if fast and not asked.device:
        raise ValueError(
            f"slow: a real rank cannot compute faster than it does, and {fast[0]} asks for that; use factors of 1 or "
            "more, or a device slower than this machine."
        )
    if asked.network and asked.network.sum:
        raise ValueError(
            f"network: {experiment.network} says how this machine's own processors carry and sum, which real ranks "
            "cannot emulate beside their own; leave the network out, or simulate."
        )
    if experiment.collective == "stream" and cluster != "simulated":
        raise ValueError(
            "collective: stream is how the simulated cluster imitates one stream of a GPU; real ranks cannot. "
            "Use fast, or simulate."
        )
    if not here and 0 in asked.faults.crash:
        raise ValueError(
            "crash: rank 0 keeps the record of ranks that another launcher has started; lose another one, or let it "
            "pause."
        )
    if asked.faults.back and not (cluster in RESTARTING and here):
        raise ValueError(
            "crash: a rank can come back on processes of this machine or on the simulated cluster, not on "
            f"{cluster if here else 'ranks that another launcher has started'}; lose it for good, or let it pause."
        )
    if cluster == "gpus" and algorithms.family(experiment.algorithm) == "shared_memory":
        raise ValueError(
            f"cluster: {experiment.algorithm} steps through memory that its ranks share, and GPUs share none; use "
            "threads, processes or the simulated cluster."
        )
    for name, why in REFUSED.get(cluster, {}).items():
        if name in experiment.changed():
            raise ValueError(f"{name}: {why}")


def _check_restarts(experiment: Experiment, asked: Conditions) -> None:
    """Raise ValueError if a rank would restart, having lost everything, where the others cannot go on with it."""
    name = experiment.algorithm
    for rank in sorted(asked.faults.back):
        if not experiment.restartable:
            able = [other for other in algorithms.names() if algorithms.find(other).restartable]
            where = f"{name} with these settings" if name in able else name
            raise ValueError(
                f"crash: rank {rank} would come back with nothing, and in {where} others wait for what it was to send; "
                f"let it pause, lose it for good, or use {', '.join(other for other in able if other != name)}."
            )
        if rank < experiment.servers:
            raise ValueError(
                f"crash: rank {rank} is a server and would come back without the model that it keeps for the others; "
                f"let it pause, or take a worker: ranks {experiment.servers} to {experiment.ranks - 1}."
            )


def _check_device(experiment: Experiment, workload: Any, chosen: Device) -> None:
    """Raise ValueError if this machine computes a gradient slower than the device that it is to emulate."""
    bill = Bill(chosen)
    w, batch = workload.start(experiment.seed), trial_batch(experiment, workload)
    took = math.inf
    with np.errstate(all="ignore"):
        with metered(bill):
            workload.gradient(w, batch)
        for _ in range(5):
            began = time.perf_counter()
            with metered(None):
                workload.gradient(w, batch)
            took = min(took, time.perf_counter() - began)
    wanted = bill()
    if took > wanted:
        raise ValueError(
            f"device: {experiment.device} would compute a gradient in {units.seconds(wanted)}, and this machine "
            f"takes {units.seconds(took)}; real ranks can only emulate a slower device: choose one, or simulate."
        )


def trial_batch(experiment: Experiment, workload: Any) -> tuple:
    """Return a batch to try a gradient on: as large as the setting, which a whole-batch method ignores, or all."""
    return workload.batch(np.arange(min(experiment.batch, workload.samples)))


def _check_length(experiment: Experiment, workload: Any, links: Network) -> None:
    """Raise ValueError if a message of the model would take longer than a rank waits for it."""
    size = workload.parameters * np.dtype(experiment.precision).itemsize
    slowest = max((links.between, links.within), key=lambda link: link.latency + size / link.bandwidth)
    seconds = slowest.latency + size / slowest.bandwidth
    if seconds > WAIT:
        raise ValueError(
            f"bandwidth: the model of {size:,} bytes would take {seconds:,.0f} s from rank to rank at "
            f"{slowest.bandwidth:.3g} bytes/s, and a real rank waits at most {WAIT:g} s; use more bandwidth, a smaller "
            "model, or the simulated cluster, whose time costs nothing."
        )

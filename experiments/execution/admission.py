"""Admission: a cluster obeys every setting of an experiment, or refuses before the first rank starts."""

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
from kernels import meter_kernels

REFUSED = {
    "threads": {
        "crash": "a thread cannot crash without the other threads of its process; use processes, or pause it instead."
    },
    "gpus": dict.fromkeys(
        (*LINKS, "device"),
        "on GPUs, which communicate over NCCL and compute at their own speed, it cannot be emulated; remove it, or use "
        "processes or the simulated cluster.",
    ),
}
"""Settings that a cluster refuses, with the reason and what to try."""

RESTARTING = ("simulated", "processes")  # clusters on which a lost rank can come back

WAIT = 60.0  # s that a real rank waits for a message before it gives up


def check(experiment: Experiment, asked: Conditions, workload: Any, here: bool) -> None:
    """Raise ValueError if the cluster or, with `here`, this machine cannot obey a setting."""
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
            f"slow: {fast[0]} asks a real rank to compute faster than this machine can; use factors of 1 or more, or "
            "emulate a slower device."
        )
    if asked.network and asked.network.sum:
        raise ValueError(
            f"network: {experiment.network} includes the CPU time this machine spends on moving and summing bytes, "
            "which real ranks spend anyway; remove the network, or use the simulated cluster."
        )
    if experiment.collective == "stream" and cluster != "simulated":
        raise ValueError(
            "collective: stream imitates a single CUDA stream, which only the simulated cluster can do; use fast, or "
            "the simulated cluster."
        )
    if not here and 0 in asked.faults.crash:
        raise ValueError(
            "crash: rank 0 records the run, so it cannot be lost under another launcher; choose another rank, or pause "
            "it instead."
        )
    if asked.faults.back and not (cluster in RESTARTING and here):
        raise ValueError(
            "crash: ranks can restart only on processes of this machine or on the simulated cluster, not on "
            f"{cluster if here else 'ranks of another launcher'}; give no restart time, or pause the rank instead."
        )
    if cluster == "gpus" and algorithms.family(experiment.algorithm) == "shared_memory":
        raise ValueError(
            f"cluster: {experiment.algorithm} needs memory shared by all its ranks, which GPUs do not have; use "
            "threads, processes or the simulated cluster."
        )
    for name, why in REFUSED.get(cluster, {}).items():
        if name in experiment.non_defaults():
            raise ValueError(f"{name}: {why}")


def _check_restarts(experiment: Experiment, asked: Conditions) -> None:
    """Raise ValueError if a rank would restart without the state that it or the other ranks need to continue."""
    name = experiment.algorithm
    for rank in sorted(asked.faults.back):
        if not experiment.restartable:
            able = [other for other in algorithms.names() if algorithms.find(other).restartable]
            where = f"{name} with these settings" if name in able else name
            raise ValueError(
                f"crash: after a restart rank {rank} would have lost its state, and other ranks of {where} would wait "
                "for messages it never sends; pause it instead, give no restart time, or use "
                f"{', '.join(other for other in able if other != name)}."
            )
        if rank < experiment.servers:
            raise ValueError(
                f"crash: rank {rank} is a server, and a restart would lose the model it holds for the workers; pause "
                f"it instead, or crash a worker (ranks {experiment.servers} to {experiment.ranks - 1})."
            )


def _check_device(experiment: Experiment, workload: Any, chosen: Device) -> None:
    """Raise ValueError if this machine computes a gradient more slowly than the device it should emulate."""
    bill = Bill(chosen)
    w, batch = workload.start(experiment.seed), trial_batch(experiment, workload)
    took = math.inf
    with np.errstate(all="ignore"):
        with meter_kernels(bill):
            workload.gradient(w, batch)
        for _ in range(5):
            began = time.perf_counter()
            with meter_kernels(None):
                workload.gradient(w, batch)
            took = min(took, time.perf_counter() - began)
    wanted = bill()
    if took > wanted:
        raise ValueError(
            f"device: this machine is too slow to emulate {experiment.device}: a gradient takes {units.seconds(took)} "
            f"here and {units.seconds(wanted)} there; choose a slower device, or use the simulated cluster."
        )


def trial_batch(experiment: Experiment, workload: Any) -> tuple:
    """Return a batch for a trial gradient: as large as the batch setting, or all samples for a whole-batch method."""
    return workload.batch(np.arange(min(experiment.batch, workload.samples)))


def _check_length(experiment: Experiment, workload: Any, links: Network) -> None:
    """Raise ValueError if sending the model would take longer than a rank waits for a message."""
    size = workload.parameters * experiment.dtype.itemsize
    slowest = max((links.between, links.within), key=lambda link: link.latency + size / link.bandwidth)
    seconds = slowest.latency + size / slowest.bandwidth
    if seconds > WAIT:
        raise ValueError(
            f"bandwidth: at {slowest.bandwidth:.3g} bytes/s, sending the model ({size:,} bytes) takes {seconds:,.0f} "
            f"s, but a real rank waits at most {WAIT:g} s; use more bandwidth, a smaller model, or the simulated "
            "cluster, where waiting is free."
        )

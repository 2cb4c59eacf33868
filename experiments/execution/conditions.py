"""Conditions of a run: the network, the device and the faults that its cluster simulates or emulates.

A cluster obeys what is asked of it or refuses in a sentence before the first rank starts. Where real ranks obeyed only
in part, or ignored a hint, a note of the run says so.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

import algorithms
from cluster.devices import Bill, Device, parse_device
from cluster.event_log import EventLog
from cluster.faults import JITTERS, Faults
from cluster.network import Network, link_of, parse_network
from experiments.specification.experiment import LINKS, OWN, Experiment
from experiments.wording import units
from kernels import metered
from tracing import IDLE

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

HONEST = 0.05  # share of a run by which real ranks may be late, or without a core, before a note says so
WAIT = 60.0  # s that a real rank waits for a message before it gives up


def network(experiment: Experiment) -> Network | None:
    """Return the network with the experiment's own latency, overhead included, bandwidth, ranks and NICs per node.

    None is the one that a real cluster has.
    """
    own = experiment.network == OWN
    changed = experiment.latency, experiment.bandwidth, experiment.nics
    if own and changed == (None, None, None) and experiment.per_node == 1:
        return None
    preset = parse_network("ideal" if own else experiment.network)
    between = preset.between
    if experiment.latency is not None:
        between = link_of(experiment.latency, between.bandwidth, between.overhead)
    if experiment.bandwidth is not None:
        between = replace(between, bandwidth=experiment.bandwidth, per_byte=0.0)
    total = preset.sum if between is preset.between else None  # another network than the one that was measured
    return replace(preset, between=between, sum=total).on_nodes(experiment.per_node, experiment.nics)


def device(experiment: Experiment) -> Device | None:
    """Return what a rank computes on; None is what a real cluster has."""
    return None if experiment.device == OWN else parse_device(experiment.device)


def faults(experiment: Experiment) -> Faults:
    """Return the jitter and the fault settings of the experiment."""
    lost = experiment.crash.by_rank
    return Faults(
        slow=experiment.slow.by_rank,
        jitter=JITTERS[experiment.jitter],
        pause=experiment.pause.by_rank,
        crash={rank: at for rank, (at, _) in lost.items()},
        back={rank: back for rank, (_, back) in lost.items() if back < math.inf},
        seed=experiment.seed,
    )


def emulated(experiment: Experiment) -> dict[str, Any]:
    """Return what real ranks emulate, as the arguments of `run` of a real cluster."""
    return {"network": network(experiment), "device": device(experiment), "faults": faults(experiment)}


def check(experiment: Experiment, workload: Any, here: bool) -> None:
    """Raise ValueError, in one sentence, if the cluster cannot obey; with `here` it is this machine's."""
    _check_restarts(experiment)
    links = network(experiment)
    if experiment.cluster == "simulated":
        return
    _check_cluster(experiment, here)
    chosen = device(experiment)
    if here and chosen:
        _check_device(experiment, workload, chosen)
    if links:
        _check_length(experiment, workload, links)


def _check_cluster(experiment: Experiment, here: bool) -> None:
    cluster, asked = experiment.cluster, emulated(experiment)
    fast = [f"{rank}:{factor:g}" for rank, factor in asked["faults"].slow.items() if factor < 1]
    if fast and not asked["device"]:
        raise ValueError(
            f"slow: a real rank cannot compute faster than it does, and {fast[0]} asks for that; use factors of 1 or "
            "more, or a device slower than this machine."
        )
    if asked["network"] and asked["network"].sum:
        raise ValueError(
            f"network: {experiment.network} says how this machine's own processors carry and sum, which real ranks "
            "cannot emulate beside their own; leave the network out, or simulate."
        )
    if experiment.collective == "stream" and cluster != "simulated":
        raise ValueError(
            "collective: stream is how the simulated cluster imitates one stream of a GPU; real ranks cannot. "
            "Use fast, or simulate."
        )
    if not here and 0 in asked["faults"].crash:
        raise ValueError(
            "crash: rank 0 keeps the record of ranks that another launcher has started; lose another one, or let it "
            "pause."
        )
    if asked["faults"].back and not (cluster in RESTARTING and here):
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


def _check_restarts(experiment: Experiment) -> None:
    """Raise ValueError if a rank would restart, having lost everything, where the others cannot go on with it."""
    name = experiment.algorithm
    for rank in sorted(faults(experiment).back):
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


def notes(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return sentences on faults that came too late, what was chosen and changed nothing, and what was not obeyed."""
    return [
        *_too_late(experiment, event_logs),
        *_back_too_late(experiment, event_logs),
        *_carried_nothing(experiment, event_logs),
        *_unused(experiment, event_logs),
        *_unobeyed(experiment, event_logs),
        *_unordered(experiment),
    ]


def _too_late(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a sentence for each loss and each pause of a rank that was done before it."""
    lines = []
    for log in event_logs:
        lost, pauses = experiment.crash.by_rank.get(log.rank), experiment.pause.by_rank.get(log.rank, ())
        if not lost and not pauses:
            continue
        end = max((span[2] for span in log.spans), default=0.0)
        if lost and lost[0] >= end and not any(kind == IDLE and label == "lost" for kind, *_, label in log.spans):
            lines.append(_TOO_LATE.format(rank=log.rank, what="be lost", at=lost[0], end=end))
        lines += [
            _TOO_LATE.format(rank=log.rank, what="pause", at=start, end=end) for start, _ in pauses if start >= end
        ]
    return lines


def _back_too_late(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a sentence for each rank that came back and took no step any more."""
    lines = []
    for rank, back in faults(experiment).back.items():
        log = event_logs[rank]
        returns = [end for kind, _, end, _, label in log.spans if kind == IDLE and label == "lost"]
        if returns and not any(seconds > returns[-1] for _, _, seconds, _ in log.losses):
            lines.append(_BACK_TOO_LATE.format(rank=rank, back=back, came=returns[-1]))
    return lines


def _unordered(experiment: Experiment) -> list[str]:
    """Return a sentence if real ranks were asked to send by priority, a hint that they do not follow."""
    asked = experiment.algorithm == "priority" and experiment.settings["order"] == "priority"
    return [_UNORDERED] if asked and experiment.cluster != "simulated" else []


def _carried_nothing(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a sentence if a network was chosen and no message had a byte, as where ranks share the model's memory."""
    if not experiment.changed().keys() & LINKS or any(
        nbytes for log in event_logs for _, _, nbytes, *_ in log.messages
    ):
        return []
    messages = sum(len(log.messages) for log in event_logs)
    return [_BARRIERS.format(messages) if messages else _SILENT]


def _unused(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a warning if an all-reduce was chosen for a method that does none."""
    chosen, lines = experiment.changed(), []
    if "collective" in chosen and not any(label == "all-reduce" for log in event_logs for *_, label in log.spans):
        lines.append(_NO_ALL_REDUCE)
    return lines


def _unobeyed(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a sentence if a real cluster could not obey in full."""
    end = max((log.mark for log in event_logs), default=0.0)
    if experiment.cluster == "simulated" or not end:
        return []
    lines = []
    if experiment.device != OWN:  # a rank that had to wait for a core has caught up unless it was late
        late = max(log.late for log in event_logs)
        lines += [_LATE.format(late, end)] if late > HONEST * end else []
    else:
        waited = sum(log.starved for log in event_logs) / (len(event_logs) * end)
        lines += [_CROWDED.format(100 * waited)] if waited > HONEST else []
    overdue = max(log.overdue for log in event_logs)
    return [*lines, _OVERDUE.format(overdue, end)] if overdue > HONEST * end else lines


_TOO_LATE = (
    "Rank {rank} was to {what} at {at:.4g} s, and was done at {end:.4g} s; let the run last longer, or name an earlier "
    "time."
)
_BACK_TOO_LATE = (
    "Rank {rank} was to come back at {back:.4g} s, came back at {came:.4g} s, and took no step any more: the run was "
    "over; let it last longer, or name an earlier time."
)
_BARRIERS = (
    "The {} messages of this run have no bytes: by them ranks wait for each other, and they send nothing else. So they "
    "paid the network's latency, and its bandwidth changed nothing."
)
_SILENT = "Nothing was sent, so the network that was chosen changed nothing."
_NO_ALL_REDUCE = "No all-reduce was done, so the way to do one that was chosen changed nothing."
_LATE = (
    "A rank fell behind the device that it emulates by {:.3g} s of {:.3g} s: this machine is too slow or too busy for "
    "it; use a slower device, fewer ranks, or the simulated cluster."
)
_CROWDED = (
    "For {:.0f} % of the run's time a rank wanted a core and had none: more ranks computed at once than this machine "
    "has cores for, beside what else it does, so they are slower than as many machines would be; use fewer ranks, or "
    "let them emulate a slower device."
)
_OVERDUE = (
    "The messages of a rank arrived {:.3g} s later, in sum, than over the network that it emulates, in a run of {:.3g} "
    "s: this machine is too slow or too busy for it; use a slower network, fewer ranks, or the simulated cluster."
)
_UNORDERED = (
    "Real ranks send in the order in which they are asked to, so order priority changed nothing here; the simulated "
    "cluster follows it."
)

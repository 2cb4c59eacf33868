"""Place: where a run took place, in words: on which cluster, and what that simulated or emulated."""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.catalogue import PRESETS, device, link
from experiments.experiment import OWN, Experiment

REAL = {"processes": "real processes", "threads": "real threads", "gpus": "real GPUs"}
NAMED = 3  # ranks that a kind of fault names; of more it gives the number


def place(e: Experiment) -> str:
    """Return where `e` runs: "real processes, emulating 1GbE, laptop devices, rank 2 slowed 3 times"."""
    told = ", ".join((*_network(e), *_device(e), *_faults(e)))
    if e.cluster == "simulated":
        return f"simulated: {told}"
    return f"{REAL[e.cluster]}, emulating {told}" if told else REAL[e.cluster]


def _network(e: Experiment) -> Iterator[str]:
    other = [] if e.latency is None else [f"a latency of {1e3 * e.latency:.3g} ms"]
    other += [] if e.bandwidth is None else [f"{1e-6 * e.bandwidth:.4g} MB/s"]
    other += [] if e.per_node == 1 else [f"{e.per_node} ranks per node"]
    preset = [] if e.network == OWN else [e.network]
    if preset and e.network not in PRESETS["network"]:
        between = link(e.network)
        preset = [f"a network of {1e3 * between.alpha:.3g} ms and {1e-6 * between.bandwidth:.4g} MB/s"]
    listed = " and ".join(filter(None, (", ".join(other[:-1]), *other[-1:])))
    if preset or other:
        yield " with ".join(filter(None, (*preset, listed)))


def _device(e: Experiment) -> Iterator[str]:
    if e.device in PRESETS["device"]:
        yield f"{e.device} devices"
    elif e.device != OWN:
        yield f"devices of {1e-9 * device(e.device).flops:.4g} GFLOP/s"


def _faults(e: Experiment) -> Iterator[str]:
    if e.jitter != "none":
        yield f"{e.jitter} jitter"
    slow = {
        rank: f"slowed {factor:g} times" if factor >= 1 else f"sped up {1 / factor:.3g} times"
        for rank, factor in e.slow.by_rank.items()
        if factor != 1
    }
    back = {rank: "lost for a while" if until < math.inf else "lost" for rank, (_, until) in e.crash.by_rank.items()}
    for said, many in (
        (slow, "slowed"),
        (dict.fromkeys(e.pause.by_rank, "paused"), "paused"),
        (back, "lost"),
    ):
        if len(said) > NAMED:
            yield f"{len(said)} ranks {many}"
        else:
            yield from (f"rank {rank} {words}" for rank, words in said.items())

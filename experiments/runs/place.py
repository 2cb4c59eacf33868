"""Place: where a run took place, in words: on which cluster, and what that simulated or emulated."""

from __future__ import annotations

from collections.abc import Iterator

from experiments import naming, units
from experiments.experiment import OWN, Experiment

NAMED = 3  # ranks that a kind of fault names; of more it gives the number


def place(e: Experiment, notes: tuple[str, ...] = ()) -> str:
    """Return where `e` runs, or ran with these notes: "real processes, emulating 1GbE, worker 2 (3× slower)"."""
    told = ", ".join((*_network(e), *_device(e), *_faults(e)))
    if e.cluster == "simulated":
        return f"simulated: {told}"
    real = naming.obtained(e, notes)
    return f"{real}, emulating {told}" if told else real


def _network(e: Experiment) -> Iterator[str]:
    other = [] if e.latency is None else [f"a latency of {units.seconds(e.latency)}"]
    other += [] if e.bandwidth is None else [units.rate(e.bandwidth)]
    other += [] if e.per_node == 1 else [f"{e.per_node} ranks per node"]
    preset = [] if e.network == OWN else [naming.network(e.network)]
    listed = " and ".join(filter(None, (", ".join(other[:-1]), *other[-1:])))
    if preset or other:
        yield " with ".join(filter(None, (*preset, listed)))


def _device(e: Experiment) -> Iterator[str]:
    if e.device != OWN:
        yield naming.devices(e.device)


def _faults(e: Experiment) -> Iterator[str]:
    if e.jitter != "none":
        yield f"{e.jitter} jitter"
    told: dict[str, list[str]] = {}
    for kind, words in naming.faults(e):
        told.setdefault(kind, []).append(words)
    for kind, some in told.items():
        yield from some if len(some) <= NAMED else [f"{len(some)} ranks {naming.NONE[kind]}"]

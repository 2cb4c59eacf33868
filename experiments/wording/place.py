"""A phrase for where a run takes place: on which cluster, and what that simulates or emulates."""

from collections.abc import Iterator

from algorithms.algorithm import nothing_sent
from experiments.specification.experiment import LINKS, OWN, Experiment
from experiments.wording import naming, units
from experiments.wording.sentences import join_words

NAMED = 3  # largest number of ranks named for a kind of fault; if there are more, they are counted


def place(e: Experiment, gpus: int | None = None) -> str:
    """Return a phrase for where `e` runs, or where it ran on `gpus` GPUs. An example is "real processes, emulating
    1GbE, worker 2 (3× slower)".
    """
    like, faults = [*_network(e), *_device(e), *_jitter(e)], [*_faults(e)]
    if e.cluster == "simulated":
        return f"simulated: {', '.join((*like, *faults))}"
    emulated = [f"emulating {', '.join(like)}"] if like else []
    return ", ".join((naming.actual_cluster(e, gpus), *emulated, *faults))


def _network(e: Experiment) -> Iterator[str]:
    """Yield the network, unless no messages are sent (as in shared memory) and no network was chosen."""
    if (e.ranks == 1 or e.method.elements_sent is nothing_sent) and not e.non_defaults().keys() & LINKS:
        return
    other = [] if e.latency is None else [f"a latency of {units.seconds(e.latency)}"]
    other += [] if e.bandwidth is None else [units.rate(e.bandwidth)]
    other += [] if e.per_node == 1 else [f"{e.per_node} ranks per node"]
    other += [] if e.nics is None else [f"{e.nics} NIC{'s' * (e.nics > 1)} per node"]
    preset = [] if e.network == OWN else ["an ideal network" if e.network == "ideal" else naming.network(e.network)]
    if preset or other:
        yield " with ".join(filter(None, (*preset, join_words(other))))


def _device(e: Experiment) -> Iterator[str]:
    if e.device != OWN:
        yield naming.devices(e.device)


def _jitter(e: Experiment) -> Iterator[str]:
    if e.jitter != "none":
        yield f"{e.jitter} jitter"


def _faults(e: Experiment) -> Iterator[str]:
    """Yield phrases for the faults of each kind: one per rank or, if there are many ranks, their number."""
    told: dict[str, list[str]] = {}
    for kind, words in naming.faults(e):
        told.setdefault(kind, []).append(words)
    for kind, some in told.items():
        yield from some if len(some) <= NAMED else [naming.counted_faults(e, kind, len(some))]

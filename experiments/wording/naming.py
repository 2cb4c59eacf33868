"""The names of experiments, clusters, presets and faults, the same everywhere."""

import math
import re
from collections.abc import Iterator

from cluster.real import gpus
from experiments.specification import this_machine
from experiments.specification.catalogue import ALGORITHMS, COMPRESSIONS, PRESETS, WORKLOADS, device, link
from experiments.specification.experiment import Experiment
from experiments.wording import units
from experiments.wording.rank_names import rank_names, slowness
from experiments.wording.sentences import capital
from workloads import own_module, stored_table

REAL = {"processes": "real processes", "threads": "real threads", "gpus": "real GPUs"}
HERE = "this machine"
NONE = {"slow": "slower", "pause": "paused", "crash": "lost"}  # what happened to ranks that are only counted
TIMES = ("", "1", *["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])


def method(e: Experiment) -> str:
    """Return the name of the method, such as "Synchronous SGD" or "Synchronous SGD with Top-k"."""
    title = ALGORITHMS[e.algorithm].title
    return title if e.compression == "none" else f"{title} with {COMPRESSIONS[e.compression].title}"


def title(e: Experiment) -> str:
    """Return the title of a run, such as "Synchronous SGD on handwritten digits"."""
    return f"{method(e)} on {data(e)}"


def data(e: Experiment) -> str:
    """Return the name of the data, such as "handwritten digits". For your own data it names the file: "the table
    “iris”".
    """
    own = {"table": stored_table, "own_module": own_module}.get(e.workload)
    name = e.data["table" if e.workload == "table" else "net"] if own else ""
    return own.title(name) if own and name else WORKLOADS[e.workload].title


def team(e: Experiment) -> str:
    """Return the numbers of workers and servers, such as "4 workers" or "4 workers and 1 server"."""
    servers = f" and {units.count_with_noun(e.servers, 'server')}" if e.servers else ""
    return f"{units.count_with_noun(e.workers, 'worker')}{servers}"


def files(e: Experiment) -> str:
    """Return the names used in links and command lines, such as "sync_sgd, digits"."""
    coded = [] if e.compression == "none" else [e.compression]
    return ", ".join([e.algorithm, *coded, e.workload])


# the cluster and its presets


def cluster(name: str) -> str:
    """Return a cluster's label in a list of choices."""
    if name == "simulated":
        return "Simulated, on virtual time"
    words = capital(REAL[name])
    return f"{words} · none on this machine" if name == "gpus" and not gpus.count() else words


def actual_cluster(e: Experiment, gpus: int | None = None) -> str:
    """Return a phrase for the real cluster on which `e` ran with `gpus` GPUs. If `gpus` is None, the phrase is for the
    cluster that `e` asks for.
    """
    if gpus == 0:
        return "real processes on the CPU, since there are no GPUs here"
    if gpus is not None and gpus < e.ranks:
        return f"real GPUs ({e.ranks} ranks shared {units.count_with_noun(gpus, 'GPU')})"
    return REAL[e.cluster]


def here(field: str, text: str) -> bool:
    """Return True if this network or device is the one fitted to this machine."""
    fit = this_machine.load()
    return fit is not None and getattr(fit, field) == text


def network(text: str) -> str:
    """Return a phrase for a network. It names the preset or this machine, or else gives latency and bandwidth."""
    if text in PRESETS["network"]:
        return text
    if here("network", text):
        return f"{HERE}'s network"
    between = link(text)
    return f"a network of {units.seconds(between.alpha)} and {units.rate(between.bandwidth)}"


def devices(text: str) -> str:
    """Return a phrase for the devices of ranks. It names the preset or this machine, or else gives the speed."""
    if text in PRESETS["device"]:
        return f"{text} devices"
    if here("device", text):
        return f"{HERE}'s processors"
    return f"devices of {units.number(device(text).flops / 1e9, 4)} GFLOP/s"


# faults, by rank


def ranks(e: Experiment) -> tuple[str, ...]:
    """Return the names of the experiment's ranks, such as "server 0" and "worker 1"."""
    return tuple(rank_names(e, e.ranks))


RANK = re.compile(r"(?i)\b((?:the )?)rank (\d+)\b")
SECONDS = re.compile(r"\b(\d[\d.]*(?:e-\d+)?) s\b")
"""Patterns that match a rank or a time in a message, such as "rank 3" or "0.04 s"."""


def readable(e: Experiment, text: str) -> str:
    """Return a message of a run with names and times as pictures show them. For example, "rank 3 was lost at 0.04 s"
    becomes "worker 3 was lost at 40 ms".
    """
    names = ranks(e)

    def name(found: re.Match) -> str:
        number = int(found[2])
        return found[1] + names[number] if number < len(names) else found[0]

    return RANK.sub(name, SECONDS.sub(lambda found: units.seconds(float(found[1])), text))


def faults(e: Experiment) -> Iterator[tuple[str, str]]:
    """Yield (kind, short phrase) for each rank with a fault, such as ("slow", "worker 2 (5× slower)")."""
    names = ranks(e)
    for rank, factor in sorted(e.slow.by_rank.items()):
        if factor != 1:
            yield "slow", f"{names[rank]} ({slowness(factor)})"
    for rank, spans in sorted(e.pause.by_rank.items()):
        told = (f"at {units.seconds(start)} for {units.seconds(end - start)}" for start, end in spans)
        yield "pause", f"{names[rank]} pauses {' and '.join(told)}"
    for rank, (at, until) in sorted(e.crash.by_rank.items()):
        back = f", back at {units.seconds(until)}" if until < math.inf else ""
        yield "crash", f"{names[rank]} lost at {units.seconds(at)}{back}"


def fault(e: Experiment, kind: str) -> str:
    """Return a phrase for the faults of one kind, such as "worker 3 four times slower", or "none slower" if there are
    none.
    """
    names = ranks(e)
    told = {
        "slow": [f"{names[rank]} {pace(factor)}" for rank, factor in sorted(e.slow.by_rank.items()) if factor != 1],
        "pause": [f"{names[rank]} pauses" for rank in sorted(e.pause.by_rank)],
        "crash": [words for kind, words in faults(e) if kind == "crash"],
    }[kind]
    return " and ".join(told if len(told) <= 2 else [counted_faults(e, kind, len(told))]) or f"none {NONE[kind]}"


def counted_faults(e: Experiment, kind: str, many: int) -> str:
    """Return a phrase for the number of faults of one kind, such as "4 ranks lost", or "4 ranks lost for a while" if
    all ranks return.
    """
    returns = kind == "crash" and all(until < math.inf for _, until in e.crash.by_rank.values())
    return f"{many} ranks {NONE[kind]}{' for a while' * returns}"


def without(e: Experiment, kind: str) -> str:
    """Return a phrase for a run without the faults of this kind, such as "without the loss of worker 2"."""
    names = ranks(e)
    of = {"slow": [rank for rank, factor in e.slow.by_rank.items() if factor != 1], "pause": e.pause.by_rank}
    some = [names[rank] for rank in sorted(of.get(kind, e.crash.by_rank))]
    whom = " and ".join(some if len(some) <= 2 else [f"{len(some)} ranks"])
    if kind == "slow":
        return f"{whom} as fast as usual"
    return f"without the {'loss' if kind == 'crash' else 'pause' + 's' * (len(some) > 1)} of {whom}"


def pace(factor: float) -> str:
    """Return a factor of time in words, such as "four times slower"."""
    than, times = ("slower", factor) if factor >= 1 else ("faster", 1 / factor)
    whole = round(times)
    said = TIMES[whole] if whole < len(TIMES) and math.isclose(times, whole) else f"{times:.3g}"
    return f"{said} times {than}"

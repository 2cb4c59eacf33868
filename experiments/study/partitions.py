"""Partitioners: where to cut a profiled model for a pipeline, by dynamic programs and by heuristics.

    plan(profile, [(4, 1e9)], "pipedream")      4 workers with 1 GB/s between them

The methods in FORM_OF are dynamic programs over stages and replicas; STEP is one for a step that ends in a flush; those
in BALANCES give each worker one stage.
"""

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cluster.devices import parse_device
from cluster.network import NETWORKS
from experiments.execution.run import workload_of
from experiments.measure import profile as profiler
from experiments.specification.experiment import Experiment
from experiments.study.schedules import KINDS, LEAST, LONGEST_COSTS, Study
from knobs import match_name
from theory import balance
from theory.partition_dapple import partition_step, ring
from theory.partition_pipedream import FORMS, Partition, flat, link, partition, plan_of
from theory.profile import NUMBERS, Profile, load, read
from workloads.batches import Batches
from workloads.mixed_precision import FORMATS

LEAST_RATE, MOST_RATE = 1e-6, 1e15  # bytes/s, or the units of a toy example
Levels = Sequence[tuple[int, float]]
"""(workers, bytes/s between them) of each level of the machine, from the innermost out."""

MODEL_OF = "pipedream"  # the algorithm whose model is profiled by default: the one that pipelines train
FORM_OF = {"pipedream": "2018", "pipedream_code": "code", "sosp": "sosp", "ring": "ring"}  # of the dynamic program
BALANCES: dict[str, tuple[str, Callable]] = {  # what is balanced, and how
    "min_max": ("times", balance.by_slowest),
    "variance": ("times", balance.by_variance),
    "torchgpipe_time": ("times", balance.by_blocks),
    "torchgpipe_size": ("sizes", balance.by_blocks),
    "blocks": ("times", lambda costs, parts: balance.by_blocks(costs, parts, offset=False)),
}
STEP = "dapple"  # minimises the time of a step with a flush, not the period of a full pipeline
METHODS = (*FORM_OF, STEP, *BALANCES)
GOES_WITH = {  # option -> methods
    **dict.fromkeys(("memory", "straight"), (*FORM_OF, STEP)),
    "fewer": tuple(FORM_OF),
    "compression": ("pipedream_code",),
    "chunks": (STEP, "torchgpipe_size"),
    "copies": ("torchgpipe_size",),
}
MOST_LAYERS = 200  # largest number of layers that a page partitions
CHUNKS = 8  # default number of micro-batches in a step


def profile_model(experiment: Experiment, passes: Iterable | None) -> Profile:
    """Return the cost of each layer of the experiment's model for a mini-batch.

    Times are measured on this machine over `passes`; if None, they are computed from the kernels' prices on the
    experiment's device.
    """
    if passes is not None and experiment.precision in FORMATS:
        raise ValueError(
            f"precision: this machine only emulates {experiment.precision}, more slowly than it computes in float32; "
            "choose a device, whose times are computed from prices, or use float32."
        )
    built = workload_of(experiment)
    batch = built.batch(next(Batches(built.samples, experiment.batch, shuffle=built.shuffle)))
    if passes is None:
        return profiler.price_profile(built, batch, parse_device(experiment.device))
    return profiler.measure_profile(built, batch, passes)


def read_profile(path: str) -> Profile:
    """Return the profile in a file. Raise ValueError if the file contains none, or one that cannot be partitioned."""
    try:
        profile = load(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not a text table; write one with `profile --out {path}`.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not any(profile.times):
        raise ValueError(
            f"{path}: no layer takes any time, so there is nothing to divide; give at least one layer a time above 0."
        )
    return profile


def read_text(text: str) -> Profile:
    """Parse a text in the format of a profile file. Raise ValueError if it has another format."""
    profile = read(text.strip().splitlines())
    if not any(profile.times):
        raise ValueError(
            "no layer takes any time, so there is nothing to divide; give at least one layer a time above 0."
        )
    if len(profile.layers) > MOST_LAYERS:
        raise ValueError(f"{len(profile.layers)} layers are too many here; use at most {MOST_LAYERS}.")
    return profile


def profile_text(profile: Profile) -> str:
    """Return a profile, to three significant digits, as text that `read_text` can read."""
    rows = zip(profile.layers, *(getattr(profile, name) for name in NUMBERS), strict=True)
    lines = [",".join([layer, *(f"{number:.3g}" for number in numbers)]) for layer, *numbers in rows]
    return "\n".join([",".join(("layer", *NUMBERS)), *lines])


def stage_times(profile: Profile, plan: Partition) -> list[tuple[float, float]]:
    """Return the (forward, backward) times of each stage, in s."""
    parts = [slice(stage.first, stage.last + 1) for stage in plan.stages]
    return [(sum(profile.forward[part]), sum(profile.backward[part])) for part in parts]


def stage_costs(profile: Profile, plan: Partition, study: Study) -> str:
    """Return the costs of a plan's stages for the schedule of `study`, as text in the format of its plan, such as
    "0F=1.2 0B=2.3 1F=0.9".

    They are scaled so that all forwards together take as long as in the plan of `study`; I and W are each half a
    backward. Raise ValueError if the text would be too long, or no forward takes any time.
    """
    if not any(profile.forward):
        raise ValueError(
            "no forward takes any time, so the other costs cannot be scaled; give a layer a forward time above 0."
        )
    unit = sum(profile.forward) / (study.plan.forward * study.summary["ranks"])
    known = [KINDS[kind] for kind in np.unique(study.ops["kind"])]
    words = []
    for stage, (forward, backward) in enumerate(stage_times(profile, plan)):
        costs = {"F": forward, "R": forward, "B": backward, "I": backward / 2, "W": backward / 2}
        for kind in (kind for kind in known if kind in costs):
            cost = costs[kind] / unit
            words.append(f"{stage}{kind}={cost if cost >= LEAST else 0:.3g}")
    text = " ".join(words)
    if len(text) > LONGEST_COSTS:
        raise ValueError(f"the costs of {len(plan.stages)} stages do not fit into one line of text; use fewer ranks.")
    return text


def read_levels(workers: str, bandwidth: str) -> Levels:
    """Parse a machine's levels from texts such as "2,3" and "NVLink,10GbE". Raise ValueError if they are invalid or do
    not match.
    """
    counts, rates = read_counts("workers", workers), [_read_rate(text) for text in bandwidth.split(",")]
    if len(counts) != len(rates):
        raise ValueError(
            f"workers {workers} has {len(counts)} levels, but bandwidth {bandwidth} has {len(rates)}; give one of "
            "each per level, as in --workers 2,3 --bandwidth NVLink,10GbE."
        )
    return list(zip(counts, rates, strict=True))


def read_counts(name: str, text: str) -> list[int]:
    """Parse whole numbers in a text such as "2,3". Raise ValueError, naming `name`, if the text is anything else."""
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise ValueError(f"{name} is {text[:60]!r}; write whole numbers separated by commas, for example 4 or 2,3.")
    return [int(number) for number in text.split(",")]


def _read_rate(text: str) -> float:
    if (name := match_name(text, NETWORKS)) in NETWORKS:
        return NETWORKS[name].between.bandwidth
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError(
            f"bandwidth is {text[:60]!r}; give bytes per second, for example 1e9, or {', '.join(NETWORKS)}."
        )
    return rate


def plan(profile: Profile, levels: Levels, method: str, own: Sequence[int] = (), **given: Any) -> Partition:
    """Return the plan that `method` finds, or the one with your `own` cuts; `given` are options of the method.

    Raise ValueError for an unknown method, for another method's options, or for a model that cannot be cut this way.
    """
    if not own and method not in METHODS:
        raise ValueError(f"there is no method {method[:60]!r}; choose one of {', '.join(METHODS)}.")
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    for name in given:
        if method not in GOES_WITH[name]:
            raise ValueError(f"--{name} applies to {', '.join(GOES_WITH[name])}, not to {method}; remove it.")
    if method in FORM_OF:
        found = partition(profile, levels, FORM_OF[method], **given)
        return replace(found, stages=flat(found.stages))
    if method == STEP and len(levels) == 1:
        return partition_step(profile, *levels[0], **{"chunks": CHUNKS} | given)
    if len(levels) > 1:
        raise ValueError(
            f"{method} does not support machines with several workers each; give one number of workers, or use sosp."
        )
    workers, bandwidth = levels[0]
    if own and workers != len(own):
        raise ValueError(
            f"{method} makes {len(own)} stages, which need {len(own)} workers; remove --workers {workers}."
        )
    if not own:
        quantity, balanced = BALANCES[method]
        own = balanced(profile.times if quantity == "times" else profile.sizes(**given), workers)
    return plan_of(profile, own, bandwidth)


def communication(
    profile: Profile, plan: Partition, method: str, bandwidth: float, compression: float | None = None
) -> list[tuple[float, float]]:
    """Return a pair of times for each stage: for its gradient exchange, and for its link to the next stage. They are in
    s per mini-batch, counted as `method` does.
    """
    form, seconds = FORM_OF.get(method, "2018"), []
    for n, (first, last, replicas, _) in enumerate(plan.stages):
        weights = sum(profile.weights[first : last + 1])
        exchange = ring(weights, replicas, bandwidth) if plan.chunks else FORMS[form](0, weights, replicas, bandwidth)
        seconds.append((exchange, link(profile, plan.stages, n, bandwidth, form, compression)))
    return seconds

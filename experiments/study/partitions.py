"""Partitioners: where to cut a profiled model for a pipeline, by the dynamic programs and by the heuristics.

    plan(profile, [(4, 1e9)], "pipedream")      4 workers with 1 GB/s between them

A method of FORM_OF is a dynamic program over stages and replicas, STEP one for a step that ends in a flush; those of
BALANCES give each worker one stage.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import workloads
from cluster.devices import parse_device
from cluster.network import NETWORKS
from experiments.measure import profile as profiler
from experiments.specification.experiment import Experiment
from experiments.study.schedules import KINDS, LEAST, LONGEST_COSTS, Study
from knobs import match_name
from theory import balance
from theory.partition_dapple import partition_step, ring
from theory.partition_pipedream import FORMS, Partition, flat, link, partition, plan_of
from theory.profile import NUMBERS, Profile, load, read
from workloads.batches import Batches

LEAST_RATE, MOST_RATE = 1e-6, 1e15  # bytes/s, or what a toy counts in
Levels = Sequence[tuple[int, float]]
"""(workers, bytes/s between them) of each level of the machine, from the innermost out."""

MODEL_OF = "pipedream"  # whose model is profiled if the reader asks for no other: the one that pipelines train
FORM_OF = {"pipedream": "2018", "pipedream_code": "code", "sosp": "sosp", "ring": "ring"}  # of the dynamic program
BALANCES: dict[str, tuple[str, Callable]] = {  # what is balanced, and how
    "min_max": ("times", balance.by_slowest),
    "variance": ("times", balance.by_variance),
    "torchgpipe_time": ("times", balance.by_blocks),
    "torchgpipe_size": ("sizes", balance.by_blocks),
    "blocks": ("times", lambda costs, parts: balance.by_blocks(costs, parts, offset=False)),
}
STEP = "dapple"  # which makes a step with a flush quick, not the period of a full pipeline
METHODS = (*FORM_OF, STEP, *BALANCES)
GOES_WITH = {  # option -> methods
    **dict.fromkeys(("memory", "straight"), (*FORM_OF, STEP)),
    "fewer": tuple(FORM_OF),
    "compression": ("pipedream_code",),
    "chunks": (STEP, "torchgpipe_size"),
    "copies": ("torchgpipe_size",),
}
MOST_LAYERS = 200  # that a page cuts at once
CHUNKS = 8  # micro-batches of a step, if none are given


def profiled(experiment: Experiment, passes: Iterable | None) -> Profile:
    """Return what each layer of the experiment's model costs in a mini-batch.

    Times are measured here in `passes`, or without them computed from the kernels' prices on the experiment's device.
    """
    module = workloads.find(experiment.workload)
    built = module.build(module.Settings(**experiment.data), np.dtype(experiment.precision))
    batch = built.batch(next(Batches(built.samples, experiment.batch, shuffle=built.shuffle)))
    if passes is None:
        return profiler.priced(built, batch, parse_device(experiment.device))
    return profiler.measured(built, batch, passes)


def read_profile(path: str) -> Profile:
    """Read a profile from a file. ValueError in one sentence if it is none, or none that can be cut."""
    try:
        profile = load(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is no table of text; write one with `profile --out {path}`.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not any(profile.times):
        raise ValueError(f"{path}: no layer takes any time, so there is nothing to share out.")
    return profile


def read_text(text: str) -> Profile:
    """Read a profile from text of the same form. ValueError in one sentence."""
    profile = read(text.strip().splitlines())
    if not any(profile.times):
        raise ValueError("no layer takes any time, so there is nothing to share out.")
    if len(profile.layers) > MOST_LAYERS:
        raise ValueError(f"{len(profile.layers)} layers are too many here; at most {MOST_LAYERS} are cut.")
    return profile


def written(profile: Profile) -> str:
    """Return a profile as `read_text` reads it, to three digits."""
    rows = zip(profile.layers, *(getattr(profile, name) for name in NUMBERS), strict=True)
    lines = [",".join([layer, *(f"{number:.3g}" for number in numbers)]) for layer, *numbers in rows]
    return "\n".join([",".join(("layer", *NUMBERS)), *lines])


def stage_times(profile: Profile, plan: Partition) -> list[tuple[float, float]]:
    """Return (forward, backward) of each stage, s."""
    parts = [slice(stage.first, stage.last + 1) for stage in plan.stages]
    return [(sum(profile.forward[part]), sum(profile.backward[part])) for part in parts]


def stage_costs(profile: Profile, plan: Partition, study: Study) -> str:
    """Return what the stages of a plan cost in the schedule of `study`, as its plan has it: "0F=1.2 0B=2.3 1F=0.9".

    Forwards take as long together as those of even stages; I and W are half a backward each. ValueError if there are
    too many stages to be written down, or no forward takes any time.
    """
    if not any(profile.forward):
        raise ValueError("no forward takes any time, so there is nothing to measure the others by.")
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
        raise ValueError(f"the costs of {len(plan.stages)} stages are too long to be written down; use fewer ranks.")
    return text


def read_levels(workers: str, bandwidth: str) -> Levels:
    """Read "2,3" and "NVLink,10GbE". ValueError in one sentence if they do not read, or do not belong together."""
    counts, rates = read_counts("workers", workers), [_read_rate(text) for text in bandwidth.split(",")]
    if len(counts) != len(rates):
        raise ValueError(
            f"workers {workers} are {len(counts)} levels and bandwidth {bandwidth} {len(rates)}; "
            "give one of each per level, as in --workers 2,3 --bandwidth NVLink,10GbE."
        )
    return list(zip(counts, rates, strict=True))


def read_counts(name: str, text: str) -> list[int]:
    """Read whole numbers with commas, "2,3". ValueError, naming `name`, if they do not read."""
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise ValueError(f"{name} is {text[:60]!r}; write whole numbers with commas, for example 4 or 2,3.")
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
    """Return the plan of `method`, or of the cuts `own`; `given` are options of the method.

    ValueError in one sentence for an unknown method, options of another one, or a model that cannot be cut like this.
    """
    if not own and method not in METHODS:
        raise ValueError(f"there is no method {method[:60]!r}; there are {', '.join(METHODS)}.")
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    for name in given:
        if method not in GOES_WITH[name]:
            raise ValueError(f"--{name} goes with {', '.join(GOES_WITH[name])}, not with {method}; leave it out.")
    if method in FORM_OF:
        found = partition(profile, levels, FORM_OF[method], **given)
        return replace(found, stages=flat(found.stages))
    if method == STEP and len(levels) == 1:
        return partition_step(profile, *levels[0], **{"chunks": CHUNKS} | given)
    if len(levels) > 1:
        raise ValueError(f"{method} knows no machines of workers; give one number of workers, or use sosp.")
    workers, bandwidth = levels[0]
    if own and workers != len(own):
        raise ValueError(f"{method} are {len(own)} stages, for as many workers; leave --workers {workers} out.")
    if not own:
        quantity, balanced = BALANCES[method]
        own = balanced(profile.times if quantity == "times" else profile.sizes(**given), workers)
    return plan_of(profile, own, bandwidth)


def communication(
    profile: Profile, plan: Partition, method: str, bandwidth: float, compression: float | None = None
) -> list[tuple[float, float]]:
    """Return seconds per mini-batch that each stage exchanges gradients and uses the link after it, by `method`."""
    form, seconds = FORM_OF.get(method, "2018"), []
    for n, (first, last, replicas, _) in enumerate(plan.stages):
        weights = sum(profile.weights[first : last + 1])
        exchange = ring(weights, replicas, bandwidth) if plan.chunks else FORMS[form](0, weights, replicas, bandwidth)
        seconds.append((exchange, link(profile, plan.stages, n, bandwidth, form, compression)))
    return seconds

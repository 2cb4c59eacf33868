"""Divergence: which changed setting makes a run diverge and, where a formula explains it, why."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import algorithms.compression as compressions
from experiments.specification.experiment import Experiment, default_rate, format_value, starting_point

NEUTRAL = (
    *("algorithm", "workload", "learning_rate", "seed", "evaluations", "precision"),
    *("cluster", "rank_memory", "pause", "crash"),
)
"""Settings that cannot cause a divergence, or that are reported separately."""
BUDGET = ("steps", "epochs", "seconds", "target_loss")
TIMING = (
    *("network", "latency", "bandwidth", "device", "per_node", "nics", "collective"),
    *("jitter", "slow"),
)
"""Settings that do not affect the training of a deterministic method."""
FEW = 3  # most settings that are named


class Cause(NamedTuple):
    """A sentence on why a run diverged or what to try, and the settings to reset, each with its default."""

    sentence: str
    undo: dict[str, Any]


def cause(e: Experiment) -> Cause:
    """Return the most likely reason why `e` diverges, judging by its settings.

    Considered in turn: the formulas of the algorithm and the compression, a learning rate above its default, more
    workers where gradients are stale, and anything else that differs from its default.
    """
    begun = _begun(e)
    rate, usual = e.settings.get("learning_rate"), begun.get("learning_rate")
    faster = rate is not None and usual is not None and rate > usual
    for name, why in (*e.method.unstable(e), *_unstable_coding(e)):
        return Cause(why, {name: begun.get(name)})
    if faster:
        return Cause(
            f"the learning rate is {rate:g} instead of {usual:g}, and steps that are too long overshoot by more each "
            "time; use a smaller one",
            {"learning_rate": usual},
        )
    changed = [name for name in e.flat() if name in begun and _may_matter(e, name, begun[name])]
    if "workers" in changed and e.workers > begun["workers"] and e.servers and not e.method.is_deterministic(e.knobs):
        return Cause(
            f"with {e.workers} workers gradients are older when they are applied than with {begun['workers']}, and the "
            "largest stable learning rate is proportional to 1 / age; use fewer workers or a smaller learning rate",
            {"workers": begun["workers"]},
        )
    if changed:  # and the rate is at most the default, so it is not the cause
        own = [name for name in changed if name in e.settings] or changed
        told = [f"{name} is {_said(_value(e, name))} instead of {_said(begun[name])}" for name in own[:FEW]]
        back = "try the default" if len(own) == 1 else "reset these one by one"
        return Cause(f"what differs from the defaults: {', '.join(told)}; {back}", {own[0]: begun[own[0]]})
    return Cause("no other setting explains it; try a smaller learning rate, or another seed", {})


def _unstable_coding(e: Experiment) -> Iterable[tuple[str, str]]:
    """Return (setting, reason) pairs for which the formula of the compression predicts that `e` diverges."""
    return () if e.compression == "none" else compressions.find(e.compression).unstable(e)


def _may_matter(e: Experiment, name: str, default: Any) -> bool:
    """Return True if this setting of `e` differs from its default and is one that can make training diverge."""
    if _value(e, name) == default or (default == "" and name not in TIMING):
        return False
    if name == "workers" and e.workers < default:
        return False
    own = name in {**e.settings, **e.data, **e.coding}
    idle = (*NEUTRAL, *BUDGET, *(TIMING if e.method.is_deterministic(e.knobs) else ()))
    return (own and name != "learning_rate") or name not in idle


def _begun(e: Experiment) -> dict[str, Any]:
    """Return the default of every setting, nested ones included, by name."""
    start = Experiment(algorithm=e.algorithm, compression=e.compression, workload=e.workload, cluster=e.cluster)
    rate = default_rate(e.algorithm, e.workload, e.data, e.workers)
    first = starting_point(e.algorithm, e.workload)
    values = {**start.model_dump(mode="json"), **start.data, **start.coding, **start.settings, **first, **rate}
    return {**values, "compression": "none"}


def _value(e: Experiment, name: str) -> Any:
    nested = {**e.settings, **e.data, **e.coding}
    return nested[name] if name in nested else e.model_dump(mode="json")[name]


def _said(value: Any) -> str:
    return "auto" if value is None else format_value(value) or "none"

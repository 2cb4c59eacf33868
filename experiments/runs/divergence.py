"""Divergence: which setting a diverging run was changed in, and why that makes it diverge where a formula says so."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.experiment import Experiment, default_rate, spelled, starting_point

NEUTRAL = ("seed", "evaluations", "precision")  # fields that hardly make a run diverge
FEW = 3  # changed settings that are named


class Cause(NamedTuple):
    """Settings that were changed, each with the value that it begins with; a sentence says why, or what to try."""

    sentence: str
    undo: dict[str, Any]


def cause(e: Experiment) -> Cause:
    """Return what makes `e` diverge, as far as its settings tell.

    First what the algorithm's own formula says, then a learning rate above its default, then what else was changed.
    """
    begun = _begun(e)
    for name, why in e.method.unstable(e):
        return Cause(why, {name: begun.get(name)})
    changed = [name for name in e.flat() if name in {**e.settings, **e.data, **e.coding} or name not in NEUTRAL]
    changed = [name for name in changed if name in begun and name not in ("algorithm", "workload", "learning_rate")]
    rate, usual = e.settings.get("learning_rate"), begun.get("learning_rate")
    if rate is not None and usual is not None and rate > usual:
        return Cause(
            f"the learning rate was changed from {usual:g} to {rate:g}, and steps that are too long overshoot by more "
            "each time; use a smaller one",
            {"learning_rate": usual},
        )
    if changed:  # and the rate is no larger than it begins with, so that it is no cause
        own = [name for name in changed if name in e.settings] or changed
        told = [f"{name} from {_said(begun[name])} to {_said(_value(e, name))}" for name in own[:FEW]]
        return Cause(f"changed were {', '.join(told)}; undo what you changed last", {own[0]: begun[own[0]]})
    return Cause("every setting has its default; try a smaller learning_rate, or another seed", {})


def _begun(e: Experiment) -> dict[str, Any]:
    """Return the value that each setting begins with, by flat name."""
    start = Experiment(algorithm=e.algorithm, compression=e.compression, workload=e.workload, cluster=e.cluster)
    rate = default_rate(e.algorithm, e.workload, e.data, e.workers)
    first = starting_point(e.algorithm, e.workload)
    return {**start.model_dump(mode="json"), **start.data, **start.coding, **start.settings, **first, **rate}


def _value(e: Experiment, name: str) -> Any:
    nested = {**e.settings, **e.data, **e.coding}
    return nested[name] if name in nested else e.model_dump(mode="json")[name]


def _said(value: Any) -> str:
    return "auto" if value is None else spelled(value) or "none"

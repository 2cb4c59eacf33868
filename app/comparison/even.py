"""Even out a comparison of two runs, with a switch each for equal chunks, equal work and the best learning rates."""

from pathlib import Path
from typing import Any

import streamlit as st

from app.charts import Shown
from app.session import background, pins, session
from app.settings import best_rate, chosen, feasible
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment, default_rate

CHUNKS, WORK, RATES = "Equal chunks", "Equal work", "Best rates"
SAME_WORK = 0.02  # share by which the samples of two runs may differ and still count as equal work
HELP = (
    "Switch on what both runs should have in common; the run on the page is changed and run again. "
    f"*{CHUNKS}*: cut a mini-batch into the same number of micro-batches. *{WORK}*: train on the same number of "
    f"samples, in more or fewer steps. *{RATES}*: use the best learning rate that is known for each; if necessary, the "
    "other run is changed, too."
)

Changes = tuple[dict[str, Any], dict[str, Any]]
"""The settings to change in each of two runs: their new values, by name."""


def offer(before: Shown | None, own: Shown) -> None:
    """Draw a switch for each respect in which the two runs are uneven, and for each that has been evened out."""
    if before is None or (before.ghost and len(pins.names()) >= pins.MOST):
        return
    wanted = find_changes(before.run, own.run)
    there = [name for name, changes in wanted.items() if any(changes) or name in _undoing()]
    if there:
        on = [name for name in there if not any(wanted[name])]
        st.session_state.even = on
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("Compare at", width="content", help=HELP)
            st.pills(
                "Compare at", there, selection_mode="multi", key="even", label_visibility="collapsed",
                on_change=_change, args=(before, own.run.experiment, wanted, on),
            )  # fmt: skip


def find_changes(before: Run, now: Run) -> dict[str, Changes]:
    """Return, for each switch, the changes that even out two runs in that respect; impossible ones are left out."""
    was, has = before.experiment, now.experiment
    if {was.cluster, has.cluster} != {"simulated"}:
        return {}
    wanted: dict[str, Changes] = {}
    if "chunks" in was.settings and "chunks" in has.settings:
        wanted[CHUNKS] = {}, {"chunks": was.settings["chunks"]}
    samples = before.summary.get("samples"), now.summary.get("samples")
    if was.steps and has.steps and all(samples) and {before.status, now.status} == {"finished"}:
        ratio = samples[0] / samples[1]
        wanted[WORK] = {}, {} if abs(ratio - 1) <= SAME_WORK else {"steps": max(1, round(has.steps * ratio))}
    rates = [_best_rate(e) for e in (was, has)]
    if all(rates):
        wanted[RATES] = rates[0], rates[1]
    found = {name: (_differing(was, changes[0]), _differing(has, changes[1])) for name, changes in wanted.items()}
    return {name: changes for name, changes in found.items() if _apply((was, has), changes)}


def _best_rate(e: Experiment) -> dict[str, Any]:
    """Return the settings that give the experiment its best learning rate or, if that is unknown, its method's default.

    With a compression, which may need a very different rate, there is no default: return {}.
    """
    if known := best_rate.known_rate(e):
        return {"learning_rate": known}
    return default_rate(e.algorithm, e.workload, e.data, e.workers) if e.compression == "none" else {}


def _differing(e: Experiment, changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if _value(e, name) != value}


def _value(e: Experiment, name: str) -> Any:
    return e.settings[name] if name in e.settings else getattr(e, name)


def _apply(pair: tuple[Experiment, Experiment], changes: Changes) -> tuple[Experiment, Experiment] | None:
    """Return the experiments with these changes, or None if one of them cannot run."""
    try:
        was, has = (e.change(**change) for e, change in zip(pair, changes, strict=True))
    except ValueError:
        return None
    return None if feasible.refusal(was) or feasible.refusal(has) else (was, has)


def _undoing() -> dict[str, Changes]:
    """Return, for each switch that is on, the changes that undo it."""
    return st.session_state.setdefault("undoing", {})


def _change(before: Shown, own: Experiment, wanted: dict[str, Changes], on: list[str]) -> None:
    """Apply the switch that was clicked: pin the reference, and run the other experiment."""
    clicked = {*st.session_state.even} ^ {*on}
    if not clicked:  # the page was reset meanwhile
        return
    (name,) = clicked
    pair = before.run.experiment, own
    changes = _undoing().pop(name) if name in on else wanted[name]
    if name not in on:
        was, has = ({n: _value(e, n) for n in change} for e, change in zip(pair, changes, strict=True))
        _undoing()[name] = was, has
    reference, now = _apply(pair, changes) or pair
    if reference == before.run.experiment:
        if before.ghost:
            pins.add(before.folder)
    elif folder := background.ask_soon(reference, "even").folder:
        pins.remove(Path(before.folder).name)
        pins.add(str(folder))
    chosen.put(now)
    session.start(now)

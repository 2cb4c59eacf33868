"""What a sweep varies: the available settings, their values, and the resulting experiments."""

from typing import Any

import streamlit as st

from app.settings import feasible
from app.settings.controls import Control, control, owners
from experiments.runs.scaling import batch_per_worker, global_batch
from experiments.specification.experiment import Experiment

COMMON = ("workers", "batch", "latency")
DELAYS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)  # s, for a latency that was left to the preset
MOST = 64  # most workers of a sweep, unless the run on the page has more: larger runs take a minute here
STOP, STOPS = "~", 16  # between the stops that a link requests, and the most it may request


def axes(e: Experiment) -> list[str]:
    """Return the settings that can be swept: workers, batch size, latency, and the algorithm's own delays."""
    own = e.method.Settings
    return [*COMMON, *(name for name in own.model_fields if control(own, name).postpones)]


def of(e: Experiment, axis: str, strong: bool = False) -> tuple[list, str]:
    """Return the values of a sweep. If it varies the number of workers, also return the reason why it stops at the last
    one.
    """
    if axis == "workers":
        return worker_stops(e, strong)
    return values(control_of(e, axis), _value(e, axis)), ""


def worker_stops(e: Experiment, strong: bool = False) -> tuple[list[int], str]:
    """Return the numbers of workers for a sweep, and the reason why they end at the last one.

    They are the powers of two and the experiment's own number, except those that cannot run.
    """
    stops = sorted({e.workers, *(2**n for n in range(MOST.bit_length()) if 2**n <= MOST)})
    refused = {n: _refusal(e, n, strong) for n in stops}
    able = [n for n in stops if not refused[n]]
    beyond = [n for n in stops if refused[n] and n > max(able, default=0)]
    most = f"Up to {max(able, default=0)} workers:"
    if beyond:
        return able, f"{most} {beyond[0]} cannot train this, because {refused[beyond[0]]}"
    return able, f"{most} larger runs would take too long here."


def values(one: Control, now: Any) -> list:
    """Return the values for a sweep of a setting other than workers: all its options, or two steps on each side of
    `now`.
    """
    if one.kind in ("choice", "list"):
        return list(one.options)
    if one.kind == "switch":
        return [False, True]
    if not one.whole:
        stops = [now * factor for factor in (0.01, 0.1, 1, 10, 100)] if now else DELAYS
    else:
        start = now or 1
        stops = [0] * (now == 0) + [max(1, round(start * 2.0**n)) for n in (-2, -1, 0, 1, 2)]
    low, high = one.low if one.low is not None else 0, one.high if one.high is not None else float("inf")
    return sorted({stop for stop in stops if low <= stop <= high})


def sweep_in_address(e: Experiment) -> tuple[str, list]:
    """Return the setting and the values to sweep that the page's link asks for, such as `stops=workers~1~8~64`.

    Return ("", []) if it asks for none.
    """
    axis, *words = st.query_params.get("stops", "").split(STOP)
    if axis not in owners(e.algorithm, e.compression, e.workload):
        return "", []
    stops = []
    for word in words[:STOPS]:
        try:
            stops.append(_value(e.change(**{axis: word}), axis))
        except ValueError:
            stops.append(word)  # the run reports what is wrong with it
    return axis, stops


def control_of(e: Experiment, name: str) -> Control:
    return control(owners(e.algorithm, e.compression, e.workload)[name], name)


def with_settings(e: Experiment, settings: dict[str, Any], strong: bool = False) -> Experiment | str:
    """Return the experiment with these settings, or a message that says why it cannot run. With `strong`, the global
    batch stays the same.
    """
    try:
        other = e.change(**settings)
        return other.change(batch=batch_per_worker(other, global_batch(e))) if strong else other
    except ValueError as error:
        return str(error)


def _refusal(e: Experiment, workers: int, strong: bool) -> str:
    made = with_settings(e, {"workers": workers}, strong)
    return made if isinstance(made, str) else feasible.refusal(made)


def _value(e: Experiment, axis: str) -> Any:
    return {**e.model_dump(mode="json"), **e.data, **e.coding, **e.settings}[axis]

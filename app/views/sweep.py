"""The sweep: the run on the page with one setting varied, as small pictures side by side."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import background, charts, session
from app.charts import Shown
from app.controls import Control, control, owners, spoken
from app.text import escaped, sentence
from app.views import compare
from app.views.pictures import chart, heading, lines
from experiments import units
from experiments.experiment import Experiment
from experiments.jobs.pool import JobState
from experiments.plots import curves
from experiments.runs.record import Run

COMMON = ("workers", "batch", "latency")
DELAYS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)  # s, for a latency that was left to the preset
MOST = 64  # workers of a sweep, unless the run on the page has more
STOP, STOPS = "~", 16  # between the stops that a link asks for, and how many it may


def axes(e: Experiment) -> list[str]:
    """Return what can be swept: workers, batch size, latency, and the algorithm's own delays."""
    own = e.method.Settings
    return [*COMMON, *(name for name in own.model_fields if control(own, name).delay)]


def values(one: Control, now: Any) -> list:
    """Return the values of a sweep: around `now`, two steps to each side."""
    if one.kind in ("choice", "list"):
        return list(one.options)
    if one.kind == "switch":
        return [False, True]
    if not one.whole:
        stops = [now * factor for factor in (0.01, 0.1, 1, 10, 100)] if now else DELAYS
    else:
        start = now or 1
        stops = [0] * (now == 0) + [max(1, round(start * 2.0**n)) for n in (-2, -1, 0, 1, 2)]
        if one.name == "workers":
            stops = [1, *(n for n in stops if n <= max(MOST, now))]
    low, high = one.low if one.low is not None else 0, one.high if one.high is not None else float("inf")
    return sorted({stop for stop in stops if low <= stop <= high})


def linked(e: Experiment) -> tuple[str, list]:
    """Return what the page's link asks to turn, `stops=workers~1~8~64`, and its values; ("", []) if nothing."""
    axis, *words = st.query_params.get("stops", "").split(STOP)
    if axis not in owners(e.algorithm, e.compression, e.workload):
        return "", []
    stops = []
    for word in words[:STOPS]:
        try:
            stops.append(_value(e.change(**{axis: word}), axis))
        except ValueError:
            stops.append(word)  # the run says what is wrong with it
    return axis, stops


def _value(e: Experiment, axis: str) -> Any:
    return {**e.model_dump(mode="json"), **e.data, **e.coding, **e.settings}[axis]


def show(run: Run) -> None:
    """Draw the choice of what is swept, and the runs."""
    heading("Sweep", "The same run again and again with one setting turned, everything else as it is on the page.")
    e = run.experiment
    if e.cluster != "simulated":
        st.info("Sweeps are made on the simulated cluster: run this there first.", icon=":material/tune:")
        return
    wanted, given = linked(e)
    names = list(dict.fromkeys([*axes(e), *filter(None, [wanted])]))
    if (asked := st.query_params.get("sweep")) in names:  # a link has the name; the widget would look for its label
        st.session_state.setdefault("sweep", asked)
    st.segmented_control(
        "Turn", names, key="sweep", bind="query-params", label_visibility="collapsed",
        format_func=lambda name: spoken(name).replace("_", " "),
    )  # fmt: skip
    axis = st.session_state.sweep
    if axis not in names:
        st.caption("Choose what to turn: five or six runs are made, those that were made before are just shown.")
        return
    one = control(owners(e.algorithm, e.compression, e.workload)[axis], axis)
    stops = given if axis == wanted else values(one, _value(e, axis))
    states = [_ask(e, axis, value, number) for number, value in enumerate(stops)]
    under_way = {n: value for n, (value, state) in enumerate(zip(stops, states, strict=True)) if state.active}
    if under_way:
        keys = {f"sweep-{n}": e.change(**{axis: value}).key() for n, value in under_way.items()}
        background.progress(keys, len(states))
    _strip(one, [(value, state) for value, state in zip(stops, states, strict=True) if not state.active])


def _ask(e: Experiment, axis: str, value: Any, number: int) -> JobState:
    """Return the state of the run with this value; it is submitted once."""
    try:
        return background.ask(e.change(**{axis: value}), f"sweep-{number}")
    except ValueError as error:
        return JobState("failed", message=str(error))


def _strip(one: Control, made: list[tuple[Any, JobState]]) -> None:
    """Draw the loss of each run small, what the runs have in common below, and which could not run."""
    shown, stops = [], []
    for value, state in made:
        if state.folder is None:
            st.caption(
                f":material/block: {escaped(f'{spoken(one.name)} {one.words(value)}')}: {sentence(state.message)}"
            )
            continue
        folder = str(state.folder)
        shown.append(Shown(f"{spoken(one.name)} {one.words(value)}", session.load(folder), 0, folder))
        stops.append(value)
    if not shown:
        return
    axis, log = st.session_state.axis, st.session_state.log
    most, top = charts.reach(shown, axis)
    grid = st.grid(min_column_width=165, gap="small", key="strip")
    for number, each in enumerate(shown):
        with grid.container(gap="xxsmall"):
            st.markdown(f"**{escaped(each.name)}**")
            lines(charts.panel, [each], compare.ending(each), axis, log, most, top, key=f"panel-{number}")
    left, right = st.columns(2, gap="medium")
    if one.name == "workers" and len(shown) > 1:
        loss = _common(shown)
        told = _scaling(shown, stops, loss)
        with left:
            heading("Speed-up", "How many times faster than the run with the fewest workers; the dotted line is ideal.")
            chart(charts.speed_up, shown, told, tuple(stops), loss)
        with right:
            heading("Efficiency", "Speed-up as a share of the ideal one.")
            chart(charts.efficiency, shown, told, tuple(stops), loss)
        st.caption(told)
    elif len(shown) > 1:
        names = tuple(one.words(value) for value in stops)
        for side, figure, word, title in (
            (left, "samples_per_second", "Samples per second", ""),
            (right, "held_out_loss", "Held-out loss at the end", ""),
        ):
            with side:
                heading(word)
                chart(charts.outcome, shown, word, names, figure, title, spoken(one.name), key=f"outcome-{figure}")
    compare.table(shown)


def _common(shown: list[Shown]) -> float | None:
    """Return the lowest held-out loss that all of them reached."""
    best = [one.run.summary["best_held_out_loss"] for one in shown]
    return max(best) if None not in best else None


def _scaling(shown: list[Shown], stops: list[int], loss: float | None) -> str:
    """Return the speed-up in words."""
    first, last = shown[0].run.summary, shown[-1].run.summary
    faster = (last["samples_per_second"] or 0.0) / (first["samples_per_second"] or 1.0)
    told = f"{stops[-1]} workers do {units.number(faster)} times as many samples per second as {stops[0]}"
    ideal = stops[-1] / stops[0]
    told += f", {units.percent(faster / ideal)} of the ideal {units.number(ideal)}"
    if loss is None:
        return f"{told}."
    times = [curves.reached(one.run, loss) for one in (shown[0], shown[-1])]
    if not all(times):  # the start was not improved on
        return f"{told}."
    return f"{told}; to a held-out loss of {units.number(loss)} {sooner(times[0] / times[1])}."


def sooner(times: float) -> str:
    """Return in words how much sooner the last comes than the first: it takes the first `times` as long."""
    if times >= 1:
        return f"they come {units.number(times)} times as fast"
    return f"they take {units.number(1 / times)} times as long"

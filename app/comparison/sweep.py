"""The sweep: the run on the page with one setting varied, as small pictures side by side."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from app import charts
from app.browser import address
from app.browser.text import escaped, sentence
from app.charts import Shown
from app.charts.axis import chosen as chosen_axis
from app.charts.pictures import heading, lines
from app.charts.words import ending
from app.comparison import changes, outcomes, table
from app.session import background, session
from app.settings import chosen, feasible
from app.settings.controls import Control, control, owners, spoken
from experiments.jobs.job import JobState
from experiments.jobs.spec import JobSpec
from experiments.runs.record import Run
from experiments.runs.scaling import divided, global_batch
from experiments.specification.experiment import Experiment
from experiments.study import rates

COMMON = ("workers", "batch", "latency")
DELAYS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)  # s, for a latency that was left to the preset
MOST = 64  # workers of a sweep, unless the run on the page has more: a run with more takes a minute here
MAPPED = 5  # values of each of two settings
BEST = (
    "Search for the learning rate at which each of these runs ends lowest, so that none is better or worse than "
    "another only by its rate. A search is about fifteen runs; those of the table of defaults are known."
)
DIVIDED = (
    "Divide the global batch of the run on the page among the workers, so that more workers take a smaller batch each: "
    "strong scaling. When off, each worker keeps its batch: weak scaling."
)
STOP, STOPS = "~", 16  # between the stops that a link asks for, and how many it may


def axes(e: Experiment) -> list[str]:
    """Return what can be swept: workers, batch size, latency, and the algorithm's own delays."""
    own = e.method.Settings
    return [*COMMON, *(name for name in own.model_fields if control(own, name).postpones)]


def values(one: Control, now: Any) -> list:
    """Return the values of a sweep of anything but workers: around `now`, two steps to each side."""
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


def worker_stops(e: Experiment, strong: bool = False) -> tuple[list[int], str]:
    """Return numbers of workers, doubling from 1 as far as the experiment can run; and what bounds them, in words."""
    stops = sorted({e.workers, *(2**n for n in range(MOST.bit_length()) if 2**n <= MOST)})
    refused = {n: _refusal(e, n, strong) for n in stops}
    able = [n for n in stops if not refused[n]]
    beyond = [n for n in stops if refused[n] and n > max(able, default=0)]
    if beyond:
        return able, f"With {beyond[0]} workers it cannot run: {refused[beyond[0]]}"
    return able, f"To {max(able, default=0)} workers: a run with more takes this page too long."


def _refusal(e: Experiment, workers: int, strong: bool) -> str:
    changed = _changed(e, {"workers": workers}, strong)
    return changed if isinstance(changed, str) else feasible.refusal(changed)


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
    heading(
        "Sweep",
        "The same run again and again with one setting turned, everything else as it is on the page; a learning rate "
        "that is the default there is each run's own default.",
    )
    e = run.experiment
    if e.cluster != "simulated":
        st.info("Sweeps are made on the simulated cluster: run this there first.", icon=":material/tune:")
        return
    wanted, given = linked(e)
    names = list(dict.fromkeys([*axes(e), *filter(None, [wanted])]))
    axis, other, best, strong = _choose(names, divisible=not (e.method.shares_samples or e.method.whole_batch))
    if axis is None:
        st.caption("Choose what to turn: about six runs are made, those that were made before are just shown.")
        return
    named = partial(_control, e)
    stops, bound = (given, "") if axis == wanted else _stops(e, axis, strong)
    if other:
        both = stops[:MAPPED], _stops(e, other)[0][:MAPPED]
        combined = [_changed(e, {axis: across, other: down}) for down in both[1] for across in both[0]]
        outcomes.mapped((named(axis), named(other)), both, _made(combined, best), _open)
        return
    states = _made([_changed(e, {axis: value}, strong) for value in stops], best)
    one = named(axis)
    if bound:
        st.caption(sentence(bound))
    _strip(one, [(value, state) for value, state in zip(stops, states, strict=True) if not state.active], best)


def _choose(names: list[str], divisible: bool) -> tuple[str | None, str | None, bool, bool]:
    """Draw what to turn; return one setting or None, another one to turn with it or None, whether at best rates, and
    whether workers divide one global batch, which they may if it is `divisible`."""

    def spelled(name: str) -> str:
        return spoken(name).replace("_", " ")

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        address.keep("sweep", names, None, spelled)
        axis = st.segmented_control(
            "Turn", names, key="sweep", label_visibility="collapsed", format_func=spelled, persist_state="session"
        )
        if axis is None:
            return None, None, False, False
        others = [name for name in names if name != axis]
        address.keep("sweep2", others, None, spelled)
        other = st.selectbox(
            "and", others, key="sweep2", format_func=spelled, width=190, placeholder="and ...", persist_state="session",
            label_visibility="collapsed", index=None,
        )  # fmt: skip
        best = address.toggle("Each at its best rate", "best", help=BEST)
        able = divisible and axis == "workers" and other is None
        strong = able and address.toggle("Same global batch", "strong", help=DIVIDED)
    return axis, other, best, strong


def _stops(e: Experiment, axis: str, strong: bool = False) -> tuple[list, str]:
    """Return the values of a sweep, and what bounds them."""
    if axis == "workers":
        return worker_stops(e, strong)
    return values(_control(e, axis), _value(e, axis)), ""


def _control(e: Experiment, name: str) -> Control:
    return control(owners(e.algorithm, e.compression, e.workload)[name], name)


def _changed(e: Experiment, settings: dict[str, Any], strong: bool = False) -> Experiment | str:
    """Return the experiment with these settings, in strong scaling with its global batch; or why there is none."""
    try:
        changed = e.change(**settings)
        return changed.change(batch=divided(changed, global_batch(e))) if strong else changed
    except ValueError as error:
        return str(error)


def _made(wanted: list[Experiment | str], best: bool) -> list[JobState]:
    """Return the states of these runs, each at its best rate if that is asked for; show how far they are."""
    states, active = [], {}
    for number, one in enumerate(wanted):
        place, work = f"sweep-{number}", one
        if best and not isinstance(one, str) and (rate := rates.tabled(one)) is None:
            place, work = f"sweep-rate-{number}", rates.job_spec(one)
        elif best and not isinstance(one, str):
            work = one.change(learning_rate=rate)
        state = JobState("failed", message=work) if isinstance(work, str) else background.ask(work, place)
        if isinstance(work, JobSpec) and state.folder:
            place, work = f"sweep-{number}", one.change(learning_rate=rates.read(state.folder))
            state = background.ask(work, place)
        if state.active:
            active[place] = work.key()
        states.append(state)
    if active:
        background.progress(active, len(states))
    return states


def _strip(one: Control, made: list[tuple[Any, JobState]], best: bool) -> None:
    """Draw the losses over each other and small, what the runs have in common below, and which could not run."""
    shown, stops = [], []
    found = {
        session.load(str(state.folder)).experiment.settings.get("learning_rate") for _, state in made if state.folder
    }
    rated = best or (len(found) > 1 and one.name != "learning_rate")
    for number, (value, state) in enumerate(made):
        if state.folder is None:
            st.caption(f":material/block: {escaped(_called(one, value))}: {sentence(state.message)}")
            continue
        run, share = session.load(str(state.folder)), number / max(len(made) - 1, 1)
        rate = f", rate {run.experiment.settings['learning_rate']:g}" if rated else ""
        name = f"{_called(one, value)}{rate}"
        shown.append(Shown(name, run, number, str(state.folder), share=share))
        stops.append(value)
    if not shown:
        return
    along, log = chosen_axis()
    if alike := len(shown) > 1 and same_model(shown):
        along = "seconds" if along == "step" else along
        st.caption(
            f":material/equal: All of them end with the same model, to the bit: {spoken(one.name)} changes when, and "
            "not what. So their losses are drawn against the time."
        )
    most, top = charts.reach(shown, along)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        ends = " ".join(f"{each.name}: {ending(each)}" for each in shown)
        lines(charts.overlaid, shown, ends, along, log, most, top, key="overlaid")
    with right:
        grid = st.grid(min_column_width=165, gap="small", key="strip")
        for number, each in enumerate(shown):
            with grid.container(gap="xxsmall", key=f"thumb-{number}"):
                st.button(
                    each.name, key=f"open-{number}", type="tertiary", help="Open this run", on_click=_open,
                    args=(each.run.experiment,),
                )  # fmt: skip
                lines(charts.panel, [each], ending(each), along, log, most, top, key=f"panel-{number}")
    if len(shown) > 1:
        outcomes.compared(one, shown, stops, alike)
    table.show(shown)


def _called(one: Control, value: Any) -> str:
    """Return a setting with its value in words: "8 workers", "batch size 64"."""
    if one.name in changes.COUNTED and isinstance(value, int | float):
        return changes.count(one.name, value)
    return f"{spoken(one.name)} {one.words(value)}"


def _open(experiment: Experiment) -> None:
    """Put this run on the page."""
    chosen.put(experiment)
    session.start(experiment)


def same_model(shown: list[Shown]) -> bool:
    """Return whether all runs end with the same model, bit for bit."""
    weights = {one.run.summary.get("weights") for one in shown}
    return len(weights) == 1 and None not in weights

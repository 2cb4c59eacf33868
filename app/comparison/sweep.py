"""A sweep: the run on the page with one setting varied, as small pictures next to each other."""

from functools import partial
from typing import Any

import streamlit as st

from app import charts
from app.browser import address
from app.browser.text import escape_markdown, sentence
from app.charts import Shown
from app.charts.axis import selected_axis as chosen_axis
from app.charts.pictures import heading, lines
from app.charts.words import ending
from app.comparison import changes, outcomes, table, variation
from app.comparison.difference import same_model
from app.session import background, session
from app.settings import chosen
from app.settings.controls import Control
from experiments.jobs.job import JobState
from experiments.jobs.spec import JobSpec
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.study import rates
from experiments.wording.field_labels import field_label

MAPPED = 5  # values of each of two settings
BEST = (
    "Use the best learning rate for each of these runs, so that none wins only because of its rate. A search takes "
    "about fifteen runs; rates from the table of defaults are already known."
)
DIVIDED = (
    "Divide the global batch of the run on the page among the workers, so that with more workers each has a smaller "
    "batch: strong scaling. When off, each worker keeps its batch: weak scaling."
)


def show(run: Run) -> None:
    heading(
        "Sweep",
        "Repeats the run on the page with one setting varied. If its learning rate is the default, every run uses "
        "its own default.",
    )
    e = run.experiment
    if e.cluster != "simulated":
        st.info("Sweeps need the simulated cluster: run this experiment there first.", icon=":material/tune:")
        return
    wanted, given = variation.sweep_in_address(e)
    names = list(dict.fromkeys([*variation.axes(e), *filter(None, [wanted])]))
    axis, other, best, strong = _choose(names, divisible=not (e.method.shares_samples or e.method.whole_batch))
    if axis is None:
        st.caption("Choose a setting to vary. About six runs are needed; stored ones are reused.")
        return
    named = partial(variation.control_of, e)
    stops, bound = (given, "") if axis == wanted else variation.of(e, axis, strong)
    if other:
        both = stops[:MAPPED], variation.of(e, other)[0][:MAPPED]
        combined = [variation.with_settings(e, {axis: across, other: down}) for down in both[1] for across in both[0]]
        outcomes.draw_map((named(axis), named(other)), both, _made(combined, best), _open)
        return
    states = _made([variation.with_settings(e, {axis: value}, strong) for value in stops], best)
    one = named(axis)
    if bound:
        st.caption(sentence(bound))
    _strip(one, [(value, state) for value, state in zip(stops, states, strict=True) if not state.active], best)


def _choose(names: list[str], divisible: bool) -> tuple[str | None, str | None, bool, bool]:
    """Draw the choice of settings to vary. Return (first setting or None, second setting or None, best, strong).

    With `best`, each run uses its best learning rate. With `strong`, workers divide one global batch; the page offers
    this only if the batch is `divisible`.
    """

    def spelled(name: str) -> str:
        return field_label(name).replace("_", " ")

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        address.keep("sweep", names, None, spelled)
        axis = st.segmented_control(
            "Setting to vary",
            names,
            key="sweep",
            label_visibility="collapsed",
            format_func=spelled,
            persist_state="session",
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


def _made(wanted: list[Experiment | str], best: bool) -> list[JobState]:
    """Request these runs, show their progress, and return their states. With `best`, each run uses its best learning
    rate.
    """
    states, active = [], {}
    for number, one in enumerate(wanted):
        place, work = f"sweep-{number}", one
        if best and not isinstance(one, str) and (rate := rates.rate_in_table(one)) is None:
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
    """Draw the losses in one picture and as small multiples. Say what the runs have in common, and which failed."""
    shown, stops = [], []
    found = {
        session.load(str(state.folder)).experiment.settings.get("learning_rate") for _, state in made if state.folder
    }
    rated = best or (len(found) > 1 and one.name != "learning_rate")
    for number, (value, state) in enumerate(made):
        if state.folder is None:
            st.caption(f":material/block: {escape_markdown(_called(one, value))}: {sentence(state.message)}")
            continue
        run, share = session.load(str(state.folder)), number / max(len(made) - 1, 1)
        rate = f", rate {run.experiment.settings['learning_rate']:g}" if rated else ""
        name = f"{_called(one, value)}{rate}"
        shown.append(Shown(name, run, number, str(state.folder), share=share))
        stops.append(value)
    if not shown:
        return
    along, log = chosen_axis()
    if alike := len(shown) > 1 and same_model(*(one.run for one in shown)):
        along = "seconds" if along == "step" else along
        st.caption(
            f":material/equal: All runs end with the same model, bit for bit: {field_label(one.name)} changes when "
            "things happen, not what is computed. Losses are therefore plotted against time."
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
        outcomes.draw_outcomes(one, shown, stops, alike)
    table.show(shown)


def _called(one: Control, value: Any) -> str:
    """Return a setting and its value in words, such as "8 workers" or "batch size 64"."""
    if one.name in changes.COUNTED and isinstance(value, int | float):
        return changes.count(one.name, value)
    return f"{field_label(one.name)} {one.words(value)}"


def _open(experiment: Experiment) -> None:
    chosen.put(experiment)
    session.start(experiment)

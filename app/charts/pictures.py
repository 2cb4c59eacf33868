"""The pictures of runs: curves, timeline, shares of time, traffic and staleness."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from app import charts
from app.browser import components
from app.browser.text import escape_markdown, sentence
from app.charts import AnyShown, Shown, axis, schedule_links
from app.charts.words import figure_of, legend
from app.session import session, sharing
from app.settings import faults
from experiments.runs.figures import FIGURES, LAST, measured_meaning, measured_name, measured_text, messages
from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.specification.catalogue import ALGORITHMS
from experiments.specification.experiment import Experiment
from experiments.viewer import curves, waits
from experiments.viewer.bars import html
from experiments.viewer.canvases import curve, timeline
from experiments.viewer.saved import labels_of_several
from experiments.wording import naming, units
from experiments.wording.rank_names import common_role
from experiments.wording.sentences import capital
from experiments.wording.units import DIVERGED
from tracing import HELD

TABS = ("Where the time goes", "Who sends to whom", "Staleness", "Memory", "Each rank")
HEAD = 38  # px of the headings of both charts, so that they line up


def loss_and_accuracy(shown: list[Shown], more=lambda: None) -> None:
    """Draw the curves of all runs on the page, next to the axis switch and whatever more() draws."""
    if len([one for one in shown if not one.ghost]) > 1:
        legend(shown)
    having = with_accuracy(shown)
    with st.container(key="curves"):
        left, right = st.columns([3, 2], gap="medium") if having else (st.container(), None)
    with left:
        along, log = against("Loss", more)
        zoom = axis.initial_zoom(along)
        lines(charts.loss, shown, _heard(shown, "held_out_loss"), along, log, zoom=zoom)
    if right:
        with right:
            with st.container(height=HEAD, border=False):
                heading("Held-out accuracy, %")
            lines(charts.accuracy, having, _heard(having, "accuracy"), along, zoom=zoom)


def with_accuracy(shown: list[Shown]) -> list[Shown]:
    """Return those of the runs that have an accuracy."""
    return [one for one in shown if len(curves.held_out(one.run, "step", "accuracy").x)]


def draw_measurements(shown: list[Shown]) -> None:
    """Draw a small chart for each quantity that the runs' methods measured."""
    grid = st.grid(min_column_width=260, gap="small", key="measured")
    for quantity in dict.fromkeys(quantity for one in shown for quantity in one.run.quantities):
        having = [one for one in shown if quantity in one.run.quantities]
        ends = [f"{measured_text(quantity, float(one.run.course(quantity)[1][-1]))} ({one.name})" for one in having]
        with grid.container(gap="xxsmall"):
            st.markdown(f"**{escape_markdown(measured_name(quantity))}**")
            meaning = sentence(measured_meaning(quantity))
            told = f"{measured_name(quantity)}: {meaning} It ends at {', '.join(ends)}."
            lines(charts.measurements, shown, told, quantity, key=f"measured-{quantity}")
            st.caption(meaning)


def lanes(folder: str, play: bool = False) -> None:
    """Draw the communication timeline of the run in `folder`, and a link to its schedule if it has one. A click on a
    rank opens the dialog for its faults.
    """
    window = components.requested_window(st.session_state.get("timeline"), folder)
    view = sharing.view(session.load(folder).experiment)
    frame = session.timeline_frame(folder, window, play, view)
    state = components.timeline(frame, on_trouble=partial(_cause, folder))
    if click := components.clicked_rank(state, session.load(folder), folder):
        faults.ask(click[0])
        st.rerun()
    if components.trouble(state, session.load(folder), folder):
        st.rerun()  # with the settings that `_cause` has changed
    if link := schedule_links.schedule(session.load(folder).experiment):
        st.caption(link)


def _cause(folder: str) -> None:
    """Inject the fault that the reader requested in the timeline of the run in `folder`, if there is one."""
    if done := components.trouble(st.session_state.get("timeline"), session.load(folder), folder):
        faults.cause(*done)


def against(title: str, more=lambda: None) -> tuple[str, bool]:
    """Draw a heading with the axis switch next to it; return (axis, True if the loss is on a log scale)."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="against"):
        heading(title)
        chosen = axis.choose()
        more()
    return chosen


def details(one: Shown, shown: list[Shown], before: Shown | None = None) -> None:
    """Show where run `one` spent its time and its bytes, and the staleness of the updates of all runs."""
    run = one.run
    time, traffic, stale, memory, ranks = st.tabs(TABS, key="tab", on_change="rerun")  # a closed tab is not drawn
    with time:
        if time.open:
            bars(charts.shares, [one, *filter(None, [before])], timeline.shares(run))
            if told := waits.totals(run):
                st.caption(told)
    with traffic:
        if traffic.open:
            draw_traffic(one)
    with stale:
        if stale.open and any(len(other.run.applied["staleness"]) for other in shown):
            chart(charts.staleness, shown, _heard(shown, "staleness_mean"))
        elif stale.open:
            st.info(_fresh(run.experiment), icon=":material/sync:")
    with memory:
        if memory.open:
            draw_memory(one)
    with ranks:
        if ranks.open and (rows := charts.rank_series(run)):
            chart(charts.by_rank, [one], f"By rank: {', '.join(rows)}.")
        elif ranks.open:
            st.info(
                f"This run has no per-rank measurements. {_linked('pipedream')} has "
                "staleness and versions of the weights by rank.",
                icon=":material/groups:",
            )


def draw_traffic(one: AnyShown) -> None:
    """Show who sends how much to whom."""
    if not len(one.run.trace.messages["bytes"]):
        role = common_role(charts.lane_names(one.run))
        st.info(f"No {role} sent anything: each trains alone.", icon=":material/wifi_off:")
        return
    told = _traffic(one.run)
    left, right = st.columns(2, gap="medium", vertical_alignment="center")
    with left:
        chart(charts.topology, [one], told)
    with right:
        chart(charts.traffic, [one], told)
    st.markdown(told)


def draw_memory(one: AnyShown) -> None:
    """Show what each rank holds in memory at its peak."""
    if not one.run.peak_memory().any():
        st.info("This run has no record of memory.", icon=":material/memory:")
        return
    bars(charts.memory, [one], _fullest(one.run))
    st.caption(_fullest(one.run))


def _traffic(run: Run | ScriptRun) -> str:
    """Return sentences on the bytes sent: how many, over which links most are sent, and which ranks send and receive
    most.
    """
    table, names = run.trace.traffic(), charts.lane_names(run)
    count = None if isinstance(run, ScriptRun) else messages(run)  # of a collective only neighbours have rows
    of = "" if count is None else f" in {units.count_with_noun(count, 'message')}"
    used = np.argwhere(table)
    carried = table[tuple(used.T)]
    busiest = used[most(carried)]
    links = [f"{names[src]} to {names[dst]}" for src, dst in busiest]
    size = units.size(carried.max())
    if len(links) == 1:
        busy = f"The busiest link is from {links[0]}: {size}."
    else:
        every = "Both links" if len(used) == 2 else f"All {len(used)} links"
        many = f"{every} in use" if len(links) == len(used) else f"The {len(links)} busiest links"
        busy = f"{many} carry the same amount: {size} each."
    sends, receives = (_first(table.sum(axis=axis), names, verb) for axis, verb in ((1, "send"), (0, "receive")))
    return f"**{units.size(table.sum())}**{of}, payload only. {busy} {capital(sends)}; {receives}."


def most(values: np.ndarray) -> np.ndarray:
    """Return the indices of the largest size and of all that look equal to it when formatted."""
    written = [units.size(value) for value in values.tolist()]
    return np.flatnonzero([one == units.size(values.max()) for one in written])


def _first(sizes: np.ndarray, names: list[str], verb: str) -> str:
    """Return a phrase that says which rank sends or receives most, such as "worker 1 sends most, 20 MB".

    If several ranks tie, it names both or says how many they are.
    """
    ties, size = most(sizes), units.size(sizes.max())
    if len(ties) == 1:
        return f"{names[ties[0]]} {verb}s most, {size}"
    if len(ties) == len(names):
        return f"{'both' if len(names) == 2 else 'all'} {common_role(names)}s {verb} the same amount, {size} each"
    if len(ties) == 2:
        return f"{names[ties[0]]} and {names[ties[1]]} {verb} most, {size} each"
    return f"{len(ties)} {common_role(names)}s {verb} most, {size} each"


def _fullest(run: Run | ScriptRun) -> str:
    """Return a sentence that says which rank used the most memory, and for what."""
    held, names = run.peak_memory(), charts.lane_names(run)
    ties = most(held.sum(axis=1))
    first = held[ties[0]]
    parts = ", ".join(f"{units.size(value)} {kind}" for kind, value in zip(HELD, first, strict=True) if value)
    size = units.size(first.sum())
    if len(ties) == 1:
        return f"{names[ties[0]].capitalize()} held most, {size}: {parts}."
    every = f"{'Both' if len(names) == 2 else 'All'} {common_role(names)}s"
    who = f"{every} held the same amount" if len(ties) == len(names) else f"{len(ties)} {common_role(names)}s held most"
    alike = all(np.array_equal(held[rank], first) for rank in ties)
    return f"{who}, {size} each{f': {parts}' if alike else ''}."


def _fresh(e: Experiment) -> str:
    """Return the reason why there is no staleness to draw."""
    name = naming.method(e)
    if e.method.deterministic is True:
        why = f"{name} is synchronous: every update is computed from the newest parameters, so none is stale."
    else:
        why = f"This run of {name} recorded no update of a shared model, so it has no staleness to show."
    return f"{why} {_linked('asgd')} has some."


def _linked(algorithm: str) -> str:
    """Return the title of an algorithm as a link to a run of it."""
    return f"[{ALGORITHMS[algorithm].title}](./?algorithm={algorithm})"


def heading(text: str, help: str | None = None, of: str = "") -> None:
    """Draw the heading of a part of the page. If the page shows several runs, `of` names the run that the part is
    about.
    """
    st.markdown(f"## {text}: {escape_markdown(of)}" if of else f"## {text}", help=help, anchors=False)


def lines(draw, shown: list[Shown], told: str, *how, key: str = "", zoom: tuple[float, float] | None = None) -> None:
    """Draw the curves draw(shown, *how) on a canvas, opened at `zoom`; `told` describes them in words."""
    axes = " ".join(map(str, (*how, *(one.folder for one in shown))))
    called = {"accuracy": "accuracy, %", "measured": how[0], "picture": "loss"}  # the picture of a race
    what = called.get(draw.__name__, draw.__name__)
    frame = _built(
        draw.__name__, _named(shown), (*how, zoom),
        lambda: curve.frame(draw(shown, *how), told, axes, labels_of_several(shown, what), zoom),
    )  # fmt: skip
    components.curve(frame, key or draw.__name__)


def bars(draw, shown: Sequence[AnyShown], told: str) -> None:
    """Draw the bars draw(shown), with a row for each rank."""
    st.html(_built(draw.__name__, _named(shown), (), lambda: html(draw(shown), told)))


def chart(draw, shown: Sequence[AnyShown], alt: str, *how, key: str = "") -> None:
    """Draw the figure draw(shown, *how), which is cached, because Plotly takes 30 ms to build one."""
    figure = _built(draw.__name__, _named(shown), how, lambda: draw(shown, *how))
    st.plotly_chart(figure, key=key or draw.__name__, config=charts.CONFIG, alt=alt)


def _named(shown: Sequence[AnyShown]) -> list[tuple]:
    return [
        (one.folder, one.name, one.colour, one.ghost, one.share, [run.experiment.seed for run in one.others])
        for one in shown
    ]


@st.cache_resource(max_entries=128, show_spinner=False)
def _built(name: str, what: list, how: tuple, _draw):
    return _draw()


def _heard(shown: list[Shown], name: str) -> str:
    """Return a description of a chart in sentences, for readers who cannot see it."""
    told = [
        f"The {FIGURES[name].label} of {one.name} ends at {figure_of(one, name)}."
        for one in shown
        if one.run.summary.get(name) is not None or (one.run.status == DIVERGED and name in LAST)
    ]
    return " ".join(told) or f"No {FIGURES[name].label} was recorded."

"""A finished run: its figures, its curves, its timeline, and where time and bytes went."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app import charts, curves, runs, units
from app.charts import Shown
from app.components import timeline
from app.views import compare, take
from experiments.experiment import Experiment
from experiments.result import Run

HEAD = 38  # px of the headings of both charts, so that they stand in one line
NOTES = 4  # remarks of a run before the others are folded away
FIGURES = (
    ("held_out_loss", "Held-out loss", units.number, "The last reported model, on data it has not seen."),
    ("accuracy", "Held-out accuracy", units.percent, "Of the last reported model; not every workload has one."),
    ("seconds", "Took", units.seconds, "On the run's own clock, from the first step to the last message."),
    ("bytes", "Sent by all ranks", units.size, "Payload only."),
    ("share_wait", "Workers waited", units.percent, "Share of the workers' time in which they were blocked."),
    ("staleness_mean", "Staleness", units.updates, "How old, in the mean, the parameters of an update were."),
)
"""What stands above the charts: name in the summary, label, words, help."""


def show(folder: str, wanted: Experiment | None) -> None:
    """The page of the run in `folder`; `wanted` is what the controls say now, which may be something else."""
    try:
        run = runs.load(folder)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/folder_off:")
        return
    name = Path(folder).name
    kept, missing = compare.kept()
    shown = compare.named(kept if name in dict(kept) else [*kept, (name, run)])
    _title(run, folder, name, compare.changes(run.experiment, wanted) if wanted else [])
    _remarks(run, missing)
    _figures(run)
    charts_side = st.container()
    if st.session_state.get("source"):
        charts_side, code_side = st.columns([3, 2], gap="medium")
        with code_side:
            take.source(run)
    with charts_side:
        st.fragment(_curves)(shown)
        _heading("Timeline", "Who did what when: one lane per rank, one bar per span. Arrows are messages.")
        st.fragment(_timeline)(folder)
        if len(shown) > 1:
            _heading("Comparison")
            compare.table(shown)
            compare.let_go(shown)
        _details(run, shown)


def _title(run: Run, folder: str, name: str, changed: list[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch", gap="xxsmall", key="title"):
            st.markdown(f"## {title(run.experiment)}", anchors=False)
            if changed:
                more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
                st.markdown(f":orange-badge[Not run yet: {escaped(', '.join(changed[:2]))}{more}]")
            else:
                st.caption(headline(run.experiment))
        with st.container(horizontal=True, width="content", vertical_alignment="center", gap="small"):
            _keep(name, folder)
            st.toggle("Source", key="source", bind="query-params", help="The algorithm's own file beside the charts.")
            with st.popover("Share", icon=":material/link:"):
                take.share(run.experiment)
            with st.popover("Download", icon=":material/download:"):
                take.downloads(run, name)


def _keep(name: str, folder: str) -> None:
    kept = runs.kept()
    if name in kept:
        st.button(
            "Kept", key="keep-it", icon=":material/keep_off:", help="Let it go.", on_click=runs.drop, args=(name,)
        )
        return
    full = len(kept) >= runs.KEPT
    help = f"{runs.KEPT} runs are kept; let one go first." if full else "Keep it to compare others with it."
    st.button(
        "Keep", key="keep-it", icon=":material/keep:", help=help, disabled=full, on_click=runs.keep, args=(folder,)
    )


def title(e: Experiment) -> str:
    """What a run is called: "easgd on digits"."""
    return escaped(f"{e.algorithm} on {e.workload}")


def headline(e: Experiment) -> str:
    """What was run, in a line."""
    ranks = f"{e.workers} worker{'s' * (e.workers != 1)}"
    if e.servers:
        ranks += f" and {e.servers} server{'s' * (e.servers != 1)}"
    budget = [f"{units.count(e.steps)} steps"] if e.steps else []
    budget += [f"{e.epochs:g} epochs"] if e.epochs else []
    budget += [units.seconds(e.seconds)] if e.seconds else []
    budget += [f"until a loss of {e.target_loss:g}"] if e.target_loss else []
    where = f"real {e.cluster} of this machine"
    if e.cluster == "simulated":
        where = f"simulated: {e.network}, {e.device} devices"
    return " · ".join([ranks, f"batch {e.batch}", " or ".join(budget), where, f"seed {e.seed}"])


def _remarks(run: Run, missing: list[str]) -> None:
    """What the reader must know before reading the charts."""
    why = sentence(run.error)
    if run.status == "diverged":
        st.error(f"**Diverged.** {why} Everything up to that moment is shown.", icon=":material/trending_up:")
    elif run.status == "failed":
        st.error(f"**Failed.** {why} What was recorded until then is shown.", icon=":material/error:")
    elif run.status == "cancelled":
        st.warning("**Stopped early.** What was recorded until then is shown.", icon=":material/stop_circle:")
    if more := st.session_state.get("remark", "").removeprefix(run.error).strip():
        st.warning(sentence(more), icon=":material/folder_off:")
    for name in missing:
        st.warning(f"The kept run {name} is not on this machine any more.", icon=":material/folder_off:")
    for note in run.notes[:NOTES]:
        st.caption(f":material/info: {sentence(note)}")
    if len(run.notes) > NOTES:
        with st.expander(f"{len(run.notes) - NOTES} more remarks"):
            for note in run.notes[NOTES:50]:
                st.caption(sentence(note))


def _figures(run: Run) -> None:
    grid = st.grid(min_column_width=125, gap="small", key="figures")
    for name, label, say, help in FIGURES:
        value = run.summary.get(name)
        if name == "seconds" and run.experiment.cluster == "simulated":
            label = "Took (virtual time)"
        grid.metric(label, "–" if value is None else say(value), help=help)


def _curves(shown: list[Shown]) -> None:
    if len(shown) > 1:
        compare.legend(shown)
    judged = [one for one in shown if len(curves.held_out(one.run, "step", "accuracy").x)]
    with st.container(key="curves"):
        left, right = st.columns([3, 2], gap="medium") if judged else (st.container(), None)
    with left:
        axis, log = against("Loss")
        _chart(charts.loss, shown, _heard(shown, "held_out_loss", units.number), axis, log)
    if right:
        with right:
            with st.container(height=HEAD, border=False):
                _heading("Held-out accuracy, %")
            _chart(charts.accuracy, judged, _heard(judged, "accuracy", units.percent), axis)


def _timeline(folder: str) -> None:
    window = timeline.wanted(st.session_state.get("timeline"), folder)
    timeline.timeline(runs.timeline_frame(folder, window))


def against(heading: str) -> tuple[str, bool]:
    """A heading with the switch of the axis beside it: (axis, whether the loss is on a log scale)."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="against"):
        _heading(heading)
        st.segmented_control(
            "Curves against", curves.AXES, key="axis", default="step", required=True, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        st.toggle("Log", key="log", bind="query-params", help="The loss on a logarithmic scale.")
    return st.session_state.axis, st.session_state.log


def _heard(shown: list[Shown], name: str, say) -> str:
    """The finding of a chart, for readers who do not see it."""
    ends = {one.name: one.run.summary.get(name) for one in shown}
    told = [f"{run} ends at {say(value)}" for run, value in ends.items() if value is not None]
    return f"{name.replace('_', ' ').capitalize()}: {'; '.join(told) or 'nothing was recorded'}."


def _details(run: Run, shown: list[Shown]) -> None:
    here = [one for one in shown if one.run is run]
    time, traffic, stale = st.tabs(["Where the time goes", "Who sends to whom", "Staleness"])
    with time:
        _chart(charts.shares, here, timeline.describe(run))
    with traffic:
        if len(run.trace.messages["bytes"]):
            left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
            told = _traffic(run)
            with left:
                _chart(charts.traffic, here, told)
            right.markdown(told)
        else:
            st.info("Nobody sent anything: these ranks train alone.", icon=":material/wifi_off:")
    with stale:
        if any(len(one.run.applied["staleness"]) for one in shown):
            _chart(charts.staleness, shown, _heard(shown, "staleness_mean", units.updates))
        else:
            st.info(_fresh(run.experiment), icon=":material/sync:")


def _traffic(run: Run) -> str:
    """Who sends most to whom, in words."""
    table, names = run.trace.traffic(), charts.lane_names(run)
    src, dst = divmod(int(table.argmax()), len(table))
    sent, got = int(table.sum(axis=1).argmax()), int(table.sum(axis=0).argmax())
    lines = [
        f"**{units.size(table.sum())}** in {units.count(run.summary.get('messages') or 0)} messages, payload only.",
        f"The busiest link is from {names[src]} to {names[dst]}: {units.size(table[src, dst])}.",
        f"{names[sent].capitalize()} sends most, {units.size(table[sent].sum())}; "
        f"{names[got]} receives most, {units.size(table[:, got].sum())}.",
    ]
    return "\n\n".join(lines)


def _fresh(e: Experiment) -> str:
    """Why there is no staleness to draw."""
    if getattr(e.module, "SYNCHRONOUS", False):
        return f"{e.algorithm} is synchronous: every update is computed from the newest parameters, so none is stale."
    return f"No update of a shared model was counted in this run of {e.algorithm}, so there is no staleness to show."


def _chart(draw, shown: list[Shown], alt: str, *how) -> None:
    """The figure draw(shown, *how): it takes Plotly 30 ms to build one, and nothing to send it again."""
    what = [(one.folder, one.name, one.colour) for one in shown]
    figure = _built(draw.__name__, what, how, lambda: draw(shown, *how))
    st.plotly_chart(figure, key=draw.__name__, config=charts.CONFIG, alt=alt)


@st.cache_resource(max_entries=128, show_spinner=False)
def _built(name: str, what: list, how: tuple, _draw):
    return _draw()


def _heading(text: str, help: str | None = None) -> None:
    st.markdown(f"### {text}", help=help, anchors=False)


def sentence(text: str) -> str:
    """A message as a sentence: capital, full stop, and no markdown in it."""
    text = escaped(text[:1].upper() + text[1:])
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def escaped(text: str) -> str:
    """Text as it is, with nothing in it that markdown would take for a mark."""
    for mark in "\\`*_[]$:#<>~|":
        text = text.replace(mark, "\\" + mark)
    return text

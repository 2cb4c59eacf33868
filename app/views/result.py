"""A finished run: its figures, its curves, its timeline, and what can be taken away."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

import algorithms
from app import charts, curves, runs, units
from app.charts import Shown
from app.components import timeline
from app.views import compare
from experiments import export
from experiments.experiment import Experiment
from experiments.result import Run

NOTES = 4  # remarks of a run before the others are folded away


def show(folder: str, wanted: Experiment | None) -> None:
    """The page of the run in `folder`; `wanted` is what the controls say now, which may be something else."""
    try:
        run = runs.load(folder)
    except ValueError as error:
        st.error(str(error), icon=":material/folder_off:")
        return
    name = Path(folder).name
    kept, missing = compare.kept()
    shown = compare.named([*kept, (name, run)] if name not in dict(kept) else kept)
    _title(run, folder, name)
    _remarks(run, wanted, missing)
    _figures(run)
    if st.session_state.get("source"):
        left, right = st.columns([3, 2], gap="medium")
        with right:
            _source(run)
    else:
        left = st.container()
    with left:
        st.fragment(_curves)(shown)
        st.markdown("##### Timeline", anchors=False, help="Who did what when. One lane per rank, one bar per span.")
        timeline.timeline(runs.timeline_frame(folder))
        if kept:
            compare.show(shown)
        _details(run, shown)


def _title(run: Run, folder: str, name: str) -> None:
    e = run.experiment
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch", gap="xxsmall"):
            st.markdown(f"## {e.algorithm} on {e.workload}", anchors=False)
            st.caption(headline(e))
        full = len(runs.kept()) >= runs.KEPT
        if name in runs.kept():
            st.button("Kept", icon=":material/keep:", key="keep-it", disabled=True)
        else:
            why = (
                f"{runs.KEPT} runs are kept; let one go first."
                if full
                else "Keep this run on the page, to compare others with."
            )
            st.button(
                "Keep",
                icon=":material/keep:",
                key="keep-it",
                disabled=full,
                on_click=runs.keep,
                args=(folder,),
                help=why,
            )
        st.toggle("Source", key="source", bind="query-params", help="The algorithm's own file beside the charts.")
        with st.popover("Share", icon=":material/link:"):
            _share(e)
        with st.popover("Download", icon=":material/download:"):
            _downloads(run, name)


def headline(e: Experiment) -> str:
    """What was run, in a line."""
    ranks = f"{e.workers} worker{'s' * (e.workers != 1)}"
    if e.servers:
        ranks += f" and {e.servers} server{'s' * (e.servers != 1)}"
    budget = [f"{units.count(e.steps)} steps"] if e.steps else []
    budget += [f"{e.epochs:g} epochs"] if e.epochs else []
    budget += [units.seconds(e.seconds)] if e.seconds else []
    budget += [f"until a loss of {e.target_loss:g}"] if e.target_loss else []
    where = (
        f"simulated: {e.network}, {e.device} devices"
        if e.cluster == "simulated"
        else f"real {e.cluster} of this machine"
    )
    return " · ".join([ranks, f"batch {e.batch}", " or ".join(budget), where, f"seed {e.seed}"])


def _remarks(run: Run, wanted: Experiment | None, missing: list[str]) -> None:
    """What the reader must know before reading the charts."""
    changed = compare.changes(run.experiment, wanted) if wanted else []
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        st.info(f"Not run yet: {', '.join(changed[:3])}{more}. Press **Run**.", icon=":material/edit:")
    if run.status == "diverged":
        st.error(
            f"**Diverged.** {sentence(run.error)} Everything up to that moment is shown.", icon=":material/trending_up:"
        )
    elif run.status == "failed":
        st.error(f"**Failed.** {sentence(run.error)} What was recorded until then is shown.", icon=":material/error:")
    elif run.status == "cancelled":
        st.warning("Stopped early: what was recorded until then is shown.", icon=":material/stop_circle:")
    for name in missing:
        st.warning(f"The kept run {name} is not on this machine any more.", icon=":material/folder_off:")
    for note in run.notes[:NOTES]:
        st.caption(f":material/info: {_plain(note)}")
    if len(run.notes) > NOTES:
        with st.expander(f"{len(run.notes) - NOTES} more remarks"):
            for note in run.notes[NOTES:50]:
                st.caption(_plain(note))


def _figures(run: Run) -> None:
    s = run.summary
    clock = "virtual time" if run.experiment.cluster == "simulated" else "time"
    cells = [
        ("Held-out loss", units.number(s["held_out_loss"]) if s.get("held_out_loss") is not None else "–", "The last reported model on data it has not seen."),
        ("Held-out accuracy", units.percent(s["accuracy"]) if s.get("accuracy") is not None else "–", "Of the last reported model; not every workload has one."),
        (f"Took ({clock})", units.seconds(s.get("seconds") or 0.0), "On the run's own clock, from the first step to the last message."),
        ("Sent by all ranks", units.size(s.get("bytes") or 0), f"{units.count(s.get('messages') or 0)} messages, payload only."),
        ("Workers waited", units.percent(s["share_wait"]) if s.get("share_wait") is not None else "–", "Share of the workers' time in which they were blocked."),
        ("Staleness", f"{units.number(s['staleness_mean'])} updates" if s.get("staleness_mean") is not None else "none", "How many updates old, in the mean, the parameters were that an update was computed from."),
    ]  # fmt: skip
    grid = st.grid(min_column_width=125, gap="small", key="figures")
    for label, value, help in cells:
        grid.metric(label, value, help=help)


def _curves(shown: list[Shown]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.segmented_control(
            "Against",
            list(curves.AXES),
            key="axis",
            default="step",
            required=True,
            bind="query-params",
            label_visibility="collapsed",
        )
        st.toggle("Log scale", key="log", bind="query-params")
    axis, log = st.session_state.axis, st.session_state.log
    judged = [one for one in shown if len(curves.held_out(one.run, axis, "accuracy").x)]
    left, right = st.columns([3, 2], gap="medium") if judged else (st.container(), None)
    with left:
        st.markdown("##### Loss", anchors=False)
        st.plotly_chart(charts.loss(shown, axis, log), key="loss", config=charts.CONFIG, alt=_heard(shown, "loss"))
    if right:
        with right:
            st.markdown("##### Held-out accuracy, %", anchors=False)
            st.plotly_chart(
                charts.accuracy(judged, axis), key="accuracy", config=charts.CONFIG, alt=_heard(judged, "accuracy")
            )


def _heard(shown: list[Shown], quantity: str) -> str:
    """The finding of a chart, for readers who do not see it."""
    ends = []
    for one in shown:
        s = one.run.summary
        value = s.get("held_out_loss") if quantity == "loss" else s.get("accuracy")
        if value is not None:
            ends.append(f"{one.name} ends at {units.number(value) if quantity == 'loss' else units.percent(value)}")
    return f"Held-out {quantity}: {'; '.join(ends) or 'nothing was recorded'}."


def _details(run: Run, shown: list[Shown]) -> None:
    time, traffic, stale = st.tabs(["Where the time goes", "Who sends to whom", "Staleness"])
    with time:
        st.plotly_chart(charts.shares(run), key="shares", config=charts.CONFIG, alt=timeline.describe(run))
    with traffic:
        if len(run.trace.messages["bytes"]):
            st.plotly_chart(
                charts.traffic(run),
                key="traffic",
                config=charts.CONFIG,
                alt=f"{units.size(run.summary['bytes'])} in all, from rank to rank.",
            )
        else:
            st.info("Nobody sent anything: these ranks train alone.", icon=":material/wifi_off:")
    with stale:
        if any(len(one.run.applied["staleness"]) for one in shown):
            st.plotly_chart(
                charts.staleness(shown),
                key="staleness",
                config=charts.CONFIG,
                alt=f"Staleness: {run.summary.get('staleness_mean')} updates in the mean.",
            )
        else:
            st.info(_fresh(run), icon=":material/sync:")


def _fresh(run: Run) -> str:
    if getattr(run.experiment.module, "SYNCHRONOUS", False):
        return f"{run.experiment.algorithm} is synchronous: every update is computed from the newest parameters, so there is no staleness to count."
    return f"{run.experiment.algorithm} counts no staleness: no update of a shared model was recorded in this run."


def _share(e: Experiment) -> None:
    st.markdown("**Link to this run**")
    query = e.query()
    if runs.kept():
        query += "&keep=" + ",".join(runs.kept())
    st.code(f"{(st.context.url or '').split('?')[0]}?{query}", language=None, wrap_lines=True)
    st.markdown("**Repeat it on the command line**")
    st.code(e.command(), language="bash", wrap_lines=True)
    if e.cluster == "simulated":
        st.caption("On the simulated cluster it gives the same numbers, bit for bit.")


def _downloads(run: Run, name: str) -> None:
    def trace() -> str:
        return export.chrome_trace(run.trace, run.experiment.servers)

    common = {"on_click": "ignore", "width": "stretch"}
    st.download_button("Losses (CSV)", lambda: export.csv_text(run.losses), f"{name}-losses.csv", "text/csv", **common)
    st.download_button(
        "Held-out (CSV)", lambda: export.csv_text(run.evaluations), f"{name}-held-out.csv", "text/csv", **common
    )
    st.download_button("Timeline (Chrome trace)", trace, f"{name}.trace.json", "application/json", **common)
    st.download_button("Report (HTML)", lambda: export.report(run), f"{name}.html", "text/html", **common)
    st.caption("A Chrome trace opens in ui.perfetto.dev or chrome://tracing.")


def _source(run: Run) -> None:
    module = algorithms.find(run.experiment.algorithm)
    path = Path(module.__file__)
    st.markdown(f"##### `algorithms/{path.parent.name}/{path.name}`", anchors=False)
    st.code(path.read_text("utf-8"), language="python", height=980)


def _plain(text: str) -> str:
    """Text of a run as it is: no markdown in it."""
    for mark in "\\`*_[]$:#<>~|":
        text = text.replace(mark, "\\" + mark)
    return text


def sentence(text: str) -> str:
    """A message as a sentence: capital, full stop, and no markdown in it."""
    text = _plain(text[:1].upper() + text[1:])
    return text if text.endswith((".", "!", "?")) else text + "."

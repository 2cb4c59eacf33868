"""A script's run: a sentence on what happened, its timeline, losses, waits, memory, traffic and output."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from app import charts
from app.browser import components
from app.browser.frames import frame
from app.browser.text import escape_markdown, sentence
from app.charts import AnyShown, pictures
from app.charts.pictures import heading
from app.own_script import output
from app.session import session
from experiments.exports import export
from experiments.runs import slow_ranks, store
from experiments.runs.script_run import ScriptRun
from experiments.runs.script_verdict import verdict
from experiments.viewer import script_pictures, script_words
from experiments.viewer.canvases import timeline
from experiments.wording import script_summary, units
from experiments.wording.sentences import capital

TABS = ("Where the time goes", "Who waits for whom", "Who sends to whom", "Memory", "Script")
NOTES = 6  # that are shown
ROWS = 50  # of the table of waits
ACROSS = 3  # curves side by side
KEY = "script-timeline"


@st.cache_resource(max_entries=8, show_spinner=False)
def _load(folder: str) -> ScriptRun:
    return store.load_script(folder)


def find(name: str) -> ScriptRun | None:
    """Return the stored run with this name, or None if there is none."""
    if not session.NAME.fullmatch(name):
        return None
    try:
        return _load(str(session.ROOT / name))
    except ValueError:
        return None


def show(run: ScriptRun, name: str, before: ScriptRun | None) -> None:
    """Show the run called `name`, and what changed since the run `before`."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.markdown(f"# {escape_markdown(script_summary.heading(run.experiment))}", anchors=False, width="stretch")
        with st.popover("Download", icon=":material/download:"):
            _downloads(run, name)
    st.markdown(f"**{escape_markdown(script_words.headline(run))}**")
    _ending(run)
    if before and before is not run:
        changed = ", ".join(script_words.changes(before.experiment, run.experiment)) or "once more"
        told = " ".join(map(sentence, _verdict(name, before.digest, run, before)))
        st.markdown(
            f":material/history: **{capital(escape_markdown(changed))}**, compared with the previous run. {told}"
        )
    elif cost := _cost(name, run):
        st.markdown(f":material/speed: {sentence(capital(cost))}")
    for note in run.notes[:NOTES]:
        st.caption(f":material/info: {sentence(note)}")
    if not run.summary.seconds:
        output.show(run)
        return
    _figures(run)
    heading("Timeline", "What each rank did when: one lane per rank. Click a wait to see what it was for.")
    st.fragment(_timeline)(run, name)
    _curves(run)
    output.show(run)
    st.fragment(_details)(run, name)


@st.cache_resource(max_entries=32, show_spinner=False)
def _verdict(name: str, before: str, _run: ScriptRun, _before: ScriptRun) -> list[str]:
    """Return sentences on how the run called `name` differs from the run with the digest `before`."""
    return verdict(_before, _run)


@st.cache_resource(max_entries=32, show_spinner=False)
def _cost(name: str, _run: ScriptRun) -> str:
    return slow_ranks.cost(_run, session.ROOT / name)


def _ending(run: ScriptRun) -> None:
    """Show why the run ended early, if it did, with the script's own traceback."""
    if run.status == "cancelled":
        st.warning(f"{sentence(run.error)} The part recorded until then is shown.", icon=":material/stop_circle:")
    elif run.error:
        st.error(sentence(run.error), icon=":material/error:")
    if run.traceback:
        st.code(run.traceback.strip(), language=None, wrap_lines=True)


def _figures(run: ScriptRun) -> None:
    s = run.summary
    held = sum(s.memory.values(), np.zeros(s.ranks))
    losses = [*s.losses.values()] or [value for by_step in s.logged.values() for value in by_step.values()]
    told = {
        "Time of a step": (units.seconds(s.step_seconds), "Median over steps, in virtual time.") if s.steps else None,
        "Virtual time": (units.seconds(s.seconds), f"Of the whole run, {units.count_with_noun(s.steps, 'step')}."),
        "Waiting": (
            units.percent(float(s.wait.mean()) / s.seconds),
            "Waiting for other ranks' messages, averaged over ranks.",
        ),
        "Sent by a rank": (units.size(float(s.sent.max())), "By the rank that sends most."),
        "Memory": (units.size(float(held.max())), "On the rank that holds most, including the peak of its activations.")
        if held.any()
        else None,
        "Loss": (units.loss(losses[-1]), "In the last step.") if losses else None,
    }
    grid = st.grid(min_column_width=140, gap="small", key="figures")
    for label, (value, help) in ((label, figure) for label, figure in told.items() if figure):
        grid.container(gap="xxsmall").metric(label, value, help=help)


def _timeline(run: ScriptRun, name: str) -> None:
    window = components.requested_window(st.session_state.get(KEY), name)
    components.timeline(_timeline_frame(name, window, run), key=KEY)


@st.cache_resource(max_entries=16, show_spinner=False)
def _timeline_frame(name: str, window: timeline.Window | None, _run: ScriptRun) -> bytes:
    return script_pictures.timeline_frame(_run, name, window)


def _curves(run: ScriptRun) -> None:
    curves = script_pictures.curves(run)
    if not curves:
        return
    heading("Losses", "Means over the ranks that report them.")
    places = st.columns(max(2, min(len(curves), ACROSS)), gap="medium")
    for number, (name, picture) in enumerate(curves.items()):
        with places[number % len(places)]:
            st.markdown(f"**{escape_markdown(name)}**")
            components.curve(script_pictures.curve_frame(run, name, picture), key=f"script-curve-{number}")


def _details(run: ScriptRun, name: str) -> None:
    one = AnyShown(script_summary.heading(run.experiment), run, 0, name)
    draws: tuple[Callable[[], None], ...] = (
        lambda: pictures.bars(charts.shares, [one], timeline.shares(run)),
        partial(_waits, run),
        partial(pictures.draw_traffic, one),
        partial(pictures.draw_memory, one),
        lambda: st.code(run.experiment.source, language="python", line_numbers=True),
    )
    for tab, draw in zip(st.tabs(TABS, key="script-tab", on_change="rerun"), draws, strict=True):
        with tab:
            if tab.open:
                draw()


def _waits(run: ScriptRun) -> None:
    """Draw a table of who waited for whom, in which call, and at which line."""
    if not run.summary.waits:
        st.info("No rank waited for another.", icon=":material/check:")
        return
    rows = [
        {
            "for": script_summary.culprit(one), "in": one.what, "at": one.line, "ranks that waited": one.ranks,
            "each for": script_summary.length(one, run.summary),
        }
        for one in run.summary.waits[:ROWS]
    ]  # fmt: skip
    st.dataframe(frame(rows), hide_index=True)


def _downloads(run: ScriptRun, name: str) -> None:
    """Offer the files of a run. A file is made on request, and the run is then marked as kept."""
    stem = script_pictures.stem(run)
    files = (
        (
            "Timeline (Perfetto)",
            "trace.json",
            "application/json",
            lambda: export.chrome_trace(run.trace, known=run.causes),
        ),
        ("Losses (CSV)", "losses.csv", "text/csv", lambda: export.csv_text(run.losses)),
        ("Waits (CSV)", "waits.csv", "text/csv", lambda: export.csv_text(script_pictures.waits_table(run))),
        ("Spans (CSV)", "spans.csv", "text/csv", lambda: export.csv_text(script_pictures.spans_table(run))),
        ("The script", "script.py", "text/x-python", lambda: run.experiment.source),
    )

    def kept(make: Callable[[], str]) -> str:
        session.keep(name)
        return make()

    for label, suffix, mime, make in files:
        st.download_button(
            label, partial(kept, make), f"{stem}-{suffix}", mime, key=f"script-{suffix}", on_click="ignore",
            width="stretch",
        )  # fmt: skip
    st.caption("ui.perfetto.dev opens the timeline.")

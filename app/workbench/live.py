"""A run in progress: its place in the queue, its progress, and its growing curves."""

import numpy as np
import streamlit as st

from app import charts
from app.browser import components, looks
from app.browser.text import escape_markdown
from app.charts import Shown, pictures
from app.charts.words import legend
from app.comparison import reference
from app.session import pins, session
from app.workbench import head, remarks, result
from experiments.jobs.job import JobState
from experiments.viewer import palette
from experiments.viewer.canvases import curve
from experiments.viewer.palette import LineStyle
from experiments.viewer.pictures import Series
from experiments.viewer.saved import labels_of_one
from experiments.wording import naming, units
from experiments.wording.sentences import capital

EVERY = 0.5  # s between two frames


def show(led: bool = False) -> None:
    """Show the run in progress, above the run that is already on the page if there is one.

    With `led`, the first screen above draws the timeline of the run on the page or, without such a run, says how far
    this run has got.
    """
    folder, asked = st.session_state.get("shown"), st.session_state.asked
    if folder:
        result.show(folder, None, LiveRun(reference.before(asked, pins.names())), led)
        looks.fade("figures", "rest", opacity=0.45, grey=True)
        looks.veil("timeline", "Previous run")
    else:
        result.show_run_in_progress(asked, LiveRun(None, brief=led))


def say_progress() -> None:
    """In place of the pictures, say what the run in progress is doing, such as compiling kernels."""
    st.fragment(_progress, run_every=EVERY)()


def show_unstored(now: JobState) -> None:
    """Show the curves of a run that ended without being stored."""
    asked = st.session_state.asked
    st.markdown(f"# {head.title(asked)}", anchors=False)
    st.caption(head.headline(asked))
    _draw(now, [])


def ending(now: JobState | None) -> str:
    """Return a sentence with the step at which an unstored run was stopped, or "" if the run had not begun."""
    return f"Stopped at step {units.count(int(now.curve['step'][-1]))}." if now else ""


class LiveRun:
    """A run in progress, redrawn repeatedly in the layout of a finished one. `before` is the previous run, drawn in
    grey.

    It is `brief` where the page already says how far the run has got.
    """

    def __init__(self, before: Shown | None, brief: bool = False):
        self.before, self.brief = before, brief

    def head(self) -> None:
        st.fragment(_head, run_every=EVERY)(self.brief)

    def line(self) -> None:
        if shown := session.run_on_page():
            of = f"**{escape_markdown(naming.title(shown.experiment))}**, {head.headline(shown.experiment, shown)}"
            st.markdown(f":material/history: Still shown, in grey: the previous run, {of}.")
        asked = st.session_state.asked
        remarks.show_notes(asked, asked.notes)

    def curves(self, others: list[Shown]) -> None:
        """Draw the growing curves, with those of other runs on the page."""
        st.fragment(_curves, run_every=EVERY)([*others, *filter(None, [self.before])])


def _head(brief: bool) -> None:
    with st.container(gap="xxsmall"):
        st.markdown(f"# {head.title(st.session_state.asked)}", anchors=False)
        _progress(brief)


def _progress(brief: bool = False) -> None:
    now = session.under_way()
    if now is None:
        st.rerun()
    st.progress(min(max(now.fraction, 0.0), 1.0), text="In progress." if brief else _words(now))


def _curves(others: list[Shown]) -> None:
    now = session.under_way()
    if now is None:
        st.rerun()
    _draw(now, others)


def _draw(now: JobState, others: list[Shown]) -> None:
    pinned = [one for one in others if not one.ghost]
    line = palette.RUNS[pins.next_colour()]
    if pinned:
        legend(others)
    with st.container(key="curves"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        pictures.against("Loss")
        components.curve(_panel(now, "loss", others, line), key="loss")
    with right:
        with st.container(height=pictures.HEAD, border=False):
            st.markdown("## Held-out accuracy, %", anchors=False)
        judged = pictures.with_accuracy(others)
        components.curve(_panel(now, "accuracy", judged, line), key="accuracy")


def _words(now: JobState) -> str:
    phase = f"{capital(now.phase)}." if now.phase else ""
    if now.status == "queued":
        ahead = now.place - 1
        place = f"{units.count_with_noun(ahead, 'run')} ahead of this one." if ahead else "this one is next."
        return f"Waiting: {place} {phase}".rstrip()
    asked = st.session_state.asked
    if phase and asked.cluster == "simulated":
        return phase
    if now.phase:
        one, several = ("thread", "threads") if asked.cluster == "threads" else ("process", "processes")
        return f"Starting {asked.ranks} {one if asked.ranks == 1 else several}: {now.phase}."
    if not len(now.curve.get("loss", ())):
        return "Step 1." if now.seconds else "Starting."
    clock = "virtual time" if asked.cluster == "simulated" else "run time"
    done = f"{units.percent(now.fraction)} · " if now.fraction else ""
    return f"{done}{units.seconds(now.seconds)} of {clock} · loss {units.loss(float(now.curve['loss'][-1]))}"


def _panel(now: JobState, quantity: str, others: list[Shown] = (), line: LineStyle = palette.RUNS[0]) -> bytes:
    """Return the frame of a canvas with training and held-out loss, or with held-out accuracy, against step, samples or
    time.
    """
    state = st.session_state
    axis = "seconds" if state.axis == "bytes" else state.axis  # bytes are only counted at the end
    x, along = now.curve.get(axis, np.zeros(0)), now.curve.get("seconds", np.zeros(0))
    tried = now.tried.get("seconds", np.zeros(0))
    tried_x = np.interp(tried, along, x) if len(x) else np.zeros(0)
    y = now.tried.get(quantity, np.zeros(0))[: len(tried_x)] * (100 if quantity == "accuracy" else 1)
    most = float(x[-1]) if len(x) else 0.0
    if now.fraction > 0:  # the axis doubles whenever it is full, up to the whole run
        most = most / now.fraction / 2 ** np.floor(np.log2(1 / now.fraction))
    most = max(most, charts.reach(others, axis)[0] if others else 0.0) or 1.0
    scale = charts.unit(axis, most)[0]
    if quantity == "accuracy":
        series = [Series(tried_x / scale, y, *line, name="accuracy")]
        behind = charts.accuracy(others, axis, most)
    else:
        loss = now.curve.get("loss", np.zeros(0))
        keys = ("", "") if any(not one.ghost for one in others) else ("training", "held-out")
        series = [
            Series(x / scale, loss, line.colour, line.dash, name="training", key=keys[0]),
            Series(tried_x / scale, y, line.colour, "dot", line.symbol, "held-out", keys[1], width=1),
        ]
        behind = charts.loss(others, axis, state.get("log", False), most)
    picture = charts.growing(series, behind, state.get("log", False))
    told = f"{quantity} of the run under way, at {units.percent(now.fraction)}."
    return curve.frame(picture, told, "under way", labels_of_one(state.asked, f"{quantity}-so-far"))

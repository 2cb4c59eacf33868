"""See it learn: the path of a run's models over the loss surface, replayed when the reader scrolls to it."""

import streamlit as st

from app.browser import components
from app.browser.text import sentence
from app.charts.pictures import heading
from app.session import background, session
from app.settings import feasible
from experiments.execution.run import workload_of
from experiments.jobs.spec import JobSpec
from experiments.learning import boundary, record
from experiments.runs.record import Run
from experiments.viewer.canvases import landscape
from experiments.wording import units

LONG = 10.0  # s above which a run is replayed only on request
HELP = (
    "Replays the run and records its models: where each worker computes its gradient, and the model that would be "
    "shipped. The slider and the timeline share one clock."
)


def show(run: Run, folder: str, of: str = "") -> None:
    """Show the path of the run's models over the loss surface.

    The run is replayed for this once the reader scrolls there or, if it is long, asks for it. If the page shows several
    runs, `of` is the name of this one.
    """
    heading("See it learn", HELP, of)
    try:
        job = record.spec(run)
    except ValueError as error:
        st.caption(sentence(str(error)))
        return
    st.fragment(_pictures)(run, folder, job)


def _pictures(run: Run, folder: str, job: JobSpec) -> None:
    known = st.session_state.setdefault("learned", {})  # do not look it up again
    if folder not in known:
        known[folder] = job.find_result(session.ROOT)
    learned = known[folder]
    if learned is None and run.summary["wall_seconds"] > LONG and st.session_state.get("replayed") != folder:
        st.button(
            f"Replay it, in about {units.about(run.summary['wall_seconds'])}",
            key="replay-it", icon=":material/replay:", on_click=st.session_state.update, kwargs={"replayed": folder},
        )  # fmt: skip
        return
    asked = run.summary["wall_seconds"] > LONG or components.is_in_view(st.session_state.get("landscape"), folder)
    place = st.container()  # the replay's progress is shown below, so that no picture moves
    if learned is None and asked:
        learned = known[folder] = background.fetch(job, "Replaying the run.", session.REPLAY)
    with place:
        if learned is None:
            said = "The run is being replayed." if asked else "The run is replayed when you scroll here."
            components.landscape(landscape.pending(folder, said, not asked, _two(run)))
            return
        try:
            components.landscape(_frame(folder, str(learned)))
        except ValueError as error:
            st.error(sentence(str(error)), icon=":material/error:")


def _two(run: Run) -> bool:
    """Return True if a picture of the classes is expected next to the picture of the path."""
    return feasible.is_light(run.experiment) and boundary.applies(workload_of(run.experiment))


@st.cache_resource(max_entries=16, show_spinner=False)
def _frame(folder: str, learned: str) -> bytes:
    return landscape.frame(session.load(folder), record.load(learned), folder)

"""The first screen: a line of introduction, a timeline that plays, and cards that ask for predictions."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.charts import Shown, pictures
from app.comparison import in_words, reference
from app.guide import ask, coach, deck
from app.session import session
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording.rank_names import training_role
from tracing import IDLE

IDLING = ", hatched while it is **idle**"
HEARD = ("tour", "axis", "log", "at_once", "embed", "embed_options")  # parameters that choose no experiment


def settle() -> None:
    """At the start of a session, show the first screen unless the address chooses an experiment."""
    st.session_state.linked = st.query_params.get("welcome") == "true"  # by a reader who already sees it
    st.session_state.welcome = st.session_state.linked or not {*st.query_params} - {*HEARD}


def on() -> bool:
    """Return True if the page begins with the first screen."""
    return bool(st.session_state.get("welcome"))


def first() -> bool:
    """Return True if the page begins with the first screen by default, not because a shared link asks for it."""
    return on() and not st.session_state.get("linked")


def is_alone() -> bool:
    """Return True while a browser draws its first screen. The pictures of the screen's run follow once the reader sees
    it.

    Tests without a browser have no curtain to open, and get the whole page at once.
    """
    return first() and "opened" not in st.session_state and "Sec-WebSocket-Key" in st.context.headers


def show(folder: str) -> bool:
    """Draw the first screen above the run in `folder`; return True if it has explained the run's result."""
    try:
        run = session.load(folder)
    except ValueError:  # the page says why
        return False
    with st.container(key="welcome", gap="small"):
        _title()
        digits = run.experiment == Experiment()
        whose = (
            "Here four workers, each a simulated machine, learn to read digits together. Each has"
            if digits
            else f"Each {training_role(run.experiment, run.trace.ranks)} has"
        )
        with _words():
            if before := _before(run, folder):
                in_words.in_short(before, run, why=True)  # elsewhere the reason stands above
            else:
                idling = IDLING if run.trace.busy()[:, IDLE].any() else ""
                st.markdown(
                    f"{whose} a lane: blue while it **computes**, orange while it **communicates**, grey while it "
                    f"**waits**, green while it **updates** its model{idling}."
                )
        with _lanes():
            st.fragment(pictures.lanes)(folder, play=deck.is_answer(run) if deck.answers() else first())
            with st.container(key="cards"):
                return deck.draw(run)


def draw_placeholder(say_progress: Callable[[], None]) -> None:
    """Draw the first screen while its run is in progress, with the progress in the place of the lanes."""
    with st.container(key="welcome", gap="small"):
        _title()
        with _words():
            st.markdown(
                "Each worker will have a lane here that shows when it **computes**, **communicates** and **waits**."
            )
        with _lanes():
            say_progress()


def _title() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown("# Train one model on many machines, and see what happens", width="stretch", anchors=False)
        st.button("Show me around", key="tour", icon=":material/explore:", type="tertiary", on_click=coach.start)
        st.button(
            "Close", key="leave", icon=":material/close:", type="tertiary", on_click=_leave,
            help="Close this introduction.",
        )  # fmt: skip


def _lanes():
    """Return a container that is already as high as four lanes, the picture of what is learned, and the cards
    (style.css).
    """
    return st.container(key="first-lanes", gap="small")


def _words():
    """Return the box for the words above the lanes; its size is fixed while the run is in progress (style.css)."""
    return st.container(key="welcome-words")


def _before(run: Run, folder: str) -> Shown | None:
    """Return the previous run if the words above the lanes are to compare `run` with it.

    Return None if a card or a question makes the comparison.
    """
    before = reference.before(run.experiment, [Path(folder).name])  # pinned or not
    if before is None or deck.is_answer(run) or ask.is_beside_the_question(before.run.experiment, run.experiment):
        return None
    return before


def _leave() -> None:
    st.session_state.welcome = False
    st.query_params.pop("welcome", None)

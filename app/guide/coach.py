"""A tour in five steps that points at parts of the page. It ends when the reader closes it, or uses the page."""

from typing import NamedTuple

import streamlit as st

from app.browser.scripts import script

KEY = "coach"
_mount = script("coach")


class CoachStep(NamedTuple):
    """A step of the tour; `at` is the part of the page that it points at, by its name in coach.js."""

    at: str
    title: str
    says: str


STEPS = (
    CoachStep(
        "worker",
        "This is a worker",
        "A machine with a copy of the model and its own share of the data. Its lane shows how it spends its time.",
    ),
    CoachStep(
        "lanes",
        "Each colour is a kind of work",
        "Blue: it computes a gradient. Orange: all workers sum their gradients. Green: each updates its model.",
    ),
    CoachStep(
        "wait",
        "Grey is waiting",
        "A thin grey bar: its worker waits for another. Slow one worker down, and the others turn grey. A hatched bar: "
        "it is idle, because it is paused, lost or done.",
    ),
    CoachStep(
        "name",
        "Click a name to cause trouble",
        "Slow that worker down, pause it, or lose it, at any moment of the run.",
    ),
    CoachStep(
        "run",
        "Change something",
        "A short run starts by itself, a long one when you press Run. The previous run stays in the charts, in grey.",
    ),
)


def start() -> None:
    st.session_state.tours = st.session_state.get("tours", 0) + 1


def show(first: bool, lanes: int, run: str) -> None:
    """Mount the tour of a timeline with `lanes` lanes. It opens on request, and once by itself on a `first` visit.

    It ends when `run`, the key of the experiment that the page shows or is running, changes.
    """
    state = st.session_state
    if "tours" not in state:
        state.tours = int(st.query_params.get("tour") == "1")
    steps = tuple(step._asdict() for step in STEPS)  # Streamlit imports pandas to look at a list
    _mount(data={"steps": steps, "first": first, "asked": state.tours, "lanes": lanes, "run": run}, key=KEY)

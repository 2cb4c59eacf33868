"""Optional predictions before a run, later compared with its result and with other readers' predictions."""

import math
from collections import Counter

import streamlit as st

from app.browser.text import escape_markdown
from app.comparison import changes, reference
from app.session import pins, poll, session
from experiments.runs.figures import LAST, figure_text
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording.units import DIVERGED

QUESTIONS = {
    "samples_per_second": ("Samples per second", ("fewer", "as many", "more")),
    "held_out_loss": ("Held-out loss", ("lower", "the same", "higher")),
}
"""The question about each value of a run's summary, and its answers, from less to more."""

SAME = 0.05  # share of the other run's figure within which both count as equal


def offer(wanted: Experiment) -> None:
    """Ask the reader to predict how the next run will compare with the pinned run or the run on the page."""
    found = reference.of_the_next()
    if found is None or not (changed := changes.between(found[1].experiment, wanted)):
        return
    which = "the pinned run" if pins.names() else "the run shown"
    with st.container(gap="xsmall", key="predict"):
        st.caption(
            f"Predict (optional): with {escape_markdown(', '.join(changed[:3]))}, "
            f"how will the run compare with {which}?"
        )
        with st.container(horizontal=True, gap="medium"):
            for name, (question, answers) in QUESTIONS.items():
                st.segmented_control(question, answers, key=f"predict-{name}", width="content")


def seal(experiment: Experiment) -> None:
    """Attach the reader's predictions to the run of `experiment`, which is starting.

    The predictions are counted in the poll, and cleared from the page.
    """
    state, found = st.session_state, reference.of_the_next()
    said = {name: answer for name in QUESTIONS if (answer := state.get(f"predict-{name}"))}
    state.sealed = (experiment.key(), found[0], said) if found and said else None
    for name, answer in said.items() if found else ():
        poll.count(_question(name, experiment, found[1]), answer)
    for name in QUESTIONS:
        state[f"predict-{name}"] = None


def show_verdict(run: Run) -> None:
    """Show the predictions for `run` next to its results."""
    key, folder, said = st.session_state.get("sealed") or ("", "", {})
    if key != run.experiment.key():
        return
    before = session.load(folder)
    for name, answer in said.items():
        if line := verdict(name, answer, outcome(before, name), outcome(run, name)):
            st.markdown(line)
            if others := among(QUESTIONS[name][1], poll.tally(_question(name, run.experiment, before))):
                st.caption(others)


def verdict(name: str, answer: str, before: float | None, after: float | None) -> str:
    """Return a line with the prediction and the result, or "" if there is nothing to compare."""
    question, answers = QUESTIONS[name]
    if before is None or after is None:
        return ""
    is_so = answers[1 + (after > before * (1 + SAME)) - (after < before * (1 - SAME))]
    right = is_so == answer
    badge = (
        ":green-badge[:material/check: as predicted]" if right else ":orange-badge[:material/close: not as predicted]"
    )
    told = f"{question}: {is_so}" if right else f"{question}: {is_so}, you predicted {answer}"
    return f"{badge} {told}. {_words(name, after)}, compared with {_words(name, before)} in the other run."


def outcome(run: Run, name: str) -> float | None:
    """Return a value of a run's summary. The final loss of a diverged run is infinite."""
    return math.inf if run.status == DIVERGED and name in LAST else run.summary[name]


def _words(name: str, value: float) -> str:
    return figure_text(name, value) if math.isfinite(value) else DIVERGED


def among(answers: tuple[str, ...], counts: Counter) -> str:
    """Return a summary of all readers' predictions, in the order of `answers`, or "" if there are none."""
    said = [f"{counts[answer]} said {answer}" for answer in answers if counts[answer]]
    return f"Of {counts.total()} predictions here, {', '.join(said)}." if said else ""


def _question(name: str, experiment: Experiment, before: Run) -> tuple[str, ...]:
    """Return the key of the poll that is shared by all readers who compare this experiment with that run."""
    return name, experiment.key(), before.experiment.key()

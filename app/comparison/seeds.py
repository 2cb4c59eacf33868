"""Repeat the runs on the page with other seeds, to separate chance from the effect of a change."""

from pathlib import Path

import streamlit as st

from app.browser import address
from app.browser.text import sentence
from app.session import background, session
from experiments.jobs.upload import is_uploaded
from experiments.runs.record import Run
from experiments.runs.seeds import differ_in_seed, with_seeds

SEEDS = 5


def choose(run: Run) -> None:
    """Draw the switch between one seed and several."""
    real = run.experiment.cluster != "simulated"
    address.toggle(
        f"{SEEDS} seeds", "seeds", disabled=real,
        help="Available on the simulated cluster only." if real else
        f"Repeat every run on the page with {SEEDS} seeds; show the mean and a band of one standard deviation.",
    )  # fmt: skip


def others(these: list[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Request repetitions of these runs with other seeds, show their progress, and return (name, run) of those that
    have finished.
    """
    if not st.session_state.get("seeds"):
        return []
    there = [run.experiment for name, run in these if not is_uploaded(name) and run.experiment.cluster == "simulated"]
    firsts = [there[places[0]] for places in differ_in_seed(there)]
    known = {one.key() for one in there}
    wanted = [one for first in firsts for one in with_seeds(first, SEEDS) if one.key() not in known]
    states = [background.ask(one, f"seeds-{number}") for number, one in enumerate(wanted)]
    if active := {f"seeds-{n}": one.key() for n, one in enumerate(wanted) if states[n].active}:
        background.progress(active, len(wanted) + len(firsts))
    for one, state in zip(wanted, states, strict=True):
        if not state.active and state.folder is None:
            st.caption(f":material/block: seed {one.seed}: {sentence(state.message)}")
    done = [str(state.folder) for state in states if state.folder]
    return [(Path(folder).name, session.load(folder)) for folder in done]

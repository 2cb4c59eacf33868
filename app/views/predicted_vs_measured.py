"""Predicted and measured: one experiment simulated with this machine's constants, and on real processes."""

from __future__ import annotations

import streamlit as st

from app import background, session, units
from app.charts import lane_names
from app.components import timeline
from app.text import sentence
from app.views.pictures import heading
from experiments.experiment import OWN, Experiment
from experiments.measure import this_machine
from experiments.plots import curves
from experiments.runs.record import Run

REAL = 4  # ranks that are measured; more would wait for each other's cores


def counterpart(e: Experiment) -> Experiment | None:
    """Return the prediction of a measured experiment, or the measurement of a predicted one.

    None if there is none: this machine was not fitted while it was quiet, or `e` does not have its constants.
    """
    fit = this_machine.trusted()
    if fit is None:
        return None
    here = {"device": fit.device, "network": fit.network}
    if e.cluster == "processes":
        return e.change(cluster=None, **{name: text for name, text in here.items() if getattr(e, name) == OWN})
    if e.cluster != "simulated" or e.ranks > REAL:
        return None
    own = {name: None for name, text in here.items() if getattr(e, name) == text}
    return e.change(cluster="processes", **own) if own else None


def show(run: Run, folder: str) -> None:
    """Offer the counterpart of the run on the page; once it is there, show both timelines rank by rank."""
    e = run.experiment
    other = counterpart(e)
    if other is None or run.status != "finished":
        return
    state = st.session_state
    heading("Predicted and measured", "The same experiment, simulated with what was measured here, and for real.")
    if state.get("counterpart") != e.key():
        what = "Predict it with the simulated cluster" if e.cluster == "processes" else "Run it on real processes"
        st.button(
            what, key="counterpart-run", icon=":material/compare_arrows:", on_click=state.update,
            kwargs={"counterpart": e.key()},
        )  # fmt: skip
        return
    now = background.ask(other, "counterpart")
    if now.active:
        st.fragment(_wait, run_every=background.EVERY)(other.key())
    elif now.folder is None:
        st.error(sentence(now.message), icon=":material/error:")
    else:
        done = session.load(str(now.folder))
        st.fragment(_beside)(*((run, done) if e.cluster == "processes" else (done, run)), f"{folder} {now.folder}")


def _wait(job: str) -> None:
    now = session.pool().state(job)
    if not now.active:
        st.rerun()
    session.pool().touch(f"{session.owner()}/counterpart")
    st.progress(now.fraction, text="The other run is under way.")


def _beside(measured: Run, predicted: Run, name: str) -> None:
    steps = curves.step_time(measured), curves.step_time(predicted)
    told = (
        f"A step took {units.seconds(steps[0])} and was predicted to take {units.seconds(steps[1])}, "
        f"{units.percent(steps[1] / steps[0])} of it."
    )
    st.markdown(told)
    lanes = [f"{n.split()[-1]} {word}" for n in lane_names(measured) for word in ("measured", "predicted")]
    window = timeline.wanted(st.session_state.get("counterparts"), name)
    both = timeline.beside(measured.trace, predicted.trace)
    timeline.timeline(
        timeline.framed(both, lanes, f"Measured and predicted, rank by rank. {told}", name, window), "counterparts"
    )

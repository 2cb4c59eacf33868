"""Prediction and measurement: one experiment on the simulated cluster and on real processes, and where they differ."""

import streamlit as st

from app.browser import components
from app.browser.text import escape_markdown, sentence
from app.charts import lane_names
from app.charts.pictures import heading
from app.session import background, session
from experiments.runs.parting import APART, Parting, parting, totals
from experiments.runs.record import Run
from experiments.specification import this_machine
from experiments.specification.experiment import OWN, REAL_DEFAULTS, Experiment
from experiments.viewer import waits
from experiments.viewer.canvases import timeline
from experiments.viewer.html_table import html_table
from experiments.viewer.saved import labels_of_one
from experiments.wording import naming, units
from experiments.wording.place import place

OWN_CORES = 4  # ranks measured at this machine's own speed; more would compete for cores
LEAST = 0.01  # share of all ranks' time below which a kind of span has no ratio, which would be meaningless
PAIR = "measured-and-predicted"  # in the name of a saved picture
EMULATED = 8  # ranks measured if they emulate a device, and so sleep most of the time
UNFITTED = (
    "To predict this run, measure this machine first: choose *Fit to this machine* under *Cluster* on the left, or "
    "run `lockstep fit`. A run that emulates both a network and a device needs no fit."
)


def counterpart(e: Experiment) -> Experiment | None:
    """Return the simulated counterpart of a real experiment, or the real one of a simulated experiment.

    A real cluster's own network and device are predicted with the fit of this machine. Return None if there is no
    counterpart: there is no fit from a quiet machine, real processes cannot obey the settings, or there would be too
    many of them.
    """
    fit = this_machine.trusted_fit()
    if e.cluster == "processes":
        own = [name for name in REAL_DEFAULTS if getattr(e, name) == OWN]
        return e.change(cluster=None, **{name: getattr(fit, name) for name in own}) if fit or not own else None
    if e.cluster != "simulated":
        return None
    fitted = {name: getattr(fit, name) for name in REAL_DEFAULTS} if fit else {}
    where = {name: OWN if text == fitted.get(name) else text for name in REAL_DEFAULTS if (text := getattr(e, name))}
    if e.ranks > (OWN_CORES if where["device"] == OWN else EMULATED):
        return None
    return e.change(cluster="processes", **where)


def show(run: Run, folder: str, of: str = "") -> None:
    """Offer to run the counterpart of the run on the page; once it has finished, show both timelines rank by rank.

    If the page shows several runs, `of` is the name of this one.
    """
    e = run.experiment
    other = counterpart(e)
    if run.status != "finished" or (other is None and e.cluster != "processes"):
        return
    state, where = st.session_state, "the simulated cluster" if e.cluster == "processes" else "real processes"
    heading("Predicted and measured", "The same experiment on the simulated cluster and on real processes.", of)
    if other is None:
        st.caption(UNFITTED)
        return
    if state.get("counterpart") != e.key():
        what = f"{'Predict it with' if e.cluster == 'processes' else 'Run it on'} {where}"
        st.button(
            what, key="counterpart-run", icon=":material/compare_arrows:", on_click=state.update,
            kwargs={"counterpart": e.key()},
        )  # fmt: skip
        return
    if made := background.fetch(other, f"The run on {where} is in progress.", "counterpart"):
        st.fragment(_beside)(run, session.load(str(made)), f"{folder} {made}")


def _beside(run: Run, other: Run, name: str) -> None:
    """Show the run on the page and the `other` next to each other, with the other's notes."""
    measured, predicted = (run, other) if run.experiment.cluster == "processes" else (other, run)
    took, foretold = measured.trace.seconds(), predicted.trace.seconds()
    told = (
        f"The run took {units.seconds(took)} and was predicted to take {units.seconds(foretold)}, "
        f"{units.percent(foretold / took)} of the measured time."
    )
    places = escape_markdown(place(measured.experiment, measured.gpus)), escape_markdown(place(predicted.experiment))
    st.caption("Measured: {}. Predicted: {}.".format(*places))
    for note in other.notes:  # those of the run on the page are above it
        st.caption(f":material/info: {sentence(naming.readable(other.experiment, note))}")
    st.markdown(f"{told} {describe_first_difference(parting(predicted.trace, measured.trace))}")
    _totals(measured, predicted)
    lanes = [f"{name} {word}" for name in lane_names(measured) for word in ("measured", "predicted")]
    words = [f"{word}: {said[:1].lower()}{said[1:]}" for word, one in (("Measured", measured), ("Predicted", predicted))
             if (said := waits.totals(one))]  # fmt: skip
    window = components.requested_window(st.session_state.get("counterparts"), name)
    both = timeline.beside(measured.trace, predicted.trace)
    described, saved = f"Measured and predicted, rank by rank. {told}", labels_of_one(measured.experiment, PAIR)
    frame = timeline.trace_frame(both, lanes, described, name, window, clock=True, told=" ".join(words), saved=saved)
    components.timeline(frame, "counterparts")


def describe_first_difference(where: Parting | None) -> str:
    """Return a sentence on where the prediction and the measurement first differ."""
    if where is None:
        return f"No kind of span differs by more than {100 * APART:g} % in any step."
    return (
        f"They first differ by more than {100 * APART:g} % in step {where.step + 1}, in *{where.kind}*: "
        f"{units.seconds(where.predicted)} predicted and {units.seconds(where.measured)} measured, over all ranks. "
        f"Spans of this kind differ as much in {units.count(where.steps)} of {units.count(where.compared)} steps."
    )


def _totals(measured: Run, predicted: Run) -> None:
    """Draw the time of each kind of span, summed over all ranks and the whole run."""
    kinds = totals(predicted.trace, measured.trace)
    least = [LEAST * sum(getattr(kind, word) for kind in kinds) for word in ("predicted", "measured")]
    rows = []
    for one in kinds:
        ratio = units.number(one.ratio) if one.predicted > least[0] and one.measured > least[1] else "–"
        rows.append((one.kind, (units.seconds(one.predicted), units.seconds(one.measured), ratio)))
    st.html(f'<div class="figures">{html_table(("all ranks", "predicted", "measured", "ratio"), rows)}</div>')
    st.caption(f"No ratio is shown for a kind of span that takes less than {100 * LEAST:g} % of either run's time.")

"""What came of a sweep: speed-up and efficiency, two figures as bars, or one over two settings as a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app import charts
from app.browser import components
from app.browser.text import sentence
from app.charts import Shown
from app.charts.pictures import chart, heading
from app.session import session
from app.settings.controls import Control, spoken
from experiments.jobs.job import JobState
from experiments.runs.figures import FIGURES, suited
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer import curves
from experiments.wording import units

MAPPED = ("held_out_loss", "accuracy", "samples_per_second", "seconds", "bytes")


def compared(one: Control, shown: list[Shown], stops: list, alike: bool) -> None:
    """Draw what came of a sweep: of workers speed-up and efficiency, else samples per second and the loss, or time."""
    left, right = st.columns(2, gap="medium")
    if one.name == "workers":
        loss = _common(shown)
        told = _scaling(shown, stops, loss)
        with left:
            weak = "" if shown[0].run.experiment.method.shares_samples else " Each worker has its batch: weak scaling."
            heading(
                "Speed-up",
                f"How many times as fast as the run with the fewest workers; the dotted line is ideal.{weak}",
            )
            chart(charts.speed_up, shown, told, tuple(stops), loss)
        with right:
            heading("Efficiency", "Speed-up as a share of the ideal one.")
            chart(charts.efficiency, shown, told, tuple(stops), loss)
        st.caption(told)
        return
    second = ("seconds", "Time to the end, s") if alike else ("held_out_loss", "Held-out loss at the end")
    names = tuple(one.words(value) for value in stops)
    for side, (figure, word) in ((left, ("samples_per_second", "Samples per second")), (right, second)):
        with side:
            heading(word)
            chart(charts.outcome, shown, word, names, figure, "", spoken(one.name), key=f"outcome-{figure}")


def mapped(
    axes: tuple[Control, Control],
    stops: tuple[list, list],
    states: Sequence[JobState],
    opened: Callable[[Experiment], None],
) -> None:
    """Draw a figure over the values of two settings, whose runs are in these states, row by row.

    opened(experiment) is called when the cell of a run is clicked.
    """
    places = [(column, row) for row in range(len(stops[1])) for column in range(len(stops[0]))]
    runs = {place: _outcome(state) for place, state in zip(places, states, strict=True)}
    known = next((run.experiment for run in runs.values() if isinstance(run, Run)), None)
    figures = suited(MAPPED, known) if known else MAPPED
    st.segmented_control(
        "Figure", figures, key="map_figure", default=MAPPED[0], required=True, label_visibility="collapsed",
        format_func=lambda name: FIGURES[name].label,
    )  # fmt: skip
    figure = st.session_state.map_figure
    words = (tuple(one.words(value) for value in some) for one, some in zip(axes, stops, strict=True))
    grid = charts.Combinations(*(spoken(one.name) for one in axes), *words, runs)
    table = charts.heat(grid, figure)

    def clicked() -> None:
        run = runs.get(components.cell(st.session_state.get("map")))
        if isinstance(run, Run):
            opened(run.experiment)

    components.heat_map(table, clicked, "map")
    st.caption("A cell opens its run.")
    for message in dict.fromkeys(state.message for state in states if state.folder is None and not state.active):
        st.caption(f":material/block: {sentence(message)}")


def _outcome(state: JobState) -> Run | str:
    if state.folder:
        return session.load(str(state.folder))
    return "under way" if state.active else "cannot run"


def _common(shown: list[Shown]) -> float | None:
    """Return the lowest held-out loss that all of them reached, whatever they end at."""
    best = [one.run.summary["best_held_out_loss"] for one in shown]
    return max(best) if None not in best else None


def _scaling(shown: list[Shown], stops: list[int], loss: float | None) -> str:
    """Return the speed-up in words."""
    first, last = shown[0].run.summary, shown[-1].run.summary
    faster = (last["samples_per_second"] or 0.0) / (first["samples_per_second"] or 1.0)
    told = f"{stops[-1]} workers do {units.number(faster)} times as many samples per second as {stops[0]}"
    ideal = stops[-1] / stops[0]
    told += f", {units.percent(faster / ideal)} of the ideal {units.number(ideal)}"
    if loss is None:
        return f"{told}."
    times = [curves.reached(one.run, loss) for one in (shown[0], shown[-1])]
    if not all(times):  # the start was not improved on
        return f"{told}."
    lowest = f"to a held-out loss of {units.loss(loss)}, the lowest that all reach at some time,"
    return f"{told}; {lowest} {sooner(times[0] / times[1])}."


def sooner(times: float) -> str:
    """Return in words how much sooner the last comes than the first: it takes the first `times` as long."""
    if times >= 1:
        return f"they come {units.number(times)} times as fast"
    return f"they take {units.number(1 / times)} times as long"

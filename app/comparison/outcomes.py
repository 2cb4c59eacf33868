"""Results of a sweep: how the runs scale, two values of each run as bars, or a map of one value over two settings."""

from collections.abc import Callable, Sequence

import streamlit as st

from app import charts
from app.browser import components
from app.browser.text import sentence
from app.charts import Shown
from app.charts.pictures import chart, heading
from app.session import session
from app.settings.controls import Control
from experiments.jobs.job import JobState
from experiments.runs.figures import FIGURES, choose_figures
from experiments.runs.record import Run
from experiments.runs.scaling import global_batch
from experiments.specification.experiment import Experiment
from experiments.wording import units
from experiments.wording.field_labels import field_label

MAPPED = ("held_out_loss", "accuracy", "samples_per_second", "seconds", "bytes")


def draw_outcomes(one: Control, shown: list[Shown], stops: list, alike: bool) -> None:
    """Draw the results of a sweep. If it varies the workers, show how the runs scale; otherwise show samples per
    second, and the loss or the time.
    """
    if one.name == "workers":
        _scaled(shown, stops)
        return
    left, right = st.columns(2, gap="medium")
    second = ("seconds", "Time to the end, s") if alike else ("held_out_loss", "Held-out loss at the end")
    names = one.words_on_axis(stops)
    for side, (figure, word) in ((left, ("samples_per_second", "Samples per second")), (right, second)):
        with side:
            heading(word)
            chart(charts.outcome, shown, word, names, figure, "", field_label(one.name), key=f"outcome-{figure}")


def _scaled(shown: list[Shown], stops: list[int]) -> None:
    """Draw time per step, speed-up and efficiency against the number of workers."""
    loss = _common(shown)
    told = _scaling(shown, stops, loss)
    pictures = (
        (charts.step_time, "Time per step", f"The time until a worker begins its next step.{_kind(shown)}"),
        (charts.speed_up, "Speed-up", "How many times as fast as the run with the fewest workers; dotted: ideal."),
        (charts.efficiency, "Efficiency", "Speed-up as a share of the ideal one."),
    )
    for column, (draw, title, words) in zip(st.columns(3, gap="medium"), pictures, strict=True):
        with column:
            heading(title, words)
            chart(draw, shown, told, tuple(stops), loss)
    st.caption(told)


def _kind(shown: list[Shown]) -> str:
    """Return a sentence on the kind of scaling, strong or weak.

    Return "" if all runs have the same number of workers, or if workers share every sample.
    """
    experiments = [one.run.experiment for one in shown]
    if experiments[0].method.shares_samples or len({e.workers for e in experiments}) == 1:
        return ""
    if len({global_batch(e) for e in experiments}) == 1:
        return " All workers divide the same global batch: strong scaling."
    return " The batch per worker stays the same: weak scaling."


def draw_map(
    axes: tuple[Control, Control],
    stops: tuple[list, list],
    states: Sequence[JobState],
    opened: Callable[[Experiment], None],
) -> None:
    """Draw a heat map of a value of the summary over the values of two settings. `states` are the states of the runs,
    row by row.

    opened(experiment) is called when the cell of a run is clicked.
    """
    places = [(column, row) for row in range(len(stops[1])) for column in range(len(stops[0]))]
    runs = {place: _outcome(state) for place, state in zip(places, states, strict=True)}
    known = next((run.experiment for run in runs.values() if isinstance(run, Run)), None)
    figures = choose_figures(MAPPED, known) if known else MAPPED
    st.segmented_control(
        "Figure", figures, key="map_figure", default=MAPPED[0], required=True, label_visibility="collapsed",
        format_func=lambda name: FIGURES[name].label,
    )  # fmt: skip
    figure = st.session_state.map_figure
    words = (one.words_on_axis(some) for one, some in zip(axes, stops, strict=True))
    grid = charts.Combinations(*(field_label(one.name) for one in axes), *words, runs)
    table = charts.heat(grid, figure)

    def clicked() -> None:
        run = runs.get(components.cell(st.session_state.get("map")))
        if isinstance(run, Run):
            opened(run.experiment)

    components.heat_map(table, clicked, "map")
    st.caption("Click a cell to open its run.")
    for message in dict.fromkeys(state.message for state in states if state.folder is None and not state.active):
        st.caption(f":material/block: {sentence(message)}")


def _outcome(state: JobState) -> Run | str:
    if state.folder:
        return session.load(str(state.folder))
    return "under way" if state.active else "cannot run"


def _common(shown: list[Shown]) -> float | None:
    """Return the lowest held-out loss that every run reached at some point, even if it rose again."""
    best = [one.run.summary["best_held_out_loss"] for one in shown]
    return max(best) if None not in best else None


def _scaling(shown: list[Shown], stops: list[int], loss: float | None) -> str:
    (by, found), *reached = charts.scalings(shown, loss).items()
    faster, share = found[-1].speed_up, found[-1].efficiency
    if not faster:
        return f"The {by} of {stops[-1]} and of {stops[0]} workers cannot be compared: a run ended too early."
    what = (
        "process {} times as many samples per second as"
        if by.startswith("samples")
        else "reach the loss {} times as fast as"
    )
    told = f"{stops[-1]} workers {what.format(units.number(faster))} {stops[0]}"
    told += f", {units.percent(share)} of the ideal {units.number(stops[-1] / stops[0])}"
    if not reached:
        return f"{told}."
    lowest = f"to a held-out loss of {units.loss(loss)}, which every run reaches on the way, though it may end higher,"
    return f"{told}; {lowest} {sooner(reached[0][1][-1].speed_up)}."


def sooner(times: float) -> str:
    """Return a speed-up in words: how many times as fast the runs are or, if `times` is below 1, how many times as long
    they take.
    """
    if times >= 1:
        return f"they are {units.number(times)} times as fast"
    return f"they take {units.number(1 / times)} times as long"

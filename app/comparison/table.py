"""A table that compares runs, with a column per run."""

from html import escape

import streamlit as st

from app.charts import Shown
from app.charts.words import figure_of, line
from app.comparison import changes
from app.session import pins, session
from experiments.runs.figures import FIGURES
from experiments.viewer.html_table import Html, html_table
from experiments.wording.field_labels import field_label

COMPARED = (
    *("held_out_loss", "accuracy", "r2", "samples", "updates", "seconds", "bytes", "flops"),
    *("samples_per_second", "share_compute", "share_wait", "staleness_mean"),
)
"""The values of a run's summary that the table shows."""
COLUMNS = 6  # settings in the table; more would not fit


def show(shown: list[Shown]) -> None:
    """Draw a table of the runs on the page: the settings in which they differ, and values of their summaries.

    With several seeds, values are means and standard deviations. The table has a column per run: there are few runs and
    many values, so that nothing is cut off at the right.
    """
    flats = [changes.flat(one.run.experiment, bool(one.others)) for one in shown]
    settings = changes.differing(flats)[:COLUMNS]
    rows = [
        (
            field_label(name),
            [
                changes.value_of(one.run.experiment, name, flat[name]) if name in flat else "–"
                for one, flat in zip(shown, flats, strict=True)
            ],
        )
        for name in settings
    ]
    there = [name for name in COMPARED if any(run.summary.get(name) is not None for one in shown for run in one.runs)]
    rows += [(_explained(name), [figure_of(one, name) for one in shown]) for name in there]
    heads = ["", *(Html(f"{line(one)} {escape(one.name)}") for one in shown)]
    st.html(f'<div class="figures compared">{html_table(heads, rows)}</div>')
    behind = ["for one run, an accuracy's standard error, from the number of held-out samples"] * any(
        one.run.summary.get("accuracy_error") and not one.others for one in shown
    )
    behind += ["for several seeds, the standard deviation over them"] * any(one.others for one in shown)
    if behind:
        st.caption(f"± means: {'; '.join(behind)}.")


def _explained(name: str) -> Html:
    """Return the label of a value of the summary, whose meaning is shown on hover."""
    label, _, meaning = FIGURES[name]
    return Html(f'<span title="{escape(meaning)}">{escape(label)}</span>')


def unpin(shown: list[Shown]) -> None:
    """Draw a button for each pinned run that unpins it."""
    with st.container(horizontal=True, gap="small"):
        for name in pins.names():
            run = session.find(name)
            of = next((one for one in shown if any(run is each for each in one.runs)), None)
            label = of.name if of else name
            label += f", seed {run.experiment.seed}" if of and of.others else ""
            st.button(
                f"Unpin: {label}", key=f"unpin-{name}", on_click=pins.remove, args=(name,),
                type="tertiary", icon=":material/close:",
            )  # fmt: skip

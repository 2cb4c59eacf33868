"""The main figures of a run, shown above its charts. Over several seeds, they are means and standard deviations."""

import streamlit as st

from app.browser import looks
from app.charts import Shown
from app.charts.words import figure_of
from experiments.runs.figures import FIGURES, choose_figures, headline_label
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer import doing, palette
from experiments.wording import units

ABOVE = ("held_out_loss", "accuracy", "seconds", "samples_per_second", "share_compute", "bytes", "staleness_mean")
SPREAD = '<p class="spread">{}</p>'


def await_them(experiment: Experiment) -> None:
    """Draw placeholders for the main figures of a run in progress."""
    names = [
        name
        for name in choose_figures(ABOVE, experiment)
        if name != "staleness_mean" or experiment.method.counts_staleness
    ]
    with st.container():
        grid = _grid(len(names))
    for name in names:
        grid.container(gap="xxsmall").metric(headline_label(name, experiment), "–", help=FIGURES[name][2])
    with st.container(key="over-seeds"):
        st.html(SPREAD.format(""))


def show(one: Shown) -> None:
    """Draw the main figures of a run. Over several seeds, draw means and standard deviations, and say so."""
    run = one.run
    names = choose_figures(ABOVE, run.experiment)
    told = [name for name in names if name != "staleness_mean" or run.summary.get(name) is not None]
    grid = _grid(len(told))
    for name in told:  # without a shared model there is no staleness
        value, help = run.summary.get(name), FIGURES[name][2]
        if name == "accuracy" and run.summary.get("accuracy_error") and not one.others:
            help += f" After the ±: its standard error, from {run.held_out_samples:,} held-out samples."
        less = None
        if name == "bytes" and (ratio := run.summary.get("compression_ratio")):
            less = f"{units.number(100 / ratio)} % of whole gradients"
            help = f"By all ranks together, payload only. Uncompressed, it would be {units.size(ratio * value)}."
        if name == "share_compute" and value is not None:
            seed = f" Of seed {run.experiment.seed}:" * bool(one.others)
            help += seed + "".join(f" {kind.capitalize()}: {share}." for kind, share in _spent(run).items())
        cell, label = grid.container(gap="xxsmall"), headline_label(name, run.experiment)
        cell.metric(label, figure_of(one, name), less, delta_color="off", delta_arrow="off", help=help)
        if name == "share_compute" and value is not None:
            cell.html(shares(run))


def spread(one: Shown) -> None:
    """Show which seeds the figures above cover. With a single seed the line is empty, so that nothing moves."""
    words = f"± standard deviation over {len(one.runs)} seeds; timeline of seed {one.run.experiment.seed}"
    st.html(SPREAD.format(words if one.others else ""))
    if one.others:
        looks.shrink_figures()


def _grid(figures: int):
    """Return a grid for this many figures. It has two lines only if the second would have more than one figure."""
    return st.grid(min_column_width=140 if figures < 7 else 190, gap="small", key="figures")


def _spent(run: Run) -> dict[str, str]:
    """Return the share of the workers' time that each kind of span took, as text."""
    return {kind: units.percent(share) for kind, share in doing.shares(run).items()}


def shares(run: Run) -> str:
    """Return a bar of the workers' time in the timeline's colours."""
    told = ", ".join(f"{kind} {share}" for kind, share in _spent(run).items())
    parts = "".join(
        f'<i style="width: {100 * share:.2f}%; background: {palette.DRAWN[kind].colour}"></i>'
        for kind, share in doing.shares(run).items()
    )
    return f'<div class="shares" role="img" aria-label="The workers\' time: {told}" title="{told}">{parts}</div>'

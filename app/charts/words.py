"""Words for the runs on the page: the legend of the charts, and values as text."""

from collections.abc import Callable
from html import escape

import streamlit as st

from app.charts import Shown
from experiments.exports.report import mark
from experiments.runs.figures import LAST, figure_text, final_figure, run_figure_text
from experiments.runs.seeds import seed_figure
from experiments.viewer import palette
from experiments.wording import units
from experiments.wording.units import DIVERGED


def legend(shown: list[Shown]) -> None:
    st.html(legend_of(shown, line))


def legend_of(shown: list[Shown], line: Callable[[Shown], str]) -> str:
    """Return the legend as HTML; line(run) is the HTML before a run's name."""
    entries = "".join(f"<span>{line(one)} {escape(one.name)}</span>" for one in shown)
    band = "; mean over seeds, in a band of ± one standard deviation" if any(one.others for one in shown) else ""
    return f'<div class="legend">{entries}<em>line: training, points: held-out{band}</em></div>'


def line(one: Shown) -> str:
    """Return the HTML of a run's line and points as they look in the charts."""
    colour, _, symbol = one.line
    return f'{mark(one)}<b style="color: {colour}">{palette.MARKS[symbol]}</b>'


def figure_of(one: Shown, name: str) -> str:
    """Return a value of a run's summary as text.

    With several seeds, it is the mean and standard deviation. The text also says how many runs have the value if some
    have not.
    """
    if not one.others:
        return run_figure_text(one.run, name)
    s = seed_figure(final_figure(run.status, run.summary, name) for run in one.runs)
    gone = sum(run.status == DIVERGED for run in one.runs) if name in LAST else 0
    if gone == len(one.runs):
        return DIVERGED
    of = [f"{s.n} of {len(s.values)}"] * (0 < s.n < len(s.values)) + [f"{gone} {DIVERGED}"] * bool(gone)
    return figure_text(name, s.mean, s.std) + (f" ({'; '.join(of)})" if of else "")


def ending(one: Shown) -> str:
    """Return a sentence on how a run ended, for readers who cannot see its picture."""
    loss = one.run.summary.get("held_out_loss")
    if one.run.status == DIVERGED:
        return f"{one.name}: {DIVERGED}."
    return f"{one.name}: " + ("no held-out loss." if loss is None else f"held-out loss {units.loss(loss)} at the end.")

"""The values that describe a schedule, or two schedules and their differences, as a table and in sentences."""

import streamlit as st

from experiments.study import schedules as study
from experiments.study.schedules import Study
from experiments.viewer.html_table import html_table
from experiments.wording import units
from experiments.wording.sentences import capital


def figure(value: float) -> str:
    """Return a time or a count of a schedule as text."""
    return units.number(value, 4)


def points(value: float) -> str:
    """Return a difference between two shares as text, such as "+1.5 points"."""
    return f"{100 * value:+.1f} points".replace("-", "−")


FIGURES = (
    ("makespan", "Makespan", figure, "from the start of the first op to the end of the last"),
    ("bubble_of_total", "Bubble, of total", units.percent, "idle share of the whole (GPipe, Chimera)"),
    ("bubble_of_ideal", "Bubble, of ideal", units.percent, "idle time over working time (Megatron-LM)"),
    ("bubble_of_span", "Bubble, of span", units.percent, "idle share of the longest span of a rank (zero bubble)"),
    ("throughput", "Throughput", figure, "micro-batches per unit of time"),
    ("in_flight", "In flight", figure, "most micro-batches on one rank that are past F, but not yet at B or I"),
    (
        "held",
        "Activations held",
        figure,
        "most micro-batches on one rank whose activations are in memory: kept until W, or recomputed by R",
    ),
    ("copies", "Weights held", figure, "most copies on one rank: versions still needed, and stages held twice"),
    ("versions", "Versions alive", figure, "most for one stage: the newest, and those that a backward will still read"),
    ("delay", "Delay", figure, "most updates between a gradient's forward pass and its own update"),
    ("path_ops", "Ops on the critical path", figure, "outlined: if any of them takes longer, so does the step"),
    ("path_links", "Links on the critical path", figure, "number of transfers between ranks"),
)
"""The rows of the table: name in the summary, label, words, meaning."""
MORE_IS_BETTER = ("throughput",)
NEITHER = ("path_ops", "path_links")


def size_label(ranks: int, chunks: int, between: str = " · ") -> str:
    """Return the size of a schedule as text, such as "4 ranks · 8 micro-batches"."""
    return f"{ranks} rank{'s' * (ranks != 1)}{between}{units.count(chunks)} micro-batch{'es' * (chunks != 1)}"


def compare_schedules(one: Study, other: Study) -> str:
    """Return sentences that compare `other` with `one`: idle time, makespan and the memory for activations."""
    a, b = one.plan.title, other.plan.title
    a = a.lower() if one.plan.schedule == study.OWN else a  # within a sentence
    (idle, now_idle), (took, takes), (many, now_many) = (
        (one.summary[name], other.summary[name]) for name in ("bubble_of_total", "makespan", "held")
    )
    if units.percent(idle) == units.percent(now_idle):
        said = [f"{b} is idle as much as {a}: ranks are idle for {units.percent(idle)} of the time in both."]
    else:
        word = "less" if now_idle < idle else "more"
        said = [f"{b} waits {word} than {a}: ranks are idle for {units.percent(now_idle)} of the time instead of "
                f"{units.percent(idle)}."]  # fmt: skip
    if took != takes:
        said.append(f"It takes {figure(takes)} instead of {figure(took)}.")
    kept = f"a rank keeps the activations of at most {figure(now_many)} micro-batch{'es' * (now_many != 1)} in memory"
    said.append(f"With both, {kept}." if many == now_many else f"{capital(kept)} instead of {figure(many)}.")
    return " ".join(said)


def unlike(studies: dict[str, Study]) -> str:
    """Return a sentence on why the reader's own schedule and another do different work, and how to make them
    comparable.
    """
    own, other = sorted(studies.values(), key=lambda done: done.plan.schedule != study.OWN)
    mine, its = (size_label(done.summary["ranks"], done.chunks, " and ") for done in (own, other))
    return (
        f"They do different work, so they cannot be compared: your own schedule has {mine}, {other.plan.title} "
        f"has {its}. To compare them, set Ranks to {own.summary['ranks']} and Micro-batches to {own.chunks}."
    )


def table(studies: list[Study], compared: bool) -> None:
    """Draw all values of one schedule with their meaning, or the values of two. The differences are shown if the two
    schedules are comparable.
    """
    heads = ["", *(done.plan.title for done in studies), *(["difference"] if compared else []), ""]
    rows = []
    for name, label, say, meaning in FIGURES:
        values = [done.summary[name] for done in studies]
        cells = ["–" if name == "delay" and value < 0 else say(value) for value in values]
        if compared:
            cells.append(_difference(name, *values))
        rows.append((label, [*cells, meaning]))
    st.html(f'<div class="figures explained">{html_table(heads, rows)}</div>')


def _difference(name: str, a: float, b: float) -> str:
    if name == "delay" and min(a, b) < 0:
        return ""
    if a == b:
        return "the same"
    judged = "" if name in NEITHER else ", better" if (b > a) is (name in MORE_IS_BETTER) else ", worse"
    if name.startswith("bubble"):
        return f"{points(b - a)}{judged}"
    part = f" ({100 * (b / a - 1):+.1f} %)" if a else ""
    return f"{'+' if b > a else '-'}{figure(abs(b - a))}{part}".replace("-", "−") + judged

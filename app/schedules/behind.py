"""The details of a schedule: its ranks, idle slots, critical path, text and source."""

from pathlib import Path

import streamlit as st

from app.browser.frames import frame
from app.browser.text import escape_markdown
from app.schedules.figures import FIGURES
from experiments.study import schedules as study
from experiments.study.schedules import Study
from experiments.wording import units

TABS = ("Per rank", "Idle slots", "Critical path", "As text", "Source")
ROWS = 500  # idle slots in the table
SHOWN_OPS = 400  # of a critical path, and per rank of a schedule as text


def show(studies: list[Study]) -> None:
    """Show the details of the schedules in tabs. Only the open tab is built."""
    parts = (_per_rank, _idle, _path, _text, _source)
    for tab, show in zip(st.tabs(TABS, key="behind", on_change="rerun"), parts, strict=True):
        if not tab.open:
            continue
        with tab:
            for done in studies:
                if len(studies) > 1:
                    st.markdown(f"**{escape_markdown(done.plan.title)}**")
                show(done)


def _per_rank(done: Study) -> None:
    words = {name: label for name, label, _, _ in FIGURES}
    names = ("busy", "idle", "span", "in_flight", "held", "copies", "versions", "delay")
    table = {words.get(name, name.capitalize()): done.ranks[name] for name in names}
    rows = frame({"Rank": range(len(done.ranks["busy"])), **table})
    st.dataframe(rows.replace({"Delay": {-1: None}}), hide_index=True)


def _idle(done: Study) -> None:
    slots = done.idle
    count = len(slots["start"])
    if not count:
        st.markdown("No rank is ever idle.")
        return
    longest = (slots["start"] - slots["end"]).argsort(kind="stable")[:ROWS]
    rows = {
        "Rank": slots["rank"][longest],
        "From": slots["start"][longest],
        "To": slots["end"][longest],
        "Takes": (slots["end"] - slots["start"])[longest],
        "Because": [done.why(row) for row in longest],
    }
    st.dataframe(frame(rows), hide_index=True)
    if count > ROWS:
        st.caption(f"The longest {ROWS} of {units.count(count)} idle slots.")


def _path(done: Study) -> None:
    rows = done.ops["critical"].nonzero()[0]
    rows = rows[done.ops["start"][rows].argsort(kind="stable")]
    words = [f"{done.op(row)} on rank {done.ops['rank'][row]}" for row in rows[:SHOWN_OPS]]
    st.markdown(
        "Ops that follow each other without slack, from start to end: with their links they add up to the makespan."
    )
    st.code(" → ".join(words) + (" → …" if len(rows) > SHOWN_OPS else ""), language=None, wrap_lines=True)


def _text(done: Study) -> None:
    if len(done.ops["start"]) > SHOWN_OPS * 8:
        st.markdown("This schedule is too long to show as text.")
        return
    text = done.text()
    st.code(text, language=None)
    room = f"Choose *{study.TITLES[study.OWN]}* as the schedule and paste it there to change it."
    st.caption(room if len(text) <= study.LONGEST else f"{units.count(len(text))} characters.")


def _source(done: Study) -> None:
    if done.plan.schedule == study.OWN:
        st.markdown("This is your schedule.")
        return
    path = Path(study.module(done.plan.schedule).__file__)
    with st.container(key=f"source-code-{done.plan.schedule}"):
        st.code(path.read_text("utf-8"), language="python", wrap_lines=True)

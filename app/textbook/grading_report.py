"""The report on a solution: score, criteria and timeline; the textbook's timeline, too, once all points are earned."""

import streamlit as st

from app.browser import components
from app.browser.text import escape_markdown, sentence
from experiments.viewer.canvases import schedule, timeline
from experiments.wording import units
from experiments.wording.sentences import capital
from lessons.grading import timelines
from lessons.grading.sheet import NOT_REACHED

OPENING = 15  # spans of a rank that are shown at first


def show(report: dict, key: str) -> None:
    """Show a report, a dict from GradingReport.plain; `key` distinguishes its widgets."""
    if report.get("untouched"):
        st.info(f"Nothing is handed in yet. {sentence(report['error'])}", icon=":material/edit:")
        return
    st.markdown(f"## {report['score']} of 100", anchors=False)
    for mark in report["marks"]:
        if mark["observed"] == NOT_REACHED:
            continue
        sign = ":green[:material/check:]" if mark["earned"] else ":red[:material/close:]"
        worth = f"{mark['earned']} of {mark['points']}"
        st.markdown(
            f"{sign} **{escape_markdown(mark['name'])}** ({worth})  \n:small[{escape_markdown(mark['observed'])}]"
        )
    if missing := [mark["name"] for mark in report["marks"] if mark["observed"] == NOT_REACHED]:
        st.markdown(f":material/remove: Not reached: {escape_markdown('; '.join(missing))}.")
    if report["error"]:
        judged = len(missing) < len(report["marks"])
        early = "It ended early" if judged else "Nothing was judged"
        st.warning(f"{early}. {sentence(report['error'])}", icon=":material/error:")
    if report.get("timelines"):
        _timelines(report["timelines"], f"{key}-{report['seed']}")
    if report["printed"]:
        st.caption("It printed")
        st.code(report["printed"], language=None, wrap_lines=True)
    hints = f" Hints taken: {', '.join(report['hints'])}." if report.get("hints") else ""
    st.caption(f"Graded on the hidden cases of seed {report['seed']}, in {units.seconds(report['seconds'])}.{hints}")


def _timelines(kept: dict[str, dict], key: str) -> None:
    """Draw the timelines one above the other, on one clock, or explain when the second will appear."""
    both = len(kept) > 1
    st.markdown("### Your timeline and the textbook's" if both else "### Your timeline", anchors=False)
    if not both:
        st.caption(
            "The textbook's timeline appears next to yours once you have earned all points; until then, it would "
            "give away the answer."
        )
    for number, (whose, frame) in enumerate(_frames(kept).items()):
        st.caption(capital(whose))
        with st.container(key=f"strip-{key}-{number}"):
            components.timeline(frame, f"strip-canvas-{key}-{number}")


@st.cache_data(max_entries=16, show_spinner=False)
def _frames(kept: dict[str, dict]) -> dict[str, bytes]:
    """Return the frame of each timeline; all axes extend to the end of the longest."""
    if any("schedule" in one for one in kept.values()):
        from experiments.study.schedules import Plan, study

        studies = {whose: study(Plan.of(schedule="own", own=one["schedule"])) for whose, one in kept.items()}
        until = max(one.summary["makespan"] for one in studies.values())
        return {whose: schedule.frame(one, until) for whose, one in studies.items()}
    traces = {whose: timelines.trace(one) for whose, one in kept.items()}
    until = max(one.seconds() for one in traces.values())
    lanes = max(len(one.spans["start"]) / one.ranks for one in traces.values())
    opening = until * min(1.0, OPENING / max(1.0, lanes))
    return {
        whose: timeline.trace_frame(
            one, [f"rank {rank}" for rank in range(one.ranks)],
            f"Timeline of {whose} run: {one.ranks} ranks over {units.seconds(one.seconds())}.", whose, until=until,
            opening=(0.0, opening), clock=True,
        )
        for whose, one in traces.items()
    }  # fmt: skip

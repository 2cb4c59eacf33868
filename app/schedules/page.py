"""The schedules page: what every rank of a pipeline does when, without a model, for one schedule or two."""

import re
from html import escape
from pathlib import Path

import streamlit as st

from app.browser import chrome, components
from app.browser.text import escape_markdown
from app.charts import schedule_links
from app.schedules import behind, controls, partition
from app.schedules.figures import compare_schedules, figure, size_label, table, unlike
from app.session import background
from experiments.jobs.spec import JobSpec
from experiments.study import schedules as study
from experiments.study.schedules import Plan, Study
from experiments.study.unfinished import partial_schedule
from experiments.viewer.canvases import schedule

LINES = 64  # most lines shown of an invalid schedule
INTRODUCTION = (
    "What each rank does when, without a model: a row is a rank of a pipeline, a box is one micro-batch on its way "
    "forward (F) or backward (B), and a gap is the bubble, in which the rank waits. Choose a schedule, change the "
    "costs, and click a gap to see what the rank waits for. Answers name a box with its stage: 2B0 is the backward "
    "pass of micro-batch 0 on stage 2."
)
FIRST = (
    "**A first question.** GPipe does all forward passes first; 1F1B (one forward, one backward) starts "
    "backward passes as soon as it can. Does 1F1B wait less?"
)


def page() -> None:
    """Show controls on the left; on the right one or two schedules, their figures, and the details."""
    with st.sidebar:
        plans = controls.choose()
    chrome.show()
    _title(plans)
    answer = _introduce()
    studies = {slot: done for slot, plan in plans.items() if (done := _studied(plan, slot))}
    if not studies:
        return
    comparable = len({(done.summary["ranks"], done.chunks) for done in studies.values()}) == 1
    if len(studies) > 1:
        answer.markdown(
            f"**{escape_markdown(compare_schedules(*studies.values()))}**"
            if comparable
            else escape_markdown(unlike(studies))
        )
    until = max(done.summary["makespan"] for done in studies.values())
    for slot, done in studies.items():
        if len(plans) > 1:
            st.markdown(f"## {escape_markdown(done.plan.title)}", anchors=False)
        if _with_own(plans):
            st.caption(size_label(done.summary["ranks"], done.chunks))
        components.timeline(_frame(done.plan.model_dump_json(), until, done), key=f"lanes_{slot}")
        if link := schedule_links.training(done.plan):
            st.caption(link)
        if done.summary["stages"] > done.summary["ranks"] or done.summary["copies"] > done.summary["versions"]:
            st.caption("Lighter bars belong to a rank's second stage, third stage and so on.")
    compared = comparable and len(studies) > 1
    st.markdown("## Differences" if compared else "## In numbers", anchors=False)
    table(list(studies.values()), compared)
    partition.show(next(iter(studies.values())))
    st.fragment(behind.show)(list(studies.values()))


def _introduce():
    """Introduce the page and ask a first question. Return the place for the answer if two schedules are compared."""
    if st.session_state.schedule_b != controls.NOTHING:
        return st.container()  # no further text above the two pictures
    st.markdown(INTRODUCTION)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(FIRST, width="content")
        st.button("Put 1F1B next to GPipe", key="first-question", on_click=_compare, args=("gpipe", "1f1b"))


def _with_own(plans: dict[str, Plan]) -> bool:
    """Return True if one of the schedules is the reader's own, whose text sets its size."""
    return any(plan.schedule == study.OWN for plan in plans.values())


def _compare(a: str, b: str) -> None:
    st.session_state.update(schedule_a=a, schedule_b=b)


def _title(plans: dict[str, Plan]) -> None:
    st.markdown(
        f"# {escape_markdown(' and '.join(plan.title for plan in plans.values()) or 'Schedules')}", anchors=False
    )
    if plans:
        plan = next(iter(plans.values()))
        where = "" if _with_own(plans) else f"{size_label(plan.ranks, plan.chunks)} · "
        whole = plan.inputs + plan.weights
        costs = f"F {figure(plan.forward)}, B {figure(whole)} = I {figure(plan.inputs)} + W {figure(plan.weights)}"
        more = f" · {escape_markdown(plan.costs)}" if plan.costs else ""
        st.caption(f"{where}{costs}{more} · a link takes {figure(plan.latency)}")


def _studied(plan: Plan, slot: str) -> Study | None:
    """Return the study of a plan. It is made here if that is quick, else by the pool. If it fails, show the error and
    return None.
    """
    try:
        if study.size(plan) <= study.QUICK:
            return _here(plan.model_dump_json(), plan)
        job_spec = JobSpec("study", plan.model_dump(exclude_defaults=True))
        folder = background.fetch(
            job_spec, f"{plan.title} is large, so a separate process computes it.", f"study-{slot}"
        )
        return _kept(str(folder)) if folder else None
    except (ValueError, OSError) as error:
        st.error(f"**{escape_markdown(plan.title)}** {_refusal(str(error))}", icon=":material/block:")
        if plan.schedule == study.OWN:
            _unfinished(plan, slot)
        return None


def _unfinished(plan: Plan, slot: str) -> None:
    """Show the valid part of a reader's faulty schedule, and where the fault is."""
    found = partial_schedule(plan)
    if found.study:
        st.markdown("Up to the error:")
        components.timeline(schedule.frame(found.study), key=f"lanes_{slot}")
    rows = []
    for number, line in enumerate(plan.own.strip().splitlines()[:LINES]):
        words = escape(line)
        if number == found.line:
            word = re.escape(escape(found.word))
            words = re.sub(rf"(?<!\w){word}(?!\w)", lambda found: f"<mark>{found[0]}</mark>", words)
        rows.append(f'<div class="{"wrong" if number == found.line else ""}"><i>rank {number}</i> {words}</div>')
    st.html(f'<div class="own-ops" role="group" aria-label="Your ops, a line for each rank">{"".join(rows)}</div>')


def _refusal(text: str) -> str:
    return "cannot run: " + escape_markdown(text if text.endswith(".") else text + ".")


@st.cache_resource(max_entries=64, show_spinner=False)
def _here(plan: str, _plan: Plan) -> Study:
    return study.study(_plan)


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(folder: str) -> Study:
    return study.load(Path(folder))


@st.cache_resource(max_entries=32, show_spinner=False)
def _frame(plan: str, until: float, _study: Study) -> bytes:
    return schedule.frame(_study, until, together="schedules")

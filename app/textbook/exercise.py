"""The exercise of a chapter: the task, its criteria, hints, start files, and where to hand in."""

import streamlit as st

from app.browser.text import escape_markdown
from app.session import background
from app.textbook import grading_report, memory
from lessons import job_specs, progress
from lessons.chapters import Chapter
from lessons.grading import levels
from lessons.grading.seeds import grading_seed
from lessons.grading.sheet import STEPS, Sheet

HOW = {"file": "Upload a file", "here": "Write it here"}
LONGEST = 1_000_000  # most characters of a solution written on the page; an uploaded file has at most 1 MB


def show(chapter: Chapter) -> None:
    """Show the task and its requirements, the start files, and the report on the reader's solution."""
    sheet, state, key = Sheet(chapter), st.session_state, f"solution-{chapter.name}"
    st.markdown(f"# {chapter.title()}: exercise")
    st.markdown(f"**{sheet.title}**")
    st.markdown(sheet.task)
    _asked(sheet)
    _begin(sheet, key)
    name = f"{chapter.name}_solution.py"
    given = _given(sheet, key)
    st.button(
        "Grade it", key=f"grade-{key}", type="primary", disabled=not given, on_click=_hand_in, args=(key, name),
        help=None if given else "Upload a file first, or write your solution here.",
    )  # fmt: skip
    st.caption(f"Or on your own machine: `lockstep book check {chapter.name} {name}`")
    if handed := state.get(key):
        text, name, seed, hints = handed
        work = job_specs.grading_spec(chapter.name, text, name, seed, hints)
        if folder := background.fetch(work, "Grading in a separate process.", key):
            report = job_specs.read(folder)
            practice = report.get("level") == 1 or report.get("untouched")  # counts nowhere
            if not practice and memory.grade(report, text):
                st.rerun()  # so that the browser keeps it
            grading_report.show(report, key)
            if not practice and report["score"]:
                _way_to_hand_in(chapter)


def _asked(sheet: Sheet) -> None:
    """Show how many points each criterion earns, its hints (one at a time), and the targets."""
    st.markdown("## What it is worth", anchors=False)
    st.markdown(f"{sum(sheet.points.values())} points in all, scaled to a score of 100:")
    for number, (mark, points) in enumerate(sheet.points.items(), 1):
        with st.container(key=f"mark-{sheet.name}-{number}", horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{points} point{'s' * (points != 1)}**: {escape_markdown(mark)}", width="stretch")
            if number <= len(sheet.hints):
                _hints(sheet, number)
    if sheet.targets:
        rows = "\n".join(f"| {t.name} | {t.most} | {escape_markdown(t.of)} |" for t in sheet.targets)
        st.markdown(f"| target | limit | counted in |\n|---|---|---|\n{rows}")


def _hints(sheet: Sheet, number: int) -> None:
    """Show the hints that the reader has taken for criterion `number`, and a button for the next one."""
    taken = st.session_state.setdefault(f"hints-{sheet.name}", [])
    steps = sum(name.startswith(f"{number}.") for name in taken)
    with st.popover(f"Hint {steps} of {len(STEPS)}" if steps else "Hint", icon=":material/lightbulb:"):
        for step in range(1, steps + 1):
            st.markdown(f"**{STEPS[step - 1].capitalize()}.** {sheet.hint(number, step)}")
        if steps < len(STEPS):
            st.button(
                f"Show me the {STEPS[steps]}", key=f"hint-{sheet.name}-{number}", on_click=taken.append,
                args=(f"{number}.{steps + 1}",), help="The report says which hints were taken.",
            )  # fmt: skip


def _begin(sheet: Sheet, key: str) -> None:
    """Show the start file, and offer the start file of each level."""
    st.markdown("## A file to start from", anchors=False)
    with st.expander(f"{sheet.name}_solution.py: it runs, but does not pass"):
        st.code(sheet.source, language="python", wrap_lines=True)
    files = {0: (f"{sheet.name}_solution.py", sheet.source)}
    if sheet.notes:
        files |= {n: (f"{n}. {what}", levels.template(sheet, n)) for n, what in levels.LEVELS.items()}
    st.markdown(
        "Start from one of these files, edit it and submit it below. The first is the one above: it runs, but does "
        "not pass. The others are steps: in 1 you predict what a program does, for practice and without points; in "
        "2 you write one line of a solution, in 3 a part of it, in 4 all of it. Files 2 to 4 earn the same points "
        "as the first."
    )
    with st.container(horizontal=True):
        for level, (label, source) in files.items():
            name = f"{sheet.name}_level{level}.py" if level else f"{sheet.name}_solution.py"
            st.download_button(
                label, source, name, "text/x-python", key=f"take-{key}-{level}" if level else f"take-{key}",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip


def _given(sheet: Sheet, key: str) -> bool:
    """Draw the upload field and the editor for a solution; return True if there is a solution."""
    how = st.segmented_control(
        "Hand in", list(HOW), key=f"how-{key}", default="file", required=True, format_func=HOW.get,
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if how == "file":
        return st.file_uploader("Your solution", type="py", key=f"given-{key}", max_upload_size=1) is not None
    written = st.text_area(
        "Your solution", sheet.program, key=f"typed-{key}", height=480, max_chars=LONGEST, persist_state="session",
        help="The editor starts with the file above, without the task. Your text is graded like an uploaded file, but "
        "is lost when the page reloads: keep a copy.",
    )  # fmt: skip
    return bool(written.strip())


def _way_to_hand_in(chapter: Chapter) -> None:
    """Show which score counts, and where to find the file to hand in."""
    best = memory.document().scores[chapter.name]
    with st.container(border=True, key=f"way-{chapter.name}"):
        st.markdown(
            f"Your best solution, with **{best.score} of 100**, is kept in this browser, and goes into the one file "
            "that you hand in for the whole book, with your name and your answers."
            + (
                ""
                if best.solution
                else f" The file has more than {progress.LONGEST:,} characters: hand in the solution's own file, too."
            )
        )
        st.button("Hand it in, under My work", key=f"go-{chapter.name}", icon=":material/assignment_turned_in:",
                  on_click=st.session_state.update, args=({"part": "work"},))  # fmt: skip


def _hand_in(key: str, name: str) -> None:
    """Store the uploaded or written solution, with a new random seed and the hints taken so far."""
    state = st.session_state
    if state[f"how-{key}"] == "file":
        file = state[f"given-{key}"]
        text, name = file.getvalue().decode("utf-8", "replace"), file.name[:80]
    else:
        text = state[f"typed-{key}"]
    hints = tuple(state.get(f"hints-{key.removeprefix('solution-')}", ()))
    state[key] = (text, name, grading_seed(), hints)

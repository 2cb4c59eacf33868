"""My work: the reader's progress in each chapter, as a file to download, restore and hand in."""

import re

import streamlit as st

import lessons
from app.browser.text import sentence
from app.textbook import memory
from lessons import progress, returning
from lessons.chapters import Chapter


def show(chapter: Chapter) -> None:
    """Show the table of chapters, and the buttons that download, restore, hand in and delete the reader's work."""
    st.markdown("# My work")
    with st.container(key="work-table"):
        st.markdown(_table())
    st.caption("It is stored in this browser, and nowhere else.")
    st.markdown("## Take it with you", anchors=False)
    st.download_button(
        "Download my progress", memory.document().text(), "lockstep-progress.json", "application/json",
        key="take-progress", on_click="ignore", icon=":material/download:",
    )  # fmt: skip
    st.file_uploader("Add progress from a file", type="json", key="given-progress", max_upload_size=2, on_change=_bring)
    if said := st.session_state.get("brought"):
        st.markdown(said)
    st.markdown("## Hand it in", anchors=False)
    name = st.text_input("Your name", memory.document().reader, max_chars=100).strip()
    if name != memory.document().reader:
        memory.rename(name)
        st.rerun()  # so that the browser keeps it
    handed = memory.document().model_copy(update={"passed": (), "places": {}})
    st.download_button(
        "Download the file to hand in", handed.text(), f"{_slug(name)}-lockstep.json", "application/json",
        key="hand-in", on_click="ignore", icon=":material/assignment_turned_in:", disabled=not name,
    )  # fmt: skip
    st.caption(
        "It contains your name, your answers, and your best solution of each exercise with its score. Send it to your "
        "instructor, who will grade it again."
    )
    with st.popover("Forget everything", icon=":material/delete:"):
        st.markdown(
            "This deletes all answers, places and scores in this browser, with those of the workbench's questions. "
            "Files that you have downloaded remain."
        )
        st.button("Yes, forget everything", key="forget-all", on_click=memory.forget)


def _table() -> str:
    """Return a Markdown table with a row for each chapter."""
    answers, scores = memory.recorded_answers(), memory.document().scores
    lines = ["| | answered | right first time | sure and wrong | exercise |", "|---|---|---|---|---|"]
    for one in lessons.written_chapters():
        here = returning.standing(a for a in answers if a.chapter == one.name)
        score = f"{scores[one.name].score} of 100" if one.name in scores else ""
        row = (one.title(), f"{here.answered} of {len(one.items)}", here.right_at_first, here.sure_and_wrong, score)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def _bring() -> None:
    """Merge the uploaded file into the reader's progress."""
    state = st.session_state
    if (file := state["given-progress"]) is None:
        state.brought = ""
        return
    try:
        before = len(memory.document().answers)
        memory.add(progress.read(file.getvalue()))
    except ValueError as error:
        state.brought = f":red[:material/error:] {sentence(str(error))}"
    else:
        more = len(memory.document().answers) - before
        state.brought = (
            f":green[:material/check:] Merged: {more} {'answer' if more == 1 else 'answers'} more than before."
        )


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-").lower() or "nobody"

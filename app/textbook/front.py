"""The frame of a chapter: its header and the links to other chapters; also the first page of the book."""

import streamlit as st

import lessons
from app.browser.text import escape_markdown
from experiments.wording.sentences import join_words
from lessons import notation, survey
from lessons.chapters import Chapter
from lessons.front_matter import DIFFICULTIES

CONTENTS = "contents"
"""The first page's name in the address."""


def name(chapter: Chapter) -> str:
    """Return the number and title of a chapter as plain text."""
    return f"{chapter.number}. {escape_markdown(chapter.title())}"


def facts(chapter: Chapter) -> str:
    """Return a chapter's length and difficulty, in words."""
    alone = "" if chapter.has_text else f", {len(chapter.figures_on_page)} figures without text"
    return f"{chapter.length}, {DIFFICULTIES[chapter.front.difficulty]}{alone}"


def address(chapter: str, anchor: str) -> str:
    """Return a link to a place in another chapter, which opens the text up to that place."""
    return f"textbook?chapter={chapter}" + (f"&everything=true#{anchor}" if anchor else "")


def head(chapter: Chapter) -> None:
    """Show below the title what a chapter requires of a reader, and what the reader can do afterwards."""
    st.caption(f"Chapter {chapter.number} of {len(lessons.CHAPTERS)}: {facts(chapter)}")
    with st.container(border=True, key="head", gap="xsmall"):
        if chapter.front.prerequisites:
            _ways("Read first", chapter.front.prerequisites, "before")
        if chapter.front.background:
            st.markdown(f":small[You should know: {escape_markdown(', '.join(chapter.front.background))}.]")
        if chapter.front.objectives:
            st.markdown(
                "**Afterwards you can**\n\n"
                + "\n".join(f"- {escape_markdown(one)}." for one in chapter.front.objectives)
            )


def ways_on(chapter: Chapter) -> None:
    """Show links to the previous and the next chapter, and to those that build on this one."""
    place, names = chapter.number - 1, lessons.CHAPTERS
    st.divider()
    with st.container(horizontal=True, horizontal_alignment="distribute", key="ways"):
        if place > 0:
            link(names[place - 1], icon=":material/arrow_back:")
        if 0 <= place < len(names) - 1:
            link(names[place + 1], icon=":material/arrow_forward:", side="right")
    after = [one for one in names if chapter.name in lessons.chapter(one).front.prerequisites]
    if after:
        _ways("Chapters that build on this one", after, "after")


def first_page() -> None:
    """Show the contents of the book, and its notation."""
    st.markdown("# Contents")
    chapters = [*map(lessons.chapter, lessons.CHAPTERS)]
    st.markdown(
        "How to train deep networks on many machines, in questions that are answered by measuring. Every number "
        f"comes from a run that you can repeat here. Each of the {len(chapters)} chapters asks a question, lets you "
        f"predict the answer, measures and explains. {_beginnings(chapters)}"
    )
    easiest = _easiest(chapters)
    with st.container(key="begin"):
        link(easiest.name, f"Begin with chapter {name(easiest)}", ":material/play_arrow:")
    st.caption("Do you teach? The page [For instructors](instructors) has labs with expected results, and graders.")
    with st.container(key="contents"):
        for one in chapters:
            if one.name in lessons.PARTS:
                st.markdown(f"## {one.part}")
            with st.container(gap=None, key=f"entry-{one.name}"):
                link(one.name)
                st.caption(f"{facts(one)}{_after(one)}")
    st.markdown("## What it accompanies")
    st.markdown(
        "A survey and four more works; the *Survey* page goes through their methods.\n\n" + survey.first_page(address)
    )
    st.markdown("## Notation")
    st.markdown("A letter has the same meaning in all chapters, unless a row says otherwise.")
    st.markdown(notation.table())


def _beginnings(chapters: list[Chapter]) -> str:
    """Return a sentence that says which chapters need no others, and which one suits newcomers."""
    numbers = join_words(str(one.number) for one in chapters if not one.front.prerequisites)
    easiest = _easiest(chapters)
    return (
        f"Chapters {numbers} need no other chapter first; if all of this is new to you, start with "
        f"chapter {easiest.number}, {escape_markdown(easiest.title())}."
    )


def _easiest(chapters: list[Chapter]) -> Chapter:
    """Return the easiest of the chapters that need no other chapter."""
    return min((one for one in chapters if not one.front.prerequisites), key=lambda one: one.front.difficulty)


def _after(chapter: Chapter) -> str:
    """Return the chapters to read before this one, such as ", read after chapters 2 and 5", or "" if there are none."""
    before = [str(number) for number in sorted(lessons.chapter(other).number for other in chapter.front.prerequisites)]
    return f", read after chapter{'s' * (len(before) > 1)} {join_words(before)}" if before else ""


def _ways(words: str, names: tuple[str, ...] | list[str], kind: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"read-{kind}"):
        st.markdown(f":small[{words}:]", width="content")
        for other in names:
            link(other)


def link(chapter: str, label: str = "", icon: str | None = None, part: str = "text", side: str = "left") -> None:
    """Draw a link to a part of a chapter, which opens in this session; the default label is the chapter's name."""
    from app.textbook.page import page as textbook

    query = {"chapter": chapter, "part": part * (part != "text")}
    query["everything"] = "true" * st.session_state.get("everything", False)
    st.page_link(
        st.Page(textbook, title="Textbook", url_path="textbook"), label=label or name(lessons.chapter(chapter)),
        icon=icon, icon_position=side, query_params={name: value for name, value in query.items() if value},
    )  # fmt: skip

"""The text of a chapter, block by block. It stops at each prediction until the reader answers or skips it."""

from collections import Counter

import streamlit as st

import lessons
from app.browser.text import escape_markdown, sentence
from app.textbook import figure, front, memory, movement, question
from lessons import markup, references
from lessons.chapters import Chapter

KEPT = {"persist_state": "session"}


def show(chapter: Chapter) -> None:
    """Show the text, part by part, up to the first prediction that the reader has neither answered nor skipped."""
    if not chapter.has_text:
        return _figures(chapter)
    with st.sidebar:
        everything = st.toggle(
            "Show everything", key="everything", help="Show the whole text, even after unanswered predictions.", **KEPT
        )
        contents = st.empty()
    passed_heads, seen = 0, Counter()
    try:
        first, *parts = chapter.blocks(front.address, draft=True)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/edit_note:")
        return
    title, _, begins = first.markdown.partition("\n")
    st.markdown(title)
    front.head(chapter)
    for part in (markup.Text(begins.strip()), *parts):
        if not isinstance(part, markup.Predict):
            block(chapter, part, "text", seen)
            passed_heads += len(_heads(part.markdown)) if isinstance(part, markup.Text) else 0
            continue
        item = chapter.item(part.item)
        if part.item not in chapter.golden.answers:
            st.info(f"{item.question(item.prediction(0))} (Not recorded yet.)", icon=":material/edit_note:")
            continue
        made = question.ask(chapter, item, "predict")
        if not (made or everything or memory.is_passed(chapter.name, part.item)):
            st.button(
                "Read on without an answer", key=f"skip-{part.item}", type="tertiary", icon=":material/skip_next:",
                on_click=memory.skip, args=(chapter.name, part.item),
            )  # fmt: skip
            break
    else:
        _more(chapter)
        front.ways_on(chapter)
    contents.markdown(_contents(_heads(chapter.text()), passed_heads))


def _figures(chapter: Chapter) -> None:
    """Show the figures of a chapter without text, in order."""
    st.markdown(f"# {escape_markdown(chapter.title())}")
    front.head(chapter)
    unrecorded = [name for name in chapter.figures_on_page if name not in chapter.golden.figures]
    if len(unrecorded) == len(chapter.figures_on_page):
        st.info(
            "No figure of this chapter is recorded yet. The questions of its figures are below; "
            f"`lockstep book run {chapter.name}` runs the figures.",
            icon=":material/edit_note:",
        )
    links = [
        f"- [{chapter.figure_number(name)}](#{references.figure_anchor(name)}) "
        f"{escape_markdown(chapter.figure_questions[name])}"
        for name in chapter.figures_on_page
    ]
    with st.sidebar:
        st.markdown("\n".join(links))
    for name in chapter.figures_on_page:
        block(chapter, markup.LiveFigure(name), "text", Counter())
    front.ways_on(chapter)


def _more(chapter: Chapter) -> None:
    """Offer the figures that the chapter's text does not show, each drawn when it is opened."""
    more = [name for name in chapter.figure_questions if name not in chapter.figures_on_page]
    if not more:
        return
    st.markdown("## More figures")
    st.caption("These figures belong to this chapter, but its text does not show them.")
    for name in more:
        with st.expander(
            escape_markdown(chapter.figure_questions[name]), key=f"more-{name}", on_change="rerun"
        ) as opened:
            if not opened.open:
                continue
            if recorded := chapter.golden.figures.get(name):
                figure.show(recorded, "more")
            else:
                command = f"lockstep book show {name}"
                st.markdown(
                    f"This figure is not among the published ones. Run its experiments and show it with:\n\n`{command}`"
                )


def _heads(text: str) -> list[str]:
    return [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]


def _contents(heads: list[str], opened: int) -> str:
    """Return the section headings: links as far as the text is open, and the others with a lock."""
    links = [f"- [{head}](#{references.heading_anchor(head)})" for head in heads[:opened]]
    closed = [f"- :material/lock: {head}" for head in heads[opened:]]
    return "\n".join(links + closed + ["\n:small[Locked sections open as you make predictions.]"] * bool(closed))


def block(chapter: Chapter, part: markup.Block, place: str, seen: Counter) -> None:
    """Show a block of a text or of a lab sheet (`place`), except questions; `seen` counts the blocks above it.

    A block that occurs twice in a text gets two names, because names on a page must be unique.
    """
    whole, name = place, _name(part)
    seen[name] += 1
    if seen[name] > 1:
        place = f"{place}-{seen[name]}"
    match part:
        case markup.Text(markdown):
            st.markdown(markdown, unsafe_allow_html=True)  # our own text; a test checks that <abbr> is its only tag
        case markup.Code(_, path, line, source):
            with st.container(key=f"source-code-{place}-{part.name}", gap="xxsmall"):
                st.caption(f"{path}, line {line}")
                st.code(source, language="python", wrap_lines=True)
        case markup.LiveFigure(name):
            number = chapter.figure_number(name)
            if recorded := chapter.golden.figures.get(name):
                figure.show(recorded, place, number)
            else:
                _unrecorded(name, number, place)
        case markup.Schedule():
            movement.schedule(chapter, part, place)
        case markup.Timeline():
            movement.timeline(chapter, part, place)
        case markup.Fold():
            with st.expander(part.label, key=f"fold-{place}-{references.heading_anchor(part.title)}"):
                for inner in part.blocks:
                    block(chapter, inner, whole, seen)


def _name(part: markup.Block) -> tuple[str, str]:
    """Return the kind and the name of what a block shows, apart from its caption."""
    match part:
        case markup.Schedule():
            shown = part.plan.key()
        case markup.Timeline():
            shown = part.experiment.key()
        case _:
            shown = str(part[0])
    return type(part).__name__, shown


def _unrecorded(name: str, number: str, place: str) -> None:
    """Show the question of a figure that is not in the golden file."""
    with st.container(border=True, key=f"unrecorded-{place}-{name}"):
        figure.head(name, number, lessons.question(name))
        st.caption(f"Not recorded yet; run lockstep book golden {name.partition('.')[0]}.")

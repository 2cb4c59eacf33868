"""Find the bug: the page shows a healthy run next to one with a bug. The reader names the mechanism, then the line."""

import streamlit as st

import lessons
from app.browser import components
from app.browser.text import escape_markdown
from app.textbook import memory
from lessons.bugs import recorded, score
from lessons.bugs.mutant import Mutant, find, mechanisms, mutants
from lessons.chapters import Chapter

LEVELS = {1: "easy", 2: "harder", 3: "hard"}


def show(chapter: Chapter) -> None:
    """Show the choice of bugs, the effects of the chosen one, the questions, and the score."""
    names = [one.name for one in sorted(mutants(), key=lambda one: lessons.chapter(one.chapter).number)]
    st.markdown("# Find the bug")
    st.markdown(
        "An experiment was run twice: with the correct algorithm, and with one bug in its code. Curves and "
        "timelines show that something is wrong. Name the mechanism, then find the line."
    )
    _choose(chapter, names)
    name = st.selectbox("Bug", names, key="bug", format_func=lambda n: _label(find(n)))
    st.query_params["bug"] = name
    mutant = find(name)
    _seen(mutant)
    said = score.first_answers(memory.document(), mutant)
    with st.container(border=True, key=f"bug-{name}"):
        st.markdown("### What is wrong?", anchors=False)
        if "mechanism" not in said:
            _ask_mechanism(mutant)
        else:
            _told_mechanism(mutant, said["mechanism"])
            st.markdown("### Which line?", anchors=False)
            st.caption(f"From `{mutant.module}`, without its comments.")
            st.code("\n".join(mutant.listing), language="python", line_numbers=True)
            if "line" not in said:
                _ask_line(mutant)
            else:
                _told_line(mutant, said["line"])
    points = sum(score.points(one, score.first_answers(memory.document(), one)) for one in mutants())
    st.caption(f"Score: {points} of {score.MOST * len(names)}, a point for each mechanism and one for each line.")


def _choose(chapter: Chapter, names: list[str]) -> None:
    """Select the bug in the address or, if the reader has just opened this chapter, the chapter's first bug."""
    state, come_from = st.session_state, st.session_state.get("bugs-of", chapter.name)
    state["bugs-of"] = chapter.name
    if "bug" in state and come_from == chapter.name:
        return
    asked = st.query_params.get("bug") if come_from == chapter.name else None
    own = next((name for name in names if find(name).chapter == chapter.name), names[0])
    state.bug = asked if asked in names else own


def _label(mutant: Mutant) -> str:
    return f"{mutant.name} (chapter {lessons.chapter(mutant.chapter).number}, {LEVELS[mutant.difficulty]})"


def _answer(mutant: Mutant, asked: str, guess: str | int) -> None:
    memory.add(memory.document().with_answer(score.answer(mutant, asked, guess)))
    st.rerun()


def _seen(mutant: Mutant) -> None:
    pair = recorded.read()[mutant.name]
    settings = ", ".join(f"{name} {value}" for name, value in mutant.experiment.items() if name != "algorithm")
    st.markdown(f"**{escape_markdown(mutant.experiment['algorithm'])}** with {escape_markdown(settings)}")
    rows = "\n".join(f"| {escape_markdown(what)} | {one} | {other} |" for what, one, other in pair.table)
    st.markdown(f"| | healthy | with the bug |\n|---|---|---|\n{rows}")
    for curve in pair.curves:
        components.curve(pair.frame(curve), key=f"bug-curve-{mutant.name}-{curve.replace(' ', '-')}")
    for side, frame in pair.lanes.items():
        st.caption(f"Timeline, {side.replace('mutant', 'with the bug')}")
        components.timeline(frame, key=f"bug-lanes-{mutant.name}-{side}")
    with st.expander("Where should I look?", icon=":material/lightbulb:"):
        st.markdown(escape_markdown(mutant.look))


def _ask_mechanism(mutant: Mutant) -> None:
    says = {one.key: one.says for one in mutant.choices(st.session_state.dice)}
    with st.form(f"form-bug-{mutant.name}", border=False):
        said = st.radio("Your answer", list(says), index=None, format_func=says.get, key=f"mechanism-{mutant.name}")
        if st.form_submit_button("That is my answer") and said:
            _answer(mutant, "mechanism", said)


def _told_mechanism(mutant: Mutant, said: str) -> None:
    told, right = mechanisms()[said], mechanisms()[mutant.mechanism]
    if said == mutant.mechanism:
        st.markdown(f":green-badge[:material/check: Right] You said: {escape_markdown(told.says)}")
    else:
        says = f"{escape_markdown(told.says)} {escape_markdown(told.sign)}"
        st.markdown(f":red-badge[:material/close: Not quite] You said: {says}")
        st.markdown(f"It is: {escape_markdown(right.says)}")


def _ask_line(mutant: Mutant) -> None:
    with st.form(f"form-line-{mutant.name}", border=False):
        line = st.number_input(
            "Line", 1, len(mutant.listing), None, key=f"line-{mutant.name}", width=160,
            help="If the mistake is a missing line, choose a line next to the gap.",
        )  # fmt: skip
        if st.form_submit_button("It is this line") and line:
            _answer(mutant, "line", int(line))


def _told_line(mutant: Mutant, said: int) -> None:
    if said in mutant.lines:
        st.markdown(f":green-badge[:material/check: Right] Line {said}")
    else:
        where = " or ".join(map(str, mutant.lines))
        st.markdown(f":red-badge[:material/close: Not quite] You said line {said}. It is line {where}.")
    st.markdown(escape_markdown(mutant.why))
    st.caption("The healthy code (-) and the code with the bug (+)")
    st.code(_difference(mutant), language="diff")


def _difference(mutant: Mutant) -> str:
    lines = [f"- {line}" for line in mutant.old.rstrip("\n").splitlines()]
    return "\n".join(lines + [f"+ {line}" for line in mutant.new.rstrip("\n").splitlines()])

"""The textbook: a chapter with its figures, questions and exercise. Nothing here computes; the pool does."""

from __future__ import annotations

import ast
import random
import secrets
from collections import Counter
from urllib.parse import parse_qsl

import pandas as pd
import streamlit as st

import lessons
from app import background, controls, poll, session, units
from app.charts import CONFIG
from app.text import escaped, sentence
from app.views import compare, workbench
from experiments.experiment import Experiment
from experiments.plots.chart import chart
from lessons import job_specs, markup
from lessons.chapters import LANGUAGES, Chapter
from lessons.golden import RecordedFigure
from lessons.quiz import Item

KEPT = {"persist_state": "session"}
SEEDS = 10**6
PARTS = {"text": "Text", "quiz": "Quiz", "exercise": "Exercise", "lab": "For the instructor"}


def page() -> None:
    """Show chapters on the left; on the right the chosen one, a part at a time."""
    st.session_state.setdefault("dice", secrets.randbelow(SEEDS))
    chapters = {one.name: one for one in lessons.written()}
    _read_address(chapter=list(chapters), language=list(LANGUAGES), part=list(PARTS), everything=[False, True])
    with st.sidebar:
        name = st.radio("Chapter", list(chapters), key="chapter", format_func=lambda n: chapters[n].title(), **KEPT)
        chapter, language = chapters[name], st.session_state.language
        if len(chapter.languages) > 1:
            language = st.segmented_control(
                "Language", list(LANGUAGES), key="language", required=True, format_func=LANGUAGES.get, **KEPT
            )
        if language not in chapter.languages:
            st.caption(f"This chapter is not written in {LANGUAGES[language]} yet; here is the English one.")
    parts = {
        "text": (True, _text),
        "quiz": (chapter.items, _quiz),
        "exercise": (chapter.exercise, _exercise),
        "lab": (chapter.lab(language), _lab),
    }
    offered = [part for part, (there, _) in parts.items() if there]
    if st.session_state.part not in offered:
        st.session_state.part = "text"
    with st.container(key="reading"):
        part = st.segmented_control(
            "Part", offered, key="part", required=True, format_func=PARTS.get, label_visibility="collapsed", **KEPT
        )
        parts[part][1](chapter, language)


def _read_address(**options: list) -> None:
    """Take over what the address says at first, and keep the address up to date from then on."""
    state = st.session_state
    for name, values in options.items():
        if name not in state:
            state[name] = next((v for v in values if str(v).lower() == st.query_params.get(name)), values[0])
        if state[name] == values[0] and name != "chapter":
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = str(state[name]).lower()


def _contents(chapter: Chapter, language: str) -> str:
    """Return the headings of the text, as links."""
    heads = [line[3:].strip() for line in chapter.text(language).splitlines() if line.startswith("## ")]
    return "\n".join(f"- [{head}](#{_anchor(head)})" for head in heads)


def _anchor(head: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in head.lower()).split())


def _text(chapter: Chapter, language: str) -> None:
    """Show the text, part by part. It continues after a prediction, or when the reader skips that."""
    state = st.session_state
    with st.sidebar:
        everything = st.toggle(
            "Show everything", key="everything", help="The whole text at once, predictions made or not.", **KEPT
        )
        st.markdown(_contents(chapter, language))
    for block in chapter.blocks(language):
        if not isinstance(block, markup.Predict):
            _block(chapter, block, "text")
            continue
        passed = f"passed-{chapter.name}-{block.item}"
        if not (_ask(chapter, chapter.item(block.item), "predict") or everything or state.get(passed)):
            st.button(
                "Read on without an answer", key=f"skip-{block.item}", type="tertiary", icon=":material/skip_next:",
                on_click=state.__setitem__, args=(passed, True),
            )  # fmt: skip
            return


def _quiz(chapter: Chapter, language: str) -> None:
    st.markdown(f"# {chapter.title(language)}: quiz")
    for item in chapter.items:
        _ask(chapter, item, "quiz")


def _lab(chapter: Chapter, language: str) -> None:
    for block in markup.blocks(chapter.lab(language), chapter.name, chapter.golden):
        _block(chapter, block, "lab")


def _block(chapter: Chapter, block: markup.Block, place: str) -> None:
    match block:
        case markup.Text(markdown):
            st.markdown(markdown)
        case markup.Code(_, path, line, source):
            with st.container(key=f"source-code-{place}-{block.name}", gap="xxsmall"):
                st.caption(f"{path}, line {line}")
                st.code(source, language="python", wrap_lines=True)
        case markup.LiveFigure(name):
            _figure(chapter.golden.figure(name), place)


# figures


def _figure(recorded: RecordedFigure, place: str) -> None:
    """Draw a figure as the golden file has it, or as it was run just now."""
    state, key = st.session_state, f"{place}-{recorded.name}"
    with st.container(border=True, key=f"figure-{key}"):
        if state.get(f"again-{key}") and (
            folder := background.fetch(
                job_specs.figure_spec(recorded.name), "Running its experiments.", f"figure-{key}"
            )
        ):
            recorded = RecordedFigure.of(recorded.name, job_specs.read(folder))
        st.markdown(f"**{escaped(recorded.question)}**")
        shown = _built(recorded.name, str((recorded.rows, recorded.spread)), recorded)
        st.plotly_chart(shown, key=f"chart-{key}", config=CONFIG, alt=". ".join((recorded.question, *recorded.claims)))
        st.markdown(f":small[{_with_code(' '.join(recorded.text.split()))}]")
        st.markdown("  \n".join(_claim(recorded, claim) for claim in recorded.claims))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if state.get(f"again-{key}"):
                st.badge(f"run here, just now{_with_seeds(recorded)}", icon=":material/check:", color="green")
            else:
                st.button(
                    "Run it here", key=f"run-{key}", icon=":material/play_arrow:", on_click=state.__setitem__,
                    args=(f"again-{key}", True),
                    help=f"Do its experiments again, on this machine. {recorded.said_of_seeds()}",
                )  # fmt: skip
            with st.popover("Rows", icon=":material/table_rows:"):
                st.dataframe(pd.DataFrame(recorded.table()), hide_index=True)
            if recorded.runs:
                with st.popover("Workbench", icon=":material/tune:"):
                    _to_workbench(recorded, key)
            st.caption(f"After {escaped(recorded.source)}")


def _claim(recorded: RecordedFigure, claim: str) -> str:
    """Return a claim with a mark, and how many seeds show it where not all do."""
    if recorded.shows(claim):
        return f":green[:material/check:] {escaped(claim)}"
    return f":red[:material/close:] {escaped(claim)} ({recorded.claims[claim]} of {len(recorded.seeds)} seeds)"


def _with_seeds(recorded: RecordedFigure) -> str:
    few = len(recorded.seeds) == 1
    return "" if few else f", with seeds {recorded.seeds[0]} to {recorded.seeds[-1]}"


def _with_code(text: str) -> str:
    """Return text with nothing marked but what stands between backquotes."""
    parts = text.split("`")
    return "".join(f"`{part}`" if number % 2 else escaped(part) for number, part in enumerate(parts))


@st.cache_resource(max_entries=128, show_spinner=False)
def _built(name: str, rows: str, _recorded: RecordedFigure):
    return chart(_recorded.rows, _recorded.look, _recorded.spread)


def _to_workbench(recorded: RecordedFigure, key: str) -> None:
    """Open one of the runs behind a figure with all its settings."""
    labels = _labels(recorded.runs)
    query = st.selectbox("One of its runs", recorded.runs, key=f"open-{key}", format_func=labels.get)
    if st.button("Open it", key=f"go-{key}", icon=":material/open_in_new:"):
        experiment = Experiment.from_query(query)
        controls.put(experiment)
        st.session_state.complaint = ""
        session.start(experiment)
        st.switch_page(st.Page(workbench.page, title="Workbench", url_path="workbench", default=True))


@st.cache_data(max_entries=64, show_spinner=False)
def _labels(queries: tuple[str, ...]) -> dict[str, str]:
    """Return what each run is called: the settings in which they differ."""
    flats = [dict(parse_qsl(query, keep_blank_values=True)) for query in queries]
    names = dict.fromkeys(name for flat in flats for name in flat)
    differing = [n for n in names if n != "slow" and len({flat.get(n) for flat in flats}) > 1]
    labels = {}
    for query in queries:
        e = Experiment.from_query(query)
        values = {**e.model_dump(mode="json"), **e.data, **e.coding, **e.settings}
        words = [compare.said(e, n, values[n]) for n in differing if n in values and n != "algorithm"]
        labels[query] = ", ".join([e.algorithm, *words])
    return labels


# questions


def _ask(chapter: Chapter, item: Item, place: str) -> bool:
    """Draw a question, or how it was answered; return whether it has been answered."""
    state, key = st.session_state, f"{place}-{chapter.name}-{item.name}"
    times = state.setdefault(f"times-{key}", 0)
    parameters = item.parameters(state.dice + SEEDS * times + (place == "quiz"))
    with st.container(border=True, key=f"item-{key}"):
        if place == "predict":
            st.markdown(":orange-badge[:material/psychology: Predict]")
        st.markdown(item.question(parameters))
        guess = state.get(f"guess-{key}")
        if guess is None:
            _answer(item, key)
            return False
        answer = chapter.golden.answer(item.name, parameters)
        right = item.right(guess, answer)
        badge = ":green-badge[:material/check: right]" if right else ":red-badge[:material/close: not so]"
        if item.choices:
            told = item.choice(guess).says + ("" if right else f" {item.choice(guess).but}")
            st.markdown(f"{badge} You said: {told}")
            if not right:
                st.markdown(f"It is: {item.choice(answer).says}")
        else:
            st.markdown(
                f"{badge} You said {units.number(guess)} {item.unit}; the simulator says **{units.number(answer)}** "
                f"{item.unit}."
            )
        st.markdown(item.explanation(parameters, answer))
        question, said = (chapter.name, item.name), guess if item.choices else ""  # whatever numbers were drawn
        poll.count(question, (said, right))
        if counts := poll.counted(question):
            st.caption(_others(counts, said, right))
        more = len(item.all_parameters()) > 1
        st.button(
            "Ask again" + (", with other numbers" if more else ""), key=f"other-{key}", type="tertiary",
            on_click=_another, args=(key,),
        )  # fmt: skip
    return True


def _others(counts: Counter, said: str, right: bool) -> str:
    """Return how many of all were right at first, and how many gave this answer; numbers are never the same."""
    known = sum(number for (_, was_right), number in counts.items() if was_right)
    alike = sum(number for (other, _), number in counts.items() if other == said)
    told = f"Of {counts.total()} first answers here, {known} {'was' if known == 1 else 'were'} right"
    return f"{told}." if right or not said else f"{told}, and {alike} said what you said."


def _answer(item: Item, key: str) -> None:
    """Draw the widget for a guess; nothing is revealed before it is sent."""
    with st.form(f"form-{key}", border=False):
        if item.choices:
            says = {choice.key: choice.says for choice in item.choices}
            order = random.Random(f"{st.session_state.dice} {key}").sample(list(says), len(says))
            guess = st.radio("Your answer", order, index=None, format_func=says.get, key=f"choice-{key}")
        else:
            label = f"Your answer, {item.unit}" if item.unit else "Your answer"
            guess = st.number_input(label, value=None, format="%g", key=f"number-{key}", width=220)
        if st.form_submit_button("That is my answer") and guess is not None:
            st.session_state[f"guess-{key}"] = guess
            st.rerun()


def _another(key: str) -> None:
    st.session_state[f"times-{key}"] += 1
    st.session_state.pop(f"guess-{key}", None)


# the exercise


def _exercise(chapter: Chapter, language: str) -> None:
    """Show the task, the file to begin with, and the report of the solution that was handed in."""
    source, state, key = chapter.exercise, st.session_state, f"solution-{chapter.name}"
    title, _, task = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    st.markdown(f"# {chapter.title(language)}: exercise")
    st.markdown(f"**{title}**")
    st.markdown(task)
    with st.expander("exercise.py"):
        st.code(source, language="python", wrap_lines=True)
    name = f"{chapter.name}_solution.py"
    st.download_button(
        "Download the file", source, name, "text/x-python", key=f"take-{key}", on_click="ignore",
        icon=":material/download:",
    )  # fmt: skip
    given = st.file_uploader("Your solution", type="py", key=f"given-{key}", max_upload_size=1)
    st.button("Grade it", key=f"grade-{key}", type="primary", disabled=given is None, on_click=_hand_in, args=(key,))
    st.caption(f"Or on your own machine: `python -m lessons check {chapter.name} {name}`")
    if handed := state.get(key):
        text, name, seed = handed
        work = job_specs.grading_spec(chapter.name, text, name, seed)
        if folder := background.fetch(work, "Grading, in a process of its own.", key):
            _report(job_specs.read(folder))


def _hand_in(key: str) -> None:
    """Keep what was uploaded, with a seed that is drawn now."""
    file = st.session_state[f"given-{key}"]
    text = file.getvalue().decode("utf-8", "replace")
    st.session_state[key] = (text, file.name[:80], secrets.randbelow(2**31))


def _report(report: dict) -> None:
    """Show score and marks."""
    st.markdown(f"## {report['score']} of 100", anchors=False)
    for mark in report["marks"]:
        sign = ":green[:material/check:]" if mark["earned"] else ":red[:material/close:]"
        worth = f"{mark['earned']} of {mark['points']}"
        st.markdown(f"{sign} **{escaped(mark['name'])}** ({worth})  \n:small[{escaped(mark['observed'])}]")
    if report["error"]:
        st.warning(f"It ended early: {sentence(report['error'])}", icon=":material/error:")
    if report["printed"]:
        st.caption("It printed")
        st.code(report["printed"], language=None, wrap_lines=True)
    st.caption(f"Hidden cases of seed {report['seed']}, {units.seconds(report['seconds'])}.")

"""A figure of the textbook: as recorded in the golden file, or as just run."""

from collections import Counter
from urllib.parse import parse_qsl

import streamlit as st

from app.browser import components
from app.browser.frames import frame
from app.browser.text import escape_markdown
from app.comparison import changes
from app.session import background
from app.textbook import origin
from app.workbench import workbench
from experiments.specification.experiment import Experiment
from experiments.wording import naming
from lessons import job_specs, references
from lessons.golden import RecordedFigure

WAITING = "Running its experiments; until they finish, the published figure is shown."
PROGRESS = 340  # px of the progress display


def head(name: str, number: str, question: str) -> None:
    """Show the number and question of the figure with this full name; references to the figure lead here."""
    title = f"Figure {number}. {question}" if number else question
    st.subheader(escape_markdown(title), anchor=references.figure_anchor(name))


def show(recorded: RecordedFigure, where: str, number: str = "") -> None:
    """Draw a figure, with its number on the page, as recorded in the golden file or as just run."""
    state, key = st.session_state, f"{where}-{recorded.name}"
    with st.container(border=True, key=f"figure-{key}"):
        drawn = st.container()  # last, because the run below decides what is drawn
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if state.get(f"again-{key}"):
                spec, place = job_specs.figure_spec(recorded.name), st.empty()
                with place.container(width=PROGRESS):
                    folder = background.fetch(spec, WAITING, f"figure-{key}")
                if folder:
                    recorded = RecordedFigure.of(recorded.name, job_specs.read(folder))
                    place.badge(f"run here, just now{_with_seeds(recorded)}", icon=":material/check:", color="green")
            else:
                st.button(
                    "Run it here", key=f"run-{key}", icon=":material/play_arrow:", on_click=state.__setitem__,
                    args=(f"again-{key}", True),
                    help=f"Run its experiments again, on this machine. {recorded.seeds_sentence()}",
                )  # fmt: skip
            with st.popover("Rows", icon=":material/table_rows:"):
                st.dataframe(frame(recorded.table()), hide_index=True)
            if recorded.runs:
                with st.popover("Workbench", icon=":material/tune:"):
                    _to_workbench(recorded, key)
            st.caption(f"After {_with_code(recorded.source)}")
        with drawn:
            head(recorded.name, number, recorded.question)
            components.curve(_built(recorded.name, str((recorded.rows, recorded.spread)), recorded), key=f"chart-{key}")
            st.markdown(f":small[{_with_code(' '.join(recorded.text.split()))}]")
            st.markdown("  \n".join(_claim(recorded, claim) for claim in recorded.claims))


def _claim(recorded: RecordedFigure, claim: str) -> str:
    """Return a claim with a mark for its outcome. Unless all seeds show it, also return how many do."""
    if recorded.shows(claim):
        return f":green[:material/check:] {escape_markdown(claim)}"
    return f":red[:material/close:] {escape_markdown(claim)} ({recorded.claims[claim]} of {len(recorded.seeds)} seeds)"


def _with_seeds(recorded: RecordedFigure) -> str:
    few = len(recorded.seeds) == 1
    return "" if few else f", with seeds {recorded.seeds[0]} to {recorded.seeds[-1]}"


def _with_code(text: str) -> str:
    """Return a text with all Markdown escaped except code between backquotes."""
    parts = text.split("`")
    return "".join(f"`{part}`" if number % 2 else escape_markdown(part) for number, part in enumerate(parts))


@st.cache_resource(max_entries=128, show_spinner=False)
def _built(name: str, rows: str, _recorded: RecordedFigure) -> bytes:
    return _recorded.frame()


def _to_workbench(recorded: RecordedFigure, key: str) -> None:
    """Show a choice of the runs behind a figure, and a button that opens the chosen one in the workbench with all its
    settings.
    """
    labels = _labels(recorded.runs)
    query = st.selectbox("One of its runs", recorded.runs, key=f"open-{key}", format_func=labels.get)
    if st.button("Open it", key=f"go-{key}", icon=":material/open_in_new:"):
        workbench.go_to(Experiment.from_query(query), **origin.here(references.figure_anchor(recorded.name)))


@st.cache_data(max_entries=64, show_spinner=False)
def _labels(queries: tuple[str, ...]) -> dict[str, str]:
    """Return a name for each run: the settings in which it differs, and a number if several have the same name.

    A menu identifies entries by their labels, so of two equal ones only one could be chosen.
    """
    flats = [dict(parse_qsl(query, keep_blank_values=True)) for query in queries]
    names = dict.fromkeys(name for flat in flats for name in flat)
    differing = [n for n in names if len({flat.get(n) for flat in flats}) > 1]
    labels = {}
    for query in queries:
        e = Experiment.from_query(query)
        values = {**e.model_dump(mode="json"), **e.data, **e.coding, **e.settings}
        words = [changes.setting(e, n, values[n]) for n in differing if n in values and n != "algorithm"]
        labels[query] = ", ".join([naming.method(e), *words])
    alike, seen = Counter(labels.values()), Counter()
    for query, label in labels.items():
        seen[label] += 1
        if alike[label] > 1:
            labels[query] = f"{label} ({seen[label]} of {alike[label]} such runs)"
    return labels

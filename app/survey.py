"""The survey, section by section, and the cost of a step of each method for the reader's model and cluster."""

from collections.abc import Iterable
from functools import partial

import streamlit as st

from app.browser.frames import frame
from app.browser.text import escape_markdown
from app.textbook.front import address
from app.workbench import workbench
from experiments.specification.experiment import Experiment
from experiments.wording import units
from lessons import survey

BOUND = {"bind": "query-params", "persist_state": "session"}
WIDTHS = {
    "numbers": {
        "method": 125, "computation": 92, "communication": 106, "memory": 72, "staleness": 75, "idle": 50, "late": 104,
        "sending": 90, "computing": 112, "settings": 74,
    },
    "formulas": {"method": 125, "computation": 200, "communication": 250, "memory": 245, "staleness": 105},
    "waiting": {"method": 125, "idle": 290, "late": 104, "waits": 291, "settings": 90},
}  # fmt: skip
"""The columns and their widths in px, by what the table shows. All fit a page 1366 px wide."""
TITLES = {
    "method": "Method", "computation": "Computation", "communication": "Communication", "memory": "Memory",
    "staleness": "Staleness", "sending": "Time to send", "computing": "Time to compute", "idle": "Idle",
    "late": "Idle, one slow", "waits": "Waits for", "settings": "With",
}  # fmt: skip
NONE = "–"  # where there is no formula
HELPS = {
    "staleness": "In updates.",
    "idle": "Share of the time that workers wait, on average, if messages take no time and workers are alike.",
    "late": "Share of the time that the other workers wait if one worker takes twice as long as they do.",
    "waits": "What a worker waits for.",
    "settings": "Settings in the formulas, such as the period H.",
    "sending": "If all ports are always busy.",
    "computing": "If all devices run at peak speed.",
}


def page() -> None:
    """Show the table of costs and, in a second tab, the five sources with their methods."""
    with st.sidebar:
        model, cluster = _choose()
    st.markdown("# The survey, section by section", anchors=False)
    st.markdown(
        "Lockstep follows a survey of parallel training and four more works. These are their methods, with the "
        "module that implements each one, and the chapters and figures that show it."
    )
    costs, sections = st.tabs(["What a step costs", "Section by section"], key="survey-part")
    with costs:
        _costs(model, cluster)
    with sections:
        _sections()


def _choose() -> tuple[survey.Model, survey.Cluster]:
    name = st.selectbox(
        "Model",
        survey.MODELS,
        index=2,
        key="survey_model",
        help="Stacks of equal dense layers, pairs of a wide and a narrow one, and VGG-16, whose layers all differ.",
        **BOUND,
    )
    workers = st.select_slider("Workers", [2, 4, 8, 16, 32, 64, 128, 256], 8, key="survey_workers", **BOUND)
    batch = st.select_slider(
        "Samples per worker",
        [8, 16, 32, 64, 128, 256],
        32,
        key="survey_samples",
        help="Workers that share samples process the same total: this number times the number of workers.",
        **BOUND,
    )
    period = st.select_slider(
        "Period", [1, 2, 4, 8, 16, 32, 64], 8, key="survey_period", help="H, for methods with a period", **BOUND
    )
    chunks = st.select_slider(
        "Micro-batches", [2, 4, 8, 16, 32, 64], 8, key="survey_chunks", help="M, for pipelines", **BOUND
    )
    network = st.selectbox("Network", survey.NETWORKS, index=2, key="survey_network", **BOUND)
    device = st.selectbox("Device", survey.DEVICES, index=5, key="survey_device", **BOUND)
    return survey.MODELS[name], survey.Cluster(workers, batch, network, device, {"H": period, "M": chunks})


def _costs(model: survey.Model, cluster: survey.Cluster) -> None:
    """Show the filtered table, with the formulas of the chosen method and a run that shows its costs."""
    rows = survey.table(model, cluster)
    left, middle, right, last = st.columns([3, 3, 2, 3], vertical_alignment="bottom")
    families = list(dict.fromkeys(row["family"] for row in rows))
    family = left.selectbox("Family", ["all", *families], key="survey_family", **BOUND)
    word = middle.text_input("Search", key="survey_search", placeholder="easgd, stale, ...", **BOUND)
    only = right.toggle("Surveyed only", key="survey_surveyed", **BOUND)
    shown = last.segmented_control("Show", [*WIDTHS], default="numbers", required=True, key="survey_shown", **BOUND)
    kept = [
        row
        for row in rows
        if family in ("all", row["family"])
        and (not only or row["surveyed"])
        and word.lower() in f"{row['method']} {row['family']} {row['approximation']}".lower()
    ]
    st.caption(
        f"{len(kept)} of {len(rows)} methods. {survey.the_step(model, cluster)} Numbers are in float32, at each "
        f"module's settings: FLOPs and bytes of all ranks together, memory (without messages) of the "
        f"worker that uses most; staleness in updates. *Idle* is the share of the workers' time in which they wait, if "
        f"messages take no time; *{TITLES['late']}* is that share for the others if one takes twice as long. Tests "
        f"check the formulas against runs."
    )
    if not kept:
        st.info("No method matches; clear the search or choose another family.", icon=":material/search_off:")
        return
    if shown != "numbers":
        st.markdown(f":small[{_symbols(kept)} A dash means there is no formula; select the row to read why.]")
    chosen = st.dataframe(
        _numbers(kept) if shown == "numbers" else frame(_formulas(kept, shown)), key=f"costs-{shown}", hide_index=True,
        height=min(35 * len(kept) + 38, 620), on_select="rerun", selection_mode="single-row", placeholder=NONE,
        column_config=_columns(shown),
    )  # fmt: skip
    st.download_button("Whole table (CSV)", _csv(rows), "lockstep-survey.csv", "text/csv", icon=":material/download:")
    picked = chosen["selection"]["rows"]
    _method(kept[picked[0]] if picked else kept[0], cluster)


def _numbers(rows: list[dict]):
    """Return the table as numbers, which sort numerically and are formatted like all others on this page."""
    value = {quantity: f"{quantity} value" for quantity in survey.QUANTITIES}
    columns = WIDTHS["numbers"]
    lines = frame([{name: survey.in_one_cell(row[value.get(name, name)]) for name in columns} for row in rows])
    said = {name: partial(survey.format_quantity, unit=survey.UNITS[name]) for name in survey.QUANTITIES}
    said |= {"sending": units.seconds, "computing": units.seconds}
    lines = lines.astype(dict.fromkeys(said, float))  # also a column in which there is none
    return lines.style.format(said, na_rep=NONE)


def _formulas(rows: list[dict], shown: str = "formulas") -> list[dict]:
    """Return the table as formulas, with a dash where words explain why there is none."""

    def cell(row: dict, name: str) -> str:
        return NONE if row.get(f"{name} value", 0) is None else survey.in_one_cell(row[name])

    return [{name: cell(row, name) for name in WIDTHS[shown]} for row in rows]


def _symbols(rows: list[dict]) -> str:
    """Return the meanings of the letters in the formulas of these methods."""
    return "; ".join(f"`{letter}` {meaning}" for letter, meaning in survey.symbols_of(rows).items()) + "."


def _columns(shown: str) -> dict:
    return {
        name: st.column_config.Column(TITLES[name], width=width, help=HELPS.get(name), pinned=name == "method")
        for name, width in WIDTHS[shown].items()
    }


def _method(row: dict, cluster: survey.Cluster) -> None:
    """Show one method: where the book discusses it, and a run that shows its costs."""
    with st.container(border=True, key="survey-method"):
        st.markdown(f"**{escape_markdown(row['method'])}**")
        st.markdown(f"Approximation: {escape_markdown(row['approximation'])}")
        with_settings = survey.in_one_cell(row["settings"])
        st.markdown(
            f"Waits for: {escape_markdown(row['waits'])}" + (f". With {with_settings}" if with_settings else "")
        )
        for quantity in survey.QUANTITIES:
            value = row[f"{quantity} value"]
            here = "" if value is None else f", here {survey.format_quantity(value, survey.UNITS[quantity])}"
            st.markdown(f"{TITLES[quantity]}: `{row[quantity]}`{here}")
        st.markdown(f":small[{_symbols([row])}]")
        st.markdown(_shown_in(row["chapters"], row["figures"]))
        if st.button("Open a run of it", key="survey-run", icon=":material/tune:"):
            workbench.go_to(Experiment.from_query(row["run"]))


def _sections() -> None:
    """Show each source with a summary of its abstract, and its methods in the order of the source."""
    _published()
    rows = survey.rows()
    for source in survey.sources():
        st.markdown(f"### {source.title}", anchors=False)
        figure = f" Figure {_figure(source.figure)}." if source.figure else ""
        st.markdown(f"{source.venue}. {source.result}{figure} {source.instead}")
        st.caption(source.parts)
        lines = ["| section | | work | module | in the book |", "|---|---|---|---|---|"]
        for row in (row for row in rows if row["source"] == source.key):
            module = f"`{row['module'].partition('.')[2]}`" if row["module"] else row["without"]
            figures = _some(map(_figure, row["figures"])) or _some(map(_chapter, row["chapters"]))
            lines.append(f"| {row['section']} | {row['reference']} | {row['work']} | {module} | {figures} |")
        st.markdown("\n".join(lines))


def _published() -> None:
    """Show the published numbers that the book recomputes."""
    st.markdown("### Published numbers, computed again", anchors=False)
    lines = ["| work | published | here | from |", "|---|---|---|---|"]
    for one in survey.PUBLISHED:
        source = _figure(one.figure) if one.figure else "closed form"
        lines.append(f"| {one.work} | {one.theirs} | {one.ours()} | {source} |")
    st.markdown("\n".join(lines))


def _some(links: Iterable[str], most: int = 3) -> str:
    """Return the first few links, and how many more there are."""
    links = list(links)
    return ", ".join(links[:most]) + (f" and {len(links) - most} more" if len(links) > most else "")


def _shown_in(chapters: tuple[str, ...], figures: tuple[str, ...]) -> str:
    if not chapters:
        return "No chapter shows it yet."
    return f"Chapters: {', '.join(map(_chapter, chapters))}. Figures: {_some(map(_figure, figures), 6)}."


def _chapter(name: str) -> str:
    return f"[{name.replace('_', ' ')}](textbook?chapter={name})"


def _figure(name: str) -> str:
    chapter, _, figure = name.partition(".")
    return f"[{figure.replace('_', ' ')}]({address(chapter, f'figure-{chapter}-{figure}')})"


@st.cache_data(max_entries=8, show_spinner=False)
def _csv(rows: list[dict]) -> str:
    return frame([{key: survey.in_one_cell(value) for key, value in row.items()} for row in rows]).to_csv(index=False)

"""The survey, section by section, and what a step of each method costs for the reader's model and cluster."""

from __future__ import annotations

import streamlit as st

from app.frames import frame
from app.text import escaped
from app.views import workbench
from app.views.textbook.front import address
from experiments.experiment import Experiment
from lessons import survey

BOUND = {"bind": "query-params", "persist_state": "session"}
SCALES = {
    "computation": ("GFLOP", 1e9),
    "communication": ("MB", 1e6),
    "memory": ("MB", 1e6),
    "staleness": ("updates", 1),
}
HEADS = {
    "computation": ("GFLOP", 90, 70),
    "communication": ("MB sent", 125, 70),
    "memory": ("MB held", 120, 70),
    "staleness": ("updates late", 90, 95),
}
"""Of each quantity: the head of its number, which no other column has; widths of its formula and its number, in px.

A page of 1366 px has room for all columns up to the time of sending, and cuts none.
"""
TITLES = {"computation": "Computation", "communication": "Communication", "memory": "Memory", "staleness": "Staleness"}


def page() -> None:
    """Show the five sources with their methods, and the table of costs."""
    with st.sidebar:
        model, cluster = _choose()
    st.markdown("# The survey, section by section", anchors=False)
    st.markdown(
        "Lockstep accompanies a survey of parallel training, and sets out from four more works. Here are their "
        "methods, with the module that each became, and the chapters and figures that show it."
    )
    costs, sections = st.tabs(["What a step costs", "Section by section"], key="survey-part")
    with costs:
        _costs(model, cluster)
    with sections:
        _sections()


def _choose() -> tuple[survey.Stack, survey.Cluster]:
    name = st.selectbox(
        "Model", survey.MODELS, index=2, key="survey_model", help="Equal dense layers: all sizes follow.", **BOUND
    )
    workers = st.select_slider("Workers", [2, 4, 8, 16, 32, 64, 128, 256], 8, key="survey_workers", **BOUND)
    batch = st.select_slider(
        "Samples of a step", [8, 16, 32, 64, 128, 256], 32, key="survey_samples", help="B", **BOUND
    )
    period = st.select_slider(
        "Period", [1, 2, 4, 8, 16, 32, 64], 8, key="survey_period", help="H, of all that have one", **BOUND
    )
    chunks = st.select_slider(
        "Micro-batches", [2, 4, 8, 16, 32, 64], 8, key="survey_chunks", help="M, of pipelines", **BOUND
    )
    network = st.selectbox("Network", survey.NETWORKS, index=2, key="survey_network", **BOUND)
    device = st.selectbox("Device", survey.DEVICES, index=5, key="survey_device", **BOUND)
    return survey.MODELS[name], survey.Cluster(workers, batch, network, device, {"H": period, "M": chunks})


def _costs(model: survey.Stack, cluster: survey.Cluster) -> None:
    """Show the table, filtered, with the formulas of the chosen method and a run that shows its costs."""
    rows = survey.table(model, cluster)
    left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
    families = list(dict.fromkeys(row["family"] for row in rows))
    family = left.selectbox("Family", ["all", *families], key="survey_family", **BOUND)
    word = middle.text_input("Search", key="survey_search", placeholder="easgd, stale, ...", **BOUND)
    only = right.toggle("Surveyed only", key="survey_surveyed", **BOUND)
    kept = [
        row
        for row in rows
        if family in ("all", row["family"])
        and (not only or row["surveyed"])
        and word.lower() in f"{row['method']} {row['family']} {row['approximation']}".lower()
    ]
    st.caption(
        f"{len(kept)} of {len(rows)} methods; {model.parameters:,} parameters in float32. Numbers are of one step at "
        "each module's settings: FLOPs and bytes of all ranks together, memory of the worker that holds most, "
        "messages not counted, staleness in updates. Formulas are held to runs."
    )
    if not kept:
        st.info("No method fits; clear the search or choose another family.", icon=":material/search_off:")
        return
    chosen = st.dataframe(
        frame(_lines(kept)), key="costs", hide_index=True, height=min(35 * len(kept) + 38, 620), on_select="rerun",
        selection_mode="single-row", column_config=_columns(),
    )  # fmt: skip
    st.download_button("Whole table (CSV)", _csv(rows), "lockstep-survey.csv", "text/csv", icon=":material/download:")
    with st.expander("Symbols"):
        st.markdown("\n".join(f"- `{symbol}` {meaning}" for symbol, meaning in survey.SYMBOLS.items()))
    picked = chosen["selection"]["rows"]
    _method(kept[picked[0]] if picked else kept[0], cluster)


def _lines(rows: list[dict]) -> list[dict]:
    """Return the table as it is shown: formula and number of each quantity, side by side."""
    lines = []
    for row in rows:
        line = {"method": row["method"]}
        for quantity in survey.QUANTITIES:
            value = row[f"{quantity} value"]
            number = None if value is None else value / SCALES[quantity][1]
            line |= {quantity: row[quantity], f"{quantity} value": number}
        lines.append(line | {name: row[name] for name in ("sending", "computing", "approximation", "family")})
    return lines


def _columns() -> dict:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    columns = {"method": text("Method", pinned=True, width=115)}
    for quantity, title in TITLES.items():
        head, wide, number_wide = HEADS[quantity]
        columns[quantity] = text(title, width=wide)
        told = f"{title} of a step, in {SCALES[quantity][0]}"
        columns[f"{quantity} value"] = number(head, format="%.3g", help=told, width=number_wide)
    columns["sending"] = number("s to send", format="%.3g", help="If all ports are busy without a pause.", width=75)
    columns["computing"] = number("s to compute", format="%.3g", help="If all devices are at their peak.")
    return columns | {"approximation": text("Approximation", width="large"), "family": "Family"}


def _method(row: dict, cluster: survey.Cluster) -> None:
    """Show one method: where the book has it, and a run that shows its costs."""
    with st.container(border=True, key="survey-method"):
        st.markdown(f"**{escaped(row['method'])}**: {escaped(row['approximation'])}")
        for quantity, title in TITLES.items():
            number = survey.shown(row[f"{quantity} value"], survey.UNITS[quantity])
            st.markdown(f"{title}: `{row[quantity]}`, here {number}")
        st.markdown(_shown_in(row["chapters"], row["figures"]))
        if st.button("Open a run of it", key="survey-run", icon=":material/tune:"):
            workbench.go_to(Experiment.from_query(row["run"]))


def _sections() -> None:
    """Show each source with what its abstract says, and its methods in its own order."""
    rows = survey.rows()
    for source in survey.sources():
        st.markdown(f"### {source.title}", anchors=False)
        figure = f" Figure {_figure(source.figure)}." if source.figure else ""
        st.markdown(f"{source.venue}. {source.result}{figure} {source.instead}")
        st.caption(source.parts)
        lines = ["| section | | work | module | in the book |", "|---|---|---|---|---|"]
        for row in (row for row in rows if row["source"] == source.key):
            module = f"`{row['module'].partition('.')[2]}`" if row["module"] else row["without"]
            shown = ", ".join([_chapter(name) for name in row["chapters"][:3]])
            lines.append(f"| {row['section']} | {row['reference']} | {row['work']} | {module} | {shown} |")
        st.markdown("\n".join(lines))


def _shown_in(chapters: tuple[str, ...], figures: tuple[str, ...]) -> str:
    if not chapters:
        return "No chapter shows it yet."
    return f"Chapters: {', '.join(map(_chapter, chapters))}. Figures: {', '.join(map(_figure, figures[:6]))}."


def _chapter(name: str) -> str:
    return f"[{name.replace('_', ' ')}](textbook?chapter={name})"


def _figure(name: str) -> str:
    chapter, _, figure = name.partition(".")
    return f"[{figure.replace('_', ' ')}]({address(chapter, f'figure-{chapter}-{figure}')})"


@st.cache_data(max_entries=8, show_spinner=False)
def _csv(rows: list[dict]) -> str:
    return frame([{k: " ".join(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in rows]).to_csv(
        index=False
    )

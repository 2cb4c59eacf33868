"""The page for your own material: a run from elsewhere, a table to train on and, on your own machine, a network or a
script.
"""

from collections.abc import Sequence

import streamlit as st

from app.browser import components
from app.browser.frames import frame
from app.browser.text import escape_markdown, sentence
from app.charts import Shown, lane_names, pictures
from app.charts.pictures import heading
from app.own_script import page as scripts
from app.session import background, session
from app.settings import chosen, controls, feasible
from app.workbench import figures, head, remarks, workbench
from experiments.jobs import script, upload
from experiments.runs import tables
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import timeline
from experiments.viewer.saved import labels_of_one
from experiments.wording import naming, units
from experiments.wording.sentences import capital

MOST = upload.MOST_BYTES // 1_000_000  # MB
BROUGHT = (
    "A run that was made elsewhere is shown like one of the workbench's own, and a table becomes data to train on. "
    "Uploads are read in a separate process; nothing in them is executed"
)
NETWORK = "a network's Python file, which runs on this machine when you train it"
SCRIPT = "a script, which runs on this machine with your permissions"
TABS = ("A script", "A run, a table or a network")
WANTED = "wanted"  # the parameter of an address that asks for an upload: wanted=table
PREVIEW = 6  # rows of a table
ROW = 36  # px

_load = st.cache_resource(tables.load, max_entries=4, show_spinner=False)
_tried = st.cache_resource(tables.first_run, max_entries=16, show_spinner=False)


def page() -> None:
    """Show the page: the reader's script if scripts are allowed, and the reader's files."""
    with st.sidebar:
        executed = [NETWORK] * bool(upload.modules_folder()) + [SCRIPT] * script.is_allowed()
        st.markdown(BROUGHT + f", except for {' and '.join(executed)}" * bool(executed) + ".")
    st.markdown("# Your own", anchors=False)
    if not scripts.is_wanted():
        _files()
        st.caption(scripts.OFF)
        return
    brought = any(st.query_params.get(name) for name in ("run", "table", WANTED))
    tabs = st.tabs(TABS, default=TABS[brought], key="own", on_change="rerun")
    for tab, draw in zip(tabs, (scripts.show, _files), strict=True):
        with tab:
            if tab.open:
                draw()


def _files() -> None:
    """Let the reader upload a run or a table; show what was uploaded, and offer to continue with it."""
    left, right = st.columns(2, gap="medium")
    with left:
        heading("Open a run", "A run that was made elsewhere, on the command line or in a workbench.")
        _bring("run", "A run's folder, as a zip or as all its files", "Reading the run.")
    with right:
        heading("Train on a table", "CSV with a row for each sample, or two IDX files: images and labels.")
        _bring("table", "A CSV file, or two IDX files", "Reading the table.")
        st.caption(
            "A CSV file looks like this, with ten rows or more. Names are optional; you choose the column to predict."
        )
        st.code(tables.EXAMPLE, language=None)
        with st.container(horizontal=True):
            st.button(
                "Try an example", key="try-example", icon=":material/science:", on_click=st.session_state.update,
                kwargs={"example": True}, help="A table of 240 animals like the one above, as if you had uploaded it.",
            )  # fmt: skip
            st.download_button(
                "example.csv", tables.example, "example.csv", "text/csv", key="example-csv", icon=":material/download:",
                on_click="ignore",
            )  # fmt: skip
    if name := st.query_params.get("table"):
        _table(name)
    if name := st.query_params.get("run"):
        _run(name)
    _module()


def _bring(kind: str, label: str, waiting: str) -> None:
    """Draw an upload field for files of this kind; write the name of the stored upload to the page's address."""
    given = st.file_uploader(label, accept_multiple_files=True, key=f"{kind}_files", max_upload_size=MOST)
    files = [(file.name, file.getvalue()) for file in given]
    if kind == "table" and not given and st.session_state.get("example"):
        files = [("example.csv", tables.example().encode())]
    if not files:
        return
    try:
        job_spec = upload.job_spec(kind, files)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/block:")
        return
    if st.session_state.get(f"brought-{kind}") != job_spec.key():
        st.session_state[f"brought-{kind}"] = job_spec.key()
        try:
            upload.put(session.ROOT, files)
        except OSError as error:
            st.error(sentence(f"the upload could not be stored: {error.strerror}"), icon=":material/block:")
            return
    found = background.fetch(job_spec, waiting, f"upload-{kind}")
    if found and found.stem != st.session_state.get(f"opened-{kind}"):
        st.session_state[f"opened-{kind}"] = st.query_params[kind] = found.stem


# a run


def _run(name: str) -> None:
    run = session.find(name) if upload.is_uploaded(name) else None
    if run is None:
        st.warning("This run is no longer on this machine; upload it again.", icon=":material/folder_off:")
        return
    st.divider()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"# {head.title(run.experiment)}", anchors=False)
        st.badge("uploaded", icon=":material/upload_file:", color="orange")
        if st.button("Compare in the workbench", key="compare", icon=":material/stacked_line_chart:"):
            st.switch_page(workbench.entry(), query_params={"pin": name})
    st.caption(head.headline(run.experiment, run))
    remarks.show(run, [])
    shown = [Shown(f"{naming.method(run.experiment)}, uploaded", run, 0, name)]
    figures.show(*shown)
    st.fragment(pictures.loss_and_accuracy)(shown)
    if run.quantities:
        heading("What the method measured", "Quantities that only this algorithm records, in each step.")
        st.fragment(pictures.draw_measurements)(shown)
    heading("Timeline", "What each rank did when: one lane per rank, one bar per span. Arrows are messages.")
    st.fragment(_lanes)(run, name)
    st.fragment(pictures.details)(shown[0], shown)


def _lanes(run: Run, name: str) -> None:
    """Draw the timeline, without the dialog for faults, because this run was not made here."""
    window = components.requested_window(st.session_state.get("uploaded"), name)
    saved = labels_of_one(run.experiment, "timeline")
    frame = timeline.trace_frame(run.trace, lane_names(run), timeline.describe(run), name, window, saved=saved)
    components.timeline(frame, key="uploaded")


# a table


def _table(name: str) -> None:
    try:
        table = _load(name)
    except ValueError as error:
        st.warning(sentence(str(error)), icon=":material/folder_off:")
        return
    st.divider()
    columns = f"{units.count(len(table.names))} columns"
    named = escape_markdown(capital(naming.data(Experiment.of({"workload": "table", "table": name}))))
    st.markdown(f"## {named}: {units.count(len(table.cells))} rows, {columns}", anchors=False)
    for note in table.notes:
        st.caption(f":material/info: {escape_markdown(note)}")  # names keep their spelling
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        names = [*table.names[::-1]][:1000]
        label = st.selectbox("What to predict", names, key=f"label-{name}")
        estimated = label not in table.words and st.toggle(
            "Estimate it as a number", tables.is_estimated(table, label), key=f"regression-{name}-{label}",
            help="Regression by squared error. When off, each distinct value is a class.",
        )  # fmt: skip
        first = _first_run(name, label, estimated)
    if first:
        with right:
            heads = ["share of rows", label] if estimated else [label, "rows"]
            heads[1] += " of it" * (heads[0] == heads[1])  # no two columns of a table may share a name
            columns = dict(zip(heads, zip(*first.target, strict=True), strict=True))
            st.dataframe(frame(columns), hide_index=True, height=min(180, ROW * (len(first.target) + 1)))
    st.dataframe(frame(_preview(table)), hide_index=True)
    _go()


def _first_run(name: str, label: str, estimated: bool) -> tables.FirstRun | None:
    """Draw what a first run would predict, and its button, and return the run. If it cannot start, draw the reason and
    return None.
    """
    missing = st.session_state.get(f"missing-{name}", "refuse")
    try:
        first = _tried(name, label, estimated, missing)
    except tables.Gaps as error:
        st.warning(escape_markdown(str(error)), icon=":material/healing:")
        ways = {"rows": f"Leave out {units.count(error.rows)} row{'s' * (error.rows != 1)}", "mean": "Use the mean"}
        with st.container(horizontal=True):
            for way, words in ways.items():
                st.button(words, key=f"missing-{way}", on_click=_repair, args=(name, way), icon=":material/healing:")
        return None
    except ValueError as error:
        st.warning(escape_markdown(str(error)), icon=":material/tune:")
        return None
    st.caption(f"{sentence(f'predicts {first.predicts}')} {sentence(first.features)}")
    for note in first.notes:
        st.caption(f":material/info: {escape_markdown(note)}")
    if first.why:
        st.caption(f"Starting values: {first.why}.")
    st.button(
        "Train on it", type="primary", icon=":material/play_arrow:", on_click=_train, args=(first.experiment,),
        key="train-table",
    )  # fmt: skip
    return first


def _repair(name: str, way: str) -> None:
    st.session_state[f"missing-{name}"] = way


def _preview(table: tables.Table) -> dict[str, Sequence]:
    """Return the first cells of each column, by the column's name. Classes are shown as the words that the file has for
    them.
    """
    names = (*table.names[:30], *table.names[max(30, len(table.names) - 1) :])
    shown = {}
    for name in names:
        cells = table.cells[:PREVIEW, table.names.index(name)]
        words = table.words.get(name)
        shown[name] = [words[int(cell)] for cell in cells] if words else cells
    return shown


# a network


def _module() -> None:
    if upload.modules_folder() is None:
        st.caption(
            "You can also train your own torch module, on your own machine: set LOCKSTEP_MODULES to a folder before "
            "you start the workbench. This is off here, because it executes your file."
        )
        return
    heading(
        "Train your own network", "A Python file that defines net, loss, train and test. It is run on this machine."
    )
    st.download_button(
        "example.py", upload.EXAMPLE, "example.py", "text/x-python", key="example", icon=":material/download:",
        on_click="ignore", help="A network and its data in twelve lines, to start from.",
    )  # fmt: skip
    given = st.file_uploader("A Python file", key="module_file", max_upload_size=1)
    if given:
        try:
            name = upload.save_module(given.getvalue(), given.name)
            made = Experiment.of({"workload": "own_module", "net": name})
        except (ValueError, OSError) as error:
            st.error(sentence(str(error)), icon=":material/block:")
            return
        st.button(
            f"Train {naming.data(made)}", icon=":material/play_arrow:", on_click=_train, key="train-module",
            args=(made,),
        )  # fmt: skip
    _go()


def _placed(experiment: Experiment) -> Experiment:
    """Return the experiment with the workbench's network and devices, or unchanged if it cannot run with them."""
    state = st.session_state
    if chosen.cluster() != "simulated":
        return experiment
    here = {name: state[name] for name in controls.PLACE if name in state}
    try:
        placed = experiment.change(**here)
    except ValueError:
        return experiment
    return experiment if feasible.refusal(placed) else placed


def _train(experiment: Experiment) -> None:
    """Run this experiment on the reader's network, and switch to the workbench."""
    workbench.take(_placed(experiment))
    st.session_state.go = True  # a callback cannot change the page


def _go() -> None:
    if st.session_state.pop("go", False):
        st.switch_page(workbench.entry())

"""Kernels, one at a time: formula, implementations next to each other, cost model, a block on a GPU, and measured
times.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from app import charts
from app.browser import address, chrome
from app.browser.text import escape_markdown, flowing
from app.charts.pictures import heading
from app.kernel_pages import formula, threads
from app.session import background, session
from experiments.measure import kernel_times
from experiments.measure.kernel_times import Peaks, Report, Row
from experiments.specification.catalogue import KERNELS, choice_label
from experiments.viewer.html_table import html_table
from experiments.wording import units

INTRODUCTION = (
    "Training spends its time in a few loops like this one. Here is one: its formula, the same loop for a CPU "
    "and for a GPU, and how long it takes on this machine. **A first question:** is it limited by arithmetic or by "
    "memory? Guess from the formula, then look at *Measured here*; *One block, thread by thread* shows who reads what."
)
UNSTEADY = 1.2  # largest ratio of the roofs of two measurements on an undisturbed machine
SAID = {
    "numpy": ("NumPy", "the reference on one thread"),
    "cpu": ("Numba", "the CPU implementation on one thread"),
    "torch": ("torch", "the same in eager mode on one thread"),
    "gpu": ("CUDA", "the GPU implementation"),
    "torch_gpu": ("torch on the GPU", "the same in eager mode"),
}
"""The label and the meaning of each quantity that was timed."""


def page() -> None:
    """Let the reader choose a kernel, read its source, and see what it costs on this machine."""
    with st.sidebar:
        name, n = _choose()
    chrome.show()
    source = read(name)
    st.markdown(f"# {escape_markdown(KERNELS[name].title)}", anchors=False)
    st.caption(KERNELS[name].path)
    st.markdown(INTRODUCTION)
    with st.container(key="source-code"):
        _source(source)
    threads.watch(name)
    _measured(name, n)


def _choose() -> tuple[str, int]:
    address.keep("kernel", KERNELS, next(iter(KERNELS)))
    name = st.selectbox(
        "Kernel", KERNELS, key="kernel", format_func=partial(choice_label, KERNELS), persist_state="session",
        help="Grouped by family. Type to search.",
    )  # fmt: skip
    st.markdown(f":small[{escape_markdown(read(name).theory.splitlines()[0])}]")
    address.keep("numbers", kernel_times.SIZES, kernel_times.SIZE)
    n = st.select_slider(
        "Numbers in a call", kernel_times.SIZES, key="numbers", format_func=units.count, persist_state="session",
        help="Approximate number of elements: the length of a vector, or the total size of a table, a matrix, "
        "images or sequences.",
    )  # fmt: skip
    return name, n


def _source(source: Source) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        heading("Formula, price and source")
        _theory(source.theory)
        st.code(source.price, language="python", wrap_lines=True)
    with right:
        heading("Reference", "Plain NumPy. The tests compare both implementations with it.")
        st.code(source.reference, language="python", wrap_lines=True)
        if source.shared:
            heading("In both implementations", "The CPU and the GPU share these lines, so they cannot differ in them.")
            st.code(source.shared, language="python", wrap_lines=True)
    left, right = st.columns(2, gap="medium")
    with left:
        heading("CPU implementation")
        st.code(source.cpu, language="python", wrap_lines=True)
    with right:
        heading("GPU implementation")
        st.code(source.gpu, language="python", wrap_lines=True)


def _theory(theory: str) -> None:
    """Show a file's description of its kernel, with the formula typeset if possible."""
    plain = next((part for part in theory.split("\n\n") if part.startswith("    ")), "")
    statements, remarks = formula.tex(plain)
    if statements:
        st.latex("\\begin{gathered}" + r" \\[0.6em] ".join(statements) + "\\end{gathered}")
        if any(r"\eta" in one for one in statements):
            remarks.append("η is the learning rate, rate in the code")
        st.caption(". ".join(map(escape_markdown, remarks)))
        theory = theory.replace(f"{plain}\n\n", "", 1)
    st.code(flowing(theory), language=None, wrap_lines=True)


# the source, split into parts without importing it


@dataclass(frozen=True)
class Source:
    """The source of a kernel's file, in parts."""

    theory: str
    price: str
    reference: str
    shared: str
    cpu: str
    gpu: str


@st.cache_data(show_spinner=False)
def read(name: str) -> Source:
    """Return a kernel's file in parts. Code that both implementations use is shared; code that neither of them uses is
    the cost model.
    """
    text = KERNELS[name].source
    tree = ast.parse(text)
    defined = {one: node for node in tree.body for one in _names(node)}
    reached = {part: _reached(part, defined) for part in ("reference", "cpu", "gpu")}
    parts: dict[str, list[str]] = {part: [] for part in ("price", "reference", "shared", "cpu", "gpu")}
    for node in dict.fromkeys(defined.values()):
        whose = [part for part, names in reached.items() if not names.isdisjoint(_names(node))]
        part = "shared" if {"cpu", "gpu"} <= {*whose} else whose[0] if whose else "price"
        parts[part].append(_text(text, node))
    texts = {part: "\n\n\n".join(some).replace("\n\n\n@", "\n\n@") for part, some in parts.items()}
    return Source(inspect.cleandoc(ast.get_docstring(tree)), **texts)


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a top-level function or assignment defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _reached(start: str, defined: dict[str, ast.stmt]) -> set[str]:
    """Return the names in `defined` that `start` uses, directly or indirectly, including itself."""
    found, ahead = set(), [start]
    while ahead:
        name = ahead.pop()
        if name in defined and name not in found:
            found.add(name)
            ahead += [part.id for part in ast.walk(defined[name]) if isinstance(part, ast.Name)]
    return found


def _text(text: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


# what was measured


def _measured(name: str, n: int) -> None:
    """Show this kernel's times and the roofline, with all kernels if all were measured."""
    heading("Measured here", "Measured in a separate process on one thread: the best of several rounds of calls.")
    state = st.session_state
    every = kernel_times.job_spec(KERNELS, n)
    all_of_them = every.find_result(session.ROOT) is not None or state.get("roofline") == n
    wanted = [*KERNELS] if all_of_them else [name]
    known = kernel_times.stored_measurements(wanted, n, session.ROOT)
    asked = f"measurement-{'all' if all_of_them else name}-{n}"
    number = max(len(known), state.get(asked, 1))
    waiting = (
        "Measuring all kernels: this takes a minute or two." if all_of_them else f"Measuring {KERNELS[name].title}."
    )
    folder = background.fetch(kernel_times.job_spec(wanted, n, number), waiting, "kernels")
    if folder is None and not known:
        return
    reports = [_report(str(one)) for one in dict.fromkeys([*known, *([folder] if folder else [])])]
    report = reports[-1]
    row = report.row(name)
    _table(row, report)
    if len(reports) > 1:
        st.caption(_spread([one.row(name) for one in reports], [one.cpu for one in reports]))
    st.caption(
        f"{units.count(row.flops)} FLOPs and {units.size(row.bytes)} per call, by the cost model: "
        f"{units.number(row.intensity)} FLOPs per byte. {report.machine}, {units.moment(report.moment)}."
    )
    st.caption(_roof(row, report.cpu))
    st.button(
        "Measure again", key="measure-again", icon=":material/refresh:", on_click=state.update,
        args=({asked: len(reports) + 1},), disabled=folder is None,
        help=f"{'All kernels: a minute or two. ' if all_of_them else ''}A machine's speed varies: measure twice "
        "before you trust a small difference.",
    )  # fmt: skip
    heading("Roofline", "How close the kernel comes to this machine's limit at its number of FLOPs per byte.")
    if not all_of_them:
        st.button("Measure all kernels", key="all", on_click=st.session_state.update, args=({"roofline": n},))
    st.plotly_chart(charts.roofline(report, name), key="roofline-chart", config=charts.CONFIG, alt=_heard(row, report))


@st.cache_resource(max_entries=64, show_spinner=False)
def _report(folder: str) -> Report:
    return kernel_times.load(Path(folder))


def _table(row: Row, report: Report) -> None:
    heads = ("", "a call takes", "as fast as NumPy", "GFLOP/s", "GB/s", "of the roof", "")
    rows = []
    for name, (label, meaning) in SAID.items():
        took = getattr(row, name)
        if took is None and (name.endswith("gpu") or name == "torch"):
            continue
        peaks = report.gpu if name.endswith("gpu") else report.cpu
        cells = (
            units.seconds(took),
            f"{units.number(row.numpy / took)} ×",
            units.number(row.flops / took / 1e9) if row.flops else "–",
            units.number(row.bytes / took / 1e9),
            units.percent(kernel_times.roof_share(row, peaks, name)),
            meaning,
        )
        rows.append((label, cells))
    st.html(f'<div class="figures explained">{html_table(heads, rows)}</div>')


def _roof(row: Row, peaks: Peaks) -> str:
    """Return a sentence on what bounds a call on the CPU, and which memory level holds its working set."""
    bandwidth, level = peaks.bandwidth(row.working_set), peaks.level(row.working_set)
    place = f"{units.size(row.working_set)}{level and f', in {level}'}"
    if row.intensity * bandwidth > peaks.flops:
        roof = f"the {units.flops(peaks.flops)}/s of a matrix product"
    else:
        roof = f"the {units.rate(bandwidth)} that loops without arithmetic reach there"
    return f"Its working set is {place}. Its roof is {roof}; only noise can lift a measurement above it."


def _spread(rows: list[Row], peaks: list[Peaks]) -> str:
    """Return, in words, how much the measurements of a kernel differ, and whether their roofs differ, too."""
    times = [row.cpu for row in rows]
    roofs = [each.roof(row.intensity, row.working_set) if row.flops else each.bandwidth(row.working_set)
             for row, each in zip(rows, peaks, strict=True)]  # fmt: skip
    said = (
        f"The newest of {len(rows)} measurements: in Numba a call took {units.seconds(min(times))} to "
        f"{units.seconds(max(times))}."
    )
    if max(roofs) > UNSTEADY * min(roofs):
        said += (
            f" The roof itself differed by {units.percent(max(roofs) / min(roofs) - 1)} between these measurements: "
            "something else kept the machine busy, so shares of the roof say little. Measure again when it is idle."
        )
    return said


def _heard(row: Row, report: Report) -> str:
    """Return a sentence that describes the chart, for readers who cannot see it."""
    return (
        f"Roofline of {len(report.rows)} kernels: {KERNELS[row.kernel].title} does "
        f"{units.flops(row.flops / row.cpu)}/s at {units.number(row.intensity)} FLOPs per byte, "
        f"{units.percent(kernel_times.roof_share(row, report.cpu))} of the roof."
    )

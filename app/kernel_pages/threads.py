"""Step through one block of a kernel: what each thread does, which memory it touches, and which threads wait."""

from html import escape
from pathlib import Path

import streamlit as st

from app.charts.pictures import heading
from app.session import background
from experiments.measure import warps
from experiments.measure.warps import ADD, READ, WAIT, WARP, WRITE, Instruction, Launch

SIGNS = {READ: "r", WRITE: "w", ADD: "+", WAIT: "|", "elsewhere": "·", "": ""}
MEANING = {
    READ: "reads",
    WRITE: "writes",
    ADD: "adds, atomically",
    WAIT: "at the barrier",
    "elsewhere": "waits: diverged",
}
STRIPS = 8  # most segments of an array that are drawn


@st.fragment
def watch(name: str) -> None:
    """Let the reader step through the first block of this kernel, launched on a few numbers."""
    heading(
        "One block, thread by thread",
        "The GPU implementation, run in our CUDA simulator. A moment is one memory instruction of every warp.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = st.segmented_control("Numbers in the call", warps.SIZES, default=warps.SIZES[1], key="watched-numbers")
        folder = background.fetch(warps.job_spec(name, n or warps.SIZES[1]), f"Simulating {name}.", "threads")
        if folder is None:
            return
        launches, which = _launches(str(folder)), 0
        if len(launches) > 1:
            which = st.selectbox(
                "Launch", range(len(launches)), key=f"launch-{name}", width=260,
                format_func=lambda one: f"{one + 1} of {len(launches)}: {launches[one].kernel.rpartition('.')[2]}",
            )  # fmt: skip
    launch = launches[which]
    last = len(launch.moments) - 1
    key = f"moment-{name}-{n}-{which}"
    moment = st.slider("Moment", 0, last, key=key, help="The arrow keys step forward and back.") if last else 0
    steps = launch.moments[moment]
    left, right = st.columns(2, gap="medium")
    with left:
        st.html(code(launch, steps))
    with right:
        st.html(threads(launch, steps) + legend(launch) + describe_moment(launch, moment) + memory(steps))
    if launch.cut:
        st.caption(f"The first {warps.MOST} instructions of each thread that touch memory.")


@st.cache_resource(max_entries=32, show_spinner=False)
def _launches(folder: str) -> list[Launch]:
    return warps.load(Path(folder))


def code(launch: Launch, steps: tuple[Instruction | None, ...]) -> str:
    """Return the source of the kernel and its device functions; a warp's current line is marked with its number."""
    here: dict[tuple[str, int], list[int]] = {}
    for warp, step in enumerate(steps):
        if step:
            here.setdefault((step.function, step.line), []).append(warp)
    lines = []
    for function, (first, text) in launch.functions.items():
        for number, line in enumerate(text.rstrip().splitlines(), first):
            at = here.get((function, number))
            note = f"{'warp' if len(at) == 1 else 'warps'} {warps.ranges(at)}" if at else ""
            lines.append(f'<div class="{"at" if at else ""}"><b>{note}</b><code>{escape(line) or " "}</code></div>')
        lines.append("<div><b></b><code> </code></div>")
    return f'<div class="watched-code" tabindex="0" role="region" aria-label="Source">{"".join(lines[:-1])}</div>'


def threads(launch: Launch, steps: tuple[Instruction | None, ...]) -> str:
    """Return a row of 32 threads for every warp, each with a symbol for what it does."""
    rows = []
    for warp, step in enumerate(steps):
        does = dict.fromkeys(step.active, step.does) | dict.fromkeys(step.elsewhere, "elsewhere") if step else {}
        marks = [does.get(lane, "") for lane in range(min(WARP, launch.threads - warp * WARP))]
        cells = "".join(f'<i class="{_class(mark)}">{SIGNS[mark]}</i>' for mark in marks)
        rows.append(f"<div><span>warp {warp}</span>{cells}</div>")
    return f'<div class="watched-threads" aria-hidden="true">{"".join(rows)}</div>'


def legend(launch: Launch) -> str:
    steps = [step for moment in launch.moments for step in moment if step]
    seen = {step.does for step in steps} | ({"elsewhere"} if any(step.elsewhere for step in steps) else set())
    parts = [
        f'<span><i class="{_class(mark)}">{SIGNS[mark]}</i>{meaning}</span>'
        for mark, meaning in MEANING.items()
        if mark in seen
    ]
    return f'<div class="legend watched-threads" aria-hidden="true">{"".join(parts)}</div>'


def describe_moment(launch: Launch, moment: int) -> str:
    """Return what every warp does at a moment, as text; warps that do the same share a line."""
    alike: dict[str, list[int]] = {}
    for warp, step in enumerate(launch.moments[moment]):
        worked = any(before[warp] for before in launch.moments[:moment])
        idle = "nothing left to do." if worked else "nothing to do in this launch."
        alike.setdefault(step.description() if step else idle, []).append(warp)
    lines = [
        f"<li><b>{'Warp' if len(some) == 1 else 'Warps'} {warps.ranges(some)}</b>: {escape(said)}</li>"
        for said, some in alike.items()
    ]
    return f'<ul class="watched-said" aria-live="polite">{"".join(lines)}</ul>'


def memory(steps: tuple[Instruction | None, ...]) -> str:
    """Return the memory that the first active warp touches: a row for every 128 bytes, with touched numbers marked."""
    found = next(((warp, step) for warp, step in enumerate(steps) if step and step.cells), None)
    if found is None:
        return ""
    warp, step = found
    each = warps.SEGMENT // step.itemsize
    rows = []
    for segment in step.segments[:STRIPS]:
        first = segment * each
        cells = "".join(
            f'<i class="{_class(step.does) if cell in step.cells else ""}"></i>' for cell in range(first, first + each)
        )
        rows.append(f"<div><span>{first}</span>{cells}</div>")
    more = len(step.segments) - STRIPS
    rest = f"<p>and {more} more such row{'s' * (more > 1)}</p>" if more > 0 else ""
    where = "shared" if step.shared else "global"
    return (
        f"<p>{escape(step.array)} in {where} memory, 128 bytes a row; what warp {warp} touches:</p>"
        f'<div class="watched-threads" aria-hidden="true">{"".join(rows)}</div>{rest}'
    )


def _class(mark: str) -> str:
    return f"does-{mark.partition(' ')[0]}" if mark else ""

"""Draw a timeline as SVG from the frame of its canvas, without a browser, in the window that the workbench shows first.

One lane per rank, one bar per span, an arrow per message, and flags for events: static and on white, for papers and
slides. For animation and interaction, see canvases/timeline.js.
"""

import math
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from experiments.exports.svg import RULE, SOFT, TEXT, document, ticks, words
from experiments.runs.record import Run
from experiments.viewer import pictures
from experiments.viewer.canvases import timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.palette import FLAG
from experiments.wording import units

WIDE, NAMES, RIGHT = 1000, 96, 16  # px
TOP, PITCH, AXIS, FOOT = 74, 28, 22, 50  # px of the part above the lanes, of a lane, of the axis, and of the part below
LABELLED = 6.2  # px per letter of a bar's label
ARROWS = 400  # a window with more messages has no arrows
HATCHES = {"\\": ("#FFFFFF", 0.35), "x": (TEXT, 0.5)}  # stripes over a bar: their colour, and how opaque they are


def timeline_svg(run: Run) -> str:
    """Return the timeline of a run, in its initial window, as the text of an SVG file."""
    return timeline_file(timeline.frame(run, ""))


def timeline_file(packed: bytes) -> str:
    """Return the timeline in a packed frame as the text of an SVG file."""
    frame, columns = unpack(packed)
    body = "".join(_body(frame, *(unpack(columns[name].tobytes()) for name in ("timeline", "messages"))))
    height = TOP + PITCH * len(frame["lanes"]) + AXIS + FOOT
    before = f"<desc>{escape(frame['description'])}</desc>{_DEFINED}"
    return document(WIDE, height, frame["saved"]["heading"], body, before)


def _body(frame: dict[str, Any], spans: tuple, messages: tuple) -> Iterator[str]:
    begin, end = frame["open"] or (0.0, frame["seconds"])
    plot, low = WIDE - NAMES - RIGHT, TOP + PITCH * len(frame["lanes"])

    def x(time: float) -> float:
        return NAMES + (time - begin) / (end - begin) * plot

    heading = frame["saved"]["heading"]
    yield words(12, 22, heading, size=min(15, int(1.5 * WIDE / len(heading))), weight=600)
    seen = {kind for kind, *_ in _inside(spans, begin, end)}
    yield from _legend([frame["kinds"][kind] for kind in sorted(seen)], frame["look"])
    scale, unit = pictures.unit("seconds", end)
    marks = ticks(begin / scale, end / scale, 8)
    decimals = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9)) if len(marks) > 1 else 3
    for mark in marks:
        at = x(mark * scale)
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 4}" y2="{low + 3}" stroke="{RULE}"/>'
        yield words(at, low + 17, f"{mark:.{decimals}f} {unit}", SOFT, "middle", 11)
    notes = frame["notes"] or [""] * len(frame["lanes"])
    for lane, (name, note) in enumerate(zip(frame["lanes"], notes, strict=True)):
        middle = TOP + lane * PITCH + PITCH / 2 + 4
        yield words(8, middle - 6 * bool(note), name)
        if note:
            yield words(8, middle + 7, note, size=10)
    # waits are drawn below work, since messages may travel while a rank computes
    for kind, lane, start, stop, label in sorted(_inside(spans, begin, end), key=lambda one: one[0] < frame["work"]):
        left, right = x(max(start, begin)), x(min(stop, end))
        yield _bar(frame["look"][frame["kinds"][kind]], left, right, TOP + lane * PITCH, label)
    inside = f'x="{NAMES}" y="{TOP}" width="{plot}" height="{low - TOP}"'
    yield f'<clipPath id="plot"><rect {inside}/></clipPath><g clip-path="url(#plot)">'
    yield from _arrows(messages[1], begin, end, x)
    yield "</g>"
    for lane, at in enumerate(frame.get("ended", ())):
        left = NAMES if at is None else max(x(at), NAMES) + 8
        if at is not None and left + LABELLED * len("done") < WIDE - RIGHT:
            yield words(left, TOP + lane * PITCH + PITCH / 2 + 4, "done", SOFT, size=11)
    for flag in frame["flags"]:
        if begin <= flag["at"] <= end:
            top = TOP if flag["lane"] < 0 else TOP + flag["lane"] * PITCH
            high = low - TOP if flag["lane"] < 0 else PITCH
            at = x(flag["at"])
            yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + high}" stroke="{FLAG}" stroke-width="2"/>'
            wide = LABELLED * len(flag["text"]) + 10
            left = at if at + wide < WIDE else at - wide
            yield f'<rect x="{left:.1f}" y="{top + 1}" width="{wide:.1f}" height="14" fill="{FLAG}"/>'
            yield words(left + wide / 2, top + 12, flag["text"], "#FFFFFF", "middle", 11, 600)
    shown = (
        f"Shown: {units.seconds(begin)} to {units.seconds(min(end, frame['end']))} of {units.seconds(frame['end'])}."
    )
    yield words(12, low + AXIS + 20, frame["told"])
    yield words(12, low + AXIS + 38, shown, SOFT)


def _inside(spans: tuple, begin: float, end: float) -> Iterator[tuple[int, int, float, float, str]]:
    """Yield (kind, lane, start, end, label) of the spans in a window; times in s."""
    header, c = spans
    stop = c["start"] + c["duration"]
    for n in np.flatnonzero((stop > begin) & (c["start"] < end)).tolist():
        label = header["labels"][int(c["label"][n])]
        yield int(c["kind"][n]), int(c["lane"][n]), float(c["start"][n]), float(stop[n]), label


def _bar(look: dict[str, Any], left: float, right: float, top: float, label: str) -> str:
    high = max(2.0, (PITCH - 4) * look["height"])
    y, wide = top + (PITCH - 2 - high) / 2, max(right - left - 0.7, 0.6)
    box = f'x="{left:.2f}" y="{y:.1f}" width="{wide:.2f}" height="{high:.1f}"'
    parts = [f'<rect {box} fill="{look["colour"]}"/>']
    if look["hatch"] in HATCHES:
        parts.append(f'<rect {box} fill="url(#hatch{list(HATCHES).index(look["hatch"])})"/>')
    if label and look["ink"] and len(label) * LABELLED < wide:
        parts.append(words(left + wide / 2, y + high / 2 + 4, label, look["ink"], "middle", 11))
    return "".join(parts)


def _arrows(c: dict[str, np.ndarray], begin: float, end: float, x) -> Iterator[str]:
    there = np.flatnonzero((c["arrived"] >= begin) & (c["sent"] <= end) & (c["arrived"] >= c["sent"]))
    for n in there.tolist() if len(there) <= ARROWS else ():
        (x0, x1) = (x(float(c[when][n])) for when in ("sent", "arrived"))
        (y0, y1) = (TOP + int(c[rank][n]) * PITCH + PITCH / 2 - 1 for rank in ("src", "dst"))
        line = f'x1="{x0:.1f}" y1="{y0}" x2="{x1:.1f}" y2="{y1}"'
        yield f'<line {line} stroke="{TEXT}" stroke-width="0.8" marker-end="url(#head)"/>'


def _legend(kinds: list[str], looks: dict[str, dict[str, Any]]) -> Iterator[str]:
    at = 12.0
    for kind in kinds:
        yield _bar(looks[kind], at, at + 18, 36, "")
        yield words(at + 24, 53, kind)
        at += 42 + 7 * len(kind)


_DEFINED = (
    "<defs>"
    + "".join(
        f'<pattern id="hatch{n}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
        f'<rect width="1.6" height="6" fill="{colour}" fill-opacity="{opacity}"/></pattern>'
        for n, (colour, opacity) in enumerate(HATCHES.values())
    )
    + '<marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    f'<path d="M0 0L6 3L0 6z" fill="{TEXT}"/></marker></defs>'
)

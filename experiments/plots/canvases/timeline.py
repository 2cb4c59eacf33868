"""The communication timeline of a run: who did what when, and who sent what to whom.

A short run is sent as it is. Of a long one the browser gets how each rank's time is divided, column by column, and
the single spans of one window; when the reader zooms in elsewhere it asks for that window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments import units
from experiments.plots import palette
from experiments.plots.column_codec import pack, pack_messages, pack_timeline
from experiments.plots.lanes import lane_names, troubled_names
from experiments.plots.saved import saved
from experiments.plots.story import Chip, Flag, Window, aftermath, story
from experiments.runs.record import Run
from tracing import KINDS, Trace, ordered

SPANS, MESSAGES = 50_000, 20_000  # that are sent at once
CELLS = 2_000_000  # of the table of shares


def frame(run: Run, name: str, window: Window | None = None) -> bytes:
    """Return all that the browser needs; `name` identifies the run, `window` (s) is where single spans are wanted."""
    names = lane_names(run)
    told = story(run, names)
    return framed(
        aftermath(run, names), troubled_names(run), describe(run), name, window, clickable=True, opening=told.opening,
        flags=told.flags, chips=told.chips, clock=True, end=run.trace.seconds(),
        saved=saved(run.experiment, "timeline"),
    )  # fmt: skip


def framed(
    trace: Trace,
    lanes: list[str],
    description: str,
    name: str,
    window: Window | None = None,
    clickable: bool = False,
    until: float = 0.0,
    opening: Window | None = None,
    flags: Sequence[Flag] = (),
    chips: Sequence[Chip] = (),
    play: bool = False,
    clock: bool = False,
    end: float | None = None,
    saved: dict | None = None,
    colours: Sequence[str] = (),
) -> bytes:
    """Return the same for any trace, with names for its lanes that can be clicked or not.

    Two timelines share an axis that reaches `until`, s, at least. `opening` is the window (s) at first, by default the
    first steps; `flags` say what happened when, `chips` are windows to go to. It begins to `play` at once unless the
    reader prefers less motion. With `clock` its cursor is the time of the page's clock. What goes on after the `end` of
    the run, s, goes on for ever. `saved` is what the picture is called as a file.
    """
    columns, total = {}, trace.seconds()
    part, exact = trace, (0.0, total)
    if len(trace.spans["start"]) > SPANS:
        part, exact = _within(trace, window or opening, total)
        columns["shares"] = _shares(trace, total)
    columns["timeline"] = np.frombuffer(pack_timeline(part, SPANS), np.uint8)
    columns["messages"] = np.frombuffer(pack_messages(part, MESSAGES), np.uint8)
    header = {
        "run": name,
        "seconds": max(total, until),
        "open": opening,
        "flags": [flag._asdict() for flag in flags],
        "chips": [{"text": chip.text, "from": chip.start, "to": chip.end} for chip in chips],
        "play": play,
        "clock": clock,
        "spans": len(trace.spans["start"]),
        "exact": exact,
        "end": total if end is None else end,
        "lanes": lanes,
        "colours": colours,
        "kinds": list(KINDS),
        "look": {kind: look._asdict() for kind, look in palette.DOING.items()},
        "description": description,
        "clickable": clickable,
        "saved": saved,
    }
    return pack(header, columns)


def beside(one: Trace, other: Trace) -> Trace:
    """Return both traces in one: rank r of the first is lane 2r, that of the second the lane below."""
    labels = tuple(dict.fromkeys((*one.labels, *other.labels)))
    sides = []
    for lane, trace in enumerate((one, other)):
        place = np.array([labels.index(label) for label in trace.labels] or [0], np.int32)
        sides.append(
            (
                {**trace.spans, "rank": 2 * trace.spans["rank"] + lane, "label": place[trace.spans["label"]]},
                {**trace.messages, "src": 2 * trace.messages["src"] + lane, "dst": 2 * trace.messages["dst"] + lane},
            )
        )
    spans, messages = (
        {name: np.concatenate([side[table][name] for side in sides]) for name in sides[0][table]} for table in (0, 1)
    )
    return Trace(
        2 * max(one.ranks, other.ranks), ordered(spans, "start", "rank"), ordered(messages, "sent", "src"), labels
    )


def describe(run: Run) -> str:
    """Return the timeline in a sentence, for readers who do not see it."""
    busy = run.trace.busy().sum(axis=0)
    parts = [f"{units.percent(value / busy.sum())} {kind}" for kind, value in zip(KINDS, busy, strict=True) if value]
    return f"Timeline of {run.trace.ranks} ranks over {units.seconds(run.trace.seconds())}: {', '.join(parts)}."


def _within(trace: Trace, window: Window | None, total: float) -> tuple[Trace, Window]:
    """Return the trace in and around the window, as far as SPANS spans reach, and from when to when that is."""
    start, end = trace.spans["start"], trace.spans["end"]
    if window is None:
        a, b = 0.0, float(start[SPANS])  # spans are sorted by start
    else:
        wide = window[1] - window[0]
        for a, b in ((window[0] - wide, window[1] + wide), window):
            a, b = max(a, 0.0), min(b, total)
            if np.count_nonzero((start < b) & (end > a)) <= SPANS:
                break
    messages = trace.messages
    inside = (start < b) & (end > a)
    known = (messages["sent"] < b) & ~(messages["arrived"] < a)
    part = Trace(
        trace.ranks,
        {name: column[inside] for name, column in trace.spans.items()},
        {name: column[known] for name, column in messages.items()},
        trace.labels,
    )
    return part, (a, b)


def _shares(trace: Trace, total: float) -> np.ndarray:
    """Return how each rank's time is divided, in 255ths of a column: (ranks, columns, kinds) uint8, flat."""
    kinds = len(KINDS)
    columns = max(20, min(1200, CELLS // (trace.ranks * kinds)))
    scale = columns / max(total, 1e-300)
    a = np.clip(trace.spans["start"] * scale, 0, columns)
    b = np.clip(trace.spans["end"] * scale, 0, columns)
    first, last = np.minimum(a.astype(int), columns - 1), np.minimum(b.astype(int), columns - 1)
    row = (trace.spans["rank"].astype(int) * kinds + trace.spans["kind"]) * (columns + 1)
    size = trace.ranks * kinds * (columns + 1)

    def add(column: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.bincount(row + column, weight, size)

    inside = first == last
    cover = add(first, np.where(inside, b - a, first + 1 - a)) + add(last, np.where(inside, 0, b - last))
    whole = add(first + 1, np.where(inside, 0.0, 1.0)) - add(last, np.where(inside, 0.0, 1.0))
    cover = cover.reshape(trace.ranks, kinds, columns + 1) + whole.reshape(trace.ranks, kinds, columns + 1).cumsum(2)
    return np.round(255 * np.clip(cover[:, :, :columns], 0, 1)).astype(np.uint8).transpose(0, 2, 1).ravel()

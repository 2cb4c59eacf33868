"""The communication timeline of a run: who did what when, and who sent what to whom.

A short run is sent as it is. Of a long one the browser gets how each rank's time is divided, column by column, and
the single spans of one window; when the reader zooms in elsewhere it asks for that window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.runs.causes import Causes, causes
from experiments.runs.record import Run
from experiments.viewer import palette, waits
from experiments.viewer.canvases.topology import Machines, machines
from experiments.viewer.column_codec import pack, pack_messages, pack_timeline
from experiments.viewer.lanes import lane_names, slowed_lanes, troubles
from experiments.viewer.saved import saved
from experiments.viewer.story import Chip, Flag, Window, aftermath, ended, story
from experiments.wording import units
from tracing import COMMUNICATE, COMPUTE, KINDS, Trace, sort_rows

SPANS, MESSAGES = 50_000, 20_000  # that are sent at once
CELLS = 2_000_000  # of the table of shares
WAITED = COMMUNICATE  # the first of KINDS that is no work: what is done, and what is waited for


class Unfolded(NamedTuple):
    """A wait that is explained when a timeline opens: of this rank, at this moment (s), walked back so many times."""

    rank: int
    at: float
    walked: int = 0


class View(NamedTuple):
    """What a page opens with: a window (s) of its timeline, by default that of the story, a wait that is explained,
    the part of the curves' axis, in its units, that is zoomed into, and whether the critical path is outlined.
    """

    window: Window | None = None
    wait: Unfolded | None = None
    zoom: Window | None = None
    critical: bool = False


def frame(
    run: Run,
    name: str,
    window: Window | None = None,
    most: int | None = None,
    play: bool = False,
    view: View | None = None,
    together: str = "",
    until: float = 0.0,
) -> bytes:
    """Return all that the browser needs; `name` identifies the run, `window` (s) is where single spans are wanted.

    At most `most` single spans are in it, by default SPANS. It opens with `view`. Those that are shown `together`, by
    any name, have one window, on an axis that reaches `until`, s, which opens whole.
    """
    view = view or View()
    names, after = lane_names(run), aftermath(run, lane_names(run))
    found = story(run, names)
    return framed(
        after, names, describe(run), name, window or view.window, clickable=True, play=play,
        opening=view.window or ((0.0, until) if together else found.opening), wait=view.wait, critical=view.critical,
        slowed=slowed_lanes(run), notes=troubles(run), ended=ended(run),
        flags=found.flags, chips=found.chips, clock=True, end=run.trace.seconds(),
        together=together, until=until, saved=saved(run.experiment, "timeline"), machines=machines(run), most=most,
        known=run.causes if after is run.trace else None, told=waits.totals(run),
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
    machines: Machines | None = None,
    most: int | None = None,
    known: Causes | None = None,
    told: str | None = None,
    wait: Unfolded | None = None,
    critical: bool = False,
    slowed: Mapping[int, float] | None = None,
    notes: Sequence[str] = (),
    ended: Sequence[float | None] = (),
    together: str = "",
) -> bytes:
    """Return the same for any trace, with names for its lanes that can be clicked or not.

    Two timelines share an axis that reaches `until`, s, at least. `opening` is the window (s) at first, by default the
    first steps; `flags` say what happened when, `chips` are windows to go to. It begins to `play` at once unless the
    reader prefers less motion. With `clock` its cursor is the time of the page's clock. What goes on after the `end` of
    the run, s, goes on for ever. `saved` is what the picture is called as a file. Beside it stand the `machines`, if
    given. `known` are the causes of its waits, if they have been found before, and `told` says who caused most of them;
    the `wait` is explained at once, and the `critical` path is outlined. `slowed` is how many times longer a lane's
    computation takes because its experiment asks for that; `notes` say in short what was done to a lane, and
    `ended` from when on, s, it is done. Those that are shown `together` have one window.
    """
    columns, total, most = {}, trace.seconds(), most or SPANS
    known = known or causes(trace)
    told = waits.told(trace, known, lanes) if told is None else told
    trace, kinds = _by_op(waits.explained(trace, known))
    part, exact = trace, (0.0, total)
    if len(trace.spans["start"]) > most:
        part, exact = _within(trace, window or opening, total, most)
        columns["shares"] = _shares(trace, total, len(kinds))
    columns |= machines.columns if machines else {}
    columns["timeline"] = np.frombuffer(pack_timeline(part, most), np.uint8)
    columns["messages"] = np.frombuffer(pack_messages(part, min(most, MESSAGES)), np.uint8)
    if len(part.spans["start"]) <= most:
        columns["why"] = np.frombuffer(waits.packed(part), np.uint8)
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
        "notes": notes,
        "colours": colours,
        "kinds": list(kinds),
        "work": len(kinds) - len(KINDS) + WAITED,
        "look": {kind: look._asdict() for kind, look in kinds.items()},
        "told": told,
        "why": wait,
        "critical": critical,
        "slowed": {str(lane): factor for lane, factor in (slowed or {}).items()},
        "description": description,
        "clickable": clickable,
        "machines": machines and machines.header,
        "saved": saved,
        **({"together": together} if together else {}),
        **({"ended": ended} if ended else {}),
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
        2 * max(one.ranks, other.ranks), sort_rows(spans, "start", "rank"), sort_rows(messages, "sent", "src"), labels
    )


def describe(run: Run) -> str:
    """Return the timeline in a sentence or two, for readers who do not see it."""
    ranks = units.counted(run.trace.ranks, "rank")
    return f"Timeline of {ranks} over {units.seconds(run.trace.seconds())}. {shares(run)}".rstrip()


def shares(run: Run) -> str:
    """Return where the workers' time goes, in a sentence; of a run without any, nothing."""
    busy = run.trace.busy()[run.experiment.servers :].sum(axis=0)
    parts = [f"{units.percent(value / busy.sum())} {kind}" for kind, value in zip(KINDS, busy, strict=True) if value]
    return f"Of the workers' time {', '.join(parts)}." if parts else ""


def _within(trace: Trace, window: Window | None, total: float, most: int) -> tuple[Trace, Window]:
    """Return the trace in and around the window, as far as `most` spans reach, and from when to when that is."""
    start, end = trace.spans["start"], trace.spans["end"]
    if window is None:
        a, b = 0.0, float(start[most])  # spans are sorted by start
    else:
        wide = window[1] - window[0]
        for a, b in ((window[0] - wide, window[1] + wide), window):
            a, b = max(a, 0.0), min(b, total)
            if np.count_nonzero((start < b) & (end > a)) <= most:
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


def _by_op(trace: Trace) -> tuple[Trace, dict[str, palette.AreaStyle]]:
    """Return the trace with forward and backward passes as kinds of their own before KINDS, and the look of each kind.

    They are told by their labels, a letter and a number: "F3".
    """
    ops = [re.fullmatch(r"([A-Z])\d+", label) for label in trace.labels]
    letters = [op[1] if op and op[1] in palette.OPS else "" for op in ops]
    seen = [letter for letter in palette.OPS if letter in letters]
    number = np.array([seen.index(letter) if letter else -1 for letter in letters] or [-1])[trace.spans["label"]]
    works = (trace.spans["kind"] == COMPUTE) & (number >= 0)
    kind = np.where(works, number, trace.spans["kind"] + len(seen)).astype(np.int8)
    doing = {"other work": palette.OTHER} | dict([*palette.DOING.items()][1:]) if seen else palette.DOING
    looks = dict(palette.OPS[letter] for letter in seen) | doing
    return Trace(trace.ranks, {**trace.spans, "kind": kind}, trace.messages, trace.labels), looks


def _shares(trace: Trace, total: float, kinds: int) -> np.ndarray:
    """Return how each rank's time is divided, in 255ths of a column: (ranks, columns, kinds) uint8, flat."""
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

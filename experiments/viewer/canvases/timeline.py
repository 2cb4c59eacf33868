"""The communication timeline of a run: what each rank did when, and who sent what to whom.

A short run is sent to the browser in full. For a long run, the browser gets each rank's share of time per column, plus
the individual spans of one window; it requests another window when the reader zooms in there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from cluster.waiting.causes import Causes, causes
from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.viewer import doing, palette, waits
from experiments.viewer.canvases.learned import Learned, learning
from experiments.viewer.canvases.recurrence import Touch, touch
from experiments.viewer.canvases.topology import Machines, machines
from experiments.viewer.column_codec import pack, pack_messages, pack_timeline
from experiments.viewer.headline import headline
from experiments.viewer.lanes import lane_names, slowed_lanes, troubles
from experiments.viewer.saved import labels_of_one
from experiments.viewer.story import Chip, Flag, Window, aftermath, end_times, story
from experiments.wording import units
from experiments.wording.rank_names import common_role, training_role
from tracing import COMMUNICATE, COMPUTE, IDLE, KINDS, Trace, sort_rows

SPANS, MESSAGES = 50_000, 20_000  # most spans that are sent at once
CELLS = 2_000_000  # columns of the table of shares
WAITED = COMMUNICATE  # the first of KINDS that is not work


class Unfolded(NamedTuple):
    """The wait that is explained when a timeline opens: the wait of `rank` at time `at` (s), or the cause that is
    `walked` steps back from it.
    """

    rank: int
    at: float
    walked: int = 0


class View(NamedTuple):
    """The state in which a page opens: the timeline's window in s (default: the story's), the wait that is explained,
    the zoom of the curves in units of their axis, and whether the critical path is outlined.
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
    touchable: bool = False,
) -> bytes:
    """Return the timeline of `run`, packed as a frame for the timeline canvas. `name` identifies the run; individual
    spans are included in `window` (s).

    At most `most` individual spans are included (default: SPANS). The timeline opens with `view`. Timelines with the
    same name `together` zoom together, on an axis that reaches `until`, s, and open at full length. If it is
    `touchable`, its reader can inject faults in it, and the page has to make the resulting run.
    """
    view = view or View()
    names, after = lane_names(run), aftermath(run, lane_names(run))
    found = story(run, names)
    return trace_frame(
        after, names, describe(run), name, window or view.window, clickable=True, play=play,
        opening=view.window or ((0.0, until) if together else found.opening), wait=view.wait, critical=view.critical,
        slowed=slowed_lanes(run), notes=troubles(run), ended=end_times(run),
        flags=found.flags, chips=found.chips, clock=True, end=run.trace.seconds(),
        together=together, until=until, saved=labels_of_one(run.experiment, "timeline"), machines=machines(run),
        most=most, known=run.causes if after is run.trace else None, told=waits.totals(run),
        headline=headline(run), learned=None if together else learning(run),
        touches=partial(touch, run) if touchable else None,
    )  # fmt: skip


def trace_frame(
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
    headline: str = "",
    learned: Learned | None = None,
    touches: Callable[[Trace, int, float], Touch] | None = None,
) -> bytes:
    """Return any trace packed as a frame for the timeline canvas. `lanes` are the names of its lanes; `clickable` makes
    them buttons.

    `until` (s) is the minimum end of the time axis, so that two timelines can share it. `opening` is the initial window
    (s; default: the first steps); `flags` mark events, `chips` are links to windows. With `play` it starts to play,
    unless the reader prefers less motion; with `clock` its cursor follows the page's clock. A span that lasts beyond
    `end` (s, the end of the run) is drawn as endless. `saved` has the picture's name and heading as a file. `machines`,
    if given, are drawn next to it. `known` are the causes of its waits, if already computed; `told` is the sentence on
    who caused most of the waiting (default: computed from `known`). `wait` is the wait whose explanation is open at
    first; `critical` outlines the critical path. `slowed` has the factor by which the experiment slows a lane down;
    `notes` are the lanes' fault labels; `ended` is when a lane ends, s. Timelines with the same `together` zoom
    together. `headline` is a sentence above the lanes; `learned` is drawn below them. `touches(spans, ops, since)`
    returns what lets its reader inject faults: see `recurrence.touch`.
    """
    columns, total, most = {}, trace.seconds(), most or SPANS
    known = known or causes(trace)
    told = waits.totals_of(trace, known, lanes) if told is None else told
    trace, kinds = _as_drawn(waits.add_causes(trace, known))
    part, exact = trace, (0.0, total)
    if len(trace.spans["start"]) > most:
        part, exact = _within(trace, window or opening, total, most)
        columns["shares"] = _shares(trace, total, len(kinds))
    columns |= machines.columns if machines else {}
    columns |= learned.columns if learned else {}
    columns["timeline"] = np.frombuffer(pack_timeline(part, most), np.uint8)
    columns["messages"] = np.frombuffer(pack_messages(part, min(most, MESSAGES)), np.uint8)
    if len(part.spans["start"]) <= most:
        columns["why"] = np.frombuffer(waits.pack_causes(part), np.uint8)
    touched = touches(part, len(kinds) - len(KINDS), exact[0]) if touches else None
    if touched and touched.recurrence:
        columns["recurrence"] = np.frombuffer(touched.recurrence, np.uint8)
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
        **({"headline": headline} if headline else {}),
        **({"learned": learned.header} if learned else {}),
        **({"together": together} if together else {}),
        **({"ended": ended} if ended else {}),
        **({"trouble": touched.header} if touched else {}),
    }
    return pack(header, columns)


def beside(one: Trace, other: Trace) -> Trace:
    """Return both traces as one: rank r of the first trace is lane 2r, and rank r of the second is the lane below."""
    return _joined((one, other), 2 * max(one.ranks, other.ranks), lambda number, ranks: 2 * ranks + number)


def stack_traces(traces: Sequence[Trace]) -> Trace:
    """Return all traces as one: the lanes of each trace are below those of the previous one."""
    below = np.cumsum([0, *(trace.ranks for trace in traces)])
    return _joined(traces, int(below[-1]), lambda number, ranks: ranks + below[number])


def _joined(traces: Sequence[Trace], lanes: int, lane: Callable[[int, np.ndarray], np.ndarray]) -> Trace:
    """Return all traces as one with this many lanes; lane(number, ranks) gives the lanes of a trace's ranks."""
    labels = tuple(dict.fromkeys(label for trace in traces for label in trace.labels))
    sides = []
    for number, trace in enumerate(traces):
        place = np.array([labels.index(label) for label in trace.labels] or [0], np.int32)
        spans, messages = trace.spans, trace.messages
        ends = {end: lane(number, messages[end]) for end in ("src", "dst")}
        spans = {**spans, "rank": lane(number, spans["rank"]), "label": place[spans["label"]]}
        sides.append((spans, {**messages, **ends}))
    spans, messages = (
        {name: np.concatenate([side[table][name] for side in sides]) for name in sides[0][table]} for table in (0, 1)
    )
    return Trace(lanes, sort_rows(spans, "start", "rank"), sort_rows(messages, "sent", "src"), labels)


def describe(run: Run | ScriptRun) -> str:
    """Return one or two sentences that describe the timeline, for screen readers."""
    ranks = units.count_with_noun(run.trace.ranks, common_role(lane_names(run)))
    return f"Timeline of {ranks} over {units.seconds(run.trace.seconds())}. {shares(run)}".rstrip()


def shares(run: Run | ScriptRun) -> str:
    """Return a sentence on how the ranks other than servers spent their time, or "" if they spent none."""
    busy = {kind: float(seconds[run.experiment.servers :].sum()) for kind, seconds in doing.busy(run.trace).items()}
    if isinstance(run, ScriptRun):
        busy[KINDS[IDLE]] = float(run.summary.idle.sum())  # the end included
    whole = sum(busy.values())
    parts = [f"{units.percent(value / whole)} {kind}" for kind, value in busy.items() if value]
    role = training_role(run.experiment, run.trace.ranks)
    return f"How the {role}s spend their time: {', '.join(parts)}." if parts else ""


def _within(trace: Trace, window: Window | None, total: float, most: int) -> tuple[Trace, Window]:
    """Return the part of a trace that is sent span by span, and its start and end in seconds.

    The part is the window, with as much again on both sides if that has at most `most` spans; without a window, the
    first `most` spans.
    """
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


def _as_drawn(trace: Trace) -> tuple[Trace, dict[str, palette.AreaStyle]]:
    """Return the trace with separate kinds for forward passes, backward passes and compression, placed before KINDS,
    and the style of each kind.

    Passes are recognised by their labels, a letter and a number: "F3".
    """
    ops = [re.fullmatch(r"([A-Z])\d+", label) for label in trace.labels]
    letters = [op[1] if op and op[1] in palette.OPS else "" for op in ops]
    seen = [letter for letter in palette.OPS if letter in letters]
    number = np.array([seen.index(letter) if letter else -1 for letter in letters] or [-1])[trace.spans["label"]]
    works, packs = (trace.spans["kind"] == COMPUTE) & (number >= 0), doing.is_compressing(trace)
    own = dict(palette.OPS[letter] for letter in seen)
    own |= {doing.COMPRESS: palette.DRAWN[doing.COMPRESS]} if packs.any() else {}
    kind = np.select([works, packs], [number, len(seen)], trace.spans["kind"] + len(own)).astype(np.int8)
    others = {"other work": palette.OTHER} | dict([*palette.DOING.items()][1:]) if seen else palette.DOING
    return Trace(trace.ranks, {**trace.spans, "kind": kind}, trace.messages, trace.labels), own | others


def _shares(trace: Trace, total: float, kinds: int) -> np.ndarray:
    """Return the share of each column's time that each rank spends on each kind: (ranks, columns, kinds), flattened.

    Shares are uint8, where 255 is the whole column.
    """
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

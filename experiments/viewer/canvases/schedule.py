"""A schedule on the timeline's canvas: one lane per rank, one bar per op, and each idle slot with its reason."""

import numpy as np

from experiments.study.schedules import REASONS, Study
from experiments.viewer import palette, waits
from experiments.viewer.column_codec import pack
from experiments.wording import units

IDLE = "idle"
READABLE = 200  # most ops per lane that are shown at once
DRAWN = 60_000  # spans; larger schedules leave idle slots blank
SHADES = len(palette.SHADES)
KINDS = tuple(palette.OPS)


def frame(study: Study, until: float | None = None, together: str = "") -> bytes:
    """Return the schedule of `study`, packed as a frame for the timeline canvas. The axis reaches at least `until`, so
    that two schedules can share it.

    Schedules with the same name `together` follow the page's clock and zoom together.
    """
    seen = np.flatnonzero((study.ops["end"] > study.ops["start"]) | (study.ops["kind"] != KINDS.index("U")))
    ops, idle = {name: column[seen] for name, column in study.ops.items()}, study.idle
    if len(ops["start"]) + len(idle["start"]) > DRAWN:
        idle = {name: column[:0] for name, column in idle.items()}
    piece, (part, parts) = _pieces(ops), _together(ops["joined"])
    looks = ops["kind"].astype(int) * SHADES + piece
    known = np.unique(looks)
    spans = {
        "start": np.concatenate([ops["start"], idle["start"]]),
        "duration": np.concatenate([ops["end"] - ops["start"], idle["end"] - idle["start"]]),
        "lane": np.concatenate([ops["rank"], idle["rank"]]),
        "kind": np.concatenate([np.searchsorted(known, looks), np.full(len(idle["start"]), len(known))]),
        "marked": np.concatenate([ops["critical"], np.zeros(len(idle["start"]), bool)]),
        "part": np.concatenate([part, np.zeros(len(idle["start"]), int)]),
        "parts": np.concatenate([parts, np.ones(len(idle["start"]), int)]),
    }
    labels = [study.op(n) for n in seen.tolist()] + [study.why(n) for n in range(len(idle["start"]))]
    order = np.lexsort([spans["start"], spans["lane"]])
    columns = {
        "start": spans["start"][order].astype("f4"),
        "duration": spans["duration"][order].astype("f4"),
        "lane": spans["lane"][order].astype("u2"),
        "kind": spans["kind"][order].astype("u1"),
        "step": np.full(len(order), -1, "i4"),
        "label": np.arange(len(order), dtype="u4"),
        "marked": spans["marked"][order].astype("u1"),
        "part": spans["part"][order].astype("u1"),
        "parts": spans["parts"][order].astype("u1"),
    }
    place = np.argsort(order)  # index of each op and idle slot in this order
    kinds = {_spoken(*divmod(int(look), SHADES)): palette.op(KINDS[look // SHADES], look % SHADES) for look in known}
    kinds[IDLE] = palette.IDLE
    s = study.summary
    header = {
        "run": study.plan.key(),
        "clock": bool(together),
        "together": together,
        "seconds": max(until or 0.0, s["makespan"]),
        "end": s["makespan"],
        "unit": "",
        "spans": len(order),
        "exact": (0.0, s["makespan"]),
        "lanes": [f"rank {rank}" for rank in range(s["ranks"])],
        "kinds": list(kinds),
        "work": len(kinds) - 1,
        "look": {name: look._asdict() for name, look in kinds.items()},
        "whole": "schedule",
        "readable": READABLE,
        "brief": True,
        "description": describe(study),
        "saved": _saved(study),
    }
    inner = pack({"labels": [labels[n] for n in order]}, columns)
    none = pack({}, {name: np.zeros(0, kind) for name, kind in _MESSAGES.items()})
    packed = {"timeline": inner, "messages": none, "why": _causes(study, seen, idle, place)}
    return pack(header, {name: np.frombuffer(part, "u1") for name, part in packed.items()})


WORDS = {"network": "for the link from {whom}", "then": ", and then {wait} for the link from there"}
"""The words for a link, because a schedule has links with a latency rather than a network."""


def _causes(study: Study, seen: np.ndarray, idle: dict[str, np.ndarray], place: np.ndarray) -> bytes:
    """Return the packed causes of idle slots: a rank waits for the op whose result its next op needs, or for that
    result to arrive.
    """
    ops, row = study.ops, np.full(len(study.ops["start"]), -1)
    row[seen] = place[: len(seen)]
    slots = np.flatnonzero((idle["need"] >= 0) & (row[idle["need"]] >= 0))
    need, none = idle["need"][slots], np.zeros(len(slots), int)
    link = idle["reason"][slots] == REASONS.index("link")
    cells = {
        "by": ops["rank"][need],
        "culprit": ops["rank"][need],
        "how": np.where(link, waits.HOW.index("network"), waits.AT_WORK),
        "caused": (idle["end"] - idle["start"])[slots],
        "back": idle["end"][slots] - (ops["start"][need] + ops["end"][need]) / 2,
        "factor": none,
        "without": none,
        "what": row[need],
        "src": none - 1,
        "bytes": none,
    }
    return waits.message(place[len(seen) + slots], cells, words=WORDS)


def describe(study: Study) -> str:
    s = study.summary
    return (
        f"{study.plan.title} on {s['ranks']} ranks: {units.count(s['ops'])} ops take "
        f"{units.number(s['makespan'], 5)}, and {units.percent(s['bubble_of_total'])} of the time is idle."
    )


def _saved(study: Study) -> dict:
    plan, size = study.plan, f"{study.summary['ranks']} ranks, {study.chunks} micro-batches"
    idle = units.percent(study.summary["bubble_of_total"])
    return {
        "file": f"{plan.schedule} {size}, schedule",
        "heading": f"{plan.title} · {size.replace(', ', ' · ')} · {idle} idle",
    }


def _pieces(ops: dict[str, np.ndarray]) -> np.ndarray:
    """Return the shade of each op: 0 on its rank's first stage, 1 on the second, and so on."""
    held = np.unique(np.stack([ops["rank"], ops["stage"]]), axis=1)  # sorted by rank, then by stage
    first = np.searchsorted(held[0], np.arange(held[0].max() + 1))
    width = int(held[1].max()) + 1
    row = np.searchsorted(
        held[0].astype(np.int64) * width + held[1], ops["rank"].astype(np.int64) * width + ops["stage"]
    )
    return (row - first[ops["rank"]]) % SHADES


def _together(joined: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (part, number of parts) of the lane's height for each op: ops done together share it."""
    group = np.concatenate([[0], np.cumsum(~joined[:-1])]) if len(joined) else np.zeros(0, int)
    parts = np.bincount(group)
    return np.arange(len(group)) - np.concatenate([[0], np.cumsum(parts)[:-1]])[group], parts[group]


def _spoken(kind: int, shade: int) -> str:
    """Return the name of a kind of op on the stage with this shade."""
    name = palette.OPS[KINDS[kind]][0]
    return name if shade == 0 else f"{name}, {_ORDER[shade]} stage"


_ORDER = ("first", "second", "third", "fourth")
_MESSAGES = {"src": "u1", "dst": "u1", "bytes": "f4", "sent": "f4", "arrived": "f4"}

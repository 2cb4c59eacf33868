"""The communication timeline of a run: who did what when, and who sent what to whom."""

from __future__ import annotations

import numpy as np

from app import palette, units
from app.charts import lane_names
from app.components import canvas
from cluster.trace import KINDS
from experiments.codec import pack, pack_messages, pack_timeline
from experiments.result import Run

SPANS, MESSAGES = 50_000, 20_000

_mount = canvas("timeline")


def frame(run: Run, name: str) -> bytes:
    """All that the browser needs; `name` tells runs apart, so that a window into one is kept over reruns."""
    pieces = {"timeline": pack_timeline(run.trace, SPANS), "messages": pack_messages(run.trace, MESSAGES)}
    header = {
        "run": name,
        "lanes": lane_names(run),
        "kinds": list(KINDS),
        "look": {kind: look._asdict() for kind, look in palette.DOING.items()},
        "description": describe(run),
    }
    return pack(header, {key: np.frombuffer(piece, np.uint8) for key, piece in pieces.items()})


def describe(run: Run) -> str:
    """The timeline in a sentence, for readers who do not see it."""
    busy = run.trace.busy().sum(axis=0)
    parts = [f"{units.percent(value / busy.sum())} {kind}" for kind, value in zip(KINDS, busy, strict=True) if value]
    return f"Timeline of {run.trace.ranks} ranks over {units.seconds(run.trace.seconds())}: {', '.join(parts)}."


def timeline(frame: bytes, key: str = "timeline"):
    """Draw it."""
    return _mount(data=frame, key=key)

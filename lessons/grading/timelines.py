"""The timelines of a report, as JSON values. They show when each rank did what, in the solution's run and in the
textbook's run.

A timeline is {"ranks", "labels", "spans", "messages"}, the last two tables of `tracing.Trace` by column; times have six
significant digits. Of a long run only the beginning is kept: it shows the pattern.
"""

from typing import Any

import numpy as np

from tracing import Trace

MOST = 1200  # most spans, and most messages

Timeline = dict[str, Any]


def plain(trace: Trace) -> Timeline:
    """Return the beginning of a trace, with at most MOST spans and MOST messages."""
    starts = trace.spans["start"]
    until = float(np.partition(starts, MOST)[MOST]) if len(starts) > MOST else np.inf
    sent = np.sort(trace.messages["sent"])
    until = min(until, float(sent[MOST]) if len(sent) > MOST else np.inf)
    spans, messages = (
        {name: _values(column[table[when] < until]) for name, column in table.items()}
        for table, when in ((trace.spans, "start"), (trace.messages, "sent"))
    )
    return {"ranks": trace.ranks, "labels": list(trace.labels), "spans": spans, "messages": messages}


def trace(timeline: Timeline) -> Trace:
    tables = ({name: np.array(column) for name, column in timeline[table].items()} for table in ("spans", "messages"))
    return Trace(timeline["ranks"], *tables, tuple(timeline["labels"]))


def _values(column: np.ndarray) -> list:
    return [float(f"{value:.6g}") for value in column] if column.dtype.kind == "f" else column.tolist()

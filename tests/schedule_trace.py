"""A schedule as the trace that a run of it would record: ops, idle slots as waits, and messages."""

from __future__ import annotations

import numpy as np

from experiments.study.schedules import REASONS, Study
from tracing import COMMUNICATE, COMPUTE, MESSAGES, SPANS, UPDATE, WAIT, Trace, number_words, sort_rows


def traced(study: Study) -> Trace:
    """Return the trace of `study`, in its unit of time. A rank has no span once it has nothing left to do."""
    ops, idle = study.ops, study.idle
    slots = np.flatnonzero(idle["reason"] != REASONS.index("over"))
    link = idle["reason"][slots] == REASONS.index("link")
    need, op = idle["need"][slots], idle["op"][slots]
    labels = [study.op(row) for row in range(len(ops["start"]))] + ["receive"] * len(slots)
    label, names = number_words(np.array(labels, object))
    spans = {
        "rank": np.concatenate([ops["rank"], idle["rank"][slots]]),
        "kind": np.concatenate([np.where(ops["kind"] == 5, UPDATE, COMPUTE), np.where(link, COMMUNICATE, WAIT)]),
        "start": np.concatenate([ops["start"], idle["start"][slots]]),
        "end": np.concatenate([ops["end"], idle["end"][slots]]),
        "step": np.full(len(labels), -1),
        "label": label,
    }
    zeros = np.zeros(len(slots), int)
    messages = (ops["rank"][need], idle["rank"][slots], zeros, zeros, ops["end"][need], ops["start"][op], zeros > 0)
    took = spans["end"] > spans["start"]
    return Trace(
        study.summary["ranks"],
        sort_rows({name: spans[name][took] for name in SPANS}, "start", "rank"),
        sort_rows(dict(zip(MESSAGES, messages, strict=True)), "sent", "src"),
        names,
    )

"""The trace of a run as events of the Chrome trace format, which ui.perfetto.dev opens: slices, and flows between them.

A slice has its step, what was received during it and from whom, and why its rank waits; a flow is named after what it
carries, and has the step in which it was sent.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cluster.waiting.causes import Causes, causes
from cluster.waiting.lanes import last
from experiments.viewer import waits
from tracing import COMPUTE, KINDS, UPDATE, Trace

US = 1e6  # in a second


def events(trace: Trace, servers: int | None, known: Causes | None = None) -> Iterator[dict[str, Any]]:
    """Yield the events: a track per rank, a slice per span, an arrow per message. Times are in us.

    The first `servers` ranks are servers and the others workers; with None, ranks have no roles.
    `known` are the causes of the trace's waits, if already computed.
    """
    roles = ["" if servers is None else "server" if rank < servers else "worker" for rank in range(trace.ranks)]
    names = [f"{role or 'rank'} {rank}" for rank, role in enumerate(roles)]
    yield {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "Lockstep"}}
    for rank, role in enumerate(roles):
        name = f"rank {rank} ({role})" if role else f"rank {rank}"
        yield {"ph": "M", "name": "thread_name", "pid": 0, "tid": rank, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": rank, "args": {"sort_index": rank}}
    part = waits.add_causes(trace, known or causes(trace))
    columns = (part.spans[name].tolist() for name in ("rank", "kind", "start", "end", "step", "label", "src", "bytes"))
    for row, (rank, kind, start, end, step, label, src, nbytes) in enumerate(zip(*columns, strict=True)):
        args = {"step": step} if step >= 0 else {}
        args |= {"bytes": nbytes, "from": names[src], "to": names[rank]} if src >= 0 else {}
        args |= {"why": told} if (told := waits.sentence(part, row, names)) else {}
        times = {"ts": start * US, "dur": (end - start) * US}
        yield {"ph": "X", "name": trace.labels[label], "cat": KINDS[kind], "pid": 0, "tid": rank, **times, "args": args}
    columns = (trace.messages[name].tolist() for name in ("src", "dst", "bytes", "sent", "arrived"))
    for number, (src, dst, nbytes, sent, arrived, name, step) in enumerate(
        zip(*columns, message_contents(trace), message_steps(trace), strict=True)
    ):
        if not np.isfinite(arrived):
            continue
        flow = {"cat": "message", "name": name, "id": number, "pid": 0}
        args = {"bytes": nbytes, "from": names[src], "to": names[dst]} | ({"step": step} if step >= 0 else {})
        yield {**flow, "ph": "s", "tid": src, "ts": sent * US, "args": args}
        yield {**flow, "ph": "f", "bp": "e", "tid": dst, "ts": arrived * US}


def message_contents(trace: Trace) -> list[str]:
    """Return a label for what each message carries.

    For a message of a collective, it is the label of that collective; for any other, the label of the work that its
    sender did last.
    """
    m, spans = trace.messages, trace.spans
    order = np.lexsort([spans["start"], spans["rank"]])
    works = order[np.isin(spans["kind"][order], (COMPUTE, UPDATE))]
    labels = np.array([*trace.labels, "message"], object)

    def label(rows: np.ndarray, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        at = last(
            trace.ranks, spans["rank"][rows], spans["start"][rows], rank, np.nan_to_num(time, nan=-np.inf) - 1e-12
        )
        found = np.append(spans["label"][rows], len(labels) - 1)[at]
        return labels[found]

    return np.where(m["collective"], label(order, m["dst"], m["arrived"]), label(works, m["src"], m["sent"])).tolist()


def message_steps(trace: Trace) -> list[int]:
    """Return the step in which each message was sent, or -1 if it was sent before its sender's first span."""
    m, spans = trace.messages, trace.spans
    order = np.lexsort([spans["start"], spans["rank"]])
    at = last(trace.ranks, spans["rank"][order], spans["start"][order], m["src"], m["sent"])
    return np.append(spans["step"][order], -1)[at].tolist()

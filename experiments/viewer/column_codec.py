"""The binary format of timelines and curves for the browser: a header that lists the contents, then plain columns.

    4 bytes          n, the length of the header, little-endian
    n bytes          JSON, padded with spaces so that the columns start at a multiple of 4
    columns          one after the other, each padded to a multiple of 4 bytes

The header lists the columns as {name: [type, offset from the end of the header, length]} with JavaScript's names of
typed arrays, so that reading needs no copy: `new Float32Array(buffer, 4 + n + offset, length)`. Times are float32
seconds: precise to a microsecond within the first ten seconds of a run, and to a millisecond within 10^4.
"""

import json
import struct
from typing import Any

import numpy as np

from tracing import KINDS, Trace

TYPES = {"u1": "Uint8", "u2": "Uint16", "u4": "Uint32", "i4": "Int32", "f4": "Float32"}


def pack(header: dict[str, Any], columns: dict[str, np.ndarray]) -> bytes:
    """Pack the values of `header` and `columns` into a message of bytes. The types of the columns must be in TYPES."""
    pieces, layout, offset = [], {}, 0
    for name, column in columns.items():
        data = np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes()
        layout[name] = [TYPES[column.dtype.str[1:]], offset, len(column)]
        pieces.append(data + b"\0" * (-len(data) % 4))
        offset += len(pieces[-1])
    text = json.dumps({**header, "columns": layout}, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + b"".join(pieces)


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return (header, columns) of a packed message."""
    (length,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + length])
    code = {word: short for short, word in TYPES.items()}
    columns = {
        name: np.frombuffer(message, "<" + code[kind], count, 4 + length + offset)
        for name, (kind, offset, count) in header.pop("columns").items()
    }
    return header, columns


def pack_timeline(trace: Trace, limit: int = 50_000) -> bytes:
    """Return the packed spans of `trace`, sorted by lane and then by start.

    Columns: start, duration (Float32, s), lane (Uint8, or Uint16 above 256 ranks), kind (Uint8), step (Int32), label
    (Uint8 or Uint16). Header: lanes, kinds, labels, seconds, and spans, the original number of spans. Above `limit`,
    spans of one lane that start close together are merged into one, of the kind that takes most of its time.
    """
    spans = {name: column.copy() for name, column in trace.spans.items()}
    total = len(spans["start"])
    if total > limit:
        spans = _thinned(spans, trace, limit)
    order = np.lexsort([spans["start"], spans["rank"]])
    start, end, lane, kind, step, label = (
        spans[name][order] for name in ("start", "end", "rank", "kind", "step", "label")
    )
    header = {
        "lanes": trace.ranks,
        "kinds": list(KINDS),
        "labels": list(trace.labels),
        "seconds": trace.seconds(),
        "spans": total,
    }
    columns = {
        "start": start.astype("f4"),
        "duration": (end - start).astype("f4"),
        "lane": lane.astype(_index(trace.ranks)),
        "kind": kind.astype("u1"),
        "step": step.astype("i4"),
        "label": label.astype(_index(len(trace.labels))),
    }
    return pack(header, columns)


def pack_messages(trace: Trace, limit: int = 20_000) -> bytes:
    """Return the messages of `trace`, packed in order of sending: src, dst, bytes (Float32), sent, arrived (Float32,
    s).

    Above `limit`, only the largest are included. For messages that never arrived, arrived is -1. Header: messages, the
    original number of messages.
    """
    messages = trace.messages
    total = len(messages["sent"])
    keep = np.arange(total)
    if total > limit:
        keep = np.sort(np.argsort(-messages["bytes"], kind="stable")[:limit])
    arrived = messages["arrived"][keep]
    ranks = _index(trace.ranks)
    columns = {
        "src": messages["src"][keep].astype(ranks),
        "dst": messages["dst"][keep].astype(ranks),
        "bytes": messages["bytes"][keep].astype("f4"),
        "sent": messages["sent"][keep].astype("f4"),
        "arrived": np.where(np.isfinite(arrived), arrived, -1).astype("f4"),
    }
    return pack({"messages": total}, columns)


def _index(count: int) -> str:
    return "u1" if count <= 256 else "u2"


def _thinned(spans: dict[str, np.ndarray], trace: Trace, limit: int) -> dict[str, np.ndarray]:
    """Return the spans, with those of a lane that start in the same cell of time merged; there are at most `limit`
    (lane, cell) pairs.
    """
    cells = max(1, limit // trace.ranks)
    width = max(float(spans["start"].max()), 1e-12) / cells
    cell = np.minimum((spans["start"] / width).astype("i8"), cells - 1) + spans["rank"].astype("i8") * cells
    order = np.lexsort([spans["start"], cell])
    spans = {name: column[order] for name, column in spans.items()}
    firsts = np.flatnonzero(np.diff(cell[order], prepend=-1))  # where a cell's spans begin
    group = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(order)))
    took = np.zeros((len(firsts), int(spans["kind"].max()) + 1))
    np.add.at(took, (group, spans["kind"]), spans["end"] - spans["start"])
    ofmost = np.where(spans["kind"] == took.argmax(1)[group], spans["end"] - spans["start"], -1.0)
    longest = np.lexsort([-ofmost, group])[firsts]  # per cell, the longest span of the leading kind names it
    merged = {name: spans[name][longest] for name in ("rank", "kind", "step", "label")}
    return {**merged, "start": spans["start"][firsts], "end": np.maximum.reduceat(spans["end"], firsts)}

"""The compiled event loop for ranks inside a collective whose operations are known (`collective_program.py`).

It does what `SimulatedComm.send`, `Delivery.happen`, `Mailbox.get` and `Rank.receive` do, in the same order and with
the same rounding, but on rows of numbers: a rank is a position in its list of operations instead of a strand, and a
message has a length but no content. An event is either a delivery, given by the number of its message, or -1 - rank for
a rank that let earlier events happen before it used a shared port (`EventQueue.sync`) and now continues.
"""

import math

import numpy as np

from kernels.compiled import on_disk
from kernels.compiler import njit
from tracing import COMMUNICATE, WAIT

SEND, RECEIVE, CHARGE = range(3)  # kinds of operations; `which` is the number of a message, or of a price

OPERATION = np.dtype([("does", "i1"), ("which", "i4")])
MESSAGE = np.dtype([("dst", "i4"), ("route", "i4")])
ROUTE = np.dtype([("out", "i4"), ("into", "i4"), ("latency", "f8"), ("beta", "f8"), ("overhead", "f8")])
RANK = np.dtype(
    [
        *(("next", "i8"), ("end", "i8")),  # its next operation, and the one after its last
        ("first", "i8"),  # where the messages of its collective begin; operations number them from there
        ("awaited", "i8"),  # the message that it waits for, -1 if none
        *(("now", "f8"), ("recorded", "f8")),  # s: its time, and the time up to which its spans are recorded
        *(("first_span", "i8"), ("spans", "i8")),  # where its spans begin, and where the next one is written
        *(("shares", "?"), ("synced", "?")),  # whether others use its ports; whether all earlier events have happened
    ]
)
SPAN = np.dtype([("kind", "i1"), ("start", "f8"), ("end", "f8")])
EVENT = np.dtype([("time", "f8"), ("serial", "i8"), ("which", "i8")])


@on_disk()
def advance(rank, limit, serial, most, ranks, operations, messages, rows, routes, prices, ports, spans, heap, depth):
    """Run `rank` until it waits (-1: no rank), then process events: at most `most`, and only up to `limit`.

    Return early when a rank has done all of its operations, since what it does next is not known here.

    limit: (time, serial) of the first event in the event queue. ranks, operations, messages, rows, routes and spans:
    see the types above; rows are the messages of the trace. prices (P, k): the seconds of each price on each rank.
    ports: when each becomes free. heap: the events, `depth` of them.

    Return (the rank that has finished or -1, the next serial, the depth, the number of events processed, the time of
    the last one, the time and the serial of the next one).
    """
    happened, time = 0, 0.0
    while True:
        while rank >= 0:
            r = ranks[rank]
            if r.next == r.end:
                return rank, serial, depth, happened, time, *_first(heap, depth)
            operation = operations[r.next]
            which = operation.which if operation.does == CHARGE else r.first + operation.which
            if operation.does == CHARGE:
                r.now += prices[rank, which]
            elif operation.does == SEND:
                route, row = routes[messages[which].route], rows[which]
                if not r.synced:
                    r.now += route.overhead
                    if r.shares and min(limit[0], _first(heap, depth)[0]) <= r.now:
                        depth = _push(heap, depth, r.now, serial, -1 - rank)
                        serial += 1
                        r.synced = True
                        break
                r.synced = False
                row.sent = r.now
                leaves = max(r.now, ports[route.out])
                ports[route.out] = leaves + row.bytes * route.beta
                depth = _push(heap, depth, leaves + route.latency, serial, which)
                serial += 1
            else:
                row = rows[which]
                if math.isnan(row.arrived):
                    r.awaited = which
                    break
                _receive(r, row.sent, row.arrived, spans)
            r.next += 1
        rank = -1
        if not depth or happened == most:
            return rank, serial, depth, happened, time, *_first(heap, depth)
        first = heap[0]
        if first.time > limit[0] or (first.time == limit[0] and first.serial > limit[1]):
            return rank, serial, depth, happened, time, *_first(heap, depth)
        time, which = first.time, first.which
        depth = _pop(heap, depth)
        happened += 1
        if which < 0:
            rank = -1 - which
            continue
        message, row = messages[which], rows[which]
        route = routes[message.route]
        row.arrived = max(time, ports[route.into]) + row.bytes * route.beta
        ports[route.into] = row.arrived
        if ranks[message.dst].awaited == which:
            ranks[message.dst].awaited = -1
            rank = message.dst


@njit
def _receive(rank, sent, arrived, spans):
    """Advance `rank` to the arrival of a message, as `Rank.receive` does inside a collective."""
    start = rank.now
    if arrived <= start:
        return
    rank.now = arrived
    if sent > start:
        _span(rank, spans, COMMUNICATE, rank.recorded, start)
        rank.recorded = min(sent, arrived)
        _span(rank, spans, WAIT, start, rank.recorded)


@njit
def _span(rank, spans, kind, start, end):
    """Record a span, or extend the last one if this one continues it."""
    if end <= start:
        return
    if rank.spans > rank.first_span:
        last = spans[rank.spans - 1]
        if last.kind == kind and last.end == start:
            last.end = end
            return
    span = spans[rank.spans]
    span.kind, span.start, span.end = kind, start, end
    rank.spans += 1


@njit
def _first(heap, depth):
    """Return (time, serial) of the earliest event, or (inf, 0) if there is none."""
    return (heap[0].time, heap[0].serial) if depth else (math.inf, 0)


@njit
def _before(a, b):
    return a.time < b.time or (a.time == b.time and a.serial < b.serial)


@njit
def _push(heap, depth, time, serial, which):
    """Put an event into the heap and return its new depth."""
    place = depth
    while place:
        parent = heap[(place - 1) // 2]
        if parent.time <= time:  # events at the same time are pushed in the order of their serials
            break
        child = heap[place]
        child.time, child.serial, child.which = parent.time, parent.serial, parent.which
        place = (place - 1) // 2
    event = heap[place]
    event.time, event.serial, event.which = time, serial, which
    return depth + 1


@njit
def _pop(heap, depth):
    """Remove the first event from the heap and return its new depth."""
    depth -= 1
    last = heap[depth]
    place, child = 0, 1
    while child < depth:
        if child + 1 < depth and _before(heap[child + 1], heap[child]):
            child += 1
        if not _before(heap[child], last):
            break
        event, below = heap[place], heap[child]
        event.time, event.serial, event.which = below.time, below.serial, below.which
        place, child = child, 2 * child + 1
    event = heap[place]
    event.time, event.serial, event.which = last.time, last.serial, last.which
    return depth

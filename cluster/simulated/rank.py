"""Ranks of the simulated cluster: actors that run the program, and the meters of their kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from cluster.comm import ClusterError, RankFailed, RankLost, describe_loss
from cluster.event_log import EventLog
from cluster.faults import Faults, Slowness
from cluster.simulated.actor import Actor
from cluster.simulated.mailbox import Mailbox
from cluster.waits import Wait
from kernels import METER
from kernels.compiled import on_disk
from kernels.meter import Prices
from tracing import COMMUNICATE, IDLE, PAUSED, UPDATE, WAIT, Rows

if TYPE_CHECKING:
    from cluster.simulated.simulation import Simulation


WINDOW = 64  # messages that a rank may have in flight before it syncs with the clock; bounds the memory of snapshots


class Crashed(BaseException):
    """Raised inside a rank at the time of its crash. Not an Exception, so that no algorithm catches it."""


class Rank(Actor):
    """One incarnation of a rank. A rank that restarts is a new Rank with the same number and the same event log."""

    __slots__ = (  # CPython 3.11 is slow to look up more than 30 attributes of an object without slots
        *("sim", "number", "event_log", "mailbox", "background", "in_flight", "window", "recorded", "result", "done"),
        *("_flops", "_half", "_bandwidth", "_overhead", "_charges", "slow", "jitter", "seed", "_slowness"),
        *("previous", "born", "pauses", "interruptible", "crash_time", "restart_time"),
        *("lost_at", "lost_step", "reported_losses", "summing", "awaited"),
    )
    sim: Simulation
    number: int
    event_log: EventLog
    mailbox: Mailbox
    restart_time: float  # s

    def __init__(self, sim: Simulation, number: int, faults: Faults, previous: Rank | None = None):
        self.previous, self.born = previous, previous.restart_time if previous else 0.0
        super().__init__(self, self.born)
        self.sim, self.number = sim, number
        device = sim.device
        self._flops, self._half = device.flops, device.rate(2)
        self._bandwidth, self._overhead = device.bandwidth, device.overhead
        self.event_log = previous.event_log if previous else EventLog(number, lambda: 0.0)
        if not previous:
            self.event_log.messages = Rows()
        self.event_log.clock = lambda: self.now
        self.recorded = 0.0  # inside a collective, the time up to which its spans are recorded
        self.mailbox = Mailbox(sim.queue, dict(previous.mailbox.lost) if previous else {})
        self.in_flight = self._charges = 0
        self.background: list[Actor] = []
        self.window = WINDOW if sim.network.per_node == 1 else 0  # a shared port needs messages in the order of time
        self.result, self.done = None, False

        self.crash_time = faults.crash.get(number, math.inf)
        self.restart_time = faults.back.get(number, math.inf)
        self.lost_at = math.inf
        self.lost_step = -1
        self.reported_losses: set[tuple] = set()  # (group, tag, src) of lost ranks that recv_any has returned
        self.awaited: int | Literal["the others"] = "the others"  # whom it waits for outside of its mailbox
        self.summing: Any = (
            None  # what it waits for, such as a fused all-reduce: report() is called when a rank is lost
        )
        self.pauses = list(faults.pause.get(number, ()))
        self.interruptible = bool(self.pauses) or self.crash_time < math.inf
        self.slow, self.jitter, self.seed = faults.slow.get(number, 1.0), faults.jitter, faults.seed
        self._slowness = Slowness(faults, number)

    def main(self, program: Callable, comm, actor: Actor | None = None) -> None:
        """Run `program(comm)` as the body of this rank's strand or, in its background, of the strand of `actor`.

        The first error of any rank becomes the error of the run.
        """
        METER.set(actor or self)
        try:
            result = program(comm)
            if actor is None:
                self.sim.queue.sync(self)  # so that a crash before this rank's time prevents the result
                self.result, self.done = result, True
        except self.sim.strand_type.GreenletExit:
            pass
        except Crashed:
            self.sim.queue.sync(self)  # the crash event ends this strand
        except ClusterError as error:
            self.sim.fail(error)
        except Exception as error:
            step = self.event_log.step
            at = f" at step {step}" if step >= 0 else ""
            failure = RankFailed(f"rank {self.number} failed{at}: {type(error).__name__}: {error}", self.number, step)
            failure.__cause__ = error
            self.sim.fail(failure)

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Advance by the price of a kernel, and record a span unless the task has a span open."""
        start = self.now
        self.event_log.flops += flops
        work, moved = flops / (self._flops if itemsize == 4 else self._half), nbytes / self._bandwidth
        factor = self.slowness() if self.jitter else self.slow
        self.now = start + (self._overhead + (work if work > moved else moved)) * factor
        if self.interruptible:
            self.interrupt(working=True)
        if not self.event_log.busy:
            self.span(UPDATE, start, self.now, kernel)
        self._charges += 1
        if not self._charges & 127:
            self.sim.tick()

    def charge_all(self, prices: Prices) -> None:
        """Advance by the prices of several kernels, as repeated calls of `charge` would.

        If none of the kernels gets a span, a compiled loop adds up the prices.
        """
        event_log = self.event_log
        if self.interruptible or not event_log.busy:
            for row in prices.rows:
                self.charge(*row)
            return
        factor = float(self.slowness() if self.jitter else self.slow)
        device = self._flops, self._bandwidth, self._overhead
        self.now, event_log.flops = time_after(self.now, event_log.flops, *prices.columns, *device, factor)
        before, self._charges = self._charges, self._charges + len(prices.rows)
        if before >> 7 != self._charges >> 7:
            self.sim.tick()

    def slowness(self) -> float:
        """Return the factor by which this rank is slower than its device in this step."""
        return self._slowness.at(self.event_log.step)

    def interrupt(self, working: bool = False) -> None:
        """Apply the pauses that this rank's time has reached. Raise Crashed if it has reached the time of the crash.

        A pause prolongs work that it interrupts; a wait ends when both the wait and the pause are over.
        """
        while self.pauses and self.pauses[0][0] <= self.now:
            start, end = self.pauses.pop(0)
            if not working:
                start = self.now
            if end > start:
                self.event_log.spans.append((IDLE, start, end, self.event_log.step, PAUSED))
                self.now += end - start
        if self.now >= self.crash_time:
            raise Crashed

    def wait_until(self, time: float) -> None:
        """Advance to `time`, and record that this rank waited."""
        if time > self.now:
            self.span(WAIT, self.now, time, self.collective or "receive")
            self.now = time

    def receive(self, sent: float, arrived: float) -> None:
        """Advance to the arrival of a message. This rank waited until it was sent, and then communicated."""
        start = self.now
        if arrived <= start:
            return
        self.now = arrived
        if not self.collective:
            if sent > start:
                self.span(WAIT, start, sent if sent < arrived else arrived, "receive")
                if sent < arrived:
                    event_log = self.event_log
                    event_log.spans.append((COMMUNICATE, sent, arrived, event_log.step, "receive"))
                return
            self.span(COMMUNICATE, start, arrived, "receive")
        elif sent > start:  # time outside such waits is recorded with the next one, or at the end of the collective
            self.span(COMMUNICATE, self.recorded, start, self.collective)
            self.recorded = min(sent, arrived)
            self.span(WAIT, start, self.recorded, self.collective)

    def communicate(self, seconds: float) -> None:
        """Advance by the processor time of a send, and record it unless a collective has its own span."""
        self.now += seconds
        if not self.collective:
            self.span(COMMUNICATE, self.now - seconds, self.now, "overhead")
        if self.interruptible:
            self.interrupt()

    def span(self, kind: int, start: float, end: float, label: str) -> None:
        """Record a span, or extend the last one if this one continues it."""
        if end <= start:
            return
        event_log = self.event_log
        spans = event_log.spans
        if spans:
            last_kind, since, until, step, last_label = spans[-1]
            if until == start and last_kind == kind and last_label == label:
                spans[-1] = (kind, since, end, step, label)
                return
        spans.append((kind, start, end, event_log.step, label))

    def loss(self, consequence: str = "") -> RankLost:
        """Return the error that reports this lost rank and any consequence of its loss."""
        text = describe_loss(self.number, self.crash_time, self.lost_step)
        text = f"{text}; {consequence}" if consequence else text
        return RankLost(text, self.number, self.lost_step, self.crash_time)

    def pending_waits(self) -> list[Wait]:
        """Return what this rank, and the actors in its background, wait for."""
        found = [
            Wait(
                self.number,
                "any rank" if actor.source_world is None else actor.source_world,
                actor.blocked_since,
                actor.collective,
                tag,
            )
            for tag, actor in self.mailbox.waiting()
        ]
        return found or [Wait(self.number, self.awaited, self.blocked_since, self.collective)]


@on_disk(error_model="numpy")
def time_after(now, total, flops, nbytes, per_second, bandwidth, overhead, factor):
    """Add the durations of n kernels to `now` and their FLOPs to `total`, and return both sums."""
    for k in range(len(flops)):
        total += flops[k]
        now += (overhead + max(flops[k] / per_second, nbytes[k] / bandwidth)) * factor
    return now, total

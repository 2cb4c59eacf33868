"""A simulated rank: its own time, its mailbox, what disturbs it, and the meter of its kernels."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable

import numpy as np
from greenlet import GreenletExit, greenlet

from cluster.comm import ClusterError, RankFailed, RankLost
from cluster.event_log import EventLog
from cluster.faults import Faults
from kernels import METER
from tracing import IDLE, UPDATE


class Crashed(BaseException):
    """Raised inside a rank that has come to the time of its crash; no algorithm can catch it."""


class Actor:
    """A thread of control with its own time: a rank, or a collective that a rank left running beside itself."""

    def __init__(self, rank: Rank, now: float):
        self.rank, self.now = rank, now
        self.since = now  # when it began to wait
        self.doing = ""  # the collective it is in
        self.written = now  # inside a collective: up to when its spans are written
        self.greenlet: greenlet | None = None
        self.inbox: tuple | None = None  # the message it was woken with: (ready, src, x, sent)

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        """The meter of a collective running beside its rank: it takes time, but not the rank's."""
        self.now += self.rank.sim.device.seconds(flops, nbytes) * self.rank.slowness()

    def keep(self, kind: str, nbytes: int) -> None:
        """The meter of memory, which is the rank's, whoever asked for it."""
        self.rank.event_log.keep(kind, nbytes)


class Rank(Actor):
    """One rank, or one life of it: one that comes back is another Rank. `main` is the body of its greenlet."""

    def __init__(self, sim, number: int, faults: Faults, former: Rank | None = None):
        self.former, self.born = former, former.back if former else 0.0
        super().__init__(self, self.born)
        self.sim, self.number = sim, number
        device = sim.device
        self._flops, self._bandwidth, self._overhead = device.flops, device.bandwidth, device.overhead
        self.event_log = former.event_log if former else EventLog(number, lambda: 0.0)
        self.event_log.clock = lambda: self.now
        self.boxes: dict[tuple, deque] = {}  # (group, tag) -> arrived messages (ready, src, x, sent)
        self.waiting: dict[tuple, tuple] = {}  # (group, tag) -> (actor, src or None for anybody, src in the world)
        self.in_flight = self.charges = 0
        self.helpers: list[Actor] = []
        self.crowded = sim.network.per_node > 1  # others use the same port: sends must come in the order of time
        self.result, self.done = None, False

        self.crash = math.inf if former else faults.crash.get(number, math.inf)
        self.back = faults.back.get(number, math.inf)
        self.gone = math.inf  # when it was lost
        self.lost_step, self.idle_from = -1, 0.0
        self.heard: dict[int, Rank] = dict(former.heard) if former else {}  # lost ranks this one knows of
        self.told: set[tuple] = set()  # (group, tag, src) of which recv_any has said so
        self.pauses = [(max(a, self.born), b) for a, b in faults.pause.get(number, ())]
        self.watched = bool(self.pauses) or self.crash < math.inf
        self.slow = faults.slow.get(number, 1.0)
        self.jitter, self.seed = faults.jitter, faults.seed
        self._draws = np.random.default_rng([faults.seed, 0x517E, number])
        self._drawn, self._factor = -1, self.slow  # the step of the last draw, and what came out

    def main(self, program: Callable, comm, actor: Actor | None = None) -> None:
        """The body of a greenlet: this rank's program, or what another actor does for it.

        The first error of any rank is the error of the run.
        """
        METER.set(actor or self)
        try:
            result = program(comm)
            if actor is None:
                self.sim.sync(self)  # a crash before this rank's time would have prevented the result
                self.result, self.done = result, True
        except GreenletExit:
            pass
        except Crashed:
            self.sim.sync(self)  # the event that tells the others comes first, and does not come back
        except ClusterError as error:
            self.sim.fail(error)
        except Exception as error:
            step = self.event_log.step
            at = f" at step {step}" if step >= 0 else ""
            failure = RankFailed(f"rank {self.number} failed{at}: {type(error).__name__}: {error}", self.number, step)
            failure.__cause__ = error
            self.sim.fail(failure)

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        """A kernel was called: time goes on by its price, and a span is written unless the task has one open."""
        start = self.now
        work, moved = flops / self._flops, nbytes / self._bandwidth
        factor = self.slowness() if self.jitter else self.slow
        self.now = start + (self._overhead + (work if work > moved else moved)) * factor
        if self.watched:
            self.live(working=True)
        if not self.event_log.busy:
            self.span(UPDATE, start, self.now, kernel)
        self.charges += 1
        if not self.charges & 127:
            self.sim.tick()

    def slowness(self) -> float:
        """How much longer than on the bare device things take in this step."""
        if self.jitter:
            while self._drawn < self.event_log.step:
                self._drawn += 1
                self._factor = self.slow * float(self.jitter.draw(self._draws, 1)[0])
        return self._factor

    def live(self, working: bool = False) -> None:
        """Apply the pauses and the crash that this rank's time has come to.

        Work that a pause cuts in two takes that much longer; a wait just goes on until both are over.
        """
        while self.pauses and self.pauses[0][0] <= self.now:
            start, end = self.pauses.pop(0)
            if not working:
                start = self.now
            if end > start:
                self.event_log.spans.append((IDLE, start, end, self.event_log.step, "paused"))
                self.now += end - start
        if self.now >= self.crash:
            raise Crashed

    def span(self, kind: int, start: float, end: float, label: str) -> None:
        """Write down a span, or let the last one grow if this goes on with it."""
        if end <= start:
            return
        spans = self.event_log.spans
        if spans:
            last = spans[-1]
            if last[2] == start and last[0] == kind and last[4] == label:
                spans[-1] = (kind, last[1], end, last[3], label)
                return
        spans.append((kind, start, end, self.event_log.step, label))

    def lose(self) -> None:
        """The rank is lost now, wherever it is; what it has written down of later does not happen."""
        self.gone, self.lost_step, self.idle_from = self.crash, self.event_log.step, min(self.now, self.crash)
        for actor in (self, *self.helpers):
            actor.greenlet.throw(GreenletExit)
        self.event_log.spans[:] = [
            (kind, start, min(end, self.gone), step, label)
            for kind, start, end, step, label in self.event_log.spans
            if start < self.gone
        ]

    def hear_loss(self, lost: Rank) -> None:
        """Another rank's silence reaches this one: wake whoever waits for it, or for anybody."""
        self.heard[lost.number] = lost
        for key, (actor, _, world) in list(self.waiting.items()):
            if world is None or world == lost.number:
                del self.waiting[key]
                actor.inbox = None
                self.sim.resume(self.sim.now, actor)

    def loss(self, consequence: str) -> RankLost:
        """What to tell about this rank, once it is lost."""
        step = f"step {self.lost_step}" if self.lost_step >= 0 else "before its first step"
        return RankLost(
            f"rank {self.number} was lost at {self.crash:.4g} s ({step}); {consequence}", self.number, self.lost_step
        )

    def past(self) -> list[str]:
        """What became of its former life, as a sentence, if there was one."""
        return [str(self.former.loss(f"it came back at {self.born:.4g} s with nothing"))] if self.former else []

    def complaints(self) -> list[str]:
        """Who waits for whom since when, as sentences."""
        lines = []
        for (_, tag), (actor, _, world) in self.waiting.items():
            whom = "any rank" if world is None else f"rank {world}"
            what = f"in {actor.doing} for {whom}" if actor.doing else f"for a message from {whom} (tag {tag})"
            lines.append(f"rank {self.number} waits {what} since {actor.since:.6g} s")
        return lines or [f"rank {self.number} waits in {self.doing} for the others since {self.since:.6g} s"]

    def unread(self) -> list[str]:
        """Messages nobody took, as sentences."""
        counts = Counter((entry[1], tag) for (_, tag), box in self.boxes.items() for entry in box)
        return [
            f"rank {self.number} never read {n} message{'s' if n > 1 else ''} from rank {src}, tag {tag}"
            for (src, tag), n in sorted(counts.items())
        ]

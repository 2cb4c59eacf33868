"""Operations in progress as torch sees them: the Work of a collective, a send or a receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from cluster.torch.futures import Future, drain_after_backward
from cluster.torch.process import at_line
from cluster.torch.streams import current_stream
from tracing import COMMUNICATE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank
    from cluster.torch.group import Group
    from cluster.torch.handshake import Receiving, Sending
    from cluster.torch.meeting import Meeting

LOOK = 1e-6  # s that is_completed takes, so that time passes in a polling loop


class PendingWork(dist.Work):
    """An operation of `group` on the tensors `result_of`. `done` means that the rank has waited for it."""

    def __init__(self, group: Group, result: Any):
        super().__init__()
        self.group, self.result_of, self.done = group, result, False
        self._future: Future | None = None

    def end(self) -> float | None:
        """Return when the operation ends, in s; None if this is not known yet."""
        raise NotImplementedError

    def _block(self) -> None:
        raise NotImplementedError

    def block(self) -> None:
        """Block the rank until the operation is done."""
        if not self.done:
            process = self.group.process
            process.enter()
            self._block()
            process.leave()
            self.finish()

    def wait(self, timeout: Any = None) -> bool:
        self.block()
        return True

    def finish(self) -> None:
        """Mark the operation as done, and run its callbacks."""
        if not self.done:
            self.done = True
            if self._future:
                self._future.complete(self.result_of)

    def is_completed(self) -> bool:
        if not self.done:
            process = self.group.process
            process.enter()
            self._look()
            process.leave()
        return self.done

    def _look(self) -> None:
        rank, queue = self.group.process.rank, self.group.process.sim.queue
        end = self.end()
        if end is None or end > rank.now:
            rank.now += LOOK
            queue.sync(rank)
            end = self.end()
        if end is not None and end <= rank.now:
            self.finish()

    def is_success(self) -> bool:
        return self.done

    def synchronize(self) -> None:
        self.wait()

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        self.block()
        return self.result_of

    def source_rank(self) -> int:
        return -1

    _source_rank = source_rank

    def get_future(self) -> Future:
        if not self._future:
            self._future = Future(self)
            if self.done:
                self._future.complete(self.result_of)
            elif self.group.process.blocks_for_futures:
                self.block()
            else:
                self.group.process.due.append(self)
                drain_after_backward(self.group.process)
        return self._future


class CollectiveWork(PendingWork):
    """One rank's part in a collective (a `Meeting`), which it joined at time `ready`, in s."""

    def __init__(self, group: Group, result: Any, meeting: Meeting, ready: float):
        super().__init__(group, result)
        self._meeting, self._ready = meeting, ready
        self._waiter: tuple[int, Rank] | None = None
        self._owed = 1  # 0 once the processor's share of it is paid

    def end(self) -> float | None:
        ends = self._meeting.ends
        return ends[self.group.rank()] if ends else None

    def wait(self, timeout: Any = None) -> bool:
        stream, pricer = current_stream(), self.group.process.pricer
        if stream.is_side:
            stream.take([self], 0.0)  # the stream waits, not the rank
        else:
            self.block()
        if self._meeting.call.name == "barrier":
            pricer.join(self.settle())
        return True

    def settle(self) -> float:
        """Return when the collective ends, in s. Other ranks run until this is known; this rank's time stands still."""
        end = self.end()
        if end is None:
            process = self.group.process
            process.enter()
            end = self._known_end()
            process.leave()
        return end

    def _known_end(self) -> float:
        """Wait until all ranks have joined, and return when the collective ends, in s. Raise RankLost if a rank is
        lost before it joins.
        """
        meeting, process = self._meeting, self.group.process
        rank, queue, name = process.rank, process.sim.queue, meeting.call.name
        start = rank.now
        if not meeting.ends and not self._lost():
            self._waiter = self.group.rank(), rank
            meeting.waiters.append(self._waiter)
            rank.blocked_since = start
            rank.collective = f"{name} of {self.group.describe()}{at_line(process)}"
            rank.summing = self  # the simulator calls its report() when a rank is lost
            try:
                queue.wait(rank)
            finally:
                rank.summing = None
            rank.collective = ""
        end = self.end()
        if end is None:
            lost = self._lost()
            assert lost
            rank.now = max(start, queue.now)
            rank.span(WAIT, start, rank.now, name)
            raise lost.loss(f"rank {rank.number} waits for it in {name} of {self.group.describe()}{at_line(process)}")
        return end

    def _block(self) -> None:
        meeting, process = self._meeting, self.group.process
        rank, name = process.rank, meeting.call.name
        end = self._known_end()
        self._pay()
        start = rank.now
        if end > start:
            rank.now = end
            culprit, came = meeting.awaited[self.group.rank()]
            begins = min(max(came, start), end)
            rank.span(WAIT, start, begins, name)
            rank.span(COMMUNICATE, begins, end, name)
            process.record_wait(culprit, name, start, begins, self._ready)
            if rank.interruptible:
                rank.interrupt()

    def finish(self) -> None:
        if not self.done:
            self._pay()
        super().finish()

    def _pay(self) -> None:
        """Delay the rank if it computed while this collective occupied its processor."""
        rank, busy, self._owed = self.group.process.rank, self._owed * self._meeting.busy, 0
        if busy and rank.now > self._meeting.begins:
            start, rank.now = rank.now, rank.now + busy
            rank.span(COMMUNICATE, start, rank.now, self._meeting.call.name)

    def _lost(self) -> Rank | None:
        """Return a rank of the group that this one knows to be lost, if there is one."""
        lost = self.group.process.rank.mailbox.lost
        return next((lost[member] for member in self.group.members if member in lost), None)

    def report(self) -> None:
        """Wake this rank if it would otherwise wait forever for a lost rank."""
        if self._waiter in self._meeting.waiters and not self._meeting.ends and self._lost():
            self._meeting.waiters.remove(self._waiter)
            queue = self.group.process.sim.queue
            queue.push(queue.now, self._waiter[1])


class SendWork(PendingWork):
    def __init__(self, group: Group, result: Any, sending: Sending):
        super().__init__(group, result)
        self._sending = sending

    def end(self) -> float | None:
        return self._sending.left

    def _block(self) -> None:
        self._sending.wait()


class ReceiveWork(PendingWork):
    def __init__(self, group: Group, result: Any, receiving: Receiving):
        super().__init__(group, result)
        self._receiving = receiving

    def end(self) -> float | None:
        return self.group.process.rank.now if self._receiving.has_arrived() else None

    def _look(self) -> None:
        process = self.group.process
        process.shared.notes.add(
            "is_completed() of a receive becomes true here before wait(), as with NCCL, but not gloo"
        )
        if self._receiving.has_arrived():
            self._block()
            self.finish()

    def _block(self) -> None:
        self._receiving.take()

    def source_rank(self) -> int:
        source = self._receiving.source
        return -1 if source is None else source

    _source_rank = source_rank

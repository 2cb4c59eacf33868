"""Virtual streams: torch.cpu's Stream and Event do nothing; these keep the order that CUDA's would.

FSDP2 asks the module of its device, here torch.cpu, for streams. If a side stream waits for a collective, it only
records that. The default stream blocks the rank when it waits for the side stream, or for an event recorded on it.
Until then its computation overlaps with the collective.

On a CPU a rank executes one operation after the other, so a collective begins when Python reaches it. An operation of
a side stream that needs a tensor still in transit waits for it at once, which is correct, but does not overlap.

On a GPU the host only queues operations. So a rank's time is that of its device's default stream, and a side stream
has a time of its own: an operation issued to it begins when everything it waits for is over, possibly before earlier
operations of the default stream end. Queueing takes no time. The host waits only where the script reads a result, a
clock, or an event (`Pricer.join`), and nothing issued later can begin before that.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from cluster.torch.process import current, this
from cluster.torch.replaced import replace_names

if TYPE_CHECKING:
    from cluster.torch.work import CollectiveWork


class VirtualStream:
    """A stream of operations. Only side streams have works `under_way` and, on a GPU, a time of their own."""

    def __init__(self, priority: int = -1, is_side: bool = True):
        self.is_side = is_side
        self._pending: list[CollectiveWork] = []
        self._free = 0.0

    @property
    def free(self) -> float:
        """The time at which the operations issued so far end, in s, not counting collectives under way."""
        return self._free if self.is_side or not current() else this().rank.now

    @property
    def runs_beside(self) -> bool:
        """True for a side stream of a GPU, whose operations take up none of the default stream's time."""
        return self.is_side and this().pricer.runs_ahead

    def begin(self, arguments: Any) -> float:
        """Return when an operation on these arguments begins if it is issued now, in s. This may block the rank."""
        if not self.runs_beside:
            self._wait_for(arguments)
            return this().rank.now
        self._free = max([self._free, this().pricer.host, *(work.settle() for work in self.under_way())])
        return self._free

    def advance(self, seconds: float) -> None:
        """Add the time that an operation takes, in s, after `begin`."""
        self._free += seconds

    def under_way(self) -> list[CollectiveWork]:
        """Return the collectives for which this stream waits."""
        self._pending = [work for work in self._pending if not work.done]
        return list(self._pending)

    def take(self, works: Iterable[CollectiveWork], time: float) -> None:
        """Wait for these works, and until `time`, in s. A side stream only records this; the default one blocks."""
        for work in works:
            if not self.is_side:
                work.block()
            elif work not in self._pending:
                self._pending.append(work)
        if self.is_side:
            self._free = max(self._free, time)
        else:
            this().pricer.wait_until(time)

    def wait_stream(self, other: VirtualStream) -> None:
        self.take(other.under_way(), other.free)

    def record_event(self, event: VirtualEvent | None = None) -> VirtualEvent:
        event = event or VirtualEvent()
        event.record(self)
        return event

    def wait_event(self, event: VirtualEvent | None) -> None:
        if event is not None:
            self.take(event.works, event.time)

    def synchronize(self) -> None:
        self.record_event().synchronize()

    def _wait_for(self, arguments: Any) -> None:
        """Block until these tensors have arrived, if any is still in transit in this stream."""
        works = self.under_way() if self._pending else []
        if works:
            used = {tensor.untyped_storage().data_ptr() for tensor in tensors(arguments)}
            for work in works:
                if any(tensor.untyped_storage().data_ptr() in used for tensor in tensors(work.result_of)):
                    work.block()


class VirtualEvent:
    """A position in a stream: the collectives under way there, and when all other earlier operations are over, in s."""

    def __init__(self, *_: Any, **__: Any):
        self.works: list[CollectiveWork] = []
        self.time = 0.0

    def record(self, stream: VirtualStream | None = None) -> None:
        stream = stream or current_stream()
        self.works, self.time = stream.under_way(), stream.free

    def wait(self, stream: VirtualStream | None = None) -> None:
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Make the host wait for this event."""
        over = max([self.time, *(work.settle() for work in self.works)])
        _default().wait_event(self)
        this().pricer.join(over)

    def query(self) -> bool:
        this().pricer.join()
        return self.time <= this().rank.now and all(work.is_completed() for work in self.works)


_HERE = threading.local()


def _default() -> VirtualStream:
    if not hasattr(_HERE, "default"):
        _HERE.default = _HERE.current = VirtualStream(is_side=False)
    return _HERE.default


def current_stream(device: Any = None) -> VirtualStream:
    """Return the stream that this thread issues operations to."""
    _default()
    return _HERE.current


@contextlib.contextmanager
def _stream(which: VirtualStream | None) -> Iterator[None]:
    before = current_stream()
    _HERE.current = which or before
    try:
        yield
    finally:
        _HERE.current = before


def _synchronize(device: Any = None) -> None:
    if mine := current():
        mine.pricer.join()


def _read(real: Callable) -> Callable:
    """Return a replacement for a tensor method with which the host reads a tensor, and so must wait for it."""

    def read(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        if (mine := current()) and mine.pricer.runs_ahead and not mine.pricer.paused:
            mine.pricer.join(current_stream().begin(tensor))
        return real(tensor, *args, **options)

    return read


def tensors(x: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists of arguments."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for part in x:
            yield from tensors(part)


@contextlib.contextmanager
def virtual_streams() -> Iterator[None]:
    """During a run, give torch.cpu virtual streams, and make a host wait for the tensors that it reads."""
    reads = {name: _read(getattr(torch.Tensor, name)) for name in ("cpu", "numpy", "tolist", "__repr__")}
    streams = {"Stream": VirtualStream, "Event": VirtualEvent, "stream": _stream, "current_stream": current_stream}
    with replace_names(torch.cpu, **streams, synchronize=_synchronize), replace_names(torch.Tensor, **reads):
        yield

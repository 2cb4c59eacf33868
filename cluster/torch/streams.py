"""Virtual streams: torch.cpu's Stream and Event do nothing on a CPU; these keep the order that CUDA's do.

FSDP2 asks the module of its device, here torch.cpu, for streams. If a side stream waits for a collective, it only
records that. The default stream blocks the rank when it waits for the side stream, or for an event recorded on it.
Until then its computation overlaps with the collective.

An operation of a side stream that needs a tensor still in transit waits for it at once, which is correct, but does not
overlap.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from cluster.torch.replaced import replace_names

if TYPE_CHECKING:
    from cluster.torch.work import PendingWork


class VirtualStream:
    """A stream of operations. Only side streams have works `under_way`."""

    def __init__(self, priority: int = -1, is_side: bool = True):
        self.is_side = is_side
        self._pending: list[PendingWork] = []

    def under_way(self) -> list[PendingWork]:
        """Return the collectives for which this stream waits."""
        self._pending = [work for work in self._pending if not work.done]
        return list(self._pending)

    def take(self, works: Iterable[PendingWork]) -> None:
        """Wait for these: a side stream records them, the default one blocks the rank."""
        for work in works:
            if not self.is_side:
                work.block()
            elif work not in self._pending:
                self._pending.append(work)

    def wait_stream(self, other: VirtualStream) -> None:
        self.take(other.under_way())

    def record_event(self, event: VirtualEvent | None = None) -> VirtualEvent:
        event = event or VirtualEvent()
        event.record(self)
        return event

    def wait_event(self, event: VirtualEvent | None) -> None:
        if event is not None:
            self.take(event.works)

    def synchronize(self) -> None:
        _default().take(self.under_way())

    def wait_for(self, arguments: Any) -> None:
        """Block until these tensors have arrived, if any is still in transit in this stream."""
        works = self.under_way() if self._pending else []
        if works:
            used = {tensor.untyped_storage().data_ptr() for tensor in tensors(arguments)}
            for work in works:
                if any(tensor.untyped_storage().data_ptr() in used for tensor in tensors(work.result_of)):
                    work.block()


class VirtualEvent:
    """A place in a stream."""

    def __init__(self, *_: Any, **__: Any):
        self.works: list[PendingWork] = []

    def record(self, stream: VirtualStream | None = None) -> None:
        self.works = (stream or current_stream()).under_way()

    def wait(self, stream: VirtualStream | None = None) -> None:
        (stream or current_stream()).take(self.works)

    def synchronize(self) -> None:
        _default().take(self.works)

    def query(self) -> bool:
        return all(work.is_completed() for work in self.works)


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


def tensors(x: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists of arguments."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for part in x:
            yield from tensors(part)


def virtual_streams() -> contextlib.AbstractContextManager[None]:
    """Give torch.cpu virtual streams during a run."""
    return replace_names(
        torch.cpu, Stream=VirtualStream, Event=VirtualEvent, stream=_stream, current_stream=current_stream
    )

"""Futures of operations in progress, and when their callbacks run.

A future's wait in C++ would block while holding the baton, so a rank completes its own futures: when it asks for one,
after a torch operation, and at the end of backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from cluster.torch.process import current

if TYPE_CHECKING:
    from cluster.torch.work import PendingWork


class Future(torch.futures.Future):
    """A future that a rank completes by asking for its value, since waiting in C++ would block every other rank."""

    def __init__(self, source: PendingWork | Future):
        super().__init__()
        self._source = source
        self._children: list[tuple[Future, Callable]] = []

    def complete(self, value: Any) -> None:
        self.set_result(value)
        for child, callback in self._children:
            child.settle(callback, self)
        self._children = []

    def settle(self, callback: Callable, parent: Future) -> None:
        try:
            self.complete(callback(parent))
        except Exception as error:
            self.set_exception(error)

    def wait(self) -> Any:
        if not super().done():
            source: Any = self._source
            while isinstance(source, Future):
                source = source._source
            source.block()
        return super().wait()

    def then(self, callback: Callable) -> Future:
        child = Future(self)
        if super().done():
            child.settle(callback, self)
        else:
            self._children.append((child, callback))
        return child

    def add_done_callback(self, callback: Callable) -> None:
        self.then(callback)


def drain_after_backward(process: Any) -> None:
    """Make the current backward pass, if any, wait at its end for all works with futures.

    Otherwise DDP's reducer would wait for them in C++, where a wait blocks all ranks.
    """
    if not process.called_back and torch._C._current_graph_task_id() != -1:
        process.called_back = True

        def drain() -> None:
            process.called_back = False
            while process.due:
                process.due.pop(0).block()

        torch.autograd.Variable._execution_engine.queue_callback(drain)


def delay_all_reduce(reducer: Any, real: Callable = dist.Reducer._delay_all_reduce) -> None:
    """Reduce the gradients of a static graph's first step. DDP's reducer waits for their futures in the same call."""
    process = current()
    if not process:
        return real(reducer)
    process.blocks_for_futures = True
    try:
        real(reducer)
    finally:
        process.blocks_for_futures = False
    return None


def call_back(process: Any) -> None:
    """Finish the operations that are over by now, so that their callbacks can start work that overlaps the rank's."""
    if process.due and not process.draining:
        process.draining = True
        try:
            for work in list(process.due):
                end = work.end()
                if work.done or (end is not None and end <= process.rank.now):
                    process.due.remove(work)
                    work.finish()
        finally:
            process.draining = False


def wait_for_future(future: Any, real: Callable = torch._C.Future.wait) -> Any:
    """Return the value of a future created in C++, without blocking in C++ while another rank has to run."""
    process = current()
    while process and process.due and not torch._C.Future.done(future):
        process.due.pop(0).block()
    return real(future)

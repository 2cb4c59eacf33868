"""Threads for background work of a rank."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any


class CachedThreadPool:
    """A pool of daemon threads that reuses idle ones and otherwise grows, without an upper limit."""

    def __init__(self):
        self._jobs: SimpleQueue[tuple | None] = SimpleQueue()
        self._lock, self._idle, self._threads, self._closed = Lock(), 0, 0, False

    def submit(self, call: Callable, *args: Any) -> Future:
        """Run `call(*args)` in a thread. The future returns its result or raises its exception."""
        future: Future = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._threads += 1
                Thread(target=self._work, daemon=True).start()
        self._jobs.put((future, call, args))
        if self._closed:
            self._jobs.put(None)
        return future

    def close(self) -> None:
        """End each thread once the jobs submitted so far are done. Every later job gets a thread of its own."""
        with self._lock:
            self._idle, self._closed = 0, True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call, args = job
            try:
                future.set_result(call(*args))
            except Exception as error:
                future.set_exception(error)
            with self._lock:
                self._idle += not self._closed

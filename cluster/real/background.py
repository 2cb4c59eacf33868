"""Threads for background work of a rank."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any


class CachedThreadPool:
    """A pool that grows to as many threads as are busy at once and reuses them; daemon threads, no upper limit."""

    def __init__(self):
        self._jobs: SimpleQueue[tuple] = SimpleQueue()
        self._lock, self._idle = Lock(), 0

    def submit(self, call: Callable, *args: Any) -> Future:
        """Run `call(*args)` in a thread; the future returns its result or raises its exception."""
        future: Future = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                Thread(target=self._work, daemon=True).start()
        self._jobs.put((future, call, args))
        return future

    def _work(self) -> None:
        while True:
            future, call, args = self._jobs.get()
            try:
                future.set_result(call(*args))
            except Exception as error:
                future.set_exception(error)
            with self._lock:
                self._idle += 1

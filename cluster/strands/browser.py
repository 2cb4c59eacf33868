"""Strands in a browser, where WebAssembly suspends a stack until a promise resolves (JavaScript Promise Integration).

    hub  --resolves-->  promise of rank 0  --resolves-->  promise of rank 3  ...     and waits for its own

`callPromising` starts a strand on a stack of its own. JavaScript stores the functions that resolve the promises, so a
switch needs only one call from Python. Chrome and Edge have had JavaScript Promise Integration since version 137;
without it, `run_sync` raises RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from itertools import count
from typing import Any

from pyodide.code import run_js
from pyodide.ffi import create_proxy, run_sync

from cluster.strands.strand_exit import StrandExit

_baton: Any = run_js("""(() => {
  const resolvers = new Map();  // by number of the strand
  const wait = number => new Promise(resolve => { resolvers.set(number, resolve); });
  const wake = number => { const resolve = resolvers.get(number); resolvers.delete(number); resolve(); };
  const start = body => queueMicrotask(() => { body.callPromising().finally(() => body.destroy()); });
  return {
    wake,
    pass: (from, to) => { const own = wait(from); wake(to); return own; },
    begin: (from, body) => { start(body); return wait(from); },
  };
})()""")
_begin, _pass, _wake = _baton.begin, getattr(_baton, "pass"), _baton.wake
_next_number = count().__next__


class BrowserStrand:
    """A WebAssembly stack. Implements `Strand` of `cluster.strands`."""

    GreenletExit = StrandExit
    _running: BrowserStrand  # the running strand

    def __init__(self, main: Callable[[], None] | None = None, parent: BrowserStrand | None = None):
        self._main, self._parent, self._number = main, parent, _next_number()
        self._has_begun, self.dead = main is None, False
        self._error: type[BaseException] | BaseException | None = None  # raised when it continues

    @staticmethod
    def getcurrent() -> BrowserStrand:
        """Return the running strand."""
        return BrowserStrand._running

    def switch(self) -> None:
        """Suspend the running strand and continue this one, or its parent if it is dead.

        Return when some strand switches back.
        """
        me, other = BrowserStrand._running, self
        while other.dead and other._parent:
            other = other._parent
        if other is me:
            return
        BrowserStrand._running = other
        if other._has_begun:
            run_sync(_pass(me._number, other._number))
        else:
            other._has_begun = True
            run_sync(_begin(me._number, create_proxy(other._run)))
        if me._error is not None:
            error, me._error = me._error, None
            raise error

    def throw(self, error: type[BaseException] | BaseException = StrandExit) -> None:
        """Switch to this strand and raise `error` in it. A strand that has not started never starts."""
        if not self._has_begun:
            self.dead = True
        if not self.dead:
            self._error = error
            self.switch()

    def _run(self) -> None:
        assert self._main and self._parent
        try:
            Context().run(self._main)
        except StrandExit:
            pass
        except BaseException as error:
            self._parent._error = error
        self.dead = True
        BrowserStrand._running = self._parent
        _wake(self._parent._number)


BrowserStrand._running = BrowserStrand()

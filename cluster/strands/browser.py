"""Strands in a browser: WebAssembly suspends a stack until a promise is kept (JavaScript Promise Integration, JSPI).

    hub  --opens-->  gate of rank 0     run_sync(gate of the hub) suspends the hub's stack until somebody opens it
    rank 0  --opens-->  gate of rank 3  ...

`callPromising` starts a strand on a stack of its own, in a context of its own. Chrome and Edge have JSPI since version
137; without it `run_sync` raises RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any

from pyodide.code import run_js
from pyodide.ffi import create_proxy, run_sync

_new_gate = run_js("() => { let open; const opened = new Promise(done => { open = done; }); return { opened, open }; }")
_start = run_js("body => { queueMicrotask(() => body.callPromising().finally(() => body.destroy())); }")


class StrandExit(BaseException):
    """Raised inside a strand to end it."""


class BrowserStrand:
    """A stack of WebAssembly. Interface: `Strand` of `cluster.strands`."""

    GreenletExit = StrandExit
    _running: BrowserStrand  # the strand that runs

    def __init__(self, main: Callable[[], None] | None = None, parent: BrowserStrand | None = None):
        self._main, self._parent = main, parent
        self._has_begun, self.dead = main is None, False
        self._gate: Any = None  # what it waits for while it is suspended
        self._error: type[BaseException] | BaseException | None = None  # raised when it continues

    @staticmethod
    def getcurrent() -> BrowserStrand:
        """Return the strand that runs."""
        return BrowserStrand._running

    def switch(self) -> None:
        """Suspend the running strand and continue this one, until some strand switches back."""
        me = BrowserStrand._running
        if self is me or self.dead:
            return
        me._gate = _new_gate()
        self._go_on()
        run_sync(me._gate.opened)
        if me._error is not None:
            error, me._error = me._error, None
            raise error

    def throw(self, error: type[BaseException] | BaseException = StrandExit) -> None:
        """Switch to this strand and raise `error` in it. A strand that has not begun ends without beginning."""
        if not self._has_begun:
            self.dead = True
        if not self.dead:
            self._error = error
            self.switch()

    def _go_on(self) -> None:
        BrowserStrand._running = self
        if self._has_begun:
            self._gate.open()
        else:
            self._has_begun = True
            _start(create_proxy(self._body))

    def _body(self) -> None:
        assert self._main and self._parent
        try:
            Context().run(self._main)
        except StrandExit:
            pass
        except BaseException as error:
            self._parent._error = error
        self.dead = True
        self._parent._go_on()


BrowserStrand._running = BrowserStrand()

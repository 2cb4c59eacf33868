"""The process that a rank's script believes it runs in: its communicator, environment, pricer and the state of the
run."""

from __future__ import annotations

import math
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from cluster.script_summary import Waited

if TYPE_CHECKING:
    from cluster.simulated.comm import SimulatedComm
    from cluster.simulated.rank import Rank
    from cluster.simulated.simulation import Simulation
    from cluster.torch.handshake import Match
    from cluster.torch.pricing import Pricer
    from cluster.torch.store import Values
    from cluster.torch.work import PendingWork


class Enough(BaseException):
    """Raised inside a rank that has taken all its steps. Not an Exception, so that no script catches it."""


@dataclass
class SharedState:
    sim: Simulation
    eager: int  # bytes up to which a send does not wait for its receiver
    values: Values  # of the store
    on_line: Callable[[int, str], None]  # called with the rank and each line that it prints
    steps: float = math.inf  # steps after which a rank ends
    matches: dict[tuple, Match] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    waits: list[Waited] = field(default_factory=list)


class Process:
    """The process that a rank's script believes it runs in: its own environment, output and stores."""

    def __init__(self, comm: SimulatedComm, shared: SharedState, pricer: Pricer, environment: dict[str, str]):
        self.comm, self.shared, self.pricer, self.environment = comm, shared, pricer, environment
        self.rank: Rank = comm.owner
        self.sim = shared.sim
        self.line = ""  # where the script was at its last operation: "line 31 of train.py"
        self.unfinished = {"stdout": "", "stderr": ""}  # the last line printed to each, until it is complete
        self.due: list[PendingWork] = []  # works whose futures have callbacks
        self.held: dict[int, dict[str, int]] = {}  # bytes by kind, of each optimizer
        self.stores: list[Any] = []
        self.called_back = self.draining = self.blocks_for_futures = self.has_enough = False

    def enter(self) -> None:
        """Charge for the work so far, record the script's line, and process every event before this rank's time."""
        self.pricer.charge()
        self.line = script_line()
        self.sim.queue.sync(self.rank)

    def leave(self) -> None:
        """Charge nothing for the time since the last charge: the simulator has spent it, not the script."""
        self.pricer.skip()

    def end_step(self, sizes: dict[str, int], optimizer: int) -> None:
        """Record the memory that the ending step has used, and begin the next one. Raise Enough after the last step.

        `sizes` are the bytes of this `optimizer`, by kind.
        """
        log = self.comm.event_log
        self.held[optimizer] = sizes
        for kind in sizes:
            log.hold(kind, sum(held[kind] for held in self.held.values()))
        log.hold("activations", self.pricer.activations.take_peak())
        self.pricer.activity.forget()
        log.step = max(0, log.step) + 1
        if log.step >= self.shared.steps:
            raise Enough

    def record_wait(self, culprit: int, what: str, start: float, end: float, ready: float) -> None:
        """Record that this rank waited for `culprit` from `start` to `end`, and was itself ready at `ready`,
        all in s.
        """
        if end > start and culprit != self.rank.number:
            self.shared.waits.append(Waited(self.rank.number, culprit, what, self.line, start, end, ready))


_HERE = threading.local()


def current() -> Process | None:
    """Return the process of this thread; None outside the ranks of a run."""
    return getattr(_HERE, "process", None)


def this() -> Process:
    """Return the process of this thread, which must be a rank of a run."""
    return _HERE.process


def become(process: Process) -> None:
    _HERE.process = process


_SITE = os.path.dirname(os.path.dirname(torch.__file__))
_ROOMS = os.path.dirname(os.path.dirname(__file__))
_LIBRARIES = (
    *(folder + os.sep for folder in (os.path.dirname(os.__file__), _SITE, _ROOMS)),
    os.path.join(os.path.dirname(_ROOMS), "lockstep.py"),  # lockstep.log
)
_theirs: dict[CodeType, bool] = {}


def is_library(code: CodeType) -> bool:
    """True if the code belongs to Python, an installed package or Lockstep, rather than to the script."""
    known = _theirs.get(code)
    if known is None:
        name = code.co_filename
        known = _theirs[code] = name.startswith("<") or is_library_file(name)
    return known


def is_library_file(name: str) -> bool:
    """True if the file belongs to Python, an installed package or Lockstep, even inside the script's folder."""
    return os.path.abspath(name).startswith(_LIBRARIES)


def script_line(frame: Any = None) -> str:
    """Return the innermost line of the script that this thread, or `frame`, executes, e.g. "line 31 of train.py".

    Return "" if there is none.
    """
    frame = frame or sys._getframe(1)
    while frame and is_library(frame.f_code):
        frame = frame.f_back
    return f"line {frame.f_lineno} of {os.path.basename(frame.f_code.co_filename)}" if frame else ""


def error_line(error: BaseException) -> str:
    """Return the innermost line of the script that raised this error, as `script_line` does."""
    lines = [(frame.f_code, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    for code, number in reversed(lines):
        if not is_library(code):
            return f"line {number} of {os.path.basename(code.co_filename)}"
    return ""


def at_line(process: Process) -> str:
    """Return where this rank is in the script, such as " (line 31 of train.py)"; "" if unknown."""
    return f" ({process.line})" if process.line else ""

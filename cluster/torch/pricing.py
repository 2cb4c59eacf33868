"""The virtual time of a script's work: a roofline for each torch operation, which is repeatable, or measured CPU time.

On a device that has been measured for scripts (`cluster.script_device`), Python takes time, too: a fixed time for each
call of a Python function, which `sys.setprofile` counts. Otherwise only operations take time. Reading data and saving
files are free.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from cluster.script_device import ScriptDevice, with_free_python
from cluster.torch.activity import Activity
from cluster.torch.memory import Activations
from cluster.torch.operations import Operation, count_flops, itemsize, nbytes, operation
from cluster.torch.python_calls import PythonCalls
from cluster.torch.streams import current_stream

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank

OURS = {torch.Tensor, torch.nn.Parameter, FakeTensor}
OF_TORCH = 5  # Python calls by which torch enters our mode, and the operation from it
OFTEN = 128  # operations between two checks whether the run should stop

real_time = time.thread_time  # a script's `time` is virtual, this one is real


class Pricer:
    """A pricer, which charges a rank for its work. `operations` counts the operations of all ranks, a sign that the run
    is alive.

    If the host `runs_ahead` of its device, as with a GPU, the rank's time is the device's, and `host` is when the host
    last waited for the device, in s.
    """

    operations = 0
    runs_ahead = False

    def __init__(self, rank: Rank):
        self.rank, self.activity, self.activations = rank, Activity(), Activations()
        self.calls = PythonCalls()
        self.paused = False
        self.host = 0.0
        self.poll: Callable[[], None] = lambda: None  # called after each operation that is priced

    def charge(self) -> None:
        """Charge the rank for its work since the last call, unless it has already been charged for it."""

    def skip(self) -> None:
        """Do not charge for anything since the last call of `charge`."""

    def join(self, time: float | None = None) -> None:
        """Make the host wait for the default stream, or for an operation that ends at `time`, in s."""
        self.host = max(self.host, self.rank.now if time is None else time)
        self.wait_until(self.host)

    def wait_until(self, time: float) -> None:
        """Make the default stream wait until `time`, in s, for the host or an operation of another stream."""
        rank = self.rank
        if self.runs_ahead and time > rank.now:
            kind, label = self.activity.now()
            rank.span(kind, rank.now, time, label)
            rank.now = time
            if rank.interruptible:
                rank.interrupt()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Charge nothing inside this block: the work is the simulator's."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before


class Roofline(Pricer, TorchDispatchMode):
    """A pricer that charges for each operation according to its FLOPs and bytes, and for the Python calls in
    between.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, although nothing is compiled here: telling torch.compile to skip it would take 5 us per operation."""
        return False

    def __init__(self, rank: Rank):
        TorchDispatchMode.__init__(self)
        Pricer.__init__(self, rank)
        self.device: ScriptDevice = with_free_python(rank.sim.device)
        self._measured = self.device.is_measured
        self.runs_ahead = self.device.is_asynchronous

    def __enter__(self) -> Roofline:
        super().__enter__()
        if self._measured:
            sys.setprofile(self.calls.count)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._measured:
            sys.setprofile(None)
        super().__exit__(*error)

    def charge(self) -> None:
        if self._measured and not self.paused:
            self._advance(self._of_python(self.calls.made))

    def _of_python(self, made: int) -> float:
        """Return the time that Python took since the last call of this method, up to Python call number `made`, in s.

        Until the end of the first step, Python imports modules and fills caches, and is free.
        """
        calls = self.calls.take(made)
        return self.device.of_python(calls) if self.rank.event_log.step > 0 else 0.0

    def skip(self) -> None:
        self.calls.take(self.calls.made)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        calls = self.calls
        before = calls.made
        if not OURS.issuperset(types):
            calls.ours += calls.made - before + OF_TORCH
            return NotImplemented  # so that DTensor and similar types become operations on local tensors
        known = operation(func)
        is_free = self.paused or FakeTensor in types
        if known.works and not is_free:
            current_stream().begin(args)
        calls.ours += calls.made - before + OF_TORCH
        out = func(*args, **kwargs)
        before = calls.made
        if is_free or _is_fake(out):
            Pricer.operations += 1  # free, but a run that traces a model is alive
        elif known.works:
            python = self._of_python(before) if self._measured else 0.0
            self._price(func, known, args, kwargs, out, python)
        elif known.is_block:
            self._block(func, args)
        elif self._measured:
            self._advance(self.device.of_view() + self._of_python(before))
        if known.is_read and self.runs_ahead and not (self.paused or self.activity.updating):
            self.join(current_stream().begin(args))  # an optimizer reads only counters, which are the host's
        calls.ours += calls.made - before
        return out

    def _block(self, func: Any, args: Any) -> None:
        if "enter" in func._schema.name:
            name = args[0] or ""
            self.activity.enter("" if name.startswith(("Optimizer.", "autograd::")) else name)
        else:
            self.activity.exit()

    def _price(self, func: Any, known: Operation, args: Any, kwargs: Any, out: Any, python: float) -> None:
        """Charge for an operation with this result, and for `python` seconds before it."""
        rank, device = self.rank, self.device
        Pricer.operations += 1
        if not Pricer.operations % OFTEN:
            rank.sim.tick()
        moved = nbytes(args) + nbytes(out)
        flops = count_flops(func, known, args, kwargs, out) if known.flops else moved / 4  # one for each float32
        if known.flops and rank.event_log.step < 0:
            rank.event_log.step = 0  # a rank's first matrix product begins its first step
        rank.event_log.flops += flops
        if known.is_fresh and torch.is_grad_enabled() and _require_grad(args):
            self.activations.add(out)
        size = itemsize(args) if known.flops else 4
        self._advance(python + device.of_operation(flops, moved, known.is_slow, size), working=True)
        self.poll()

    def _advance(self, seconds: float, working: bool = False) -> None:
        """Make the rank work for this many seconds."""
        if not seconds:
            return
        rank, stream = self.rank, current_stream()
        if stream.runs_beside:
            stream.advance(seconds * rank.slowness())
            return
        start = rank.now
        rank.now += seconds * rank.slowness()
        if rank.interruptible and working:
            rank.interrupt(working=True)
        kind, label = self.activity.now()
        rank.span(kind, start, rank.now, label)


class Measured(Pricer):
    """A pricer that charges for the CPU time of the rank's thread."""

    def __init__(self, rank: Rank):
        super().__init__(rank)
        self._since = 0.0

    def __enter__(self) -> Measured:
        self._since = real_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.charge()

    def charge(self) -> None:
        now = real_time()
        Pricer.operations += 1
        rank, start = self.rank, self.rank.now
        rank.now += (now - self._since) * rank.slowness()
        kind, label = self.activity.now()
        rank.span(kind, start, rank.now, label)
        self._since = now

    def skip(self) -> None:
        self._since = real_time()


def _require_grad(args: Any) -> bool:
    """True if any of these tensors needs a gradient."""
    for x in args:
        if isinstance(x, torch.Tensor):
            if x.requires_grad:
                return True
        elif isinstance(x, list | tuple) and _require_grad(x):
            return True
    return False


def _is_fake(x: Any) -> bool:
    return isinstance(x[0] if isinstance(x, tuple | list) and x else x, FakeTensor)

"""What the operations of torch cost: each by a roofline, which is repeatable, or by measured CPU time.

Only operations take time by the roofline: device.overhead + max(FLOPs / flops, bytes / bandwidth). Python, reading data
and saving files are free.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cluster.torch.streams import current_stream
from tracing import COMPUTE, UPDATE

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank

aten = torch.ops.aten
NO_WORK = {
    *(aten._unsafe_view.default, aten.detach.default, aten.empty.memory_format, aten.empty_strided.default),
    *(aten.empty_like.default, aten.new_empty.default, aten.new_empty_strided.default, aten.lift_fresh.default),
    aten._local_scalar_dense.default,
}
"""Operations that only make or read a tensor's header, next to views."""
OURS = {torch.Tensor, torch.nn.Parameter, FakeTensor}
OFTEN = 128  # operations between two looks at whether the run should stop

real_time = time.thread_time  # a script's `time` is virtual, this one is not


class Activity:
    """What a rank is doing, as a kind of span and a label, from optimizers, autograd and record_function."""

    def __init__(self):
        self.updating = False
        self._blocks: list[str] = []

    def enter(self, name: str) -> None:
        self._blocks.append("" if name.startswith(("Optimizer.", "autograd::")) else name)

    def exit(self) -> None:
        if self._blocks:
            self._blocks.pop()

    def now(self) -> tuple[int, str]:
        """Return (kind, label)."""
        if self.updating:
            return UPDATE, "optimizer"
        backward = torch._C._current_graph_task_id() != -1
        named = next((name for name in reversed(self._blocks) if name), "")
        return COMPUTE, named or ("backward" if backward else "forward")


class Pricer:
    """Charges a rank for its work. `operations` counts those of all ranks, which shows that a run is alive."""

    operations = 0

    def __init__(self, rank: Rank):
        self.rank, self.activity = rank, Activity()
        self.paused = False
        self.poll: Callable[[], None] = lambda: None  # called after each operation that is priced

    def charge(self) -> None:
        """Advance the rank by the work since the last call, where that is measured."""

    def skip(self) -> None:
        """Do not charge for the real time since the last call of `charge`."""

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Charge nothing inside: this work is the simulator's."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before


class Roofline(Pricer, TorchDispatchMode):
    """Charges for each operation by the FLOPs and bytes of its tensors."""

    def __init__(self, rank: Rank):
        TorchDispatchMode.__init__(self)
        Pricer.__init__(self, rank)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not OURS.issuperset(types):
            return NotImplemented  # so that DTensor and its like become operations on local tensors
        works = takes_time(func)
        if works:
            current_stream().wait_for(args)
        out = func(*args, **kwargs)
        if self.paused or FakeTensor in types or _is_fake(out):
            return out
        if func.namespace == "profiler":
            self._block(func, args)
        elif works:
            self._price(func, args, kwargs, out)
        return out

    def _block(self, func: Any, args: Any) -> None:
        if "enter" in func._schema.name:
            self.activity.enter(args[0] or "")
        else:
            self.activity.exit()

    def _price(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        rank = self.rank
        Pricer.operations += 1
        if not Pricer.operations % OFTEN:
            rank.sim.tick()
        moved = nbytes(args) + nbytes(out)
        count = flop_registry.get(func._overloadpacket)
        flops = count(*args, **kwargs, out_val=out) if count else moved / 4  # one for each number of float32
        if count and rank.event_log.step < 0:
            rank.event_log.step = 0  # a rank's first matrix product begins its first step
        start = rank.now
        rank.now += rank.sim.device.seconds(flops, moved) * rank.slowness()
        rank.event_log.flops += flops
        if rank.interruptible:
            rank.interrupt(working=True)
        kind, label = self.activity.now()
        rank.span(kind, start, rank.now, label)
        self.poll()


class Measured(Pricer):
    """Charges for the CPU time of the rank's thread."""

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


_works: dict[Any, bool] = {}


def takes_time(func: Any) -> bool:
    """True for an operation that reads or writes numbers, rather than only returning a view."""
    known = _works.get(func)
    if known is None:
        returns = func._schema.returns
        view = bool(returns) and all(one.alias_info is not None and not one.alias_info.is_write for one in returns)
        known = _works[func] = not (view or func in NO_WORK or func.namespace not in ("aten", "prims"))
    return known


def nbytes(x: Any) -> int:
    """Return the bytes of a tensor, or of those in a list of arguments."""
    if isinstance(x, torch.Tensor):
        return x.numel() * x.element_size()
    return sum(map(nbytes, x)) if isinstance(x, list | tuple) else 0


def _is_fake(x: Any) -> bool:
    return isinstance(x[0] if isinstance(x, tuple | list) and x else x, FakeTensor)

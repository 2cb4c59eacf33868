"""What a rank is doing, in words: the module, the record_function label, the backward pass of either, the optimizer.

An autograd node has a sequence number, which grows as the forward pass creates nodes. So the numbers at which modules
begin and end show which module a node belongs to.
"""

import contextlib
from bisect import bisect_right
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.autograd import _get_sequence_nr

from cluster.torch.process import current
from cluster.torch.replaced import replace_names
from tracing import COMPUTE, UPDATE

WRAPPERS = ("module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")
FORWARD, BACKWARD = "forward", "backward"
NO_TASK = -1  # outside of backward
MOST = 100_000  # most starts and ends of regions that are kept, if no optimizer ends a step


class Region(NamedTuple):
    """A module or a record_function that the rank is in, and the backward pass in which it was entered."""

    label: str
    task: int
    is_module: bool


class Activity:
    """The current activity of a rank, as a kind of span and a label."""

    def __init__(self):
        self.updating = False
        self._regions: list[Region] = []
        self._names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self._numbers: list[int] = []  # the next sequence number of autograd where a label begins
        self._labels: list[str] = []
        self._last = ""  # label of the latest node: nodes that accumulate gradients have no number

    def enter(self, label: str, is_module: bool = False) -> None:
        """Enter a region; one without a label belongs to the region around it."""
        self._regions.append(Region(label or self.label(), torch._C._current_graph_task_id(), is_module))
        self._note()

    def enter_module(self, module: nn.Module) -> None:
        name = self._names.get(module)
        if name is None and not any(region.is_module for region in self._regions):
            self._names.update((part, _plain(name)) for name, part in module.named_modules())
            name = self._names[module]
        self.enter(name or "", is_module=True)

    def exit(self) -> None:
        if self._regions:
            self._regions.pop()
            self._note()

    def forget(self) -> None:
        """Forget, at the end of a step, which modules the autograd nodes belong to."""
        del self._numbers[:-1], self._labels[:-1]

    def label(self) -> str:
        return self._regions[-1].label if self._regions else ""

    def now(self) -> tuple[int, str]:
        """Return the kind and the label of what the script is computing now."""
        if self.updating:
            return UPDATE, "optimizer"
        task = torch._C._current_graph_task_id()
        region = self._regions[-1] if self._regions else None
        if task == NO_TASK or (region and region.task == task and region.label):
            return COMPUTE, (region.label if region else "") or FORWARD
        return COMPUTE, self._of_node() or (region.label if region else "") or BACKWARD

    def _note(self) -> None:
        if len(self._numbers) > MOST:
            del self._numbers[: MOST // 2], self._labels[: MOST // 2]
        self._numbers.append(_get_sequence_nr())
        self._labels.append(self.label())

    def _of_node(self) -> str:
        """Return the label of the autograd node being computed, or "" if the node has no label."""
        node = torch._C._current_autograd_node()
        number = node._sequence_nr() if hasattr(node, "_sequence_nr") else 0
        if number < 1 << 63:
            at = bisect_right(self._numbers, number) - 1
            label = self._labels[at] if at >= 0 else ""
            self._last = f"{label} {BACKWARD}" if label else ""
        return self._last


def _plain(name: str) -> str:
    """Return a module's name without the parts that wrappers add."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


_real_call: Any = nn.Module.__call__


def _call(module: nn.Module, *args: Any, **options: Any) -> Any:
    mine = current()
    if mine is None:
        return _real_call(module, *args, **options)
    calls, activity = mine.pricer.calls, mine.pricer.activity
    before = calls.made
    activity.enter_module(module)
    calls.ours += calls.made - before + 2  # with this function and `current`
    try:
        return _real_call(module, *args, **options)
    finally:
        before = calls.made
        activity.exit()
        calls.ours += calls.made - before


def named_modules() -> contextlib.AbstractContextManager[None]:
    """Return a context during which each rank records the module it is in."""
    return replace_names(nn.Module, __call__=_call)

"""Watching: the CUDA simulator, with a callback for every memory access and every wait at a barrier."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from kernels.simulator import GpuArray, Simulator, SourceLine, stack

BLOCKS = 16  # the number of blocks of a launch that are run


class Access(NamedTuple):
    """An access of one thread to element `cell` of `memory`, or its wait at a barrier (memory None). Counts start at 0.

    `round`: barriers that the block has passed. `stack`: the source lines the thread is at, the kernel's first.
    `turns`: (depth of the function in the stack, line, iterations begun) of every enclosing loop over a range.
    `offset`: bytes into the code of the last line's function.
    """

    kernel: str
    launch: int
    block: int
    thread: int
    round: int
    stack: tuple[SourceLine, ...]
    turns: tuple[tuple[int, int, int], ...]
    offset: int
    does: str
    memory: GpuArray | None
    cell: int


class Watching(Simulator):
    """The simulator of `kernels.gpu.simulate_gpu(watch)`: it runs only the first BLOCKS blocks of a launch.

    All blocks are alike, and layers launch hundreds, which would take minutes. Memory that the other blocks would write
    keeps its old values.
    """

    def __init__(self, watch: Callable[[Access], None]):
        super().__init__()
        self.watch, self.launch = watch, -1
        self._turns: dict[tuple[int, int], list[list[int]]] = defaultdict(list)  # of each (block, thread)

    def bind(self, function: Callable) -> Callable:
        """Return a copy of the function whose loops over ranges count their iterations."""
        copy = super().bind(function)
        copy.__globals__["range"] = self._range
        return copy

    def run(self, function: Callable, blocks: Any, threads: Any, *args: Any) -> None:
        """Run a kernel on arrays that report every access."""
        self.launch += 1
        self._turns.clear()
        named = zip(args, function.__code__.co_varnames, strict=False)
        seen = [GpuArray(self, x, name) if isinstance(x, np.ndarray) else x for x, name in named]
        super().run(function, blocks, threads, *seen)

    def _run_block(self, block: tuple, function: Callable, args: Sequence) -> None:
        if block[0] < BLOCKS:
            super()._run_block(block, function, args)

    def tell(self, frame: FrameType, does: str, memory: GpuArray | None = None, cell: int = 0) -> None:
        turns = tuple((depth, line, begun) for depth, line, begun in self._turns[self.block, self.thread])
        thread = self.kernel, self.launch, self.block, self.thread, self.round
        self.watch(Access(*thread, stack(frame), turns, frame.f_lasti, does, memory, cell))

    def _range(self, *bounds: int) -> Iterator[int]:
        frame, turns = sys._getframe(1), self._turns[self.block, self.thread]
        turn = [len(stack(frame)) - 1, frame.f_lineno, 0]
        turns.append(turn)
        try:
            for value in range(*bounds):
                turn[2] += 1
                yield value
        finally:  # also if the loop is left by break or return
            turns.remove(turn)

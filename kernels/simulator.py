"""CUDA simulator: runs GPU kernels on the CPU, as plain Python, and checks which thread accesses which memory.

Blocks run one after the other, the threads of a block in lock step from barrier to barrier:

    thread 0   ------|  ----|  --        a thread is a greenlet; a barrier switches away from it until all have arrived;
    thread 1   ----|    ------|  -       threads that meet no barrier share one, at the price of a call each

Mistakes that a GPU often forgives are errors: `Race`, `DivergentBarrier`. Arithmetic raises no error, as on a GPU: the
root of -1 is NaN, 1 / 0 is infinity, and a kernel's `math` is NumPy's here, because Python's raises. The compiler's
types are not checked.
"""

from __future__ import annotations

import contextvars
import linecache
import math
import sys
from collections import defaultdict, namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from greenlet import getcurrent, greenlet

from kernels.gpu import Backend, Deferred

READ, WRITE, ADD, WAIT = "reads", "writes", "adds to", "waits"
CLASHES = {READ: (WRITE, ADD), WRITE: (READ, WRITE, ADD), ADD: (READ, WRITE)}  # ADD is atomic
Dim3 = namedtuple("Dim3", "x y z", defaults=(1, 1, 1))
OTHERWISE = ("ceil", "floor", "isclose", "remainder", "trunc")  # these differ in NumPy
NUMPYS = {
    function: getattr(np, name)
    for name, function in vars(math).items()
    if callable(function) and hasattr(np, name) and name not in OTHERWISE
}
GLOBALS = globals()  # in which the frames below a kernel run
MATH = SimpleNamespace(**vars(math) | {function.__name__: numpys for function, numpys in NUMPYS.items()})


class Race(RuntimeError):
    """Raised if two threads of a block access the same cell of shared memory without a barrier in between, and at least
    one of them writes.
    """


class DivergentBarrier(RuntimeError):
    """Raised if some threads of a block wait at a barrier while others wait at another one or have finished."""


class SourceLine(NamedTuple):
    """A line of a function's source."""

    code: CodeType
    number: int

    @classmethod
    def of(cls, code: CodeType, offset: int) -> SourceLine:
        """Return the line of the instruction at `offset` bytes. Finding it takes most of the time of an access."""
        return cls(code, next(line for start, end, line in code.co_lines() if line and start <= offset < end))

    def __str__(self):
        return f"{Path(self.code.co_filename).name}:{self.number}"


class GpuArray:
    """An array as threads see it. It reports each access to a number, at position `cell`, to the simulator."""

    def __init__(self, cuda: Simulator, array: np.ndarray, name: str, shared: bool = False, start=0, touched=None):
        self.cuda, self.array, self.name, self.shared, self.start = cuda, array, name, shared, start
        self.size, self.shape, self.dtype = array.size, array.shape, array.dtype
        self.steps = [stride // array.itemsize for stride in array.strides]
        # since the barrier: does, cell: thread: (code, offset)
        self.touched = defaultdict(dict) if touched is None else touched

    def __getitem__(self, index):
        value = self.array[index]
        if isinstance(value, np.ndarray):  # a row or a slice
            start = self.start + (value.ctypes.data - self.array.ctypes.data) // value.itemsize
            return GpuArray(self.cuda, value, self.name, self.shared, start, self.touched)
        self.cuda.touch(self, index, READ)
        return value

    def __setitem__(self, index, value):
        self.array[index] = value
        self.cuda.touch(self, index, WRITE)


class Simulator(Backend):
    """The `cuda` that simulated kernels see: grid, syncthreads, shared.array, ... It runs one launch at a time."""

    thread: int
    threadIdx: Dim3
    _arrived: list[tuple]  # threads at a barrier
    _arrays: list[GpuArray]  # in shared memory

    def __init__(self):
        super().__init__(self)
        self.shared, self.atomic = SimpleNamespace(array=self._shared_array), SimpleNamespace(add=self._atomic_add)

    def resolve_global(self, value: Any) -> Any:
        """Return this backend's value for a global of a kernel; a formula shared with the CPU runs as plain Python."""
        if value is math:
            return MATH
        if isinstance(value, BuiltinFunctionType):
            return NUMPYS.get(value, value)
        formula = not hasattr(value, "device") and getattr(value, "py_func", None)
        return self.bind(formula) if formula else super().resolve_global(value)

    def compile(self, deferred: Deferred) -> Callable:
        return self.bind(deferred.py_func)

    def launcher(self, kernel: Deferred, launch: tuple) -> Callable:
        return lambda *args: self.run(self.ready(kernel), *launch[:2], *args)

    def grid(self, dimensions: int) -> int | tuple[int, ...]:
        along = [b * n + t for b, n, t in zip(self.blockIdx, self.blockDim, self.threadIdx, strict=True)]
        return along[0] if dimensions == 1 else tuple(along[:dimensions])

    def gridsize(self, dimensions: int) -> int | tuple[int, ...]:
        along = [blocks * threads for blocks, threads in zip(self.gridDim, self.blockDim, strict=True)]
        return along[0] if dimensions == 1 else tuple(along[:dimensions])

    def syncthreads(self) -> None:
        frame, thread, place = sys._getframe(1), self.thread, self.threadIdx
        self.tell(frame, WAIT)
        self._arrived.append((thread, _lines(frame), getcurrent()))
        self._home.switch()
        self.thread, self.threadIdx = thread, place

    def run(self, function: Callable, blocks: Any, threads: Any, *args: Any) -> None:
        self.kernel = f"{function.__module__}.{function.__name__}"
        if any(x is None for x in args):
            raise TypeError(
                f"{self.kernel} was launched with None, which no GPU accepts: pass arrays and numbers only."
            )
        args = tuple(np.float64(x) if type(x) is float else x for x in args)  # dividing these by 0 does not raise
        self.gridDim, self.blockDim = (Dim3(*n) if isinstance(n, tuple) else Dim3(n) for n in (blocks, threads))
        with np.errstate(all="ignore"):
            for block in enumerate(_places(self.gridDim)):
                self._run_block(block, function, args)

    def _run_block(self, block: tuple[int, Dim3], function: Callable, args: Sequence) -> None:
        (self.block, self.blockIdx), threads, self.round = block, _places(self.blockDim), 0
        self._home, self._arrived, self._arrays = getcurrent(), [], []
        self._claimed, ahead = (
            [0] * len(threads),
            enumerate(threads),
        )  # the number of shared arrays each thread has requested

        def go():
            for self.thread, self.threadIdx in ahead:
                try:
                    function(*args)
                except Exception as error:
                    error.add_note(f"in thread {self.thread} of block {self.block} of {self.kernel}")
                    raise

        runner = None
        while (
            runner is None or runner
        ):  # True if it waits at a barrier: another greenlet continues with the next threads
            runner = greenlet(go)
            runner.gr_context = contextvars.copy_context()  # the context holds NumPy's errstate
            runner.switch()
        while self._arrived:
            arrived, self._arrived, self.round = self._arrived, [], self.round + 1
            self._expect_all(arrived)
            for memory in self._arrays:
                memory.touched.clear()
            for *_, runner in arrived:
                runner.switch()

    def _expect_all(self, arrived: list[tuple]) -> None:
        (first, place, _), here = arrived[0], {thread for thread, *_ in arrived}
        elsewhere = ((thread, SourceLine(*other[0])) for thread, other, _ in arrived if other != place)
        but = [f"thread {thread} at the one in {line}" for thread, line in elsewhere]
        but += [f"thread {thread} has ended" for thread in range(len(self._claimed)) if thread not in here]
        if but:
            line = SourceLine(*place[0])
            raise DivergentBarrier(
                f"{self.kernel}, block {self.block}: thread {first} waits at the barrier in {line}, but {but[0]}. "
                "All threads of a block must reach the same cuda.syncthreads(): move it out of the branch or loop."
            )

    def _shared_array(self, shape: Any, dtype: Any) -> GpuArray:
        self._claimed[self.thread] += 1
        if self._claimed[self.thread] > len(self._arrays):  # this thread is the first to request this one
            kind, frame = (
                np.dtype(getattr(dtype, "__name__", str(dtype))),
                sys._getframe(1),
            )  # Numba's type, by NumPy's name
            unset = np.nan if kind.kind == "f" else np.iinfo(kind).min  # so that reading it before writing shows
            name = linecache.getline(frame.f_code.co_filename, frame.f_lineno).partition("=")[0].strip()
            self._arrays.append(GpuArray(self, np.full(shape, unset, kind), name, shared=True))
        return self._arrays[self._claimed[self.thread] - 1]

    def _atomic_add(self, array: Any, index: Any, value: Any) -> None:
        numbers = array.array if isinstance(array, GpuArray) else array
        numbers[index] += value
        if numbers is not array:
            self.touch(array, index, ADD)

    def touch(self, memory: GpuArray, index: Any, does: str) -> None:
        """Record an access; raise Race if it conflicts with another thread's."""
        frame, me = sys._getframe(2), self.thread
        indices = index if type(index) is tuple else (index,)
        cell = memory.start
        for place, step in zip(indices, memory.steps, strict=True):
            cell += int(place) * step
        if memory.shared:
            touched = memory.touched
            for clash in CLASHES[does]:
                others = touched[clash].get(cell)
                if others and (len(others) > 1 or me not in others):
                    other, there = next((thread, offset) for thread, offset in others.items() if thread != me)
                    line, there = SourceLine(frame.f_code, frame.f_lineno), SourceLine.of(*there)
                    raise Race(
                        f"{self.kernel}, block {self.block}: thread {me} {does} {memory.name}[{index}] in {line}, "
                        f"thread {other} {clash} it in {there}, without a cuda.syncthreads() between the two."
                    )
            threads = touched[does].get(cell)
            if threads is None:
                touched[does][cell] = {me: (frame.f_code, frame.f_lasti)}
            else:
                threads[me] = frame.f_code, frame.f_lasti
        self.tell(frame, does, memory, cell)

    def tell(self, frame: FrameType, does: str, memory: GpuArray | None = None, cell: int = 0) -> None:
        """Called at every access and wait. Does nothing; `kernels/watching.py` overrides it to report them."""


@cache
def _places(extent: Dim3) -> tuple[Dim3, ...]:
    return tuple(Dim3(*place[::-1]) for place in np.ndindex(extent[::-1]))


def _lines(frame: FrameType) -> list[tuple[CodeType, int]]:
    """Return (code, line) of every function that a thread is in, the innermost first."""
    lines, outer = [(frame.f_code, frame.f_lineno)], frame.f_back
    while outer is not None and outer.f_globals is not GLOBALS:
        lines.append((outer.f_code, outer.f_lineno))
        outer = outer.f_back
    return lines


def stack(frame: FrameType) -> tuple[SourceLine, ...]:
    """Return the source lines that a thread is at, the outermost (the kernel's) first."""
    return tuple(SourceLine(*line) for line in reversed(_lines(frame)))

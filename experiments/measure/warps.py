"""Warps: what the threads of one block do, one memory instruction at a time, in our CUDA simulator.

A warp is 32 threads that run the code together: an instruction is issued for the threads that have reached it. If
others are elsewhere, they wait: the warp has diverged. The earliest instruction goes first, so that the others catch
up.

    moment        0         1         2               of the first block; every warp takes its next instruction
    warp 0     reads w   reads g   writes w           that touches memory, or waits at a barrier until the others
    warp 1     reads w   reads g   writes w           arrive

Global memory is accessed in segments of 128 bytes: 32 adjacent numbers of 4 bytes need one segment, scattered ones up
to 32. Shared memory has 32 banks of 4 bytes; accesses to different cells of one bank are serialised. Arrays begin at a
segment; only instructions that access memory are recorded.

Source: NVIDIA, CUDA C++ Best Practices Guide, on coalesced access to global memory and on memory banks.
"""

import dis
import functools
import inspect
import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import kernels
from experiments.jobs.spec import JobSpec
from kernels.gpu import simulate_gpu
from kernels.simulator import ADD, READ, WAIT, WRITE
from kernels.watching import Access

__all__ = ["ADD", "READ", "SIZES", "WAIT", "WARP", "WRITE", "Instruction", "Launch", "watch_kernel"]

WARP = 32  # threads
SEGMENT = 128  # bytes
BANK = 4  # bytes
SIZES = (33, 100, 257)  # numbers in a call: more than a warp, less than a block, more than a block
FILE = "launches.json"
MOST = 200  # most accesses of a thread that are recorded per launch


@dataclass(frozen=True)
class Instruction:
    """One instruction of a warp: what its active threads do.

    function, line: its place in the source. cells: index in the array that each active thread (0 to 31) accesses, empty
    at a barrier. elsewhere: threads that have not reached their next instruction, because the warp has diverged.
    """

    function: str
    line: int
    does: str
    active: tuple[int, ...]
    elsewhere: tuple[int, ...] = ()
    array: str = ""
    shared: bool = False
    cells: tuple[int, ...] = ()
    itemsize: int = 0

    @property
    def segments(self) -> list[int]:
        """The segments of global memory that this instruction accesses, numbered from the start of the array."""
        return sorted({cell * self.itemsize // SEGMENT for cell in self.cells})

    @property
    def fewest(self) -> int:
        """The number of segments that the same count of adjacent numbers would need."""
        return -(-len({*self.cells}) * self.itemsize // SEGMENT)

    @property
    def conflict(self) -> int:
        """The largest number of different cells in one bank of shared memory; they are accessed one after the other."""
        return max(Counter(cell * self.itemsize // BANK % WARP for cell in {*self.cells}).values())

    def description(self) -> str:
        """Return a sentence on what the warp does, and how efficiently it uses memory."""
        who = f"{len(self.active)} thread{'s' * (len(self.active) != 1)}"
        rest = f" {len(self.elsewhere)} wait at another line: the warp has diverged." if self.elsewhere else ""
        if self.does == WAIT:
            return f"{who} at the barrier.{rest}"
        does = self.does if len(self.active) == 1 else self.does.replace("s", "", 1)
        what = f"{who} {does} {self.array}[{ranges(self.cells)}]"
        return f"{what}, {self._shared() if self.shared else self._global()}.{rest}"

    def _shared(self) -> str:
        if self.does == ADD:
            return "in shared memory, atomically"
        return "in shared memory, " + (f"{self.conflict} in one bank" if self.conflict > 1 else "no bank conflict")

    def _global(self) -> str:
        count = len(self.segments)
        size = f"{count} segment{'s' * (count != 1)} of {SEGMENT} bytes"
        if len({*self.cells}) == 1 and len(self.cells) > 1:
            return f"{size}, " + ("one addition after another" if self.does == ADD else "the same number for all")
        if count <= self.fewest:
            return f"{size}: coalesced"
        if len({*self.cells}) == max(self.cells) - min(self.cells) + 1:
            return f"{size} where {self.fewest} would do: coalesced, but across a boundary"
        return f"{size} where {self.fewest} would do: not coalesced"


@dataclass(frozen=True)
class Launch:
    """The first block of one kernel launch, of `threads` threads.

    moments: an instruction of each warp for every moment, None for a warp that has nothing to do. functions: first line
    and source, by name, of the kernel and of the device functions in which it accesses memory. cut: True if only the
    first MOST accesses of a thread are here.
    """

    kernel: str
    threads: int
    moments: tuple[tuple[Instruction | None, ...], ...]
    functions: dict[str, tuple[int, str]]
    cut: bool


def watch_kernel(name: str, n: int) -> list[Launch]:
    """Return the launches of a kernel simulated on about n numbers. Raise ValueError if n is not in SIZES."""
    from experiments.measure.kernel_cases import KERNEL_CASES

    if n not in SIZES:
        raise ValueError(f"a kernel on {n} numbers cannot be watched; use one of {', '.join(map(str, SIZES))}.")
    args = KERNEL_CASES[name].arguments(np.random.default_rng(0), n)
    return launches(lambda: getattr(kernels, name).module.gpu(*args))


def job_spec(name: str, n: int) -> JobSpec:
    """Return the job that records a kernel's launches on about n numbers."""
    return JobSpec("threads", {"name": name, "n": n})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    found = [asdict(launch) for launch in watch_kernel(values["name"], values["n"])]
    return JobSpec("threads", values).keep_json(root, FILE, found)


def load(folder: Path) -> list[Launch]:
    return [_read(launch) for launch in json.loads((folder / FILE).read_text("utf-8"))]


def _read(told: dict[str, Any]) -> Launch:
    def step(one: dict[str, Any]) -> Instruction:
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in one.items()}
        return Instruction(**plain)

    moments = tuple(tuple(one and step(one) for one in moment) for moment in told["moments"])
    functions = {name: (first, text) for name, (first, text) in told["functions"].items()}
    return Launch(**{**told, "moments": moments, "functions": functions})


def launches(call: Callable[[], object]) -> list[Launch]:
    """Return the launches that `call` makes, as the simulator runs them."""
    seen: dict[int, dict[int, list[Access]]] = defaultdict(lambda: defaultdict(list))

    def keep(access: Access) -> None:
        if access.block == 0:
            own = seen[access.launch][access.thread]
            if len(own) <= MOST:
                own.append(access)

    with simulate_gpu(keep):
        call()
    return [_launch(threads) for _, threads in sorted(seen.items())]


def _launch(threads: dict[int, list[Access]]) -> Launch:
    cut = max(map(len, threads.values())) > MOST
    kept = {thread: own[:MOST] for thread, own in threads.items()}
    last = max(own[-1].round for own in kept.values())
    kernel, cuda = next((one.kernel, one.memory.cuda) for own in kept.values() for one in own if one.memory)
    count = math.prod(cuda.blockDim)
    moments = []
    for number in range(last + 1):
        by_warp = [
            list(_steps({t % WARP: [a for a in kept.get(t, ()) if a.round == number] for t in range(w, w + WARP)}))
            for w in range(0, count, WARP)
        ]
        for at in range(max(map(len, by_warp))):
            moments.append(tuple(_at(steps, at) for steps in by_warp))
    codes = dict.fromkeys(line.code for own in kept.values() for access in own for line in access.stack)
    functions = {code.co_name: _source(code) for code in codes}
    return Launch(kernel, count, tuple(moments), functions, cut)


def _at(steps: list[Instruction], at: int) -> Instruction | None:
    """Return a warp's instruction at a moment, or None after its last one, unless the warp waits at a barrier."""
    if at < len(steps):
        return steps[at]
    return steps[-1] if steps and steps[-1].does == WAIT else None


def _steps(lanes: dict[int, list[Access]]) -> Iterable[Instruction]:
    """Yield a warp's instructions between two barriers: each time, the earliest that any of its threads has reached."""
    ahead = {lane: iter(own) for lane, own in lanes.items()}
    heads = {lane: first for lane, own in ahead.items() if (first := next(own, None))}
    while heads:
        place = {lane: _place(head) for lane, head in heads.items()}
        earliest = min(place.values())
        active = {lane: head for lane, head in heads.items() if place[lane] == earliest}
        first = next(iter(active.values()))
        line = first.stack[-1]
        where = line.code.co_name, line.number, first.does, tuple(active)
        elsewhere = tuple(lane for lane in heads if lane not in active)
        if first.memory is None:  # at a barrier
            yield Instruction(*where, elsewhere)
        else:
            cells, memory = tuple(head.cell for head in active.values()), first.memory
            yield Instruction(*where, elsewhere, memory.name, memory.shared, cells, memory.dtype.itemsize)
        following = {lane: next(ahead[lane], None) for lane in active}
        heads = {lane: head for lane, head in {**heads, **following}.items() if head}


def _place(access: Access) -> tuple:
    """Return the key that orders a kernel's instructions: lines and loop iterations, from the kernel inwards.

    So threads that skip a branch in a loop wait for the others before the next iteration. Offsets within an instruction
    vary with how the interpreter has specialised it.
    """
    place = []
    for depth, line in enumerate(access.stack):
        place += [(start, turn) for where, start, turn in access.turns if where == depth]
        place.append((line.number, 0))
    *outer, (number, _) = place
    return (*outer, (number, bisect_right(_instructions(access.stack[-1].code), access.offset)))


@functools.cache
def _instructions(code: CodeType) -> list[int]:
    return [instruction.offset for instruction in dis.get_instructions(code)]


def _source(code: CodeType) -> tuple[int, str]:
    lines, first = inspect.getsourcelines(code)
    return first, "".join(lines)


def ranges(cells: Iterable[int], most: int = 4) -> str:
    """Return cells as text with ranges, such as "0…31" or "0, 64, 128, 192, …".

    >>> ranges([3, 1, 2, 7])
    '1…3, 7'
    """
    runs: list[list[int]] = []
    for cell in sorted({*cells}):
        if runs and cell == runs[-1][1] + 1:
            runs[-1][1] = cell
        else:
            runs.append([cell, cell])
    parts = [f"{a}" if a == b else f"{a}…{b}" for a, b in runs[:most]]
    return ", ".join(parts + ["…"] * (len(runs) > most))

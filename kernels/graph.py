"""CUDA graphs: what a function launches on a GPU is captured once, and from then on replayed as a single launch.

    first call      launches kernel by kernel, which compiles and loads the kernels; then captures the launches
    second call     launches and replays, and compares: if a bit differs, the graph is dropped
    later calls     copy the arguments in, replay, copy the results out

A replay repeats addresses and numbers, but runs no Python. The graph therefore has arrays of its own for arguments and
results, and a function qualifies only if what it launches depends on nothing but the shapes of its arguments. The host
reads a loss after the replay (`kernels/capturing.py`).
Source: NVIDIA, CUDA C++ Programming Guide, CUDA Graphs; torch.cuda.CUDAGraph, whose pools keep addresses valid.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.arrays import copy, to_numpy
from kernels.capturing import CAPTURING
from kernels.meter import Prices, meter_kernels

MOST = 4  # graphs of one function, one for each combination of shapes; each holds the memory of a whole call


def capture_launches(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    """Capture what `function()` launches on torch's current GPU, without running it; return (result, replay).

    Arrays in the result have values only after `replay()`, which overwrites them each time. Raise RuntimeError, or what
    the function raises, if CUDA cannot capture it.
    """
    from torch import cuda

    graph, stream = cuda.CUDAGraph(), cuda.Stream()  # the default stream cannot be captured
    # `cuda.graph` does not restore the stream if the capture fails, `cuda.stream` does. Other threads, such as NCCL's,
    # may call what a capture forbids.
    with cuda.stream(stream), cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        result = function()
    return result, graph.replay


class CapturedGradient:
    """A function of arrays that replays the captured launches of `function(*arrays)`, which returns (loss, g). All
    shapes must be those of the captured call.

    The meter is charged for each replay as for the calls that it repeats.
    """

    def __init__(self, function: Callable, arrays: tuple):
        self.inputs = [copy(x) for x in arrays]
        self.prices = Prices()
        self.is_checked = False  # whether a replay has been compared with the launches that it repeats
        token = CAPTURING.set(True)
        try:
            with meter_kernels(self.prices):
                (self.loss, self.g), self.replay = capture_launches(lambda: function(*self.inputs))
        finally:
            CAPTURING.reset(token)

    def __call__(self, *arrays) -> tuple:
        """Return (loss, g), with g a new array."""
        for mine, given in zip(self.inputs, arrays, strict=True):
            mine.copy_(given)
        self.replay()
        self.prices.charge_again()
        return float(self.loss), copy(self.g)


class ReplayedGradient:
    """A function that returns the (loss, g) of `function(*arrays)`, by replaying one CUDA graph for each set of shapes.

    `replays` counts the calls that were replays. Where launches cannot be captured, calls go to `function`, and
    `on_refusal` is called once, with the reason.
    """

    def __init__(self, function: Callable, on_refusal: Callable[[str], object]):
        self.function, self.on_refusal = function, on_refusal
        self.replays = 0
        self._graphs: dict[tuple, CapturedGradient | None] = {}  # None: not captured

    def __call__(self, *arrays) -> tuple:
        kind = tuple((tuple(x.shape), x.dtype) for x in arrays)
        graph = self._graphs.get(kind)
        if graph and graph.is_checked:
            self.replays += 1
            return graph(*arrays)
        result = self.function(*arrays)
        if kind not in self._graphs:
            self._graphs[kind] = self._capture_or_refuse(arrays)
        elif graph:
            with meter_kernels(None):
                graph.is_checked = _bits(graph(*arrays)) == _bits(result)
            if not graph.is_checked:
                self._refuse("a replay computed other bits than the launches that it repeats")
                self._graphs[kind] = None
        return result

    def _capture_or_refuse(self, arrays: tuple) -> CapturedGradient | None:
        if len(self._graphs) < MOST:
            try:
                return CapturedGradient(self.function, arrays)
            except Exception as error:  # CUDA, torch and Numba raise different ones; the same call has just succeeded
                cause = error.__cause__ or error  # a kernel wraps what Numba raises
                self._refuse(str(cause).partition("\n")[0].rstrip(".") or type(cause).__name__)
        else:
            self._refuse(f"there are more than {MOST} batch sizes")
        return None

    def _refuse(self, why: str) -> None:
        if None not in self._graphs.values():
            self.on_refusal(why)


def _bits(result: tuple) -> tuple[bytes, bytes]:
    """Return the bits of (loss, g), so that NaN compares equal to itself."""
    loss, g = result
    return np.float64(loss).tobytes(), to_numpy(g).tobytes()

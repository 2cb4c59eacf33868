"""A GPU without a GPU: tensors in CPU memory, kernels in our simulator, and a stand-in for torch's CUDA graphs.

As on a GPU, nothing runs during a capture: launches are recorded, what torch computes is NaN, and reading a number is
an error. A replay runs the records in order, in the memory that they had.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import kernels.launch
from kernels.capturing import UnreadSum
from kernels.gpu import BACKEND
from kernels.simulator import Simulator

DEFAULT, SIDE = 0, 7  # handles of streams
NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing\nSearch for `cudaError...` in ..."
READ = torch.ops.aten._local_scalar_dense.default


class Launch(NamedTuple):
    """One kernel, or one of torch's operations, with its launch configuration and its arguments."""

    name: str
    configuration: tuple
    args: tuple
    run: object

    @property
    def seen(self) -> tuple:
        """The launch without its addresses: what a graph repeats as it is."""
        return self.name, self.configuration[:2], tuple(map(_described, self.args))

    @property
    def addresses(self) -> tuple:
        return tuple(x.data_ptr() for x in self.args if isinstance(x, torch.Tensor))


def _described(x) -> object:
    return (tuple(x.shape), x.stride(), x.dtype) if isinstance(x, torch.Tensor) else x


class Gpu(Simulator):
    """Runs kernels on tensors, and records them, torch's operations, and the `calls` of the driver."""

    def __init__(self):
        super().__init__()
        self.launches: list[Launch] = []
        self.calls: list[str] = []
        self.stream, self.is_capturing, self.is_replaying = DEFAULT, False, False
        self.runs = True  # if not, launches are only recorded, which takes no time
        self.fault = ""  # what the end of a capture raises

    def launcher(self, kernel, launch):
        def go(*args):
            def run():
                self.run(self.ready(kernel), *launch[:2], *(x.numpy() if torch.is_tensor(x) else x for x in args))

            self.add(Launch(kernel.py_func.__module__, launch, args, run))

        return go

    def add(self, launch: Launch) -> None:
        self.launches.append(launch)
        if not self.is_capturing and self.runs:
            launch.run()


class Operations(TorchDispatchMode):
    """Records what torch computes, as launches; views and empty arrays are none."""

    def __init__(self, gpu: Gpu):
        super().__init__()
        self.gpu = gpu

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        gpu, kwargs, name = self.gpu, kwargs or {}, str(function)
        if function is READ:
            if gpu.is_capturing:
                raise RuntimeError(NOT_PERMITTED)
            return function(*args, **kwargs)
        if gpu.is_replaying or function.is_view or "empty" in name:
            return function(*args, **kwargs)
        place = (None, None, gpu.stream)
        if function._schema.is_mutable:
            gpu.add(Launch(name, place, args, lambda: function(*args, **kwargs)))
            return args[0]
        out = function(*args, **kwargs)
        if gpu.is_capturing and torch.is_tensor(out):
            gpu.launches.append(Launch(name, place, (out, *args), lambda: out.copy_(function(*args, **kwargs))))
            return out.fill_(torch.nan) if out.is_floating_point() else out
        gpu.launches.append(Launch(name, place, (out, *args), lambda: None))
        return out


@pytest.fixture
def gpu(monkeypatch):
    """Yield a stand-in for a GPU, on which tensors in CPU memory are."""
    gpu = Gpu()

    class CUDAGraph:
        def replay(self) -> None:
            gpu.calls.append(f"replay on stream {gpu.stream}")
            gpu.is_replaying = True
            for launch in self.launches:
                launch.run()
            gpu.is_replaying = False

    @contextmanager
    def stream(other):
        before, gpu.stream = gpu.stream, other.cuda_stream
        gpu.calls.append(f"to stream {gpu.stream}")
        try:
            yield
        finally:
            gpu.stream = before
            gpu.calls.append(f"to stream {gpu.stream}")

    @contextmanager
    def graph(one, stream, capture_error_mode):
        gpu.calls.append(f"begin capture of stream {stream.cuda_stream}, {capture_error_mode}")
        first, gpu.is_capturing = len(gpu.launches), True
        try:
            yield
        finally:
            gpu.is_capturing = False
            gpu.calls.append("end capture")
            one.launches = gpu.launches[first:]
        if gpu.fault:
            raise RuntimeError(gpu.fault)

    def current(device=None):
        return SimpleNamespace(cuda_stream=gpu.stream)

    own = {"CUDAGraph": CUDAGraph, "graph": graph, "stream": stream, "current_stream": current}
    for name, value in {**own, "Stream": lambda: SimpleNamespace(cuda_stream=SIDE)}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(kernels.launch, "_stream", lambda device, handle: handle)
    token = BACKEND.set(gpu)
    with Operations(gpu):
        yield gpu
    BACKEND.reset(token)


@pytest.fixture
def quick_gpu(gpu, monkeypatch):
    """Yield the same, where one launch is a whole kernel, computed by its cpu implementation: fast enough for runs."""
    called = kernels.Kernel.__call__

    def call(kernel, *args):
        if not torch.is_tensor(args[0]):
            return called(kernel, *args)
        plain, returned = [x.numpy() if torch.is_tensor(x) else x for x in args], []
        if not gpu.is_capturing:
            gpu.add(Launch(kernel.name, (), args, lambda: returned.append(called(kernel, *plain))))
            return returned[0]
        loss = torch.full((1,), torch.nan, dtype=torch.float64)

        def run() -> None:
            with kernels.meter_kernels(None):
                value = called(kernel, *plain)
            loss.fill_(0.0 if value is None else value)

        kernel.charge(*args)
        gpu.add(Launch(kernel.name, (), args, run))
        return UnreadSum(loss, 1)

    monkeypatch.setattr(kernels.Kernel, "__call__", call)
    return gpu

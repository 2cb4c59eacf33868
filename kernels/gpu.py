"""GPU side of the kernels: the only access to a CUDA compiler, which is loaded when a kernel is first launched.

A kernel file uses `@cuda.jit`, or `@elementwise` of `kernels/launch.py`; both only register the function. The first
launch chooses the backend that runs it:

    on a GPU                numba-cuda where it is installed (`pip install "lockstep[gpu]"`), else what is built into
                            Numba, else a message that says what to install
    in `simulate_gpu()`     our simulator (`kernels/simulator.py`), which runs it on the CPU as plain Python

The chosen backend receives a copy of the function whose globals refer to the real `cuda` module and compiled device
functions instead of this module's placeholders. So without a GPU neither package is imported, and neither can break a
kernel's CPU side.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["cuda", "numba_cuda", "simulate_gpu"]

INSTALL = 'pip install "numba-cuda>=0.30,<0.31" "numpy<2.5"'


class Deferred:
    """A kernel or device function that is not compiled yet. Kernels are launched by `kernel[blocks, threads,
    stream](...)`.
    """

    def __init__(self, function: Callable, device: bool):
        functools.update_wrapper(self, function)  # type: ignore[arg-type]  # typeshed wants it to be callable
        self.py_func, self.device = function, device

    def __getitem__(self, launch):
        return (BACKEND.get() or _compiler()).launcher(self, launch)


class LazyCuda:
    """The `cuda` that kernel files import: `jit` wraps a function in `Deferred`; other names exist only in kernels."""

    def jit(self, function: Callable | None = None, *, device: bool = False):
        return Deferred(function, device) if function else functools.partial(Deferred, device=device)

    def __getattr__(self, name: str):
        raise AttributeError(
            f"cuda.{name} can be used only inside a running kernel; outside, only cuda.jit is available."
        )


cuda = LazyCuda()


class Backend:
    """A compiler or simulator that runs kernels. `cuda` is its module of that name. Compiled kernels are cached."""

    def __init__(self, cuda: Any):
        self.cuda = cuda
        self._ready: dict[Deferred, Any] = {}
        self._launchers: dict[tuple, Callable] = {}

    def launcher(self, kernel: Deferred, launch: tuple) -> Callable:
        """Return a function that launches the kernel with (blocks, threads, stream)."""
        if (kernel, launch) not in self._launchers:
            self._launchers[kernel, launch] = self.ready(kernel)[launch]  # cached: this takes a fifth of a launch
        return self._launchers[kernel, launch]

    def ready(self, deferred: Deferred) -> Any:
        """Return the kernel or device function, compiled for this backend."""
        if deferred not in self._ready:
            self._ready[deferred] = self.compile(deferred)
        return self._ready[deferred]

    def compile(self, deferred: Deferred) -> Any:
        """Return a compiled kernel, which is cached on disk, or a device function, which becomes part of its
        callers.
        """
        if deferred.device:
            return self.cuda.jit(self.bind(deferred.py_func), device=True)
        from kernels.compiled import until_changed

        kernel = self.cuda.jit(self.bind(deferred.py_func), cache=True)
        until_changed(kernel, deferred.py_func)
        return kernel

    def bind(self, function: Callable) -> Callable:
        """Return a copy of a function whose globals and closure are those of this backend."""
        names = dict(function.__globals__)
        names.update({name: self.resolve_global(names[name]) for name in function.__code__.co_names if name in names})
        cells = tuple(CellType(self.resolve_global(cell.cell_contents)) for cell in function.__closure__ or ())
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        return functools.update_wrapper(copy, function)

    def resolve_global(self, value: Any) -> Any:
        """Return this backend's value for a global of a kernel."""
        if value is cuda:
            return self.cuda
        return self.ready(value) if isinstance(value, Deferred) else value


class Compiler(Backend):
    """Numba's compiler for GPUs; torch tensors are passed to it as Numba arrays on the same memory."""

    def launcher(self, kernel: Deferred, launch: tuple) -> Callable:
        launcher = super().launcher(kernel, launch)
        return lambda *args: launcher(*map(self._argument, args))

    def _argument(self, x: Any) -> Any:
        """Return an argument in a form that Numba accepts directly; it would inspect a tensor at every launch."""
        if not hasattr(x, "data_ptr") or not x.numel():  # Numba's empty arrays have no address
            return x
        strides = None if x.is_contiguous() else x.stride()
        return self._view(x.data_ptr(), tuple(x.shape), strides, x.dtype)

    @functools.lru_cache(4096)  # noqa: B019 - there is a single compiler, which is never freed
    def _view(self, address: int, shape: tuple, strides: tuple | None, dtype: Any) -> Any:
        """Return Numba's array at an address; it does not keep the memory alive."""
        kind = np.dtype(str(dtype).removeprefix("torch."))
        steps = strides and tuple(stride * kind.itemsize for stride in strides)
        seen = {"data": (address, False), "shape": shape, "strides": steps, "typestr": kind.str, "version": 3}
        return self.cuda.as_cuda_array(SimpleNamespace(__cuda_array_interface__=seen))


BACKEND: ContextVar[Backend | None] = ContextVar("lockstep_gpu", default=None)


@contextmanager
def simulate_gpu(watch: Callable | None = None) -> Iterator[None]:
    """Inside this context, run GPU kernels on the CPU, on NumPy arrays, in our simulator.

    `watch(access)` is called with every memory access, a `kernels.watching.Access`. Raises `Race` or `DivergentBarrier`
    of `kernels/simulator.py` if threads break the rules of a GPU's blocks.
    """
    from kernels.simulator import Simulator
    from kernels.watching import Watching

    token = BACKEND.set(Watching(watch) if watch else Simulator())
    try:
        yield
    finally:
        BACKEND.reset(token)


def numba_cuda():
    """Return the module `numba.cuda`. If there is none, raise ImportError that names the package to install.

    An installed numba-cuda replaces the one built into Numba, under the same name.
    """
    try:
        from numba import cuda as module
    except ImportError as error:
        raise ImportError(
            "no CUDA compiler for GPU kernels: this Numba has no built-in one, and numba-cuda is not installed. "
            f"Try `{INSTALL}`, or run on the CPU."
        ) from error
    return module


@functools.cache
def _compiler() -> Backend:
    from numba.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # Numba warns of every small vector, and ours are often small
    module = numba_cuda()
    if "numba_cuda" in str(module.__file__) and not hasattr(np, "row_stack"):  # numba-cuda 0.30 uses it
        raise ImportError(f"numba-cuda needs NumPy older than 2.5, but {np.__version__} is installed. Try `{INSTALL}`.")
    return Compiler(module)

"""GPU side of the kernels: the one door to a CUDA compiler, which nobody opens before a kernel is launched.

A kernel file says `from kernels.gpu import cuda` and `@cuda.jit`: the function is only written down. Its first launch
decides who runs it:

    on a GPU                numba-cuda where it is installed (`pip install "lockstep[gpu]"`), else what is built into
                            Numba, else a message that says what to install
    in `simulated()`        our simulator (`kernels/simulator.py`), which runs it on the CPU as plain Python

Whoever it is gets a copy of the function, whose globals name the real `cuda` and compiled device functions where the
file names the door's. So without a GPU neither package is imported, and neither can break a kernel's CPU side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["cuda", "numba_cuda", "simulated"]

INSTALL = 'pip install "numba-cuda>=0.30,<0.31" "numpy<2.5"'


class Deferred:
    """A kernel, launched by `kernel[blocks, threads, stream](...)`, or a device function, for whoever runs it."""

    def __init__(self, function: Callable, device: bool):
        functools.update_wrapper(self, function)  # type: ignore[arg-type]  # typeshed wants it to be callable
        self.py_func, self.device = function, device

    def __getitem__(self, launch):
        return (BACKEND.get() or _compiler()).launched(self, launch)


class LazyCuda:
    """What kernel files call `cuda`: it writes down what `jit` decorates. The rest has a meaning in kernels only."""

    def jit(self, function: Callable | None = None, *, device: bool = False):
        return Deferred(function, device) if function else functools.partial(Deferred, device=device)

    def __getattr__(self, name: str):
        raise AttributeError(f"cuda.{name} exists only inside a kernel that is launched; here there is cuda.jit.")


cuda = LazyCuda()


class Backend:
    """What runs kernels: `cuda` is its module of that name, and what its `jit` has made of functions is kept."""

    def __init__(self, cuda: Any):
        self.cuda = cuda
        self._ready: dict[Deferred, Any] = {}
        self._launchers: dict[tuple, Callable] = {}

    def launched(self, kernel: Deferred, launch: tuple) -> Callable:
        """Return what launches the kernel with (blocks, threads, stream)."""
        if (kernel, launch) not in self._launchers:
            self._launchers[kernel, launch] = self.ready(kernel)[launch]  # which takes a fifth of a launch
        return self._launchers[kernel, launch]

    def ready(self, deferred: Deferred) -> Any:
        """Return the kernel or device function as it is here."""
        if deferred not in self._ready:
            self._ready[deferred] = self.made(deferred)
        return self._ready[deferred]

    def made(self, deferred: Deferred) -> Any:
        """Return a kernel, which is kept on disk once compiled, or a device function, a part of those that call it."""
        if deferred.device:
            return self.cuda.jit(self.bound(deferred.py_func), device=True)
        from kernels.compiled import until_changed

        kernel = self.cuda.jit(self.bound(deferred.py_func), cache=True)
        until_changed(kernel, deferred.py_func)
        return kernel

    def bound(self, function: Callable) -> Callable:
        """Return a copy of a function whose globals, and what it closes over, are those of this backend."""
        names = dict(function.__globals__)
        names.update({name: self.meant(names[name]) for name in function.__code__.co_names if name in names})
        cells = tuple(CellType(self.meant(cell.cell_contents)) for cell in function.__closure__ or ())
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        return functools.update_wrapper(copy, function)

    def meant(self, value: Any) -> Any:
        """Return what a name of a kernel means here."""
        if value is cuda:
            return self.cuda
        return self.ready(value) if isinstance(value, Deferred) else value


class Compiler(Backend):
    """Numba's compiler for GPUs, which is given its own arrays on the memory of torch's."""

    def launched(self, kernel: Deferred, launch: tuple) -> Callable:
        launcher = super().launched(kernel, launch)
        return lambda *args: launcher(*map(self._argument, args))

    def _argument(self, x: Any) -> Any:
        """Return an argument as Numba takes it at once. Of a tensor it would find out at every launch what it is."""
        if not hasattr(x, "data_ptr") or not x.numel():  # Numba gives its own empty arrays no address
            return x
        strides = None if x.is_contiguous() else x.stride()
        return self._view(x.data_ptr(), tuple(x.shape), strides, x.dtype)

    @functools.lru_cache(4096)  # noqa: B019 - there is one compiler, which lasts
    def _view(self, address: int, shape: tuple, strides: tuple | None, dtype: Any) -> Any:
        """Return Numba's array at an address, which does not keep the memory."""
        kind = np.dtype(str(dtype).removeprefix("torch."))
        steps = strides and tuple(stride * kind.itemsize for stride in strides)
        seen = {"data": (address, False), "shape": shape, "strides": steps, "typestr": kind.str, "version": 3}
        return self.cuda.as_cuda_array(SimpleNamespace(__cuda_array_interface__=seen))


BACKEND: ContextVar[Backend | None] = ContextVar("lockstep_gpu", default=None)


@contextmanager
def simulated(watch: Callable | None = None) -> Iterator[None]:
    """Run the GPU kernels that are launched inside on the CPU, on NumPy arrays, by our simulator.

    watch(access) is told every access to memory, a `kernels.watching.Access`. Race and DivergentBarrier of
    `kernels/simulator.py` if threads do what a block of a GPU must not.
    """
    from kernels.simulator import Simulator
    from kernels.watching import Watching

    token = BACKEND.set(Watching(watch) if watch else Simulator())
    try:
        yield
    finally:
        BACKEND.reset(token)


def numba_cuda():
    """Return the module `numba.cuda`; ImportError with what to install if there is none.

    Where numba-cuda is installed it takes the place of the one built into Numba, under the same name.
    """
    try:
        from numba import cuda as module
    except ImportError as error:
        raise ImportError(
            "no CUDA compiler for GPU kernels: this Numba has none built in, and numba-cuda is not installed. "
            f"Try `{INSTALL}`, or run on the CPU."
        ) from error
    return module


@functools.cache
def _compiler() -> Backend:
    from numba.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # Numba warns for every small vector, and ours are often small
    module = numba_cuda()
    if "numba_cuda" in str(module.__file__) and not hasattr(np, "row_stack"):  # which numba-cuda 0.30 names
        raise ImportError(f"numba-cuda needs NumPy before 2.5, and this is {np.__version__}. Try `{INSTALL}`.")
    return Compiler(module)

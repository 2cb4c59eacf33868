"""Launch configurations of CUDA kernels: blocks, threads and stream.

Numba works on the device that torch has made current, so a rank calls `torch.cuda.set_device` before its first kernel.
"""

from collections.abc import Callable
from functools import cache, wraps

import numpy as np

from kernels.compiled import STRIDED
from kernels.gpu import cuda, numba_cuda

THREADS = 256
MAX_BLOCKS = 4096


def elementwise(function: Callable) -> Callable:
    """Return a function that launches the kernel `function`, which computes each element independently.

    The returned function raises ValueError if its arrays differ in shape.
    """
    kernel = cuda.jit(function)

    @wraps(function)
    def launch(*args):
        kernel[over(*(x for x in args if getattr(x, "ndim", 0)))](*args)

    return launch


def over(array, *others) -> tuple:
    """Return the launch configuration of an elementwise kernel over these arrays: `kernel[over(w, g)](w, g)`.

    Raise ValueError if their shapes differ.
    """
    if any(other.shape != array.shape for other in others):
        shapes = " and ".join(str(tuple(x.shape)) for x in (array, *others))
        raise ValueError(f"the arrays of this call have shapes {shapes}; their shapes must be equal.")
    return grid(array.size if isinstance(array, np.ndarray) else array.numel()), THREADS, stream_of(array)


def flatten(*arrays) -> list:
    """Return contiguous arrays as vectors on the same memory. Raise ValueError if one is strided."""
    return reshape((-1,), *arrays)


def reshape(shape: tuple, *arrays) -> list:
    """Return contiguous arrays in another shape, on the same memory. Raise ValueError if one is strided."""
    if not all(x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous() for x in arrays):
        raise ValueError(STRIDED)
    return [x.reshape(shape) for x in arrays]


def grid(elements: int) -> int:
    """Return the number of blocks of `THREADS` threads for a grid-stride loop over `elements`, at least 1."""
    return max(1, min(MAX_BLOCKS, -(-elements // THREADS)))


def blocks_over(count: int, array) -> tuple:
    """Return the launch configuration of a kernel whose blocks share `count` items among them, on `array`'s stream."""
    return max(1, min(MAX_BLOCKS, count)), THREADS, stream_of(array)


def stream_of(array):
    """Return the stream to launch on: torch's current stream for a torch tensor, otherwise the default stream."""
    if isinstance(array, np.ndarray):
        return 0
    import torch

    return _stream(array.device, torch.cuda.current_stream(array.device).cuda_stream)


@cache
def _stream(device, handle: int):
    return numba_cuda().external_stream(handle)

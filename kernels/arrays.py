"""Arrays: the operations whose names differ between NumPy arrays and torch GPU tensors.

On a CPU an array is a NumPy array, on a GPU a torch CUDA tensor. Algorithms use what both share (`+ - * @`,
in-place forms, slices) and these few functions for the rest. torch is imported lazily: an array that is not
NumPy's implies that it is loaded already.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from kernels.capturing import forbid_in_capture
from kernels.meter import METER


def copy(x):
    """Return a new array with the values of `x`, on the same device."""
    return x.copy() if isinstance(x, np.ndarray) else x.clone()


def zeros_like(x):
    """Return zeros with the shape, type and device of `x`."""
    return np.zeros_like(x) if isinstance(x, np.ndarray) else x.new_zeros(x.shape)


def state_like(w):
    """Return zeros like `w` for the state of an optimizer; the meter of the calling rank accounts for the memory."""
    return keep(zeros_like(w), "optimizer state")


def keep(x, kind: str = "buffers"):
    """Return `x` after charging its memory to the calling rank's meter; for arrays kept from step to step."""
    if meter := METER.get():
        meter.keep(kind, x.nbytes)
    return x


def empty_like(x):
    """Return an uninitialised array with the shape, type and device of `x`."""
    return np.empty_like(x) if isinstance(x, np.ndarray) else x.new_empty(x.shape)


def empty(shape, like, kind: str | None = None):
    """Return an uninitialised array of `shape` on the device of `like`, with its dtype or `kind`, e.g. "uint8"."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, kind or like.dtype)
    if kind is None:
        return like.new_empty(shape)
    import torch

    return like.new_empty(shape, dtype=getattr(torch, kind))


def concatenate(parts, axis: int = 0):
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis)
    import torch

    return torch.cat(tuple(parts), axis)


def take(x, pieces, axis: int = 0):
    """Return several slices of `x` along an axis, concatenated into a new array."""
    return concatenate([x[(slice(None),) * axis + (piece,)] for piece in pieces], axis)


def beside(x: np.ndarray, like):
    """Return `x` as an array on the device of `like`."""
    return x if isinstance(like, np.ndarray) else _tensor(x, like.device)


def to_device(x: np.ndarray, device: str):
    """Return `x` as an array on `device`: a NumPy array for "cpu", a torch tensor for "cuda:0"."""
    return x if device == "cpu" else _tensor(x, device)


def _tensor(x: np.ndarray, device):
    import torch

    forbid_in_capture("the host sends numbers to the GPU")
    return torch.tensor(x, device=device)  # a copy, since an array may be read-only


def to_numpy(x) -> np.ndarray:
    """Return the values of `x` as a NumPy array."""
    if isinstance(x, np.ndarray):
        return x
    forbid_in_capture("the host reads numbers from the GPU")
    return x.detach().cpu().numpy()


def arrays_in(nest) -> Iterator:
    """Yield the arrays in nested tuples and lists."""
    if isinstance(nest, tuple | list):
        for part in nest:
            yield from arrays_in(part)
    elif isinstance(nest, np.ndarray) or hasattr(nest, "data_ptr"):
        yield nest


def extents(nest) -> dict[int, int]:
    """Return the size in bytes of each array in nested tuples and lists, by address; a repeated array counts once."""
    if isinstance(nest, tuple | list):
        return {address: nbytes for part in nest for address, nbytes in extents(part).items()}
    if isinstance(nest, np.ndarray):
        return {nest.__array_interface__["data"][0]: nest.nbytes}
    return {nest.data_ptr(): nest.nbytes} if hasattr(nest, "data_ptr") else {}


def shares(length: int, parts: int) -> list[slice]:
    """Return `parts` consecutive slices of `length` elements whose sizes differ by at most one, larger ones first.

    >>> [(s.start, s.stop) for s in shares(7, 3)]
    [(0, 3), (3, 5), (5, 7)]
    """
    size, larger = divmod(length, parts)
    edges = [part * size + min(part, larger) for part in range(parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]

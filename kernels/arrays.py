"""Arrays: what NumPy arrays and torch GPU tensors do not spell alike.

On a CPU an array is a NumPy array, on a GPU a torch CUDA tensor. Algorithms use what both share (`+ - * @`,
in-place forms, slices) and these few functions for the rest. torch is never imported here: an array that is not
NumPy's already brought it along.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernels.meter import METER


def copy(x):
    """A new array with the values of `x`, on the same device."""
    return x.copy() if isinstance(x, np.ndarray) else x.clone()


def zeros_like(x):
    """Zeros of the shape, type and device of `x`."""
    return np.zeros_like(x) if isinstance(x, np.ndarray) else x.new_zeros(x.shape)


def state_like(w):
    """Zeros like `w` that an update rule will remember; whoever meters the calling rank is told of the memory."""
    state = zeros_like(w)
    if meter := METER.get():
        meter.keep("optimizer state", state.nbytes)
    return state


def empty_like(x):
    """Unset memory of the shape, type and device of `x`."""
    return np.empty_like(x) if isinstance(x, np.ndarray) else x.new_empty(x.shape)


def empty(shape, like, kind: str | None = None):
    """Unset memory of `shape` on the device of `like`, with its type or numbers of another `kind`, such as "uint8"."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, kind or like.dtype)
    if kind is None:
        return like.new_empty(shape)
    import torch

    return like.new_empty(shape, dtype=getattr(torch, kind))


def joined(parts, axis: int = 0):
    """One array of several, one after the other along `axis`."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis)
    import torch

    return torch.cat(tuple(parts), axis)


def beside(x: np.ndarray, like):
    """`x` as an array of the device where `like` lies."""
    return x if isinstance(like, np.ndarray) else to_device(x, str(like.device))


def to_device(x: np.ndarray, device: str):
    """`x` as an array of `device`: "cpu" keeps NumPy, "cuda:0" makes a torch tensor there."""
    if device == "cpu":
        return x
    import torch

    return torch.as_tensor(x, device=device)


def to_numpy(x) -> np.ndarray:
    """The values of `x` in the memory of the CPU."""
    return x if isinstance(x, np.ndarray) else x.detach().cpu().numpy()


def extents(nest) -> dict[int, int]:
    """Bytes by address of the arrays in a nest of tuples and lists: what is in there twice has one address."""
    if isinstance(nest, tuple | list):
        return {address: nbytes for part in nest for address, nbytes in extents(part).items()}
    if isinstance(nest, np.ndarray):
        return {nest.__array_interface__["data"][0]: nest.nbytes}
    return {nest.data_ptr(): nest.nbytes} if hasattr(nest, "data_ptr") else {}


def shares(length: int, parts: int) -> list[slice]:
    """`length` elements in `parts` consecutive slices whose sizes differ by at most one, larger ones first.

    >>> [(s.start, s.stop) for s in shares(7, 3)]
    [(0, 3), (3, 5), (5, 7)]
    """
    size, larger = divmod(length, parts)
    edges = [part * size + min(part, larger) for part in range(parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]

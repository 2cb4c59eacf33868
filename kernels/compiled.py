"""Compiler options of all kernels.

    @formula    one element's arithmetic, inlined into both implementations, so that they cannot diverge
    @exact      a CPU loop without reassociation, which rounds as NumPy does

Fast math is off. Elementwise kernels are bound by memory and gain nothing from it, but update rules that are equal on
paper would differ in the last bit wherever the compiler fuses a multiplication and an addition in only one of them.
A kernel with a long sum may allow {"reassoc", "contract", "arcp", "nsz"}; never nnan or ninf, since divergence is
detected as NaN.

Division follows NumPy: x / 0 is an infinity, not an exception, since the check for it would prevent vectorisation.
Compiled loops do no bounds checks, so elementwise ones iterate over `length(w, g)`, which compares the sizes.
"""

import hashlib
import inspect
from functools import partial
from pathlib import Path

import numpy as np

from kernels import compiling
from kernels.compiler import COMPILES, is_jitted, literal_unroll, njit, overload

if COMPILES:
    from numba.core import event

    class _Compilations(event.Listener):
        """A listener that reports Numba's compilations to `kernels.compiling`. Loading a kernel from disk does not
        count as a compilation.
        """

        def on_start(self, _):
            compiling.begin()

        def on_end(self, _):
            compiling.end()

    event.register("numba:compile", _Compilations())

STRIDED = "an array of this call is strided; pass x.copy() instead of x, and read the result from the copy."
WHOLE = "the first array of this call holds whole numbers and cannot store the result; use float32 or float64."

formula = njit(inline="always", error_model="numpy")


def on_disk(plain=None, **options):
    """Return a decorator that compiles a function and caches it on disk. Raise OSError if no folder is writable.

    `plain` takes the function's place where there is no compiler. It computes the same in NumPy, and is given if the
    function's loop would be slow in Python.
    """

    def compile(function):
        if not COMPILES:
            return plain or function
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:  # Numba found no folder to write to
            raise OSError(
                f"compiled kernels cannot be kept: neither {Path(inspect.getfile(function)).parent} nor the home "
                "folder can be written to; set NUMBA_CACHE_DIR to a writable folder."
            ) from error

    return compile


def exact(function=None, *, plain=None):
    """Return the compiled function. It is cached on disk until its file, or the file of a function it calls, changes.

    Numba itself checks only the function's own file. With `plain` alone, as in `on_disk`, return a decorator.
    """
    if function is None:
        return partial(exact, plain=plain)
    compiled = on_disk(plain, nogil=True, error_model="numpy")(function)
    if is_jitted(compiled):  # not under NUMBA_DISABLE_JIT
        until_changed(compiled, function)
    return compiled


def until_changed(compiled, function) -> None:
    """Invalidate Numba's cache of `function` when the file of any kernel code it calls has changed."""
    kept = compiled._cache._cache_file
    kept._source_stamp = kept._source_stamp, _digest(function)


def is_whole(array) -> bool:
    """True if an array, on a CPU or a GPU, holds whole numbers. Compiled functions can call it."""
    return array.dtype.kind in "iub" if isinstance(array, np.ndarray) else not array.dtype.is_floating_point


@overload(is_whole, inline="always")
def _is_whole(array):
    from numba import types

    whole = not isinstance(array.dtype, types.Float)
    return lambda array: whole


@njit(error_model="numpy")
def length(array, *others):
    """Return the length shared by all vectors of a call.

    Raise ValueError if lengths differ, if an array is not a vector, or if the first one, the result, holds whole
    numbers and another does not.
    """
    vectors = array.ndim == 1
    for other in literal_unroll(others):
        vectors = vectors and other.ndim == 1
        if is_whole(array) and not is_whole(other):
            raise ValueError(WHOLE)
        if other.size != array.size:
            raise ValueError("the arrays of this call have different lengths; their lengths must be equal.")
    if not vectors:
        raise ValueError("the arrays of this call must be vectors: pass x.reshape(-1) instead of x.")
    return array.size


@njit(error_model="numpy")
def flat(array):
    """Return a contiguous array as a vector on the same memory. Raise ValueError if it is strided."""
    if not array.flags.c_contiguous:
        raise ValueError(STRIDED)
    return array.ravel()


def _digest(function) -> str:
    """Return a digest of the files of all kernel functions that a function can call, directly or indirectly."""
    files, wanted = set(), [function]
    while wanted:
        one = wanted.pop()
        file = Path(inspect.getfile(one))
        if file not in files and file.exists():  # a notebook's cell is not a file
            files.add(file)
            wanted += [
                getattr(known, "py_func", known)
                for known in one.__globals__.values()
                if hasattr(known, "py_func") or (inspect.isfunction(known) and known.__module__.startswith("kernels."))
            ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()

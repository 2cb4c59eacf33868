"""The compiler: Numba or, where it cannot be imported, e.g. in a browser, decorators that change nothing.

Without a compiler every kernel runs its `reference`, in NumPy, and `COMPILES` is False. Other files take Numba's names
from here, except inside functions that only Numba calls. The CUDA compiler is loaded by `kernels/gpu.py`.
"""

__all__ = [
    "COMPILES",  # whether there is a compiler
    "REASON",  # if not, why
    "int32",
    "intrinsic",
    "is_jitted",
    "literal_unroll",
    "njit",
    "overload",
    "register_jitable",
]

try:
    from numba import int32, literal_unroll, njit
    from numba.extending import intrinsic, is_jitted, overload, register_jitable
except ImportError as error:
    from kernels.uncompiled import int32, intrinsic, is_jitted, literal_unroll, njit, overload, register_jitable

    COMPILES, REASON = False, str(error)
else:
    COMPILES, REASON = True, ""

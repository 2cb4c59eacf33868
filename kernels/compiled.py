"""Compiler options of all kernels.

    @formula    one element's arithmetic, inlined into both implementations, so that they cannot diverge
    @exact      a CPU loop without reassociation, which rounds as NumPy does

Fast math is off. Elementwise kernels are bound by memory and gain nothing from it, but update rules that are equal on
paper would differ in the last bit wherever the compiler fuses a multiplication and an addition in one and not in the
other. A kernel with a long sum may allow {"reassoc", "contract", "arcp", "nsz"}; never nnan or ninf, since divergence
is detected as NaN.

Division follows NumPy, x / 0 is an infinity and not an exception: the check for it would prevent vectorisation.
Compiled loops do no bounds checks, so elementwise ones iterate over `length(w, g)`, which compares the sizes.
"""

from numba import literal_unroll, njit

formula = njit(inline="always", error_model="numpy")
exact = njit(cache=True, nogil=True, error_model="numpy")


@njit(error_model="numpy")
def length(array, *others):
    """Return the number of elements of every array of a call; ValueError if they differ."""
    for other in literal_unroll(others):
        if other.size != array.size:
            raise ValueError("the arrays of this call have different lengths; they must be alike.")
    return array.size

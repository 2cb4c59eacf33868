"""Compiling: how every kernel meets the compiler, decided once.

    @formula    one element's arithmetic, inlined into both implementations, so that they cannot diverge
    @exact      a CPU loop that rounds as it is written, as NumPy does

Fast mathematics is off. Elementwise kernels are bound by memory and gain nothing from it, but rules that are equal on
paper would differ in the last bit, wherever the compiler fuses a multiplication into an addition in one and not in
the other. A kernel with a long sum may allow {"reassoc", "contract", "arcp", "nsz"}; never nnan or ninf, since a
diverging run must be seen as NaN.

Division is NumPy's, x / 0 is an infinity and no exception: the test for it would keep a loop from using vector
instructions. Compiled loops do not look where an array ends, so elementwise ones run over `length(w, g)`, which does.
"""

from numba import literal_unroll, njit

formula = njit(inline="always", error_model="numpy")
exact = njit(cache=True, nogil=True, error_model="numpy")


@njit(error_model="numpy")
def length(array, *others):
    """The number of elements that all arrays of a call have. ValueError if they differ."""
    for other in literal_unroll(others):
        if other.size != array.size:
            raise ValueError("the arrays of this call have different lengths; they must be alike.")
    return array.size

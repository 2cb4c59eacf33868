"""Compiling: how every kernel meets the compiler, decided once.

    @formula    one element's arithmetic, inlined into both twins, so that they cannot drift apart
    @exact      a CPU loop that rounds as it is written, as NumPy does: for everything elementwise
    @relaxed    a CPU loop whose sums may be reordered, which a long sum needs to use vector instructions

Elementwise kernels are bound by memory and gain nothing from relaxed rounding, but two rules that are equal on paper
would then differ in the last bit wherever the compiler fuses a multiplication into an addition in one and not in the
other. `relaxed` leaves out nnan and ninf: a diverging run must be seen as NaN. Both divide as NumPy does, x / 0 is an
infinity and no exception; the test for it would also keep a loop from using vector instructions.

Compiled loops do not look where an array ends, so elementwise ones run over `length(w, g)`, which does.
"""

from numba import literal_unroll, njit

RELAXED = {"reassoc", "contract", "arcp", "nsz"}

formula = njit(inline="always", error_model="numpy")
exact = njit(cache=True, nogil=True, error_model="numpy")
relaxed = njit(cache=True, nogil=True, error_model="numpy", fastmath=RELAXED)


@njit(error_model="numpy")
def length(array, *others):
    """The number of elements that all arrays of a call have. ValueError if they differ."""
    for other in literal_unroll(others):
        if other.size != array.size:
            raise ValueError("the arrays of this call have different lengths; they must be alike.")
    return array.size

"""SGD: one step down the gradient.

    w <- w - lr g

Price: 2 FLOPs and 3 words per parameter (read w and g, write w): bound by memory everywhere. On a GPU, below about
10^5 parameters the launch costs more than the work.
Source: Robbins & Monro, Annals of Mathematical Statistics 22(3), 1951.
"""

from numba import cuda, njit

from kernels.launch import THREADS, grid, stream_of

FLOPS, WORDS = 2, 3


def element(w, g, learning_rate):
    return w - learning_rate * g


def reference(w, g, learning_rate):
    w -= learning_rate * g


_element_cpu = njit(inline="always")(element)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
def cpu(w, g, learning_rate):
    rate = w.dtype.type(learning_rate)
    for i in range(w.size):
        w[i] = _element_cpu(w[i], g[i], rate)


_element_gpu = cuda.jit(device=True)(element)


@cuda.jit
def _launch(w, g, rate):
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i] = _element_gpu(w[i], g[i], rate)


def gpu(w, g, learning_rate):
    _launch[grid(w.shape[0]), THREADS, stream_of(w)](w, g, learning_rate)

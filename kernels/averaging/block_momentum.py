"""Block momentum (BMUF): the mean update of a block of mini-batches, treated as a gradient and low-pass filtered.

    D <- bm D + zeta G        W <- W + stride D        Wg <- W + look D

W is the model, Wg what the workers start the next block from. The forms differ only in (stride, look): classical
(1, 0), Nesterov (1, bm), and the Nesterov form of public code (1 + bm, 0), whose W is the point ahead.
Under a constant G the model moves stride zeta / (1 - bm) G per block.

Price: 7 FLOPs and 6 words per parameter (read D, G and W, write all but G); three more vectors of memory.
Source: Chen & Huo, ICASSP 2016.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 7, 6


def reference(start, model, step, drift, momentum, rate, stride, look):  # Wg, W, D, G
    step[...] = momentum * step + rate * drift
    model += stride * step
    start[...] = model + look * step


@formula
def element(model, step, drift, bm, zeta, stride, look):
    step = bm * step + zeta * drift
    model = model + stride * step
    return model + look * step, model, step


@exact
def cpu(start, model, step, drift, momentum, rate, stride, look):
    real = model.dtype.type
    bm, zeta, along, ahead = real(momentum), real(rate), real(stride), real(look)
    for i in range(length(start, model, step, drift)):
        start[i], model[i], step[i] = element(model[i], step[i], drift[i], bm, zeta, along, ahead)


@elementwise
def gpu(start, model, step, drift, momentum, rate, stride, look):
    real = model.dtype.type
    bm, zeta, along, ahead = real(momentum), real(rate), real(stride), real(look)
    for i in range(cuda.grid(1), model.size, cuda.gridsize(1)):
        start[i], model[i], step[i] = element(model[i], step[i], drift[i], bm, zeta, along, ahead)

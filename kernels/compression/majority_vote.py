"""Majority vote: each bit takes the value that most ballots have.

    bit_i <- 1 if more than half of the ballots have it set, 0 if less than half; if it is half, as on ballot `chair`

packed, bytes; ballots (voters, bytes).
Price: 2 operations per bit of the ballots, which are read once.
Source: Bernstein, Zhao, Azizzadenesheli & Anandkumar, ICLR 2019 (majority vote; the casting vote is ours).
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("packed (n), ballots (voters, n)")


def price(packed, ballots, chair):
    return 16 * ballots.nbytes, packed.nbytes + ballots.nbytes


def reference(packed, ballots, chair):
    bits = np.unpackbits(ballots, axis=1)
    doubled = 2 * bits.sum(0, dtype=int)
    packed[:] = np.packbits(np.where(doubled == len(ballots), bits[chair], doubled > len(ballots)))


def element(ballots, j, chair):
    result = 0
    for k in range(8):
        votes = 0
        for voter in range(ballots.shape[0]):
            votes += int(ballots[voter, j]) >> k & 1
        casting = int(ballots[chair, j]) >> k & 1
        result |= int(2 * votes + casting > ballots.shape[0]) << k
    return result


element_cpu, element_gpu = formula(element), cuda.jit(device=True)(element)


@exact
def cpu(packed, ballots, chair):
    check(packed, ballots)
    for j in range(ballots.shape[1]):
        packed[j] = element_cpu(ballots, j, chair)


@cuda.jit
def _launch(packed, ballots, chair):
    for j in range(cuda.grid(1), packed.size, cuda.gridsize(1)):
        packed[j] = element_gpu(ballots, j, chair)


def gpu(packed, ballots, chair):
    check(packed, ballots)
    _launch[over(packed, ballots[0])](packed, ballots, chair)

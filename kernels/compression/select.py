"""Select: the numbers of a vector whose magnitude reaches a cut, and their positions.

    index <- the i with |v_i| > cut, and the first `ties` of those with |v_i| = cut, in order        values <- v[index]

As many are written as fit. The number found is returned, so with empty outputs the kernel only counts. With the cut
and ties of `kth_largest` these are the k largest; with any cut and ties = len(v), all that reach it. NaN is above
everything.

Price: 2 operations per number, and it is read once; on a GPU twice, once to count.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact
from kernels.compiler import int32
from kernels.compression.magnitude import bits, key, mask, partition, scan
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("values (room), index (room), v (d)")


def price(values, index, v, cut, ties):
    return 2 * len(v), len(v) + 2 * len(index)


def reference(values, index, v, cut, ties):
    size, cut = bits(v) & mask(v), key(cut, v)
    found = np.union1d(np.flatnonzero(size > cut), np.flatnonzero(size == cut)[:ties])
    room = found[: len(index)]
    index[: len(room)], values[: len(room)] = room, v[room]
    return len(found)


@exact
def _select(values, index, v, numbers, sign_off, cut, ties):
    found = 0
    for i in range(v.size):
        magnitude = numbers[i] & sign_off
        if magnitude > cut or (magnitude == cut and ties > 0):
            ties -= magnitude == cut
            if found < index.size:
                index[found], values[found] = i, v[i]
            found += 1
    return found


def cpu(values, index, v, cut, ties):
    check(values, index, v)
    return _select(values, index, v, bits(v), mask(v), key(cut, v), ties)


@cuda.jit
def _count(counts, numbers, sign_off, cut, share):
    """Add to `counts`, (blocks, 2), how many magnitudes of each block's share are above the cut and how many equal
    it.
    """
    block, above, equal = cuda.blockIdx.x, 0, 0
    for tile in range(block * share, (block + 1) * share, THREADS):
        i = tile + cuda.threadIdx.x
        if i < numbers.size:
            magnitude = numbers[i] & sign_off
            above += magnitude > cut
            equal += magnitude == cut
    cuda.atomic.add(counts, (block, 0), above)
    cuda.atomic.add(counts, (block, 1), equal)


@cuda.jit
def _write(values, index, counts, v, numbers, sign_off, cut, ties, share):
    above_until = cuda.shared.array(THREADS, int32)
    equal_until = cuda.shared.array(THREADS, int32)
    block = cuda.blockIdx.x
    above = equal = 0  # before this tile
    for earlier in range(block):
        above += counts[earlier, 0]
        equal += counts[earlier, 1]
    for tile in range(block * share, (block + 1) * share, THREADS):
        i = tile + cuda.threadIdx.x
        magnitude = numbers[i] & sign_off if i < v.size else -1
        is_above = scan(int32(magnitude > cut), above_until)
        is_equal = scan(int32(magnitude == cut), equal_until)
        ties_until = equal + is_equal if equal + is_equal < ties else ties  # ties selected so far
        place = above + is_above + ties_until - 1
        if (magnitude > cut or (magnitude == cut and equal + is_equal <= ties)) and place < index.size:
            index[place], values[place] = i, v[i]
        above += above_until[THREADS - 1]
        equal += equal_until[THREADS - 1]
        cuda.syncthreads()  # before the next tile's scans


def gpu(values, index, v, cut, ties):
    check(values, index, v)
    (blocks, *where), share = partition(v)
    numbers, cut = bits(v), key(cut, v)
    counts = empty((blocks, 2), numbers)
    counts[:] = 0
    _count[blocks, *where](counts, numbers, mask(v), cut, share)
    above, equal = (int(total) for total in counts.sum(0))
    if len(index):
        _write[blocks, *where](values, index, counts, v, numbers, mask(v), cut, ties, share)
    return above + min(equal, ties)

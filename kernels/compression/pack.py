"""Pack: small integers stored in as few bits as they need.

    packed <- codes[0], codes[1], ... of `width` bits each, the lowest bit first

codes (n,), of any dtype, all from 0 to 2^width - 1; packed is ceil(n width / 8) bytes; width 1 to 16.
Eight codes fill `width` bytes exactly, so each thread packs eight at a time, independently.

    width 3     aaabbbcc cdddeeef ffggghhh

Price: 3 operations per code; both are moved once.
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.shapes import shapes

check = shapes("packed (>= -(-n * width // 8)), codes (n)", "width")


def size(codes: int, width: int) -> int:
    """Return the number of bytes that this many codes occupy."""
    return -(-codes * width // 8)


def price(packed, codes, width):
    return 3 * len(codes), packed.nbytes + codes.nbytes  # words of the first argument: bytes


def reference(packed, codes, width):
    bits = codes.astype(np.int64)[:, None] >> np.arange(width) & 1  # (n, width)
    full = np.packbits(bits.astype(np.uint8), bitorder="little")
    packed[: len(full)] = full


def eight(packed, codes, group, width):
    """Pack codes 8 * group to 8 * group + 7."""
    at, held, bits = group * width, 0, 0
    last = 8 * group + 8
    for i in range(8 * group, last if last < codes.size else codes.size):
        held |= int(codes[i]) << bits
        bits += width
        while bits >= 8:
            packed[at] = held & 255
            held >>= 8
            bits -= 8
            at += 1
    if bits:
        packed[at] = held


def field(packed, i, width):
    """Return code i, unpacked."""
    at, shift = i * width >> 3, i * width & 7
    held, bits = int(packed[at]) >> shift, 8 - shift
    while bits < width:
        at += 1
        held |= int(packed[at]) << bits
        bits += 8
    return held & ((1 << width) - 1)


eight_cpu, eight_gpu = formula(eight), cuda.jit(device=True)(eight)
field_cpu, field_gpu = formula(field), cuda.jit(device=True)(field)


@exact
def cpu(packed, codes, width):
    check(packed, codes, width)
    whole = codes.size // 8 if width <= 8 else 0
    for group in range(whole):  # same as `eight`, without checking at every code whether a byte is full
        held = 0
        for k in range(8):
            held |= int(codes[8 * group + k]) << k * width
        for j in range(width):
            packed[group * width + j] = held >> 8 * j & 255
    for group in range(whole, -(-codes.size // 8)):
        eight_cpu(packed, codes, group, width)


@cuda.jit
def _launch(packed, codes, width):
    for group in range(cuda.grid(1), -(-codes.size // 8), cuda.gridsize(1)):
        eight_gpu(packed, codes, group, width)


def gpu(packed, codes, width):
    check(packed, codes, width)
    _launch[grid(len(codes)), THREADS, stream_of(codes)](packed, codes, width)

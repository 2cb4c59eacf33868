"""Store small whole numbers side by side, in only as many bits as they need."""

import kernels


def pack(codes, width: int):
    """Return the bytes that hold `codes`, whole numbers below 2^width, in `width` bits each."""
    out = kernels.empty(-(-len(codes) * width // 8), codes, "uint8")
    kernels.pack(out, codes, width)
    return out

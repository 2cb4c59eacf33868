"""Launching CUDA kernels: grid size, and torch's current stream."""

from __future__ import annotations

THREADS = 256
MAX_BLOCKS = 4096


def grid(elements: int) -> int:
    """Blocks of `THREADS` threads for a grid-stride loop over `elements` (0 still gives one, harmless, block)."""
    return max(1, min(MAX_BLOCKS, -(-elements // THREADS)))


def stream_of(array):
    """The stream to launch on: torch's current one for a torch tensor, the default one otherwise."""
    if not type(array).__module__.startswith("torch"):
        return 0
    import torch
    from numba import cuda

    return cuda.external_stream(torch.cuda.current_stream(array.device).cuda_stream)

"""GPU side of the kernels: the one place from which they get `cuda`, Numba's compiler for NVIDIA GPUs.

Where the package numba-cuda is installed it takes the place of the one built into Numba, under the same name; with
NUMBA_ENABLE_CUDASIM=1 it is Numba's simulator, which runs kernels on the CPU. A stand-in for machines without either
belongs here, too.
"""

from numba import cuda

__all__ = ["cuda"]

"""What every rank needs from its first moment on; the fork server imports this once for all of them.

Numba's first call in a process takes half a second, whatever it calls: here it has been made before the ranks start.
"""

import numpy as np

import cluster.real.child  # noqa: F401
import kernels

for _x in (np.zeros(1, np.float32), np.zeros(1, np.float64)):
    kernels.add(_x, _x)
    kernels.scale(_x, 1.0)

"""The modules that every rank needs, imported once by the fork server.

Numba's first call in a process takes half a second, whatever it calls. It is made here, before the ranks start.
"""

import numpy as np

import cluster.real.child  # noqa: F401
import kernels

for _x in (np.zeros(1, np.float32), np.zeros(1, np.float64)):
    kernels.add(_x, _x)
    kernels.scale(_x, 1.0)

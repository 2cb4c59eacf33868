"""Freed memory stays in the process."""

import numpy as np
import pytest

from kernels import allocator

resource = pytest.importorskip("resource")


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(not allocator.keep_freed(), reason="this C library does not say")
def test_arrays_of_a_step_take_the_memory_of_those_of_the_step_before():
    def step():
        return [np.ones(1 << 20) for _ in range(8)]  # 64 MB

    step()
    before = faults()
    step()
    assert faults() - before < 1000  # of 16,384 pages

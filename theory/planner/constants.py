"""The constants of the planner: ten numbers, each with a physical meaning, fitted to published throughput.

`tests/planner_fit.py` fits them to the rows of `published`; none is specific to a row, a model or a source. Four rest
on one source alone: the attention shares on MPT, and the 8-bit share and most of the hidden tensor traffic on NeMo. The
rest are fixed from publications, because the rows do not determine them: changing the share of bandwidth from 0.6 to
0.9 does not visibly change the errors.

Source: Dao et al., NeurIPS 2022, and Shah et al., NeurIPS 2024 (FlashAttention 1 and 3); NVIDIA's nccl-tests (bus
bandwidth on an H100 node: 360 of 450 GB/s).
"""

from typing import NamedTuple


class Constants(NamedTuple):
    """The constants of the planner. They are shares of peak rates, unless another unit is given."""

    products_a100: float = 0.9020  # that an infinitely large product of 16-bit matrices attains
    products_h100: float = 0.7713
    products_fp8: float = 0.8746  # likewise, of 8-bit matrices on an H100
    traffic: float = 3.233  # memory traffic of a product, in times what it must read and write
    attention_a100: float = 0.3141  # of FlashAttention 1, on causal FLOPs
    attention_h100: float = 0.1803
    memory: float = 0.6670  # of the memory's bandwidth, in operations that it bounds
    hidden: float = 0.4070  # of the smaller of computation and data-parallel communication, hidden behind the other
    hidden_tensor: float = 0.7391  # of tensor- and context-parallel traffic, where the software overlaps it
    hop: float = 5.206e-6  # s per hop of a ring over several nodes


FITTED = Constants()
STANDARD_ERRORS = Constants(0.013, 0.015, 0.053, 0.19, 0.004, 0.004, 0.08, 0.06, 0.19, 1.2e-6)
LOWEST = Constants(0.05, 0.05, 0.05, 0.0, 0.02, 0.02, 0.05, 0.0, 0.0, 0.0)
HIGHEST = Constants(1.0, 1.0, 1.0, 20.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1e-4)
"""The physical upper bound of each constant; LOWEST has the lower bounds."""

COLLECTIVES = 0.80  # share of a link's bandwidth that collectives reach
FLASH3 = 0.55, 0.50  # share of the 16-bit peak on causal FLOPs: of FlashAttention 2 on an A100, of 3 on an H100
LAUNCHES = 60 * 4e-6  # s in which the GPU can at best start the kernels of a layer's forward and backward

"""Kernels: the arithmetic of algorithms and models, one kernel per file. Every file defines the same names.

A kernel module `kernels/<family>/<name>.py` holds `reference` (plain NumPy), `cpu` (Numba), `gpu` (a launcher of a
Numba CUDA kernel) and its price: `FLOPS` and `WORDS` per element of the first argument, or `price(*args)` returning
(flops, words) where it depends on the shape. Callers write `kernels.<name>(...)` with outputs first, then inputs, then
scalars. Kernels write to the outputs in place. Arrays are contiguous, of float32 or float64.

A call is dispatched on the first array, and its price is charged to the meter of the calling rank. A module is
loaded on its first call, so importing an algorithm imports no compiler. Where there is none (`compiler.py`), a kernel
runs its `reference` in place of `cpu`.
"""

import importlib
import os
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

# One BLAS thread per rank, set before NumPy loads: on our small matrices two are up to eight times slower than one.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
for _variable in ONE_THREAD:
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402

from kernels import allocator  # noqa: E402
from kernels.arrays import (  # noqa: E402
    beside,
    copy,
    empty,
    empty_like,
    keep,
    state_like,
    to_device,
    to_numpy,
    zeros_like,
)
from kernels.meter import IN_16_BITS, METER, Meter, meter_kernels, price_in_16_bits  # noqa: E402

__all__ = [
    "FAMILIES",
    "Kernel",
    "Meter",
    "are_compiled",
    "beside",
    "copy",
    "empty",
    "empty_like",
    "keep",
    "meter_kernels",
    "price_in_16_bits",
    "state_like",
    "to_device",
    "to_numpy",
    "zeros_like",
]

allocator.keep_freed()

FAMILIES: dict[str, tuple[str, ...]] = {
    "updates": (
        "sgd",
        "sign_sgd",
        "momentum",
        "nesterov",
        "sutskever",
        "adagrad",
        "rmsprop",
        "rmsprop_blend",
        "adam",
    ),
    "averaging": (
        *("ema", "elastic", "mean", "trimmed_mean", "add", "scale", "mix"),
        *("squared_norm", "displacement", "block_momentum"),
    ),
    "compression": (
        *("residual", "kth_largest", "select", "row_top_k", "gather", "scatter_add"),
        *("threshold", "scatter_signs", "correct", "forget", "clip"),
        *("norms", "two_means", "choose", "pack", "stochastic_quantize", "stochastic_dequantize", "majority_vote"),
        *("to_fixed", "from_fixed", "to_bf16", "from_bf16", "matmul", "gram_schmidt"),
    ),
    "vectors": ("dot", "round_to"),
    "sparse": ("margins", "logistic", "hogwild", "svrg", "descend_atomic"),
    "staleness": ("delay_compensated", "delay_compensated_adaptive", "distance_scaled", "adam_ahead"),
    "layers": (
        *("dense_forward", "dense_backward_input", "dense_backward_weights"),
        *("relu_backward", "tanh_forward", "tanh_backward", "residual_add"),
        *("conv2d_forward", "conv2d_backward_input", "conv2d_backward_weights"),
        *("max_pool_forward", "max_pool_backward"),
        *("batch_norm_forward", "batch_norm_apply", "batch_norm_backward_weights", "batch_norm_backward_input"),
        *("embedding_forward", "embedding_backward_weights", "attention_forward", "attention_backward"),
        *("attention_block_forward", "attention_block_backward"),
        *("layer_norm_forward", "layer_norm_backward_input", "layer_norm_backward_weights"),
        *("gelu_forward", "gelu_backward"),
        *("route_forward", "route_backward", "dispatch_rows", "combine_rows", "combine_rows_backward"),
        *("bias_forward", "row_largest", "vocabulary_sums", "vocabulary_cross_entropy"),
        *("softmax_cross_entropy", "squared_error", "quadratic"),
    ),
}


PRODUCTS = frozenset(
    (
        *("dense_forward", "dense_backward_input", "dense_backward_weights", "matmul"),
        *("conv2d_forward", "conv2d_backward_input", "conv2d_backward_weights"),
        *("attention_forward", "attention_backward", "attention_block_forward", "attention_block_backward"),
    )
)
"""Kernels that multiply matrices: a device's rate for 16-bit products applies to them and to no other."""

ALIKE = (
    "numbers must be all float32 or all float64, and arrays must be contiguous, with the number of axes that the "
    "kernel's file gives."
)
NUMBAS = (NotImplementedError, AssertionError, AttributeError)  # raised by Numba, besides its own, if it cannot compile


class Kernel:
    """One kernel: runs `cpu` on NumPy arrays and `gpu` on GPU tensors, and charges its price to the meter."""

    __slots__ = ("_cpu", "_gpu", "_module", "_price", "family", "name")

    def __init__(self, name: str, family: str):
        self.name, self.family = name, family
        self._module: ModuleType | None = None

    @property
    def module(self) -> Any:
        """The kernel's module, which defines `reference`, `cpu`, `gpu` and the price."""
        if self._module is None:
            self._load()
        return self._module

    def __call__(self, *args):
        if self._module is None:
            self._load()
        first = args[0]
        try:
            result = self._cpu(*args) if type(first) is np.ndarray else self._gpu(*args)
        except Exception as error:
            numbas = isinstance(error, NUMBAS) or type(error).__module__.startswith("numba.")
            if numbas or isinstance(error, ValueError):
                raise ValueError(self._refusal(args, ALIKE if numbas else str(error))) from error
            raise
        meter = METER.get()
        if meter is not None:
            self._charge(meter, *self._price(*args), first.itemsize)
        return result

    def charge(self, *args) -> None:
        """Charge for a call with these arguments without making it: another kernel has already done the work."""
        meter = METER.get()
        if meter is not None:
            self._charge(meter, *self.price(*args), args[0].itemsize)

    def price(self, *args) -> tuple[float, float]:
        """Return (FLOPs, words moved) of a call with these arguments, without making it."""
        if self._module is None:
            self._load()
        return self._price(*args)

    def _charge(self, meter: Meter, flops: float, words: float, itemsize: int) -> None:
        if not IN_16_BITS.get():
            meter.charge(self.name, flops, words * itemsize)
        elif self.name in PRODUCTS:
            meter.charge(self.name, flops, words * itemsize / 2, 2)
        else:
            meter.charge(self.name, flops, words * itemsize / 2)

    def _refusal(self, args: tuple, why: str) -> str:
        given = ", ".join(f"{tuple(x.shape)} {x.dtype}" for x in args if hasattr(x, "shape"))
        return f"{self.name} cannot take arrays {given}: {why}"

    def _load(self) -> None:
        module = importlib.import_module(f"kernels.{self.family}.{self.name}")
        self._cpu, self._gpu = module.cpu if are_compiled() else module.reference, module.gpu
        self._price = getattr(module, "price", None) or _per_element(module.FLOPS, module.WORDS)
        self._module = module  # last: another thread may be loading, too

    def __repr__(self) -> str:
        return f"<kernel {self.family}.{self.name}>"


@cache
def are_compiled() -> bool:
    """Return whether kernels on the CPU are compiled. This loads the compiler."""
    from kernels.compiler import COMPILES

    return COMPILES


def _per_element(flops: float, words: float):
    def price(first, *_):
        elements = first.size if type(first) is np.ndarray else first.numel()
        return flops * elements, words * elements

    return price


if TYPE_CHECKING:

    def __getattr__(name: str) -> Kernel: ...


for _family, _names in FAMILIES.items():
    for _name in _names:
        globals()[_name] = Kernel(_name, _family)
        __all__.append(_name)

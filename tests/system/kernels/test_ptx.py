"""GPU implementations compile for sm_90, where a CUDA toolkit is found, and a float32 kernel computes in float32."""

from __future__ import annotations

import re
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import kernels
from tests.contract.kernels.test_implementations import arguments, both_types, each_kernel

SM_90 = (9, 0)


@pytest.mark.slow
@each_kernel
@both_types
def test_the_gpu_implementation_compiles_for_sm_90(name, dtype, toolkit, launches, tmp_path):
    getattr(kernels, name).module.gpu(*arguments(name, 33, dtype))
    assert launches, "the gpu implementation launched nothing"
    for number, (kernel, types) in enumerate(dict.fromkeys(launches)):
        ptx, _ = toolkit.compile_ptx(kernel.py_func, types, cc=SM_90)
        assert ".target sm_90" in ptx
        if dtype is np.float32:
            doubles = re.findall(r"^\s*(?:add|sub|mul|fma|div|sqrt|rcp)\S*\.f64.*", ptx, re.M)
            assert not doubles, "a float32 kernel computes in float64: a literal or an integer in it promotes"
        if assembler := shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin"):
            source, binary = tmp_path / f"{number}.ptx", tmp_path / f"{number}.cubin"
            source.write_text(ptx)
            subprocess.run([assembler, "-arch=sm_90", source, "-o", binary], check=True)


@pytest.fixture
def toolkit(monkeypatch):
    """Numba's compiler to PTX, which needs NVVM and libdevice of a CUDA toolkit (CUDA_HOME or /usr/local/cuda)."""
    from numba import cuda
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvvm

    device = SimpleNamespace(compute_capability=SM_90)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)  # device functions ask for whom they are
    try:
        nvvm.NVVM()
        nvvm.LibDevice()
    except Exception:  # as many kinds as there are ways to have no toolkit
        pytest.skip("no CUDA toolkit was found at CUDA_HOME or /usr/local/cuda")
    return cuda


@pytest.fixture
def launches(monkeypatch) -> list[tuple]:
    """CUDA kernels are not launched but written down, each with the types of its arguments."""
    from numba.cuda.dispatcher import CUDADispatcher

    seen: list[tuple] = []

    def write_down(kernel, args, *_):
        seen.append((kernel, tuple(kernel.typeof_pyval(x) for x in args)))

    monkeypatch.setattr(CUDADispatcher, "call", write_down)
    return seen

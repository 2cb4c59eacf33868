"""Our CUDA simulator: what kernels rely on holds in it, and what they must not do is an error that names all of it."""

from __future__ import annotations

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import gpu
from kernels.compression import gram_schmidt
from kernels.gpu import cuda, simulate_gpu
from kernels.layers.tiles import TILE, product
from kernels.simulator import ADD, READ, WAIT, WRITE, DivergentBarrier, Race, Simulator
from tests.sources import ROOT

THREADS = 8


def launched(kernel, *args, blocks=1, threads=THREADS, watch=None):
    with simulate_gpu(watch):
        kernel[blocks, threads, 0](*args)


def test_every_thread_knows_its_place_in_the_grid():
    @cuda.jit
    def along(out, sizes):
        out[cuda.grid(1)] = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        sizes[0], sizes[1] = cuda.gridsize(1), cuda.gridDim.x

    @cuda.jit
    def across(out):
        x, y = cuda.grid(2)
        out[y, x] += 10 * y + x

    out, sizes, table = np.full(6, -1), np.zeros(2), np.zeros((4, 6))
    launched(along, out, sizes, blocks=2, threads=3)
    assert out.tolist() == [0, 1, 2, 3, 4, 5] and sizes.tolist() == [6, 2]
    launched(across, table, blocks=(3, 2), threads=(2, 2))
    assert (table == 10 * np.arange(4)[:, None] + np.arange(6)).all()


def test_behind_a_barrier_a_thread_sees_what_all_others_wrote_before_it():
    @cuda.jit
    def turned(out):
        one, two = cuda.shared.array(THREADS, np.int64), cuda.shared.array(THREADS, np.int64)  # two on one line
        thread = cuda.threadIdx.x
        one[thread], two[thread] = thread, -thread
        for _ in range(3):
            cuda.syncthreads()
            left = one[(thread + 1) % THREADS]
            cuda.syncthreads()
            one[thread] = left
        cuda.syncthreads()
        out[cuda.grid(1)] = one[thread] - 10 * two[(thread + 1) % THREADS]

    out = np.zeros(2 * THREADS, np.int64)
    launched(turned, out, blocks=2)  # each block has shared memory of its own
    expected = [(thread + 3) % THREADS + 10 * ((thread + 1) % THREADS) for thread in range(THREADS)]
    assert out.tolist() == 2 * expected


def test_shared_memory_holds_nothing_of_use_before_it_is_written():
    @cuda.jit
    def unset(out):
        out[0] = cuda.shared.array(1, np.float32)[0]

    out = np.zeros(1, np.float32)
    launched(unset, out, threads=1)
    assert np.isnan(out[0])


def test_none_is_refused_as_by_a_gpu():
    @cuda.jit
    def maybe(out, bias):
        if bias is None:
            out[0] = 1

    with pytest.raises(TypeError, match=r"maybe .*None.*arrays and numbers"):
        launched(maybe, np.zeros(1), None)


def test_a_race_in_shared_memory_is_named_with_its_array_cell_and_threads():
    @cuda.jit
    def read_too_soon(out):
        cells = cuda.shared.array(THREADS, np.float32)
        cells[cuda.threadIdx.x] = 1
        out[cuda.threadIdx.x] = cells[5]

    @cuda.jit
    def write_too_soon(out):
        cells = cuda.shared.array(THREADS, np.float32)
        cells[cuda.threadIdx.x] = 1
        cuda.syncthreads()
        out[cuda.threadIdx.x] = cells[0]
        cells[cuda.threadIdx.x] = 2

    @cuda.jit
    def both_write(out):
        cells = cuda.shared.array((2, 2), np.float32)
        cells[1, 0] = cuda.threadIdx.x

    @cuda.jit
    def added_and_read(out):
        cells = cuda.shared.array(2, np.int32)
        cuda.atomic.add(cells, 1, 1)
        out[0] = cells[1]

    for kernel, said in (
        (read_too_soon, r"thread 5 writes cells\[5\] in test_simulator.py:\d+, thread 0 reads it in test_sim\S+:\d+"),
        (write_too_soon, r"thread 1 reads cells\[0\] in .*, thread 0 writes it"),
        (both_write, r"both_write, block 0: thread 1 writes cells\[\(1, 0\)\] in .*, thread 0 writes it"),
        (added_and_read, r"thread 1 adds to cells\[1\] in .*, thread 0 reads it in .* without a cuda.syncthreads\(\)"),
    ):
        with pytest.raises(Race, match=said):
            launched(kernel, np.zeros(THREADS))


def test_atomic_additions_cells_of_ones_own_and_what_a_barrier_parts_are_no_race():
    @cuda.jit
    def counted(out):
        cells = cuda.shared.array(THREADS + 1, np.int32)
        thread = cuda.threadIdx.x
        cells[thread] = 0
        cells[thread] += 1
        if thread == 0:
            cells[THREADS] = 0
        cuda.syncthreads()
        cuda.atomic.add(cells, THREADS, cells[thread])
        cuda.syncthreads()
        out[thread] = cells[THREADS]

    out = np.zeros(THREADS)
    launched(counted, out)
    assert out.tolist() == [THREADS] * THREADS


def test_a_barrier_that_not_all_threads_come_to_is_named_with_who_is_missing():
    @cuda.jit
    def some_end(least):
        if cuda.threadIdx.x >= least:
            cuda.syncthreads()

    @cuda.jit
    def some_go_round_more_often(least):
        for _ in range(1 if cuda.threadIdx.x < least else 2):
            cuda.syncthreads()

    @cuda.jit
    def another_barrier(least):
        if cuda.threadIdx.x < least:
            cuda.syncthreads()
        else:
            cuda.syncthreads()

    for kernel, said in (
        (
            some_end,
            r"some_end, block 0: thread 3 waits at the barrier in test_simulator.py:\d+, but thread 0 has ended",
        ),
        (some_go_round_more_often, r"thread 3 waits at the barrier in \S+, but thread 0 has ended"),
        (another_barrier, r"thread 0 waits at the barrier in (\S+), but thread 3 at the one in (?!\1)test_sim"),
    ):
        with pytest.raises(DivergentBarrier, match=said):
            launched(kernel, 3)
        launched(kernel, 0)  # where all do the same


@cuda.jit(device=True)
def meet():
    cuda.syncthreads()


def test_a_barrier_in_a_device_function_is_another_one_where_it_is_called_elsewhere():
    @cuda.jit
    def two_calls(least):
        if cuda.threadIdx.x < least:
            meet()
        else:
            meet()

    with pytest.raises(DivergentBarrier, match=r"thread 0 waits at .* but thread 3 at the one in test_sim"):
        launched(two_calls, 3)
    launched(two_calls, 0)


def test_a_kernel_computes_nan_and_infinities_where_python_would_raise():
    root = math.sqrt

    @cuda.jit
    def odd(out, x, none):
        out[0], out[1], out[2] = math.sqrt(x), root(x), math.log(none)
        out[3], out[4] = x / none, math.exp(-1000 * x)

    out = np.zeros(5)
    launched(odd, out, -1.0, 0.0, threads=1)
    np.testing.assert_array_equal(out, [np.nan, np.nan, -np.inf, -np.inf, np.inf])


def test_an_error_in_a_kernel_says_which_thread_had_it():
    @cuda.jit
    def beyond(out):
        out[cuda.grid(1)] = 1

    with pytest.raises(IndexError) as caught:
        launched(beyond, np.zeros(10), blocks=2)
    assert caught.value.__notes__ == [f"in thread 2 of block 1 of {__name__}.beyond"]


def test_a_watcher_is_told_every_access_in_the_order_of_each_thread():
    @cuda.jit
    def watched(out, table):
        cells = cuda.shared.array(2, np.int32)
        cells[cuda.threadIdx.x] = table[1][cuda.threadIdx.x]
        cuda.syncthreads()
        cuda.atomic.add(out, 0, cells[1 - cuda.threadIdx.x])

    seen = []
    launched(watched, np.zeros(1), np.arange(6).reshape(2, 3), threads=2, watch=seen.append)
    for thread in (0, 1):
        own = [access for access in seen if access.thread == thread]
        told = [(a.round, a.does, a.memory and a.memory.name, a.cell) for a in own]
        assert told == [
            (0, READ, "table", 3 + thread),
            (0, WRITE, "cells", thread),
            (0, WAIT, None, 0),
            (1, READ, "cells", 1 - thread),
            (1, ADD, "out", 0),
        ]
        assert [a.offset for a in own] == sorted(a.offset for a in own)
        first = watched.py_func.__code__.co_firstlineno
        assert [a.stack[-1].number - first for a in own] == [3, 3, 4, 5, 5]


def test_not_one_barrier_of_the_product_and_the_block_sum_can_be_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    for call, count in (
        (lambda: product(np.zeros((3, 2)), rng.random((3, TILE + 1)), rng.random((TILE + 1, 2))), 2),
        (lambda: gram_schmidt.gpu(rng.random((5, 2)), 1e-5), 3),
    ):
        seen = []
        with simulate_gpu(seen.append):
            call()
        barriers = {access.stack[-1].number for access in seen if access.does == WAIT}
        assert len(barriers) == count
        for left_out in barriers:
            waits = Simulator.syncthreads
            passed = lambda cuda, line=left_out, waits=waits: sys._getframe(1).f_lineno == line or waits(cuda)  # noqa: E731
            with monkeypatch.context() as without:
                without.setattr(Simulator, "syncthreads", passed)
                with pytest.raises(Race), simulate_gpu():
                    call()


def test_a_product_of_as_many_rows_as_a_large_batch_of_texts_has_is_a_grid_that_a_gpu_can_launch(monkeypatch):
    launches = []
    monkeypatch.setattr(Simulator, "run", lambda cuda, kernel, blocks, threads, *args: launches.append(blocks))
    with simulate_gpu():
        product(np.empty((2_000_000, 1)), np.empty((2_000_000, 1)), np.empty((1, 1)))
    ((first, second),) = launches
    assert first * second * TILE == 2_000_000
    assert first < 2**31 and second < 2**16  # CUDA C++ Programming Guide, technical specifications


WITHOUT_CUDA = """
import copy, importlib, pkgutil, sys
sys.modules["numba.cuda"] = None  # whoever imports it fails
import numpy as np
import kernels
from kernels.gpu import simulate_gpu
from experiments.specification.experiment import Experiment
from experiments.execution.run import run
from tests.contract.kernels.cases import CASES

run(Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 4, "evaluations": 2}))
for module in pkgutil.walk_packages(kernels.__path__, "kernels."):
    importlib.import_module(module.name)
for name, case in CASES.items():
    kernel, args = getattr(kernels, name), case.arguments(np.random.default_rng(1), 1, np.float32)
    there = copy.deepcopy(args)
    kernel(*args)
    with simulate_gpu():
        kernel.module.gpu(*there)
try:
    kernels.sgd.module.gpu(np.ones(3), np.ones(3), 0.1)
except ImportError as error:
    print(error)
print([name for name in sys.modules if name.startswith("numba.cuda.")])
"""


def test_without_numba_cuda_training_and_all_kernels_run_and_a_launch_on_a_gpu_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_CUDA], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, loaded = done.stdout.splitlines()
    assert "no CUDA compiler" in said and 'pip install "numba-cuda' in said
    assert loaded == "[]"


def test_a_numpy_that_numba_cuda_does_not_know_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(gpu, "numba_cuda", lambda: SimpleNamespace(__file__="numba_cuda/numba/cuda/__init__.py"))
    monkeypatch.setattr(gpu, "np", SimpleNamespace(__version__="2.5.2"))
    with pytest.raises(ImportError, match=r"numba-cuda .*NumPy .*2.5, .*2.5.2.*`pip install"):
        gpu._compiler.__wrapped__()


def test_the_name_cuda_of_a_kernel_file_means_nothing_outside_of_a_kernel():
    with pytest.raises(AttributeError, match=r"cuda.grid .*kernel"):
        cuda.grid(1)

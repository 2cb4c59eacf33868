"""Warps: threads that stand at one instruction go on together, and memory is moved by segments and banks."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.measure import warps
from experiments.measure.warps import ADD, MOST, READ, WAIT, WRITE, launches, ranges, watch_kernel
from kernels.gpu import cuda, simulate_gpu
from kernels.watching import BLOCKS


def moments(kernel, *args, threads=32):
    (launch,) = launches(lambda: kernel[1, threads, 0](*args))
    return launch.moments


def test_neighbouring_numbers_are_one_segment_and_scattered_ones_one_each():
    @cuda.jit
    def strided(out, x, stride):
        out[cuda.grid(1)] = x[stride * cuda.grid(1)]

    for stride, segments, fewest, said in (
        (1, 1, 1, "32 threads read x[0…31], 1 segment of 128 bytes: coalesced"),
        (0, 1, 1, "the same number for all"),
        (2, 2, 1, "32 threads read x[0, 2, 4, 6, …], 2 segments of 128 bytes where 1 would do: not coalesced"),
        (32, 32, 1, "32 segments of 128 bytes where 1 would do: not coalesced"),
    ):
        (read,), (write,) = moments(strided, np.zeros(32, np.float32), np.zeros(1024, np.float32), stride)
        assert (read.does, len(read.segments), read.fewest) == (READ, segments, fewest)
        assert said in read.description() and write.does == WRITE and write.segments == [0]

    @cuda.jit
    def shifted(x):
        x[cuda.grid(1) + 1]

    said = moments(shifted, np.zeros(40, np.float32))[0][0].description()
    assert said.endswith("x[1…32], 2 segments of 128 bytes where 1 would do: coalesced, but across a boundary.")
    doubles = moments(strided, np.zeros(32), np.zeros(32), 1)[0][0]
    assert doubles.segments == [0, 1] and doubles.description().endswith("2 segments of 128 bytes: coalesced.")


def test_columns_of_a_matrix_are_read_across_its_rows_and_a_view_is_where_it_lies_in_memory():
    @cuda.jit
    def column(x):
        x[cuda.threadIdx.x, 3]

    @cuda.jit
    def row(x):
        x[2][cuda.threadIdx.x]

    x = np.zeros((32, 32), np.float32)
    assert moments(column, x)[0][0].cells == tuple(range(3, 1024, 32))
    assert moments(column, x.T)[0][0].segments == [3]
    assert moments(row, x)[0][0].segments == [2]


def test_a_warp_diverges_at_a_branch_and_meets_again_behind_it():
    @cuda.jit
    def parted(x, y):
        if cuda.threadIdx.x < 8:
            x[cuda.threadIdx.x] = 1
        else:
            y[cuda.threadIdx.x] = 1
        x[cuda.threadIdx.x] = 2

    first, second, third = (moment[0] for moment in moments(parted, np.zeros(32), np.zeros(32)))
    assert first.active == tuple(range(8)) and first.elsewhere == tuple(range(8, 32))
    assert second.active == first.elsewhere and second.elsewhere == first.active
    assert second.line == first.line + 2 and "8 wait at another line: the warp has diverged" in second.description()
    assert len(third.active) == 32 and third.elsewhere == ()


def test_threads_that_go_round_a_loop_more_often_are_waited_for():
    @cuda.jit
    def rounds(x):
        for _ in range(1 + cuda.threadIdx.x % 2):
            x[cuda.threadIdx.x] = 1
        x[cuda.threadIdx.x] = 2

    counts = [(len(one.active), len(one.elsewhere)) for (one,) in moments(rounds, np.zeros(32))]
    assert counts == [(32, 0), (16, 16), (32, 0)]


def test_threads_that_skip_a_branch_wait_for_the_others_before_the_next_turn_of_the_loop():
    @cuda.jit
    def skipping(x):
        for turn in range(cuda.threadIdx.x, cuda.threadIdx.x + 3):
            if turn % 2:
                continue
            for _ in range(2):
                x[turn] = 1

    seen = [one.active for (one,) in moments(skipping, np.zeros(40))]
    even, odd = tuple(range(0, 32, 2)), tuple(range(1, 32, 2))
    assert seen == [even, even, odd, odd, even, even]


def test_a_warp_waits_at_the_barrier_for_those_that_have_more_to_do():
    @cuda.jit
    def uneven(x):
        if cuda.threadIdx.x < 32:
            x[cuda.threadIdx.x] = 1
        cuda.syncthreads()
        x[cuda.threadIdx.x] = 2

    seen = [tuple(one and one.does for one in moment) for moment in moments(uneven, np.zeros(64), threads=64)]
    assert seen == [(WRITE, WAIT), (WAIT, WAIT), (WRITE, WRITE)]
    assert moments(uneven, np.zeros(64), threads=64)[1][1].description() == "32 threads at the barrier."


def test_cells_of_shared_memory_in_one_bank_conflict_and_atomic_additions_to_one_number_queue():
    @cuda.jit
    def banks(out, stride):
        cells = cuda.shared.array(1024, np.float32)
        cells[stride * cuda.threadIdx.x] = 1
        cuda.atomic.add(out, 0, 1)

    for stride, conflict, said in ((1, 1, "no bank conflict"), (2, 2, "2 in one bank"), (32, 32, "32 in one bank")):
        (write,), (add,) = moments(banks, np.zeros(1, np.float32), stride)
        assert write.shared and write.conflict == conflict and said in write.description()
        assert add.does == ADD and "one addition after another" in add.description()


def test_a_call_of_the_page_is_whole_or_says_that_it_is_cut():
    for name in ("sgd", "mean", "select", "dot", "hogwild", "adam_ahead", "matmul", "embedding_forward", "to_fixed"):
        for launch in watch_kernel(name, 100):
            lines = {(one.function, one.line) for moment in launch.moments for one in moment if one}
            for function, line in lines:
                start, text = launch.functions[function]
                assert start < line < start + len(text.splitlines()), (name, function)
            assert launch.threads == 256 and all(len(moment) == 8 for moment in launch.moments)
            assert launch.cut == (name in ("hogwild", "to_fixed")) <= (len(launch.moments) >= MOST), name
    assert [launch.kernel.rpartition(".")[2] for launch in watch_kernel("select", 33)] == ["_count", "_write"]


def test_the_first_blocks_of_a_launch_are_watched_and_all_are_run_where_nobody_watches():
    @cuda.jit
    def count(out):
        out[cuda.blockIdx.x] += 1

    out = np.zeros(99, np.float32)
    launches(lambda: count[99, 1, 0](out))
    assert out[:BLOCKS].all() and out.sum() == BLOCKS
    with simulate_gpu():
        count[99, 1, 0](out)
    assert out.all()


def test_another_size_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="1000 numbers cannot be watched; use one of 33, 100, 257"):
        watch_kernel("sgd", 1000)
    assert watch_kernel("sgd", warps.SIZES[0])[0].moments[0][1].active == (
        0,
    )  # one number more than a warp has threads


def test_ranges_say_what_lies_side_by_side():
    assert ranges([5]) == "5" and ranges([3, 1, 2, 2, 7]) == "1…3, 7" and ranges(range(0, 12, 2)) == "0, 2, 4, 6, …"


def test_launches_are_read_back_as_they_were_kept(tmp_path):
    place = warps.perform({"name": "norms", "n": 33}, tmp_path, lambda part: None)
    assert warps.load(place) == watch_kernel("norms", 33)

"""The roof of a machine: what is measured of it, and that a busy machine cannot lower it. No bandwidth is asserted."""

import numpy as np
import pytest

from experiments.measure import roof
from experiments.measure.roof import LARGEST, SMALLEST, Roof


@pytest.fixture
def small(monkeypatch):
    """A roof of little work: the largest working set fits in a cache, the matrices are tiny."""
    monkeypatch.setattr(roof, "LARGEST", 4 * SMALLEST)
    monkeypatch.setattr(roof, "SIDES", (8,))
    monkeypatch.setattr(roof, "GPU_SIDES", (8,))


def test_every_loop_touches_its_whole_working_set_and_nothing_else():
    for _, loop in roof.streams(SMALLEST):
        assert sum(x.nbytes for x in loop.keywords.values() if isinstance(x, np.ndarray)) == SMALLEST


def test_the_loops_do_what_they_say_as_often_as_they_are_told():
    x, y = np.full(4, 2, np.float32), np.ones(4, np.float32)
    roof.update(3, y, x, np.float32(0.5))
    roof.scale(2, x, np.float32(3))
    assert y.tolist() == [4] * 4 and x.tolist() == [18] * 4
    roof.total(2, x)
    assert x.tolist() == [126, 18, 18, 18]


def test_a_working_set_is_measured_at_the_power_of_two_below():
    assert [roof.step(n) for n in (1, SMALLEST, 3 * SMALLEST, 4 * SMALLEST - 1, LARGEST, 10**12)] == [
        *(SMALLEST, SMALLEST, 2 * SMALLEST, 2 * SMALLEST, LARGEST, LARGEST)
    ]


def test_a_look_at_a_busy_machine_does_not_lower_the_roof(small, monkeypatch):
    seen, times = Roof(), iter((1.0, 2.0))
    for _ in range(2):
        took = next(times)
        monkeypatch.setattr(roof, "fastest", lambda loop, took=took: took)
        seen.look(SMALLEST)
        assert seen.streams == {SMALLEST: 2.0 * SMALLEST} and seen.flops == 2.0 * 8**3


def test_the_peaks_reach_from_the_nearest_cache_to_memory(small):
    seen = Roof()
    seen.look(2 * SMALLEST)
    peaks = seen.peaks()
    assert [size for size, _ in peaks.streams] == [SMALLEST, 2 * SMALLEST, 4 * SMALLEST]
    assert peaks.flops > 0 and peaks.caches == roof.caches()


def test_a_gpu_is_measured_by_torch_which_is_waited_for(small, monkeypatch):
    torch = pytest.importorskip("torch")
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    properties = type("Properties", (), {"L2_cache_size": 5})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    seen = Roof(torch, "cpu")  # its operations are the same on any device
    peaks = seen.peaks()
    assert waits and peaks.caches == (("L2 cache", 5),) and len(peaks.streams) == 2


def test_a_loop_is_timed_in_short_rounds_and_the_best_counts(monkeypatch):
    clock, repeats = [0.0], []
    monkeypatch.setattr(roof, "perf_counter", lambda: clock[0])

    def loop(repeat):
        repeats.append(repeat)
        disturbed = len(repeats) % 2
        clock[0] += repeat * (1e-5 + 1e-3 * disturbed)

    assert roof.fastest(loop) == pytest.approx(1e-5)
    assert max(repeats) * 1e-5 <= roof.ROUND


def test_caches_are_those_for_data_the_nearest_first(tmp_path, monkeypatch):
    monkeypatch.setattr(roof, "CACHES", tmp_path)
    assert roof.caches() == ()
    for number, (level, kind, size) in enumerate([(2, "Unified", "2M"), (1, "Instruction", "32K"), (1, "Data", "48K")]):
        (tmp_path / f"index{number}").mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (tmp_path / f"index{number}" / name).write_text(f"{text}\n")
    assert roof.caches() == (("L1 cache", 48 * 2**10), ("L2 cache", 2 * 2**20))

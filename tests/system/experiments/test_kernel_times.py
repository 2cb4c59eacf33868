"""Calls of kernels, and what is measured of them. How long a call takes is not asserted."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernels
from experiments.cli.main import main
from experiments.measure import kernel_times, roof
from experiments.measure.kernel_cases import KERNEL_CASES
from experiments.measure.kernel_times import Peaks, Row


@pytest.fixture(autouse=True)
def low_roof(monkeypatch):
    """Look for the roof with small arrays only: how high it is is not asserted."""
    monkeypatch.setattr(roof, "LARGEST", 2**16)
    monkeypatch.setattr(roof, "SIDES", (32,))


PEERS = [name for name, call in KERNEL_CASES.items() if call.peer]


def arguments(name, n=1000):
    return KERNEL_CASES[name].arguments(np.random.default_rng(2), n)


def own(args):
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in args)


def test_every_kernel_has_a_call():
    assert sorted(KERNEL_CASES) == sorted(kernel_times.names())


@pytest.mark.parametrize("n", [1, 63, 1000])
def test_a_call_of_any_size_has_a_price(n):
    for name in KERNEL_CASES:
        flops, words = getattr(kernels, name).price(*arguments(name, n))
        assert flops >= 0 and words > 0, name


def test_a_call_handles_about_so_many_numbers():
    for name in KERNEL_CASES:
        largest = max(x.size for x in arguments(name, 50_000) if isinstance(x, np.ndarray))
        assert 40_000 <= largest <= 500_000, name


@pytest.mark.parametrize("name", PEERS)
def test_torch_says_the_same(name):
    torch = pytest.importorskip("torch")
    args, peer = own(arguments(name)), KERNEL_CASES[name].peer
    with torch.no_grad():
        tensors = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
        given = getattr(kernels, name).module.reference(*tensors) if peer == "eager" else peer(torch, *tensors)
    returned = getattr(kernels, name).module.reference(*args)
    expected = [x for x in args if isinstance(x, np.ndarray)]
    if returned is not None:
        expected = [*map(np.asarray, returned if isinstance(returned, tuple) else (returned,)), *expected]
    found = given if isinstance(given, tuple) else [x for x in tensors if hasattr(x, "shape")]
    if not isinstance(given, tuple) and returned is not None:
        expected = expected[1:]  # a loss, which the peer computes and does not give
    for one, other in zip(found, expected, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_a_kernel_is_timed_beside_numpy_and_torch():
    report = kernel_times.measure(["sgd", "pack"], 200)
    sgd, pack = report.rows
    assert (sgd.kernel, sgd.family, sgd.flops, sgd.bytes) == ("sgd", "updates", 400, 2400)
    assert sgd.intensity == pytest.approx(1 / 6)
    assert sgd.numpy > 0 and sgd.cpu > 0 and pack.torch is None
    assert sgd.working_set == 1600  # two vectors, of which one is read and written
    assert report.cpu.flops > 0 and all(rate > 0 for _, rate in report.cpu.streams)


def test_of_a_large_vector_only_the_lines_that_are_touched_count():
    for name, n in (("gather", 100_000), ("sgd", 100_000)):
        arrays = [x for x in arguments(name, n) if isinstance(x, np.ndarray)]
        _, words = getattr(kernels, name).price(*arguments(name, n))
        row = kernel_times._row(name, KERNEL_CASES[name], n, None, None, [])
        assert row.working_set == min(sum(x.nbytes for x in arrays), 64 * words)
        assert (row.working_set < arrays[1].nbytes) == (name == "gather")


PEAKS = Peaks(100.0, ((2**13, 20.0), (2**20, 10.0), (2**28, 5.0)), (("L1 cache", 2**15), ("L2 cache", 2**21)))


def test_the_roof_is_a_slope_and_then_flat():
    assert [PEAKS.roof(intensity, 2**13) for intensity in (0.5, 5.0, 50.0)] == [10.0, 100.0, 100.0]


def test_the_roof_is_that_of_the_place_where_the_numbers_lie():
    assert [PEAKS.roof(1.0, size) for size in (100, 2**13, 2**20, 2**21 - 1, 2**21, 2**28, 2**40)] == [
        *(20.0, 20.0, 10.0, 10.0, 5.0, 5.0, 5.0)
    ]
    assert [PEAKS.level(size) for size in (2**13, 2**20, 2**28)] == ["L1 cache", "L2 cache", "memory"]
    assert Peaks(1.0, PEAKS.streams).level(2**13) == ""


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=16), st.lists(st.integers(1, 2**30), min_size=2, max_size=2))
def test_fewer_bytes_never_have_a_lower_roof_however_busy_the_machine_was(rates, sizes):
    peaks = Peaks(1.0, tuple((2 ** (13 + k), rate) for k, rate in enumerate(rates)))
    assert peaks.bandwidth(min(sizes)) >= peaks.bandwidth(max(sizes))


def test_what_is_reached_is_a_share_of_the_roof_and_of_the_bandwidth_where_nothing_is_computed():
    assert kernel_times.roof_share(Row("a", "b", 1, flops=40, bytes=80, working_set=80, cpu=8.0), PEAKS) == 0.5
    assert kernel_times.roof_share(Row("a", "b", 1, flops=0, bytes=80, working_set=80, cpu=8.0), PEAKS) == 0.5
    assert kernel_times.roof_share(Row("a", "b", 1, flops=400, bytes=80, working_set=80, cpu=8.0), PEAKS) == 0.5
    assert kernel_times.roof_share(Row("a", "b", 1, flops=0, bytes=80, working_set=2**20, cpu=8.0), PEAKS) == 1.0


def test_a_call_is_timed_until_the_device_is_done():
    order = []
    kernel_times.seconds(lambda: order.append("call"), lambda: order.append("wait"))
    assert order[:2] == ["call", "wait"] and order[-1] == "wait"


def test_a_job_keeps_the_report(tmp_path):
    job_spec, parts = kernel_times.job_spec(["gather"], 100), []
    folder = job_spec.perform(tmp_path, parts.append)
    report = kernel_times.load(folder)
    assert job_spec.find_result(tmp_path) == folder and parts == [0.0]
    assert report.rows[0].flops == 0 and math.isfinite(report.rows[0].cpu)
    assert report.row("gather") and report.row("sgd") is None


def test_the_command_prints_the_same_table(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["kernels", "sgd", "--size", "100"]) == 0
    out = capsys.readouterr().out
    assert "GFLOP/s (matrix product); streaming" in out and "of roof" in out and "lies in" in out
    head, row = out.splitlines()[-2:]
    assert head.split()[0] == "kernel" and row.split()[:3] == ["sgd", "200", "1,200"]
    assert main(["kernels", "sgd", "--size", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["bytes"] == 1200


def test_the_command_knows_no_other_kernels(capsys):
    assert main(["kernels", "sgdd"]) == 2
    assert "there is no kernel 'sgdd'; did you mean sgd?" in capsys.readouterr().err

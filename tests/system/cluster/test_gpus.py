"""Ranks on real GPUs: `pytest -m gpu`, on a machine that has one or more.

NCCL takes one rank per GPU, and tells GPUs apart by host and bus. Where there is one GPU, ranks that call themselves
different hosts are let in, and talk by the loopback.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest

import algorithms
from cluster.real import gpus, processes
from experiments.execution.run import run, train
from experiments.specification.catalogue import COMPRESSIONS
from experiments.specification.experiment import Experiment
from kernels.graph import ReplayedGradient
from tracing import COMPUTE, IDLE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus.count(), reason="no CUDA GPU was found here"),
]

NAMES = [name for name in algorithms.names() if algorithms.family(name) != "shared_memory"]


def each_on_a_host(backend: str, local: int) -> str:
    """Stand in for `gpus.place_of`: NCCL finds this rank's GPU on a host of its own."""
    os.environ |= {"NCCL_HOSTID": f"host {local}", "NCCL_SOCKET_IFNAME": "lo"}
    return "cuda:0"


def over_nccl(program, size):
    """Run `program` on ranks that NCCL connects, whether or not they have a GPU each."""
    return processes.run(program, size, backend="nccl", warm_up=apart, timeout=60)


def apart(place):
    """Warm up on a rank: from now on it has its GPU to itself, as far as NCCL knows."""
    gpus.place_of, gpus.unless_one_each = each_on_a_host, lambda *_: []


def keep_the_contract(comm):
    import torch

    x = torch.full((1000,), comm.rank + 1.0, device=comm.device)
    total = comm.all_reduce(x.clone())
    mean = comm.all_reduce(x.clone(), "mean", async_op=True).wait()
    comm.send((x, 3), 1 - comm.rank)
    x += 10
    src, (other, three) = comm.recv_any()
    piece = comm.reduce_scatter(x)
    gathered = comm.all_gather(x)
    alone = comm.split(comm.rank).all_reduce(x.clone())
    on_cpu = comm.all_reduce(np.ones(2))
    arrays = total, mean, other, piece, *gathered, alone
    return {str(a.device) for a in arrays}, [float(a[0]) for a in arrays], len(piece), src, three, float(on_cpu[0])


def expect_the_contract(outcome, places) -> None:
    assert outcome.error is None, outcome.error
    for mine, result in enumerate(outcome.results):
        values = [3.0, 1.5, 2.0 - mine, 23.0, 11.0, 12.0, 11.0 + mine]
        assert result == ({places[mine]}, values, 500, 1 - mine, 3, 2.0)


def test_ranks_keep_the_contract_with_arrays_that_stay_on_their_gpus():
    outcome, there = processes.run(keep_the_contract, 2, backend="nccl"), gpus.count()
    expect_the_contract(outcome, [f"cuda:{mine % there}" for mine in range(2)])
    assert outcome.gpus == min(there, 2) and any("shared 1 GPU" in note for note in outcome.notes) == (there == 1)


def test_ranks_keep_the_contract_over_nccl():
    outcome = over_nccl(keep_the_contract, 2)
    expect_the_contract(outcome, ["cuda:0"] * 2)
    assert not outcome.notes


def expect_the_same(e: Experiment, got: np.ndarray) -> None:
    """A model from GPUs is that of the simulated cluster, up to rounding."""
    want = run(e).parameters
    assert np.abs(got - want).max() < 1e-3 * np.abs(want).max()


@pytest.mark.parametrize("name", ["sync_sgd", "zero1", "local_sgd"])
def test_a_method_learns_over_nccl_what_it_learns_on_the_simulated_cluster(name):
    e = Experiment(algorithm=name, workers=2, steps=8, evaluations=1)
    outcome = over_nccl(partial(train, e.change(cluster="gpus")), 2)
    assert outcome.error is None, outcome.error
    expect_the_same(e, outcome.results[0])


@pytest.mark.parametrize(
    "settings",
    [
        *({"algorithm": name} for name in NAMES),
        *({"algorithm": "sync_sgd", "compression": name} for name in COMPRESSIONS if name != "none"),
        *({"algorithm": "sync_sgd", "workload": name} for name in ("quadratic", "sparse", "spirals", "text")),
        *({"algorithm": "gpipe", "workload": "digits", "data": {"model": model}} for model in ("residual", "cnn")),
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_method_learns_on_gpus_what_it_learns_on_the_simulated_cluster(settings):
    e = Experiment(steps=8, evaluations=1, **settings)
    got = run(e.change(cluster="gpus"))
    assert got.status == "finished", got.error
    if e.method.is_deterministic(e.knobs):
        expect_the_same(e, got.parameters)
    else:
        assert np.isfinite(got.parameters).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "sgd"},
        {"algorithm": "adam", "workload": "text"},
        {"algorithm": "momentum", "model": "cnn_bn"},
        {"algorithm": "sgd", "model": "residual", "recompute_activations": True, "precision": "float64"},
        {"algorithm": "sync_sgd", "workers": 2},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_run_with_graphs_ends_with_the_bits_of_a_run_without(settings):
    e = Experiment.of({"workers": 1, "steps": 8, "evaluations": 1, "cluster": "gpus", **settings})
    launched, replayed = run(e), run(e.change(cuda_graph=True))
    assert replayed.status == "finished", replayed.error
    assert not [note for note in replayed.notes if "cuda_graph" in note]
    assert replayed.parameters.tobytes() == launched.parameters.tobytes()


def test_a_gpu_works_on_after_a_capture_that_failed():
    import torch

    def by_sign(w, x):
        return 0.0, w + x if float(x.sum()) > 0 else w - x

    reasons: list[str] = []
    replayed = ReplayedGradient(by_sign, reasons.append)
    before = torch.cuda.current_stream()
    for sign in (1.0, -1.0, 1.0, -1.0):
        w, x = torch.ones(5, device="cuda"), torch.full((5,), sign, device="cuda")
        assert torch.equal(replayed(w, x)[1], w + x.abs())
    assert torch.cuda.current_stream() == before and not replayed.replays
    (why,) = reasons
    assert "captur" in why and "\n" not in why


def test_a_rank_on_a_gpu_is_slowed_and_pauses_as_it_is_told():
    e = Experiment(algorithm="sync_sgd", workers=3, steps=40, evaluations=1, slow="1:4", pause="2:0.1-0.3")
    got = run(e.change(cluster="gpus"))
    assert got.status == "finished", got.error
    busy = got.trace.busy()
    assert 0.1 < busy[2, IDLE] < 0.21
    assert busy[1, COMPUTE] > 1.5 * busy[0, COMPUTE]


def test_the_crash_of_a_rank_on_a_gpu_ends_the_run_with_what_it_has_recorded():
    got = run(Experiment(algorithm="asgd", workers=3, steps=2000, evaluations=1, cluster="gpus", crash="1:0.5"))
    assert got.status == "failed" and "rank 1 was lost" in got.error and "SIGKILL" in got.error
    assert len(got.losses["loss"]) > 3

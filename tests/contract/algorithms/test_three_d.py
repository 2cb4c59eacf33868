import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.training import train
from tests.unit.workloads.test_tensor_shard import dense, text
from tracing import COMPUTE, HELD

LAYOUTS = [(1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 2), (2, 2, 1), (2, 1, 2), (1, 2, 2), (2, 3, 2), (4, 2, 1)]


@pytest.mark.parametrize(("tensor", "stages", "replicas"), LAYOUTS)
@pytest.mark.parametrize("model", [text, lambda: dense(5, 4, 6, 8, 3, 4, 2)], ids=["transformer", "three pairs"])
def test_the_model_depends_on_the_batch_of_all_and_not_on_the_layout(model, tensor, stages, replicas):
    layout = {"tensor": tensor, "stages": stages, "chunks": 2, "learning_rate": 0.1}
    together = train("three_d", model(), tensor * stages * replicas, layout, batch=8 // replicas, steps=20)
    alone = train("sgd", model(), 1, {"learning_rate": 0.1}, batch=8, steps=20)
    np.testing.assert_allclose(together.shipped, alone.models[0], rtol=1e-12, atol=1e-12)


def test_matrices_are_cut_among_neighbours_stages_lie_further_and_replicas_furthest():
    done = train("three_d", text(), 8, {"chunks": 2}, batch=4, steps=1)
    sent = done.outcome.trace().traffic()
    assert {(src, dst) for src, dst in zip(*np.nonzero(sent), strict=True)} == (
        {(rank, rank ^ 1) for rank in range(8)}  # tensor: 0 and 1, 2 and 3, ...
        | {(rank, rank ^ 2) for rank in range(8)}  # stages: 0 and 2, ...
        | {(rank, rank ^ 4) for rank in range(8)}  # replicas: 0 and 4, ...
    )


def test_between_stages_every_place_sends_activations_there_and_their_gradients_back():
    batch, time, width = 4, 3, 8
    sent = (
        train("three_d", text(time=time, width=width), 4, {"chunks": 2}, batch=batch, steps=3).outcome.trace().traffic()
    )
    assert sent[0, 2] == sent[1, 3] == sent[2, 0] == sent[3, 1] == 8 * 3 * batch * time * width


def test_replicas_average_the_gradients_of_their_piece():
    done = train("three_d", dense(5, 4, 6, 8, 3), 8, {"chunks": 2}, batch=4, steps=3)
    d = [w.size for w in done.outcome.results]
    sent = done.outcome.trace().traffic()
    assert [sent[rank, rank ^ 4] for rank in range(8)] == [8 * 3 * size for size in d]  # 2 (D-1)/D d of each


def test_micro_batches_keep_the_stages_busy():
    def idle(chunks):
        settings = {"tensor": 1, "stages": 2, "chunks": chunks, "learning_rate": 0.01}
        trace = train("three_d", dense(64, 64, 64, 64, 64), 2, settings, batch=8, steps=1).outcome.trace()
        busy = trace.busy()[:, COMPUTE]
        return 1 - busy.sum() / (2 * trace.seconds())

    assert idle(8) < idle(2) < idle(1)


def test_a_rank_holds_its_piece_of_its_stage():
    def held(**layout):
        layers = {"hidden": "64,64,64", "batch": 16, "steps": 1, "evaluations": 1}
        return run(Experiment.of({"algorithm": "three_d"} | layers | layout)).peaks()[:, HELD.index("parameters")]

    whole = held(workers=1, tensor=1, stages=1)[0]
    parts = held(workers=4)
    assert parts.max() < 0.36 * whole and parts.sum() < 1.05 * whole


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"workers": 6}, "tensor 2 … stages 2 … 6 workers … multiple of 4"),
        ({"workers": 1}, "tensor 2 … stages 2 … 1 worker … multiple of 4"),
        ({"workers": 6, "stages": 3}, "3 stages … 2 blocks … at most 2."),
        ({"workers": 6, "tensor": 3}, "3 ranks … 64 units of layer 0 … 1, 2, 4, 8, 16, 32 or 64."),
        ({"batch": 6}, "4 micro-batches … batch of 6 … 1, 2, 3 or 6."),
        ({"workload": "quadratic"}, "quadratic … no layers"),
    ],
    ids=str,
)
def test_layouts_that_cannot_be_are_refused_with_those_that_can(given, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        run(Experiment.of({"algorithm": "three_d"} | given))

"""Synchronised batch norm: the mini-batches of all workers are one batch, and what that costs."""

from itertools import pairwise

import numpy as np
import pytest

import algorithms
from experiments.execution.run import check, run, workload_of
from experiments.specification.experiment import Experiment
from tracing import COMMUNICATE, COMPUTE, WAIT
from workloads.batch_statistics import use_gather

NORMED = {"model": "cnn_bn", "channels": 2, "steps": 3, "precision": "float64", "learning_rate": 0.1}
SIGNS = ["demo"]  # a step by the sign of a zero gradient makes rounding errors as large as any other step
TOGETHER = [name for name in algorithms.names() if algorithms.find(name).computes_together and name not in SIGNS]


def ran(**values):
    done = run(Experiment.of({**NORMED, **values}))
    assert done.status == "finished", done.summary
    return done


@pytest.mark.parametrize("name", TOGETHER)
def test_with_it_four_workers_of_16_samples_are_one_of_64_and_without_it_they_are_not(name):
    mean = {"aggregate": "mean"} if name == "robust" else {}
    whole = ran(algorithm=name, workers=1, batch=64, **mean).parameters
    for synchronised in (True, False):
        parts = ran(algorithm=name, workers=4, batch=16, sync_batch_norm=synchronised, **mean).parameters
        assert np.allclose(parts, whole, rtol=0, atol=1e-12) == synchronised


def test_one_worker_has_nobody_to_synchronise_with():
    alone = [ran(workers=1, sync_batch_norm=on) for on in (False, True)]
    assert alone[0].parameters.tobytes() == alone[1].parameters.tobytes()
    assert alone[0].trace.seconds() == alone[1].trace.seconds()


def test_each_norm_exchanges_two_numbers_per_filter_forward_and_backward_outside_of_computing():
    plain, synchronised = (ran(workers=4, batch=16, sync_batch_norm=on).trace for on in (False, True))
    more = synchronised.traffic().sum() - plain.traffic().sum()
    filters, exchanges, hops = 2 + 4, 2, 4 * 3  # of two norms; all ranks pass on what they have to all others
    assert more == 3 * 2 * filters * exchanges * hops * 8
    assert synchronised.seconds() > plain.seconds()
    spans = synchronised.spans
    mine = spans["rank"] == 0
    order = np.argsort(spans["start"][mine], kind="stable")
    starts, ends, kinds = (spans[name][mine][order] for name in ("start", "end", "kind"))
    assert (starts[1:] >= ends[:-1] - 1e-12).all()
    computing = np.flatnonzero(kinds == COMPUTE)
    assert all({COMMUNICATE, WAIT} & {*kinds[a + 1 : b]} for a, b in pairwise(computing))


def test_an_evaluation_asks_no_other_worker_also_while_a_rank_is_in_the_middle_of_a_step():
    workload = workload_of(Experiment.of(NORMED))
    w = workload.start(0)
    expected = workload.evaluate(w)
    with use_gather(lambda message: pytest.fail("an evaluation waits for other workers")):
        assert workload.evaluate(w) == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"algorithm": "easgd"}, "easgd do not compute"),
        ({"algorithm": "backup"}, "backup do not compute"),
        ({"algorithm": "gpipe", "workers": 2}, "gpipe do not compute"),
        ({"model": "mlp", "channels": None}, "it has no batch norm"),
    ],
)
def test_methods_and_models_without_a_common_batch_refuse_it_in_a_sentence(values, words):
    values = {name: value for name, value in {**NORMED, "sync_batch_norm": True, **values}.items() if value is not None}
    with pytest.raises(ValueError, match=words):
        check(Experiment.of(values))

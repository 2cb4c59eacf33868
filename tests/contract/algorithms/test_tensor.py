"""Tensor parallelism: what it computes is what one rank computes, and what it says is what the formulas say."""

import numpy as np
import pytest

import kernels
import workloads
from algorithms.model_parallel import tensor
from algorithms.parts.vocabulary_loss import cross_entropy
from cluster import simulated
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.training import train
from tests.unit.workloads.test_tensor_shard import dense, text
from tracing import HELD
from workloads.budget import Budget
from workloads.task import Task

MODELS = {
    "a pair": lambda: dense(5, 12, 3),
    "two pairs": lambda: dense(5, 4, 6, 8, 3, activation="relu"),
    "a pair and a last layer": lambda: dense(5, 4, 6, 3),
    "a last layer": lambda: dense(5, 4),
    "a transformer": text,
}
RANKS = dict.fromkeys(MODELS, (1, 2, 4)) | {"a pair and a last layer": (1, 2)}
every_model = pytest.mark.parametrize(
    ("name", "ranks"), [(name, ranks) for name in MODELS for ranks in RANKS[name]], ids=str
)


def on_ranks(workload, ranks, program, batch=4):
    """What `program(comm, task, shard)` gives on each rank, and the outcome."""

    def rank(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=batch)
        return program(comm, task, task.tensor_shard(comm.rank, comm.size))

    outcome = simulated.run(rank, ranks)
    if outcome.error:
        raise outcome.error
    return outcome.results, outcome


def gradient(comm, task, shard, between=tensor.Replicated):
    """(loss, g, dx of the last block) of one mini-batch."""
    between = between(comm)
    w, (x, target) = shard.start(), task.next_batch()
    y, saved = tensor.forward(shard.blocks, w, x, between)
    loss, dy = cross_entropy(comm, shard, y, target) if shard.outputs_split else shard.loss(between.whole(y), target)
    g = kernels.empty_like(w)
    tensor.backward(shard.blocks, w, saved, dy if shard.outputs_split else between.own_part(dy), g, between)
    if between.__class__ is tensor.SequenceParallel:
        comm.all_reduce(g[shard.norms])
    return loss, g, shard.where


@every_model
@pytest.mark.parametrize("between", [tensor.Replicated, tensor.SequenceParallel])
def test_loss_and_all_gradients_are_those_of_one_rank(name, ranks, between):
    workload = MODELS[name]()
    loss, whole = workload.gradient(workload.start(0), workload.batch(np.arange(len(workload.x))[ORDER][:4]))
    for mine, g, where in on_ranks(workload, ranks, lambda *given: gradient(*given, between))[0]:
        assert mine == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(g, whole[where], rtol=1e-12, atol=1e-14)


ORDER = np.random.default_rng([0, 0xBA7C, 0]).permutation(8)  # of the first epoch


@every_model
@pytest.mark.parametrize("sequence", [False, True])
def test_twenty_steps_end_where_one_rank_ends(name, ranks, sequence):
    settings = {"learning_rate": 0.1, "update": "momentum", "momentum": 0.5}
    shared = train("tensor", MODELS[name](), ranks, settings | {"sequence": sequence}, batch=4, steps=20)
    alone = train("sync_sgd", MODELS[name](), 1, settings, batch=4, steps=20)
    np.testing.assert_allclose(shared.shipped, alone.models[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sequence", [False, True])
def test_what_all_have_alike_stays_alike_bit_for_bit(sequence):
    done = train("tensor", text(), 4, {"sequence": sequence}, batch=4, steps=20)
    alike = done.outcome.results[1].size - done.outcome.event_logs[1].reports[0][4].size  # rank 0 reports these
    assert alike > 100 and len({w[-alike:].tobytes() for w in done.outcome.results}) == 1


def test_without_fs_sum_on_the_way_back_only_the_others_contributions_are_missing():
    class Forgetful(tensor.Replicated):
        def f_back(self, dh):
            return dh

    def errors(comm, task, shard, between):
        (_, second), between = shard.blocks, between(comm)
        w, (x, target) = shard.start(), task.next_batch()
        y, saved = tensor.forward(shard.blocks, w, x, between)
        _, dy = shard.loss(y, target)
        g = kernels.empty_like(w)
        return tensor.backward([second], w, saved[1:], dy, g, between)

    workload = dense(5, 4, 6, 8, 3)
    whole, *_ = on_ranks(workload, 2, lambda *given: errors(*given, tensor.Replicated))[0]
    mine, theirs = on_ranks(workload, 2, lambda *given: errors(*given, Forgetful))[0]
    assert np.abs(mine - whole).max() > 0.01
    np.testing.assert_allclose(mine + theirs, whole, rtol=1e-12)


def moved(workload, ranks, **settings):
    """Numbers that all ranks send in one step of 4 samples."""
    done = train("tensor", workload, ranks, settings, batch=4, steps=1)
    return done.outcome.trace().traffic().sum() / 8


def judging(rows, ranks):
    """Numbers sent for the loss: largest logits are gathered, two sums are summed."""
    return ranks * (ranks - 1) * rows + 2 * (ranks - 1) * 2 * rows


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_transformer_layer_sends_8bsh_numbers_as_the_paper_says(ranks):
    b, s, h, blocks = 4, 3, 8, 2
    embedding, head = 2 * (ranks - 1) * b * s * h, 2 * (ranks - 1) * b * s * h  # g of the one, f of the other
    each_rank = 8 * b * s * h * (ranks - 1) / ranks  # of attention and MLP together
    assert moved(text(time=s, width=h), ranks) == embedding + blocks * ranks * each_rank + head + judging(b * s, ranks)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_pair_of_dense_layers_sums_its_outputs_and_but_for_the_first_its_inputs_gradient(ranks):
    assert moved(dense(5, 4, 6, 8, 3), ranks) == 2 * (ranks - 1) * 4 * (6 + 6 + 3)


def test_the_sequence_parallel_form_moves_the_same_and_the_gradients_of_norms():
    norms = (2 + 2 + 1) * 2 * 8  # of four blocks and the head
    assert moved(text(), 4, sequence=True) == moved(text(), 4) + 2 * 3 * norms


def test_only_three_numbers_of_a_row_cross_for_the_loss_however_many_the_classes():
    assert moved(dense(5, 100), 2) == moved(dense(5, 4), 2) == judging(4, 2)


@pytest.mark.parametrize("classes", [4, 7])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_the_loss_of_dealt_logits_is_softmax_cross_entropy(classes, ranks):
    rng = np.random.default_rng(1)
    z, target = 30 * rng.standard_normal((6, classes)), rng.integers(0, classes, 6)
    dz = np.empty_like(z)
    loss = kernels.softmax_cross_entropy(dz, z, target)

    def program(comm, task, shard):
        mine = np.ascontiguousarray(z[:, shard.classes])
        return *cross_entropy(comm, shard, mine, target), shard.classes

    for mine, own, here in on_ranks(dense(5, classes), ranks, program)[0]:
        assert mine == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(own, dz[:, here], rtol=1e-12, atol=1e-15)


def test_matrices_and_what_lies_between_them_are_dealt_out_and_rows_too_in_the_sequence_form():
    def held(workers, **settings):
        base = {"algorithm": "tensor", "workload": "text", "batch": 8, "steps": 1, "evaluations": 1}
        return run(Experiment.of(base | {"workers": workers} | settings)).peaks()[0]

    parameters, _, _, activations, _ = range(len(HELD))
    whole, shared, by_rows = held(1), held(4), held(4, sequence=True)
    assert whole[parameters] / 4 < shared[parameters] < whole[parameters] / 3
    assert whole[activations] / 4 < by_rows[activations] < 0.8 * shared[activations]
    assert shared[activations] < 0.5 * whole[activations]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"workers": 3}, "3 ranks … 128 units of layer 0 … 1, 2, 4 or 8."),
        ({"workload": "quadratic"}, "quadratic … no layers … columns and rows … digits"),
        ({"model": "cnn"}, "layer 0 … Convolution"),
        ({"workload": "text", "workers": 8}, "8 ranks … 4 heads of layer 1 … 1, 2 or 4."),
        ({"sequence": True, "batch": 30}, "4 ranks … 30 rows … multiple of 4."),
    ],
    ids=str,
)
def test_what_cannot_be_dealt_out_is_refused_with_what_can(given, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        run(Experiment.of({"algorithm": "tensor"} | given))


def test_accuracy_on_digits_does_not_depend_on_the_number_of_ranks():
    def accuracy(workers):
        return run(Experiment.of({"algorithm": "tensor", "workers": workers, "steps": 30})).evaluations["accuracy"]

    assert accuracy(1).tolist() == accuracy(4).tolist()


def test_a_transformer_reads_with_its_heads_on_different_ranks():
    text = workloads.find("text")
    workload = text.build(text.Settings(), np.float32)
    tried = workload.evaluate(train("tensor", workload, 4, {"learning_rate": 0.5}, batch=16, steps=60).shipped)
    assert tried.loss < 3.15  # who knows only how often each character comes


@pytest.mark.parametrize("ranks", [2, 4])
def test_rows_before_columns_need_one_sum_more_since_phi_of_a_sum_is_not_the_sum_of_phis(ranks):
    x, a, b = (np.random.default_rng(n).standard_normal(shape) for n, shape in enumerate([(3, 8), (8, 8), (8, 3)]))
    whole = np.tanh(x @ a) @ b

    def program(comm):
        own = slice(comm.rank * 8 // ranks, (comm.rank + 1) * 8 // ranks)
        columns_first = comm.all_reduce(np.tanh(x @ a[:, own]) @ b[own])
        partial = x[:, own] @ a[own]
        rows_first = comm.all_reduce(np.tanh(partial)[:, own] @ b[own])
        summed = comm.all_reduce(np.tanh(comm.all_reduce(partial))[:, own] @ b[own])
        return columns_first, summed, rows_first

    for columns_first, summed, rows_first in simulated.run(program, ranks).results:
        np.testing.assert_allclose(columns_first, whole, rtol=1e-12)
        np.testing.assert_allclose(summed, whole, rtol=1e-12)
        assert np.abs(rows_first - whole).max() > 0.1


@pytest.mark.parametrize("name", ["tensor", "three_d"])
def test_what_ends_is_the_model_of_the_last_step_also_where_its_report_was_not_kept(name):
    short = {"hidden": "8,8", "steps": 3, "evaluations": 1, "learning_rate": 0.1, "workload": "digits"}
    shared = run(Experiment.of({"algorithm": name, "workers": 4, "batch": 4} | short))
    alone = run(Experiment.of({"algorithm": "sgd", "workers": 1, "batch": 4} | short))
    assert shared.summary["held_out_loss"] == pytest.approx(alone.summary["held_out_loss"], rel=1e-6)

from itertools import pairwise

import numpy as np
import pytest

import kernels
import workloads
from cluster import simulated
from tests.quotes import quote
from workloads import transformer
from workloads.budget import Budget
from workloads.layers import Convolution, Dense
from workloads.sequential import Sequential
from workloads.supervised import Supervised
from workloads.task import Task


def dense(*sizes, loss=kernels.softmax_cross_entropy, activation="tanh"):
    layers = [Dense((i,), o, activation) for i, o in pairwise(sizes[:-1])]
    return supervised([*layers, Dense((sizes[-2],), sizes[-1], "none")], loss)


def text(tokens=7, time=3, width=8, heads=4):
    layers = transformer.layers(tokens, time, width, heads, depth=4)
    return supervised(layers, kernels.softmax_cross_entropy)


def supervised(layers, loss):
    rng = np.random.default_rng(0)
    chain = Sequential(layers, loss, np.float64)
    whole = isinstance(layers[0], transformer.Embedding)
    x = rng.integers(0, layers[0].tokens, (8, layers[0].time)) if whole else rng.standard_normal((8, *chain.inputs))
    shape = (8, *chain.outputs[:-1])
    target = rng.integers(0, chain.outputs[-1], shape) if loss.name == "softmax_cross_entropy" else x[:, :1]
    return Supervised("net", chain, (x, target), (x, target))


def shards(workload, ranks):
    def program(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=4)
        shard = task.tensor_shard(comm.rank, comm.size)
        return shard, shard.start()

    outcome = simulated.run(program, ranks)
    if outcome.error:
        raise outcome.error
    return outcome.results


def spelled(value):
    """A model by its layers: what processes that share the tests out call it alike."""
    return " ".join(map(str, value.model.layers))[:60] if hasattr(value, "model") else str(value)


@pytest.mark.parametrize("workload", [dense(5, 4, 6, 4, 3), dense(5, 8, 6), dense(5, 3), text()], ids=spelled)
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_number_is_alone_on_one_shard_or_alike_on_all(workload, ranks):
    held = shards(workload, ranks)
    alone = np.concatenate([shard.where[: shard.sharded] for shard, _ in held])
    alike = [shard.where[shard.sharded :].tolist() for shard, _ in held]
    assert all(places == alike[0] for places in alike)
    assert sorted([*alone, *alike[0]]) == list(range(workload.parameters))


@pytest.mark.parametrize("workload", [dense(5, 4, 6, 4, 3), text()], ids=spelled)
def test_shards_start_as_the_whole_model_does(workload):
    whole = workload.start(0)
    for shard, w in shards(workload, 2):
        assert np.array_equal(w, whole[shard.where])


def test_a_rank_of_two_holds_half_of_every_matrix():
    (shard, w), _ = shards(dense(5, 4, 6), 2)
    assert len(w) == (5 * 4 + 4 + 4 * 6) // 2 + 6
    assert shard.norms == slice(len(w), len(w)) and not shard.outputs_split


def test_norms_lie_last():
    _, (shard, w) = shards(text(width=8), 2)
    assert len(w) - shard.norms.start == (4 + 1) * 2 * 8  # of four blocks and the head
    assert np.array_equal(w[shard.norms][:8], np.ones(8)) and shard.outputs_split


def test_outputs_need_not_be_divided_by_the_ranks():
    classes = [shard.classes for shard, _ in shards(dense(5, 3), 2)]
    assert [mine.tolist() for mine in classes] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("workload", "ranks", "sentence"),
    [
        (dense(5, 12, 6, 8, 3), 3, "3 ranks … 8 units of layer 2 … 1, 2 or 4."),
        (dense(5, 3), 4, "4 ranks … 3 outputs … 1, 2 or 3."),
        (dense(5, 7, 3), 2, "2 ranks … 7 units of layer 0 … 1 or 7."),
        (text(width=12, heads=3), 2, "2 ranks … 3 heads of layer 1 … 1 or 3."),
        (text(width=8, heads=8, tokens=5), 8, "8 ranks … 5 outputs … 1, 2 or 4."),
        (
            dense(5, 4, 6, 2, loss=kernels.squared_error),
            2,
            "3 dense layers … add or remove one layer",
        ),
    ],
    ids=spelled,
)
def test_ranks_that_cannot_share_a_model_are_told_how_many_can(workload, ranks, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        workload.blocks(0, ranks)


def test_a_layer_that_is_not_cut_is_named():
    net = supervised([Convolution((1, 4, 4), 2), Dense((2, 2, 2), 3, "none")], kernels.softmax_cross_entropy)
    with pytest.raises(ValueError, match=quote("model mlp … workload text")):
        net.blocks(0, 2)


def test_only_the_first_rank_records_the_loss():
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(hidden="8"), np.float64)

    def program(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=4)
        shard = task.tensor_shard(comm.rank, comm.size)
        _, target = task.next_batch()
        shard.loss(np.zeros((4, 10)), target)

    losses = [[row[1:] for row in event_log.losses] for event_log in simulated.run(program, 2).event_logs]
    assert losses == [[(4, losses[0][0][1], pytest.approx(np.log(10)))], []]

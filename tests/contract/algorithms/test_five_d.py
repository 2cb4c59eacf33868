"""5D parallelism: five ways to divide the work, each alone and all at once, and what each of them sends."""

from functools import partial

import numpy as np
import pytest

import kernels
from algorithms.model_parallel.five_d import EIGHT, ONE
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from knobs import Refusal
from tests.quotes import quote
from tests.training import train
from tests.unit.workloads.test_tensor_shard import supervised
from tracing import HELD
from workloads import transformer
from workloads.experts import SHARED, MoeBlock

TIME, WIDTH, TOKENS, EXPERTS, BATCH, STEPS = 8, 8, 7, 4, 8, 5
RATE = {"learning_rate": 0.1}
ROOM = {"capacity": EXPERTS, "balance": 0.0}  # for all tokens, and no loss that depends on which tokens are together


def text(experts=EXPERTS, **settings):
    """Two blocks of attention, each followed by a mixture of experts, or by an MLP if there are no `experts`."""
    block = partial(MoeBlock, experts=experts, **settings) if experts else None
    return supervised(transformer.layers(TOKENS, TIME, WIDTH, 4, 4, block), kernels.softmax_cross_entropy)


def ranks(layout, replicas=1):
    return replicas * layout["tensor"] * layout["context_ranks"] * layout["stages"]


def course(layout, workload, replicas=1, steps=STEPS, **settings):
    settings = RATE | layout | settings
    return train("five_d", workload, ranks(layout, replicas), settings, batch=BATCH // replicas, steps=steps)


def losses(training):
    """The mean loss of each step, over all ranks that record one."""
    return np.mean([[row[3] for row in log.losses] for log in training.outcome.event_logs if log.losses], axis=0)


LAYOUTS = [
    (ONE | changed, replicas)
    for changed, replicas in (
        ({}, 1),
        ({"tensor": 2, "context_ranks": 2}, 1),
        ({"tensor": 2, "stages": 3}, 1),
        ({"context_ranks": 2, "stages": 2}, 1),
        ({"stages": 2, "expert_ranks": 2}, 2),
        ({"context_ranks": 4, "expert_ranks": 4}, 1),
        ({"stages": 2, "context_ranks": 2, "expert_ranks": 2, "chunks": 2}, 1),
        ({"tensor": 4, "expert_ranks": 2}, 2),
        ({"context_ranks": 2, "expert_ranks": 2}, 2),
        (EIGHT | {"expert_ranks": 2}, 1),
        (EIGHT | {"expert_ranks": 4}, 2),
    )
]


@pytest.mark.parametrize(("layout", "replicas"), LAYOUTS, ids=str)
def test_the_model_and_its_losses_depend_on_the_batch_of_all_and_not_on_the_layout(layout, replicas):
    together = course(layout, text(**ROOM), replicas)
    alone = train("sgd", text(**ROOM), 1, RATE, batch=BATCH, steps=STEPS)
    np.testing.assert_allclose(together.shipped, alone.models[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(losses(together), losses(alone), rtol=1e-12)


def same(training, other):
    return np.array_equal(training.shipped, other.shipped) and np.array_equal(losses(training), losses(other))


def test_with_whole_sequences_and_no_experts_it_is_3d_parallelism_bit_for_bit():
    layout = {"tensor": 2, "stages": 2, "chunks": 2}
    mine = course(ONE | layout, text(0), replicas=2)
    three = train("three_d", text(0), 8, RATE | layout, batch=BATCH // 2, steps=STEPS)
    assert same(mine, three)
    assert np.array_equal(mine.outcome.trace().traffic(), three.outcome.trace().traffic())


def test_with_nothing_but_context_ranks_it_is_context_parallelism():
    mine = course(ONE | {"context_ranks": 4}, text(0))
    context = train("context", text(0), 4, RATE, batch=BATCH, steps=STEPS)
    np.testing.assert_allclose(mine.shipped, context.models[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(losses(mine), losses(context), rtol=1e-12)


def test_with_nothing_but_expert_ranks_it_is_expert_parallelism_with_the_same_tokens_dropped():
    crowded = {"capacity": 0.5, "balance": 0.1}
    mine = course(ONE | {"expert_ranks": 4}, text(**crowded), replicas=4)
    expert = train("expert", text(**crowded), 4, RATE, batch=BATCH // 4, steps=STEPS)
    np.testing.assert_allclose(mine.shipped, expert.shipped, rtol=1e-12, atol=1e-12)
    roomy = course(ONE | {"expert_ranks": 4}, text(**ROOM), replicas=4)
    assert np.abs(mine.shipped - roomy.shipped).max() > 1e-3


def of_experts(workload):
    """The number of parameters of all experts."""
    blocks = [layer for layer in workload.model.layers if isinstance(layer, MoeBlock)]
    return sum(int(np.prod(shape)) for layer in blocks for shape in layer.shapes[SHARED:])


def test_copies_of_experts_and_of_all_else_stay_equal_bit_for_bit():
    workload = text()
    results = course(ONE | {"expert_ranks": 2}, workload, replicas=4).outcome.results
    own = of_experts(workload) // 2
    assert len({w[own:].tobytes() for w in results}) == 1
    assert [np.array_equal(w[:own], results[0][:own]) for w in results] == [True, False, True, False]


def test_every_number_is_reported_by_one_rank():
    done = course(EIGHT | {"expert_ranks": 2}, text(), replicas=2, steps=1)
    places = np.concatenate([where for log in done.outcome.event_logs for where in log.places.values()])
    assert sorted(places) == list(range(done.parameters))


def traffic(layout, workload, replicas=1, **settings):
    """Pairs of ranks between which anything is sent in a step, and the elements."""
    sent = course(layout, workload, replicas, steps=1, **settings).outcome.trace().traffic() / 8
    return sent, set(zip(*map(list, np.nonzero(sent)), strict=True))


def test_neighbours_share_matrices_then_sequences_then_stages_and_replicas_are_furthest():
    _, pairs = traffic(EIGHT, text(**ROOM), replicas=2)
    assert {int(src ^ dst) for src, dst in pairs} == {1, 2, 4, 8 | 2}  # a ring of both parts of both replicas


def test_each_place_sends_its_own_heads_round_the_ring():
    one, _ = traffic(ONE | {"context_ranks": 2}, text(0))
    two, _ = traffic(ONE | {"tensor": 2, "context_ranks": 2}, text(0))
    blocks, size, every = 2, 2, BATCH * TIME * WIDTH
    ring = blocks * every * (6 * size - 4)
    d = text(0).parameters
    assert one.sum() == ring + 2 * (size - 1) * (d + 1)  # and the loss
    between = [two[a, b] for a, b in ((0, 2), (2, 0), (1, 3), (3, 1))]
    copies = sum(w.size for w in course(ONE | {"tensor": 2}, text(0), steps=1).outcome.results)
    assert sum(between) == ring + 2 * (size - 1) * (copies + 2)


def test_experts_are_divided_by_their_ranks_and_by_matrices_and_only_biases_are_whole():
    workload = text(**ROOM)
    held = [w.size for w in course(ONE | {"tensor": 2, "expert_ranks": 2}, workload, 2, steps=1).outcome.results]
    alone = [w.size for w in course(ONE | {"tensor": 2}, workload, 2, steps=1).outcome.results]
    biases = 2 * EXPERTS * WIDTH  # of two blocks
    split = (of_experts(workload) - biases) / 2 + biases  # on a rank that has all experts
    assert [two - one for two, one in zip(held, alone, strict=True)] == [-split / 2] * 4


def test_a_rank_holds_activations_of_its_own_positions_heads_and_stage():
    def held(layout):
        peaks = [
            max(nbytes for _, _, kind, nbytes in log.memory if kind == HELD.index("activations"))
            for log in course(layout, text(0), steps=1).outcome.event_logs
        ]
        return max(peaks)

    half = held(ONE | {"context_ranks": 2})  # the ring keeps no probabilities, so compare with itself
    assert held(ONE | {"context_ranks": 4}) == pytest.approx(half / 2, rel=0.01)
    assert held(ONE | {"context_ranks": 2, "stages": 2}) < 0.6 * half
    assert held(ONE | {"tensor": 2, "context_ranks": 2}) < 0.7 * half


def test_ranks_measure_what_their_tokens_choose_as_in_expert_parallelism():
    crowded = {"capacity": 0.5, "balance": 0.1}

    def measured(training):
        return [[(what, value) for _, _, what, value in log.measures] for log in training.outcome.event_logs]

    mine = measured(course(ONE | {"expert_ranks": 4}, text(**crowded), replicas=4, steps=2))
    expert = train("expert", text(**crowded), 4, RATE, batch=BATCH // 4, steps=2)
    assert mine == measured(expert) and mine[0][0][0] == "tokens dropped" and mine[0][0][1] > 0
    stages = measured(course(ONE | {"stages": 3}, text(**crowded), steps=1))
    assert [bool(rows) for rows in stages] == [False, True, True]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"workers": 6}, "tensor 1 … context_ranks 2 … stages 2 … 6 workers … multiple of 4"),
        ({"workers": 10, "stages": 5}, "5 stages … 4 blocks … at most 4."),
        ({"workers": 12, "tensor": 3}, "3 ranks … 4 heads … 1, 2 or 4."),
        ({"batch": 6}, "4 micro-batches … batch of 6 … 1, 2, 3 or 6."),
        ({"context": 6}, "context_ranks 2 … 4 pieces … context of 6 … multiple of 4"),
        ({"experts": 6, "expert_ranks": 4, "workers": 16}, "expert_ranks 4 … 6 experts … 8 ranks … 1 or 2."),
        ({"experts": 4, "expert_ranks": 4}, "expert_ranks 4 … 4 experts … 2 ranks … 1 or 2."),
        ({"expert_ranks": 2}, "text has no experts"),
        ({"workload": "digits"}, "digits are not sequences … use text"),
        ({"workload": "quadratic"}, "quadratic … no layers"),
        ({"precision": "bf16"}, "cannot be split by columns"),
    ],
    ids=str,
)
def test_layouts_that_cannot_be_are_refused_with_those_that_can(given, sentence):
    with pytest.raises(ValueError, match=quote(sentence)) as refused:
        run(Experiment.of({"algorithm": "five_d", **given}))
    assert isinstance(refused.value, Refusal) or set(given) & {"workload", "precision"} or given == {"expert_ranks": 2}

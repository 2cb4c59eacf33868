"""Expert parallelism: rows travel to their experts and back, and all is as if each rank had all experts."""

from __future__ import annotations

import numpy as np
import pytest

import algorithms
import workloads
from algorithms.model_parallel.expert import TokenExchange
from cluster import simulated
from experiments.runs.evaluations import final
from experiments.specification.experiment import Experiment
from knobs import Refusal
from lessons.survey import costs
from tests.quotes import quote
from tests.training import ExpertChain, SilentExperts, train
from tracing import HELD
from workloads.budget import Budget
from workloads.experts import SHARED, MoeBlock
from workloads.task import Task

CONTEXT, WIDTH, EXPERTS, SAMPLES = 8, 8, 4, 3
both_sizes = pytest.mark.parametrize("ranks", [2, 4])


def text(**settings):
    module = workloads.find("text")
    shape = {"context": CONTEXT, "width": WIDTH, "heads": 2, "depth": 4, "experts": EXPERTS}
    return module.build(module.Settings(**shape | settings), np.dtype(np.float32))


def of_experts(workload):
    """The number of parameters of all experts."""
    blocks = [layer for layer in workload.model.layers if isinstance(layer, MoeBlock)]
    return sum(int(np.prod(shape)) for layer in blocks for shape in layer.shapes[SHARED:])


class RoomyChain(ExpertChain):
    """A chain whose experts have room for all tokens, and no balance loss."""

    block = staticmethod(
        lambda time, units, heads: SilentExperts(time, units, chosen=2, capacity=EXPERTS / 2, balance=0.0)
    )


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@both_sizes
def test_ranks_are_one_rank_with_the_samples_of_all_if_nothing_is_dropped_and_nothing_balances(ranks):
    def difference(kind):
        workload = kind(w=np.linspace(0.7, 1.0, 4), x=np.linspace(0.6, 1.2, 48))
        many = train("expert", workload, ranks, {"learning_rate": 0.1}, batch=2, steps=20)
        one = train("sgd", workload, 1, {"learning_rate": 0.1}, batch=2 * ranks, steps=20)
        return relative(many.shipped, one.shipped)

    assert difference(RoomyChain) < 1e-13
    assert difference(ExpertChain) > 1e-6  # shares of a rank's own tokens are others


def test_rows_go_to_the_rank_of_their_expert_in_the_order_of_ranks_and_come_back_as_they_went():
    ranks, own = 3, 2
    counts = np.random.default_rng(0).integers(0, 4, (ranks, ranks * own))  # rows of each rank for each expert

    def rows_of(rank):
        return [np.full((count, 2), 10.0 * rank + expert) for expert, count in enumerate(counts[rank])]

    def program(comm):
        exchange = TokenExchange(comm)
        received, saved = exchange.to_experts(rows_of(comm.rank))
        back = exchange.to_tokens(received, saved)
        same = all(np.array_equal(a, b) for a, b in zip(back, rows_of(comm.rank), strict=True))
        return same, [x[:, 0].tolist() for x in received]

    for rank, (same, received) in enumerate(simulated.run(program, ranks).results):
        assert same
        for place, values in enumerate(received):
            expert = rank * own + place
            assert values == [10.0 * of + expert for of in range(ranks) for _ in range(counts[of, expert])]


def routed(workload, ranks):
    """What each rank's tokens choose in the first step: rows by block and expert, (blocks, EXPERTS), on each rank."""

    class Alone:
        """All experts on each rank."""

        def to_experts(self, rows):
            return rows, None

        def to_tokens(self, rows, saved):
            return rows

    def program(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=SAMPLES, data_shard=comm.rank, data_shards=ranks)
        shard = task.expert_shard(0, 1)
        shard.gradient(shard.start(), task.next_batch(), Alone())
        return np.array(shard.taken), np.array(shard.wanted)

    return simulated.run(program, ranks).results


def first_step(workload, ranks):
    return train("expert", workload, ranks, {"learning_rate": 0.1}, batch=SAMPLES, steps=1)


@both_sizes
@pytest.mark.parametrize("chosen", [1, 2])
def test_it_sends_each_row_four_times_and_the_gradients_of_what_is_replicated(ranks, chosen):
    workload = text(chosen=chosen)
    own = EXPERTS // ranks
    away = sum(
        taken.sum() - taken[:, rank * own : (rank + 1) * own].sum()
        for rank, (taken, _) in enumerate(routed(workload, ranks))
    )
    replicated = workload.parameters - of_experts(workload)
    sent = first_step(workload, ranks).outcome.trace().traffic().sum() / 4
    assert sent == 4 * WIDTH * away + 2 * (ranks - 1) * replicated
    assert away > 0


def test_a_rank_measures_what_its_tokens_choose():
    workload = text(capacity=1.0)
    logs = first_step(workload, 2).outcome.event_logs
    for log, (taken, wanted) in zip(logs, routed(workload, 2), strict=True):
        measured = {quantity: value for _, _, quantity, value in log.measures}
        assert (
            measured["tokens dropped"] == pytest.approx(1 - taken.sum() / wanted.sum()) and taken.sum() < wanted.sum()
        )
        assert measured["imbalance"] == pytest.approx((wanted.max(1) / wanted.mean(1)).mean())


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_rank_holds_its_share_of_the_experts_as_the_survey_says(ranks):
    workload = text()
    logs = first_step(workload, ranks).outcome.event_logs
    said = costs.every()["expert"].evaluate(
        "memory", {"N": ranks, "d": workload.parameters, "x": of_experts(workload), "A": 0}
    )
    for log in logs:
        held = {HELD[kind]: nbytes / 4 for _, _, kind, nbytes in log.memory}
        assert held["parameters"] + held["gradients"] == said
    assert of_experts(workload) > workload.parameters / 2


def test_ranks_ship_the_whole_model_together():
    run = train("expert", text(), 4, {"learning_rate": 0.1}, batch=SAMPLES, steps=2)
    places = np.concatenate([where for log in run.outcome.event_logs for where in log.places.values()])
    assert sorted(places) == list(range(run.parameters))


@both_sizes
def test_the_final_model_is_what_ranks_reported_last(ranks):
    run = train("expert", text(), ranks, {"learning_rate": 0.1}, batch=SAMPLES, steps=2)
    np.testing.assert_array_equal(final(run.outcome.event_logs, run.outcome.results, run.parameters), run.shipped)


def test_the_balance_loss_spreads_tokens_over_experts():
    def imbalance(balance):
        run = train("expert", text(width=16, depth=2, balance=balance), 2, {"learning_rate": 0.5}, batch=16, steps=60)
        return np.mean(
            [value for log in run.outcome.event_logs for *_, what, value in log.measures[-20:] if what == "imbalance"]
        )

    assert imbalance(0.1) < imbalance(0.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workers": 3}, "3 workers do not divide 4 experts … 1, 2 or 4"),
        ({"workers": 8}, "8 workers do not divide 4 experts"),
        ({"workers": 4, "experts": 6}, "4 workers do not divide 6 experts … 1, 2, 3 or 6"),
        ({"experts": 0}, "text has no experts … with 4 experts"),
        ({"workload": "digits"}, "digits has no experts … use text"),
    ],
    ids=str,
)
def test_what_cannot_be_shared_is_refused_with_what_can(values, words):
    e = Experiment.of({"algorithm": "expert", **values})
    module = workloads.find(e.workload)
    with pytest.raises(ValueError, match=quote(words)) as refused:
        algorithms.find("expert").check(e.workers, e.batch, module.build(module.Settings(**e.data)), e.knobs)
    assert isinstance(refused.value, Refusal) == ("divide" in words)


def test_it_trains_four_experts_on_text_unless_told_otherwise():
    e = Experiment.of({"algorithm": "expert"})
    assert (e.workload, e.data["experts"], e.command()) == ("text", 4, "lockstep run expert")

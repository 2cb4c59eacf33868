"""Context parallelism: what its ranks compute together is what one rank computes, for what the formulas say."""

from types import SimpleNamespace

import numpy as np
import pytest

import algorithms
import workloads
from algorithms.model_parallel import context
from algorithms.parts.sequence import in_order, indices_of, pieces_of
from cluster import simulated
from cluster.devices import Device
from experiments.specification.experiment import Experiment
from knobs import Refusal
from lessons.survey import costs
from tests.quotes import quote
from tests.training import train
from tracing import COMPUTE, HELD
from workloads.budget import Budget
from workloads.task import Task

TIME, WIDTH, HEADS, SAMPLES, BLOCKS = 16, 8, 4, 3, 2  # of the model below: two of its four blocks are attention
EXCHANGES, POSITIONS = ("ring", "gather", "ulysses"), ("zigzag", "consecutive")
every_form = pytest.mark.parametrize("positions", POSITIONS)
every_exchange = pytest.mark.parametrize("exchange", EXCHANGES)


def text(dtype=np.float64, **settings):
    module = workloads.find("text")
    shape = {"context": TIME, "width": WIDTH, "heads": HEADS, "depth": 2 * BLOCKS}
    return module.build(module.Settings(**shape | settings), np.dtype(dtype))


def gradients(workload, ranks, exchange, positions, **where):
    """(loss, g) of one mini-batch on each rank, and the outcome."""

    def rank(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=SAMPLES)
        pieces = [pieces_of(rank, ranks, TIME, positions) for rank in range(ranks)]
        shard = task.sequence_shard(pieces[comm.rank])
        return shard.gradient(task.start(), shard.next_batch(), context.EXCHANGES[exchange](task, comm, pieces, HEADS))

    outcome = simulated.run(rank, ranks, **where)
    assert outcome.error is None
    return outcome.results, outcome


@every_form
@every_exchange
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_mean_over_ranks_is_the_gradient_of_whole_sequences(ranks, exchange, positions):
    workload = text()
    results, _ = gradients(workload, ranks, exchange, positions)
    loss, g = workload.gradient(workload.start(0), workload.batch(first_batch(workload)))
    assert np.mean([its for its, _ in results]) == pytest.approx(loss, rel=1e-13)
    mean = np.mean([its for _, its in results], axis=0)
    np.testing.assert_allclose(mean, g, rtol=0, atol=1e-13 * np.abs(g).max())


def first_batch(workload):
    """The indices of the first mini-batch of a task."""

    def rank(comm):
        return next(Task(workload, comm, budget=Budget(steps=1), batch=SAMPLES).batches)

    return simulated.run(rank, 1).results[0]


@every_form
def test_parts_of_a_sequence_in_the_order_of_positions_are_the_sequence(positions):
    x = np.arange(2 * TIME * 3).reshape(2, TIME, 3)
    pieces = [pieces_of(rank, 4, TIME, positions) for rank in range(4)]
    parts = [np.concatenate([x[:, piece] for piece in own], axis=1) for own in pieces]
    assert np.array_equal(in_order(parts, pieces), x)
    assert not np.array_equal(parts[0], parts[1])


# what it sends


def sent(ranks, **settings):
    """The numbers that all ranks send in one step of the text model."""
    run = train("context", text(np.float32), ranks, {"learning_rate": 0.1, **settings}, batch=SAMPLES, steps=1)
    return run.outcome.trace().traffic().sum() / 4


@every_form
@pytest.mark.parametrize("ranks", [2, 4])
def test_each_exchange_sends_what_its_closed_form_says(ranks, positions):
    one = SAMPLES * TIME * WIDTH  # the keys of all positions
    per_block = {
        "ring": 2 * one * (ranks - 1) + 2 * one * (ranks - 1) + 2 * one * ranks,
        "gather": 2 * one * (ranks - 1) + 2 * one * (ranks - 1),
        "ulysses": 8 * one * (ranks - 1) / ranks,
    }
    for exchange, numbers in per_block.items():
        for_gradients = 2 * (ranks - 1) * (text().parameters + 1)  # the loss travels with them
        assert sent(ranks, exchange=exchange, positions=positions) == BLOCKS * numbers + for_gradients


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_survey_prices_the_ring_as_it_is(ranks):
    symbols = {"N": ranks, "d": text().parameters, "B": SAMPLES, "u": BLOCKS * TIME * WIDTH}
    said = costs.every()["context"].evaluate("communication", symbols)
    assert sent(ranks) == said


# who computes how much


def pairs(ranks, positions, time=64):
    """The pairs of a query and a key that it sees, of each rank, in squares of time / ranks."""
    pieces = [pieces_of(rank, ranks, time, positions) for rank in range(ranks)]
    every = [context.Exchange(None, SimpleNamespace(rank=rank), pieces, HEADS) for rank in range(ranks)]
    blocks = [indices_of(own) for own in pieces]
    seen = [sum(one.visible(keys, np.empty(0))[1] for keys in blocks) for one in every]
    return np.array(seen) / (time / ranks) ** 2


def test_consecutive_pieces_give_the_last_rank_almost_twice_the_mean_and_zigzag_pieces_all_the_same():
    assert pairs(4, "consecutive").tolist() == [0.5, 1.5, 2.5, 3.5]
    assert pairs(4, "zigzag").tolist() == [2, 2, 2, 2]
    for ranks, most in ((4, 1.75), (8, 1.875)):
        assert pairs(ranks, "consecutive").max() / pairs(ranks, "consecutive").mean() == most
        assert np.ptp(pairs(ranks, "zigzag")) == 0


@every_exchange
@pytest.mark.parametrize(("positions", "shares"), [("consecutive", [0.5, 1.5, 2.5, 3.5]), ("zigzag", [2, 2, 2, 2])])
def test_ranks_attend_for_as_long_as_their_positions_see_keys(exchange, positions, shares):
    if exchange == "ulysses":
        shares = [2, 2, 2, 2]  # of whole sequences, but of some heads
    _, outcome = gradients(text(), 4, exchange, positions, device=Device(1e9, 1e30, 0.0))  # FLOPs are all that counts
    spent = [attention(log) for log in outcome.event_logs]
    assert np.array(spent) / np.mean(spent) == pytest.approx(np.array(shares) / 2, rel=0.02)  # and a little per query


def attention(log):
    """Seconds that a rank attends."""
    return sum(end - start for kind, start, end, _, label in log.spans if kind == COMPUTE and label == "attention")


def test_a_rank_of_the_ring_skips_blocks_that_the_causal_mask_empties():
    _, outcome = gradients(text(), 4, "ring", "consecutive")
    blocks = [sum(label == "attention" for *_, label in log.spans) for log in outcome.event_logs]
    assert blocks == [2 * BLOCKS * seen for seen in (1, 2, 3, 4)]  # forward and backward


def test_activations_are_divided_by_the_ranks():
    def kept(ranks):
        run = train("context", text(), ranks, {"learning_rate": 0.1}, batch=SAMPLES, steps=1)
        kind = HELD.index("activations")
        return [max(nbytes for _, _, held, nbytes in log.memory if held == kind) for log in run.outcome.event_logs]

    (whole,) = kept(1)
    assert kept(4) == pytest.approx([whole / 4] * 4, rel=0.02)


# what it refuses


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workers": 3}, "6 pieces … context of 16 … multiple of 6"),
        ({"workers": 3, "positions": "consecutive"}, "3 pieces … context of 16 … multiple of 3"),
        ({"workers": 8, "exchange": "ulysses"}, "8 workers do not divide 4 heads … 1, 2 or 4"),
        ({"workers": 2, "workload": "digits"}, "digits are not sequences … use text"),
    ],
    ids=str,
)
def test_what_cannot_be_shared_is_refused_with_what_can(values, words):
    e = Experiment.of({"algorithm": "context", **values})
    with pytest.raises(ValueError, match=quote(words)) as refused:
        algorithms.find("context").check(e.workers, e.batch, workload_of(e), e.knobs)
    assert isinstance(refused.value, Refusal) or "digits" in words


def workload_of(e):
    module = workloads.find(e.workload)
    return module.build(module.Settings(**e.data), np.dtype("float32"))


def test_it_trains_on_text_unless_another_workload_is_named():
    assert Experiment.of({"algorithm": "context"}).workload == "text"
    digits, own = Experiment(), Experiment(algorithm="context")
    assert digits.change(algorithm="context") == own and own.change(algorithm="sync_sgd") == digits
    assert own.command() == "lockstep run context" and Experiment.from_query(own.query()) == own

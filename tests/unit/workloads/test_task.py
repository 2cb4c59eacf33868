"""The task: budgets, records, reports, on the smallest thing that looks like a cluster."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import kernels
from cluster.event_log import EventLog
from knobs import make
from tests.quotes import quote
from tracing import HELD
from workloads.budget import Budget
from workloads.checkpoints import Checkpoints
from workloads.layers import Dense
from workloads.quadratic import Quadratic
from workloads.recorder import Diverged
from workloads.sequential import Sequential
from workloads.supervised import Supervised
from workloads.task import Task


@dataclass
class Alone:
    """A communicator of which this is one rank; it reduces with `others`, whose votes are given beforehand."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"
    now: float = 0.0
    others: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.event_log = EventLog(self.rank, lambda: self.now)

    def all_reduce(self, x, op="sum", async_op=False):
        x += self.others.pop(0) if self.others else 0
        return x


def task(comm=None, samples=16, batch=2, **more):
    problem = Quadratic(np.zeros((samples, 3)), np.ones(3), np.ones(3))
    budget = more.pop("budget", Budget(steps=4))
    return Task(problem, comm or Alone(), budget=budget, batch=batch, **more)


def count(t, together=False, seconds=0.0, loss=None):
    """Steps until the budget is spent, when each takes so long and has such a loss."""
    steps = []
    for step in t.steps(together):
        steps.append(step)
        t.comm.now += seconds
        if loss is not None:
            t.record(loss(step), 1)
        if len(steps) > 1000:
            break
    return len(steps)


def test_a_budget_of_steps_is_so_many_steps():
    assert count(task(budget=Budget(steps=7))) == 7


@pytest.mark.parametrize("epochs, shards, steps", [(1, 1, 8), (2.5, 1, 20), (1, 4, 2), (0.001, 1, 1)])
def test_a_budget_of_epochs_counts_passes_over_all_data_by_all_workers(epochs, shards, steps):
    assert count(task(budget=Budget(epochs=epochs), data_shards=shards)) == steps


def test_a_budget_of_seconds_ends_when_they_are_up():
    assert count(task(budget=Budget(seconds=1.0)), seconds=0.3) == 4


def test_a_target_loss_is_compared_with_the_mean_of_twenty_mini_batches():
    def falls_at_thirty(step):
        return 1.0 if step < 30 else 0.0

    assert count(task(budget=Budget(target_loss=0.5)), loss=falls_at_thirty) == 40
    assert count(task(budget=Budget(target_loss=0.5)), loss=lambda step: 0.1) == 20


def test_whichever_budget_is_spent_first_ends_the_run():
    assert count(task(budget=Budget(steps=5, epochs=100, seconds=9)), seconds=1) == 5
    assert count(task(budget=Budget(steps=5, seconds=2)), seconds=1) == 2


def test_ranks_that_must_stop_together_stop_when_one_of_them_would():
    comm = Alone(size=2, others=[0, 0, 0, 1])
    assert count(task(comm, budget=Budget(seconds=100)), together=True) == 3


def test_steps_alone_need_no_agreement():
    comm = Alone(size=2, others=[1])
    assert count(task(comm, budget=Budget(steps=3)), together=True) == 3
    assert comm.others == [1]


def test_a_step_is_written_in_the_journal_before_it_begins():
    t = task()
    assert t.event_log.step == -1
    assert [t.event_log.step for _ in t.steps()] == [0, 1, 2, 3]


def test_a_gradient_records_its_loss_samples_time_and_span():
    comm = Alone()
    t = task(comm)
    for _ in t.steps():
        comm.now += 0.5
        loss, g = t.gradient(np.ones(3))
        np.testing.assert_array_equal(g, np.ones(3))
    assert loss == 1.5
    assert comm.event_log.losses == [(k, 2 * (k + 1), 0.5 * (k + 1), 1.5) for k in range(4)]
    assert [(row[0], row[3], row[4]) for row in comm.event_log.spans] == [(0, k, "gradient") for k in range(4)]


def test_a_gradient_may_be_asked_on_a_given_batch():
    t = task()
    batch = t.next_batch()
    np.testing.assert_array_equal(t.gradient(np.ones(3), batch)[1], t.gradient(np.ones(3), batch)[1])
    assert len(batch[0]) == 2


def held(t):
    return dict(zip(HELD, t.event_log.held, strict=True))


def test_a_gradient_says_what_memory_it_needs():
    t = task()
    t.gradient(np.ones(3))
    assert held(t) == {"parameters": 24, "gradients": 24, "optimizer state": 0, "activations": 0, "buffers": 0}
    t.gradient(np.ones(3))
    assert len(t.event_log.memory) == 2  # only what changes is written


def test_a_gradient_of_layers_needs_what_their_forward_pass_keeps():
    layers = [Dense((5,), 3), Dense((3,), 2, "none")]
    chain = Sequential(layers, kernels.softmax_cross_entropy, np.float64)
    samples = np.zeros((8, 5)), np.zeros(8, int)
    t = Task(Supervised("net", chain, samples, samples), Alone(), budget=Budget(steps=1), batch=4)
    t.gradient(t.start())
    assert held(t)["activations"] == 4 * (5 + 3 + 2) * 8  # an output that is the next input is there once


def test_a_server_holds_the_model_that_it_ships():
    t = task(Alone(rank=5), data_shard=None)
    t.report(t.start()[:2], slice(0, 2))
    assert held(t)["parameters"] == 16


def test_what_an_update_rule_remembers_is_the_ranks_memory():
    t = task()
    with kernels.meter_kernels(t.event_log):
        kernels.state_like(np.ones(5))
        kernels.state_like(np.ones(2, np.float32))
    kernels.state_like(np.ones(5))  # nobody's
    assert held(t)["optimizer state"] == 48


def test_what_an_algorithm_keeps_beside_it_is_the_ranks_memory_too():
    t, x = task(), np.ones(5)
    with kernels.meter_kernels(t.event_log):
        assert kernels.keep(x) is x
        kernels.keep(np.ones(2, np.float32), "gradients")
    kernels.keep(x)  # nobody's
    assert (held(t)["buffers"], held(t)["gradients"]) == (40, 8)


def test_memory_that_a_rank_does_not_have_is_refused_with_what_it_is_needed_for():
    t = task(Alone(rank=2), memory=4000)
    t.holds("buffers", 3000)
    t.holds("buffers", 3990)
    with pytest.raises(
        ValueError,
        match=quote("rank 2 … 4,000 … 4,038: 24 for parameters, 24 for gradients, 3,990 for b"),
    ):
        t.gradient(np.ones(3))


def test_memory_is_held_for_what_there_are_words_for():
    with pytest.raises(ValueError, match=r"'weights'.*parameters, gradients, .* or buffers"):
        task().holds("weights", 3)


def test_a_server_has_no_data():
    t = task(Alone(rank=5), data_shard=None)
    with pytest.raises(ValueError, match="rank 5 is a server"):
        t.next_batch()
    assert np.array_equal(t.start(), np.ones(3))


@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf])
def test_divergence_says_on_which_rank_at_which_step_and_keeps_what_was_recorded(loss):
    t = task(Alone(rank=3))
    steps = t.steps()
    next(steps)
    t.record(1.0, 2)
    next(steps)
    with pytest.raises(Diverged, match="at step 1 on rank 3") as divergence:
        t.record(loss, 2)
    assert (divergence.value.rank, divergence.value.step) == (3, 1)
    assert [row[:2] for row in t.event_log.losses] == [(0, 2), (1, 4)]
    again = pickle.loads(pickle.dumps(divergence.value))  # it comes out of a process whole
    assert (again.rank, again.step) == (3, 1)


def test_a_diverging_gradient_is_seen_as_it_happens():
    t = task()
    next(t.steps())
    with pytest.raises(Diverged):
        t.gradient(np.full(3, np.nan))


def test_a_report_is_a_snapshot_of_a_part_of_the_model():
    t = task()
    w = np.arange(3.0)
    t.report(w)
    t.report(w[1:], slice(1, 3))
    w[:] = 9
    (_, _, *whole, a), (_, _, *part, b) = t.event_log.reports
    assert whole == [0, 3] and part == [1, 3]
    np.testing.assert_array_equal(a, [0, 1, 2])
    np.testing.assert_array_equal(b, [1, 2])


def test_reports_are_thinned_as_asked():
    t = task(report_every=3)
    for k in range(10):
        t.report(np.full(3, float(k)))
    assert [row[4][0] for row in t.event_log.reports] == [2, 5, 8]


@pytest.mark.parametrize("reports", [7, 8, 100, 1000])
def test_a_run_of_any_length_keeps_a_bounded_number_of_evenly_spaced_reports(reports):
    t = task(keep=8)
    for k in range(reports):
        t.report(np.full(3, float(k)))
    kept = [row[0] for row in t.event_log.reports]
    assert min(reports, 8) <= len(kept) < 16
    assert len(set(np.diff(kept))) == 1


def test_staleness_is_recorded_with_its_time():
    comm = Alone(now=2.5)
    task(comm).applied(4)
    assert comm.event_log.applied == [(2.5, 4)]


@pytest.mark.parametrize("values", [{"steps": 0}, {"epochs": 0}, {"seconds": -1}, {"target_loss": 0}, {"steps": 1.5}])
def test_a_budget_of_nothing_is_refused(values):
    with pytest.raises(ValueError, match="the budget"):
        make(Budget, values, "the budget")


# a rank that was lost and comes back at 5 s


def come_back(losses=(), **more):
    """Its task, when its former life has recorded these losses, one a step, of two samples each."""
    comm = Alone(now=5.0)
    comm.event_log.losses += [(step, 2 * step + 2, 0.1, loss) for step, loss in enumerate(losses)]
    saved = Checkpoints(np.array([1.0, 2.0, 3.0]), [5.0])
    return task(comm, checkpoints=saved, **more)


def test_who_comes_back_begins_with_the_newest_model_and_a_copy_of_its_own():
    t = come_back()
    w = t.start()
    assert w.tolist() == [1, 2, 3]
    w[:] = 0
    assert t.start().tolist() == [1, 2, 3]


def test_who_was_there_all_the_time_begins_with_the_first_model():
    saved = Checkpoints(np.ones(3), [5.0])
    assert np.array_equal(task(checkpoints=saved).start(), task().start())


def test_who_comes_back_goes_on_with_the_step_after_its_last_loss():
    assert list(come_back([0.5, 0.5], budget=Budget(steps=4)).steps()) == [2, 3]
    assert list(come_back([], budget=Budget(steps=4)).steps()) == [0, 1, 2, 3]


def test_who_comes_back_goes_on_in_its_data():
    alone = task()
    batches = [next(alone.batches).tolist() for _ in range(4)]
    again = come_back([0.5, 0.5])
    assert [next(again.batches).tolist() for _ in range(2)] == batches[2:]


def test_who_comes_back_goes_on_counting_samples():
    again = come_back([0.5, 0.5])
    again.record(0.5, 2)
    assert again.event_log.losses[-1][1] == 6


def test_the_losses_of_a_former_life_count_towards_the_target():
    again = come_back([0.1] * 20, budget=Budget(target_loss=0.2))
    assert again.spent() and not come_back([0.1] * 19, budget=Budget(target_loss=0.2)).spent()


def test_what_is_reported_before_a_rank_comes_back_is_what_it_begins_with():
    saved, comm = Checkpoints(np.zeros(3), [5.0]), Alone(now=4.0)
    server = task(comm, checkpoints=saved, data_shard=None)
    server.report(np.array([1.0, 2.0]), slice(0, 2))
    comm.now = 6.0
    server.report(np.array([8.0, 9.0]), slice(0, 2))
    assert saved.read(5.0).tolist() == [1, 2, 0]

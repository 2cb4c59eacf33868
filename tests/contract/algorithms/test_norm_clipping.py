"""Clipping in a pipeline: the norm of all stages, and updates that are taken back."""

import numpy as np
import pytest

from algorithms.parts.pipeline.norm_clipping import RollbackWeights
from algorithms.pipelined import zb_h2
from cluster.network import Link, Network
from tests.training import ScalarChain, train

CHAIN = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.4, 64))
RATE = 0.1


def course(stages, clip, steps=6, **settings):
    values = {"chunks": 8, "learning_rate": RATE, "max_norm": clip} | settings
    return train("zb_h2", CHAIN, stages, values, batch=16, steps=steps)


def clipped_sgd(clip, steps=6):
    """(w, norms) of gradient descent with clipping, on one machine."""
    w, norms = CHAIN.start(0), []
    for step in range(steps):
        g = CHAIN.gradient(w, CHAIN.batch(np.arange(16 * step, 16 * step + 16) % 64))[1]
        norms.append(np.linalg.norm(g))
        w -= RATE * g * min(1, clip / norms[-1])
    return w, norms


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("validation", ["before", "after"])
def test_the_whole_gradient_is_clipped_wherever_the_model_is_cut(stages, validation):
    _, norms = clipped_sgd(np.inf)
    clip = float(np.median(norms))
    expected, norms = clipped_sgd(clip)
    assert min(norms) < clip < max(norms)  # some steps are clipped, others are not
    assert course(stages, clip, validation=validation).shipped == pytest.approx(expected, rel=1e-12)


def test_a_norm_that_is_never_too_large_changes_no_bit():
    assert np.array_equal(course(4, 1e6).shipped, course(4, 0).shipped)


@pytest.mark.parametrize("update", ["momentum", "adagrad", "adam"])
def test_what_is_taken_back_leaves_no_trace_in_the_update_rule(update):
    after, before = (course(4, 1e-3, update=update, validation=form).shipped for form in ("after", "before"))
    assert np.array_equal(after, before)
    assert not np.array_equal(after, CHAIN.w)


@pytest.mark.parametrize("update", ["sgd", "nesterov", "adam"])
def test_an_update_that_is_taken_back_gives_every_bit_again(update):
    w = np.linspace(-1, 1, 5)
    policy = RollbackWeights(zb_h2.Settings(update=update), None, w)
    policy.update(w, np.ones(5))
    kept = w.copy(), [memory.copy() for memory in policy.rule.state], policy.rule.steps
    policy.snapshot(w)
    policy.update(w, np.arange(5.0))
    policy.roll_back(w)
    assert np.array_equal(w, kept[0]) and policy.rule.steps == kept[2]
    assert all(np.array_equal(a, b) for a, b in zip(policy.rule.state, kept[1], strict=True))


def test_only_where_stages_wait_for_the_norm_a_step_takes_longer():
    network = Network(Link(0.0, float("inf")), Link(0.0, float("inf")))
    values = {"chunks": 8, "learning_rate": RATE}

    def seconds(**more):
        return train("zb_h2", CHAIN, 4, values | more, batch=16, steps=6, network=network).outcome.trace().seconds()

    free = seconds()
    assert seconds(max_norm=1e6) == pytest.approx(free, rel=1e-3)
    assert seconds(max_norm=1e6, validation="before") > 1.05 * free
    assert seconds(max_norm=1e-3) > 1.05 * free  # every step is taken back


def test_while_the_norm_is_on_its_way_stage_s_does_so_many_forwards_as_stages_come_after_it():
    run = course(4, 1e-3, steps=2)  # taken back in each step
    for stage, event_log in enumerate(run.outcome.event_logs):
        forwards = [row[4] for row in event_log.spans if row[3] == 1 and row[4].startswith("F")]
        again = [f"F{chunk}" for chunk in range(3 - stage)]
        assert forwards == again + [f"F{chunk}" for chunk in range(8)]


def test_what_was_is_held_until_the_update_is_valid():
    run = course(4, 1e6, update="adam", steps=2)
    most = [max((row[3] for row in event_log.memory if row[2] == 4), default=0) for event_log in run.outcome.event_logs]
    assert most == [4 * 2 * 8] * 3 + [0]  # w, two memories and g, of two layers; the last stage knows at once

"""A stage: its batches, its records, and that a pipeline of them is the whole model."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.workloads.test_task import Alone
from workloads import models
from workloads.budget import Budget
from workloads.supervised import Supervised
from workloads.task import Task

RNG = np.random.default_rng(0)
X, TARGET = RNG.standard_normal((40, 6)), RNG.integers(0, 3, 40)


def stages(count=3, batch=8, **more):
    chain = models.build(models.ModelKnobs(hidden="8,7"), (6,), 3, np.float64)
    workload = Supervised("toy", chain, (X, TARGET), (X, TARGET))
    tasks = [Task(workload, Alone(rank), budget=Budget(steps=1), batch=batch, seed=4) for rank in range(count)]
    return [task.stage(i, count, **more) for i, task in enumerate(tasks)], tasks[0]


def test_first_and_last_stage_see_the_same_samples_and_so_does_one_worker():
    (first, _, last), task = stages()
    for batch in range(12):  # more than two epochs
        x, target = task.next_batch()
        np.testing.assert_array_equal(first.chunk(batch)[0], x)
        np.testing.assert_array_equal(last.chunk(batch)[1], target)


def test_micro_batches_are_the_mini_batch_in_pieces():
    (first, *_), task = stages()
    x, target = task.next_batch()
    pieces = [first.chunk(0, i, 4) for i in range(4)]
    np.testing.assert_array_equal(np.concatenate([p[0] for p in pieces]), x)
    np.testing.assert_array_equal(np.concatenate([p[1] for p in pieces]), target)


def test_replicas_share_a_batch_out_among_themselves():
    (alone, *_), _ = stages(batch=16)
    replicas = [stages(batch=8, replica=r, replicas=2)[0][0] for r in range(2)]
    for batch in range(3):
        together = np.concatenate([replica.chunk(batch)[0] for replica in replicas])
        np.testing.assert_array_equal(together, alone.chunk(batch)[0])


def test_micro_batches_that_do_not_divide_a_batch_are_refused():
    (first, *_), _ = stages()
    with pytest.raises(ValueError, match=r"^3 micro-batches .*batch of 8"):
        first.chunk(0, 0, 3)


def test_a_batch_that_is_over_cannot_be_asked_again():
    (first, *_), _ = stages()
    first.chunk(0)
    first.chunk(1)
    with pytest.raises(ValueError, match=r"batch 0 .*after batch 1"):
        first.chunk(0)


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_a_pipeline_s_gradient_is_that_of_the_whole_model(chunks):
    pipeline, task = stages()
    w = task.start()
    loss, g = task.workload.gradient(w, task.next_batch())
    total = np.zeros_like(w)
    for i in range(chunks):
        x, saved = pipeline[0].chunk(0, i, chunks)[0], []
        for stage in pipeline:
            x, kept = stage.forward(w[stage.where], x)
            saved.append(kept)
        _, dy = pipeline[-1].loss(x, pipeline[-1].chunk(0, i, chunks)[1], 0, chunks)
        for stage, kept in zip(reversed(pipeline), reversed(saved), strict=True):
            dy, pending = stage.backward_input(w[stage.where], kept, dy)
            total[stage.where] += stage.backward_weights(pending) / chunks
    np.testing.assert_allclose(total, g, rtol=0, atol=1e-15)
    (record,) = pipeline[-1].task.event_log.losses  # one, when the last micro-batch was compared
    assert record[1] == 8
    assert record[3] == pytest.approx(loss, rel=1e-14)


def test_stages_hold_the_whole_vector_between_them_and_start_as_it_does():
    pipeline, task = stages()
    np.testing.assert_array_equal(np.concatenate([stage.start() for stage in pipeline]), task.start())
    assert [stage.where.start for stage in pipeline][1:] == [stage.where.stop for stage in pipeline][:-1]


def test_passes_are_written_down_under_their_labels():
    (first, *_), _ = stages()
    w = first.start()
    y, saved = first.forward(w, first.chunk(0)[0], "F0")
    first.backward(w, saved, y, "B0")
    assert [row[4] for row in first.task.event_log.spans] == ["F0", "B0"]

"""Tests that grade a pipeline by hand: each is one point for each schedule."""

import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

STAGES, COUNT, ROWS, WIDTH = 3, 6, 64, 128
MATRICES = "40e9:1e12:1e-7"  # a device on which nearly all time goes into matrix products
EAGER = 1 << 30  # bytes: sends do not wait for their receivers, so a deadlock costs no other point
SCHEDULES = pytest.mark.parametrize("schedule", ["gpipe", "one_forward_one_backward"])
loss = nn.functional.mse_loss


def build():
    """Return one module for each stage."""
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(STAGES)]


def draw():
    """Return x and y of the batch, each (COUNT * ROWS, WIDTH)."""
    torch.manual_seed(1)
    return torch.randn(COUNT * ROWS, WIDTH), torch.randn(COUNT * ROWS, WIDTH)


def gradient(stage):
    return torch.cat([p.grad.flatten() for p in stage.parameters()])


def run_schedule(run, schedule, stages, within=lambda rank, call: call(), **machines):
    """Run `schedule` on each rank through `within(rank, call)`; return the outcome. Fail if a gradient is missing."""
    x, y = (tensor.chunk(COUNT) for tensor in draw())
    first = {"inputs": [part.clone().requires_grad_() for part in x]}  # so that all stages do the same work
    last = {"targets": list(y), "loss": loss}

    def program(rank):
        given = (first if rank == 0 else {}) | (last if rank == STAGES - 1 else {})
        within(rank, lambda: schedule(stages[rank], COUNT, (ROWS, WIDTH), **given))

    outcome = run(program, STAGES, network="HDR", device=MATRICES, **machines)
    for rank, stage in enumerate(stages):
        assert all(p.grad is not None for p in stage.parameters()), f"stage {rank} has parameters without a gradient."
    return outcome


@SCHEDULES
def test_gradients_are_those_of_the_whole_model(schedule, homework, run):
    stages, whole = build(), build()
    run_schedule(run, getattr(homework, schedule), stages, eager=EAGER)
    x, y = draw()
    loss(nn.Sequential(*whole)(x), y).backward()
    for rank, (mine, theirs) in enumerate(zip(stages, whole, strict=True)):
        assert torch.allclose(gradient(mine), gradient(theirs), atol=1e-6), (
            f"{schedule}: the gradients of stage {rank} differ from those of the whole model on the whole batch; check "
            "the division by the number of micro-batches, and which micro-batch each gradient belongs to."
        )


@SCHEDULES
def test_ranks_are_idle_for_p_minus_1_of_m_plus_p_minus_1_slots(schedule, homework, run):
    summary = run_schedule(run, getattr(homework, schedule), build(), eager=EAGER).summary
    idle, best = 1 - summary.compute.mean() / summary.seconds, (STAGES - 1) / (COUNT + STAGES - 1)
    assert abs(idle - best) < 0.04, (
        f"{schedule}: ranks are idle for {idle:.0%} of the time; with {STAGES} stages and {COUNT} micro-batches the "
        f"bubble is {best:.0%}. Pass a result on at once, and start the next micro-batch while others work on this one."
    )


def test_1f1b_keeps_the_activations_of_at_most_p_micro_batches(homework, run):
    packed, kept, most = ([0] * STAGES for _ in range(3))

    class Saved:
        def __init__(self, tensor, rank):
            self.tensor = tensor
            packed[rank] += 1
            kept[rank] += 1
            most[rank] = max(most[rank], kept[rank])
            weakref.finalize(self, self.release, rank)

        @staticmethod
        def release(rank):
            kept[rank] -= 1

    def count(rank, call):
        with saved_tensors_hooks(lambda tensor: Saved(tensor, rank), lambda saved: saved.tensor):
            call()

    run_schedule(run, homework.one_forward_one_backward, build(), count, eager=EAGER)
    for rank in range(STAGES):
        held = most[rank] * COUNT / packed[rank]
        assert held <= STAGES, (
            f"rank {rank} keeps the activations of {held:.0f} micro-batches, but {STAGES} are enough with {STAGES} "
            "stages; after the first forwards, let a backward follow each forward."
        )


@SCHEDULES
def test_nobody_waits_forever_where_sends_wait_for_their_receivers(schedule, homework, run):
    run_schedule(run, getattr(homework, schedule), build(), eager=0)

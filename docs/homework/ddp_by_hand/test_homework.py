"""Tests that grade data-parallel training by hand: each is one point."""

import torch
from torch import nn

RANKS, WIDTH, LR = 4, 32, 0.1
EAGER = 1 << 30  # bytes: sends do not wait for their receivers, so a deadlock costs only the first point


def build(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))


def draw(rows, steps):
    """Return the batches of each rank, `rows[rank]` rows in each of `steps` steps."""
    torch.manual_seed(1)
    return [[(torch.randn(n, WIDTH), torch.randn(n, WIDTH)) for _ in range(steps)] for n in rows]


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def backward(model, x, y):
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()


def train(homework, run, rows, steps, eager, lr=LR, seeds=(0,) * RANKS):
    """Run the homework's `train` on all ranks. Return the outcome and the trained models."""
    models, batches = [build(seed) for seed in seeds], draw(rows, steps)
    return run(lambda rank: homework.train(models[rank], batches[rank], lr), RANKS, eager=eager), models


def test_training_on_four_ranks_is_training_on_the_whole_batch(homework, run):
    rows, steps = [8] * RANKS, 3
    _, models = train(homework, run, rows, steps, eager=0)
    whole = build()
    for parts in zip(*draw(rows, steps), strict=True):
        backward(whole, *(torch.cat(tensors) for tensors in zip(*parts, strict=True)))
        with torch.no_grad():
            for p in whole.parameters():
                p -= LR * p.grad
    for rank, model in enumerate(models):
        assert torch.allclose(weights(model), weights(whole), atol=1e-5), (
            f"after {steps} steps the weights of rank {rank} differ from training on the whole batch; check what "
            "average_gradients divides by."
        )


def test_every_row_counts_the_same_when_ranks_have_different_numbers_of_rows(homework, run):
    rows = [8, 8, 8, 2]
    models, batches, whole = [build() for _ in rows], draw(rows, 1), build()

    def program(rank):
        ((x, y),) = batches[rank]
        backward(models[rank], x, y)
        homework.average_gradients(models[rank], rows[rank])

    run(program, RANKS, eager=EAGER)
    backward(whole, *(torch.cat(parts) for parts in zip(*(one for (one,) in batches), strict=True)))
    for model in models:
        # only its direction: the length is a separate point
        likeness = torch.cosine_similarity(gradient(model), gradient(whole), 0)
        assert likeness > 1 - 1e-5, (
            f"with {rows} rows the gradient's direction differs from that of all {sum(rows)} rows; weight each rank's "
            "gradient by its number of rows: a mean of means counts the rows of a small batch more."
        )


def test_all_ranks_begin_with_the_weights_of_rank_0(homework, run):
    _, models = train(homework, run, [8] * RANKS, 1, EAGER, lr=0.0, seeds=range(RANKS))
    for rank, model in enumerate(models):
        assert torch.equal(weights(model), weights(build(0))), (
            f"rank {rank} does not start from rank 0's weights; broadcast them before the first step."
        )


def test_each_rank_sends_2_n_minus_1_nths_of_the_gradient_in_a_step(homework, run):
    once, thrice = (train(homework, run, [8] * RANKS, steps, EAGER)[0].summary.sent for steps in (1, 3))
    sent = (thrice - once) / 2  # without what is sent before the first step
    best = 2 * (RANKS - 1) / RANKS * 4 * len(weights(build()))
    for rank, nbytes in enumerate(sent):
        assert abs(nbytes / best - 1) < 0.01, (
            f"rank {rank} sends {nbytes:,.0f} bytes in a step; 2 (N - 1) / N of the gradient are {best:,.0f}. Sum with "
            "all_reduce, or with your own ring that passes on pieces instead of whole gradients."
        )

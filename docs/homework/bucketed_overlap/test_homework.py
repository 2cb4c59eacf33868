"""Tests that grade gradients in buckets: each is one point."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

RANKS, LAYERS, WIDTH, ROWS, STEPS = 2, 8, 128, 16, 2
LAYER = 4 * WIDTH * (WIDTH + 1)  # bytes
BUCKET = 5 * LAYER // 2  # two layers fit
SLOW = "1.2e9:15e9:1e-6"  # a device whose backward takes slightly longer than sending the gradients over 1GbE


def build():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))


def draw():
    """Return x and y of all ranks, each (RANKS * ROWS, WIDTH)."""
    torch.manual_seed(1)
    return torch.randn(RANKS * ROWS, WIDTH), torch.randn(RANKS * ROWS, WIDTH)


def train(model, x, y, finish, steps=STEPS):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        finish()
        optimizer.step()


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def train_on_ranks(run, wrap, steps=STEPS):
    """Train on all ranks; return the outcome and the modules. `wrap(module)` returns the model and its `finish`."""
    modules, (x, y) = [build() for _ in range(RANKS)], (tensor.chunk(RANKS) for tensor in draw())

    def program(rank):
        model, finish = wrap(modules[rank])
        train(model, x[rank], y[rank], finish, steps)

    return run(program, RANKS, network="1GbE", device=SLOW), modules


def train_in_buckets(homework, run, steps=STEPS):
    """Train with the homework's `Bucketed`. Return the outcome and the modules. Fail if nothing is sent."""

    def wrap(module):
        model = homework.Bucketed(module, BUCKET)
        return model, model.finish

    outcome, modules = train_on_ranks(run, wrap, steps)
    assert outcome.summary.sent.any(), "nothing is sent; start an all_reduce when a bucket is full."
    return outcome, modules


def without_overlap(module):
    """Return the module, and a `finish` that averages all gradients in one all-reduce after backward."""

    def finish():
        flat = torch.cat([p.grad.flatten() for p in module.parameters()])
        dist.all_reduce(flat)
        flat /= RANKS
        for p, part in zip(module.parameters(), flat.split([p.numel() for p in module.parameters()]), strict=True):
            p.grad.copy_(part.view_as(p))

    return module, finish


def exposed(outcome):
    """Return the longest time per step that a rank spends communicating or waiting, in s."""
    return float((outcome.summary.communicate + outcome.summary.wait).max()) / STEPS


@pytest.fixture
def at_once(monkeypatch):
    """Make every all_reduce finish before it returns, so that a missing wait costs no other point."""
    real = dist.all_reduce

    def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        work = real(tensor, op, group, async_op)
        if work:
            work.wait()
        return work

    monkeypatch.setattr(dist, "all_reduce", all_reduce)


class Hidden:
    """An all_reduce whose result is NaN until somebody waits for it."""

    def __init__(self, work, result, tensor):
        self.work, self.result, self.tensor = work, result, tensor

    def wait(self, *timeout):
        self.work.wait(*timeout)
        self.tensor.detach().copy_(self.result)
        return True

    def __getattr__(self, name):
        return getattr(self.work, name)


@pytest.fixture
def hidden(monkeypatch):
    """Return the work of an asynchronous all_reduce, with its result hidden until somebody waits for it."""
    real = dist.all_reduce

    def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        if not async_op:
            return real(tensor, op, group)
        result = tensor.detach().clone()
        tensor.detach().fill_(float("nan"))
        return Hidden(real(result, op, group, True), result, tensor)

    monkeypatch.setattr(dist, "all_reduce", all_reduce)


def test_buckets_give_the_weights_of_training_on_the_whole_batch(at_once, homework, run):
    _, modules = train_in_buckets(homework, run)
    whole = build()
    train(whole, *draw(), lambda: None)
    for rank, module in enumerate(modules):
        assert torch.allclose(weights(module), weights(whole), atol=1e-5), (
            f"after {STEPS} steps the weights of rank {rank} differ from training on the whole batch; check the "
            "division by the number of ranks, and whether every parameter is in a bucket that is sent in every step."
        )


def test_nobody_reads_a_gradient_before_its_wait(hidden, homework, run):
    _, modules = train_in_buckets(homework, run)
    for rank, module in enumerate(modules):
        assert weights(module).isfinite().all(), (
            f"rank {rank} uses a bucket before it has arrived; call wait() on what all_reduce(..., async_op=True) "
            "returns before you read the bucket."
        )


def test_gradients_travel_in_buckets_of_at_most_the_given_size(homework, run):
    once, twice = (train_in_buckets(homework, run, steps)[0].trace.messages for steps in (1, 2))
    sent = [table["bytes"][table["collective"] & (table["src"] == 0)] for table in (once, twice)]
    number = len(sent[1]) - len(sent[0])  # per step, without what is sent before the first
    largest = sent[1][-number:].max() / (2 * (RANKS - 1) / RANKS) if number else 0
    most = 2 * -(-LAYERS * LAYER // BUCKET)
    assert number <= most, (
        f"a step has {number} all-reduces, but {most} are enough for buckets of {BUCKET:,} bytes; put the gradients "
        "of several parameters into one."
    )
    assert largest < 1.01 * BUCKET, (
        f"a bucket has {largest:,.0f} bytes, but the limit is {BUCKET:,}; start the next before one becomes too large."
    )


def test_backward_hides_communication(homework, run):
    mine = exposed(train_in_buckets(homework, run)[0])
    reference = exposed(train_on_ranks(run, without_overlap)[0])
    assert mine < 0.6 * reference, (
        f"a step waits {1e3 * mine:.2f} ms for gradients, and {1e3 * reference:.2f} ms without any overlap; start each "
        "all_reduce in a hook with async_op=True, and wait for all of them in finish, not in the hook."
    )

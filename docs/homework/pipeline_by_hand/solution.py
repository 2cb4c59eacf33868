"""A pipeline by hand: one solution."""

import torch
import torch.distributed as dist


class Passes:
    """The forward and backward passes of this rank's stage, and their messages."""

    def __init__(self, stage, count, shape, inputs, targets, loss):
        self.stage, self.count, self.shape = stage, count, shape
        self.inputs, self.targets, self.loss = inputs, targets, loss
        self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
        self.waiting = {}  # (input, output) of each micro-batch that waits for its backward
        self.sends = []

    def forward(self, k):
        x = self.inputs[k] if self.rank == 0 else self.receive(self.rank - 1).requires_grad_()
        y = self.stage(x)
        if self.rank == self.last:
            y = self.loss(y, self.targets[k]) / self.count
        else:
            self.send(y, self.rank + 1)
        self.waiting[k] = x, y

    def backward(self, k):
        x, y = self.waiting.pop(k)
        y.backward(None if self.rank == self.last else self.receive(self.rank + 1))
        if self.rank:
            self.send(x.grad, self.rank - 1)

    def receive(self, rank):
        x = torch.empty(self.shape)
        dist.recv(x, rank)
        return x

    def send(self, x, rank):
        """Send without waiting for the receiver, which may be sending to this rank."""
        self.sends.append(dist.isend(x.detach(), rank))

    def finish(self):
        for work in self.sends:
            work.wait()


def gpipe(stage, count, shape, inputs=None, targets=None, loss=None):
    """Compute the gradients of a model, one stage of which is on this rank: all forwards, then all backwards."""
    passes = Passes(stage, count, shape, inputs, targets, loss)
    for k in range(count):
        passes.forward(k)
    for k in range(count):
        passes.backward(k)
    passes.finish()


def one_forward_one_backward(stage, count, shape, inputs=None, targets=None, loss=None):
    """Compute the same gradients as `gpipe`, in the order of 1F1B."""
    passes = Passes(stage, count, shape, inputs, targets, loss)
    ahead = min(passes.last - passes.rank, count)
    for k in range(ahead):
        passes.forward(k)
    for k in range(count):
        if ahead + k < count:
            passes.forward(ahead + k)
        passes.backward(k)
    passes.finish()

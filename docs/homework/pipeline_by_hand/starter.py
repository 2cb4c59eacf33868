"""A pipeline by hand. Write the two schedules; put what they share into a class or functions."""

import torch
import torch.distributed as dist


def gpipe(stage, count, shape, inputs=None, targets=None, loss=None):
    """Compute the gradients of a model, one stage of which is on this rank: all forwards, then all backwards.

    `stage` is a module. The batch is `count` micro-batches of equal size: the first rank has them as the list `inputs`.
    The last rank has their `targets`, also a list, and `loss(output, target)`, the mean over a micro-batch. A stage
    passes a float32 tensor of size `shape` to the next. Afterwards the .grad of every parameter is that of the mean
    loss over the batch.
    """
    raise NotImplementedError("Write gpipe.")


def one_forward_one_backward(stage, count, shape, inputs=None, targets=None, loss=None):
    """Compute the same gradients as `gpipe`, in the order of 1F1B.

    Rank r of p begins with p - 1 - r forwards, then alternates between one forward and one backward, and ends with the
    remaining backwards. So at most p micro-batches wait for their backward.
    """
    raise NotImplementedError("Write one_forward_one_backward.")

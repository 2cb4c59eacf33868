"""Vocabulary-parallel cross-entropy: a softmax over classes that are sharded over ranks, without gathering the logits.

Rank r has the logits z_r of some of the classes. The ranks exchange three numbers per row:

    m = max over ranks of max z_r          S = sum over ranks of sum exp(z_r - m)          t = z[target] - m
    loss = mean over rows of log S - t     dz_r = (exp(z_r - m) / S - onehot_r(target)) / n

where t is summed as well, since one rank has it and the others have 0.

Price: 3 n numbers from each rank instead of its n V / T logits, V classes on T ranks.
Source: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.
"""

import kernels


def cross_entropy(comm, shard, z, target):
    """Return (loss, dz) for this rank's logits z, (rows, classes of this rank)."""
    columns = kernels.empty((len(z), comm.size), z)
    for rank, largest in enumerate(comm.all_gather(shard.largest(z))):
        columns[:, rank] = largest
    largest = shard.largest(columns)  # (rows,), of all classes
    sums = comm.all_reduce(shard.sums(z, largest, target))  # (2, rows): S, t
    return shard.cross_entropy(z, largest, sums, target)

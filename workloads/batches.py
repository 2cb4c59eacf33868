"""Batches: which samples each worker sees at which step.

Each epoch is shuffled once. Worker i takes the i-th `batch` out of every `data_shards * batch` samples. Together, N
workers with batch b thus see exactly what one worker with batch N b sees, in the same order, so sequential and
synchronous training can be compared sample by sample. The incomplete rest of an epoch is dropped. If an update takes
several batches of each worker, the rest that does not fill an update is dropped as well, so that A batches of b equal
one batch of A b in every epoch. With uneven inputs, a worker therefore never waits for another that has no batch left.
"""

from functools import lru_cache

import numpy as np

from knobs import Refusal


class Batches:
    """The endless stream of the batches of one data shard. It depends only on the seed, never on timing.

    The stream starts after the first `taken` batches. An update takes `per_update` batches.
    """

    def __init__(
        self,
        samples: int,
        batch: int,
        data_shard: int = 0,
        data_shards: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        taken: int = 0,
        per_update: int = 1,
    ):
        self.per_epoch = samples // (batch * data_shards)
        if not self.per_epoch:
            raise Refusal(_too_few(samples, batch, data_shards), [samples // data_shards, samples // batch])
        if self.per_epoch >= per_update:  # otherwise an update takes several epochs
            self.per_epoch -= self.per_epoch % per_update
        self.samples, self.batch, self.data_shard, self.data_shards = samples, batch, data_shard, data_shards
        self.seed, self.shuffle = seed, shuffle
        self._taken, self._epoch, self._order = taken, -1, None

    def __next__(self) -> np.ndarray:
        """Return the indices of the next batch, (batch,)."""
        epoch, k = divmod(self._taken, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = _order(self.samples, self.seed, epoch) if self.shuffle else np.arange(self.samples)
        self._taken += 1
        first = (k * self.data_shards + self.data_shard) * self.batch
        return self._order[first : first + self.batch]

    def __iter__(self):
        return self


def _too_few(samples: int, batch: int, shards: int) -> str:
    """Return a message: why no batch can be filled, and the largest batch or number of workers that would work."""
    workers = f"{samples // batch:,} worker{'s' * (samples // batch > 1)}"
    ways = [f"a batch of at most {samples // shards:,}"] * (samples >= shards)
    ways += [f"at most {workers}"] * (samples >= batch and shards > 1)
    return (
        f"batch {batch:,} is larger than the shard: {samples:,} sample{'s' * (samples > 1)} among {shards:,} "
        f"worker{'s' * (shards > 1)} leave {samples // shards:,} each; use "
        + (", or ".join(ways) or f"fewer workers and a smaller batch, whose product is at most {samples:,}")
        + "."
    )


@lru_cache(maxsize=8)
def _order(samples: int, seed: int, epoch: int) -> np.ndarray:
    """Return the permutation of an epoch, which is computed once for all workers of a process."""
    order = np.random.default_rng([seed, 0xBA7C, epoch]).permutation(samples)
    order.flags.writeable = False
    return order

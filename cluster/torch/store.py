"""The store of torch.distributed, in which ranks leave values for each other. Only waiting takes time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from cluster.torch.process import at_line, this

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank
    from cluster.simulated.simulation import Simulation


class Values(dict[str, bytes]):
    """The values of all stores, and the ranks that wait for values."""

    def __init__(self, sim: Simulation):
        super().__init__()
        self._sim = sim
        self._waiting: list[tuple[list[str], Rank]] = []

    def put(self, key: str, value: bytes) -> None:
        """Store a value, and wake the ranks that wait for it."""
        self[key] = value
        now = this().rank.now
        for wait in list(self._waiting):
            keys, rank = wait
            if all(key in self for key in keys):
                self._waiting.remove(wait)
                self._sim.queue.push(max(now, rank.now), rank)

    def await_keys(self, keys: list[str]) -> None:
        """Block the rank until all of these keys exist."""
        process = this()
        process.enter()
        rank = process.rank
        if not all(key in self for key in keys):
            names = ", ".join(key.rpartition("/")[2] for key in keys)
            rank.blocked_since, rank.collective = rank.now, f"store.wait({names}){at_line(process)}"
            self._waiting.append((keys, rank))
            self._sim.queue.wait(rank)
            rank.collective = "store"
            rank.wait_until(self._sim.queue.now)
            rank.collective = ""
        process.leave()


class Store(dist.Store):
    """The store as one rank sees it. Stores with the same `prefix` share their values."""

    def __init__(self, values: Values, prefix: str = ""):
        super().__init__()
        self._values, self._prefix = values, prefix
        this().stores.append(self)  # C++, which keeps only its own half of the object, calls these methods

    def set(self, key: str, value: Any) -> None:
        this().enter()
        self._values.put(self._prefix + key, _bytes(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._values[self._prefix + key]

    def add(self, key: str, amount: int) -> int:
        this().enter()
        total = int(self._values.get(self._prefix + key, b"0")) + amount
        self._values.put(self._prefix + key, str(total).encode())
        return total

    def append(self, key: str, value: Any) -> None:
        this().enter()
        self._values.put(self._prefix + key, self._values.get(self._prefix + key, b"") + _bytes(value))

    def wait(self, keys: list[str], timeout: Any = None) -> None:
        self._values.await_keys([self._prefix + key for key in keys])

    def check(self, keys: list[str]) -> bool:
        this().enter()
        return all(self._prefix + key in self._values for key in keys)

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        this().enter()
        key = self._prefix + key
        if self._values.get(key, b"") == _bytes(expected):
            self._values.put(key, _bytes(desired))
        return self._values.get(key, _bytes(expected))

    def delete_key(self, key: str) -> bool:
        this().enter()
        return self._values.pop(self._prefix + key, None) is not None

    def num_keys(self) -> int:
        return len(self._values)

    def set_timeout(self, timeout: timedelta) -> None:
        """Do nothing: a rank that waits forever is reported as a deadlock."""

    @property
    def timeout(self) -> timedelta:
        return timedelta(minutes=30)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()

"""The declaration of an algorithm: one frozen value at the end of its module says what it is beside its code.

    ALGORITHM = Algorithm(worker, Settings, servers=servers, elements_sent=elements_sent, equivalences=(...))

Command line, workbench, simulator and tests read nothing else of a module. A misspelt fact is a TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from knobs import Knobs, knob

__all__ = ["Algorithm", "Equivalence", "Knobs", "Shape", "knob"]


@dataclass(frozen=True)
class Equivalence:
    """`claim`, a sentence: this algorithm with `settings` and `workers` ends with the same weights as algorithm `to`.

    Both sides have the same learning rate. As many workers on both sides are compared one by one, otherwise each of
    this side with the one of the other; the stages of a pipeline hold one model together.
    exactness: BIT (identical floats), RND (equal to rounding: differs by the order of summation only).
    """

    claim: str
    to: str
    exactness: Literal["BIT", "RND"] = "BIT"
    workers: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    to_workers: int = 1
    to_settings: dict[str, Any] = field(default_factory=dict)
    to_batch: int = 1  # the other side's batch as a multiple of this side's
    batch: int | None = None  # this side's batch, if the claim needs a certain one


@dataclass(frozen=True)
class Shape:
    """The sizes that the number of elements sent depends on."""

    parameters: int  # d
    workers: int
    steps: int  # of each worker
    batch: int  # samples per worker and step
    boundaries: tuple[int, ...] = ()  # numbers per sample that cross from stage s to s + 1
    per_epoch: int = 1  # mini-batches of a worker in one pass over the data
    outputs: int = 1  # numbers per sample that the model computes


def one_per_worker(workers: int, s: Any) -> int:
    """Return `workers`: every worker has data, or a stage, of its own."""
    return workers


def shared_by_all(workers: int, s: Any) -> int:
    """Return 1: all workers take the same samples."""
    return 1


def no_servers(s: Any) -> int:
    """Return 0."""
    return 0


def runs_always(workers: int, batch: int, workload: Any, s: Any) -> None:
    """Accept every combination."""


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm module declares. `s` is an instance of its `Settings`.

    The last three fields are facts for tests: with how many workers an example runs at the default settings, a rate
    at which it settles on a smooth problem, and how many steps it takes at its defaults to read digits.
    """

    worker: Callable[[Any, Any, Any], Any]
    """`worker(comm, task, s)` is the program of every rank; it returns the weights that this rank holds at the end."""
    Settings: type[Knobs]
    servers: Callable[[Any], int] = no_servers
    """`servers(s)` ranks hold parameters and train nothing; they come first."""
    data_shards: Callable[[int, Any], int] = one_per_worker
    """`data_shards(workers, s)`: the parts that the data is sharded in, for ranks in a row."""
    stages: Callable[[int, Any], int] = one_per_worker
    """`stages(workers, s)`: the stages that a pipeline cuts the model in."""
    check: Callable[[int, int, Any, Any], None] = runs_always
    """`check(workers, batch, workload, s)` raises ValueError, one sentence, if it cannot run like this."""
    elements_sent: Callable[[Shape, Any], float | None] | None = None
    """`elements_sent(shape, s)`: numbers sent in a run by all ranks together, collectives by the ring; exact for a
    budget in steps; None where it depends on timing."""
    deterministic: bool | Callable[[Any], bool] = True
    """Whether the network changes when, but not what: the same weights on any network. May depend on the settings."""
    restartable: Callable[[Any], bool] | None = None
    """`restartable(s)`: whether a lost worker may come back with nothing but the newest reported model."""
    compresses: Literal["", "mean", "push"] = ""
    """Which gradients may be compressed: those it averages by `comm.all_reduce(g, op="mean")`, or those that its
    workers push to a server as vectors."""
    whole_batch: bool = False
    """A step takes all samples there are, and so is an epoch; the batch setting means nothing."""
    model_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the workload to begin with, where the reader gives none: a deep model to cut."""
    plan: Callable[[int, Any], Any] | None = None
    """`plan(workers, s)`: of a pipeline, the schedule that its ranks carry out."""
    schedules: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Of a pipeline, its schedules to be studied without training, by name: `schedule(rank, ranks, chunks, **options)`
    is the ops of a rank."""
    equivalences: tuple[Equivalence, ...] = ()
    example_workers: int = 3
    stable_rate: float = 0.1
    steps_to_learn: int = 200

    def is_deterministic(self, s: Any) -> bool:
        """Return whether the order of arrival decides nothing with these settings."""
        return self.deterministic(s) if callable(self.deterministic) else self.deterministic

    def may_restart(self, s: Any) -> bool:
        """Return whether a lost worker may come back with these settings."""
        return self.restartable is not None and self.restartable(s)

    @property
    def shares_samples(self) -> bool:
        """Whether ranks take a sample together, stage by stage or in each layer, instead of one each."""
        return self.data_shards is not one_per_worker

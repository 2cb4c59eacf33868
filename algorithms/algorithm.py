"""The declaration of an algorithm: one frozen value at the end of its module says what it is beside its code.

    ALGORITHM = Algorithm(worker, Settings, servers=servers, elements_sent=elements_sent, equivalences=(...))

Command line, workbench, simulator and tests read nothing else of a module. A misspelt fact is a TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple

from knobs import Knobs, knob

__all__ = ["Algorithm", "Equivalence", "Knobs", "Shape", "Split", "knob", "sequential"]


@dataclass(frozen=True)
class Equivalence:
    """`claim`, a sentence: with these settings and workers the algorithm ends with the same weights as algorithm `to`.

    Both sides have the same learning rate. Equal numbers of workers are compared one by one, otherwise each worker of
    this side with the single one of the other; the stages of a pipeline hold one model together.
    exactness: BIT (identical floats), RND (equal but for rounding: only the order of summation differs).
    """

    claim: str
    to: str
    _: KW_ONLY
    exactness: Literal["BIT", "RND"] = "BIT"
    workers: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    to_workers: int = 1
    to_settings: dict[str, Any] = field(default_factory=dict)
    to_batch: int = 1  # the other side's batch as a multiple of this side's
    batch: int | None = None  # this side's batch, where the claim requires one


@dataclass(frozen=True)
class Shape:
    """Sizes that determine the number of elements sent."""

    parameters: int  # d
    workers: int
    steps: int  # of each worker
    batch: int  # samples per worker and step
    boundaries: tuple[int, ...] = ()  # elements per sample that cross from stage s to s + 1
    per_epoch: int = 1  # mini-batches of a worker in one pass over the data
    outputs: int = 1  # elements per sample that the model computes


class Split(NamedTuple):
    """Over how many workers something is divided, on average: 1 if each has all of it, infinity if nobody has it."""

    parameters: float  # of one version
    gradients: float
    state: float  # of the optimizer


def all_on_each(workers: int, s: Any) -> Split:
    """Return that every worker has a whole model, its gradient and the optimizer's state."""
    return Split(1, 1, 1)


def one_model(workers: int, s: Any) -> Split:
    """Return that all workers together have one model."""
    return Split(workers, workers, workers)


def one_per_worker(workers: int, s: Any) -> int:
    """Return `workers`: every worker has its own data, or its own stage."""
    return workers


def shared_by_all(workers: int, s: Any) -> int:
    """Return 1: all workers take the same samples."""
    return 1


def one_batch(s: Any) -> int:
    """Return 1: each mini-batch makes one update."""
    return 1


def no_servers(s: Any) -> int:
    """Have no server: all ranks train."""
    return 0


def one_server(s: Any) -> int:
    """Have one server, rank 0."""
    return 1


def always(s: Any) -> bool:
    """Hold with all settings."""
    return True


def nothing_sent(shape: Shape, s: Any) -> float:
    """Send nothing, whatever the sizes."""
    return 0


def unpredictable(shape: Shape, s: Any) -> None:
    """Leave the number open: it is known only after a run."""


def accept(workers: int, batch: int, workload: Any, s: Any) -> None:
    """Accept every combination."""


def nothing_to_note(e: Any) -> Iterable[str]:
    """Leave every experiment without a note."""
    return ()


def nothing_foretold(e: Any) -> Iterable[tuple[str, str]]:
    """Blame no setting: there is no closed form that says when it diverges."""
    return ()


@dataclass(frozen=True)
class Algorithm:
    """What an algorithm module declares. `s` is an instance of its `Settings`; the last fields are facts for tests."""

    worker: Callable[[Any, Any, Any], Any]
    """`worker(comm, task, s)` is the program of every rank; it returns the weights that the rank holds at the end."""
    Settings: type[Knobs]
    servers: Callable[[Any], int] = no_servers
    """`servers(s)`: the number of ranks, the first ones, that hold parameters and do not train."""
    data_shards: Callable[[int, Any], int] = one_per_worker
    """`data_shards(workers, s)`: the number of shards of the data; neighbouring ranks share one if there are fewer."""
    split: Callable[[int, Any], Split] = all_on_each
    """`split(workers, s)`: over how many workers the model is divided from one step to the next. What is whole for a
    moment only does not count."""
    per_update: Callable[[Any], int] = one_batch
    """`per_update(s)`: the mini-batches of a worker whose gradients make one update; an epoch has a whole number of
    updates."""
    stages: Callable[[int, Any], int] = one_per_worker
    """`stages(workers, s)`: the number of stages that a pipeline cuts the model into."""
    check: Callable[[int, int, Any, Any], None] = accept
    """`check(workers, batch, workload, s)` raises ValueError, one sentence, if the algorithm cannot run like this."""
    notes: Callable[[Any], Iterable[str]] = nothing_to_note
    """`notes(e)`: sentences for the reader who runs `e`, by its `workers`, `workload`, `data`, `knobs` and faults:
    that with these it is another algorithm, or cannot do what it is for, and what to try instead."""
    unstable: Callable[[Any], Iterable[tuple[str, str]]] = nothing_foretold
    """`unstable(e)`: (setting, why) of each setting with which experiment `e` diverges by a closed form."""
    elements_sent: Callable[[Shape, Any], float | None] = unpredictable
    """`elements_sent(shape, s)`: elements that all ranks together send in a run, collectives by the ring; exact for a
    budget in steps; None where it depends on timing or on the model's layers."""
    deterministic: bool | Literal["but for rounding"] | Callable[[Any], bool] = True
    """Whether timing changes when, but not what: the same weights on any network. May depend on the settings, or hold
    but for rounding, where sums are formed in the order of arrival."""
    restartable: Callable[[Any], bool] | None = None
    """`restartable(s)`: whether a lost worker may restart from the newest reported model alone."""
    survives_loss: bool = False
    """Whether a deterministic algorithm continues without a lost worker."""
    compresses: Literal["", "mean", "push"] = ""
    """Which gradients may be compressed: those averaged by `comm.all_reduce(g, op="mean")`, or those that workers push
    to a server as vectors."""
    computes_together: bool = False
    """Whether all ranks compute the gradients of a step together, each from as many samples and at the same weights as
    the others, so that batch norms may take their statistics over all of these samples."""
    whole_batch: bool = False
    """Whether a step takes all samples, and is an epoch; the batch setting is ignored."""
    model_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default settings of the workload, such as a model that is deep enough to cut."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of the experiment's own fields, where this algorithm has others: one worker, fewer steps."""
    plan: Callable[[int, Any], Any] | None = None
    """`plan(workers, s)`: of a pipeline, the schedule that its ranks carry out."""
    schedules: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Of a pipeline, its schedules to be studied without training, by name: `schedule(rank, ranks, chunks, **options)`
    is the ops of a rank."""
    equivalences: tuple[Equivalence, ...] = ()
    """Limit cases in which it is another algorithm."""
    example_workers: int = 3
    """Workers of an example with the default settings."""
    stable_rate: float = 0.1
    """A learning rate at which it converges on a smooth problem."""
    diverging_rate: float | None = 900.0
    """A learning rate at which it diverges, after more than one loss; None where every rate is safe."""
    steps_to_learn: int = 200
    """Steps in which it learns digits and spirals at its defaults."""
    counts_staleness: bool = False
    """Whether it reports of its updates how old the parameters were of which they were computed (`task.applied`)."""
    drops_steps: bool = False
    """Whether a slow worker skips steps that the others make."""

    def is_deterministic(self, s: Any) -> bool:
        """Return whether the same weights come out, bit for bit, on any network with these settings."""
        return (self.deterministic(s) if callable(self.deterministic) else self.deterministic) is True

    def may_restart(self, s: Any) -> bool:
        """Return whether a lost worker may restart with these settings."""
        return self.restartable is not None and self.restartable(s)

    @property
    def shares_samples(self) -> bool:
        """Whether ranks process a sample together, stage by stage or within each layer, instead of one each."""
        return self.data_shards is not one_per_worker


def sequential(worker: Callable[[Any, Any, Any], Any], Settings: type[Knobs], **facts: Any) -> Algorithm:
    """Declare a method that trains on one worker, by default and at most; `facts` are further fields of `Algorithm`."""

    def check(workers: int, batch: int, workload: Any, s: Any) -> None:
        if workers > 1:
            raise ValueError(
                f"a sequential method trains on one worker, and {workers} are given; use 1, or sync_sgd, in which "
                "several train together."
            )

    alone = {"check": check, "elements_sent": nothing_sent, "defaults": {"workers": 1}, "example_workers": 1}
    return Algorithm(worker, Settings, **{**alone, **facts})

"""The declaration of an algorithm: one frozen value at the end of its module, which describes the code above it.

    ALGORITHM = Algorithm(worker, Settings, servers=servers, elements_sent=elements_sent, equivalences=(...))

The command line, the workbench, the simulator and the tests read nothing else of a module. A misspelt field raises
TypeError.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple

from knobs import Knobs as Knobs
from knobs import knob as knob


@dataclass(frozen=True)
class Equivalence:
    """A claim that, with these settings and workers, the algorithm ends with the same weights as algorithm `to`.

    `claim` is the sentence. Both sides use the same learning rate and, unless `to_workers` is given, the same number of
    workers; a sequential method has one worker. If both sides have equally many workers, worker i is compared with
    worker i. Otherwise each worker of this side is compared with the only worker of the other side. The stages of a
    pipeline together hold one model. `exactness` is BIT (identical floats) or RND (equal up to rounding, because only
    the order of summation differs).
    """

    claim: str
    to: str
    _: KW_ONLY
    exactness: Literal["BIT", "RND"] = "BIT"
    workers: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    to_workers: int | None = None
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
    """The average number of workers among which each part of the memory is divided.

    It is 1 if every worker holds all of that part, and infinity if no worker holds any of it.
    """

    parameters: float  # of one version
    gradients: float
    state: float  # of the optimizer


def all_on_each(workers: int, s: Any) -> Split:
    """Return the Split of a method whose workers all hold the whole model, its gradient and the optimizer's state."""
    return Split(1, 1, 1)


def one_model(workers: int, s: Any) -> Split:
    """Return the Split of a method whose workers together hold one model."""
    return Split(workers, workers, workers)


def one_per_worker(workers: int, s: Any) -> int:
    """Return `workers`: each worker has its own shard of the data, or its own stage."""
    return workers


def shared_by_all(workers: int, s: Any) -> int:
    """Return 1: all workers use the same samples."""
    return 1


def one_batch(s: Any) -> int:
    """Return 1, the number of mini-batches per update."""
    return 1


def no_servers(s: Any) -> int:
    """Return 0, the number of servers: every rank trains."""
    return 0


def one_server(s: Any) -> int:
    """Return 1, the number of servers: rank 0."""
    return 1


def always(s: Any) -> bool:
    """Return True, whatever the settings."""
    return True


def nothing_sent(shape: Shape, s: Any) -> float:
    """Return 0, the number of elements sent."""
    return 0


def ring_all_reduces(shape: Shape, s: Any) -> float:
    """Return the number of elements sent in a run with one ring all-reduce of the gradient per step."""
    return 2 * (shape.workers - 1) * shape.parameters * shape.steps


def pushes_and_pulls(shape: Shape, s: Any) -> float:
    """Return the number of elements that workers and a server send: per worker and step, a gradient and w."""
    return 2 * shape.workers * shape.parameters * shape.steps


def boundary_traffic(shape: Shape, s: Any) -> float:
    """Return the number of elements sent between the parts of a model: activations and their gradients."""
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def unpredictable(shape: Shape, s: Any) -> None:
    """Return None: the number of elements sent is known only after a run."""


def accept(workers: int, batch: int, workload: Any, s: Any) -> None:
    """Accept any number of workers, batch size, workload and settings."""


def check_cut(workers: int, batch: int, workload: Any, s: Any) -> None:
    """Raise ValueError, naming numbers that work, if the model cannot be cut into one part per worker."""
    workload.split(workers)


def nothing_to_note(e: Any) -> Iterable[str]:
    """Return no notes, whatever the experiment."""
    return ()


def nothing_foretold(e: Any) -> Iterable[tuple[str, str]]:
    """Return no settings: there is no closed form for when the algorithm diverges."""
    return ()


@dataclass(frozen=True)
class Algorithm:
    """The declaration of an algorithm. `s` is an instance of its `Settings`; the last fields are for tests."""

    worker: Callable[[Any, Any, Any], Any]
    """`worker(comm, task, s)` is the program of every rank; it returns the rank's final weights."""
    Settings: type[Knobs]
    servers: Callable[[Any], int] = no_servers
    """`servers(s)`: the number of ranks (the first ones) that hold parameters and do not train."""
    data_shards: Callable[[int, Any], int] = one_per_worker
    """`data_shards(workers, s)`: the number of data shards; if there are fewer than ranks, neighbours share one."""
    split: Callable[[int, Any], Split] = all_on_each
    """`split(workers, s)`: the number of workers among which each part of the model's memory is divided, as seen
    between two steps: a part that is gathered briefly within a step does not count."""
    per_update: Callable[[Any], int] = one_batch
    """`per_update(s)`: the number of a worker's mini-batches per update; an epoch has a whole number of updates."""
    stages: Callable[[int, Any], int] = one_per_worker
    """`stages(workers, s)`: the number of stages a pipeline cuts the model into."""
    check: Callable[[int, int, Any, Any], None] = accept
    """`check(workers, batch, workload, s)` raises ValueError if the algorithm cannot run with these."""
    notes: Callable[[Any], Iterable[str]] = nothing_to_note
    """`notes(e)`: sentences for the reader who runs `e`, depending on its `workers`, `workload`, `data`, `knobs` and
    faults: that it is equivalent to another algorithm or cannot serve its purpose here, and what to try instead."""
    unstable: Callable[[Any], Iterable[tuple[str, str]]] = nothing_foretold
    """`unstable(e)`: (setting, reason) for each setting that makes experiment `e` diverge according to a closed
    form."""
    elements_sent: Callable[[Shape, Any], float | None] = unpredictable
    """`elements_sent(shape, s)`: the number of elements all ranks send in a run, with ring collectives. Exact for a
    budget in steps; None if it depends on timing or on the model's layers."""
    deterministic: bool | Literal["but for rounding"] | Callable[[Any], bool] = True
    """True if timing changes when things happen but not the result: the same weights on any network. It may depend on
    the settings, or hold only up to rounding, if sums are formed in order of arrival."""
    restartable: Callable[[Any], bool] | None = None
    """`restartable(s)`: True if a lost worker may restart from the newest reported model alone."""
    survives_loss: bool = False
    """True if a deterministic algorithm continues without a lost worker."""
    compresses: Literal["", "mean", "push"] = ""
    """Which gradients may be compressed: those averaged by `comm.all_reduce(g, op="mean")`, or those that workers push
    to a server as vectors."""
    computes_together: bool = False
    """True if all ranks compute the gradients of a step at the same time, from equally many samples and at the same
    weights, so that batch norms can take their statistics over all of these samples."""
    skips_overflow: bool = False
    """True if it skips the step of a gradient that `task.is_usable` rejects, so that a loss scale can be dynamic."""
    stores_weights: bool = False
    """True if it ends each update of its weights with `task.store`, so that they can be kept in 16 bits."""
    scales_loss: bool = True
    """True if every gradient of a parameter is that of the model's loss, so a fixed loss scale has no effect."""
    whole_batch: bool = False
    """True if a step uses all samples, so that it is an epoch; the batch setting is ignored."""
    model_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default settings of the workload, such as a model deep enough to cut."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """This algorithm's own defaults for fields of the experiment, such as one worker or fewer steps."""
    plan: Callable[[int, Any], Any] | None = None
    """`plan(workers, s)`: the schedule that the ranks of a pipeline execute."""
    schedules: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """A pipeline's schedules by name, to be studied without training: `schedule(rank, ranks, chunks, **options)`
    returns the ops of a rank."""
    equivalences: tuple[Equivalence, ...] = ()
    """Limit cases in which it equals another algorithm."""
    example_workers: int = 3
    """Number of workers in an example with the default settings."""
    stable_rate: float = 0.1
    """A learning rate at which it converges on a smooth problem."""
    diverging_rate: float | None = 900.0
    """A learning rate at which it diverges, but not before two losses are recorded; None if every rate is safe."""
    steps_to_learn: int = 200
    """Number of steps in which it learns digits and spirals at its defaults."""
    counts_staleness: bool = False
    """True if it reports the staleness of each update (`task.applied`)."""
    drops_steps: bool = False
    """True if a slow worker skips steps that the others take."""

    def is_deterministic(self, s: Any) -> bool:
        """Return True if these settings give the same weights, bit for bit, on any network."""
        return (self.deterministic(s) if callable(self.deterministic) else self.deterministic) is True

    def may_restart(self, s: Any) -> bool:
        """Return True if a lost worker may restart with these settings."""
        return self.restartable is not None and self.restartable(s)

    @property
    def shares_samples(self) -> bool:
        """True if ranks process each sample together, stage by stage or within each layer."""
        return self.data_shards is not one_per_worker


def sequential(worker: Callable[[Any, Any, Any], Any], Settings: type[Knobs], **facts: Any) -> Algorithm:
    """Return the declaration of a method that trains on exactly one worker; `facts` are further fields of
    `Algorithm`.
    """

    def check(workers: int, batch: int, workload: Any, s: Any) -> None:
        if workers > 1:
            raise ValueError(
                f"a sequential method trains on one worker, but {workers} were given; use 1, or sync_sgd, "
                "which trains on several."
            )

    alone = {"check": check, "elements_sent": nothing_sent, "defaults": {"workers": 1}, "example_workers": 1}
    return Algorithm(worker, Settings, **{**alone, **facts})


def parameter_server(worker: Callable[[Any, Any, Any], Any], Settings: type[Knobs], **facts: Any) -> Algorithm:
    """Return the declaration of a method with one server that waits for no worker; `facts` are further fields of
    `Algorithm`.
    """
    served = {"servers": one_server, "deterministic": False, "counts_staleness": True, "restartable": always}
    return Algorithm(worker, Settings, **{**served, **facts})


EIGHT_LAYERS = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}
"""Settings of a model with enough layers to cut."""


def cut_model(worker: Callable[[Any, Any, Any], Any], Settings: type[Knobs], **facts: Any) -> Algorithm:
    """Return the declaration of a method in which each worker holds some of the layers; `facts` are further fields of
    `Algorithm`.
    """
    cut = {"data_shards": shared_by_all, "split": one_model, "check": check_cut, "elements_sent": boundary_traffic}
    return Algorithm(worker, Settings, **{"model_defaults": EIGHT_LAYERS, **cut, **facts})

"""What an algorithm module declares about itself, beside its docstring, its Settings and its code.

    SYNCHRONOUS = True          the network changes when, but not what: same weights on any network
    def servers(s): ...         ranks that hold parameters and train nothing; they come first (default: none)
    def shards(workers, s): ... parts the data is dealt in, to ranks in a row (default: one per worker; the stages of a
                                pipeline share one)
    def stages(workers, s): ... stages that a pipeline cuts the model in (default: one per worker)
    def refuse(workers, batch, workload, s): ...   one sentence why it cannot run like this, or None: too few workers,
                                micro-batches that do not divide the batch; a ValueError of workload.split does as well
    def rejoins(s): ...         whether a worker that was lost may come back with nothing but the newest model that was
                                reported: whoever serves it goes on with what it asks next (default: no)
    def words(shape, s): ...    numbers moved in the whole run, all ranks together and collectives by the ring: the
                                price in communication, exact for a budget in steps and held to by a test; None where
                                it depends on timing
    WHOLE_BATCH = True          a step takes all samples there are, and so is an epoch; the batch setting means nothing
    COMPRESSES = True           it averages gradients by comm.all_reduce(g, op="mean"), which may be compressed;
                                "push": its workers send them to a server as vectors, which may be compressed
    START = {...}               settings of the workload to begin with, where the reader gives none: a deep model to cut
    EQUIVALENCES = (...)        what it becomes in limit cases, held to by a test

and two lines at its end that make it a script with the same options as `python -m experiments run`:

    if __name__ == "__main__":
        from experiments.cli.script import main

        main(__spec__.name)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from knobs import Knobs, knob

__all__ = ["Equivalence", "Knobs", "Shape", "knob"]


@dataclass(frozen=True)
class Equivalence:
    """`claim`, a sentence: this module with `settings` and `workers` gives the same weights as module `to`.

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
    """The sizes a price depends on."""

    parameters: int  # d
    workers: int
    steps: int  # of each worker
    batch: int  # samples per worker and step
    boundaries: tuple[int, ...] = ()  # numbers per sample that cross from stage s to s + 1
    per_epoch: int = 1  # mini-batches of a worker in one pass over the data
    outputs: int = 1  # numbers per sample that the model gives

"""All layouts of a model on a cluster, the fastest first.

The search leaves out layouts that, according to this model, another one beats in both time and memory: a sequence that
is not split over tensor-parallel ranks, replicated optimizer state, recomputed attention where it is never stored,
tensor parallelism across nodes, and a pipeline with one stage on each rank and at least as many micro-batches as ranks
that does not defer the gradients of weights. Few enough remain to price every one.
"""

from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np

from theory.planner.constants import FITTED, Constants
from theory.planner.language_model import LanguageModel
from theory.planner.memory_use import MemoryUse, memory_use
from theory.planner.setup import (
    FULL,
    GRADIENTS,
    KEEP,
    LIGHT,
    OPTIMIZER,
    SELECTIVE,
    UNFUSED,
    WHOLE,
    Layout,
    Setup,
    take_rows,
)
from theory.planner.step_time import StepTime, step_time, throughput

MOST_CONTEXT, MOST_MICRO_BATCH, MOST_PIECES = 16, 16, 20


@dataclass(frozen=True)
class Found:
    """Layouts with their times and memory, as arrays with one element for each layout."""

    setup: Setup
    time: StepTime
    memory: MemoryUse

    def __len__(self) -> int:
        return len(np.atleast_1d(self.setup.layout.data))

    @property
    def rates(self):
        """The number of tokens per second per GPU."""
        return throughput(self.setup, self.time)

    @property
    def shares(self):
        """The memory that each layout needs, as a share of the GPU's memory."""
        return self.memory.total / self.setup.gpu.memory

    def take(self, rows: np.ndarray) -> "Found":
        """Return the layouts that `rows`, a mask or indices, selects."""
        layout = take_rows(self.setup.layout, rows)
        return Found(replace(self.setup, layout=layout), take_rows(self.time, rows), take_rows(self.memory, rows))


def search(setup: Setup, gpus: int, constants: Constants = FITTED) -> Found:
    """Return all layouts of `setup`'s model and batch on `gpus` GPUs, the fastest first, whether they fit or not.

    The layout in `setup` is ignored. Raise ValueError if the batch or the model cannot be split so that each GPU has
    work.
    """
    rows = [*_layouts(setup, gpus)]
    if not rows:
        raise ValueError(
            f"no layout gives each of {gpus:,} GPUs work: a batch of {setup.batch:,} sequences has to divide evenly "
            f"among data-parallel ranks, and {setup.model.layers} layers and {setup.model.heads} heads among the "
            "others; try another batch or number of GPUs."
        )
    layout = Layout(*np.array(rows).T)
    found = price(replace(setup, layout=layout), constants)
    return found.take(np.argsort(found.time.seconds, kind="stable"))


def price(setup: Setup, constants: Constants = FITTED) -> Found:
    """Return the layouts of `setup` with their times and memory."""
    count = np.broadcast_shapes(*(np.shape(getattr(setup.layout, f.name)) for f in fields(Layout)))

    def wide(part):
        return replace(part, **{f.name: np.broadcast_to(getattr(part, f.name), count) for f in fields(part)})

    return Found(setup, wide(step_time(setup, constants)), wide(memory_use(setup)))


def _layouts(setup: Setup, gpus: int):
    """Yield the fields of each layout whose time and memory are worth computing."""
    model, per_node = setup.model, setup.gpu.per_node
    recomputed = (KEEP, LIGHT, WHOLE) if setup.software.attention != UNFUSED else (KEEP, LIGHT, SELECTIVE, WHOLE)
    for tensor in _powers(min(per_node, gpus), model.heads, model.kv_heads, gpus):
        for context in _powers(MOST_CONTEXT, model.sequence, gpus // tensor):
            for pipeline in _divisors(gpus // (tensor * context), model.layers):
                data = gpus // (tensor * context * pipeline)
                if setup.batch % data:
                    continue
                own = setup.batch // data  # sequences of each replica
                for micro_batch in _divisors(own, MOST_MICRO_BATCH):
                    for pieces in _pieces(model.layers, pipeline, own // micro_batch):
                        for shard, groups in _shards(data * context, pipeline, tensor, per_node):
                            for recompute, expert in product(recomputed, _experts(model, data * context // groups)):
                                yield (
                                    data, tensor, pipeline, context, pieces, tensor > 1, shard, micro_batch, recompute,
                                    groups, pipeline > 1 and pieces == 1 and own >= pipeline * micro_batch, expert,
                                )  # fmt: skip


def _experts(model: LanguageModel, ranks: int) -> list[int]:
    """Return the numbers of ranks to divide the experts among: powers of two that divide both the experts and
    `ranks`.
    """
    return _powers(model.experts, model.experts, ranks)


def _powers(most: int, *divided: int) -> list[int]:
    """Return the powers of two up to `most` that divide all these numbers."""
    return [2**i for i in range(most.bit_length()) if 2**i <= most and not any(number % 2**i for number in divided)]


def _divisors(number: int, most: int) -> list[int]:
    return [size for size in range(1, min(number, most) + 1) if number % size == 0]


def _pieces(layers: int, pipeline: int, micro_batches: int) -> list[int]:
    """Return the numbers of stages per rank to try. More than one needs a multiple of `pipeline` micro-batches."""
    if pipeline == 1 or micro_batches % pipeline:
        return [1]
    return _divisors(-(-layers // pipeline), MOST_PIECES)


def _shards(replicas: int, pipeline: int, tensor: int, per_node: int) -> list[tuple[int, int]]:
    """Return (shard, groups) to try. A pipeline has too many micro-batches to gather weights in each."""
    if replicas == 1 or pipeline > 1:
        return [(OPTIMIZER, 1)]
    inside = per_node // tensor  # replicas in a node
    hybrid = [(FULL, replicas // inside)] if 1 < inside < replicas and replicas % inside == 0 else []
    return [(OPTIMIZER, 1), (GRADIENTS, 1), (FULL, 1), *hybrid]

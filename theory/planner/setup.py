"""The hardware and the layout of a training run.

A layout splits n = data x tensor x pipeline x context GPUs. The experts of each layer are divided among `expert` of
the data x context ranks, which exchange the tokens that visit them. `shard` says which model states data-parallel ranks
divide among themselves:

    NONE        everything is replicated
    OPTIMIZER   the update rule's state (ZeRO-1); gradients are reduced and weights gathered once per step
    GRADIENTS   and gradients, which are reduced in every micro-batch (PyTorch's SHARD_GRAD_OP)
    FULL        and weights, which are gathered in every pass of every micro-batch (FSDP, ZeRO-3)

If `groups` is above 1, each group holds all shards: with one group per node, weights are gathered inside nodes only,
and the groups all-reduce their gradients (hybrid sharding). `recompute` says what is computed again in backward:

    KEEP        nothing
    LIGHT       the activation function of the feed-forward layer
    SELECTIVE   attention scores, where they are stored (Korthikanti et al.)
    WHOLE       the layer

Source: NVIDIA's data sheets of the A100 and the H100 (rates without sparsity); Grattafiori et al., arXiv:2407.21783,
section 3.3.1 (400 Gbit/s per GPU).
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from knobs import match_name

NONE, OPTIMIZER, GRADIENTS, FULL = range(4)
SHARDS = ("none", "optimizer", "gradients", "full")
KEEP, LIGHT, SELECTIVE, WHOLE = range(4)
RECOMPUTE = ("none", "light", "selective", "full")
UNFUSED, FLASH1, FLASH3 = range(3)
ATTENTION = ("unfused", "triton", "cudnn")  # kernels: scores in memory, FlashAttention as of 2022, as of 2024


@dataclass(frozen=True)
class Gpu:
    """A GPU and its links. All rates are peaks."""

    family: Any  # its index in `constants.FAMILIES`
    half: Any  # FLOP/s of 16-bit products
    fp8: Any  # FLOP/s of 8-bit products; 0 without them
    bandwidth: Any  # bytes/s of its memory
    memory: Any  # bytes that a program can use
    link: Any  # bytes/s to the GPUs of its node, in each direction
    network: Any  # bytes/s of a node's network, in each direction
    per_node: Any = 8
    flash: Any = 0.0  # share of `half` that FlashAttention attains on causal FLOPs; 0 for that of its family


A100, H100 = range(2)
GPUS: dict[str, Gpu] = {
    "A100-40GB": Gpu(A100, 312e12, 0.0, 1.555e12, 42.5e9, 300e9, 200e9),
    "A100": Gpu(A100, 312e12, 0.0, 2.039e12, 85.0e9, 300e9, 200e9),
    "H100": Gpu(H100, 989.4e12, 1978.9e12, 3.35e12, 85.0e9, 450e9, 400e9),
    "H200": Gpu(H100, 989.4e12, 1978.9e12, 4.8e12, 151e9, 450e9, 400e9),
    "B200": Gpu(H100, 2.25e15, 4.5e15, 8e12, 192e9, 900e9, 400e9),
}
MEASURED = ("A100-40GB", "A100", "H100")  # whose constants were fitted to measurements on them


@dataclass(frozen=True)
class Software:
    """How the training program computes and communicates."""

    attention: Any = FLASH3
    fp8: Any = False  # products of 8-bit numbers
    gather_bytes: Any = 2  # of a weight when full shards are gathered
    reduce_bytes: Any = 4  # of a gradient when they are reduced in every micro-batch
    gradient_bytes: Any = 4  # of a gradient that micro-batches add to
    logit_bytes: Any = 24  # moved per logit in the loss: 6 if it is fused, 24 in float32
    overlaps: Any = True  # whether tensor-parallel and context-parallel messages are sent during computation


@dataclass(frozen=True)
class Layout:
    """How the model and its batch are split."""

    data: Any = 1
    tensor: Any = 1
    pipeline: Any = 1
    context: Any = 1
    pieces: Any = 1  # stages on each rank of the pipeline: above 1, the schedule is interleaved
    sequence_parallel: Any = False  # norms and residuals are split over the tensor-parallel ranks, too
    shard: Any = NONE
    micro_batch: Any = 1  # sequences
    recompute: Any = KEEP
    groups: Any = 1  # of data-parallel ranks, each with all shards
    defers: Any = False  # weight gradients are computed when a rank would wait (ZB-H1); only with one stage per rank
    expert: Any = 1  # ranks over which the experts of a layer are divided

    @property
    def gpus(self):
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def replicas(self):
        """The number of ranks that reduce gradients together."""
        return self.data * self.context

    @property
    def sharing(self):
        """The number of ranks over which the sharded state is divided."""
        return self.replicas / self.groups


@dataclass(frozen=True)
class Setup:
    """A model, its global batch in sequences, GPUs, software and layout."""

    model: Any
    batch: Any
    gpu: Gpu
    layout: Layout
    software: Software = Software()

    @property
    def stage_parameters(self):
        """The number of parameters of a stage on one tensor-parallel rank, with all experts."""
        return self.model.parameters / (self.layout.tensor * self.layout.pipeline)

    @property
    def own_parameters(self) -> tuple:
        """The number of parameters of a GPU, as (replicated, of experts).

        Every replica holds the replicated parameters; the parameters of experts are divided among replicas.
        """
        model, split = self.model, self.layout.tensor * self.layout.pipeline
        experts = model.layers * model.expert_parameters
        return (model.parameters - experts) / split, experts / (split * self.layout.expert)


def find_gpu(name: str) -> Gpu:
    """Return the GPU of this name, in any case. Raise ValueError if there is none."""
    found = match_name(name, GPUS)
    if found not in GPUS:
        raise ValueError(f"there is no GPU {name!r} to plan for; use one of {', '.join(GPUS)}.")
    return GPUS[found]


def take_rows(part: Any, rows: np.ndarray) -> Any:
    """Return a dataclass of arrays with only those elements that `rows`, a mask or indices, selects.

    Fields that are plain numbers do not change.
    """
    columns = {f.name: np.asarray(getattr(part, f.name)) for f in fields(part)}
    return replace(part, **{name: column[rows] for name, column in columns.items() if column.ndim})

"""The memory of a GPU during a training step, by kind. No constant is fitted.

Mixed precision with Adam: 16-bit weights, float32 copies of them and two moments. With m tokens in a micro-batch, a
layer keeps for backward

    m (width (8 or 10) / split + (4 queries + 4 keys + (4 or 6) ffn) / tensor)    bytes

where queries and keys are their widths, ffn is that of all experts that a token visits, 10 is with dropout, 6 is gated,
and split is tensor if the sequence is split as well, else 1. A mixture of experts adds 4 m width for each expert that a
token visits: the rows sent to it, and those sent back. Attention scores that are not fused add 5 heads sequence^2 per
sequence. With ffn = 4 width that is 34 m width + 5 heads sequence m of Korthikanti et al. A twentieth of the sum is
lost to fragments, and 2 GB to CUDA and NCCL: both are assumed.

Source: Korthikanti et al., MLSys 2023, section 4; Rajbhandari et al., SC 2020; our own for buffers and logits.
"""

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from theory.planner.setup import FULL, GRADIENTS, LIGHT, OPTIMIZER, SELECTIVE, UNFUSED, WHOLE, Setup

FRAGMENTS, CONTEXT = 0.05, 2e9  # share of the sum, and bytes
FUSED_LOSS = 10  # bytes moved per logit below which the loss is fused
TIGHT = 0.93  # share of a GPU's memory above which published rows are often slower than predicted


@dataclass(frozen=True)
class MemoryUse:
    """The memory in use on the fullest GPU, in bytes, by kind."""

    states: Any  # float32 weights and two moments
    weights: Any  # 16-bit
    gradients: Any
    buffers: Any  # gathered layers, and gradients on their way
    activations: Any  # kept for backward, in all micro-batches that are under way
    workspace: Any  # of the layer being computed
    logits: Any

    @property
    def total(self):
        """The total memory in use, in bytes, including fragmentation and what CUDA and NCCL take."""
        return sum(astuple(self)) * (1 + FRAGMENTS) + CONTEXT


def memory_use(setup: Setup) -> MemoryUse:
    """Return the memory in use on the fullest GPU, in bytes, by kind."""
    model, at, software = setup.model, setup.layout, setup.software
    own, stage = sum(setup.own_parameters), setup.stage_parameters
    layer = (model.layer_parameters - model.expert_parameters * (1 - 1 / at.expert)) / at.tensor
    is_full, is_scattered = at.shard == FULL, at.shard >= GRADIENTS  # gradients leave the GPU in every micro-batch
    embedding = model.vocabulary * model.width / at.tensor
    gathered = np.where(is_full, software.gather_bytes * (3 * layer + 2 * embedding), 8 * layer)
    kept, scores = layer_activations(setup)
    is_whole, is_selective = at.recompute == WHOLE, at.recompute == SELECTIVE
    tokens = at.micro_batch * model.sequence / at.context
    split = np.where(at.sequence_parallel, at.tensor, 1)
    inner = model.chosen * model.ffn + model.shared
    light = np.where(at.recompute == LIGHT, 2 * tokens * inner / at.tensor, 0.0)  # an activation's output
    one = np.where(is_whole, 2 * tokens * model.width / split, kept - light + np.where(is_selective, 0.0, scores))
    again = np.where(is_whole, kept + scores, np.where(is_selective, scores, 0.0))
    bytes_per_logit = np.where(software.logit_bytes < FUSED_LOSS, 4, 8)
    return MemoryUse(
        states=np.where(at.shard >= OPTIMIZER, 12 * stage / at.sharing, 12 * own),
        weights=np.where(is_full, 0.0, 2 * own),
        gradients=np.where(is_scattered, 4 * stage / at.sharing, software.gradient_bytes * own),
        buffers=np.where(is_scattered, gathered + software.reduce_bytes * layer, 0.0),
        activations=one * np.ceil(model.layers / at.pipeline) * _alive(setup),
        workspace=again + light + kept / 2,
        logits=np.where(at.pipeline == 1, tokens * model.vocabulary / at.tensor * bytes_per_logit, 0.0),
    )


def layer_activations(setup: Setup) -> tuple:
    """Return (kept, scores), in bytes: what one layer keeps per micro-batch without attention scores, and its stored
    scores.
    """
    model, at = setup.model, setup.layout
    is_unfused = setup.software.attention == UNFUSED
    split = np.where(at.sequence_parallel, at.tensor, 1)
    widths = 4 * model.queries + 4 * model.keys + (4 + 2 * model.gated) * (model.chosen * model.ffn + model.shared)
    inner = widths / model.width
    tokens = at.micro_batch * model.sequence / at.context
    visits = np.where(model.is_mixture, 4 * model.chosen, 0)  # rows that go to experts, and their outputs
    kept = tokens * model.width * ((np.where(is_unfused, 10, 8) + visits) / split + inner / at.tensor)
    squared = 5 * at.micro_batch * model.heads * model.sequence * model.sequence / at.tensor
    return kept, np.where(is_unfused, squared, 0.0)


def _alive(setup: Setup):
    """Return the number of micro-batches whose activations the first stage keeps at a time. ZB-H1 does not change this
    number.
    """
    at = setup.layout
    ranks, pieces = at.pipeline, at.pieces
    micro_batches = np.ceil(setup.batch / (at.data * at.micro_batch))
    interleaved = np.where(pieces > 1, (ranks - 1) / (ranks * pieces), 0.0)
    return np.where(ranks == 1, 1, np.minimum(micro_batches, ranks * (1 + interleaved)))

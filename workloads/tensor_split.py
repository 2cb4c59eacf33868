"""Tensor split: the blocks of a model, and the numbers of ranks over which they can be split.

In a split by columns and rows (`blocks`), dense layers form pairs. A single one at the end keeps its outputs split,
like the head of a transformer. The number of ranks must divide units and heads. It need not divide outputs and tokens,
of which some ranks then have one more.

In a split by units (`outputs`), every layer is a block, and each rank has the outputs that are assigned to it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernels.arrays import shares
from knobs import Refusal
from workloads.blocks import Block, DensePair, Outputs, ResidualOutputs
from workloads.experts import MoeBlock
from workloads.layers import Convolution, Dense, Layer, Residual
from workloads.transformer import GROWTH, AttentionBlock, Embedding, Head, MlpBlock
from workloads.transformer_blocks import ExpertsBlock, HeadsBlock, HiddenBlock, LogitsBlock, TokenBlock


def blocks(layers: Sequence[Layer], rank: int, ranks: int, holder: tuple[int, int] | None = None) -> list[Block]:
    """Return the blocks of rank `rank`. Raise ValueError if the model cannot be split over `ranks` ranks.

    `holder` is (holder, holders): which part of the experts of each mixture this rank has. Without it, mixtures of
    experts are refused.
    """
    groups = list(_groups(layers, mixtures=holder is not None))
    cuts, most = [], math.inf  # cuts: (size that the ranks must divide, in words)
    for first, (layer, *others) in groups:
        match layer:
            case Dense(units=units) if others:
                cuts.append((units, f"the {units} units of layer {first}"))
            case Dense(units=units):
                most = units
            case Embedding(tokens=tokens):
                most = tokens
            case AttentionBlock(heads=heads):
                cuts.append((heads, f"the {heads} heads of layer {first}"))
            case MlpBlock(width=width) | MoeBlock(width=width):
                cuts.append((GROWTH * width, f"the {GROWTH * width} hidden units of layer {first}"))
    common = math.gcd(*(size for size, _ in cuts))  # 0 if there are none
    allowed = [n for n in range(1, min(most, common or most) + 1) if common % n == 0]
    if ranks not in allowed:
        undivided = (f"do not divide {words}" for size, words in cuts if size % ranks)
        problem = next(undivided, f"are too many for {most} output{'s' * (most > 1)}")
        *fewer, last = map(str, allowed)
        raise Refusal(f"{ranks} ranks {problem}; use {', '.join(fewer)}{' or ' * bool(fewer)}{last}.", allowed)
    return [_block(group, rank, ranks, holder or (0, 1)) for _, group in groups]


def outputs(layers: Sequence[Layer], units: Sequence[int]) -> list[Block]:
    """Return the blocks of a rank that has `units` of each layer. Raise ValueError if a layer cannot be split."""
    return [_outputs(number, layer, mine) for number, (layer, mine) in enumerate(zip(layers, units, strict=True))]


def _outputs(number: int, layer: Layer, units: int) -> Block:
    match layer:
        case Dense():
            return Outputs(replace(layer, units=units))
        case Convolution():
            return Outputs(replace(layer, filters=units), (0,) * len(layer.shapes))
        case Residual(inner=inner, scale=scale):
            return ResidualOutputs(replace(inner, units=units), scale=scale)
    raise ValueError(
        f"layer {number}, of kind {type(layer).__name__}, cannot be split unit by unit; "
        "use the models mlp, residual or cnn, or the algorithm tensor."
    )


def _groups(layers: Sequence[Layer], mixtures: bool) -> Iterator[tuple[int, tuple[Layer, ...]]]:
    """Yield (index, layers) for each block, where `index` is the number of its first layer. Dense layers form pairs."""
    allowed = (Dense, Embedding, AttentionBlock, MlpBlock, Head, *[MoeBlock] * mixtures)
    at = 0
    while at < len(layers):
        layer = layers[at]
        if not isinstance(layer, allowed):
            raise ValueError(
                f"layer {at}, of kind {type(layer).__name__}, cannot be split by columns and rows; "
                f"use the model mlp, or the workload text{'' if mixtures else ' without experts'}."
            )
        pair = isinstance(layer, Dense) and at + 1 < len(layers) and isinstance(layers[at + 1], Dense)
        yield at, tuple(layers[at : at + 1 + pair])
        at += 1 + pair


def _block(layers: tuple[Layer, ...], rank: int, ranks: int, holder: tuple[int, int]) -> Block:
    match layers:
        case [Dense() as one, two]:
            return DensePair(replace(one, units=one.units // ranks), two)
        case [Dense() as one]:
            mine = shares(one.units, ranks)[rank]
            return Outputs(replace(one, units=mine.stop - mine.start))
        case [Embedding() as one]:
            return TokenBlock(shares(one.tokens, ranks)[rank], rank == 0)
        case [AttentionBlock() as one]:
            return HeadsBlock(one.time, one.heads // ranks)
        case [MlpBlock()]:
            return HiddenBlock()
        case [MoeBlock() as one]:
            return ExpertsBlock(one, shares(one.experts, holder[1])[holder[0]], rank == 0)
        case _:
            return LogitsBlock()

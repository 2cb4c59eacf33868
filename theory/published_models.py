"""Published models as chains of layers, computed from the shapes that their papers print.

    convolution   k x k, c -> f channels, h x w outputs     k^2 c f (+ f) parameters     k^2 c f h w multiply-adds
    dense         c -> f                                    c f + f                      c f
    block         width D, sequence L                       12 D^2 + 13 D                12 L D^2 + 2 L^2 D

A multiply-add is two FLOPs, and backward takes twice as many as forward. `kept` counts the numbers that backward needs,
with ReLU and dropout done in place: a convolution's output, twice if batch norm follows; for a transformer block
16 L D + heads L^2 (without dropout), where the square is the attention scores. The computation of softmax, norms,
pooling and biases is left out.

If ranks split every layer, by filters or as Megatron does, they sum `summed` numbers in `sums` all-reduces: each output
of a convolution once (gathered forward, scattered backward), and four times L D in a block. The same number is kept
whole on every rank; the rest of `kept` is split.

Source: Simonyan & Zisserman, ICLR 2015, Table 1, column D (VGG-16); He et al., CVPR 2016, Table 1, and a stride of 2 in
the 3 x 3 convolution as in torchvision (ResNet-50); Radford et al., 2019, Table 2 (GPT-2); Korthikanti et al., MLSys
2023, section 4 (what a block keeps, whole and split); Shoeybi et al., arXiv:1909.08053 (the four sums of a block).
"""

from collections.abc import Iterable
from typing import NamedTuple

from theory.profile import Profile

FLOAT32 = 4  # bytes
ITEMSIZE = {"float32": FLOAT32, "mixed": 2}
"""The size in bytes of a weight, an activation or a gradient in the passes and in messages, by precision.
`zero_memory.RECIPES` has what the update rule keeps."""


class LayerShape(NamedTuple):
    """One layer, or one block of layers, of the chain. All counts are for one sample."""

    name: str
    parameters: int
    macs: int  # multiply-adds of the forward pass
    outputs: int  # numbers that the next layer receives
    kept: int  # numbers that backward needs
    sums: int  # all-reduces per step if the layer is split
    summed: int  # numbers in these all-reduces

    @property
    def flops(self) -> int:
        """The number of FLOPs of the forward and backward passes."""
        return 6 * self.macs


def vgg16() -> list[LayerShape]:
    """Return the 13 convolutions and 3 dense layers of VGG-16, for an image of 224 x 224."""
    layers, channels, side = [], 3, 224
    for group, (filters, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for number in range(1, count + 1):
            weights, outputs = 9 * channels * filters, filters * side * side
            pooled = outputs // 4 if number == count else outputs  # what leaves the group
            name, macs = f"conv{group}_{number}", weights * side * side
            layers.append(LayerShape(name, weights + filters, macs, pooled, outputs, 1, outputs))
            channels = filters
        side //= 2
    inputs = channels * side * side
    for name, width in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        layers.append(LayerShape(name, inputs * width + width, inputs * width, width, width, 1, width))
        inputs = width
    return layers


def resnet50() -> list[LayerShape]:
    """Return the first convolution, the 16 blocks and the last layer of ResNet-50, for an image of 224 x 224."""
    layers = [_convolutions("conv1", [(7, 3, 64, 112)], 64 * 56 * 56)]
    channels, side = 64, 56
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 2):
        for number in range(count):
            inner, before = 4 * width, side
            if number == 0 and stage > 2:
                side //= 2
            parts = [(1, channels, width, before), (3, width, width, side), (1, width, inner, side)]
            if number == 0:
                parts.append((1, channels, inner, side))  # the shortcut
            layers.append(_convolutions(f"block{stage}_{number + 1}", parts, inner * side * side))
            channels = inner
    return [*layers, LayerShape("fc", channels * 1000 + 1000, channels * 1000, 1000, 1000, 1, 1000)]


def gpt2(
    blocks: int = 12, width: int = 768, length: int = 1024, words: int = 50257, heads: int = 12
) -> list[LayerShape]:
    """Return the embedding, the blocks and the output layer of a GPT-2, for a sequence of `length` tokens.

    The output layer shares the embedding's weights, so its only parameters are those of the last norm.
    """
    tokens = length * width
    block = LayerShape(
        "block",
        12 * width**2 + 13 * width,
        12 * length * width**2 + 2 * length**2 * width,
        tokens,
        16 * tokens + heads * length**2,
        4,
        4 * tokens,
    )
    return [
        LayerShape("embedding", (words + length) * width, 0, tokens, 0, 1, tokens),
        *(block._replace(name=f"block{number}") for number in range(1, blocks + 1)),
        LayerShape("output", 2 * width, tokens * words, length * words, tokens + length * words, 1, tokens),
    ]


def gpt2_xl() -> list[LayerShape]:
    """Return the largest GPT-2, with 48 blocks."""
    return gpt2(blocks=48, width=1600, heads=25)


MODELS = {"ResNet-50": resnet50, "VGG-16": vgg16, "GPT-2": gpt2, "GPT-2 XL": gpt2_xl}


def profile(layers: Iterable[LayerShape], batch: int, flops: float, itemsize: int = FLOAT32) -> Profile:
    """Return the costs of the layers for a mini-batch of `batch` samples at `flops` FLOP/s, with numbers of `itemsize`
    bytes."""
    layers = list(layers)
    forward = tuple(2 * batch * layer.macs / flops for layer in layers)
    return Profile(
        forward,
        tuple(2 * seconds for seconds in forward),
        tuple(float(itemsize * batch * layer.outputs) for layer in layers),
        tuple(float(itemsize * layer.parameters) for layer in layers),
        tuple(layer.name for layer in layers),
    )


def _convolutions(name: str, parts: Iterable[tuple[int, int, int, int]], outputs: int) -> LayerShape:
    """Return a layer of convolutions with batch norm; `parts` are (kernel, channels in, channels out, output side)."""
    parts = list(parts)
    weights = [size**2 * channels * filters for size, channels, filters, _ in parts]
    return LayerShape(
        name,
        sum(w + 2 * filters for w, (_, _, filters, _) in zip(weights, parts, strict=True)),
        sum(w * side**2 for w, (_, _, _, side) in zip(weights, parts, strict=True)),
        outputs,
        sum(2 * filters * side**2 for _, _, filters, side in parts),
        len(parts),
        sum(filters * side**2 for _, _, filters, side in parts),
    )

"""The models in the table of costs, with the sizes that formulas need, for the whole model and for each stage.

A `Stack` is a number of equal dense layers. Its stages are alike, as if it could be cut anywhere. `UnequalLayers` are
cut between layers so that the slowest stage is as fast as possible: some stages are slower and larger than others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, pairwise

from theory import published_models
from theory.balance import by_slowest
from theory.published_models import LayerShape


@dataclass(frozen=True)
class Stack:
    """A stack of equal dense layers: all sizes follow from their number and width."""

    layers: int
    width: int

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return self.layers * (self.width**2 + self.width)

    @property
    def text(self) -> str:
        """A clause that describes the model."""
        return f"{self.layers} layers of {self.width:,}"

    def symbols(self, batch: float) -> dict[str, float]:
        """Return the values of the symbols that depend on the model and the batch."""
        layer = self.width**2 + self.width
        return {
            "d": self.parameters,
            "l": layer,
            "F": 2 * self.layers * self.width**2,
            "B": batch,
            "A": batch * self.layers * self.width,
            "t": self.layers * self.width,
            "a": self.width,
            "o": self.width,
            "y": 1,
            "u": 0,
            "x": 0,
            "r": 1,
        }

    def cut(self, stages: int, batch: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return two empty dicts: all stages are alike, so no symbol depends on them (see `UnequalLayers.cut`)."""
        return {}, {}


@dataclass(frozen=True)
class UnequalLayers:
    """A chain of layers that differ."""

    shapes: tuple[LayerShape, ...]
    text: str

    @cached_property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum(layer.parameters for layer in self.shapes)

    @cached_property
    def numbers_to_sum(self) -> int:
        """The count of numbers per sample that tensor parallelism sums, if it splits layers by columns and by rows in
        turn, as Megatron does.

        They are the outputs of every second layer and, in the backward pass, the inputs of every layer before it. The
        first layer passes no gradient on.
        """
        inputs = [0, *(layer.outputs for layer in self.shapes[:-1])]
        return sum(inputs[::2]) + sum(layer.kept for layer in self.shapes[1::2])

    def symbols(self, batch: float) -> dict[str, float]:
        """Return the values of the symbols that depend on the model and the batch, but not on the stages."""
        return {
            "d": self.parameters,
            "l": max(layer.parameters for layer in self.shapes),
            "F": 2 * sum(layer.macs for layer in self.shapes),
            "B": batch,
            "A": batch * sum(layer.kept for layer in self.shapes),
            "t": self.numbers_to_sum,
            "o": self.shapes[-1].outputs,
            "y": 1,
            "u": 0,
            "x": 0,
        }

    def cut(self, stages: int, batch: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return two dicts: the values of symbols that depend on the stages, and the values of other symbols to use
        where only the largest stage counts.

        The latter describe a model whose stages are all as large as the largest. Raise ValueError if there are more
        stages than layers.
        """
        parts = self._parts(stages)
        work = self.work(stages)
        crossing = [part[-1].outputs for part in parts[:-1]]
        kept = sum(layer.kept for layer in self.shapes)
        most = stages * max(sum(layer.kept for layer in part) for part in parts)
        return (
            {"r": stages * max(work) / sum(work), "a": sum(crossing) / max(1, len(crossing))},
            {
                "d": stages * max(sum(layer.parameters for layer in part) for part in parts),
                "A": batch * most,
                "t": self.numbers_to_sum * most / kept,
            },
        )

    def work(self, stages: int) -> tuple[int, ...]:
        """Return the multiply-adds of each stage. Raise ValueError if there are more stages than layers."""
        return tuple(sum(layer.macs for layer in part) for part in self._parts(stages))

    def _parts(self, stages: int) -> list[tuple[LayerShape, ...]]:
        ends = [0, *accumulate(_cut(self.shapes, stages))]
        return [self.shapes[start:stop] for start, stop in pairwise(ends)]


Model = Stack | UnequalLayers


@cache
def _cut(shapes: tuple[LayerShape, ...], stages: int) -> tuple[int, ...]:
    return tuple(by_slowest([layer.macs for layer in shapes], stages))


def blocks(number: int, width: int) -> UnequalLayers:
    """Return pairs of dense layers as in a transformer: from `width` to four times as many units, and back."""

    def dense(name: str, inputs: int, outputs: int) -> LayerShape:
        weights = inputs * outputs
        return LayerShape(name, weights + outputs, weights, outputs, outputs, 1, width)

    pairs = ((dense(f"up{n}", width, 4 * width), dense(f"down{n}", 4 * width, width)) for n in range(1, number + 1))
    text = f"{number} pairs of layers, {width:,} to {4 * width:,} units and back"
    return UnequalLayers(tuple(layer for pair in pairs for layer in pair), text)


MODELS: Mapping[str, Model] = {
    "8 layers of 64": Stack(8, 64),
    "7 layers of 2,048": Stack(7, 2048),
    "32 layers of 4,096": Stack(32, 4096),
    "96 layers of 12,288": Stack(96, 12288),
    "16 blocks of 4,096": blocks(16, 4096),
    "VGG-16": UnequalLayers(tuple(published_models.vgg16()), "13 convolutions and 3 dense layers"),
}

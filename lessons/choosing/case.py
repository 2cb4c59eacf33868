"""A published model on a cluster of equal devices: the input of closed forms and rehearsals.

A device runs at half of its data-sheet peak, which is our choice. In "mixed" precision it multiplies matrices on its
tensor cores, and weights, gradients, activations and all messages have two bytes per number; the update rule keeps
float32.
"""

from dataclasses import dataclass
from functools import cached_property

from cluster.devices import DEVICES
from cluster.network import NETWORKS, Network
from theory import balance, collective_costs, overlap, published_models, zero_memory
from theory.published_models import ITEMSIZE, LayerShape

OF_PEAK = 0.5


@dataclass(frozen=True)
class Case:
    """A model on a cluster of `ranks` devices. Each device is a node of its own and gets `batch` samples."""

    model: str
    device: str
    network: str
    batch: int
    ranks: int = 8
    latency: float = 1.0  # multiple of the network's latency
    bandwidth: float = 1.0  # multiple of the network's
    speed: float = 1.0  # multiple of the device's
    precision: str = "float32"  # or "mixed"
    bucket: float = 25e6  # bytes, of the overlapped all-reduce
    shrink: int = 1000  # factor by which the rehearsal shrinks vectors and bandwidth: less work, the same time

    @property
    def name(self) -> str:
        """The case's label in figures."""
        return f"{self.model}, {self.device}, {self.network}"

    @cached_property
    def layers(self) -> list[LayerShape]:
        return published_models.MODELS[self.model]()

    @property
    def flops(self) -> float:
        """The speed of a rank, in FLOP/s."""
        return self.speed * OF_PEAK * DEVICES[self.device].rate(self.itemsize)

    @property
    def itemsize(self) -> int:
        """The size of a number in bytes, both in computation and in messages."""
        return ITEMSIZE[self.precision]

    @property
    def links(self) -> Network:
        return NETWORKS[self.network]

    @property
    def alpha(self) -> float:
        """The latency of a message, in seconds."""
        return self.latency * self.links.between.alpha

    @property
    def beta(self) -> float:
        """The time that each byte adds to a message, in seconds."""
        return 1 / (self.bandwidth * self.links.between.bandwidth)

    @property
    def samples(self) -> int:
        """The number of samples in a step, over all ranks."""
        return self.ranks * self.batch

    @property
    def compute(self) -> float:
        """The time that a rank takes to compute the gradient of its batch, in seconds: the t of the formulas."""
        return self.seconds(self.layers)

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def nbytes(self) -> int:
        """The size of the weights, or of a gradient, in bytes: the n of the formulas."""
        return self.itemsize * self.parameters

    @property
    def recipe(self) -> zero_memory.Recipe:
        """The number of bytes that weights, gradients and optimizer state take for each parameter."""
        rule = "Adam" if self.model.startswith("GPT") else "momentum"
        return zero_memory.RECIPES[f"{self.precision} {rule}"]

    @cached_property
    def stages(self) -> list[list[LayerShape]]:
        """The layers of each pipeline stage. There is one stage per rank, and the layers are divided so that the
        slowest stage is as fast as possible.
        """
        cut, first = [], 0
        for count in balance.by_slowest([layer.macs for layer in self.layers], self.ranks):
            cut.append(self.layers[first : first + count])
            first += count
        return cut

    def seconds(self, layers: list[LayerShape]) -> float:
        """Return the time that a rank needs for the forward and backward passes of these layers on its batch, in s."""
        return self.batch * sum(layer.flops for layer in layers) / self.flops

    def ring(self, nbytes: float) -> float:
        """Return the time of a ring all-reduce of `nbytes` bytes, in s."""
        return collective_costs.ring(self.ranks, nbytes, self.alpha, self.beta)

    def overlap(self) -> overlap.StepCosts:
        """Return the costs of a step, from which overlap can be computed.

        They are the time of each layer's passes, the size of its gradient, and the cost of a ring all-reduce.
        All-reduces run one after the other.
        """
        times = [self.seconds([layer]) for layer in self.layers]
        line = overlap.Cost(2 * (self.ranks - 1) * self.alpha, collective_costs.share(self.ranks) * self.beta)
        sizes = [self.itemsize * layer.parameters for layer in self.layers]
        return overlap.StepCosts([t / 3 for t in times], [2 * t / 3 for t in times], sizes, line)

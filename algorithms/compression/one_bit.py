"""1-bit SGD sends the sign of every element, and adds the part it leaves out to the next gradient.

    v <- g + e        bit <- [v >= 0]        q <- the mean of the v with this bit, node by node        e <- v - q

The bits of every output node (a column of a layer's matrix; a vector of biases is one column) are sent with two means,
the best two values for its v. Each rank owns a part of the gradient, in order of columns: it adds up the others' codes
of that part, codes the mean in one bit as well, with its own error feedback, and sends that to all
(`parts/reduce_scatter_codec.py`).

Price: 2 (N-1)/N (d/8 + 8 bytes per node) per rank, towards 1/32 of float32's where columns are long.
Staleness: what a bit leaves out is sent later, by the sender and by the owner.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014.
"""

import math

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.bit_packing import pack
from algorithms.parts.reduce_scatter_codec import ReduceScatterCodec
from algorithms.parts.segments import Segments


class Settings(Knobs):
    error_feedback: bool = knob(True, "add the quantisation error to the next gradient, at both sender and owner")


def per_node(shape) -> list[int]:
    """Return the lengths of a tensor's segments: columns of (inputs, units), filters of (filters, ...), or a whole
    vector.
    """
    if len(shape) == 1:
        return [shape[0]]
    return [shape[0]] * shape[1] if len(shape) == 2 else [math.prod(shape[1:])] * shape[0]


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.tensors = tensors
        self.nodes = Segments([length for _, shape in tensors for length in per_node(shape)])
        self.by_part = ReduceScatterCodec(self.code, self.read, s.error_feedback)

    def mean(self, comm, v):
        x, kept = self.by_node(v), kernels.empty_like(v)
        self.by_row(self.by_part.mean(comm, x), kept)
        self.by_row(x, v)
        return kept

    def encode(self, v):
        return self.code(self.by_node(v), slice(0, len(v)))

    def decode(self, message, out):
        x = kernels.empty_like(out)
        self.read(message, x, slice(0, len(out)))
        self.by_row(x, out)

    def by_node(self, v):
        """Return a copy of v with every matrix in column order."""
        x = kernels.empty_like(v)
        for place, shape in self.tensors:
            if len(shape) == 2:
                x[place].reshape(shape[::-1])[:] = v[place].reshape(shape).T
            else:
                x[place] = v[place]
        return x

    def by_row(self, x, out):
        """Copy x, whose matrices are in column order, into `out` with every matrix in row order, as in the model."""
        for place, shape in self.tensors:
            if len(shape) == 2:
                out[place].reshape(shape)[:] = x[place].reshape(shape[::-1]).T
            else:
                out[place] = x[place]

    def code(self, x, part):
        edges = self.nodes.edges(part, x)
        low, high = kernels.empty(len(edges) - 1, x), kernels.empty(len(edges) - 1, x)
        kernels.two_means(low, high, x, edges)
        return pack(x >= 0, 1), low, high

    def read(self, message, x, part):
        kernels.choose(x, *message, self.nodes.edges(part, x))


COMPRESSION = Compression(Codec, Settings, combine="codec")

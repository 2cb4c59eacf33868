"""Plan which gradients are sent together.

Workers train a model together. Back-propagation goes through its layers from the last to the first. When it has left a
layer, that layer's gradient is ready to be summed over all workers. `plan(layers, network)` decides which layers share
an all-reduce, and in which order the all-reduces are sent, before training begins.

`layers` is a list with a dict for each layer, in the order of the forward pass:

    "bytes"            of its gradient
    "backward"         seconds that back-propagation spends in it

and `network` is a dict:

    "workers"          how many there are, in a ring
    "latency"          seconds that a message takes, however short
    "bandwidth"        bytes per second out of each worker

Return a list of buckets in the order in which they are sent, each a list of layers by number, from 0. Every layer
is in exactly one bucket. For three layers, `[[2], [1, 0]]` sends the last layer alone and then the other two
together.

A bucket is handed to the network as soon as all of its layers are ready and all buckets before it have been handed
over. The network does one all-reduce after the other, each around the ring: 2 (N - 1) messages in a row, each with the
latency and an N-th of the bucket's bytes. A step ends when the last sum is done.

The plan below sends everything at the end. Write a better one.

It is graded by the time of a step: your buckets are run on the simulated cluster for models and networks drawn when
grading begins, and so are one message at the end, one for each layer, and the best possible plan. Some networks have
slow messages and some fast ones; some models have equal layers, some have most of their bytes in one layer, wherever
that is; and one has 150 layers, so do not try all plans.
"""

TARGETS = {
    "time": 1.02,  # times the step of the best plan
    "naive": 1.001,  # times the faster one of one message at the end and one for each layer
}


def plan(layers, network):
    """Return the buckets in the order in which they are sent, each a list of layers."""
    return [list(range(len(layers)))]

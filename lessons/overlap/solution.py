"""The best plan for the exercise on overlap. For each k, it finds the buckets of the last k layers that finish
first.
"""


def plan(layers, network):
    """Return the buckets in the order in which they are sent, each a list of layers."""
    last = len(layers)
    through, buckets = {last: 0.0}, {last: []}  # for all layers from this one on: when they are summed, and how
    ready = 0.0
    for first in reversed(range(last)):
        ready += layers[first]["backward"]
        ends = {}  # where the bucket that begins with this layer ends -> when it is done
        for stop in through:
            ends[stop] = max(ready, through[stop]) + all_reduce(layers[first:stop], network)
        stop = min(ends, key=ends.get)
        through[first], buckets[first] = ends[stop], [*buckets[stop], list(range(first, stop))]
    return buckets[0]


def all_reduce(together, network):
    """Return the time of an all-reduce of these layers, in s."""
    n, nbytes = network["workers"], sum(layer["bytes"] for layer in together)
    return 2 * (n - 1) * (network["latency"] + nbytes / n / network["bandwidth"])

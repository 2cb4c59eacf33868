"""The time and the memory of eight strategies in closed form, for a published model on N equal ranks.

Here b is the samples per rank and step, t the seconds to compute them, n the bytes of weights, alpha and beta the
network's seconds per message and per byte, and ring(n) the seconds of an all-reduce. A step processes N b samples with
every strategy, so that steps are comparable:

    one machine     N t                                        b samples at a time
    all-reduce      t + ring(n)
    overlapped      all-reduces of 25 MB begin in backward     theory.overlap
    server          max(t + 2 (alpha + n beta), N n beta)      one server, full duplex; no worker waits for another
    local SGD       t + ring(n) / 16                           models are averaged every 16 steps
    1F1B            (N - 1) slowest + all stages + 2 (N - 1) links, N micro-batches of b
    tensor          t + N rings for each sum of each layer     b samples at a time
    ZeRO-3          t + three times (N - 1) (alpha + n beta / N), layer by layer, nothing fetched in advance

Rank memory counts weights, gradients, the state of the update rule (momentum for images, Adam for text) and what
backward needs.
"""

from collections.abc import Callable

from lessons.choosing.case import Case
from theory import overlap, zero_memory

PERIOD = 16
MEMORY = {"V100": 16e9, "H100": 80e9}  # bytes, from NVIDIA's data sheets; there is also a V100 with 32e9


def one_machine(c: Case) -> float:
    """Return the time in which one machine processes the samples of a step, in s."""
    return c.ranks * c.compute


def all_reduce(c: Case) -> float:
    """Return the time of a step in which gradients are summed around a ring after backward, in s."""
    return c.compute + c.ring(c.nbytes)


def overlapped_all_reduce(c: Case) -> float:
    """Return the time of a step in which buckets of gradients are summed during backward, in s."""
    p = c.overlap()
    return overlap.wait_free(p, overlap.fill_buckets(p, c.bucket))


def server(c: Case) -> float:
    """Return the time of a step with a parameter server, in s. A step lasts until the server has a gradient from every
    worker.
    """
    return max(c.compute + 2 * (c.alpha + c.nbytes * c.beta), c.ranks * c.nbytes * c.beta)


def local_sgd(c: Case) -> float:
    """Return the time of a step of local SGD, in s. It includes a step's share of the next averaging."""
    return c.compute + c.ring(c.nbytes) / PERIOD


def pipeline(c: Case) -> float:
    """Return the time of a step of a 1F1B pipeline with one stage on each rank, in s."""
    times = [c.seconds(stage) for stage in c.stages]
    links = [c.alpha + c.itemsize * c.batch * stage[-1].outputs * c.beta for stage in c.stages[:-1]]
    return (c.ranks - 1) * max(*times, *links) + sum(times) + 2 * sum(links)


def tensor(c: Case) -> float:
    """Return the time of a step of tensor parallelism, in s. All ranks share every layer and sum its outputs around a
    ring.
    """
    sums = (layer.sums * c.ring(c.itemsize * c.batch * layer.summed / layer.sums) for layer in c.layers)
    return c.compute + c.ranks * sum(sums)


def zero3(c: Case) -> float:
    """Return the time of a step of ZeRO-3, in s. Each layer is fetched only when it is needed."""
    return c.compute + 1.5 * sum(c.ring(c.itemsize * layer.parameters) for layer in c.layers)


def zero3_with_prefetching(c: Case) -> float:
    """Return the time of a step of ZeRO-3, in s. The next layer's weights arrive while a layer computes.

    The last layer's weights are freed after forward like all others, and fetched again. In backward, a layer's gradient
    leaves through the same port at the same time.
    """
    gather = [c.ring(c.itemsize * layer.parameters) / 2 for layer in c.layers]  # or reduce-scatter
    work = [c.seconds([layer]) / 3 for layer in c.layers]
    forward = gather[0] + sum(map(max, work, [*gather[1:], gather[-1]]))
    port = [come + go for come, go in zip([0.0, *gather], [*gather[1:], 0.0], strict=False)]
    backward = sum(max(2 * w, busy) for w, busy in zip(work, port, strict=True)) + gather[0]
    return forward + backward


CLOSED_FORMS: dict[str, Callable[[Case], float]] = {
    "one machine": one_machine,
    "all-reduce": all_reduce,
    "overlapped": overlapped_all_reduce,
    "server": server,
    "local SGD": local_sgd,
    "1F1B": pipeline,
    "tensor": tensor,
    "ZeRO-3": zero3,
}
"""Strategy name -> closed form for the seconds of a step; `rehearsal.PROGRAMS` has the messages of each."""


def states(c: Case, strategy: str) -> float:
    """Return the bytes of weights, gradients and optimizer state on the training rank that holds the most of them."""
    if strategy == "server":  # which holds the state of the update rule
        return c.parameters * (c.recipe.weights + c.recipe.gradients)
    if strategy == "1F1B":
        return sum(c.recipe) * max(sum(layer.parameters for layer in stage) for stage in c.stages)
    if strategy in ("tensor", "ZeRO-3"):
        return zero_memory.nbytes(c.parameters, c.ranks, 3, c.recipe)
    return c.parameters * sum(c.recipe)


def memory(c: Case, strategy: str) -> float:
    """Return the bytes of states, and of what the backward pass needs, on the training rank that holds the most."""
    kept = c.itemsize * c.batch * sum(layer.kept for layer in c.layers)
    if strategy == "1F1B":
        return max(
            sum(layer.parameters * sum(c.recipe) for layer in stage)
            + (c.ranks - s) * c.itemsize * c.batch * sum(layer.kept for layer in stage)
            for s, stage in enumerate(c.stages)
        )
    if strategy == "tensor":
        whole = c.itemsize * c.batch * sum(layer.summed for layer in c.layers)
        return states(c, strategy) + whole + max(0, kept - whole) / c.ranks
    if strategy == "ZeRO-3":
        largest = max(layer.parameters for layer in c.layers)
        return states(c, strategy) + largest * (c.recipe.weights + c.recipe.gradients) + kept
    return states(c, strategy) + kept


def fits(c: Case, strategy: str) -> bool:
    """Return whether a strategy fits in the device's memory."""
    return memory(c, strategy) <= MEMORY[c.device]

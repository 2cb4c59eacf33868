"""A solution to the exercise on choosing.

It chooses the strategy within the limits with the smallest product of steps and seconds per step.
"""

WORKERS, ROUNDS = 8, 3  # rounds of recursive doubling


def choose(model, cluster):
    """Return the name of a strategy."""
    allowed = [name for name in model["steps"] if fits(name, model, cluster)]
    return min(allowed, key=lambda name: model["steps"][name] * (cluster["seconds"] + talk(name, model, cluster)))


def fits(name, model, cluster):
    """Return whether a strategy stays within the limits of memory and budget."""
    sent = model["steps"][name] * traffic(name, model)
    return model["memory"][name] <= cluster["memory"] and sent <= cluster["budget"]


def talk(name, model, cluster):
    """Return the time that communication adds to a step, in seconds."""
    n, alpha, beta = model["gradient"], cluster["latency"], 1 / cluster["bandwidth"]
    doubling = ROUNDS * (alpha + n * beta)
    if name == "server":  # its port carries the workers' gradients in turn, while they compute
        there_and_back = 2 * (alpha + n * beta)
        return max(there_and_back, WORKERS * n * beta - cluster["seconds"])
    return {
        "one machine": 0.0,
        "ring": 2 * (WORKERS - 1) * (alpha + n * beta / WORKERS),
        "doubling": doubling,
        "local SGD, 4": doubling / 4,
        "local SGD, 16": doubling / 16,
        "tensor": ROUNDS * (alpha + model["outputs"] * beta),
    }[name]


def traffic(name, model):
    """Return the number of bytes that all workers together send in a step."""
    n = model["gradient"]
    doubling = WORKERS * ROUNDS * n
    return {
        "one machine": 0,
        "ring": 2 * (WORKERS - 1) * n,
        "doubling": doubling,
        "server": 2 * WORKERS * n,
        "local SGD, 4": doubling / 4,
        "local SGD, 16": doubling / 16,
        "tensor": WORKERS * ROUNDS * model["outputs"],
    }[name]

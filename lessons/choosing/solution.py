"""A solution to the exercise on choosing: of the strategies within the limits, the one with the smallest product of
steps and seconds per step.
"""

WORKERS, ROUNDS = 8, 3  # rounds of recursive doubling


def choose(model, cluster):
    """Return the name of a strategy."""
    allowed = [name for name in model["steps"] if fits(name, model, cluster)]
    return min(allowed, key=lambda name: model["steps"][name] * (cluster["seconds"] + talk(name, model, cluster)))


def fits(name, model, cluster):
    """Return whether a strategy stays within memory and budget."""
    sent = model["steps"][name] * traffic(name, model)
    return model["memory"][name] <= cluster["memory"] and sent <= cluster["budget"]


def talk(name, model, cluster):
    """Return the seconds by which communication lengthens a step."""
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
    """Return the bytes that all workers together send in a step."""
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

"""A perfect solution to the exercise on layouts: every layout is priced, and the fastest one that fits is returned."""

from math import ceil, sqrt


def choose(model, cluster):
    allowed = [at for at in layouts(model, cluster) if memory(at, model) <= cluster["memory"]]
    best = min(allowed, key=lambda at: seconds(at, model, cluster))
    return best | {"interval": interval(cluster)}


def layouts(model, cluster):
    """Yield all layouts in which the GPUs that share a matrix are inside one node."""
    for t in divisors(cluster["per_node"], model["heads"], model["kv_heads"], cluster["gpus"]):
        for p in divisors(cluster["gpus"] // t, model["layers"]):
            d = cluster["gpus"] // (t * p)
            for b in (1, 2, 4, 8):
                for shard in ["optimizer", "full"] if p == 1 < d else ["optimizer"]:
                    for again in (False, True):
                        if model["batch"] % (d * b) == 0:
                            numbers = {"data": d, "tensor": t, "pipeline": p, "micro_batch": b}
                            yield numbers | {"shard": shard, "recompute": again}


def divisors(number, *others):
    return [n for n in range(1, number + 1) if not any(one % n for one in (number, *others))]


def memory(at, model):
    """Return the memory that the fullest GPU needs, in bytes."""
    d, t, p = at["data"], at["tensor"], at["pipeline"]
    m, h = at["micro_batch"] * model["sequence"], model["width"]
    own, layer, words = model["parameters"] / (t * p), model["layer"] / t, model["vocabulary"] / t
    if at["shard"] == "full":
        states = 16 * own / d + 10 * layer + 4 * words * h
    else:
        states = 12 * own / d + 6 * own
    whole = m * (12 * h + 4 * model["keys"] + 6 * model["ffn"]) / t
    kept = 2 * m * h / t if at["recompute"] else whole
    under_way = min(p, model["batch"] // (d * at["micro_batch"]))
    work = whole / 2 + (whole if at["recompute"] else 0)
    loss = 8 * m * words if p == 1 else 0
    return 1.05 * (states + kept * ceil(model["layers"] / p) * under_way + work + loss) + 2e9


def seconds(at, model, cluster):
    """Return the duration of a step, in s."""
    d, t, p = at["data"], at["tensor"], at["pipeline"]
    m, h = at["micro_batch"] * model["sequence"], model["width"]
    products = sum(product(m, n, k, cluster) for n, k in shapes(model, t))
    attention = m * model["sequence"] * h / t / cluster["attention"]
    sums = 4 * (t - 1) / t * 2 * m * h / cluster["link"] * (1 - cluster["hidden_tensor"])
    forward = products + attention + sums
    backward = 2 * products + 2.5 * attention + sums + (forward if at["recompute"] else 0)
    own, each, once = model["parameters"] / (t * p), 0, 0
    if at["shard"] == "full":
        gather, reduce = (collective(nbytes * model["layer"] / t, at, cluster) for nbytes in (2, 4))
        layer = both(forward, gather, cluster) + both(backward, gather + reduce, cluster)
    else:
        layer = forward + backward
        each = 6 * own / cluster["bandwidth"]
        once = (collective(4 * own, at, cluster) + collective(2 * own, at, cluster)) * (1 - cluster["hidden"])
    last = model["layers"] / p * layer + 3 * product(m, model["vocabulary"] / t, h, cluster)
    message = 4 * m * h / t / cluster["port"] if p > 1 else 0
    micro_batches = model["batch"] // (d * at["micro_batch"])
    return (micro_batches + p - 1) * (last + message + each) + once


def shapes(model, t):
    """Return (columns, inner size) of each matrix product of a layer, split among `t` ranks."""
    h, f = model["width"], model["ffn"] / t
    return [((h + 2 * model["keys"]) / t, h), (h, h / t), (f, h), (f, h), (h, f)]


def product(rows, columns, inner, cluster):
    x = 1 / (1 / rows + 1 / columns + 1 / inner)
    return 2 * rows * columns * inner / cluster["flops"] * (x + cluster["knee"]) / x


def collective(nbytes, at, cluster):
    """Return how long the replicas take to all-gather or reduce-scatter this many bytes, in s."""
    d, near = at["data"], max(1, cluster["per_node"] // at["tensor"])
    if d <= near:
        return (d - 1) / d * nbytes / cluster["link"]
    rate = min(cluster["link"], near * cluster["port"])
    return (d - 1) / d * nbytes / rate + (d - 1) * cluster["hop"]


def both(computing, sending, cluster):
    return max(computing, sending) + (1 - cluster["hidden"]) * min(computing, sending)


def interval(cluster):
    return sqrt(2 * cluster["saving"] * cluster["between_failures"] / cluster["gpus"])

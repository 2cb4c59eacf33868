"""A perfect solution to the exercise on pipelined back-propagation: it keeps all versions of the weights, so that each
pass can read the right one.
"""


def train(w, xs, rate, hops, stash, divided):
    late = [hops * (len(w) - 1 - s) for s in range(len(w))]
    versions = [[weight] for weight in w]
    for batch, x in enumerate(xs):
        met = [mine[max(0, batch - late[s])] for s, mine in enumerate(versions)]
        newest = [mine[-1] for mine in versions]
        gradients = passes(x, met, met if stash else newest)
        for s, mine in enumerate(versions):
            own = rate / (late[s] + 1) if divided else rate
            mine.append(mine[-1] - own * gradients[s])
    return [mine[-1] for mine in versions]


def passes(x, there, back):
    inputs, gradients = [], []
    for weight in there:
        inputs.append(x)
        x = weight * x
    error = x - 1
    for weight, given in zip(reversed(back), reversed(inputs), strict=True):
        gradients.insert(0, error * given)
        error = error * weight
    return gradients

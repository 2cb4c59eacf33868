"""A perfect solution to the exercise on what a step remembers: the shortest path through (layers, MB held)."""

import numpy as np


def plan(layers, limit):
    least = np.full((len(layers) + 1, limit + 1), np.inf)
    least[0, 0] = 0
    came = {}
    for start in range(len(layers)):
        for how, count, held, most, again in segments(layers, start, limit):
            room = limit - most
            reached = least[start, : room + 1] + again
            better = np.flatnonzero(reached < least[start + count, held : held + room + 1])
            least[start + count, held + better] = reached[better]
            for before in better:
                came[start + count, int(before) + held] = how, count, int(before)
    return follow(came, len(layers), int(least[-1].argmin()))


def segments(layers, start, limit):
    kept = again = 0
    entered = layers[start]["input"]
    for count, layer in enumerate(layers[start:], 1):
        kept += layer["kept"]
        again += layer["forward"]
        if entered + kept <= limit:
            yield "again", count, entered, entered + kept, again
        if count == 1 and kept <= limit:
            yield "keep", 1, kept, kept, 0
        if kept > limit:
            return


def follow(came, at, held):
    found = []
    while at:
        how, count, held = came[at, held]
        found.append((how, count))
        at -= count
    return found[::-1]

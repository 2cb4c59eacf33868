"""Write a step that needs no tuning.

`step(w, g, memory)` is called once for each gradient. It gets the weights `w`, a NumPy vector, the gradient `g` at `w`,
and the `memory` that its last call returned, an empty list in the first call. It returns three things:

- the weights at which the next gradient is computed;
- the model that you would ship now, which may be another vector;
- the memory for the next call: a list of vectors and numbers.

The step below is SGD, and ships its current weights. It does not get far in a narrow valley, and does not settle in
noise. Write one step, with one set of constants, for all of these:

- valleys without noise: the loss of what you ship should fall to a millionth of its initial value, in hardly more
  gradients than heavy ball needs with the best rate and momentum for that valley;
- noise: after 1,000 noisy gradients the loss of what you ship should be hardly above that of averaged SGD, which has a
  rate of 1 and ships the mean of its models after the 300th; whether training begins near the optimum or a thousand
  times as far away;
- memory: at most three vectors as long as `w`, and up to twenty numbers.

All losses are quadratics in 60 to 100 weights. Their curvatures lie between 0.01 and 1, and the largest is 1. Valleys
without noise have a condition number from 75 to 100. All are rotated at random: no axis of a valley is parallel to a
coordinate.
You are not told where the optimum is, nor how much noise there is.

Everything that you need later must be in `memory`: two processes take turns calling your function, and share no
variables. Now and then a third process repeats a step, and must get the same result from the same `w`, `g` and
`memory`. NumPy and the standard library may be imported.
"""

TARGETS = {
    "valley": 1.3,  # times the gradients of heavy ball, tuned to the valley
    "noise": 1.2,  # times the loss of averaged SGD after 1,000 gradients
    "memory": 3,  # vectors as long as w
}


def step(w, g, memory):
    """Return the next weights, the model to ship, and the memory."""
    w = w - 1.0 * g
    return w, w, memory

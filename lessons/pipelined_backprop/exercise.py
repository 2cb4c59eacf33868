"""Compute, on one machine, the weights that a pipeline ends with.

The network is a chain of S neurons, one on each stage: y = w[S-1] ... w[1] w[0] x, and the loss of an input x is
(y - 1)^2 / 2. A mini-batch is one number. `train(w, xs, rate, hops, stash, divided)` gets the weights `w` at the start,
a list of S numbers, and the mini-batches `xs`, in their order. It returns the S weights at the end, when each stage has
made one update for every mini-batch.

In the pipeline nobody waits:

- on stage s, `hops * (S-1-s)` updates lie between the forward pass of a mini-batch and its own update, once the
  pipeline has filled. Two hops are the order of 1993, one is 1F1B; with none each mini-batch comes back before the next
  starts. While the pipeline fills there are fewer: no stage is late by more updates than it has made.
- the forward pass of a stage reads its newest weight at that time. With `stash`, its backward pass reads the same
  weight again; without it, the newest weight at the time of the backward pass.
- the gradient of w[s] is the error at the output of stage s times the input of stage s in the forward pass. The error
  at the output of the last stage is y - 1.
- the rate of a stage is `rate`; if `divided`, it is `rate` over (the delay of a full pipeline on this stage, plus one).

The function below waits: it goes all the way and back with each mini-batch. That is right for no hops, and for one
stage. Make it right for all. It is graded on the weights that it returns, for chains, orders and mini-batches that you
do not know, including fewer mini-batches than stages. If they are those of a known mistake, the grader says which.

Begin with three stages, six mini-batches, and a pencil. NumPy and the standard library may be imported.
"""

TARGETS = {
    "difference": 1e-9,  # largest difference between a weight and the pipeline's
}


def train(w, xs, rate, hops, stash, divided):
    """Return the weights of all stages after the last update."""
    w = list(w)
    for x in xs:
        inputs = []
        for weight in w:
            inputs.append(x)
            x = weight * x
        error = x - 1
        gradients = []
        for weight, x in zip(reversed(w), reversed(inputs), strict=True):
            gradients.append(error * x)
            error = error * weight
        w = [weight - rate * g for weight, g in zip(w, reversed(gradients), strict=True)]
    return w

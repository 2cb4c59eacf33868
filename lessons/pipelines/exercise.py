"""Write the order in which the stages of a pipeline work.

A model is cut into stages of equal work, and a mini-batch into micro-batches. `schedule(stage, stages, chunks)` returns
what one stage does with its micro-batches, a list of ops in order:

- `"F3"`: the forward pass of micro-batch 3. It takes time 1, and can begin when stage - 1 has done its F3.
- `"B3"`: its backward pass. It takes 2, and can begin when stage + 1 has done its B3, or its I3.
- `"I3"` and `"W3"`: the backward pass in two halves, each of which takes 1. I3 is the gradient of the inputs, for which
  stage - 1 waits. W3 is that of the weights, for which no stage waits; it can run at any later time.

Times are not in the list: a stage does one op after the other, each as soon as it can. Stages and micro-batches are
numbered from 0. When every stage is done, all update their weights, so the order changes neither what the model learns
nor what is sent. It changes how long the stages are idle, and how much they hold: a stage holds a micro-batch from its
F to its B, or to its W.

The schedule below is GPipe's. It is correct, its bubble is 3 (stages - 1), and every stage holds all micro-batches at
once. Find a better one:

- no stage ever holds more micro-batches than there are stages, however many follow;
- and stages are idle no longer than GPipe's;
- then, in no more memory, split the backward passes, until stages are idle for a third of that;
- there may be fewer micro-batches than stages.

Begin with four stages and squared paper. NumPy and the standard library may be imported.
"""

TARGETS = {
    "time": 1.0,  # times GPipe's bubble, 3 (stages - 1)
    "split": 1 / 3,  # times GPipe's bubble, with backward passes split in two
    "memory": 1.0,  # micro-batches held by a stage, per stage of the pipeline
    "traffic": 1.0,  # times the bytes of GPipe
}


def schedule(stage, stages, chunks):
    """Return the ops of stage `stage` of `stages` on micro-batches 0 to `chunks` - 1, in order."""
    forward = [f"F{chunk}" for chunk in range(chunks)]
    backward = [f"B{chunk}" for chunk in reversed(range(chunks))]
    return forward + backward

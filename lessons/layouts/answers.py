"""Answers to the quiz on layouts, computed by the planner, the simulator or closed forms."""

from dataclasses import replace

import numpy as np

from lessons.layouts.experiments import ALIVE, GPUS, LARGE, SMALL, cut_step
from theory.checkpoint_interval import young_interval
from theory.planner.constants import FITTED
from theory.planner.memory_use import TIGHT, memory_use
from theory.planner.search import search
from theory.planner.setup import FULL, OPTIMIZER, WHOLE, Layout, Setup
from theory.planner.step_time import step_time


def held(run, billions: int, data: int, tensor: int, pipeline: int) -> float:
    """Return the size of the weights, gradients and optimizer state on a GPU, in GB."""
    return billions / (tensor * pipeline) * (2 + 4 + 12 / data)


def divides(run, way: str) -> str:
    """Return the kind of memory on a GPU that falls below a third of its size if eight GPUs share a copy of the model
    in this way: "states", "activations" or "both".
    """
    layout = {
        "all eight share every matrix, and the norms as well": {"tensor": 8, "sequence_parallel": True},
        "each has an eighth of the layers, with many micro-batches": {"pipeline": 8},
        "each has an eighth of every sequence": {"context": 8},
        "the eight are replicas that shard all": {"data": 8, "shard": FULL},
    }[way]
    one, eight = (
        memory_use(replace(SMALL, layout=Layout(**{"shard": OPTIMIZER, **at}), batch=64)) for at in ({}, layout)
    )
    states = [float(part.states + part.weights + part.gradients) for part in (one, eight)]
    activations = [float(part.activations) for part in (one, eight)]
    fewer = [after < before / 3 for before, after in (states, activations)]
    return {(True, True): "both", (True, False): "states", (False, True): "activations"}[fewer[0], fewer[1]]


def across(run, instead: str) -> str:
    """Compare the time of a step with this layout to that of the base layout: "twice", "similar" or "shorter".

    The base layout has four replicas, each of which shares matrices among the four ranks of one node.
    """
    data, tensor, stages = {
        "two replicas of eight ranks that share every matrix": (2, 8, 1),
        "four replicas of four stages, where no matrix is shared": (4, 1, 4),
        "two replicas of two stages, each of four ranks that share every matrix": (2, 4, 2),
    }[instead]
    ratio = cut_step(run, data, tensor, stages).summary["seconds"] / cut_step(run, 4, 4, 1).summary["seconds"]
    return "twice" if ratio > 2 else "similar" if ratio > 5 / 6 else "shorter"


def deeper(run, change: str) -> str:
    """Return how a change affects the number of stages of the best layout: "deeper" (more stages), "shallower" or
    "same".
    """
    gpu = LARGE.gpu
    changed, gpus = {
        "each GPU has twice the memory": (replace(LARGE, gpu=replace(gpu, memory=2 * gpu.memory)), GPUS),
        "a node has two GPUs, not eight": (replace(LARGE, gpu=replace(gpu, per_node=2, network=gpu.network / 4)), GPUS),
        "a step has four times as many sequences": (replace(LARGE, batch=4 * LARGE.batch), GPUS),
        "four times as many GPUs share the same batch": (LARGE, 4 * GPUS),
    }[change]
    before, after = (best_stages(*one) for one in ((LARGE, GPUS), (changed, gpus)))
    return "deeper" if after > before else "shallower" if after < before else "same"


def best_stages(setup: Setup, gpus: int) -> int:
    """Return the number of pipeline stages of the fastest layout that fits in memory."""
    found = search(setup, gpus)
    return int(found.take(found.shares <= TIGHT).setup.layout.pipeline[0])


def idle(run, gpus: int, tensor: int, stages: int, batch: int) -> float:
    """Return the percentage of a step that a rank of the pipeline spends waiting. A micro-batch is one sequence."""
    micro_batches = batch * tensor * stages // gpus
    return 100 * (stages - 1) / (micro_batches + stages - 1)


def wrong(run, change: str) -> str:
    """Return which layout becomes relatively faster if the planner's numbers are wrong in this way: "stages", "shards"
    or "neither".
    """
    gpu, constants = LARGE.gpu, FITTED
    if change == "matrix products are a fifth slower than the constants say":
        constants = FITTED._replace(products_h100=0.8 * FITTED.products_h100)
    elif change == "all gathers hide behind computation":
        constants = FITTED._replace(hidden=1.0)
    elif change == "the links within a node are half as fast":
        gpu = replace(gpu, link=gpu.link / 2)
    stages = Layout(2, 4, 8, sequence_parallel=True, shard=OPTIMIZER, defers=True)
    shards = Layout(64, shard=FULL, recompute=WHOLE)

    def ratio(gpu, constants) -> float:
        times = [step_time(replace(LARGE, gpu=gpu, layout=at), constants).seconds for at in (stages, shards)]
        return float(times[0] / times[1])

    moved = ratio(gpu, constants) / ratio(LARGE.gpu, FITTED)
    return "stages" if moved < 0.97 else "shards" if moved > 1.03 else "neither"


def interval(run, gpus: int, saving: int) -> float:
    """Return Young's interval between two checkpoints, in minutes of work, for GPUs that fail as often as Llama 3's
    did.
    """
    return young_interval(saving, ALIVE / gpus) / 60


def too_often(run, times: int) -> float:
    """Return the ratio of two costs of checkpoints and repeated work: at an interval `times` times too short, and at
    the best interval.
    """
    return float(np.mean([times, 1 / times]))

"""Answers to the quiz on PipeDream, computed from schedules, by closed forms, or by training."""

from algorithms.pipelined import pipedream
from lessons.pipedream.experiments import EXACT, NONE, STASH, VERTICAL, clock, loss_after, to_a_loss
from lessons.pipedream.gradients import PLACES, distance
from theory import schedule_timing, schedules, staleness
from theory.partition_pipedream import partition
from theory.profile import Profile

COSTS = {"F": 1.0, "B": 2.0}
SMALL_VGG = Profile(forward=(3.0, 1.0), backward=(5.0, 1.0), activations=(0.5, 0.1), weights=(0.0, 9.0))
SMALL_VGG_REVERSED = Profile(forward=(1.0, 3.0), backward=(1.0, 5.0), activations=(0.5, 0.1), weights=(9.0, 0.0))


def faster(run, stages: int, chunks: int) -> float:
    """Return the throughput of a pipeline that is never drained, divided by GPipe's."""
    flushed = schedule_timing.simulate(schedules.lists("gpipe", stages, chunks), COSTS).makespan / chunks
    return flushed / _period(lambda count: schedules.lists("pipedream", stages, count), COSTS)


def late(run, stages: int, stage: int) -> float:
    """Return how many updates a stage makes between a mini-batch's forward pass and that mini-batch's update."""
    ops = pipedream.schedule(stage, stages, 4 * stages)
    return staleness.count(ops)[stage].delay[-1]


def copies(run, stages: int, weights: str) -> float:
    """Return how much memory all weight versions on all stages take, as a multiple of the size of the model's
    weights.
    """
    policy = (lambda batch: max(0, batch - (stages - 1))) if weights == "vertical" else None
    alive = [
        staleness.count(ops, stash=weights != "none", policy=policy)[stage].alive
        for stage, ops in enumerate(schedules.lists("pipedream", stages, 4 * stages))
    ]
    return sum(alive) / stages


def follows(run, weights: str) -> str:
    """Return the weights at which an update is the gradient of the loss: "newest", "older", "mixed" or "nothing".

    "older" is one older version, "mixed" are the versions that the update's forward pass read on the stages, and
    "nothing" stands for none of these.
    """
    tried = {"algorithm": "pipedream", "workers": 4, "learning_rate": 0.1, "batch": 32, "width": 16, "weights": weights}
    far = distance(run, **tried, **EXACT)
    near = [place for place in PLACES if far[place] < 1e-6]
    return dict(zip(PLACES, ("mixed", "older", "newest"), strict=True))[near[0]] if near else "nothing"


def worst(run, stages: int) -> str:
    """Return the choice of weights for the two passes that ends at the highest loss: "stash", "none" or "vertical".

    Return "level" if all losses are within 5 %.
    """
    kinds = {"stash": STASH, "none": NONE, "vertical": VERTICAL}
    losses = {key: loss_after(run, kind, stages) for key, kind in kinds.items()}
    level = max(losses.values()) < 1.05 * min(losses.values())
    return "level" if level else max(losses, key=losses.get)


def first(run, rates: str) -> str:
    """Return the method that reaches the target loss in less time: "pipedream" or "gpipe".

    Each runs at the best of a few learning rates and momenta, or both at the same small learning rate if `rates` says
    so.
    """
    tried = {
        "pipedream": ("stash", ((0.02, 0.0), (0.04, 0.0), (0.08, 0.0), (0.16, 0.0))),
        "gpipe": ("GPipe", ((0.016, 0.9), (0.032, 0.9), (0.064, 0.9))),
    }
    if "small" in rates:
        tried = {key: (method, ((0.002, 0.9),)) for key, (method, _) in tried.items()}
    clocks = {method: clock(run, method) for method, _ in tried.values()}
    seconds = {key: min(to_a_loss(run, m, *one, clocks[m])[1] for one in some) for key, (m, some) in tried.items()}
    return min(seconds, key=seconds.get)


def period(run, seconds: str) -> float:
    """Return the time between mini-batches in a full pipeline with these stage times, in s. The forward pass takes a
    third of each.
    """
    times = [float(word) for word in seconds.split(", ")]
    costs = {(kind, stage): part * time / 3 for stage, time in enumerate(times) for kind, part in COSTS.items()}
    return _period(lambda count: schedules.lists("pipedream", len(times), count), costs)


def plan(run, bandwidth: int, layers: str) -> str:
    """Return the name of the partition, such as "2-1", that PipeDream's partitioner chooses for a model of two layers
    on three workers.
    """
    profile = SMALL_VGG if layers.startswith("its first layer takes 8 s") else SMALL_VGG_REVERSED
    return partition(profile, [(3, bandwidth)]).name


def _period(lists, costs) -> float:
    """Return the time per mini-batch once the pipeline is full."""
    return (
        schedule_timing.simulate(lists(240), costs).makespan - schedule_timing.simulate(lists(120), costs).makespan
    ) / 120

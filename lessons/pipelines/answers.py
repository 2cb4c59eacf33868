"""Answers to the quiz on pipelines, computed by training or by timing schedules."""

from lessons.figure import value
from lessons.pipelines import experiments
from theory.pipeline_memory import in_flight
from theory.schedule_timing import bubble_of_total, simulate
from theory.schedules import lists

COSTS = {"F": 1.0, "B": 2.0, "R": 1.0}
NAMES = {"GPipe": "gpipe", "1F1B": "1f1b"}


def cut(run, machines: int, then: str) -> str:
    """Compare the speed of `machines` machines that each hold a part of the model with the speed of one that holds all
    of it.

    Return "slower", "as one", or the speed-up: "half" the number of machines or "all" of it.
    """
    if "nobody waits" in then:
        speed = simulate(lists("pipedream", machines, 1000), COSTS).throughput * (COSTS["F"] + COSTS["B"]) * machines
    elif "as long as" in then:
        times = simulate(lists("gpipe", machines, 1), COSTS, latency=COSTS["F"])
        speed = sum(times.busy) / times.makespan
    else:
        speed = value(experiments.cut_in_stages.rows(run), "speed", machines=machines)
    said = {"slower": 0.7, "as one": 1.0, "half": machines / 2, "all": machines}
    return min(said, key=lambda key: abs(said[key] - speed))


def idle(run, stages: int, chunks: int) -> float:
    """Return the percentage of the time that GPipe's stages are idle."""
    return 100 * bubble_of_total(simulate(lists("gpipe", stages, chunks), COSTS))


IDEAL = {"network": "ideal", "device": "40e9:1e15:0"}  # arithmetic alone takes time
SLOW_TO_START = {"network": "ideal", "device": "40e9:1e15:1e-3"}  # a start takes 1 ms


def thinnest(run, stages: int, machines: str) -> str:
    """Return how to cut a mini-batch of 256 for the highest speed: not at all ("whole"), into eight micro-batches
    ("some") or into single samples ("single").
    """
    where = {"ideal": IDEAL, "slow": SLOW_TO_START}.get(machines.split()[0].rstrip(":"), {})
    tried = {chunks: experiments.in_pieces(run, stages, chunks, **where) for chunks in (1, 8, 256)}
    speeds = {chunks: experiments.speed(done) for chunks, done in tried.items()}
    return {1: "whole", 8: "some", 256: "single"}[max(speeds, key=speeds.get)]


def slowest(run, longer: int) -> float:
    """Return the speed-up of four stages over one machine, if one stage has `longer` times as much work as each of the
    others.
    """
    costs = {**COSTS, ("F", 2): longer, ("B", 2): 2 * longer}
    alone = 3 * (3 + longer)  # of a micro-batch on one machine
    first, more = (simulate(lists("gpipe", 4, chunks), costs).makespan for chunks in (256, 512))
    return alone / ((more - first) / 256)


def notices(run, model: str) -> str:
    """Return whether the final loss gets "higher", "lower" or stays the "same" if mini-batches are cut into eight
    micro-batches.
    """
    whole, pieces = (experiments.final_loss(run, model, chunks) for chunks in (1, 8))
    return "same" if abs(pieces / whole - 1) < 1e-9 else "higher" if pieces > whole else "lower"


def held(run, schedule: str, stages: int, chunks: int) -> float:
    """Return the largest number of micro-batches that the first stage holds at once."""
    return in_flight(lists(NAMES[schedule], stages, chunks))[0]


def again(run, stages: int, chunks: int) -> float:
    """Return by what percentage a mini-batch takes longer if the forward pass is recomputed before each
    backward pass.
    """
    once, twice = (simulate(lists(name, stages, chunks), COSTS).makespan for name in ("gpipe", "gpipe_early"))
    return 100 * (twice / once - 1)


def latency(run, takes: str) -> str:
    """Return the slower schedule if a message takes this long: "gpipe" or "1f1b". Return "same" if the two are within 2
    %.
    """
    over = {"no time": 0, "as long as a forward": 1, "as long as two forwards": 2}[takes]
    gpipe, other = (simulate(lists(name, 4, 16), COSTS, over).makespan for name in NAMES.values())
    return "same" if abs(other / gpipe - 1) < 0.02 else "1f1b" if other > gpipe else "gpipe"


def split(run, half: str) -> str:
    """Return how much of 1F1B's bubble remains if its backward passes are split: "none", a "third", "most" or "all" of
    it.
    """
    late = {"as long as the other": 1.0, "two fifths as long as the other": 0.4, "hardly any time": 0.01}[half]
    costs = {"F": 1.0, "I": 1.0, "W": late, "B": 1.0 + late}
    whole, halves = (sum(simulate(lists(name, 4, 8), costs).idle) for name in ("1f1b", "zb_h1"))
    left = halves / whole
    return "none" if left < 0.01 else "third" if left < 0.4 else "most" if left < 0.9 else "all"

"""PipeDream's partitioner: cut a chain into stages and assign workers to them, so that the slowest stage is as fast as
possible.

A(j, m) is the best period of the layers 0..j on m workers. Either they form one stage, or the layers 0..i are cut in
the best way for m-m' workers and the layers i+1..j are a stage of m' replicas, which take turns with the mini-batches:

    A(j, m) = min( T(0..j, m),  min over i, m' of max( A(i, m-m'), 2 a_i / B, T(i+1..j, m') ) )

    form    time of a stage of m replicas, T(i..j, m), with t, w the sums of its layers' times and weights
    2018    max( t, 4 (m-1) w / (m B) ) / m       every worker pushes and pulls gradients while it computes
    sosp    max( t, 2 (m-1) w / B ) / m           with levels: A of the level below takes the place of t
    ring    max( t, 2 (m-1) w / (m B) ) / m       the same with a ring all-reduce
    code    ( t + 4 (m-1) w / (m B) ) / m         the authors' program: communication does not overlap

In the authors' program links are free, unless it is given a factor by which activations are compressed (1: not at all);
then the replicas of a stage divide a link's traffic among them. The answer is A(L-1, all workers); its cuts are found
by tracing back. Ties prefer one stage over several, then the earliest last cut, then the fewest replicas of the last
stage. The cost is O(L^2 m^2), on the lower levels of a hierarchy O(L^3 m^2).

Source: Harlap et al., arXiv:1806.03377 (2018); msr-fiddle/pipedream (code); sosp after Narayanan et al., SOSP 2019,
whose own text was not available.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from math import ceil, inf, prod

from theory.partition import Cell, Partition, PlannedStage
from theory.profile import Profile, ranges

FORMS = {
    "2018": lambda t, w, m, bandwidth: max(t, 4 * (m - 1) * w / (m * bandwidth)) / m,
    "sosp": lambda t, w, m, bandwidth: max(t, 2 * (m - 1) * w / bandwidth) / m,
    "ring": lambda t, w, m, bandwidth: max(t, 2 * (m - 1) * w / (m * bandwidth)) / m,
    "code": lambda t, w, m, bandwidth: (t + 4 * (m - 1) * w / (m * bandwidth)) / m,
}


def partition(
    profile: Profile,
    levels: Sequence[tuple[int, float]],
    form: str = "2018",
    memory: float | None = None,
    compression: float | None = None,
    straight: bool = False,
    fewer: bool = False,
) -> Partition:
    """Return the best plan for a hierarchy of workers. `levels` has (workers, bytes per second between them) for each
    level, the innermost first.

    [(4, 1e9)] means four workers in a row, [(2, 1e10), (3, 1e9)] three machines of two workers. `memory` is the number
    of bytes a worker has for the weights and activations of its stage. `straight` forbids replicas, `fewer` lets
    workers stay idle, and `compression` of activations is for the form "code" only. Raise ValueError if there is no
    plan.
    """
    _check(profile, levels, form, memory, compression, straight and not fewer)
    layers, inside, width, tables = len(profile.layers), ranges(profile.times), 1, []
    held, most = _held(profile, form), 1 if straight else inf

    def limit(cost):
        def within(i, j, m, later):
            fits = m <= most and (memory is None or held(i, j, m, later) <= memory)
            return cost(i, j, m) if fits else inf

        return within

    for level, (workers, bandwidth) in enumerate(levels, 1):
        stage, only, links = _costs(profile, inside, bandwidth, form, width, compression)
        starts = range(1 if level == len(levels) else layers)
        tables.append(_solve(limit(stage), limit(only), links, workers, starts, fewer))
        inside, width = {(i, j): tables[-1][i, j, workers].period for i in starts for j in range(i, layers)}, workers
    period = inside[0, layers - 1]
    if period == inf:
        smallest = lambda i, j, m, later: held(i, j, m, later) if m <= most else inf  # noqa: E731
        least = _solve(smallest, smallest, [0.0] * layers, workers, range(1), fewer)[0, layers - 1, workers].period
        raise ValueError(
            f"no plan for {workers} workers fits into {memory:g} bytes each; the smallest plan needs {least:g}."
        )
    stages = _stages(tables, [workers for workers, _ in levels], 0, layers - 1)
    return Partition(stages, period, sum(profile.times), tuple(tables[-1].values()))


def plan_of(profile: Profile, layers: Sequence[int], bandwidth: float) -> Partition:
    """Return the plan in which stage i has `layers[i]` layers. Each stage runs on one worker.

    Raise ValueError if these numbers are not positive or do not add up to all layers.
    """
    if min(layers, default=0) < 1 or sum(layers) != len(profile.layers):
        raise ValueError(
            f"cuts {','.join(map(str, layers))} do not cover {len(profile.layers)} layers; "
            f"give each stage 1 or more, {len(profile.layers)} in total."
        )
    ends = accumulate(layers)
    stages = tuple(PlannedStage(end - count, end - 1, 1) for count, end in zip(layers, ends, strict=True))
    links = (2 * profile.activations[stage.last] / bandwidth for stage in stages[:-1])
    slowest = max(sum(profile.times[stage.first : stage.last + 1]) for stage in stages)
    return Partition(stages, max(slowest, *links, 0), sum(profile.times))


def link(
    profile: Profile, stages: Sequence[PlannedStage], n: int, bandwidth: float, form: str, compression: float | None
) -> float:
    """Return how long a mini-batch occupies the link after the n-th stage, in both directions, in s.

    This is 0 after the last stage, and where links are free. The authors' program charges a link to the stage after it
    and, except for the first stage, to the stage before it. The higher of these two charges is returned: the one of the
    stage with fewer replicas.
    """
    if n + 1 == len(stages) or (form == "code" and not compression):
        return 0.0
    share = min(stage.replicas for stage in stages[max(n, 1) : n + 2]) * compression if compression else 1
    return 2 * profile.activations[stages[n].last] / bandwidth / share


def flat(stages: Sequence[PlannedStage], replicas: int = 1) -> tuple[PlannedStage, ...]:
    """Return the stages of a hierarchy as one sequence. Replicating a machine replicates all the stages inside it."""
    found: list[PlannedStage] = []
    for stage in stages:
        each = replicas * stage.replicas
        found += flat(stage.inside, each) if stage.inside else (PlannedStage(stage.first, stage.last, each),)
    return tuple(found)


def _costs(profile: Profile, inside, bandwidth: float, form: str, width: int, compression: float | None):
    """Return the functions stage(i, j, m) and only(i, j, m), and the cost of each link, for one level.

    stage(i, j, m) is the cost of the layers i..j on m workers; only(i, j, m) is the same if they are the only stage.
    `inside` has the times of the layers i..j on a worker of this level, which consists of `width` workers of the level
    below.
    """
    weights, links = ranges(profile.weights), [2 * a / bandwidth for a in profile.activations]

    def stage(i, j, m, share=1):
        return FORMS[form](inside[i, j], weights[i, j] / share, m, bandwidth)

    def with_links(i, j, m):
        ends = links[i - 1], links[j] if j + 1 < len(links) else 0
        return max(stage(i, j, m), max(ends) / (m * compression))

    if form != "code":
        return stage, stage, links
    only = partial(stage, share=width)  # the program spreads its gradients over the workers of the level below
    return with_links if compression else stage, only, [0.0] * len(links)


def _solve(stage, only, links, workers, starts, fewer) -> dict[tuple[int, int, int], Cell]:
    """Return the table of the best plans on one level, by (first layer, last layer, workers).

    stage(i, j, m, later) is the cost of the layers i..j on m workers if the stages after them have `later` workers;
    only(...) is the same if they are the only stage.
    """
    table: dict[tuple[int, int, int], Cell] = {}
    for i in starts:
        for j in range(i, len(links)):
            for m in range(1, workers + 1):
                best = Cell(i, j, m, only(i, j, m, workers - m), None, 0, m)
                if fewer and m > 1 and table[i, j, m - 1].period < best.period:
                    best = table[i, j, m - 1]._replace(workers=m)
                for cut in range(i, j):
                    for replicas in range(1, m):
                        before = max(table[i, cut, m - replicas].period, links[cut])
                        if before < best.period:
                            period = max(before, stage(cut + 1, j, replicas, workers - m))
                            if period < best.period:
                                best = Cell(i, j, m, period, cut, m - replicas, replicas)
                table[i, j, m] = best
    return table


def _stages(tables: Sequence[dict], workers: Sequence[int], first: int, last: int) -> tuple[PlannedStage, ...]:
    """Return the stages of the layers first..last on the highest of these levels, traced back from the last stage."""
    if not tables:
        return ()
    stages, m = [], workers[-1]
    while True:
        cell = tables[-1][first, last, m]
        begin = first if cell.cut is None else cell.cut + 1
        stages.append(PlannedStage(begin, last, cell.replicas, _stages(tables[:-1], workers[:-1], begin, last)))
        if cell.cut is None:
            return tuple(reversed(stages))
        last, m = cell.cut, cell.before


def _held(profile: Profile, form: str) -> Callable[[int, int, int, int], float]:
    """Return a function held(i, j, m, later), for the stage of layers i..j on m replicas that `later` workers follow.
    It returns the memory of each replica, in bytes.

    These are the weights and activations of every mini-batch in flight: ceil(later / m) of them, plus its own, which
    the authors' program leaves out.
    """
    size = ranges(a + w for a, w in zip(profile.activations, profile.weights, strict=True))
    return lambda i, j, m, later: (ceil(later / m) + (form != "code")) * size[i, j]


def _check(profile, levels, form, memory, compression, one_stage_per_worker) -> None:
    if form not in FORMS:
        raise ValueError(f"there is no form {form!r}; use one of {', '.join(FORMS)}.")
    if not levels:
        raise ValueError(
            "a plan needs workers, but no level is given; give (workers, bytes per second) for each level."
        )
    for workers, bandwidth in levels:
        if workers < 1:
            raise ValueError(f"{workers} workers cannot train; use at least 1.")
        if not bandwidth > 0:
            raise ValueError(f"bandwidth: {bandwidth} bytes per second would carry nothing; use more than 0.")
    if compression is not None and (form != "code" or not compression > 0):
        raise ValueError(
            f"compression: {compression} cannot be used with the form {form}; use a number above 0 with the form code, "
            "or remove it."
        )
    if memory is not None and len(levels) > 1:
        raise ValueError(
            f"a memory limit works with one level of workers, but {len(levels)} were given; remove it, or give one "
            "level."
        )
    workers, layers = prod(workers for workers, _ in levels), len(profile.layers)
    if one_stage_per_worker and workers > layers:
        raise ValueError(
            f"{workers} workers without replicas need as many layers, but there are {layers}; "
            f"use at most {layers} workers, or set fewer, which lets workers stay idle."
        )

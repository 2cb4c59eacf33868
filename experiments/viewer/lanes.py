"""Names and fault labels of the lanes in pictures, one per rank or per group of ranks."""

from itertools import pairwise

import numpy as np

from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.wording.rank_names import rank_names, slowness

RANKS = 64  # most rows or columns that remain distinguishable; more are drawn in groups


def lane_names(run: Run | ScriptRun) -> list[str]:
    """Return the names of the run's ranks: role and number."""
    return rank_names(run.experiment, run.trace.ranks)


def troubles(run: Run) -> list[str]:
    """Return each rank's fault label, such as "5× slower", or "" for a rank that has none. The label "lost" means that
    a rank was lost for good before it had finished.
    """
    slow = {rank: slowness(factor) for rank, factor in slowed_lanes(run).items()}
    lost = dict.fromkeys(run.trace.lost_ranks(), "lost")
    return [", ".join(filter(None, (slow.get(rank), lost.get(rank)))) for rank in range(run.trace.ranks)]


def slowed_lanes(run: Run) -> dict[int, float]:
    """Return the ranks that the experiment slows down, each with its factor."""
    return {rank: factor for rank, factor in run.experiment.slow.by_rank.items() if factor != 1}


def group_ranks(table: np.ndarray, names: list[str], both: bool = False) -> tuple[np.ndarray, list[str]]:
    """Return the table with neighbouring ranks of one role summed, and the names of its rows. It has at most RANKS rows
    and, with `both`, at most RANKS columns.
    """
    some = groups(names, RANKS)
    starts = [one.start for one in some]
    table = np.add.reduceat(table, starts, axis=0)
    if both:
        table = np.add.reduceat(table, starts, axis=1)
    return table, group_names(names, some)


def groups(names: list[str], most: int) -> list[slice]:
    """Return at most `most` groups of neighbouring ranks, each with one role: servers and workers do not mix."""
    if len(names) <= most:
        return [slice(rank, rank + 1) for rank in range(len(names))]
    servers = sum(name.startswith("server") for name in names)
    few = min(servers, max(1, most // 4, most - (len(names) - servers)))
    edges = [*np.linspace(0, servers, few + 1).astype(int)[:-1]] if few else []
    edges += [*np.linspace(servers, len(names), most - few + 1).astype(int)]
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def group_names(names: list[str], some: list[slice]) -> list[str]:
    """Return the names of groups of ranks, such as "server 0" or "workers 1-3"."""
    return [
        names[one.start] if one.stop - one.start == 1 else f"{names[one.start].split()[0]}s {one.start}-{one.stop - 1}"
        for one in some
    ]

"""Describe errors in plain words, for runs that a solution takes part in."""

import re
from collections.abc import Mapping
from typing import Any

from experiments.runs.record import Run

GROUPS = 8  # groups of ranks that a sentence names; the ranks of a group wait for the same ones

RAGGED = re.compile(r"ValueError: setting an array element with a sequence\..*?inhomogeneous part\.")


def deadlock(run: Run) -> str:
    """Return a sentence that says when a deadlock happened and who waits for whom, or "" if the run had none."""
    if not run.waits:
        return ""
    waits: dict[str, list[int]] = {}
    for wait in run.waits:
        waits.setdefault(f"{f'in {wait.collective} ' if wait.collective else ''}for {wait.whom}", []).append(wait.rank)
    groups = [
        f"{ranks_in_words(ranks)} {'waits' if len(ranks) == 1 else 'wait'} {whom}" for whom, ranks in waits.items()
    ]
    if len(groups) > GROUPS:
        groups[GROUPS:] = [f"and {sum(map(len, [*waits.values()][GROUPS:]))} others wait"]
    when = f"after update {run.updates - 1}" if run.updates else "before the first update"
    return f"{when} nobody can continue: {', '.join(groups)}; is there a send for each recv?"


def failure(error: str) -> str:
    """Return the error of a run, with NumPy's messages replaced by plain words."""
    return RAGGED.sub(
        "NumPy cannot make an array from values of different shapes, such as vectors and None: remove None", error
    )


def crash(values: Mapping[str, Any]) -> str:
    """Return the start of a sentence about the worker that crashes in a run with these settings, or "" if none does."""
    rank = str(values.get("crash") or "").partition(":")[0]
    return f"when worker {rank} crashes, and comm.recv_any() returns ({rank}, None) for it: " if rank else ""


def ranks_in_words(ranks: list[int]) -> str:
    """Return ranks as words, such as "rank 3", "ranks 1 to 5" or "ranks 1, 3 and 4"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and ranks == [*range(ranks[0], ranks[-1] + 1)]:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"

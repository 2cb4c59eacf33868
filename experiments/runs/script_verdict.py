"""What two runs of scripts have in common, and where they first differ, in sentences without a full stop."""

from collections.abc import Iterator

from experiments.runs.parting import parting
from experiments.runs.script_comparison import (
    FirstDifference,
    compare_numbers,
    longer_waits,
    printed_difference,
    source_difference,
)
from experiments.runs.script_run import ScriptRun
from experiments.wording import units
from experiments.wording.script_summary import culprit, duration, place, waiters

EQUAL = 0.005  # relative difference up to which two times are called equally long
LEAST_PERCENT = 0.001  # a smaller difference is written as a power of ten
WORTH = 0.01  # smallest share of the time that a longer wait must take to get a sentence


def verdict(a: ScriptRun, b: ScriptRun) -> list[str]:
    """Return sentences on how `b` differs from `a`: its numbers, its times, its waits."""
    if a.digest == b.digest:
        return ["the same run, bit for bit, times included"]
    return [*_source(a, b), numbers(a, b), *_times(a, b), *_waits(a, b)]


def numbers(a: ScriptRun, b: ScriptRun) -> str:
    """Return a sentence on whether both runs computed the same numbers or, if not, where these first differ."""
    if a.trace.ranks != b.trace.ranks:
        return "the runs have different numbers of ranks, so losses and logged values are not compared rank by rank"
    found = compare_numbers(a, b)
    if not found.compared and not found.missing:
        return "neither script calls backward() on a loss or logs a value, so there are no numbers to compare"
    apart = f"; not in both: {', '.join(found.missing)}" if found.missing else ""
    if found.first:
        return f"{_difference(found.first)}{apart}"
    if not found.compared:
        return f"no numbers to compare{apart}"
    far = ", as far as both runs go" if found.longer else ""
    return f"the same numbers{far}: {found.compared:,} losses and logged values are equal, bit for bit{apart}"


def difference(a: ScriptRun, b: ScriptRun) -> str:
    """Return a sentence on where a run and its repetition first differ, or "" if they are bitwise identical."""
    if a.digest == b.digest:
        return ""
    if (a.status, a.error) != (b.status, b.error):
        ends = [f"{run.status}: {run.error}" if run.error else run.status for run in (a, b)]
        return f"one {ends[0].rstrip('.')}; the other {ends[1].rstrip('.')}"
    if a.trace.ranks != b.trace.ranks:
        return f"{a.trace.ranks} ranks against {b.trace.ranks}"
    found = compare_numbers(a, b)
    if found.first or found.longer or found.missing:
        return numbers(a, b)
    if lines := printed_difference(a, b):
        rank, one, other = lines
        return f"rank {rank} printed {one!r:.80}, and now {other!r:.80}"
    return "the numbers are the same, but the times differ"


def _difference(one: FirstDifference) -> str:
    values = " and ".join(f"{value:.9g}" for value in one.values)
    most = f", elsewhere by up to {_share(one.most)}" if one.most > one.apart else ""
    where = f"{one.name} on rank {one.rank} is {values}"
    return f"the numbers first differ in step {one.step}: {where}; they differ by {_share(one.apart)}{most}"


def _share(relative: float) -> str:
    """Return a relative difference in words, such as "40 %" or "2e-07 of their size"."""
    return units.percent(relative) if relative >= LEAST_PERCENT else f"{relative:.0e} of their size"


def _source(a: ScriptRun, b: ScriptRun) -> Iterator[str]:
    if (line := source_difference(a, b)) is not None:
        yield f"the scripts differ from line {line} on"


def _times(a: ScriptRun, b: ScriptRun) -> Iterator[str]:
    (what, one), (of, other) = duration(a.summary), duration(b.summary)
    if what == of and one > 0 and other > 0:
        ratio = other / one
        longer = "takes the same time" if abs(ratio - 1) < EQUAL else f"takes {ratio:.3g} times as long"
        pace = f"is {1 / ratio:.3g} times as fast" if ratio <= 1 - EQUAL else longer
        yield f"{what} {pace}: {units.seconds(other)} against {units.seconds(one)}"
    if a.trace.ranks == b.trace.ranks and (found := parting(a.trace, b.trace)):
        sides = f"{units.seconds(found.measured)} against {units.seconds(found.predicted)}"
        yield f"their times first differ in step {found.step}: all ranks together {DOES[found.kind]} {sides}"


DOES = {
    "compute": "compute for",
    "update": "update for",
    "communicate": "communicate for",
    "wait": "wait for",
    "idle": "are idle for",
}
"""A phrase for what ranks do, by kind of span."""


def _waits(a: ScriptRun, b: ScriptRun) -> Iterator[str]:
    for sign, waits in (("more", longer_waits(a, b)), ("less", longer_waits(b, a))):
        if waits and waits[0].mean > WORTH * max(a.summary.seconds, b.summary.seconds):
            wait = waits[0]
            mean = " on average" * (wait.ranks > 1)
            yield f"{waiters(wait)}{mean} {units.seconds(wait.mean)} {sign} for {culprit(wait)} {place(wait)}"

"""The summary of a script's run in words: what it ran on, how long a step took, who waited for whom and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cluster.script_summary import PRINTED
from experiments.wording import units

if TYPE_CHECKING:
    from cluster.script_summary import Summary, WaitFor
    from experiments.specification.script import ScriptExperiment

NAMED = 4  # ranks that others wait for, in the summary
WORTH = 0.01  # smallest share of the time of the ranks that wait that gets a line: less is chance
LEAST_SHOWN = 0.0005  # smallest share of the time that is not shown as 0.0 %
LONGER = 1.25  # times the median at which a rank counts as computing longer than the others
MOST_LOGGED = 6  # names of logged values in the summary

NO_TIME = "nothing in the script took virtual time: it calls no torch operation"


def heading(experiment: ScriptExperiment) -> str:
    """Return the script and its machines in a few words, such as "train.py on 64 ranks, 10GbE"."""
    return f"{experiment.name} on {units.count_with_noun(experiment.ranks, 'rank')}, {experiment.network}"


def position(step: int, seconds: float) -> str:
    """Return the progress of a run, such as "step 3, 1.2 ms of virtual time". The step is left out if it is below 0."""
    return f"step {step}, " * (step >= 0) + f"{units.seconds(seconds)} of virtual time"


def duration(summary: Summary) -> tuple[str, float]:
    """Return ("a step", its duration in s) or, if no optimizer takes a step, ("the run", its duration in s)."""
    return ("a step", summary.step_seconds) if summary.steps else ("the run", summary.seconds)


def lines(summary: Summary, notes: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the lines of the summary, as (label, text)."""
    time = f"{units.seconds(summary.seconds)} of virtual time{_per_step(summary)}" if summary.seconds else NO_TIME
    found = [
        ("time", time),
        ("loss", _loss(summary)),
        *_logged(summary),
        ("ranks", share_of_time(summary)),
        ("", _longest_work(summary)),
        *_waiting(summary),
        ("memory", _memory(summary)),
        ("sent", _sent(summary)),
        *(("note", note) for note in notes),
    ]
    return [(label, text) for label, text in found if text]


def _per_step(summary: Summary) -> str:
    if not summary.steps:
        return ", without an optimizer step"
    rest = "start-up and the first step" if summary.steps > 2 else "start-up"
    each = f"{units.seconds(summary.step_seconds)} each (median, without {rest})"
    return f", {units.count_with_noun(summary.steps, 'step')}, {each}"


def _loss(summary: Summary) -> str:
    losses = [units.loss(loss) for loss in summary.losses.values()]
    meaning = ": the mean of the losses that backward() was called on"
    if len(losses) < 2:
        return f"{losses[0]}{meaning}" if losses else ""
    first, last = ("in the first step", "in the last") if summary.steps else ("at first", "at the end")
    return f"{losses[0]} {first}, {losses[-1]} {last}{meaning}"


def _logged(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a line for each value that the script logs or prints, averaged over the ranks."""
    label = ""
    for name, by_step in [*summary.logged.items()][:MOST_LOGGED]:
        before, label = label, "printed" if name.startswith(PRINTED) else "logged"
        values = [*map(units.number, by_step.values())]
        course = f"{values[0]} at first, {values[-1]} at the end" if len(values) > 1 else values[0]
        yield label * (label != before), f"{name.removeprefix(PRINTED)} {course}"
    if len(summary.logged) > MOST_LOGGED:
        yield "", f"and {len(summary.logged) - MOST_LOGGED} more"


def share_of_time(summary: Summary) -> str:
    """Return a phrase for how the ranks spend their time, or "" if nothing took a share worth mentioning.

    An example is "computing 40.1 %, waiting 59.9 % of the whole run on average".
    """
    kinds = {"computing": summary.compute, "communicating": summary.communicate, "waiting": summary.wait}
    kinds["idle or blocked"] = summary.idle
    total = summary.seconds or 1.0
    means = {name: float(seconds.mean()) / total for name, seconds in kinds.items()}
    shares = [f"{name} {units.percent(mean)}" for name, mean in means.items() if mean >= LEAST_SHOWN]
    return f"{', '.join(shares)} of the whole run{' on average' * (summary.ranks > 1)}" if shares else ""


def _longest_work(summary: Summary) -> str:
    """Return a phrase that says which rank computes longest, or "" if none does so for much longer than the others."""
    longest, usual = int(summary.compute.argmax()), float(np.sort(summary.compute)[(summary.ranks - 1) // 2])
    if summary.compute[longest] < LONGER * usual or not usual:
        return ""
    times = units.number(float(summary.compute[longest]) / usual, 2)
    return f"rank {longest} computes longest: {times} times as long as the median rank"


def _waiting(summary: Summary) -> list[tuple[str, str]]:
    """Return the summary's lines about waiting: which rank waits most, then each of the longest waits with its
    culprit, operation and line of the script.
    """
    if summary.waiting_share < WORTH:
        return []
    most, counted = int(summary.wait.argmax()), sum(wait.seconds for wait in summary.waits)
    early = ", mostly at start-up and in the first step" if counted < 0.5 * summary.wait.sum() else ""
    found = [("waiting", f"rank {most} waits most: {units.percent(summary.waiting_share)} of the whole run{early}")]
    caused = summary.seconds_by_culprit()
    worth = [wait for wait in summary.waits if wait.mean >= WORTH * summary.waits_over]
    worth.sort(key=lambda wait: (-caused.get(wait.culprit, 0.0), -wait.seconds))  # the network last
    if len(worth) > 1:
        found.append(("", f"{'after the first step, ' * (summary.steps > 1)}{_shares(caused, counted)}:"))
    elif worth and summary.steps > 1:
        found.append(("", "after the first step:"))
    for wait in worth[:NAMED]:
        share = f"{units.percent(wait.mean / summary.waits_over)} of the time"
        found.append(("", f"{waiters(wait)} for {culprit(wait)} {place(wait)}: {length(wait, summary)}, {share}"))
    if len(worth) > NAMED:
        found.append(("", f"and {len(worth) - NAMED} more"))
    return found


def _shares(caused: dict[int, float], total: float) -> str:
    """Return a phrase that says who causes most of all waiting, such as "rank 5 causes 95 % of all waiting"."""
    network = total - sum(caused.values())
    rank = max(caused, key=lambda one: caused[one], default=-1)
    if network > total / 2 or rank < 0:
        return f"the network causes {units.percent(network / total)} of all waiting"
    share, rest = units.percent(caused[rank] / total), ", more than any other" * (caused[rank] < total / 2)
    return f"rank {rank} causes {share} of all waiting{rest}"


def waiters(wait: WaitFor) -> str:
    """Return a phrase that says who waited, such as "3 ranks wait" or "rank 2 waits"."""
    if wait.ranks == 1:
        return f"rank {wait.waiter} waits" if wait.waiter >= 0 else "1 rank waits"
    return f"{wait.ranks} ranks wait"


def culprit(wait: WaitFor) -> str:
    """Return what the ranks waited for: a rank, such as "rank 5", or "the network"."""
    return f"rank {wait.culprit}" if wait.culprit >= 0 else "the network"


def place(wait: WaitFor) -> str:
    """Return a phrase that says where ranks waited, such as "in all_reduce at line 27 of ddp.py"."""
    return f"in {wait.what}" + (f" at {wait.line}" if wait.line else "")


def length(wait: WaitFor, summary: Summary) -> str:
    """Return a phrase that says how long a rank waited, such as "991 µs per step on average". If there are several
    steps, the first does not count.
    """
    per_step = " per step" if summary.steps > 1 else ""
    return f"{units.seconds(wait.mean / max(1, summary.steps - 1))}{per_step}{' on average' * (wait.ranks > 1)}"


def _memory(summary: Summary) -> str:
    held = {kind: int(nbytes.max()) for kind, nbytes in summary.memory.items() if nbytes.any()}
    parts = ", ".join(f"{kind} {units.size(nbytes)}" for kind, nbytes in held.items())
    return f"at most {units.size(sum(held.values()))} on a rank: {parts}" if held else ""


def _sent(summary: Summary) -> str:
    most = float(summary.sent.max())
    per_step = f", {units.size(most / summary.steps)} per step" if summary.steps else ""
    return f"at most {units.size(most)} by a rank{per_step}" if most else ""

"""How one run differs from another, judged by what both recorded."""

import math
from collections.abc import Sequence

import numpy as np

from experiments.runs.agreement import agreement
from experiments.runs.figures import figure_text
from experiments.runs.record import Run
from experiments.runs.seeds import seed_figure
from experiments.specification.experiment import Experiment
from experiments.viewer import curves
from experiments.wording import units
from experiments.wording.rank_names import training_role
from experiments.wording.sentences import capital, join_words
from tracing import COMPUTE, KINDS

BEFORE = "the previous run"
ALIKE = 0.005  # share by which two figures may differ and still count as equal
SEEN = 0.01  # share of the highest loss by which two curves may differ and still look the same
WORTH_NAMING = 0.1  # share of a slower pipeline's extra time from which a kind of span is named as its cause
SAME_WORK = 0.05  # share by which FLOPs may differ and still count as nearly the same
VERBS = {
    "compute": "computes",
    "update": "updates for",
    "communicate": "communicates for",
    "wait": "waits",
    "idle": "is idle for",
}
BETTER = "lower is better"
ALIKE_IN_ALL = "no difference in any figure"
FAR = 3.0  # sums of standard errors between two accuracies that no other seed is likely to reverse
WORTH = 1.2  # ratio, or its inverse, from which traffic is mentioned


def between(before: Run, now: Run, other: str = BEFORE) -> str:
    """Return sentences on how `now` differs from `before`, without a full stop after the last one. `other` is what they
    call `before`.

    Both runs are judged by what they recorded: time on their own clocks, weights by their bits, held-out loss, bytes.
    """
    return _sentences(_findings(before, now, other)) or ALIKE_IN_ALL


def in_short(before: Run, now: Run, other: str = BEFORE) -> str:
    """Return the first sentence of `between`, without its full stop. It is about the time, or how the runs ended."""
    return next(filter(None, _findings(before, now, other)), ALIKE_IN_ALL)


def _findings(before: Run, now: Run, other: str) -> list[str]:
    """Return the sentences of `between`; some may be empty."""
    was, has = before.summary, now.summary
    if was.get("digest") and was.get("digest") == has.get("digest"):
        return ["the same run, bit for bit, including all times"]
    diverged = "diverged" in (before.status, now.status)
    cut = {"failed", "cancelled"} & {before.status, now.status}
    parts = [_ending(before, now, other) if diverged else _end(was, has) if cut else _clock(was, has)]
    if not (diverged or cut):
        parts.append(_dearer(before, now))
    if not comparable(before.experiment, now.experiment):
        return [*parts, "trained on different data, so losses cannot be compared"]
    if same_model(before, now):
        parts.append("the same model, bit for bit")
    elif not diverged and same_to_rounding(before, now):
        parts.append("the same model up to rounding")
    elif not diverged:
        told = "the accuracies differ by no more than their standard errors"
        parts += [_loss(was, has, not cut), told * _overlap(was, has)]
    sent = _ratio(was.get("bytes"), has.get("bytes"))
    if not (diverged or cut) and (sent >= WORTH or 0 < sent <= 1 / WORTH):
        parts.append(f"{units.number(sent, 2)} times as much traffic" if sent > 1 else f"{_part(sent)} of the traffic")
    return parts


def _sentences(parts: Sequence[str]) -> str:
    """Return the non-empty parts joined into sentences that follow a colon: the first begins in lower case."""
    first, *others = [*filter(None, parts)] or [""]
    return ". ".join([first, *map(capital, others)])


def over_seeds(heats: Sequence[tuple[Run, Run]]) -> str:
    """Return, in words, how the second runs of these pairs differ from the first ones. The two runs of a pair share a
    seed.

    The words are like those of `between`. They give the range of speeds, the mean losses, in how many seeds the loss is
    lower, and whether the seeds agree on which loss is better: "over 5 seeds 1.5 to 1.8 times as fast. Held-out loss
    ...".
    """
    if any("diverged" in (before.status, now.status) for before, now in heats):
        gone = [sum(one.status == "diverged" for one in side) for side in zip(*heats, strict=True)]
        return f"diverges in {gone[1]} of {len(heats)} seeds instead of {gone[0]}"
    times = [_ratio(before.summary["seconds"], now.summary["seconds"]) for before, now in heats]
    low, high = min(times), max(times)
    alike = low >= 1 - ALIKE and high <= 1 + ALIKE
    word, ends = ("fast", (1 / high, 1 / low)) if 0 < high < 1 else ("long", (low, high))
    between = " to ".join(dict.fromkeys(units.number(one, 2) for one in ends))
    parts = ["takes the same time" if alike else f"{between} times as {word}"]
    losses = [[one.summary.get("held_out_loss") for one in side] for side in zip(*heats, strict=True)]
    if None not in losses[0] + losses[1] and comparable(*(one.experiment for one in heats[0])):
        lower = sum(now < before for before, now in zip(*losses, strict=True))
        was, has = (figure_text("held_out_loss", one.mean, one.std) for one in map(seed_figure, losses))
        told = f"held-out loss {has} instead of {was} ({BETTER}), lower with {lower} of the seeds"
        parts.append(told + ", so the seeds do not agree on which is better" * (0 < lower < len(heats)))
    return f"over {len(heats)} seeds {_sentences(parts)}"


def comparable(before: Experiment, now: Experiment) -> bool:
    """Return True if both experiments train on the same task, so that their losses are comparable."""
    return (before.workload, before.files) == (now.workload, now.files)


def same_model(*runs: Run) -> bool:
    """Return True if all runs ended with the same parameters, bit for bit."""
    weights = {run.summary.get("weights") for run in runs}
    return len(weights) == 1 and None not in weights


def same_to_rounding(before: Run, now: Run) -> bool:
    """Return True if both runs trained identically up to rounding. Return False if their held-out losses already look
    different.
    """
    losses = [run.summary.get("held_out_loss") for run in (before, now)]
    if None in losses or units.loss(losses[0]) != units.loss(losses[1]):
        return False
    found = agreement(before, now)
    return found is not None and found.same


def may_be_chance(before: Run, now: Run) -> bool:
    """Return True if both runs finished the same task with different losses, whose order another seed might reverse.

    That is unlikely if their accuracies are FAR apart.
    """
    losses = [run.summary.get("held_out_loss") for run in (before, now)]
    if None in losses or {before.status, now.status} != {"finished"}:
        return False
    if not comparable(before.experiment, now.experiment) or _distance(before.summary, now.summary) > FAR:
        return False
    return units.loss(losses[0]) != units.loss(losses[1])


def learned_alike(before: Run, now: Run, axis: str = "step") -> bool:
    """Return True if both runs' training losses, plotted against this axis, look like a single curve."""
    if not comparable(before.experiment, now.experiment):
        return False
    (_, one), (_, other) = (curves.training(run, axis) for run in (before, now))
    if not len(one.x) or len(one.x) != len(other.x) or not np.allclose(one.x, other.x, rtol=ALIKE, atol=0):
        return False
    return bool(np.abs(one.y - other.y).max() <= SEEN * np.abs(one.y).max())


def only_the_clock(before: Run, now: Run) -> bool:
    """Return True if both runs learned alike but at different times: their curves coincide when plotted by step."""
    return learned_alike(before, now) and abs(_ratio(before.summary["seconds"], now.summary["seconds"]) - 1) > ALIKE


def _clock(was: dict, has: dict) -> str:
    """Return a phrase that compares the times of the runs `has` and `was`. It also compares their numbers of samples if
    these differ.
    """
    longer, samples = _ratio(was.get("seconds"), has.get("seconds")), _ratio(was.get("samples"), has.get("samples"))
    if not longer:
        return ""
    more = ""
    if samples and abs(samples - 1) > 0.02:
        many = f"{units.number(samples, 2)} times as many" if samples > 1 else f"{_part(samples)} of the"
        more = f" for {many} samples"
    if abs(longer - 1) <= ALIKE:
        return f"takes the same time{more}"
    return f"{_times(longer)} as {'long' if longer > 1 else 'fast'}{more}"


def _dearer(before: Run, now: Run) -> str:
    """Return a phrase that says which work takes the pipeline's ranks longer than in the previous run. Return "" if the
    run is no slower.

    A schedule that fills the bubble may still be slower: each of its passes costs the device's time per call, and each
    of its messages the network's latency.
    """
    pipelines = all(run.experiment.method.plan for run in (before, now))
    if not pipelines or before.trace.ranks != now.trace.ranks or before.summary["samples"] != now.summary["samples"]:
        return ""
    if _ratio(before.summary["seconds"], now.summary["seconds"]) <= 1 + ALIKE:
        return ""
    was, has = (dict(zip(KINDS, run.trace.busy().mean(axis=0), strict=True)) for run in (before, now))
    more = [kind for kind in KINDS if has[kind] - was[kind] > WORTH_NAMING * (sum(has.values()) - sum(was.values()))]
    if not more:
        return ""
    spent = [f"{VERBS[kind]} {units.seconds(has[kind])} instead of {units.seconds(was[kind])}" for kind in more]
    role = training_role(now.experiment, now.trace.ranks)
    told = f"on average a {role} {join_words(spent)}"
    if "compute" in more and abs(_ratio(before.summary["flops"], now.summary["flops"]) - 1) < SAME_WORK:
        then, passes = (units.count(int((run.trace.spans["kind"] == COMPUTE).sum())) for run in (before, now))
        told += (
            f". Nearly the same arithmetic is cut into {passes} passes instead of {then}, and each pass costs a call"
        )
    return told


def _end(was: dict, has: dict) -> str:
    """Return a sentence on when each run ended, if at least one of them ended early."""
    now, then = (units.seconds(one["seconds"]) for one in (has, was))
    if has.get("steps") == was.get("steps"):
        return f"ends at {now} instead of {then}"
    steps = [units.count_with_noun(one["steps"], "step") for one in (has, was)]
    return f"ends at {now}, after {steps[0]}, instead of {then}, after {steps[1]}"


def _loss(was: dict, has: dict, judge: bool) -> str:
    before, now = was.get("held_out_loss"), has.get("held_out_loss")
    if before is None or now is None:
        return "another model"
    if units.loss(before) == units.loss(now):
        return f"a different model with the same held-out loss, {units.loss(now)}"
    return f"held-out loss {units.loss(now)} instead of {units.loss(before)}" + f" ({BETTER})" * judge


def _overlap(was: dict, has: dict) -> bool:
    """Return True if two accuracies differ by no more than their standard errors."""
    return _distance(was, has) <= 1


def _distance(was: dict, has: dict) -> float:
    """Return the difference of two accuracies, divided by the sum of their standard errors.

    It is NaN if one of them has no standard error.
    """
    errors = [one.get("accuracy_error") for one in (was, has)]
    return math.nan if None in errors else abs(was["accuracy"] - has["accuracy"]) / max(sum(errors), 1e-9)


def _ending(before: Run, now: Run, other: str) -> str:
    """Return a phrase that says which of the two runs diverged."""
    if before.status == now.status:
        return f"diverges, as {other} did"
    return f"diverges, but {other} did not" if now.status == "diverged" else f"does not diverge, but {other} did"


def _ratio(was: float | None, has: float | None) -> float:
    """Return the ratio of the value now to the value before, or 0 if there is nothing to compare."""
    return has / was if was and has else 0.0


def _times(ratio: float) -> str:
    """Return the ratio or its inverse, whichever is at least one, as text: 0.5 and 2 both become "2 times"."""
    large = max(ratio, 1 / ratio)
    return f"{units.number(large, 2 if large >= 1.1 else 3)} times"


def _part(ratio: float) -> str:
    """Return a ratio below one as text, such as "45 %" for 0.45."""
    return f"{units.number(100 * ratio, 2)} %"

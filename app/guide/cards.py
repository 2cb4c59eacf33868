"""Introductory tasks for newcomers: each asks for a prediction, runs an experiment and explains the result.

A card's explanation is computed from its run and the one it is compared with; `test_questions.py` checks the right
prediction against the same runs.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from app.guide.questions import QUESTIONS, Question
from experiments.runs.figures import run_figure_text
from experiments.runs.record import Run
from experiments.specification.catalogue import ALGORITHMS
from experiments.specification.experiment import Experiment
from experiments.specification.faults import FaultSetting
from experiments.viewer import doing
from experiments.viewer.waits import NETWORK
from experiments.wording import naming, units
from experiments.wording.rank_names import rank_names
from experiments.wording.sentences import capital
from tracing import KINDS


class CardRuns(NamedTuple):
    """The two runs of a card: `experiment` has the change that the card asks about, `reference` does not."""

    experiment: Experiment
    reference: Experiment


class Card(NamedTuple):
    """A card, which asks about two runs. `options` are two predictions, and `right` is the index of the correct one for
    the two runs that a newcomer sees.

    `question` names these two runs. `trial(mine, seconds)` applies the card to the reader's own experiment, whose run
    took `seconds`; it returns None if the card makes no sense there. `judge(now, before)` returns the index of the
    correct prediction, and `says(now, before)` the finding in one or two sentences. `predicts` is the question that the
    reader is asked, with {others} and {method}, and {worker} and {at} if a worker has a fault.
    """

    title: str
    icon: str
    about: str
    predicts: str
    options: tuple[str, str]
    right: int
    question: Question
    trial: Callable[[Experiment, float], CardRuns | None]
    judge: Callable[[Run, Run], int]
    says: Callable[[Run, Run], str]

    @property
    def standard(self) -> CardRuns:
        return CardRuns(self.question.experiment, self.question.reference)

    def asks(self, trial: CardRuns) -> str:
        """Return the question that a card asks about this trial."""
        e = trial.experiment
        known = {"others": e.workers - 1, "method": naming.method(trial.reference)}
        if named := _added(e.crash, trial.reference.crash) or _added(e.slow, Experiment().slow):
            known["worker"] = capital(rank_names(e, e.ranks)[named[0]])
            known["at"] = units.seconds(e.crash.by_rank[named[0]][0]) if named[0] in e.crash.by_rank else ""
        return self.predicts.format(**known)


SLOWER = 4  # times
DENSITY = 0.0025  # share of a gradient that is sent
MUCH = 0.05  # accuracy that is much to lose
CLASSIFIED = ("digits", "mnist", "spirals")  # workloads with an accuracy
WAITS = 0.1  # share of their time that the others wait more, if they wait for the slow worker


def _added(now: FaultSetting, before: FaultSetting) -> list[int]:
    """Return the ranks that have a fault in `now` and none in `before`, the last one first."""
    return sorted(now.by_rank.keys() - before.by_rank.keys(), reverse=True)


def _free(e: Experiment) -> list[int]:
    """Return the workers without faults, the last one first."""
    return [rank for rank in range(e.ranks - 1, e.servers - 1, -1) if rank not in {*e.slow.by_rank, *e.crash.by_rank}]


def slow_one(mine: Experiment, _seconds: float) -> CardRuns | None:
    """Return two runs, with and without a slow worker: the last worker that has no fault. Return None if too few
    workers have no fault.
    """
    free = _free(mine)
    return CardRuns(mine.change(slow=mine.slow.with_value(free[0], SLOWER).text), mine) if len(free) > 1 else None


def let_nobody_wait(mine: Experiment, seconds: float) -> CardRuns | None:
    """Return equally long runs of synchronous and asynchronous SGD with the same slow worker, or None if that is
    impossible.
    """
    slow = slow_one(mine, seconds) if mine.algorithm == "sync_sgd" else None
    if slow is None:
        return None
    reference = slow.experiment.change(seconds=float(f"{seconds:.2g}"), steps=None)
    return CardRuns(reference.change(algorithm="asgd"), reference)


def lose_one(mine: Experiment, seconds: float) -> CardRuns | None:
    """Return two runs, with and without the loss of a worker halfway through, or None if there are too few workers."""
    free = _free(mine)
    if len(free) < 2:
        return None
    at = float(f"{seconds / 2:.2g}")
    return CardRuns(mine.change(crash=mine.crash.with_value(free[1], (at, math.inf)).text), mine)


def send_less(mine: Experiment, _seconds: float) -> CardRuns | None:
    """Return two runs, with whole gradients and with a small part of each, on a workload that has an accuracy. Return
    None if that is impossible.
    """
    sends_gradients = mine.method.compresses and ALGORITHMS[mine.algorithm].family != "averaging"
    if mine.workload not in CLASSIFIED or mine.compression != "none" or not sends_gradients:
        return None
    return CardRuns(mine.change(compression="top_k", density=DENSITY), mine)


def _waiting(run: Run, ranks: Iterable[int]) -> float:
    """Return the share of their time that these ranks spent waiting."""
    busy = run.trace.busy()[[*ranks]]
    return float(busy[:, KINDS.index("wait")].sum() / busy.sum())


def _others(now: Run, before: Run) -> list[int]:
    """Return the workers without a new fault: one, slow or lost, that `now` has and `before` has not."""
    named = _added(now.experiment.slow, before.experiment.slow) + _added(now.experiment.crash, before.experiment.crash)
    return [rank for rank in range(now.experiment.servers, now.experiment.ranks) if rank not in named]


def they_wait(now: Run, before: Run) -> int:
    """Return the index of the correct prediction: 1 if the others wait for the slow worker, else 0."""
    others = _others(now, before)
    return int(_waiting(now, others) - _waiting(before, others) > WAITS)


def explain_straggler(now: Run, before: Run) -> str:
    """Describe what one slow worker costs the others."""
    longer = units.number(now.summary["seconds"] / before.summary["seconds"], 2)
    others = _others(now, before)
    waited = units.percent(_waiting(now, others))
    same = now.summary["weights"] == before.summary["weights"]
    model = "The model is the same, bit for bit: only the times differ." if same else "The model is a different one."
    steps = f"{now.experiment.steps} steps" if now.experiment.steps else "work"
    if not they_wait(now, before):
        return (
            f"They continue: the {len(others)} others spend {waited} of their time waiting, and "
            f"{units.percent(_waiting(before, others))} without the slow worker. The same {steps} take {longer} times "
            f"as long in all, since the slow worker has its own part to do. {model}"
        )
    return (
        f"They wait. The same {steps} take {longer} times as long, and the {len(others)} others spend {waited} of "
        f"their time waiting ({units.percent(now.summary['share_wait'])} over all {now.experiment.workers} workers). "
        f"{model}"
    )


def explain_no_waiting(now: Run, before: Run) -> str:
    """Describe what is gained and lost by not waiting."""
    more = units.number(now.summary["samples"] / before.summary["samples"], 2)
    stale = units.number(now.summary["staleness_mean"], 2)
    waits = now.causes.training
    network = units.percents(waits.sum(axis=0).tolist())[NETWORK]  # in the digits of the timeline
    return (
        f"In {units.seconds(now.experiment.seconds)} this run processes {more} times as many samples as synchronous "
        "SGD with the same slow worker (where the workers must also agree in every step whether time is up). Its "
        f"held-out loss is then {run_figure_text(now, 'held_out_loss')}, and that of synchronous SGD "
        f"{run_figure_text(before, 'held_out_loss')}. No worker waits for another: {network} of the remaining grey is "
        "the network, and the rest is the server, which handles one gradient at a time. The price is staleness: while "
        f"a gradient is computed, the model changes {stale} times on average, and at most "
        f"{now.summary['staleness_max']} times."
    )


def they_train_on(now: Run, before: Run) -> int:
    """Return the index of the correct prediction: 0 if losing a worker stops the others, else 1."""
    return int(now.status != "failed")


def explain_lost_worker(now: Run, before: Run) -> str:
    """Describe how far training gets when a worker is lost."""
    rank = _added(now.experiment.crash, before.experiment.crash)[0]
    name = rank_names(now.experiment, now.experiment.ranks)[rank]
    if they_train_on(now, before):
        updates = units.percent(now.summary["samples"] / before.summary["samples"])
        return f"They train on without {name}, and process {updates} of the samples that all workers would process."
    synchronous = ALGORITHMS[now.experiment.algorithm].family == "synchronous"
    why = (
        f"A synchronous step needs every worker's gradient, and the gradient of {name} never comes."
        if synchronous
        else f"Sooner or later each of them needs something from {name} that never comes."
    )
    return f"They stop, after {now.summary['steps']} of {before.summary['steps']} steps. {why}"


def costs_accuracy(now: Run, before: Run) -> int:
    """Return the index of the correct prediction: 1 if the accuracy drops a lot, else 0."""
    was, has = (run.summary["accuracy"] or 0.0 for run in (before, now))
    return int(was - has > MUCH)


def explain_sending_less(now: Run, before: Run) -> str:
    """Describe what sending only a small part of each gradient saves and costs."""
    fewer = units.number(before.summary["bytes"] / now.summary["bytes"], 2)
    share = units.percent(doing.shares(now).get(doing.COMPRESS, 0.0))
    took = [units.seconds(run.summary["seconds"]) for run in (now, before)]
    right = [run_figure_text(run, "accuracy") for run in (now, before)]
    return (
        f"{fewer} times fewer bytes are sent, and the held-out accuracy is {right[0]} instead of {right[1]}: what is "
        f"not sent is added to the next gradient. The run takes {took[0]} instead of {took[1]}, and compressing takes "
        f"{share} of the workers' time. The slower the network, the more this saves."
    )


_BY_QUERY = {question.query: question for question in QUESTIONS}
CARDS = (
    Card(
        "Slow one worker down",
        ":material/hourglass_bottom:",
        "One worker computes four times slower.",
        "{worker} computes four times slower than the others. What do the other {others} do in every step of {method}?",
        ("They continue without it", "They wait for it"),
        1,
        _BY_QUERY["slow=3:4"],
        slow_one,
        they_wait,
        explain_straggler,
    ),
    Card(
        "Let nobody wait",
        ":material/fast_forward:",
        "The same slow worker, but nobody waits for it.",
        "{worker} computes four times slower than the others, and each worker sends its gradient to a server as "
        "soon as it is ready and continues with the next (asynchronous SGD). What does that cost?",
        ("Nothing: it is simply faster", "Gradients go stale"),
        1,
        _BY_QUERY["algorithm=asgd&slow=3:4&seconds=0.1"],
        let_nobody_wait,
        lambda now, before: int(now.summary["staleness_mean"] > 0),
        explain_no_waiting,
    ),
    Card(
        "Kill a worker",
        ":material/power_off:",
        "One worker fails halfway through the run.",
        "{worker} is lost after {at}, in the middle of a run of {method}. What do the other {others} do?",
        ("They stop", "They train on without it"),
        0,
        _BY_QUERY["crash=2:0.04"],
        lose_one,
        they_train_on,
        explain_lost_worker,
    ),
    Card(
        "Send less",
        ":material/compress:",
        "Only the largest 0.25 % of each gradient is sent.",
        "Each worker sends only the largest 0.25 % of each gradient, and adds the rest to its next one (top-k). What "
        "accuracy does that cost in {method}?",
        ("One point at most", "Ten points or more"),
        0,
        _BY_QUERY["compression=top_k&density=0.0025"],
        send_less,
        costs_accuracy,
        explain_sending_less,
    ),
)

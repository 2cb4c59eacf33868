"""Introductory tasks for newcomers: each asks for a prediction, runs an experiment and explains the result.

A card's explanation is computed from its run and the one it is compared with; `test_questions.py` checks the right
prediction against the same runs.
"""

from collections.abc import Callable
from typing import NamedTuple

from app.guide.questions import QUESTIONS, Question
from experiments.runs.figures import run_figure_text
from experiments.runs.record import Run
from experiments.viewer.waits import NETWORK
from experiments.wording import units
from tracing import KINDS


class Card(NamedTuple):
    """`question` names the two runs; `options` are two predictions, and `right` is the index of the correct one.

    `says(now, before)` returns the finding in one or two sentences.
    """

    title: str
    icon: str
    about: str
    predicts: str
    options: tuple[str, str]
    right: int
    question: Question
    says: Callable[[Run, Run], str]


def explain_straggler(now: Run, before: Run) -> str:
    """Explain what one slow worker costs the others."""
    longer = units.number(now.summary["seconds"] / before.summary["seconds"], 2)
    slow = now.experiment.slow.by_rank
    others = [busy for rank, busy in enumerate(now.trace.busy()) if rank not in slow]
    waited = sum(busy[KINDS.index("wait")] for busy in others) / sum(busy.sum() for busy in others)
    same = now.summary["weights"] == before.summary["weights"]
    model = "The model is the same, bit for bit: only the times differ." if same else "The model is a different one."
    return (
        f"They wait. The same {now.experiment.steps} steps take {longer} times as long, and the "
        f"{len(others)} others spend {units.percent(waited)} of their time waiting "
        f"({units.percent(now.summary['share_wait'])} over all {now.experiment.workers} workers). {model}"
    )


def explain_no_waiting(now: Run, before: Run) -> str:
    """Explain the gain and the cost of not waiting."""
    more = units.number(now.summary["samples"] / before.summary["samples"], 2)
    stale = units.number(now.summary["staleness_mean"], 2)
    waits = now.causes.training
    network = units.percents(waits.sum(axis=0).tolist())[NETWORK]  # in the digits of the timeline
    return (
        f"In {units.seconds(now.experiment.seconds)} it processes {more} times as many samples as synchronous SGD with "
        "the same slow worker, whose workers must also agree in every step whether time is up. Its held-out loss is "
        f"then {run_figure_text(now, 'held_out_loss')}, and that of synchronous SGD "
        f"{run_figure_text(before, 'held_out_loss')}. No worker waits for another: {network} of the remaining grey is "
        "the network, and the rest is the server, which handles one gradient at a time. The price is staleness: while "
        f"a gradient is computed, the model changes {stale} times on average, and at most "
        f"{now.summary['staleness_max']} times."
    )


def explain_lost_worker(now: Run, before: Run) -> str:
    """Explain how far training gets when a worker is lost."""
    lost = ", ".join(map(str, now.experiment.crash.by_rank))
    return (
        f"They stop, after {now.summary['steps']} of {before.summary['steps']} steps. A synchronous step needs the "
        f"gradient of every worker, and that of worker {lost} never comes."
    )


_BY_QUERY = {question.query: question for question in QUESTIONS}
CARDS = (
    Card(
        "Slow one worker down",
        ":material/hourglass_bottom:",
        "One of four workers computes four times slower.",
        "Worker 3 computes four times slower than the others. What do the other three do in every step?",
        ("They continue without it", "They wait for it"),
        1,
        _BY_QUERY["slow=3:4"],
        explain_straggler,
    ),
    Card(
        "Let nobody wait",
        ":material/fast_forward:",
        "The same slow worker, but nobody waits for it.",
        "Worker 3 computes four times slower than the others, and each worker sends its gradient to a server as "
        "soon as it is ready and continues with the next (asynchronous SGD). What does that cost?",
        ("Nothing: it is simply faster", "Gradients go stale"),
        1,
        _BY_QUERY["algorithm=asgd&slow=3:4&seconds=0.1"],
        explain_no_waiting,
    ),
    Card(
        "Kill a worker",
        ":material/power_off:",
        "One of four workers fails halfway through the run.",
        "Worker 2 is lost after 40 ms, in the middle of the run. What do the other three do?",
        ("They stop", "They train on without it"),
        0,
        _BY_QUERY["crash=2:0.04"],
        explain_lost_worker,
    ),
)

"""How the workers of a run spend their time, in one sentence above its timeline.

Each worker computes 30.2 %, communicates 65.4 % and updates its model 4.4 % of its time; it hardly ever waits for
another worker to be ready.
"""

import numpy as np

from experiments.runs.record import Run
from experiments.viewer import doing
from experiments.viewer.waits import HARDLY
from experiments.wording import units
from experiments.wording.rank_names import training_role
from experiments.wording.sentences import join_words
from tracing import WAIT

DOES = {
    "compute": "computes",
    "communicate": "communicates",
    "compress": "compresses messages",
    "update": "updates its model",
    "wait": "waits",
    "idle": "is idle",
}
"""What a rank does in each of `doing.ORDER`, in the order in which the sentence mentions them."""
ALIKE = 0.05  # difference of two ranks' shares up to which one sentence holds for each of them


def headline(run: Run) -> str:
    """Return the sentence on the workers' time, with the shares of `run.summary`. Return "" for a run without spans."""
    shares = doing.shares(run)
    known = {kind: shares[kind] for kind in DOES if shares.get(kind, 0.0) >= HARDLY}
    if not known or run.trace.ranks <= run.experiment.servers:
        return ""
    spent = join_words([f"{DOES[kind]} {units.percent(share)}" for kind, share in known.items()])
    name = training_role(run.experiment, run.trace.ranks)
    return f"{_who(run, name)} {spent} of its time{_rest(run, name, shares['wait'])}."


def _who(run: Run, name: str) -> str:
    busy = run.trace.busy()[run.experiment.servers :]
    if len(busy) == 1:
        return f"The {name}"
    each = busy / np.maximum(busy.sum(axis=1, keepdims=True), 1e-300)
    return f"Each {name}" if np.ptp(each, axis=0).max() <= ALIKE else f"On average a {name}"


def _rest(run: Run, name: str, waits: float) -> str:
    """Return the clause that says that ranks never or hardly ever wait. Return "" if they do wait, and for a failed run
    or a single rank.

    A rank that never waits for another still spends time on messages, which counts as communication. The ranks of a
    failed run may wait forever.
    """
    e = run.experiment
    if waits >= HARDLY or e.ranks == 1 or run.status == "failed":
        return ""
    often = "hardly ever" if run.trace.busy()[e.servers :, WAIT].any() else "never"
    return f"; it {often} waits for another {'rank' if e.servers else name} to be ready"

"""The figures of a run's summary: their names, units and meanings."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording.sentences import capital
from experiments.wording.units import DIVERGED, SAY, number, percent


class RunFigure(NamedTuple):
    """One figure of a summary, in SI units; a "share" is a fraction of 1."""

    label: str
    unit: Literal["", "s", "bytes", "share", "samples/s", "count", "updates", "FLOP"]
    meaning: str


FIGURES = {
    "loss": RunFigure("training loss", "", "The mean of the last 20 mini-batches."),
    "held_out_loss": RunFigure("held-out loss", "", "The last reported model, on data it has not seen."),
    "best_held_out_loss": RunFigure("best held-out loss", "", "The lowest of all reported models."),
    "accuracy": RunFigure("held-out accuracy", "share", "Of the last reported model; not every workload has one."),
    "best_accuracy": RunFigure("best held-out accuracy", "share", "The highest of all reported models."),
    "r2": RunFigure(
        "held-out R²",
        "",
        "Share of the variance of held-out numbers that a regression explains: 1 at best, 0 for predicting the mean.",
    ),
    "seconds": RunFigure("time", "s", "On the run's own clock, from the first step to the last message."),
    "samples": RunFigure(
        "samples", "count", "Samples whose gradients were computed; repeats in a line search count again."
    ),
    "updates": RunFigure(
        "updates of the model",
        "count",
        "New versions of the model: of the shared one, or of all replicas at once. Local steps are not counted.",
    ),
    "flops": RunFigure(
        "computed in total",
        "FLOP",
        "By all ranks together, in the kernels; sums that torch computes in an all-reduce are not counted.",
    ),
    "samples_per_second": RunFigure("samples per second", "samples/s", "Of all workers, on the run's own clock."),
    "bytes": RunFigure("sent in total", "bytes", "By all ranks together, payload only."),
    "memory": RunFigure("memory", "bytes", "Peak memory of the rank that held the most, without messages."),
    "staleness_mean": RunFigure(
        "staleness", "updates", "Average age of the parameters that an update was computed from."
    ),
    "share_compute": RunFigure("computing", "share", "Share of the workers' time spent computing gradients."),
    "share_wait": RunFigure("workers waited", "share", "Share of the workers' time spent waiting for others."),
    "wall_seconds": RunFigure("wall time", "s", "On the clock of the machine that ran it."),
}
"""The figures of a run's summary, by name."""


def choose_figures(names: Sequence[str], experiment: Experiment) -> list[str]:
    """Return these figures' names, with R² instead of accuracy if the experiment is a regression."""
    return ["r2" if name == "accuracy" and experiment.data.get("regression") else name for name in names]


def headline_label(name: str, experiment: Experiment) -> str:
    """Return the label of a figure above a run's charts, such as "Held-out loss" or "Virtual time"."""
    virtual = name == "seconds" and experiment.cluster == "simulated"
    return capital("virtual time" if virtual else FIGURES[name].label)


class MeasuredQuantity(NamedTuple):
    """A quantity that a method measures: its unit and meaning, to label its curve and last value."""

    unit: str
    meaning: str


QUANTITIES = {
    "written": MeasuredQuantity("coordinates", "coordinates of the shared model that one sample's step changes"),
    "conflicts": MeasuredQuantity(
        "share of writes", "writes to a coordinate that another worker had changed since it was read"
    ),
    "lost": MeasuredQuantity("share of writes", "writes that overwrote what another worker had just added"),
    "spread": MeasuredQuantity(
        "squared distance", "from a worker's model to the mean of all, just before they average"
    ),
    "pulled away": MeasuredQuantity(
        "distance", "from the gradient that all workers use to the mean of the honest ones"
    ),
    "dropped": MeasuredQuantity(
        "gradients", "gradients that came too late for their step and were discarded, since the start"
    ),
    "tokens dropped": MeasuredQuantity(
        "share of choices", "choices of an expert that was full; these tokens take only the residual path"
    ),
    "imbalance": MeasuredQuantity(
        "times the mean",
        "tokens of a rank that choose its most popular expert, as a multiple of the mean over experts",
    ),
    "clocks apart": MeasuredQuantity("steps", "steps that the fastest worker is ahead of the slowest"),
    "accepted": MeasuredQuantity("share of states", "share of the received models that a step uses"),
    "merged": MeasuredQuantity("workers", "workers whose fragment a round of the server averages"),
    "batch size": MeasuredQuantity("samples", "samples of all workers in one update"),
    "learning rate": MeasuredQuantity("step size", "learning rate of the step"),
    "loss scale": MeasuredQuantity("factor", "multiplies the gradient of the loss in fp16; halved after an overflow"),
    "skipped steps": MeasuredQuantity("steps", "steps so far whose gradient overflowed in fp16"),
    "signal": MeasuredQuantity("squared norm", "estimate of the squared norm of the true gradient"),
    "noise": MeasuredQuantity(
        "variance", "estimate of the variance of one sample's gradient, summed over all coordinates"
    ),
    "noise scale": MeasuredQuantity("samples", "noise divided by signal; batches much larger than this save few steps"),
    "share of SGD": MeasuredQuantity("share of the step", "part of the step that is plain SGD; the rest is RMSProp"),
    "portions computed twice": MeasuredQuantity(
        "portions", "portions of a batch that two workers computed, so that nobody waits for a slow one"
    ),
    "version gap": MeasuredQuantity(
        "versions", "how many versions newer the weights of a backward pass were than those of its forward, at most"
    ),
    "local loss": MeasuredQuantity("loss", "loss of the modules' own classifiers, on average"),
    "synthesiser loss": MeasuredQuantity("loss", "half the squared distance of a predicted gradient from the true one"),
}
"""The quantities, by the name passed to a task's `measure`."""


def measured_name(quantity: str) -> str:
    """Return the title of a quantity's picture, such as "conflicts, share of writes". The unit is left out if it is
    part of the name.
    """
    known = QUANTITIES.get(quantity)
    return f"{quantity}, {known.unit}" if known and known.unit not in quantity.split() else quantity


def measured_meaning(quantity: str) -> str:
    """Return the meaning of a quantity, or "" if only an uploaded run has it."""
    return QUANTITIES[quantity].meaning if quantity in QUANTITIES else ""


def measured_text(quantity: str, value: float) -> str:
    """Return a value of a quantity as text. Shares and counts have units, as in "75 % of writes" and "3,265
    coordinates".
    """
    unit = QUANTITIES[quantity].unit if quantity in QUANTITIES else ""
    if unit.startswith("share"):
        return percent(value) + unit.removeprefix("share")
    written = number(value)
    return f"{written} {unit.removesuffix('s') if written == '1' else unit}" if unit in COUNTED else written


COUNTED = ("coordinates", "gradients", "portions", "samples", "steps", "versions")
"""Units of quantities that are counts."""
LAST = ("loss", "held_out_loss")


def messages(run: Run) -> int | None:
    """Return the number of messages a run sent, or None if nothing counted them.

    If the cluster computes a collective as a whole, the trace does not have all of its messages.
    """
    fused = run.experiment.collective in ("fast", "stream") and run.trace.messages["collective"].any()
    return None if fused else run.summary.get("messages")


def final_figure(status: str, summary: Mapping[str, Any], name: str) -> Any:
    """Return a figure of a run that has this status, or None if the run diverged and the figure is a final loss."""
    return None if status == DIVERGED and name in LAST else summary.get(name)


def figure_text(name: str, value: float | None, error: float | None = None) -> str:
    """Return a figure of a summary as text, with its unit and its error, if it has one. Return a dash if it has no
    value.
    """
    return "–" if value is None else SAY[FIGURES[name].unit](value, error)


def run_figure_text(run: Run, name: str) -> str:
    """Return a figure of a run as text. An accuracy has its standard error. The final loss of a diverged run is
    "diverged".
    """
    if run.status == DIVERGED and name in LAST:
        return DIVERGED
    return figure_text(name, run.summary.get(name), run.summary.get("accuracy_error") if name == "accuracy" else None)

"""Mixed precision: the loss scale and the 16-bit weights of a run, and whether its method supports them."""

import algorithms
from experiments.specification.experiment import Experiment
from workloads.loss_scale import LossScale
from workloads.mixed_precision import ShortWeights


def loss_scale(experiment: Experiment) -> LossScale | None:
    """Return a rank's loss scale at the start of a run, or None if the precision is not fp16."""
    if experiment.precision != "fp16":
        return None
    return LossScale(experiment.loss_scale, experiment.scale_window)


def short_weights(experiment: Experiment) -> ShortWeights | None:
    """Return how a run keeps its weights in 16 bits, or None if the run keeps them in float32."""
    e = experiment
    return (
        None if e.weight_storage == "float32" else ShortWeights(e.precision, e.weight_storage == "stochastic", e.seed)
    )


def check(experiment: Experiment) -> None:
    """Raise ValueError if the method cannot scale its loss as fp16 requires, or keep its weights in 16 bits."""
    e = experiment
    if e.weight_storage != "float32" and not e.method.stores_weights:
        able = ", ".join(name for name in algorithms.names() if algorithms.find(name).stores_weights)
        raise ValueError(
            f"weight_storage: {e.algorithm} keeps its weights in float32 only; remove it, or use one of {able}."
        )
    if e.precision != "fp16":
        return
    if e.loss_scale is not None:
        if not e.method.scales_loss:
            raise ValueError(
                f"loss_scale: {e.algorithm} does not train by the gradient of one loss that could be scaled; use "
                "precision bf16, which needs no scaling."
            )
        return
    if not e.method.skips_overflow:
        other = "a fixed loss_scale such as 1024, or precision bf16" if e.method.scales_loss else "precision bf16"
        able = ", ".join(name for name in algorithms.names() if algorithms.find(name).skips_overflow)
        raise ValueError(
            f"precision: {e.algorithm} cannot skip the step of a gradient that overflows in fp16, as dynamic loss "
            f"scaling requires; use {other}, or one of {able}."
        )
    if e.compression != "none":
        raise ValueError(
            f"compression: {e.compression} would encode gradients that have overflowed; use a fixed loss_scale such as "
            "1024, precision bf16, or no compression."
        )

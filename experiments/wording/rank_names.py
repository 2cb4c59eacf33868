"""The names of ranks, such as "server 0", "worker 1" or "stage 2", and phrases for how much slower a rank is."""

from collections.abc import Sequence
from contextlib import suppress

from experiments.specification import catalogue
from experiments.specification.experiment import Experiment
from experiments.specification.script import ScriptExperiment

ROLES = {"pipelined": "stage", "layer_wise": "stage", "model_parallel": "rank", "decoupled": "module"}
"""The name of a training rank if it is not "worker", by algorithm or family. A stage has its own layers."""


def slowness(factor: float) -> str:
    """Return a short phrase for a rank that takes `factor` times as long, such as "5× slower" or "2× faster"."""
    return f"{factor:g}× slower" if factor > 1 else f"{1 / factor:.3g}× faster"


def rank_names(experiment: Experiment | ScriptExperiment, ranks: int) -> list[str]:
    """Return the names of `ranks` ranks. Also works for experiments that cannot run."""
    role, servers = training_role(experiment, ranks), experiment.servers
    return [f"{'server' if rank < servers else role} {rank}" for rank in range(ranks)]


def training_role(experiment: Experiment | ScriptExperiment, ranks: int) -> str:
    """Return what a rank other than a server is called in a run with `ranks` ranks, such as "worker" or "stage"."""
    if isinstance(experiment, ScriptExperiment):
        return "rank"
    family = catalogue.ALGORITHMS[experiment.algorithm].family
    role = ROLES.get(experiment.algorithm, ROLES.get(family, "worker"))
    if experiment.method.plan:
        role = "rank"  # because it holds several stages, or shares one
        with suppress(ValueError):  # there is no such schedule, which running it reports
            plan = experiment.method.plan(experiment.workers, experiment.knobs)
            role = "stage" if plan.stages == ranks and not plan.shared_stages else role
    return role


def common_role(names: Sequence[str]) -> str:
    """Return one word for the ranks with these names: their role, such as "worker", if all have the same, otherwise
    "rank".
    """
    roles = {name.rsplit(maxsplit=1)[0] for name in names}
    return roles.pop() if len(roles) == 1 else "rank"

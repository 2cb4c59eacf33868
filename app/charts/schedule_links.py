"""Links between a schedule and the pipeline that trains with it."""

from urllib.parse import urlencode

from experiments.specification import catalogue
from experiments.specification.experiment import Experiment
from experiments.study import schedules as study
from experiments.study.schedules import Plan


def training(plan: Plan) -> str:
    """Return a link to a run that trains with the schedule of a plan, or "" if no algorithm does."""
    algorithm = "" if plan.schedule == study.OWN else study.algorithm_of(plan.schedule)
    if algorithm not in catalogue.ALGORITHMS:
        return ""
    try:
        experiment = Experiment.of({"algorithm": algorithm, "workers": plan.ranks, "chunks": plan.chunks})
    except ValueError:  # no model here has that many stages or micro-batches
        return ""
    return f"[Train with this schedule](./?{experiment.query()})"


def schedule(experiment: Experiment) -> str:
    """Return a link to the schedule that an experiment trains with, or "" if the schedules page does not have it."""
    name = next((n for n in study.SCHEDULES if study.algorithm_of(n) == experiment.algorithm), "")
    if not name:
        return ""
    asked = {"schedule_a": name, "ranks": experiment.workers}
    asked |= {"micro_batches": chunks} if (chunks := experiment.settings.get("chunks")) else {}
    return f"[See its schedule alone](schedules?{urlencode(asked)})"

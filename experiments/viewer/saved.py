"""File names and headings of saved pictures."""

from collections.abc import Sequence

from experiments.specification.experiment import Experiment
from experiments.viewer.canvases.curve import DASHES
from experiments.viewer.pictures import Shown
from experiments.wording import units
from experiments.wording.naming import title
from experiments.wording.place import place
from experiments.wording.sentences import capital

TROUBLE = {"slow": "slow", "pause": "paused", "crash": "lost"}
"""The word for each fault setting of an experiment in the name of a file."""

NAMED = 3  # algorithms that the name of a file lists


def stem(e: Experiment) -> str:
    """Return the beginning of the names of a run's files, such as "easgd-digits-4-workers" or
    "asgd-digits-4-workers-slow".
    """
    workers = units.count_with_noun(e.workers, "worker")
    trouble = [word for field, word in TROUBLE.items() if getattr(e, field).by_rank]
    return "-".join([e.algorithm, e.workload, workers, *trouble]).replace(" ", "-").replace("_", "-")


def heading(e: Experiment) -> str:
    return f"{title(e)} · {units.count_with_noun(e.workers, 'worker')} · {place(e)}"


def labels_of_one(e: Experiment, picture: str) -> dict:
    """Return the file name and heading for saving a picture of one run. `picture` is one word for its content."""
    return {"file": f"{stem(e)}-{picture}", "heading": heading(e)}


def labels_of_several(shown: Sequence[Shown], picture: str) -> dict:
    """Return the file name, heading and legend for a picture of several runs. `picture` also serves as the heading."""
    first, words = shown[0].run.experiment, capital(picture)
    if len(shown) == 1:
        return labels_of_one(first, picture) | {"heading": f"{words} · {heading(first)}"}
    lines = ((one.name, *one.line) for one in shown)
    legend = [{"key": n, "colour": c, "dash": DASHES[d], "symbol": s, "width": 2.2} for n, c, d, s in lines]
    return {"file": f"{_stem_of_several([one.run.experiment for one in shown])}-{picture}", "heading": words,
            "legend": legend}  # fmt: skip


def _stem_of_several(runs: Sequence[Experiment]) -> str:
    """Return the beginning of a name for files of these runs: "easgd-and-asgd-digits-4-workers", for example, if only
    the algorithms differ, otherwise "easgd-digits-2-workers-and-1-more".
    """
    algorithms = [e.algorithm.replace("_", "-") for e in runs]
    rests = {stem(e).removeprefix(algorithm) for e, algorithm in zip(runs, algorithms, strict=True)}
    if len(rests) == 1 and len({*algorithms}) == len(runs) <= NAMED:
        return "-and-".join(algorithms) + rests.pop()
    return f"{stem(runs[0])}-and-{len(runs) - 1}-more"

"""The runs on the page, and the references that they are compared with.

A reference is the previous run, a ghost behind the curves, or a pinned run. Only this module decides which. Each view
of a comparison takes the run on the page and its reference, or all runs shown, and does not know the other views:
curves (charts/pictures.py), in_words.py, race.py, table.py.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import streamlit as st

from app.charts import Shown
from app.comparison import changes
from app.comparison.difference import BEFORE, comparable
from app.session import pins, session
from experiments.jobs.upload import is_uploaded
from experiments.runs.record import Run
from experiments.runs.seeds import differ_in_seed
from experiments.specification.experiment import Experiment
from experiments.wording import naming

IN_TITLE = ("algorithm", "compression")  # settings that the name of a method contains
ABSENT = (None, "", "none", "sgd")  # values that need no mention next to a run with another value


def load_pinned_runs() -> tuple[list[tuple[str, Run]], list[str]]:
    """Return the pinned runs, each with its name, and the names of those that no longer exist."""
    found, missing = [], []
    for name in pins.names():
        run = session.find(name)
        if run:
            found.append((name, run))
        else:
            missing.append(name)
    return found, missing


def name_runs(these: list[tuple[str, Run]], leader: str = "", colours: Mapping[str, int] | None = None) -> list[Shown]:
    """Return the runs, each with a colour (default: this session's) and a name that shows how it differs from the
    others.

    Runs that differ only in their seed are merged into one, represented by the run called `leader` if it is among them.
    """
    together = groups(these, leader)
    if colours is None:
        colours = pins.colours([some[0][0] for some in together])
    flats = [changes.flat(some[0][1].experiment, len(some) > 1) for some in together]
    differing = changes.differing(flats)
    shown = []
    for ((name, run), *others), flat in zip(together, flats, strict=True):
        alike = changes.differing([other for other in flats if other["algorithm"] == flat["algorithm"]])
        tells = [n for n in differing if n in flat and (n in alike or n != "learning_rate")]
        parts = [
            changes.setting(run.experiment, n, flat[n]) for n in tells if n not in IN_TITLE and flat[n] not in ABSENT
        ]
        origin = ["uploaded"] if is_uploaded(name) else [f"{len(others) + 1} seeds"] if others else []
        words = ", ".join([naming.method(run.experiment), *parts[:3], *origin])
        shown.append(Shown(words, run, colours[name], name, tuple(other for _, other in others)))
    return shown


def groups(these: list[tuple[str, Run]], leader: str) -> list[list[tuple[str, Run]]]:
    """Return the runs in groups that differ only in their seed; the run called `leader` comes first in its group.

    Uploads and runs on real clusters are never grouped: they are not a sample of seeds.
    """
    together = []
    for places in differ_in_seed([run.experiment for _, run in these]):
        some = sorted((these[place] for place in places), key=lambda one: one[0] != leader)
        seeds = {
            run.experiment.seed for name, run in some if run.experiment.cluster == "simulated" and not is_uploaded(name)
        }
        together += [some] if len(seeds) == len(some) else [[one] for one in some]
    return together


def before(now: Experiment, others: Collection[str]) -> Shown | None:
    """Return the previous run, which is drawn in grey behind a run of `now`. Return None if there is none, or if its
    curves would add nothing.

    They add nothing if it is among the `others` on the page (names of folders), or was trained on another task.
    """
    folder = session.before()
    if folder is None or Path(folder).name in others:
        return None
    try:
        run = session.load(folder)
    except ValueError:  # deleted meanwhile
        return None
    return Shown(BEFORE, run, 0, folder, ghost=True) if comparable(run.experiment, now) else None


def of(own: Shown, shown: Sequence[Shown]) -> Shown | None:
    """Return the pinned run with which `own` is compared: the last one shown that trained on the same task."""
    task = own.run.experiment
    return next((one for one in reversed(shown) if one is not own and comparable(one.run.experiment, task)), None)


def of_the_next() -> tuple[str, Run] | None:
    """Return (folder, run) of the run with which the next run will be compared: the first pinned run, or the run on the
    page.
    """
    for name in pins.names():
        if run := session.find(name):
            return str(session.ROOT / name), run
    shown = session.run_on_page()
    return (st.session_state.shown, shown) if shown else None

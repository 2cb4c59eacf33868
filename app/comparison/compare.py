"""Runs side by side: their names and colours, what differs, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import streamlit as st

from app.charts import Shown
from app.charts.words import figure_of, line
from app.comparison import seeds
from app.session import pins, session
from app.settings.controls import control, owners, spoken
from experiments.jobs.upload import uploaded
from experiments.runs.figures import FIGURES
from experiments.runs.record import Run
from experiments.specification.catalogue import ALGORITHMS, WORKLOADS
from experiments.specification.experiment import Experiment
from experiments.wording import naming, units

COMPARED = (
    *("held_out_loss", "accuracy", "r2", "samples", "updates", "seconds", "bytes", "flops"),
    *("samples_per_second", "share_compute", "share_wait", "staleness_mean"),
)
"""The figures in the table."""
COUNTED = ("workers", "steps", "epochs")  # settings whose name is what they count
IN_TITLE = ("algorithm", "compression")  # what the name of a method says
ABSENT = (None, "", "none")  # values that need no words beside another run that has one
TOLD = 4  # changes that a line names
COLUMNS = 6  # settings in the table; more would not fit


def pinned() -> tuple[list[tuple[str, Run]], list[str]]:
    """Return (name and run of each pinned one, names of those that are not here any more)."""
    found, missing = [], []
    for name in pins.names():
        run = session.find(name)
        if run:
            found.append((name, run))
        else:
            missing.append(name)
    return found, missing


def named(these: list[tuple[str, Run]], leader: str = "", colours: Mapping[str, int] | None = None) -> list[Shown]:
    """Return the runs with a colour each, by default that of this session, and a name that shows in what they differ.

    Those that differ only in their seed are one, represented by the run called `leader` where it is among them.
    """
    together = seeds.groups(these, leader)
    if colours is None:
        colours = pins.colours([some[0][0] for some in together])
    flats = [_flat(some[0][1].experiment, len(some) > 1) for some in together]
    differing = _differing(flats)
    shown = []
    for ((name, run), *others), flat in zip(together, flats, strict=True):
        alike = _differing([other for other in flats if other["algorithm"] == flat["algorithm"]])
        tells = [n for n in differing if n in flat and (n in alike or n != "learning_rate")]
        parts = [said(run.experiment, n, flat[n]) for n in tells if n not in IN_TITLE and flat[n] not in ABSENT]
        origin = ["uploaded"] if uploaded(name) else [f"{len(others) + 1} seeds"] if others else []
        words = ", ".join([naming.method(run.experiment), *parts[:3], *origin])
        shown.append(Shown(words, run, colours[name], name, tuple(other for _, other in others)))
    return shown


def _differing(flats: list[dict]) -> list[str]:
    """Return the settings, other than the algorithm, in which those runs differ that have them."""
    names = dict.fromkeys(name for flat in flats for name in flat if name != "algorithm")
    return [name for name in names if len({str(flat[name]) for flat in flats if name in flat}) > 1]


def changes(was: Experiment, now: Experiment) -> list[str]:
    """Return what is different now, in words: "workers 4 → 8", "worker 3 four times slower"."""
    before, after = _flat(was), _flat(now)
    switched = []
    if was.algorithm != now.algorithm:
        switched.append(" → ".join(ALGORITHMS[e.algorithm].title for e in (was, now)))
    if was.workload != now.workload:
        switched.append(" → ".join(WORKLOADS[e.workload].title for e in (was, now)))
    differing = [n for n in after if n in before and before[n] != after[n] and n not in ("algorithm", "workload")]
    if not switched:
        return [_change(was, now, n) for n in differing]
    # of its other settings those are changes that it does not begin with, and those that both have
    own = [n for n in now.flat() if n in after and n not in ("algorithm", "workload") and after[n] != before.get(n)]
    other = (*own, "learning_rate", *(now.data if was.workload != now.workload else ()))
    both = [_change(was, now, n) for n in differing if n not in other]
    return [*switched, *(said(now, n, after[n]) for n in own), *both]


def listed(changes: list[str]) -> str:
    """Return the changes in a line: as many as a reader takes in, and how many more there are."""
    more = f" and {len(changes) - TOLD} more" if len(changes) > TOLD else ""
    return f"{', '.join(changes[:TOLD])}{more}"


def _change(was: Experiment, now: Experiment, name: str) -> str:
    before, after = _flat(was)[name], _flat(now)[name]
    if name in naming.NONE:
        return naming.fault(now, name) if after else naming.without(was, name)
    return f"{spoken(name)} {_value(was, name, before)} → {_value(now, name, after)}"


def said(experiment: Experiment, name: str, value) -> str:
    """Return a setting in a few words: "period 16", "8 workers", "worker 3 four times slower"."""
    if name in naming.NONE:
        return naming.fault(experiment, name)
    if name in COUNTED and value is not None:
        return counted(name, value)
    return f"{spoken(name)} {_value(experiment, name, value)}"


def counted(name: str, value: float) -> str:
    """Return a setting of COUNTED with its value: "8 workers", "1 worker"."""
    many = units.count(value) if float(value).is_integer() else units.number(value)
    return f"{many} {name if value != 1 else name.removesuffix('s')}"


def table(shown: list[Shown]) -> None:
    """Draw what differs between the runs on the page, and their figures; over seeds mean and standard deviation.

    A column per run: there are few of them and many figures, so that nothing is cut off at the right.
    """
    flats = [_flat(one.run.experiment, bool(one.others)) for one in shown]
    settings = _differing(flats)[:COLUMNS]
    rows = [
        (
            spoken(name),
            [
                _value(one.run.experiment, name, flat[name]) if name in flat else "–"
                for one, flat in zip(shown, flats, strict=True)
            ],
        )
        for name in settings
    ]
    there = [name for name in COMPARED if any(run.summary.get(name) is not None for one in shown for run in one.runs)]
    rows += [(FIGURES[name].label, [figure_of(one, name) for one in shown]) for name in there]
    head = "".join(f'<th scope="col">{line(one)} {escape(one.name)}</th>' for one in shown)
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for label, cells in rows
    )
    table = f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
    st.html(f'<div class="figures compared">{table}</div>')
    behind = ["of one run, an accuracy's standard error, from the number of held-out samples"] * any(
        one.run.summary.get("accuracy_error") and not one.others for one in shown
    )
    behind += ["of several seeds, the standard deviation over them"] * any(one.others for one in shown)
    if behind:
        st.caption(f"Behind a ±: {'; '.join(behind)}.")


def unpin(shown: list[Shown]) -> None:
    """Draw a button per pinned run that removes it."""
    with st.container(horizontal=True, gap="small"):
        for name in pins.names():
            run = session.find(name)
            of = next((one for one in shown if any(run is each for each in one.runs)), None)
            label = of.name if of else name
            label += f", seed {run.experiment.seed}" if of and of.others else ""
            st.button(
                f"Unpin: {label}", key=f"unpin-{name}", on_click=pins.remove, args=(name,),
                type="tertiary", icon=":material/close:",
            )  # fmt: skip


def _flat(experiment: Experiment, any_seed: bool = False) -> dict:
    return {name: value for name, value in experiment.in_force().items() if not (any_seed and name == "seed")}


def _value(experiment: Experiment, name: str, value) -> str:
    if name in naming.NONE:
        marks = [words for kind, words in naming.faults(experiment) if kind == name]
        return " and ".join(marks if len(marks) <= 2 else [f"{len(marks)} ranks"]) or "none"
    if name in ("network", "device") and ":" in value:
        return (naming.network if name == "network" else naming.devices)(value)
    owner = owners(experiment.algorithm, experiment.compression, experiment.workload).get(name)
    return control(owner, name).words(value) if owner else str(value)

"""Runs side by side: their names and colours, what differs, and what came of it."""

from __future__ import annotations

import streamlit as st

from app import runs, units
from app.charts import Shown
from app.controls import control, owners
from experiments.compare import compare
from experiments.experiment import Experiment
from experiments.result import Run

FIGURES = {
    "held_out_loss": ("held-out loss", units.number),
    "accuracy": ("accuracy", units.percent),
    "seconds": ("time", units.seconds),
    "bytes": ("sent", units.size),
    "samples_per_second": ("samples/s", units.count),
    "staleness_mean": ("staleness", units.number),
}
MARKS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚"}


def kept() -> tuple[list[tuple[str, Run]], list[str]]:
    """(name and run of each kept one, names of those that are not here any more)."""
    found, missing = [], []
    for name in runs.kept():
        try:
            found.append((name, runs.load(str(runs.ROOT / name))))
        except ValueError:
            missing.append(name)
    return found, missing


def named(these: list[tuple[str, Run]]) -> list[Shown]:
    """Runs with a colour each, and a name that says in what they differ."""
    colours = runs.colours([name for name, _ in these])
    flats = [_flat(run.experiment) for _, run in these]
    differing = [
        n for n in dict.fromkeys(n for flat in flats for n in flat) if len({str(flat.get(n)) for flat in flats}) > 1
    ]
    shown = []
    for (name, run), flat in zip(these, flats, strict=True):
        parts = [run.experiment.algorithm]
        parts += [said(run.experiment, n, flat[n]) for n in differing if n in flat and n != "algorithm"][:3]
        shown.append(Shown(", ".join(parts), run, colours[name]))
    return shown


def changes(was: Experiment, now: Experiment) -> list[str]:
    """What is different now, in words: "workers 4 → 8"."""
    before, after = _flat(was), _flat(now)
    if was.algorithm != now.algorithm:
        return [f"algorithm {was.algorithm} → {now.algorithm}"]
    if was.workload != now.workload:
        return [f"workload {was.workload} → {now.workload}"]
    return [
        f"{n.replace('_', ' ')} {_value(was, n, before[n]) or 'none'} → {_value(now, n, after[n]) or 'none'}"
        for n in after
        if before.get(n) != after[n]
    ]


def said(experiment: Experiment, name: str, value) -> str:
    """A setting in a few words: "period 16"."""
    return f"{name.replace('_', ' ')} {_value(experiment, name, value) or 'none'}"


def show(shown: list[Shown]) -> None:
    """The kept runs: what differs, what came of it, and a way to let them go."""
    st.markdown("##### Comparison", anchors=False)
    rows = compare([one.run for one in shown])
    settings = [n for n in rows[0] if n not in FIGURES and n not in ("status", "loss", "steps")]
    table = []
    for one, row in zip(shown, rows, strict=True):
        cells = {"run": f"{MARKS[one.line.symbol]} {one.name}"}
        cells |= {
            n.replace("_", " "): _value(one.run.experiment, n, row[n]) if row[n] is not None else "–"
            for n in settings[:6]
        }
        cells |= {word: "–" if row[n] is None else say(row[n]) for n, (word, say) in FIGURES.items()}
        table.append(cells)
    st.table(table, border="horizontal", hide_index=True)
    with st.container(horizontal=True, gap="small"):
        for name in runs.kept():
            label = next((s.name for s in shown if runs.load(str(runs.ROOT / name)) is s.run), name)
            st.button(
                f"Let go: {label}",
                key=f"drop-{name}",
                on_click=runs.drop,
                args=(name,),
                type="tertiary",
                icon=":material/close:",
            )


def _flat(experiment: Experiment) -> dict:
    values = experiment.model_dump()
    return {
        **{n: v for n, v in values.items() if n not in ("settings", "data")},
        **values["data"],
        **values["settings"],
    }


def _value(experiment: Experiment, name: str, value) -> str:
    owner = owners(experiment.algorithm, experiment.workload).get(name)
    return control(owner, name).words(value) if owner else str(value)

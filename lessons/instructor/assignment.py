"""The assignments of a lab as data: the settings of their runs, the one or two settings that vary, and the quantities
to write down.

    SELDOM = Assignment(
        {"algorithm": "model_averaging", "workers": 8, "steps": 256, "learning_rate": 0.2},
        turn={"period": (1, 4, 16, 64, 256)},
        note=("seconds", "held_out_loss"),
        claims={"averaging every 256 steps takes less than a tenth of the time": lambda rows: ...},
    )

Links, the settings that a sheet prints and the table of expected results all come from these values, so they cannot
contradict each other. A chapter's assignments are the module-level names of its `lab.py`, in lower case.
"""

import importlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import lessons
from experiments.specification.experiment import Experiment, format_value
from experiments.viewer.look import Rows
from lessons.figure import Figure, Look
from lessons.seeds import Seeded

LEARNS = 1.15  # held-out loss on digits: half that of guessing, ln 10
STOP = "~"  # between the stops of a sweep in a link


@dataclass(frozen=True)
class Assignment:
    """An assignment of a lab: an experiment's `settings` by name, the settings to vary with their values (`turn`), the
    quantities to write down (`note`), and claims about their table.

    "learns" is noted as 1 where the held-out loss falls below LEARNS. If `paired`, the first values of the varied
    settings are combined, then the second values, and so on; otherwise every value is combined with every other.
    """

    settings: Mapping[str, Any]
    note: tuple[str, ...]
    turn: Mapping[str, tuple] = field(default_factory=dict)
    claims: Mapping[str, Callable[[Rows], bool]] = field(default_factory=dict)
    paired: bool = False

    def stops(self) -> list[dict[str, Any]]:
        """Return the combinations of values of the varied settings, in order. There is a single empty one if nothing
        varies.
        """
        together = zip(*self.turn.values(), strict=True) if self.paired else itertools.product(*self.turn.values())
        return [dict(zip(self.turn, values, strict=True)) for values in together]

    def experiment(self, **turned: Any) -> Experiment:
        """Return the experiment with these values of the varied settings. A setting that is not given takes its first
        value.
        """
        first = {name: values[0] for name, values in self.turn.items()}
        return Experiment.of({**self.settings, **first, **turned})

    def link(self, **turned: Any) -> str:
        """Return the query that opens the workbench with the settings of this experiment."""
        return self.experiment(**turned).query()

    def sweep(self, **turned: Any) -> str:
        """Return the query that opens the workbench and sweeps the last varied setting."""
        *_, axis = self.turn
        stops = STOP.join([axis, *map(format_value, self.turn[axis])])
        return f"{self.link(**turned)}&{urlencode({'sweep': axis, 'stops': stops}, safe=STOP)}"

    def rows(self, run: Seeded) -> Rows:
        """Run all combinations with `run` and return a row for each. It has the values of the varied settings, then the
        quantities to note.
        """
        rows = []
        for turned in self.stops():
            done = run(**self.settings, **turned)
            spoken = {axis: format_value(value) or "none" for axis, value in turned.items() if isinstance(value, str)}
            rows.append({**turned, **spoken, **{name: _noted(done, name) for name in self.note}})
        return rows

    def figure(self, name: str) -> Figure:
        """Return the assignment as a Figure, so that its table is computed and recorded like a figure's."""
        axis = next(iter(self.turn), self.note[0])
        look = Look(axis, (self.note[0],), kind="bar")
        return Figure(
            name, f"What does {name.replace('_', ' ')} give?", "the lab sheet", self.claims, self.rows, "", look
        )


def _noted(done, name: str) -> float:
    if name == "learns":
        loss = done.summary["held_out_loss"]
        return float(loss is not None and loss < LEARNS)
    value = done.summary[name]
    return float("inf") if value is None else value


def assignments(chapter: str) -> dict[str, Assignment]:
    """Return the assignments of a chapter's lab by name, in file order; none if there is no lab.py."""
    if not any((Path(place) / chapter / "lab.py").is_file() for place in lessons.__path__):
        return {}
    module = importlib.import_module(f"lessons.{chapter}.lab")
    return {name.lower(): thing for name, thing in vars(module).items() if isinstance(thing, Assignment)}

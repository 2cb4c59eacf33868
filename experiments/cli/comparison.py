"""Tables that compare runs, for `compare` and `sweep`: the settings in which they differ, and their results."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.cli import show
from experiments.cli.console import wrap
from experiments.runs import store
from experiments.runs.agreement import agreement, is_expected, verdict
from experiments.runs.compare import compare, over_seeds
from experiments.runs.figures import LAST
from experiments.runs.record import Run, RunOutcome
from experiments.runs.scaling import scaling
from experiments.runs.seeds import SeedFigure, differ_in_seed
from experiments.specification.experiment import Experiment
from experiments.wording import naming, units
from experiments.wording.place import place
from experiments.wording.units import DIVERGED

HEADS = {**show.HEADS, "bytes": "traffic", "flops": "computed", "update": "optimizer"}
NONE = "none"  # shown for a run without slow, pause or crash
SHORT = 8  # characters of a run's name
FAULTS = ("slow", "pause", "crash")  # shown as the options have them, by rank
ALIKE = ("status", "samples", "updates", "steps")  # moved below the table if all rows have the same value


def side_by_side(
    runs: Sequence[Run | RunOutcome],
    folders: Sequence[Path],
    seeds: bool,
    as_json: bool,
    agreements: bool = False,
    axes: Sequence[str] = (),
) -> str:
    """Return the runs as a table that fits the terminal, or as JSON: one row per run or, with `seeds`, per group of
    runs that differ only in their seed.

    With `agreements`, also say whether each later run is the same training as the first or, if not, where they first
    differ. A difference that is expected, because the algorithms differ, is not mentioned. `axes` are the settings that
    a sweep has varied: if workers are among them, rows have speed-up and efficiency.
    """
    names = [folder.name for folder in folders] if as_json or seeds else short_names(folders)
    rows = over_seeds(runs) if seeds else [{"run": name, **row} for name, row in zip(names, compare(runs), strict=True)]
    together = differ_in_seed([run.experiment for run in runs])
    whole = [run for run in runs if isinstance(run, Run)] if agreements and not seeds else []
    judged = [agreement(whole[0], run) for run in whole[1:]]
    scaled = scaling(
        [[runs[n] for n in some] for some in (together if seeds else [[n] for n in range(len(runs))])], axes
    )
    if scaled:
        rows = [{**row, **one._asdict()} for row, one in zip(rows, scaled, strict=True)]
    if as_json:
        if seeds:
            rows = [{"runs": [names[n] for n in some], **row} for some, row in zip(together, rows, strict=True)]
        for row, found in zip(rows[1:], judged, strict=False):
            row["agreement"] = found and {**found._asdict(), "same": found.same}
        plain = [{k: v._asdict() if isinstance(v, SeedFigure) else v for k, v in row.items()} for row in rows]
        return json.dumps(plain, indent=1)
    if not rows:
        return ""
    told = describe(rows, runs)
    if scaled:
        told.append(wrap(_scaled_by(runs, axes), "  "))
    if seeds:
        some = any(isinstance(v, SeedFigure) and 0 < v.n < len(row["seeds"]) for row in rows for v in row.values())
        fewer_runs = "; (n): only n runs have the figure" if some else ""
        told.append(f"mean ± standard deviation over seeds, with n - 1 in its denominator{fewer_runs}")
    elif any(row.get("accuracy_error") for row in rows):
        told.append("accuracy ± its standard error, from the number of held-out samples")
    if not seeds and any(len({runs[n].experiment.seed for n in some}) > 1 for some in together):
        told.append(
            wrap("some of these runs differ only in their seed; compare --seeds gives mean and spread over them")
        )
    for run, name, found in zip(runs[1:], names[1:], judged, strict=False):
        if found and (found.verdict != "parted" or is_expected(runs[0].experiment, run.experiment)):
            told.append(wrap(f"{name} and {names[0]}: {verdict(found)}", "  "))
    return "\n".join(told)


def describe(rows: Sequence[dict[str, Any]], runs: Sequence[Run | RunOutcome]) -> list[str]:
    """Return the rows as a table that fits the terminal, with the settings in the first columns. Remarks below the
    table say what a dash means, and what is the same in all runs.
    """
    rows, alike = split_common_columns(rows, runs)
    first_figure = next(name for name in rows[0] if name in ("seeds", "status", "held_out_loss"))
    keys = list(rows[0]).index("held_out_loss")
    told = [show.table(rows, keys=keys, heads=heads(runs), gap=first_figure)]
    if any(value is None for row in rows for name, value in row.items() if name != "accuracy_error"):
        told.append("–: the run has no such setting or figure")
    return [*told, *([wrap(alike, "  ")] if alike else [])]


def heads(runs: Sequence[Run | RunOutcome]) -> dict[str, str]:
    """Return headings for the columns whose names are unclear. If all runs are simulated, time is called virtual."""
    virtual = all(run.experiment.cluster == "simulated" for run in runs)
    return {**HEADS, "seconds": "virtual time"} if virtual else HEADS


def _scaled_by(runs: Sequence[Run | RunOutcome], axes: Sequence[str]) -> str:
    """Return a sentence on what the speed-up over workers measures, and whether scaling is weak or strong."""
    few, many = (choose((run.experiment for run in runs), key=lambda e: e.workers) for choose in (min, max))
    of = "samples/s" if few.target_loss is None else "time to the target loss"
    told = f"speed-up and efficiency: {of}, relative to the fewest workers"
    if "batch" in axes or few.method.shares_samples:
        return told
    if few.batch == many.batch:
        return f"{told}; weak scaling: each worker has a batch of {few.batch}"
    return f"{told}; strong scaling: one batch of {few.batch * few.workers} is divided among the workers"


def fill_empty_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with "none" for empty settings, and "diverged" for the final losses of a run that diverged."""
    row = {name: NONE if value == "" else value for name, value in row.items()}
    return {**row, **dict.fromkeys(LAST, DIVERGED)} if row["status"] == DIVERGED else row


def split_common_columns(
    rows: Sequence[dict[str, Any]], runs: Sequence[Run | RunOutcome]
) -> tuple[list[dict[str, Any]], str]:
    """Return the rows without columns that are empty or the same in all rows, and a phrase on what all runs share."""
    rows = [fill_empty_cells(row) for row in rows]
    rows = [{name: row[name] for name in row if any(map(exists, (one[name] for one in rows)))} for row in rows]
    first = rows[0]
    same = [
        name
        for name in first
        if name in ALIKE and len(rows) > 1 and all(row[name] == first[name] for row in rows) and exists(first[name])
    ]
    told = shared_settings(runs) if len(rows) > 1 else []
    told += [f"{show.head(name)} {show.column([first], name)[0]}" for name in same]
    left = [{name: value for name, value in row.items() if name not in same} for row in rows]
    return left, f"the same in all runs: {', '.join(told)}" if told else ""


def shared_settings(runs: Sequence[Run | RunOutcome]) -> list[str]:
    """Return a phrase for each setting that all runs share: data, model, workers, cluster, faults, batch and learning
    rate.
    """
    every = [run.experiment for run in runs]
    several = [run for run in runs if run.experiment.ranks > 1] or runs  # where a rank is alone, no network is named
    places = [place(run.experiment.change(**dict.fromkeys(FAULTS)), run.gpus) for run in several]
    return [
        *_common(naming.data(e) for e in every),
        *_common(_phrase(e, "model") for e in every),
        *_common(units.count_with_noun(e.workers, "worker") for e in every),
        *(_common(places) if len({e.cluster for e in every}) == 1 else []),
        *(
            phrase
            for name in (*FAULTS, "batch", "learning_rate")
            for phrase in _common(_phrase(e, name) for e in every)
        ),
    ]


def _common(phrases: Iterable[str]) -> list[str]:
    """Return [phrase] if all `phrases` are the same phrase, else []."""
    found = {*phrases}
    return [*filter(None, found)] if len(found) == 1 else []


def _phrase(e: Experiment, name: str) -> str:
    """Return a setting with its value, such as "learning rate 0.5". Return "" if it has no value, or has no effect in
    the experiment.
    """
    value = e.in_force().get(name)
    return "" if value in (None, "") else f"{show.head(name, HEADS)} {value}"


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return the shortest unambiguous prefix of each folder's name, at least SHORT characters long."""
    known = {place: [one.name for one in store.recent(place)] for place in {folder.parent for folder in folders}}
    short = []
    for folder in folders:
        names = known[folder.parent]
        lengths = range(SHORT, len(folder.name))
        found = (folder.name[:n] for n in lengths if next(filter(_begins(folder.name[:n]), names), "") == folder.name)
        short.append(next(found, folder.name))
    return short


def _begins(text: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(text)


def exists(value: Any) -> bool:
    """Return True if the run has this setting or figure. A figure over several seeds counts if at least one seed has
    it.
    """
    return value is not None and not (isinstance(value, SeedFigure) and value.n == 0)

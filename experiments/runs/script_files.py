"""The files of a script's run folder: reading and writing them, with every value checked.

    script.json             settings, status, summary, environment, notes, labels of spans, names of quantities
    script.py               the script
    printed.json            the lines it printed, each with its rank
    losses.parquet  measures.parquet  memory.parquet  waits.parquet  spans.parquet  messages.parquet

Nothing in a folder is executed by reading it.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cluster.script_summary import Summary, Waited, WaitFor, mean_by_step
from experiments.runs import run_files
from experiments.runs.parquet import check_range, read_table, write_table
from experiments.runs.script_run import ScriptRun
from experiments.specification.script import MOST_RANKS, ScriptExperiment
from tracing import HELD, KINDS, Trace, number_words, sort_rows

FILE = "script.json"
TABLES = {name: run_files.TABLES[name] for name in ("losses", "measures", "memory", "spans", "messages")}
WAITS = {"rank": "i4", "culprit": "i4", "what": "i4", "line": "i4", "start": "f8", "end": "f8", "ready": "f8"}
"""Columns of waits.parquet; `what` and `line` index `words` of script.json."""


class ScriptHeader(BaseModel):
    """The content of script.json."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    experiment: dict[str, Any]
    status: Literal["finished", "failed", "cancelled"]
    error: str
    traceback: str
    notes: list[str]
    summary: dict[str, Any]
    environment: dict[str, str | int | float | None] = Field(max_length=200)
    files: dict[str, str]
    digest: str
    ranks: int = Field(ge=1, le=MOST_RANKS)
    labels: list[str]
    quantities: list[str]
    words: list[str]


AS_THEY_ARE = ("status", "error", "traceback", "environment", "files", "digest")
"""The fields of a ScriptRun that script.json stores unchanged."""
BY_STEP = ("losses", "logged")
"""The parts of the summary that script.json leaves out, because the tables hold their numbers, perhaps millions."""
PRINTED = TypeAdapter(list[tuple[int, str]])


def write(run: ScriptRun, folder: Path) -> None:
    """Write the files of `run` into `folder`. Raise OSError if that fails."""
    for table, columns in TABLES.items():
        write_table(folder, table, columns, run.tables[table])
    waits = {name: np.array([getattr(one, name) for one in run.waits], object) for name in WAITS}
    numbers, words = number_words(np.concatenate([waits["what"], waits["line"]]))
    waits["what"], waits["line"] = np.split(numbers, 2)
    write_table(folder, "waits", WAITS, waits)
    (folder / "printed.json").write_text(json.dumps(run.printed), "utf-8")
    (folder / "script.py").write_bytes(run.experiment.source.encode())
    experiment = asdict(run.experiment)
    del experiment["source"]
    record = ScriptHeader(
        format=1,
        experiment=experiment,
        notes=list(run.notes),
        summary={name: value for name, value in plain_summary(run.summary).items() if name not in BY_STEP},
        ranks=run.trace.ranks,
        labels=list(run.trace.labels),
        quantities=list(run.quantities),
        words=list(words),
        **{name: getattr(run, name) for name in AS_THEY_ARE},
    )
    (folder / FILE).write_text(record.model_dump_json(indent=1), "utf-8")


def header(path: Path) -> ScriptHeader:
    """Return the content of script.json. Raise ValueError or OSError if it cannot be read."""
    size = (path / FILE).stat().st_size
    if size > run_files.MAX_JSON:
        raise ValueError(f"{FILE} has {size} bytes; at most {run_files.MAX_JSON} are read.")
    return ScriptHeader.model_validate_json((path / FILE).read_bytes())


def read(path: Path) -> ScriptRun:
    """Return the run in a script's run folder, from all of its files; any error means that they are damaged."""
    record = header(path)
    source = (path / "script.py").read_bytes().decode()
    tables: dict[str, Any] = {table: read_table(path, table, columns) for table, columns in TABLES.items()}
    tables["waits"] = read_table(path, "waits", WAITS, later={"ready": "start"})
    for table, column, end in (
        *((table, "rank", record.ranks) for table in tables if table != "messages"),
        ("messages", "src", record.ranks),
        ("messages", "dst", record.ranks),
        ("waits", "culprit", record.ranks),
        ("spans", "kind", len(KINDS)),
        ("spans", "label", len(record.labels)),
        ("measures", "quantity", len(record.quantities)),
        ("memory", "kind", len(HELD)),
        ("waits", "what", len(record.words)),
        ("waits", "line", len(record.words)),
    ):
        check_range(tables, table, column, end)
    waits = {name: column.tolist() for name, column in tables.pop("waits").items()}
    waits |= {name: [record.words[number] for number in waits[name]] for name in ("what", "line")}
    return ScriptRun(
        experiment=TypeAdapter(ScriptExperiment).validate_python({**record.experiment, "source": source}),
        summary=read_summary(record.summary | _by_step(tables, record.quantities, record.summary)),
        trace=Trace(record.ranks, tables.pop("spans"), tables.pop("messages"), tuple(record.labels)),
        waits=tuple(map(Waited._make, zip(*waits.values(), strict=True))),
        printed=tuple(PRINTED.validate_json((path / "printed.json").read_bytes())),
        notes=tuple(record.notes),
        quantities=tuple(record.quantities),
        **tables,
        **{name: getattr(record, name) for name in AS_THEY_ARE},
    )


def plain_summary(summary: Summary) -> dict[str, Any]:
    """Return the summary as plain values for JSON, with None for NaN."""
    return {one.name: _plain(getattr(summary, one.name)) for one in fields(summary)}


def _by_step(
    tables: dict[str, dict[str, np.ndarray]], quantities: Sequence[str], summary: dict[str, Any]
) -> dict[str, Any]:
    """Compute the summary's means by step (its fields BY_STEP) again from the tables."""
    losses, measures = (sort_rows(tables[table], "rank") for table in ("losses", "measures"))
    is_stepless = not summary["steps"]
    rows = {name: measures["quantity"] == number for number, name in enumerate(quantities)}
    return {
        "losses": mean_by_step(losses["rank"], losses["step"], losses["loss"], is_stepless),
        "logged": {
            quantity: mean_by_step(measures["rank"][some], measures["step"][some], measures["value"][some], is_stepless)
            for quantity, some in rows.items()
        },
    }


def read_summary(plain: dict[str, Any]) -> Summary:
    """Return the summary with these values. Raise TypeError or ValueError if they do not form one."""
    values: dict[str, Any] = {}
    for name, kind in get_type_hints(Summary).items():
        value = plain["seconds"] if name == "waits_over" and name not in plain else plain[name]  # older
        if kind == np.ndarray:
            value = np.array(value)
        elif kind == dict[str, np.ndarray]:
            value = {key: np.array(numbers) for key, numbers in value.items()}
        elif kind == tuple[WaitFor, ...]:
            value = tuple(WaitFor(**wait) for wait in value)
        elif kind is float:
            value = _number(value)
        values[name] = value
    return Summary(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [asdict(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)

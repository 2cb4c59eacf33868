"""The files of a run folder: reading and writing them, with every value checked.

    run.json                experiment, status, summary, environment, notes, labels of spans, names of quantities
    losses.parquet  evaluations.parquet  applied.parquet  measures.parquet  memory.parquet
    spans.parquet  messages.parquet
    parameters.npy          the final model, if there is one
    guesses.npz             what models answered for a few held-out samples, if there are such samples (guesses.py)

Folders may be uploads: types, sizes and ranges are checked, and nothing in them is executed.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from experiments.runs import guesses, older
from experiments.runs.parquet import check_range, read_table, write_table
from experiments.runs.record import Run, RunOutcome
from experiments.specification.experiment import MAX_WORKERS, Experiment
from tracing import HELD, KINDS, Trace

FORMAT: Literal[2] = 2
MAX_JSON = 64_000_000  # bytes of run.json
MOST_FLOPS = 1e24  # of one rank
MAX_PARAMETERS = 1_000_000_000  # bytes

TABLES: dict[str, dict[str, str]] = {
    "losses": {"rank": "i4", "step": "i4", "samples": "i8", "seconds": "f8", "loss": "f8"},
    "evaluations": {
        "seconds": "f8",
        "step": "f8",
        "samples": "i8",
        "bytes": "i8",
        "loss": "f8",
        "accuracy": "f8",
        "spread": "f8",
    },
    "applied": {"rank": "i4", "seconds": "f8", "staleness": "i4"},
    "measures": {"rank": "i4", "step": "i4", "seconds": "f8", "quantity": "i4", "value": "f8"},
    "memory": {"rank": "i4", "step": "i4", "seconds": "f8", "kind": "i1", "bytes": "i8"},
    "spans": {"rank": "i4", "kind": "i1", "start": "f8", "end": "f8", "step": "i4", "label": "i4"},
    "messages": {
        "src": "i4",
        "dst": "i4",
        "tag": "i4",
        "bytes": "i8",
        "sent": "f8",
        "arrived": "f8",
        "collective": "?",
    },
}
"""The columns of each table, with their NumPy types."""


class RunHeader(BaseModel):
    """The content of run.json."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[2]
    experiment: dict[str, Any]
    status: Literal["finished", "diverged", "failed", "cancelled"]
    error: str = Field(max_length=10_000)
    notes: list[str] = Field(max_length=10_000)
    summary: dict[str, str | int | float | None] = Field(max_length=200)
    environment: dict[str, str | int | float | None] = Field(max_length=200)
    ranks: int = Field(ge=1, le=4 * MAX_WORKERS)
    labels: list[str]
    quantities: list[str]
    held_out_samples: int = Field(0, ge=0)
    target_variance: float | None = Field(None, ge=0, allow_inf_nan=False)
    flops: list[Annotated[float, Field(ge=0, le=MOST_FLOPS)]] = []
    updates: int | None = Field(None, ge=0)
    fatal_loss: tuple[Annotated[int, Field(ge=0)], Annotated[float, Field(allow_inf_nan=False)]] | None = None
    gpus: int | None = Field(None, ge=0)

    @property
    def digest(self) -> Any:
        return self.summary.get("digest")


AS_THEY_ARE = (
    *("status", "summary", "environment", "held_out_samples", "target_variance"),
    *("updates", "fatal_loss", "gpus"),
)
"""The fields of a Run that run.json stores unchanged."""


def write(run: Run, folder: Path) -> None:
    """Write the files of `run` into `folder`. Raise OSError if that fails."""
    for table, columns in TABLES.items():
        write_table(folder, table, columns, run.tables[table])
    if run.parameters is not None:
        np.save(folder / "parameters.npy", run.parameters, allow_pickle=False)
    if run.guesses is not None:
        guesses.save(run.guesses, folder)
    record = RunHeader(
        format=FORMAT,
        experiment=json.loads(run.experiment.json()),
        error=run.error[:10_000],
        notes=[*run.notes][:10_000],
        ranks=run.trace.ranks,
        labels=list(run.trace.labels),
        quantities=list(run.quantities),
        flops=list(run.flops),
        **{name: getattr(run, name) for name in AS_THEY_ARE},
    )
    (folder / "run.json").write_text(record.model_dump_json(indent=1), "utf-8")


def header(path: Path) -> RunHeader:
    """Return the content of run.json. Raise ValueError or OSError if it cannot be read."""
    file = path / "run.json"
    if file.stat().st_size > MAX_JSON:
        raise ValueError(f"run.json has {file.stat().st_size} bytes; at most {MAX_JSON} are read.")
    return RunHeader.model_validate_json(file.read_bytes())


def outcome(path: Path) -> RunOutcome:
    """Return the part of a run folder that a table of many runs needs; any error means that the folder is damaged."""
    record = older.complete(header(path))
    experiment = Experiment.from_json(json.dumps(record.experiment))
    losses = read_table(path, "losses", TABLES["losses"]) if experiment.target_loss is not None else {}
    return RunOutcome(experiment, record.status, record.summary, record.gpus, losses)


def read(path: Path) -> Run:
    """Return the run in a run folder, from all of its files; any error means that they are damaged."""
    record = older.complete(header(path))
    experiment = Experiment.from_json(json.dumps(record.experiment))
    tables: dict[str, Any] = {table: read_table(path, table, columns) for table, columns in TABLES.items()}
    for table, column, end in (
        ("spans", "rank", record.ranks),
        ("spans", "kind", len(KINDS)),
        ("spans", "label", len(record.labels)),
        ("messages", "src", record.ranks),
        ("messages", "dst", record.ranks),
        ("losses", "rank", record.ranks),
        ("applied", "rank", record.ranks),
        ("measures", "rank", record.ranks),
        ("measures", "quantity", len(record.quantities)),
        ("memory", "rank", record.ranks),
        ("memory", "kind", len(HELD)),
    ):
        check_range(tables, table, column, end)
    return Run(
        experiment=experiment,
        trace=Trace(record.ranks, tables.pop("spans"), tables.pop("messages"), tuple(record.labels)),
        error=record.error,
        notes=tuple(record.notes),
        quantities=tuple(record.quantities),
        flops=tuple(record.flops),
        parameters=_parameters(path / "parameters.npy"),
        guesses=guesses.load(path, len(tables["evaluations"]["seconds"])),
        **tables,
        **{name: getattr(record, name) for name in AS_THEY_ARE},
    )


def _parameters(file: Path) -> np.ndarray | None:
    if not file.exists():
        return None
    if file.stat().st_size > MAX_PARAMETERS:
        raise ValueError(f"parameters.npy has {file.stat().st_size} bytes; at most {MAX_PARAMETERS} are read.")
    w = np.lib.format.open_memmap(
        file, mode="r"
    )  # no pickles, and never more than the file's size, whatever its header says
    if w.ndim != 1 or w.dtype not in (np.float32, np.float64):
        raise ValueError(f"parameters.npy has shape {w.shape} and type {w.dtype}; expected one vector of floats.")
    return np.array(w)

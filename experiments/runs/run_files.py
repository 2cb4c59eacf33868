"""The files of a run folder: reading and writing them, with every value checked.

    run.json                experiment, status, summary, environment, notes, labels of spans, names of quantities
    losses.parquet  evaluations.parquet  applied.parquet  measures.parquet  memory.parquet
    spans.parquet  messages.parquet
    parameters.npy          the final model, if there is one

Folders may be uploads: types, sizes and ranges are checked, and nothing in them is executed.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from experiments.runs import older
from experiments.runs.record import Run
from experiments.specification.experiment import MAX_WORKERS, Experiment
from tracing import HELD, KINDS, Trace

FORMAT = 2
MAX_JSON = 64_000_000  # bytes of run.json
MAX_ROWS = 50_000_000  # of one table
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
    """run.json."""

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


AS_THEY_ARE = (
    *("status", "summary", "environment", "held_out_samples", "target_variance"),
    *("updates", "fatal_loss", "gpus"),
)
"""The fields of a Run that run.json has as they are."""


def write(run: Run, folder: Path) -> None:
    """Write the files of `run` into `folder`. Raise OSError if that fails."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for table, columns in TABLES.items():
        arrays = [_arrow(run.tables[table][column], dtype) for column, dtype in columns.items()]
        pq.write_table(pa.table(arrays, list(columns)), folder / f"{table}.parquet", compression="zstd")
    if run.parameters is not None:
        np.save(folder / "parameters.npy", run.parameters, allow_pickle=False)
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
    """Read only run.json. Raise ValueError or OSError if that fails."""
    file = path / "run.json"
    if file.stat().st_size > MAX_JSON:
        raise ValueError(f"run.json has {file.stat().st_size} bytes; at most {MAX_JSON} are read.")
    return RunHeader.model_validate_json(file.read_bytes())


def read(path: Path) -> Run:
    """Read all files of a run folder; any error means they are damaged."""
    record = older.complete(header(path))
    experiment = Experiment.from_json(json.dumps(record.experiment))
    tables = {table: _table(path, table) for table in TABLES}
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
        values = tables[table][column]
        if len(values) and not (values.min() >= 0 and values.max() < end):
            allowed = f"allowed is 0 to {end - 1}" if end else f"run.json lists no {column}, so rows are not allowed"
            raise ValueError(f"{table}.parquet: {column} is {values.min()} to {values.max()}; {allowed}.")
    return Run(
        experiment=experiment,
        trace=Trace(record.ranks, tables.pop("spans"), tables.pop("messages"), tuple(record.labels)),
        error=record.error,
        notes=tuple(record.notes),
        quantities=tuple(record.quantities),
        flops=tuple(record.flops),
        parameters=_parameters(path / "parameters.npy"),
        **tables,
        **{name: getattr(record, name) for name in AS_THEY_ARE},
    )


def _table(path: Path, table: str) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = TABLES[table]
    try:
        with pq.ParquetFile(path / f"{table}.parquet") as file:
            if file.metadata.num_rows > MAX_ROWS:
                raise ValueError(f"{table}.parquet has {file.metadata.num_rows} rows; at most {MAX_ROWS} are read.")
            wanted = {column: pa.from_numpy_dtype(np.dtype(dtype)) for column, dtype in columns.items()}
            found = {field.name: field.type for field in file.schema_arrow}
            if found != wanted:
                raise ValueError(f"{table}.parquet has the columns {', '.join(found)}; expected {', '.join(wanted)}.")
            data = file.read()
    except FileNotFoundError:
        raise ValueError(f"{table}.parquet is missing.") from None
    except pa.ArrowException as error:
        raise ValueError(f"{table}.parquet: {error}") from None
    if any(data[column].null_count for column in columns):
        raise ValueError(f"{table}.parquet has empty cells.")
    return {column: _numpy(data[column].combine_chunks()) for column in columns}


def _parameters(file: Path) -> np.ndarray | None:
    if not file.exists():
        return None
    if file.stat().st_size > MAX_PARAMETERS:
        raise ValueError(f"parameters.npy has {file.stat().st_size} bytes; at most {MAX_PARAMETERS} are read.")
    w = np.lib.format.open_memmap(file, mode="r")  # no pickles, and no more than the file has, whatever its header says
    if w.ndim != 1 or w.dtype not in (np.float32, np.float64):
        raise ValueError(f"parameters.npy has shape {w.shape} and type {w.dtype}; expected one vector of floats.")
    return np.array(w)


def _numpy(column) -> np.ndarray:
    """Return a NumPy view of an Arrow array without empty cells; Arrow's own to_numpy would import pandas."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):  # a bit each, for which DLPack has no word
        return np.from_dlpack(column.cast(pa.uint8())).view(bool)
    return np.from_dlpack(column)


def _arrow(column: np.ndarray, dtype: str):
    """Return an Arrow view of `column`; pa.array would import pandas, which takes a second."""
    import pyarrow as pa

    column = np.ascontiguousarray(column, dtype)
    bits = np.packbits(column, bitorder="little") if dtype == "?" else column
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(bits)])

"""Run folders: a finished record on disk, whole or not at all.

    runs/<key>-<code>/          key: the experiment's, code: the version of the source that ran it
        run.json                experiment, status, summary, environment, notes
        losses.parquet  evaluations.parquet  applied.parquet  spans.parquet  messages.parquet
        parameters.npy          the final model, if there is one

A folder is written under a hidden name beside its place and renamed at the end, so nobody ever sees half a run. On
the simulated cluster the name says the content: the same experiment and source give the same run, and saving it
again changes nothing. Other runs of the same experiment get -2, -3 and so on. Folders may come from strangers:
everything is checked when it is loaded, and nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cluster.trace import KINDS, Trace
from experiments.experiment import MAX_WORKERS, Experiment
from experiments.result import Run

FORMAT = 1
MAX_JSON = 4_000_000  # bytes of run.json
MAX_ROWS = 50_000_000  # of one table
MAX_PARAMETERS = 1_000_000_000  # bytes
ABANDONED = 3600  # s after which a half-written folder belongs to nobody

TABLES: dict[str, dict[str, str]] = {
    "losses": {"rank": "i4", "step": "i4", "samples": "i8", "seconds": "f8", "loss": "f8"},
    "evaluations": {"seconds": "f8", "step": "f8", "samples": "i8", "bytes": "i8", "loss": "f8", "accuracy": "f8"},
    "applied": {"rank": "i4", "seconds": "f8", "staleness": "i4"},
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


class Record(BaseModel):
    """run.json."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    experiment: dict[str, Any]
    status: Literal["finished", "diverged", "failed", "cancelled"]
    error: str = Field(max_length=10_000)
    notes: list[str] = Field(max_length=10_000)
    summary: dict[str, str | int | float | None] = Field(max_length=200)
    environment: dict[str, str | int | float | None] = Field(max_length=200)
    ranks: int = Field(ge=1, le=4 * MAX_WORKERS)
    labels: list[str] = Field(max_length=1_000_000)


def name(one: Experiment, code: str) -> str:
    """The folder of experiment `one` as done by this version of the source."""
    return f"{one.key()}-{code}"


def save(run: Run, root: str | Path = "runs") -> Path:
    """Write `run` below `root` and give its folder; OSError in one sentence if that is impossible."""
    root = Path(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=root))
    except OSError as error:
        raise _refused(root, error) from error
    try:
        _write(run, part)
        part.chmod(0o755)
        return _place(run, part, root)
    except OSError as error:
        raise _refused(root, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def save_somewhere(run: Run, root: str | Path = "runs") -> tuple[Path, str]:
    """Save below `root`, or else in a new temporary folder: (folder, sentence about that or "")."""
    try:
        return save(run, root), ""
    except OSError as error:
        folder = save(run, tempfile.mkdtemp(prefix="lockstep-runs-"))
        return folder, f"{error.strerror} It was kept in {folder} instead."


def load(path: str | Path) -> Run:
    """Read a run folder. ValueError in one sentence if it is not one, is damaged, or is of another version."""
    path = Path(path)
    if not _is_run(path):
        raise ValueError(f"{path} is not a run folder: it has no run.json.")
    try:
        return _read(path)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"][:2]))
        raise ValueError(f"{path}/run.json is not of this version: {where}: {problem['msg']}.") from None
    except Exception as error:  # a stranger's files may be wrong in any way
        raise ValueError(f"{path} cannot be read as a run: {' '.join(str(error).split())[:300]}") from None


def experiment(path: str | Path) -> Experiment:
    """Only the experiment of a run folder. ValueError in one sentence if it cannot be read."""
    try:
        return Experiment.from_json(json.dumps(_record(Path(path)).experiment))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a run: {' '.join(str(error).split())[:300]}") from None


def find(text: str, root: str | Path = "runs") -> Path:
    """The folder that `text` names: a path, a folder's name, or the beginning of one (the latest of several)."""
    path = Path(text)
    if text and _is_run(path):
        return path
    matching = [folder for folder in recent(root) if folder.name.startswith(text)] if text else []
    if not matching:
        known = ", ".join(folder.name for folder in recent(root)[:3])
        raise ValueError(
            f"there is no run {text[:80]!r} in {root}; " + (f"the latest are {known}." if known else "it is empty.")
        )
    return matching[0]


def recent(root: str | Path = "runs") -> list[Path]:
    """The run folders below `root`, the latest first."""
    try:
        folders = [path for path in Path(root).iterdir() if not path.name.startswith(".") and _is_run(path)]
    except OSError:
        return []
    return sorted(folders, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def stored(one: Experiment, code: str, root: str | Path = "runs") -> Path | None:
    """Where this very run lies already, finished; None if it does not, or if its cluster is not repeatable."""
    if one.cluster != "simulated":
        return None
    for place in _places(Path(root), name(one, code)):
        if not place.exists():
            return None
        with contextlib.suppress(ValueError, OSError):
            if _record(place).status in ("finished", "diverged"):
                return place


def _is_run(path: Path) -> bool:
    try:
        return (path / "run.json").is_file()
    except (OSError, ValueError):  # no path at all: too long, or with a zero in it
        return False


def _write(run: Run, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = {
        "losses": run.losses,
        "evaluations": run.evaluations,
        "applied": run.applied,
        "spans": run.trace.spans,
        "messages": run.trace.messages,
    }
    for table, columns in TABLES.items():
        arrays = [_arrow(tables[table][column], dtype) for column, dtype in columns.items()]
        pq.write_table(pa.table(arrays, list(columns)), folder / f"{table}.parquet", compression="zstd")
    if run.parameters is not None:
        np.save(folder / "parameters.npy", run.parameters, allow_pickle=False)
    record = Record(
        format=FORMAT,
        experiment=json.loads(run.experiment.json()),
        status=run.status,
        error=run.error[:10_000],
        notes=[*run.notes][:10_000],
        summary=run.summary,
        environment=run.environment,
        ranks=run.trace.ranks,
        labels=list(run.trace.labels),
    )
    (folder / "run.json").write_text(record.model_dump_json(indent=1))


def _arrow(column: np.ndarray, dtype: str):
    """An Arrow array on the memory of `column`; pa.array would look for pandas, which takes a second to import."""
    import pyarrow as pa

    column = np.ascontiguousarray(column, dtype)
    bits = np.packbits(column, bitorder="little") if dtype == "?" else column
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(bits)])


def _place(run: Run, part: Path, root: Path) -> Path:
    """Rename the finished folder to the first free name, unless the same run is there already."""
    base = name(run.experiment, str(run.environment.get("code", "unknown")))
    for place in _places(root, base):
        try:
            part.rename(place)
            return place
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if run.experiment.cluster == "simulated" and _same(run, place):
            return place
    raise AssertionError("unreachable")


def _places(root: Path, base: str) -> Iterator[Path]:
    yield root / base
    number = 2
    while True:
        yield root / f"{base}-{number}"
        number += 1


def _same(run: Run, place: Path) -> bool:
    with contextlib.suppress(ValueError, OSError):
        record = _record(place)
        return (record.status, record.summary.get("digest")) == (run.status, run.summary.get("digest"))
    return False


def _sweep(root: Path) -> None:
    """Remove what was left half-written here an hour ago or more."""
    for part in root.glob(".part-*"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > ABANDONED:
                shutil.rmtree(part, ignore_errors=True)


def _refused(root: Path, error: OSError) -> OSError:
    return OSError(error.errno, f"the run cannot be written to {root}: {error.strerror or error}.")


def _record(path: Path) -> Record:
    file = path / "run.json"
    if file.stat().st_size > MAX_JSON:
        raise ValueError(f"run.json has {file.stat().st_size} bytes; at most {MAX_JSON} are read.")
    return Record.model_validate_json(file.read_bytes())


def _read(path: Path) -> Run:
    record = _record(path)
    experiment = Experiment.from_json(json.dumps(record.experiment))
    tables = {table: _table(path, table) for table in TABLES}
    spans, messages = tables["spans"], tables["messages"]
    for table, column, end in (
        ("spans", "rank", record.ranks),
        ("spans", "kind", len(KINDS)),
        ("spans", "label", len(record.labels)),
        ("messages", "src", record.ranks),
        ("messages", "dst", record.ranks),
        ("losses", "rank", record.ranks),
        ("applied", "rank", record.ranks),
    ):
        values = tables[table][column]
        if len(values) and not (values.min() >= 0 and values.max() < end):
            raise ValueError(
                f"{table}.parquet: {column} is {values.min()} to {values.max()}; allowed is 0 to {end - 1}."
            )
    return Run(
        experiment=experiment,
        trace=Trace(record.ranks, spans, messages, tuple(record.labels)),
        losses=tables["losses"],
        evaluations=tables["evaluations"],
        applied=tables["applied"],
        status=record.status,
        error=record.error,
        notes=tuple(record.notes),
        summary=dict(record.summary),
        environment=dict(record.environment),
        parameters=_parameters(path / "parameters.npy"),
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
    except pa.ArrowException as error:
        raise ValueError(f"{table}.parquet: {error}") from None
    if any(data[column].null_count for column in columns):
        raise ValueError(f"{table}.parquet has empty cells.")
    return {column: np.ascontiguousarray(data[column].to_numpy()) for column in columns}


def _parameters(file: Path) -> np.ndarray | None:
    if not file.exists():
        return None
    if file.stat().st_size > MAX_PARAMETERS:
        raise ValueError(f"parameters.npy has {file.stat().st_size} bytes; at most {MAX_PARAMETERS} are read.")
    w = np.lib.format.open_memmap(file, mode="r")  # no pickles, and no more than the file has, whatever its header says
    if w.ndim != 1 or w.dtype not in (np.float32, np.float64):
        raise ValueError(f"parameters.npy has shape {w.shape} and type {w.dtype}; expected one vector of floats.")
    return np.array(w)

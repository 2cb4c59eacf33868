"""Uploads: runs, tables and networks of unknown origin, checked in a separate process and stored in our own format.

    put, job_spec in the web process: write the bytes to files, unread, and make the job for them
    perform          in the pool, under its limits: unpack, check, and write what was understood, in our own format

Nothing in an uploaded run or table is executed, no name in it becomes a path, and nothing is kept in its original form:
a run is read as `run_files.py` reads one, checked for consistency, and written again. Its folder is named
KEY-uploadHASH, so that it is listed among the runs, but never mistaken for one made here.
"""

import contextlib
import hashlib
import io
import re
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from experiments.jobs.spec import JobSpec, keep
from experiments.runs import guesses, run_files, script_files, store, tables
from experiments.runs.record import Run
from experiments.runs.summary import summarise
from tracing import Trace
from workloads import file_formats, own_module

MOST_BYTES = 10_000_000  # bytes of the uploaded files together, before unpacking
MOST_UNPACKED = 100_000_000  # of a run when it is unpacked
MOST_FILES = 40  # in a zip
MOST_ROWS = 1_000_000  # of one table
MOST_RANKS = 1024
MOST_WORDS = 10_000  # labels, quantities and remarks of a run
LONGEST = 2000  # characters of each of these
MOST_QUANTITIES = 30
ABANDONED = 3600  # s after which an upload that was not read is removed
FILES = ("run.json", "parameters.npy", guesses.FILE, *(f"{table}.parquet" for table in run_files.TABLES))
MARK = "upload"
_NAME = re.compile(r"[0-9a-f]{16}-upload[0-9a-f]{8}")

FREE = {("losses", "loss"), ("evaluations", "loss"), ("evaluations", "accuracy"), ("evaluations", "spread"),
        ("measures", "value"), ("messages", "arrived"), ("messages", "tag")}  # fmt: skip
"""Columns that may hold any number, including NaN."""
MOST = {"step": 1e9, "samples": 1e15, "bytes": 1e12, "staleness": 1e9}
LATEST = 1e9  # s
"""The largest value the other columns may hold."""


def job_spec(kind: str, files: Sequence[tuple[str, bytes]]) -> JobSpec:
    """Return the job that reads these files, each (name, content), as a "run" or a "table". `put` must store them
    first.
    """
    if not files or len(files) > MOST_FILES:
        raise ValueError(f"there are {len(files)} files; 1 to {MOST_FILES} are accepted.")
    if (total := sum(len(content) for _, content in files)) > MOST_BYTES:
        raise ValueError(f"these files have {total:,} bytes; at most {MOST_BYTES:,} are accepted.")
    named = [[name[-100:], _hash(content)] for name, content in files]
    return JobSpec("upload", {"kind": kind, "files": named})


def put(root: str | Path, files: Sequence[tuple[str, bytes]]) -> None:
    """Write the files of an upload, unread, to where the job finds them, and remove abandoned ones. Raise OSError if
    that fails.
    """
    place = _waiting(Path(root))
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > ABANDONED:
                old.unlink()
    for _, content in files:
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as part:
            part.write(content)
        Path(part.name).replace(place / _hash(content))


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    """Read an upload and remove its files (see experiments.jobs.spec). Return the folder of the stored run, or the file
    of the stored table.
    """
    waiting = [(name, _waiting(root) / sha) for name, sha in values["files"]]
    try:
        files = [(name, path.read_bytes()) for name, path in waiting]
    except FileNotFoundError:
        raise ValueError("the upload is gone; upload it again.") from None
    finally:
        for _, path in waiting:
            path.unlink(missing_ok=True)
    return take_run(files, root) if values["kind"] == "run" else tables.take(files)


def is_uploaded(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


# runs


def take_run(files: Sequence[tuple[str, bytes]], root: Path) -> Path:
    """Check and store the run that these files, or one zip file, contain, and return its folder. Raise ValueError if
    they contain none, or an inconsistent one.
    """
    if is_run(files) and len(files) == 1 and _last(files[0][0]) != "run.json":
        files = list(_unzipped(*files[0]))
    known = {_last(name): content for name, content in files}
    if script_files.FILE in known:
        raise ValueError("this is a run of a script, which cannot be uploaded; copy its folder next to the other runs.")
    if "run.json" not in known:
        for name, content in files:
            file_formats.refuse(content, name)
            if content[:2] == b"\0\0" or file_formats.is_called_like_a_table(name):
                raise ValueError(f"{name[-100:]} is not a run; a table goes into the field “Train on a table”.")
        there = ", ".join(sorted(known)[:5]) or "nothing"
        raise ValueError(
            f"there is no run.json among the files ({there}); upload all files of a run's folder, or one zip."
        )
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            if name in known:
                Path(folder, name).write_bytes(known[name])
        run = check_run(_read(Path(folder)))
    digest = hashlib.sha256(b"".join(known[name] for name in FILES if name in known)).hexdigest()[:8]
    return keep(root / f"{run.experiment.key()}-{MARK}{digest}", lambda part: run_files.write(run, part))


def is_run(files: Sequence[tuple[str, bytes]]) -> bool:
    """Return True if these files, each (name, content), may be a run: they include a run.json, or are one zip file that
    is not known as another format.
    """
    zips = [(name, content) for name, content in files if content[:2] == b"PK" or name.lower().endswith(".zip")]
    unknown = len(files) == len(zips) == 1 and file_formats.zip_of(zips[0][1], zips[0][0]) is None
    return unknown or any(_last(name) == "run.json" for name, _ in files)


def check_run(run: Run) -> Run:
    """Return the run with events sorted and totals recomputed. Raise ValueError if it is inconsistent."""
    trace = run.trace
    for table, columns in run.tables.items():
        for name, column in columns.items():
            _bounded(table, name, column)
    if trace.ranks > MOST_RANKS:
        raise ValueError(f"the run has {trace.ranks:,} ranks; at most {MOST_RANKS:,} can be opened.")
    spans, messages = trace.spans, trace.messages
    if (spans["end"] < spans["start"]).any():
        raise ValueError("spans.parquet: a span ends before it starts.")
    if not (messages["arrived"] >= messages["sent"]).all():
        raise ValueError("messages.parquet: a message arrives before it is sent.")
    if run.flops and len(run.flops) != trace.ranks:
        raise ValueError(f"run.json counts the FLOPs of {len(run.flops):,} ranks; the run has {trace.ranks:,}.")
    words = (*trace.labels, *run.quantities, *run.notes, run.error)
    if len(words) > MOST_WORDS or len(run.quantities) > MOST_QUANTITIES or any(len(word) > LONGEST for word in words):
        raise ValueError("run.json: there are too many labels, quantities or remarks, or they are too long.")
    sound = replace(
        run,
        trace=Trace(trace.ranks, _sorted(spans, "start"), _sorted(messages, "sent"), trace.labels),
        losses=_sorted(run.losses, "seconds"),
        evaluations=_sorted(run.evaluations, "seconds"),
        environment={name: value for name, value in run.environment.items() if len(str(value)) <= 100},
    )
    wall = run.summary.get("wall_seconds")
    sound.summary = summarise(sound, float(wall) if isinstance(wall, int | float) and 0 <= wall <= LATEST else 0.0)
    return sound


def _bounded(table: str, name: str, column: np.ndarray) -> None:
    if len(column) > MOST_ROWS:
        raise ValueError(f"{table}.parquet has {len(column):,} rows; at most {MOST_ROWS:,} can be opened.")
    if (table, name) in FREE or column.dtype == bool or not len(column):
        return
    least, most = -1 if name == "step" else 0, MOST.get(name, LATEST)
    if not (column.min() >= least and column.max() <= most):  # a NaN is neither
        raise ValueError(
            f"{table}.parquet: {name} is {column.min():g} to {column.max():g}; it must be {least} to {most:g}."
        )


def _sorted(columns: dict[str, np.ndarray], by: str) -> dict[str, np.ndarray]:
    order = np.argsort(columns[by], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _read(folder: Path) -> Run:
    try:
        return store.load(folder)
    except ValueError as error:  # it names our folder, which means nothing to the reader
        raise ValueError(str(error).replace(f"{folder}/", "").replace(str(folder), "this upload")) from None


def _unzipped(file: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file in a zip file, with b"" as the content of files that no run has. Sizes are
    measured while unpacking, not trusted.
    """
    left = MOST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename and not entry.is_dir()]
            if len(entries) > MOST_FILES:
                raise ValueError(f"{file} has {len(entries):,} files in it; a run has at most {MOST_FILES}.")
            for entry in entries:
                if _last(entry.filename) not in FILES:
                    yield entry.filename, b""  # its name may help to say what is wrong
                    continue
                with archive.open(entry) as packed:
                    text = packed.read(left + 1)
                left -= len(text)
                if left < 0:
                    raise ValueError(f"{file} unpacks to more than {MOST_UNPACKED:,} bytes.")
                yield entry.filename, text
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{file} cannot be unpacked: {' '.join(str(error).split())[:100]}.") from None


# networks


EXAMPLE = own_module.EXAMPLE


def modules_folder() -> Path | None:
    """Return the folder in which readers' own networks are stored, or None on a machine that accepts none."""
    return own_module.folder()


def save_module(content: bytes, file: str) -> str:
    """Store the Python file of a network, and return the name under which it can be trained. Raise ValueError if it is
    refused.
    """
    return own_module.save(content, file)


def _waiting(root: Path) -> Path:
    return root / ".incoming"


def _last(name: str) -> str:
    """Return a file's name without its folders."""
    return PureWindowsPath(name).name


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

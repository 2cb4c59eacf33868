"""Run folders: finished records on disk, each complete or absent.

    runs/<key>-<code>/      key: the experiment's, code: the version of the source that ran it

A folder is written under a hidden name and renamed at the end (see sealed.py), so that nobody reads half a run. On the
simulated cluster the name determines the content: the same experiment and source give the same run, and saving it again
changes nothing. Other runs of the same experiment get -2, -3 and so on. experiments.runs.run_files defines the contents
of a folder and their checks for experiments, experiments.runs.script_files for scripts.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from experiments.runs import run_files, script_files, sealed
from experiments.runs.record import Run, RunOutcome
from experiments.runs.run_files import RunHeader
from experiments.runs.script_files import ScriptHeader
from experiments.runs.script_run import ScriptRun
from experiments.specification.experiment import Experiment
from experiments.specification.script import ScriptExperiment
from installation import home as home

AnyRun = TypeVar("AnyRun", Run, ScriptRun, RunOutcome)

ELSEWHERE = "lockstep-runs-"  # prefix of run folders in the temporary folder, for runs that had no room


def name(one: Experiment | ScriptExperiment, code: str) -> str:
    """Return the folder name of experiment `one`, run by this version of the source."""
    return f"{one.key()}-{code}"


def save(run: Run | ScriptRun, root: str | Path) -> Path:
    """Write `run` below `root` and return its folder. Raise OSError if that fails."""
    root = Path(root)
    try:
        with sealed.under_way(root) as part:
            (script_files if isinstance(run, ScriptRun) else run_files).write(run, part)
            sealed.seal(part)
            return _place(run, part, root)
    except OSError as error:
        raise _refused(root, error) from error


def save_somewhere(run: Run | ScriptRun, root: str | Path) -> tuple[Path, str]:
    """Save `run` below `root` or, if that fails, in a new temporary folder. Return (folder, "" or a note on the
    failure).
    """
    try:
        return save(run, root), ""
    except OSError as error:
        folder = save(run, tempfile.mkdtemp(prefix=ELSEWHERE))
        return folder, f"{error.strerror} It was saved in {folder} instead; `lockstep kept --move` moves it."


def elsewhere() -> list[Path]:
    """Return this user's run folders in the temporary folder, newest first."""
    found = []
    for root in Path(tempfile.gettempdir()).glob(f"{ELSEWHERE}*"):
        with contextlib.suppress(OSError):
            if root.is_dir() and not root.is_symlink() and root.stat().st_uid == getattr(os, "getuid", int)():
                found += recent(root)
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def move(folder: Path, root: str | Path) -> Path:
    """Move a run from `elsewhere` to `root` and return its folder. Raise ValueError if the run is damaged, OSError if
    it cannot be stored.
    """
    place = save(load_any(folder), root)
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # another run may be in it
        folder.parent.rmdir()
    return place


def load(path: str | Path) -> Run:
    """Return the run in an experiment's run folder. Raise ValueError if the folder is no such folder, is damaged, or
    has another version.
    """
    _refuse_script(Path(path))
    return _read(Path(path), "run.json", run_files.read)


def outcome(path: str | Path) -> RunOutcome:
    """Return what a table of many runs needs from a run folder. Raise ValueError if it is not a run folder, or is
    damaged.
    """
    _refuse_script(Path(path))
    return _read(Path(path), "run.json", run_files.outcome)


def load_script(path: str | Path) -> ScriptRun:
    """Return the run in a script's run folder. Raise ValueError if the folder is no such folder, is damaged, or has
    another version.
    """
    if _is_run(Path(path)) and not is_script(path):
        raise ValueError(f"{Path(path).name} is a run of an experiment, not of a script.")
    return _read(Path(path), script_files.FILE, script_files.read)


def load_any(path: str | Path) -> Run | ScriptRun:
    """Return the run in a run folder. Raise ValueError if the folder is no such folder, is damaged, or has another
    version.
    """
    return load_script(path) if is_script(path) else load(path)


def _read(path: Path, file: str, read: Callable[[Path], AnyRun]) -> AnyRun:
    if not _is_run(path):
        raise ValueError(f"{path} is not a run folder: it has no run.json.")
    try:
        return read(path)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"][:2]))
        if not where:  # it is not JSON at all
            raise ValueError(f"{path}/{file} is damaged: {problem['msg']}.") from None
        raise ValueError(f"{path}/{file} is not of this version: {where}: {problem['msg']}.") from None
    except Exception as error:  # the files of an upload may be wrong in any way
        raise ValueError(f"{path} cannot be read as a run: {' '.join(str(error).split())[:300]}") from None


def header(path: str | Path) -> RunHeader | ScriptHeader:
    """Return the header of a run folder. Raise ValueError or OSError if it cannot be read."""
    return script_files.header(Path(path)) if is_script(path) else run_files.header(Path(path))


def is_script(path: str | Path) -> bool:
    """Return True for the run folder of a script, False for that of an experiment."""
    return _has(Path(path), script_files.FILE)


def experiment(path: str | Path) -> Experiment:
    """Return the experiment of a run folder, without reading the rest. Raise ValueError if it cannot be read."""
    _refuse_script(Path(path))
    try:
        return Experiment.from_json(json.dumps(run_files.header(Path(path)).experiment))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a run: {' '.join(str(error).split())[:300]}") from None


def find(text: str, root: str | Path) -> Path:
    """Return the folder that `text` names: a path, a folder's name, or the beginning of one.

    If several runs of one experiment match, return the latest, unless one has exactly this name. Raise ValueError if
    there is none, or if several experiments match.
    """
    path = Path(text)
    if text and _is_run(path):
        return path
    matching = [folder for folder in recent(root) if folder.name.startswith(text)] if text else []
    if not matching:
        known = ", ".join(folder.name for folder in recent(root)[:3])
        here = Path("runs").resolve()  # where runs used to be stored
        if text and here != Path(root).resolve() and any(folder.name.startswith(text) for folder in recent(here)):
            raise ValueError(f"there is no run {text[:80]!r} in {root}, but one in {here}; add --runs {here}.")
        there = f"the latest are {known}; `lockstep runs` lists them" if known else "it is empty"
        which = f"there is no run {text[:80]!r} in {root}" if text else f"which run? Give the name of one in {root}"
        raise ValueError(f"{which}: {there}." if not text else f"{which}; {there}.")
    if len({folder.name.partition("-")[0] for folder in matching}) > 1:
        some = ", ".join(folder.name for folder in matching[:3])
        raise ValueError(
            f"{len(matching)} runs in {root} begin with {text!r}, the latest {some}; give more of the name."
        )
    return next((folder for folder in matching if folder.name == text), matching[0])


def recent(root: str | Path) -> list[Path]:
    """Return the run folders below `root`, newest first."""
    try:
        folders = [path for path in Path(root).iterdir() if not path.name.startswith(".") and _is_run(path)]
    except OSError:
        return []
    return sorted(folders, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def find_stored_run(one: Experiment | ScriptExperiment, code: str, root: str | Path) -> Path | None:
    """Return the folder in which this run is stored, finished and complete. Return None if it is not stored or not
    repeatable.
    """
    if not one.is_repeatable:
        return None
    for place in _places(Path(root), name(one, code)):
        if not place.exists():
            return None
        with contextlib.suppress(ValueError, OSError):
            if header(place).status in ("finished", "diverged") and not sealed.altered_files(place):
                return place
    raise AssertionError("unreachable")


def _is_run(path: Path) -> bool:
    return _has(path, "run.json") or is_script(path)


def _has(path: Path, file: str) -> bool:
    try:
        return (path / file).is_file()
    except (OSError, ValueError):  # not a path: too long, or with a null character in it
        return False


def _refuse_script(path: Path) -> None:
    """Raise ValueError if this is the run folder of a script."""
    if is_script(path):
        raise ValueError(f"{path.name} is a run of a script, not of an experiment.")


def _place(run: Run | ScriptRun, part: Path, root: Path) -> Path:
    """Rename the finished folder to the first free name, unless the same run is already there. Return the folder of the
    run.
    """
    base = name(run.experiment, str(run.environment.get("code", "unknown")))
    for place in _places(root, base):
        repeatable = run.experiment.is_repeatable
        if repeatable and place.exists() and sealed.altered_files(place):
            sealed.put_aside(place)
        try:
            sealed.settle(part, place)
            return place
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if repeatable and _same(run, place):
            return place
    raise AssertionError("unreachable")


def _places(root: Path, base: str) -> Iterator[Path]:
    yield root / base
    number = 2
    while True:
        yield root / f"{base}-{number}"
        number += 1


def _same(run: Run | ScriptRun, place: Path) -> bool:
    with contextlib.suppress(ValueError, OSError):
        there = header(place)
        return (there.status, there.digest) == (run.status, run.digest)
    return False


def _refused(root: Path, error: OSError) -> OSError:
    return OSError(error.errno, f"the run cannot be written to {root}: {error.strerror or error}.")

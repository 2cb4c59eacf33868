"""Sealed folders: results that are on disk completely or not at all, and reveal changed or truncated files.

    with under_way(root) as part:       # hidden, and held by this process
        ...                             # files are written into it
        seal(part)
        settle(part, place)             # from now on it has its name

SHA256SUMS in a folder has the digest of each of its files; `sha256sum --check SHA256SUMS` reads it, too. Files and
folders are synced before they are renamed, so that a power loss leaves the whole result or none.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what a process left half-written stays
    fcntl = None  # type: ignore[assignment]

SUMS = "SHA256SUMS"
PART = ".part-"  # names of hidden folders begin with it
CACHED = "cached"  # a file in results that nobody has kept (see cached.py)
_cached = False  # whether this process seals such results


@contextlib.contextmanager
def as_cached() -> Iterator[None]:
    """Return a context in which results that this process seals are marked as results that nobody has kept."""
    global _cached
    _cached = True
    try:
        yield
    finally:
        _cached = False


@contextlib.contextmanager
def under_way(root: Path) -> Iterator[Path]:
    """Yield a new hidden folder below `root`; at the end, remove the folder if it still has its hidden name.

    Leftovers of processes that have ended are removed as well. Raise OSError if `root` cannot be written to.
    """
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    part, held = _begun(root)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if held is not None:
            os.close(held)


def seal(part: Path) -> None:
    """Write SHA256SUMS of the files in `part`, make the folder world-readable, and sync it to disk. Raise OSError if
    that fails.
    """
    part.chmod(0o755)
    files = sorted(path for path in part.rglob("*") if path.is_file() and path != part / SUMS)
    lines = [f"{_synced(path)}  {path.relative_to(part).as_posix()}\n" for path in files]
    (part / SUMS).write_bytes("".join(lines).encode())
    _synced(part / SUMS)
    if _cached:
        (part / CACHED).touch()
    _sync_folder(part)


def settle(part: Path, place: Path) -> None:
    """Rename a sealed folder to its final name. Raise OSError, from `Path.rename`, if that name is taken."""
    part.rename(place)
    _sync_folder(place.parent)


def altered_files(folder: Path) -> list[str]:
    """Return the names of the files of `folder` that are missing or changed since it was sealed. If SHA256SUMS itself
    is missing, return only its name.
    """
    try:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return [SUMS]
    return [name for name, digest in sums.items() if _digest(folder / name) != digest] if sums else [SUMS]


def put_aside(folder: Path) -> None:
    """Rename a damaged result to a hidden name next to it. Raise OSError if that fails."""
    folder.rename(Path(tempfile.mkdtemp(prefix=f".damaged-{folder.name}-", dir=folder.parent)) / folder.name)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _synced(path: Path) -> str:
    """Return the SHA-256 of a file after syncing it to disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# A folder under way is locked by the process that writes it: the system unlocks it when that process ends, however it
# ends. The age of a file would not do, because the clock that dates files can be changed.


def _begun(root: Path) -> tuple[Path, int | None]:
    """Return a new hidden folder and its lock."""
    while True:
        part = Path(tempfile.mkdtemp(prefix=PART, dir=root))
        try:
            held = _lock(part, wait=True)
        except OSError:
            if part.exists():  # a file system without locks; then nobody can sweep it either
                return part, None
            continue  # it was swept before it could be opened
        if held is None or part.exists():
            return part, held
        os.close(held)  # it was swept before it was locked


def _lock(folder: Path, wait: bool) -> int | None:
    """Return a descriptor that locks `folder`, or None where locking is impossible. Raise BlockingIOError if `folder`
    is locked.
    """
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        raise
    return handle


def _sweep(root: Path) -> None:
    """Remove half-written folders of processes that have ended."""
    for part in root.glob(f"{PART}*"):
        with contextlib.suppress(OSError):  # it is held, or gone
            held = _lock(part, wait=False)
            if held is not None:
                shutil.rmtree(part, ignore_errors=True)
                os.close(held)

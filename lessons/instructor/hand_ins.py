"""Hand-ins: the solutions in a folder or a zip, one for each student, as Moodle, Canvas or a teacher leave them.

Alice Smith_12345_assignsubmission_file_/averaging_solution.py      Moodle: a folder for each student
smithalice_LATE_12345_67890_averaging_solution.py                   Canvas: one file for each
alice/solution.py, alice.py                                         by hand

Two students of one name are told apart by their number; whoever handed in no Python file is listed, too.
"""

from __future__ import annotations

import re
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

LARGEST = 1_000_000  # bytes of a file that are read
MOST = 2_000  # files of a pile
MOODLE = re.compile(r"^(.+?)_(\d+)_assignsubmission_\w*$")
CANVAS = re.compile(r"^([^_]+)_(?:LATE_)?(\d+)_\d+_")
FOLDER = "(nothing)"  # stands for what an empty folder has


@dataclass(frozen=True)
class HandIn:
    """One student's solution: `source` is its text, or `trouble` says why there is none."""

    student: str
    file: str
    source: str = ""
    trouble: str = ""


def collect(place: Path) -> list[HandIn]:
    """Return the hand-ins in a folder or a zip, by student. ValueError, in one sentence, if it has none."""
    files = _handed(dict(_zipped(place) if place.is_file() else _in_folder(place)))
    programs = [path for path in files if _python(path)]
    if not programs:
        raise ValueError(f"{place.name} has no Python files; give a folder or a zip of them.")
    if len(programs) > MOST:
        raise ValueError(f"{place.name} has {len(programs)} Python files; at most {MOST} are read.")
    tops = {path.parts[0] for path in files}
    if len(tops) == 1 and all(len(path.parts) > 1 for path in files) and not MOODLE.match(*tops):  # look inside
        files = _handed({PurePosixPath(*path.parts[1:]): content for path, content in files.items()})
    by_student: dict[tuple[str, str], list[PurePosixPath]] = {}
    for path in sorted(files):
        by_student.setdefault(student(path), []).append(path)
    same = Counter(name for name, _ in by_student)
    return [
        _hand_in(f"{name} ({number})" if number and same[name] > 1 else name, {path: files[path] for path in paths})
        for (name, number), paths in by_student.items()
    ]


def student(path: PurePosixPath) -> tuple[str, str]:
    """Return name and number, "" if unknown, of the student who handed in the file at this path of the pile."""
    name = path.parts[0] if len(path.parts) > 1 else path.stem
    for form in (MOODLE, CANVAS):
        if found := form.match(name):
            return found[1], found[2]
    return name, ""


def _handed(files: dict[PurePosixPath, bytes | None]) -> dict[PurePosixPath, bytes | None]:
    """Return the files that some student handed in: what else lies beside the folders is a teacher's own."""
    return {
        path: content
        for path, content in files.items()
        if len(path.parts) > 1 or _python(path) or path.suffix == ".ipynb" or CANVAS.match(path.name)
    }


def _hand_in(name: str, files: dict[PurePosixPath, bytes | None]) -> HandIn:
    programs = {path: content for path, content in files.items() if _python(path)}
    if not programs:
        others = [path.name for path in files if path.name != FOLDER]
        instead = f", only {', '.join(others[:3])}{' and more' * (len(others) > 3)}" if others else ""
        first = next(iter(files))
        place = first.parent if first.name == FOLDER else first
        return HandIn(name, str(place), trouble=f"no Python file was handed in{instead}.")
    (path, content), *others = programs.items()
    if others:
        return HandIn(name, str(path), trouble=f"{len(programs)} Python files were handed in; one is expected.")
    if content is None:
        return HandIn(
            name, str(path), trouble=f"the file is a link, has more than {LARGEST:,} bytes, or is unreadable."
        )
    return HandIn(name, str(path), content.decode("utf-8", "replace"))


def _in_folder(folder: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield (path, content) of what is there: None of all but Python files, and of links, which may lead anywhere."""
    for path in sorted(folder.rglob("*")):
        place = PurePosixPath(path.relative_to(folder).as_posix())
        if not _wanted(place):
            continue
        if path.is_dir() and not path.is_symlink():
            yield place / FOLDER, None
            continue
        try:
            reads = _python(place) and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST
            yield place, path.read_bytes() if reads else None
        except OSError:
            yield place, None


def _zipped(file: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield (path, content) as `_in_folder` does, in memory: nothing is unpacked to the disk."""
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename.replace("\\", "/"))
                if not _wanted(path) or not path.parts:
                    continue
                if entry.is_dir() or not _python(path) or stat.S_ISLNK(entry.external_attr >> 16):
                    yield path / FOLDER if entry.is_dir() else path, None
                    continue
                try:
                    with archive.open(entry) as member:
                        content = member.read(LARGEST + 1)  # whatever the entry says of its size
                    yield path, content if len(content) <= LARGEST else None
                except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
                    yield path, None
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{file.name} is no zip that can be read ({error}); give a folder or a zip.") from None


def _python(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".py"


def _wanted(path: PurePosixPath) -> bool:
    """Whether this is not what systems leave behind."""
    return not any(part == "__MACOSX" or part == "__pycache__" or part.startswith(".") for part in path.parts)

"""Hand-ins: the solutions in a folder or a zip, one per student, as Moodle, Canvas or a teacher arrange them.

Alice Smith_12345_assignsubmission_file_/averaging_solution.py      Moodle: a folder for each student
smithalice_LATE_12345_67890_averaging_solution.py                   Canvas: one file for each
alice/solution.py, alice.py                                         by hand
alice-lockstep.json                                                 from the My work page, in any of these places

A file of the last kind holds the student's best solution to each exercise, and the score it claims. Two students with
the same name are distinguished by their numbers; students without a Python file are listed, too.
"""

import re
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from lessons import harmless, progress
from lessons.progress import Score

LARGEST = 1_000_000  # most bytes read from a file
MOST = 2_000  # most files, and most students, in a pile
MOODLE = re.compile(r"^(.+?)_(\d+)_assignsubmission_\w*$")
CANVAS = re.compile(r"^([^_]+)_(?:LATE_)?(\d+)_\d+_")
WORK = re.compile(r"lockstep.*\.json$", re.IGNORECASE)
FOLDER = "(nothing)"  # marks an empty folder


@dataclass(frozen=True)
class HandIn:
    """One student's solution. `source` is its text; if there is none, `trouble` gives the reason.

    `claim` is the score that the file gives for the solution, or None.
    """

    student: str
    file: str
    source: str = ""
    trouble: str = ""
    claim: Score | None = None

    def __post_init__(self):
        for name in ("student", "file", "trouble"):
            object.__setattr__(self, name, harmless.line(getattr(self, name)))

    @property
    def claim_in_words(self) -> str:
        """The claim in words, such as "100", or "100, for another text" if a different text was graded; "" if there is
        no claim.
        """
        if not self.claim:
            return ""
        same = self.claim.digests and self.claim.digests[0] == progress.digest(self.source)
        return f"{self.claim.score}{'' if same else ', for another text'}"


def collect(place: Path, chapter: str) -> list[HandIn]:
    """Return the hand-ins of an exercise in a folder or a zip, one per student. Raise ValueError if there are none, or
    too many.
    """
    files, read = {}, 0
    for path, content in _zipped(place) if place.is_file() else _in_folder(place):
        files[path] = content
        read += _read(path)
        if read > MOST:  # even before the rest is read
            raise ValueError(f"{place.name} has more than {MOST:,} files to grade; split it.")
    if not read:
        raise ValueError(
            f"{place.name} has neither Python files nor files saved with My work; give a folder or zip of such files."
        )
    files = _handed(files)
    tops = {path.parts[0] for path in files}
    if len(tops) == 1 and all(len(path.parts) > 1 for path in files) and not MOODLE.match(*tops):  # look inside
        files = _handed({PurePosixPath(*path.parts[1:]): content for path, content in files.items()})
    by_student: dict[tuple[str, str], list[PurePosixPath]] = {}
    for path in sorted(files):
        by_student.setdefault(student(path), []).append(path)
    if len(by_student) > MOST:
        raise ValueError(
            f"{place.name} has files of {len(by_student):,} students, but at most {MOST:,} are read; split it."
        )
    named = _named([*by_student])
    return [
        _hand_in(name, {path: files[path] for path in paths}, chapter)
        for name, paths in zip(named, by_student.values(), strict=True)
    ]


def _named(students: list[tuple[str, str]]) -> list[str]:
    """Return a name to display for each student. Names that several students share are numbered."""
    same, names = Counter(name for name, _ in students), []
    for name, number in students:
        shown = first = harmless.line(f"{name} ({number})" if number and same[name] > 1 else name)
        again = 1
        while shown in names:  # they differ only in invisible characters
            again += 1
            shown = f"{first} ({again})"
        names.append(shown)
    return names


def student(path: PurePosixPath) -> tuple[str, str]:
    """Return the name and number ("" if unknown) of the student who handed in the file at this path."""
    name = path.parts[0] if len(path.parts) > 1 else re.sub(r"-lockstep.*", "", path.stem)
    for form in (MOODLE, CANVAS):
        if found := form.match(name):
            return found[1], found[2]
    return name, ""


def _handed(files: dict[PurePosixPath, bytes | None]) -> dict[PurePosixPath, bytes | None]:
    """Return the files that students handed in, without other files at the top level, which belong to the teacher."""
    return {
        path: content
        for path, content in files.items()
        if len(path.parts) > 1 or _read(path) or path.suffix == ".ipynb" or CANVAS.match(path.name)
    }


def from_work(name: str, file: str, content: bytes, chapter: str) -> HandIn:
    """Return the solution to a chapter's exercise from a My work file, with the score that the file claims for it."""
    try:
        found = progress.read(content).scores.get(chapter)
    except ValueError as error:
        return HandIn(name, file, trouble=str(error))
    if not found:
        return HandIn(name, file, trouble=f"the file has no score for {chapter}: nothing was graded.")
    if not found.solution:
        return HandIn(
            name, file, trouble=f"the file claims {found.score} of 100, but holds no solution; ask the student for it."
        )
    return HandIn(name, file, found.solution, claim=found)


def of_work(path: PurePath) -> bool:
    """Return whether a file has the name of a file saved from the My work page."""
    return bool(WORK.search(path.name))


def _hand_in(name: str, files: dict[PurePosixPath, bytes | None], chapter: str) -> HandIn:
    programs = {path: content for path, content in files.items() if _python(path)}
    programs = programs or {path: content for path, content in files.items() if of_work(path)}
    if not programs:
        others = [path.name for path in files if path.name != FOLDER]
        instead = f", only {', '.join(others[:3])}{' and more' * (len(others) > 3)}" if others else ""
        first = next(iter(files))
        place = first.parent if first.name == FOLDER else first
        return HandIn(name, str(place), trouble=f"no Python file was handed in{instead}.")
    (path, content), *others = programs.items()
    if others:
        kind = "Python files" if _python(path) else "files of My work"
        return HandIn(name, str(path), trouble=f"{len(programs)} {kind} were handed in; one is expected.")
    if content is None:
        return HandIn(
            name, str(path), trouble=f"the file is a link, has more than {LARGEST:,} bytes, or is unreadable."
        )
    if of_work(path):
        return from_work(name, str(path), content, chapter)
    return HandIn(name, str(path), content.decode("utf-8", "replace"))


def _in_folder(folder: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield (path, content) of each file, and (path / FOLDER, None) for each folder. The content is None if the file is
    not graded, too large, unreadable, or a link.

    Links are not followed, because they may lead anywhere.
    """
    for path in sorted(folder.rglob("*")):
        place = PurePosixPath(path.relative_to(folder).as_posix())
        if not _wanted(place):
            continue
        if path.is_dir() and not path.is_symlink():
            yield place / FOLDER, None
            continue
        try:
            reads = _read(place) and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST
            yield place, path.read_bytes() if reads else None
        except OSError:
            yield place, None


def _zipped(file: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield (path, content) of each file in a zip, as `_in_folder` does. Files are read in memory; none is unpacked to
    disk.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename.replace("\\", "/"))
                if not _wanted(path) or not path.parts:
                    continue
                if entry.is_dir() or not _read(path) or stat.S_ISLNK(entry.external_attr >> 16):
                    yield path / FOLDER if entry.is_dir() else path, None
                    continue
                try:
                    with archive.open(entry) as member:
                        content = member.read(LARGEST + 1)  # whatever size the entry claims
                    yield path, content if len(content) <= LARGEST else None
                except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
                    yield path, None
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{file.name} is not a readable zip ({error}); give a folder or a zip.") from None


def _python(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".py"


def _read(path: PurePosixPath) -> bool:
    return _python(path) or of_work(path)


def _wanted(path: PurePosixPath) -> bool:
    """True unless this is a file that operating systems leave behind."""
    return not any(part == "__MACOSX" or part == "__pycache__" or part.startswith(".") for part in path.parts)

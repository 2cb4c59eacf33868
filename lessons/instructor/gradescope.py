"""The zip from which Gradescope builds an autograder; it contains the part of Lockstep that grades.

setup.sh, run_autograder     what Gradescope calls
requirements.txt             what grading needs, in the versions installed here
lockstep/                    Lockstep's modules without workbench and tests
"""

import re
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from installation import ROOT
from lessons.chapters import Chapter
from lessons.grading.sheet import Sheet

HERE = Path(__file__).parent / "autograder"
SCRIPTS = "setup.sh", "run_autograder"
MODULES = (
    "algorithms", "cluster", "experiments", "kernels", "lessons", "theory", "workloads", "installation.py", "knobs.py",
    "tracing.py", "pyproject.toml",
)  # fmt: skip
NEEDED = (
    "numpy", "numba", "scipy", "greenlet", "pydantic", "click", "rich", "jinja2", "markdown-it-py", "pygments",
    "pylatexenc", "threadpoolctl", "platformdirs",
)  # fmt: skip
DATE = 1980, 1, 1, 0, 0, 0  # the same zip for the same seed, whenever it is written


def bundle(chapter: Chapter, to: Path, seed: int) -> None:
    """Write the zip of the chapter's autograder. It grades all hand-ins on the hidden cases of `seed`.

    Raise ValueError if there is no exercise.
    """
    Sheet(chapter)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:

        def write(name: str, content: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for name in SCRIPTS:
            text = (HERE / name).read_text("utf-8")
            for word, value in (("CHAPTER", chapter.name), ("SEED", seed)):
                text = re.sub(rf"^{word}=\w+", f"{word}={value}", text, flags=re.MULTILINE)
            write(name, text.encode(), 0o755)
        write("requirements.txt", "".join(f"{name}=={metadata.version(name)}\n" for name in NEEDED).encode())
        for path in _modules():
            write(f"lockstep/{path.relative_to(ROOT).as_posix()}", path.read_bytes())


def _modules() -> Iterator[Path]:
    for name in MODULES:
        place = ROOT / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc", ".pyc"):
                yield path

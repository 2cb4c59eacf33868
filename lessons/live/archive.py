"""One archive of all that Python needs in a browser, cut into scripts, because a page on a disk cannot fetch a file.

archive   gzip of: length of the index (4 bytes), index {path: [from, to]} as JSON, all files one after another
script    lockstep.live.take(number, "base64 of a part of the archive");
"""

import base64
import gzip
import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

from installation import ROOT
from lessons.live import distribution

ROOMS = ("kernels", "workloads", "cluster", "algorithms", "theory", "experiments")
LEAVES = ("knobs.py", "tracing.py", "installation.py")
KINDS = (".py", ".toml", ".npz")
LEFT_OUT = ("cluster/torch/", "cluster/real/", "experiments/cli/", "experiments/jobs/", "experiments/exports/")
NEEDED = ("cluster/real/__init__.py", "cluster/real/gpus.py", "cluster/real/signals.py")  # of those folders
UNUSED = ("numpy/f2py/", "numpy/testing/_private/", "numpy/_core/include/", "numpy/_core/lib/", "numpy/distutils/",
          "numpy/random/lib/", "numpy/tests/")  # fmt: skip
"""What of NumPy no run imports."""
ANSWERS = ("solution.py", "answers.py", "lab.py")
PART = 750_000  # bytes of the archive in a script: a page reads one without a pause that anybody notices


def files(pyodide: dict[str, bytes], root: Path = ROOT) -> dict[str, bytes]:
    """Return all files of the archive by path: Pyodide's by name, and below python/ those that it finds as modules."""
    found = {name: content for name, content in pyodide.items() if name != distribution.NUMPY}
    with zipfile.ZipFile(io.BytesIO(pyodide[distribution.NUMPY])) as wheel:
        for one in wheel.infolist():
            if one.filename.endswith((".py", ".so")) and not one.filename.startswith(UNUSED):
                found[f"python/{one.filename}"] = wheel.read(one)
    for path in sources(root):
        found[f"python/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    found["pyodide-lock.json"] = json.dumps({"info": distribution.LOCKED, "packages": {}}).encode()
    here = Path(__file__).parent / "python"
    return found | {f"python/{path.name}": path.read_bytes() for path in sorted(here.glob("*.py"))}


def sources(root: Path = ROOT) -> list[Path]:
    """Return the files of Lockstep that a simulated run may need."""
    found = [root / leaf for leaf in LEAVES]
    for room in ROOMS:
        found += sorted(path for path in (root / room).rglob("*") if path.suffix in KINDS and _is_needed(path, root))
    return found + _graders(root)


def _graders(root: Path) -> list[Path]:
    """Return what grades exercises, and what a check imports; not their solutions, nor the answers of quizzes."""
    lessons = root / "lessons"
    found = [lessons / name for name in ("__init__.py", "figure.py", "seeds.py", "harmless.py")]
    folders = [lessons / "grading", *(path.parent for path in sorted(lessons.glob("*/check.py")))]
    return found + [path for folder in folders for path in sorted(folder.rglob("*.py")) if path.name not in ANSWERS]


def _is_needed(path: Path, root: Path) -> bool:
    name = path.relative_to(root).as_posix()
    return name in NEEDED or not name.startswith(LEFT_OUT)


def pack(content: dict[str, bytes], level: int = 9) -> bytes:
    """Return the archive of these files."""
    index, at = {}, 0
    for name, data in content.items():
        index[name] = [at, at + len(data)]
        at += len(data)
    head = json.dumps(index).encode()
    return gzip.compress(b"".join((struct.pack("<I", len(head)), head, *content.values())), level, mtime=0)


def write(archive: bytes, folder: Path) -> int:
    """Write the archive into `folder` as scripts 0.js, 1.js, ... and return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [archive[at : at + PART] for at in range(0, len(archive), PART)]
    for number, part in enumerate(parts):
        text = base64.b64encode(part).decode()
        (folder / f"{number}.js").write_text(f'lockstep.live.take({number}, "{text}");\n', "utf-8")
    return len(parts)


def publish(pyodide: dict[str, bytes], assets: Path) -> dict[str, int]:
    """Write the archive and the scripts that use it below a site's `assets`; return what its pages have to know."""
    archive = pack(files(pyodide))
    for script in sorted((Path(__file__).parent / "browser").glob("*.js")):
        shutil.copy(script, assets)
    return {"parts": write(archive, assets / "live"), "bytes": len(archive)}

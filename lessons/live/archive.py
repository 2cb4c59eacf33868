"""Pack everything that Python needs in a browser into one archive. It is written as scripts, because a page opened from
disk cannot fetch files.

If a Python 3.12 is available, the archive contains bytecode. It replaces the sources of the library and of NumPy.
Lockstep's sources stay, since catalogues read docstrings and checks read start files.

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
from pathlib import Path, PurePosixPath

from installation import ROOT
from lessons.live import bytecode, distribution

ROOMS = ("kernels", "workloads", "cluster", "algorithms", "theory", "experiments")
LEAVES = ("knobs.py", "tracing.py", "installation.py")
KINDS = (".py", ".toml", ".npz")
LEFT_OUT = ("cluster/torch/", "cluster/real/", "experiments/cli/", "experiments/jobs/", "experiments/exports/")
NEEDED = ("cluster/real/__init__.py", "cluster/real/gpus.py", "cluster/real/signals.py")  # of those folders
UNUSED = ("numpy/f2py/", "numpy/testing/_private/", "numpy/_core/include/", "numpy/_core/lib/", "numpy/distutils/",
          "numpy/random/lib/", "numpy/tests/")  # fmt: skip
"""Parts of NumPy that no run imports."""
UNUSED_LIBRARY = ("email/", "html/", "http/", "multiprocessing/", "unittest/", "wsgiref/", "xml/", "xmlrpc/", "imaplib",
                  "mailbox", "pdb", "poplib", "smtplib")  # fmt: skip
"""Parts of the standard library that neither a run nor a solution needs in a browser."""
LIBRARY = "python_stdlib.zip"
LEFT_AT_HOME = ("solution.py", "lab.py")  # the answers of exercises; those of questions are in the page anyway
EDITOR = Path(__file__).parents[1] / "book" / "vendor" / "codemirror"
PART = 750_000  # bytes of the archive in a script: a page reads one without a pause that anybody notices


def files(pyodide: dict[str, bytes], python: str | None, root: Path = ROOT) -> dict[str, bytes]:
    """Return all files of the archive by path: Pyodide's by name and, below python/, the modules that Pyodide
    imports.

    `python` is a Python 3.12, which compiles the modules, or None.
    """
    found = {name: content for name, content in pyodide.items() if name != distribution.NUMPY}
    found["pyodide-lock.json"] = json.dumps({"info": distribution.LOCKED, "packages": {}}).encode()
    library, numpy = _unpacked(pyodide[LIBRARY], UNUSED_LIBRARY), _unpacked(pyodide[distribution.NUMPY], UNUSED)
    here = Path(__file__).parent / "python"
    ours = {path.relative_to(root).as_posix(): path for path in sources(root)}
    ours |= {path.name: path for path in sorted(here.glob("*.py"))}
    modules = {name: path.read_bytes() for name, path in ours.items()}
    if python:
        library, numpy = _compiled(library, python), _compiled(numpy, python)
        modules |= {_cached(name): code for name, code in _compiled(modules, python).items() if name.endswith(".pyc")}
    found[LIBRARY] = _zipped(library)
    return found | {f"python/{name}": content for name, content in (numpy | modules).items()}


def _unpacked(archive: bytes, unused: tuple[str, ...]) -> dict[str, bytes]:
    """Return the modules of a zip file by path, without those whose path begins with one of `unused`."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        names = [name for name in packed.namelist() if name.endswith((".py", ".so"))]
        return {name: packed.read(name) for name in names if not name.startswith(unused)}


def _zipped(content: dict[str, bytes]) -> bytes:
    """Return these files as an uncompressed zip file; the archive is compressed as a whole."""
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w") as packed:
            for name, data in content.items():
                packed.writestr(zipfile.ZipInfo(name), data)
        return made.getvalue()


def _compiled(content: dict[str, bytes], python: str) -> dict[str, bytes]:
    """Return the files with bytecode, x.pyc, in place of each source, x.py."""
    given = {name: data for name, data in content.items() if name.endswith(".py")}
    made = {f"{name}c": code for name, code in bytecode.compile_all(given, python).items()}
    return made | {name: data for name, data in content.items() if name not in given}


def _cached(name: str) -> str:
    """Return where Python looks for the bytecode file `name`, such as a/b.pyc, if the source exists: a path below
    __pycache__.
    """
    path = PurePosixPath(name)
    return str(path.parent / "__pycache__" / f"{path.stem}.{bytecode.TAG}.pyc")


def sources(root: Path = ROOT) -> list[Path]:
    """Return the files of Lockstep that a simulated run may need."""
    found = [root / leaf for leaf in LEAVES]
    for room in ROOMS:
        found += sorted(path for path in (root / room).rglob("*") if path.suffix in KINDS and _is_needed(path, root))
    return found + _chapters(root)


def _chapters(root: Path) -> list[Path]:
    """Return the sources that compute figures and answers and grade exercises, and the solutions that a check needs."""
    lessons = root / "lessons"
    found = [lessons / name for name in ("__init__.py", "figure.py", "seeds.py", "harmless.py")]
    chapters = {path.parent for kind in ("check.py", "experiments*") for path in lessons.glob(f"*/{kind}")}
    paths = [path for folder in (lessons / "grading", *sorted(chapters)) for path in sorted(folder.rglob("*.py"))]
    return found + [path for path in paths if path.name not in LEFT_AT_HOME or _is_compared_with(path)]


def _is_compared_with(path: Path) -> bool:
    """True if the chapter's check compares readers' solutions with this file."""
    check = path.parent / "check.py"
    return check.is_file() and f"lessons.{path.parent.name}.{path.stem} import" in check.read_text("utf-8")


def _is_needed(path: Path, root: Path) -> bool:
    name = path.relative_to(root).as_posix()
    return name in NEEDED or not name.startswith(LEFT_OUT)


def pack(content: dict[str, bytes], level: int = 9) -> bytes:
    """Return the archive of these files, compressed."""
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
    """Write the archive and the scripts that use it below a site's `assets`; return the archive's number of parts and
    bytes.
    """
    archive = pack(files(pyodide, bytecode.interpreter()))
    for script in sorted((Path(__file__).parent / "browser").glob("*.js")):
        shutil.copy(script, assets)
    shutil.copytree(EDITOR, assets / "codemirror", ignore=shutil.ignore_patterns("entry.js", "*.json"))
    return {"parts": write(archive, assets / "live"), "bytes": len(archive)}

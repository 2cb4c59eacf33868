"""The files that a solution can read. They belong to Python, NumPy and the system's libraries.

Other packages installed for the grader stay out of reach, since they may contain the data of an exercise.
"""

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

PACKAGES = "site-packages", "dist-packages"
SYSTEM = (
    "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null", "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
)  # fmt: skip
LIBRARIES = "/lib", "/usr/lib", "/lib64", "/usr/lib64"  # one of these, or a folder in it, has the C library


@dataclass(frozen=True)
class Reachable:
    """Files and folders that can be read, without the `hidden` folders below them. A path in `readable` can be read
    even in a hidden folder.
    """

    readable: tuple[str, ...]
    hidden: tuple[str, ...]

    def apart(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (readable, listed): the readable paths without hidden ones, and folders whose file names may be seen.

        This is for a sandbox that cannot exclude part of a folder that it has granted.
        """
        split = [path for path in self.readable if any(_within(hidden, path) for hidden in self.hidden)]
        parts = [part for path in split for part in _around(path, self.hidden)]
        return (*(path for path in self.readable if path not in split), *parts), tuple(split)


@functools.cache
def python() -> Reachable:
    """Return the files that belong to this Python and its NumPy."""
    import greenlet  # imported here because it does not exist in a browser

    libraries = _libraries()
    folders = [str(Path(os.__file__).parent), *(path for path in sys.path if path.endswith("lib-dynload")), *libraries]
    packages = [
        str(path) for module in (numpy, greenlet)
        for path in Path(module.__file__).parents[1].glob(f"{module.__name__}*")
        if path.name in (module.__name__, f"{module.__name__}.libs")
    ]  # fmt: skip
    hidden = [path for folder in folders for path in _packages(folder)]
    return Reachable((*folders, *packages, *_interpreter(), *SYSTEM), tuple(hidden))


def _libraries() -> list[str]:
    """Return all paths to the folder of the C library, and the libraries that are loaded from other folders."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
        mapped = {line.split(maxsplit=5)[5] for line in lines if ".so" in line}
    except (OSError, IndexError):
        return []
    own = {path for path in mapped if not any(name in Path(path).parts for name in PACKAGES)}
    homes = {os.path.dirname(path) for path in own if os.path.basename(path).startswith(("libc.so", "libc-"))}
    names = [path for base in LIBRARIES for home in homes for path in (base, f"{base}/{os.path.basename(home)}")]
    return [
        *homes, *(path for path in names if os.path.realpath(path) in homes),
        *(path for path in own if os.path.dirname(path) not in homes and os.path.basename(path).startswith("lib")),
    ]  # fmt: skip


def _interpreter() -> Iterator[str]:
    """Yield every path to this Python's executable, and the path of the file that names its base installation."""
    path = sys.executable
    yield os.path.join(sys.prefix, "pyvenv.cfg")
    yield path
    while os.path.islink(path):
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        yield path
    yield os.path.realpath(path)


def _packages(folder: str) -> Iterator[str]:
    """Yield the folders of packages below a folder that belongs to Python or the system."""
    for pattern in ("", "python*/"):
        for name in PACKAGES:
            yield from map(str, Path(folder).glob(pattern + name))


def _around(path: str, hidden: tuple[str, ...]) -> Iterator[str]:
    """Yield the parts of a folder that contain nothing hidden."""
    if path in hidden:
        return
    if any(_within(one, path) for one in hidden):
        for child in sorted(os.listdir(path)):
            yield from _around(os.path.join(path, child), hidden)
    else:
        yield path


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)

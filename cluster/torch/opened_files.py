"""The files in a script's folder that the script opens in Python, but not those that a library's C++ code opens."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from cluster.torch.process import current, is_library_file


class OpenedFiles:
    """An audit hook that watches files below `folder`, if set. It cannot be removed, so a process has only one."""

    folder = ""
    found: set[str]

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not self.folder or not current():
            return
        name, mode, flags = args
        reads = mode.startswith("r") if mode else flags & os.O_ACCMODE == os.O_RDONLY
        if reads and isinstance(name, str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(name))
            if path.startswith(self.folder) and not is_library_file(path) and not path.endswith(".pyc"):
                self.found.add(path)


_hooks: list[OpenedFiles] = []


@contextlib.contextmanager
def opened_files(folder: str) -> Iterator[set[str]]:
    """Record the files below `folder` that ranks open for reading. Yield their absolute paths."""
    if not _hooks:
        _hooks.append(OpenedFiles())
        sys.addaudithook(_hooks[0])
    hook = _hooks[0]
    hook.folder, hook.found = os.path.join(folder, ""), set()
    try:
        yield hook.found
    finally:
        hook.folder = ""

"""Pyodide, i.e. Python for WebAssembly, and NumPy: five files of one release, which are checked by hash.

They are downloaded once and kept in the user's cache. To build a book without a network, name a folder that has them,
such as an unpacked release.
"""

import hashlib
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

RELEASE = "0.27.7"  # Python 3.12, NumPy 2.0.2: the release that the tests run
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{RELEASE}/full"
NUMPY = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
FILES = {
    "pyodide.js": "b4cb23a53aba19c221659b9fb40a2f18281d685691dc06647fb0afd0681baf98",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
    NUMPY: "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08",
}
"""{name of a file: its SHA-256}."""
LOCKED = {"arch": "wasm32", "platform": "emscripten_3_1_58", "version": RELEASE, "python": "3.12.7"}
"""The header that Pyodide expects in its list of packages. The list is empty: NumPy is already among the modules."""
PATIENCE = 60  # s for an answer


def download(address: str) -> bytes:
    """Return the content at the address. Raise OSError if it cannot be read."""
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return answer.read()


def load(folder: Path | None = None, fetch: Callable[[str], bytes] = download) -> dict[str, bytes]:
    """Return {name: content} of FILES. They are read from `folder` or, by default, from the cache, which `fetch` fills.

    Raise ValueError, in one sentence, if a file is missing, has the wrong hash, or cannot be downloaded.
    """
    return {name: _read(folder / name) if folder else _cached(name, fetch) for name in FILES}


def cache() -> Path:
    """Return the folder of downloaded releases: $LOCKSTEP_PYODIDE, or one in the user's cache."""
    given = os.environ.get("LOCKSTEP_PYODIDE")
    return Path(given) if given else user_cache_path("lockstep", appauthor=False) / "pyodide"


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise ValueError(f"{path} is missing; name a folder with Pyodide {RELEASE} and its NumPy, {NUMPY}.")
    content = path.read_bytes()
    if not _is(path.name, content):
        raise ValueError(f"{path} is not the file of Pyodide {RELEASE}; unpack that release.")
    return content


def _cached(name: str, fetch: Callable[[str], bytes]) -> bytes:
    place = cache() / RELEASE / name
    if place.is_file() and _is(name, content := place.read_bytes()):
        return content
    try:
        content = fetch(f"{ADDRESS}/{name}")
    except OSError as error:
        raise ValueError(
            f"{ADDRESS}/{name} cannot be downloaded: {error}. Try again, or name a folder with --pyodide."
        ) from None
    if not _is(name, content):
        raise ValueError(
            f"{ADDRESS}/{name} is not the file that was published, so it was discarded. Try again, or name a folder "
            "with --pyodide."
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return content


def _is(name: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == FILES[name]

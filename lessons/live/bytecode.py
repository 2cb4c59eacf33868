"""Bytecode of the modules that a browser imports, compiled while the book is built.

With only the sources, a browser compiles several hundred modules at each start, which takes longer than all the rest.
Bytecode belongs to one minor version, so only Python 3.12 can make the browser's. The program at the end of this file
runs there: it reads {path: source} and writes {path: bytecode}.
"""

import importlib.util
import marshal
import shutil
import subprocess
import sys

MAGIC = bytes.fromhex("cb0d0d0a")  # of Python 3.12's bytecode
TAG = "cpython-312"
UNCHECKED = (0b01).to_bytes(4, "little") + bytes(8)
"""The flags and the hash in bytecode that is imported without checking its source."""
VERSION = 4  # of marshal, which every Python of the last decade reads


def interpreter() -> str | None:
    """Return the path of a Python 3.12: this interpreter, or the one on PATH; None if there is none."""
    found = sys.executable, shutil.which("python3.12")
    return next((one for one in found if one and _magic(one) == MAGIC), None)


def _magic(python: str) -> bytes:
    program = "import importlib.util; print(importlib.util.MAGIC_NUMBER.hex())"
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, check=False)
    return bytes.fromhex(done.stdout.decode().strip()) if not done.returncode else b""


def compile_all(sources: dict[str, bytes], python: str) -> dict[str, bytes]:
    """Return {path: bytecode} of the sources, compiled by `python`. Tracebacks show the paths in `sources`."""
    given = marshal.dumps(sources, VERSION)
    done = subprocess.run([python, "-I", "-W", "ignore", __file__], input=given, capture_output=True, check=True)
    return marshal.loads(done.stdout)


def _bytecode(source: bytes, path: str) -> bytes:
    code = compile(source, path, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + UNCHECKED + marshal.dumps(code)


if __name__ == "__main__":
    asked = marshal.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(marshal.dumps({path: _bytecode(one, path) for path, one in asked.items()}, VERSION))

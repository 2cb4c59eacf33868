"""Requirements as pip reads them, from pyproject.toml: `python -m tests.requirements` writes both files.

requirements.txt    what a clone needs, with its tests; the comments, why each package is here, come with it
requirements.lock   the same without tests: every package in one version, with hashes. It needs uv, and keeps the
                    versions that it has; --upgrade takes the newest

torch is not in the lock: its CPU and its CUDA build are the same version with other hashes, and other packages.
"""

import re
import shutil
import subprocess
import sys
import tomllib

from tests.sources import ROOT

FILE, LOCK = ROOT / "requirements.txt", ROOT / "requirements.lock"
HEAD = "# Written by `python -m tests.requirements` from pyproject.toml, which says the same to `pip install .`.\n"
LINE = re.compile(r'^    "(.+?)", +# (.+)$', re.MULTILINE)
COMPILE = (
    "uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate",
    "--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "python -m tests.requirements",
)  # fmt: skip


def text() -> str:
    """Return what requirements.txt has to say: all that Lockstep needs, and its tests."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    why = dict(LINE.findall(project))
    declared = tomllib.loads(project)["project"]
    names = [*declared["dependencies"], *declared["optional-dependencies"]["test"]]
    return HEAD + "".join(f"{name:<24} # {why[name]}\n" for name in names)


def lock(*options: str) -> None:
    """Write requirements.lock. CalledProcessError if nothing fits all, FileNotFoundError without uv."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = "\n".join(one for one in project["dependencies"] if not one.startswith("torch="))
    command = [*COMPILE, "--quiet", "-o", LOCK.name, *options]
    subprocess.run(command, cwd=ROOT, input=needed, text=True, check=True)


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
    if not shutil.which("uv"):
        sys.exit("requirements.txt is written; requirements.lock needs uv: pip install uv, then the same again.")
    lock(*sys.argv[1:])

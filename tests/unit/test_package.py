"""The package: one list of requirements, and a wheel with all that Lockstep reads and nothing else."""

import re
import subprocess
import tomllib
import zipfile

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import installation
from tests import requirements
from tests.sources import MODULES, ROOMS, ROOT

SCRIPTS = tuple(f"docs/scripts/{name}.py" for name in ("ddp", "fsdp2", "pipeline", "ring"))
DOCUMENTS = ("GLOSSARY.md", "docs/bibliography.md", "docs/simulated_network.md", *SCRIPTS)


def tracked(*folders: str) -> set[str]:
    """Files that git knows below these; what lies there, where there is no git."""
    done = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True)
    if done.returncode or not done.stdout:
        pytest.skip("this is no clone")
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Names of the files in the wheel that `pip install .` builds, its metadata left out."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    with zipfile.ZipFile(built) as files:
        return {name for name in files.namelist() if ".dist-info/" not in name}


def test_requirements_txt_says_what_pyproject_does():
    assert requirements.FILE.read_text("utf-8") == requirements.text()


def test_the_wheel_has_every_file_of_the_rooms_and_the_documents_that_they_read(wheel):
    rooms = tracked(*ROOMS, *(f"{module}.py" for module in MODULES))
    assert rooms - wheel == set()
    assert {f"lessons/documents/{name}" for name in DOCUMENTS} <= wheel


def test_the_wheel_has_nothing_of_tests_and_nothing_that_was_compiled(wheel):
    first = {name.partition("/")[0] for name in wheel}
    assert first == {*ROOMS, *(f"{module}.py" for module in MODULES)}
    assert not [name for name in wheel if re.search(r"__pycache__|\.nb[ci]$|\.venv|^runs/", name)]


def test_a_document_is_found_in_a_clone_and_in_a_package(monkeypatch, tmp_path):
    for name in DOCUMENTS:
        assert installation.document(name).is_file(), name
    monkeypatch.setattr(installation, "DOCUMENTS", tmp_path)
    assert installation.document("GLOSSARY.md") == tmp_path / "GLOSSARY.md"


def test_what_is_kept_lies_where_the_variable_says_or_beside_the_sources_or_with_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path))
    assert installation.data_folder("LOCKSTEP_RUNS", "runs") == tmp_path
    monkeypatch.delenv("LOCKSTEP_RUNS")
    assert installation.data_folder("LOCKSTEP_RUNS", "runs") == ROOT / "runs"
    monkeypatch.setattr(installation, "CLONE", False)
    user = installation.data_folder("LOCKSTEP_RUNS", "runs")
    assert user.parts[-2:] == ("lockstep", "runs") and not user.is_relative_to(ROOT)


def test_the_oldest_python_is_the_same_everywhere():
    import start

    oldest = ".".join(map(str, start.OLDEST))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["requires-python"] == f">={oldest}"
    assert project["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"


def needed() -> list[Requirement]:
    return [
        Requirement(line) for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ]


def test_every_requirement_but_torch_is_locked_at_a_version_that_it_allows():
    text = requirements.LOCK.read_text("utf-8")
    locked = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))
    for one in needed():
        name = canonicalize_name(one.name)
        if name == "torch":  # pinned in pyproject.toml; which build of it, CPU or CUDA, is for its reader to choose
            assert str(one.specifier).startswith("==") and name not in locked
        else:
            assert one.specifier.contains(locked[name]), f"{one}: {locked[name]}; run python -m tests.requirements"


def test_the_lock_has_hashes_and_names_no_host():
    text = requirements.LOCK.read_text("utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 40 and all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text

"""The house: imports point one way, the core is light, and nothing of a machine is written down."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import FILES, ROOT, nodes, tree

MAY_IMPORT = {
    "installation": set(),
    "knobs": set(),
    "tracing": set(),
    "kernels": {"knobs", "tracing"},
    "workloads": {"kernels", "knobs", "tracing", "installation"},
    "cluster": {"kernels", "knobs", "tracing"},
    "algorithms": {"kernels", "knobs"},
    "theory": {"algorithms", "kernels", "knobs", "tracing"},
    "experiments": {"theory", "workloads", "cluster", "algorithms", "kernels", "knobs", "tracing", "installation"},
    "lessons": {
        "experiments",
        "theory",
        "workloads",
        "cluster",
        "algorithms",
        "kernels",
        "knobs",
        "tracing",
        "installation",
    },
    "app": {"lessons", "experiments", "knobs", "tracing", "installation"},
    "lockstep": {"app", "experiments", "cluster"},
}
PLOTTING = ("experiments/exports/export.py",)
FLOORS = {
    "experiments": (
        ("wording.units", "wording.sentences"),  # what any of them may have to say
        ("specification",),
        ("wording",),
        ("runs",),
        ("execution",),
        ("jobs",),
        ("measure",),
        ("study", "learning"),
        ("viewer",),
        ("exports",),
        ("cli",),
    ),
    "app": (
        ("browser",),
        ("session",),
        ("settings",),
        ("charts",),
        ("comparison.changes", "comparison.difference", "comparison.race", "comparison.seeds", "comparison.variation"),
        ("comparison.reference", "comparison.in_words", "comparison.table"),  # no view of a comparison knows another
        ("comparison", "kernel_pages", "own_script", "schedules"),
        ("embed", "guide"),
        ("workbench",),
        ("textbook",),
    ),
}
"""The floors of a large room, from the ground up. A module may import what stands below it, and its own part."""
each_room = pytest.mark.parametrize("name", MAY_IMPORT)


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@functools.cache
def imports(path: Path) -> list[tuple[str, ast.AST, bool]]:
    """(module, node, whether it is imported when the file is) of every import, the script footer left out."""
    body = [n for n in tree(path).body if not (isinstance(n, ast.If) and "__main__" in ast.dump(n.test))]
    top = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            top.add(node)
    found = []
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node, node in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node, node in top))
    return found


def imported(name: str) -> list[tuple[Path, str]]:
    """(file, module) of every import in a room, but of the one door that leads up: `python -m algorithms`."""
    files = [path for path in FILES if room(path) == name and path != ROOT / "algorithms" / "__main__.py"]
    return [(path, module) for path in files for module, _, _ in imports(path)]


@each_room
def test_imports_point_one_way(name):
    for path, module in imported(name):
        target = module.split(".")[0]
        if target in MAY_IMPORT and target != name:
            assert target in MAY_IMPORT[name], f"{path.relative_to(ROOT)} imports {module}"


def floor_of(module: str) -> tuple[int, str]:
    """(floor, part) of a module of a room with floors, by its longest part; the room itself is the top."""
    name, _, rest = module.partition(".")
    parts = {part: number for number, floor in enumerate(FLOORS[name]) for part in floor}
    inside = [part for part in parts if f"{rest}.".startswith(f"{part}.")]
    part = max(inside, key=len, default="")
    return parts.get(part, len(FLOORS[name])), part


def modules_of(path: Path) -> list[str]:
    """The modules of ours that a file imports, wherever in it: `from a import b` is a.b where that is a module."""
    found = []
    for module, node, _ in imports(path):
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        inside = [f"{module}.{name}" for name in names if is_module(f"{module}.{name}")]
        found += inside + [module] * (len(inside) < max(1, len(names)))
    return found


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


@pytest.mark.parametrize("name", FLOORS)
def test_within_a_large_room_imports_point_down_the_floors(name):
    for path in (path for path in FILES if room(path) == name):
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        floor, part = floor_of(own)
        for module in (module for module in modules_of(path) if module.split(".")[0] == name and "." in module):
            below, other = floor_of(module)
            assert below < floor or other == part, f"{own} imports {module}"


def test_every_part_of_a_large_room_has_a_floor():
    for name, floors in FLOORS.items():
        parts = {path.name for path in (ROOT / name).iterdir() if (path / "__init__.py").is_file()}
        assert parts == {part.split(".")[0] for floor in floors for part in floor}, name


def test_an_algorithm_imports_the_standard_library_numpy_kernels_parts_and_its_own_family():
    for path, module in imported("algorithms"):
        family, first = path.relative_to(ROOT).parts[1], module.split(".")[0]
        if first == "algorithms":
            shared = module.count(".") == 1 or module.split(".")[1] in ("parts", family)
            assert shared or "." not in module, path
        else:
            assert first in sys.stdlib_module_names or first in ("numpy", "kernels", "knobs"), (path, module)


def test_no_file_needs_numba_to_be_imported():
    for path in FILES:
        assert not [module for module, _, top in imports(path) if top and module.split(".")[0] == "numba"], path


def test_kernels_get_cuda_through_one_door():
    for path, module in imported("kernels"):
        assert not module.startswith("numba.cuda"), path
    users = [
        path.name for path in FILES if room(path) == "kernels" for name in names_from(path, "numba") if name == "cuda"
    ]
    assert users == ["gpu.py"]
    door = next(path for path in FILES if path.relative_to(ROOT).as_posix() == "kernels/gpu.py")
    assert not [node for module, node, top in imports(door) if module == "numba" and top], "the door opens too early"


def test_only_one_room_of_the_cluster_needs_torch_and_no_other_room_of_it_imports_that_one():
    inside = "cluster/torch/"
    for path in (path for path in FILES if room(path) in ("cluster", "experiments", "app", "lessons")):
        where = path.relative_to(ROOT).as_posix()
        for module, _, top in imports(path):
            if module.split(".")[0] == "torch" and top:
                assert room(path) != "cluster" or where.startswith(inside), where
            if f"{module}.".startswith("cluster.torch.") and not where.startswith(inside):
                assert room(path) != "cluster" and not top, where


def names_from(path: Path, package: str) -> list[str]:
    """The names that a file takes from `package` itself."""
    nodes = [node for module, node, _ in imports(path) if module == package and isinstance(node, ast.ImportFrom)]
    return [alias.name for node in nodes for alias in node.names]


@each_room
def test_click_stays_in_the_rooms_of_the_command_line(name):
    for path, module in imported(name):
        if module.split(".")[0] == "click":
            assert path.relative_to(ROOT).as_posix().startswith(("experiments/cli/", "lessons/cli/", "app/cli.py")), (
                path
            )


@each_room
def test_streamlit_stays_in_the_app_and_plotly_in_the_app_and_the_exports(name):
    for path, module in imported(name):
        first = module.split(".")[0]
        if first == "streamlit":
            assert name == "app", path
        if first == "plotly":
            assert name == "app" or path.relative_to(ROOT).as_posix() in PLOTTING, path


INNER = re.compile(
    r"data-testid|\.st[A-Z]|\[data-(st|baseweb)|_streamlit_|(from|import) streamlit\.|\bst\.\w+\._[a-z]"
    r"|st\.delta_generator|create_server|script_run_ctx|static/js"
)
"""What Streamlit may change without saying so."""


def test_what_leans_on_streamlits_inner_life_stands_in_one_room_and_says_what_is_lost_without_it():
    for path in (path for path in (ROOT / "app").rglob("*") if path.suffix in (".py", ".js", ".css")):
        text = path.read_text("utf-8")
        if found := INNER.search(text):
            where = path.relative_to(ROOT).as_posix()
            assert where.startswith("app/browser/"), f"{where} has {found[0]}"
            assert "Relies on" in text and "Without" in text, where


def test_the_files_of_the_families_are_the_catalogue():
    from algorithms import CATALOGUE
    from algorithms.compression import COMPRESSIONS

    listed = {*CATALOGUE, *(f"compression.{name}" for name in COMPRESSIONS)}
    files = {path for path in (ROOT / "algorithms").glob("*/*.py") if path.parent.name != "parts"}
    assert {f"{path.parent.name}.{path.stem}" for path in files if path.stem != "__init__"} == listed


def test_every_file_of_a_room_says_what_it_is_for():
    for path in FILES:
        assert ast.get_docstring(tree(path)), f"{path.relative_to(ROOT)} has no docstring"


def test_no_string_stands_alone_but_a_docstring():
    for path in FILES:  # a second line of a text without its parentheses is thrown away
        lines = path.read_text("utf-8").splitlines()
        for node in nodes(path):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.JoinedStr | ast.Constant):
                start = lines[node.lineno - 1].strip()
                alone = isinstance(node.value, ast.JoinedStr) or isinstance(node.value.value, str)
                assert not alone or re.match(r'r?"""', start), f"{path.relative_to(ROOT)}:{node.lineno}: {start}"


def test_no_drawer_for_everything():
    for path in FILES:
        assert not re.search(r"(utils|helpers?|misc|common|manager|base)\.py$", path.name), path


def test_the_house_is_clean_of_this_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = tracked.stdout.split() if tracked.returncode == 0 else []
    words = ["/wo" + "rk/", "/ro" + "ot/", "py" + "pi-more"]
    for name in files:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".txt", ".js", ".yaml", "") and path.is_file():
            text = path.read_text(errors="ignore")
            assert not any(word in text for word in words), name


ASK_BY_NAME = {  # what is left in these files, and why
    "algorithms/__init__.py": "the catalogue, which is loaded when it is first asked for",
    "algorithms/parts/error_feedback.py": "a communicator that passes on what it does not compress, in any message",
    "workloads/torch_module.py": "torch's data types are named as NumPy's",
    "workloads/torch_stage.py": "what autograd keeps for the backward pass is only told by the names of attributes",
}


def test_what_algorithms_and_workloads_are_is_declared_and_not_asked_by_name():
    asking = set()
    for path in (path for path in FILES if room(path) in ("algorithms", "workloads")):
        names = {node.id for node in nodes(path) if isinstance(node, ast.Name)}
        if names & {"getattr", "hasattr"}:
            asking.add(path.relative_to(ROOT).as_posix())
    assert asking == set(ASK_BY_NAME)


def test_text_is_read_and_written_in_an_encoding_that_is_said():
    """Without one, Windows takes a code page."""
    place = {"open": 3, "read_text": 0, "write_text": 1}  # of the encoding among the arguments
    for path in [*FILES, ROOT / "start.py"]:
        for node in (node for node in nodes(path) if isinstance(node, ast.Call)):
            said, (of, _, name) = {one.arg for one in node.keywords}, ast.unparse(node.func).rpartition(".")
            what = f"{path.relative_to(ROOT)}:{node.lineno}"
            assert of != "subprocess" or "text" not in said, what
            if name not in place or of == "formatter" or (name == "open" and of):  # click's; an archive's
                continue
            binary = any(isinstance(one, ast.Constant) and "b" in str(one.value) for one in node.args[1:2])
            assert binary or "encoding" in said or len(node.args) > place[name], what


def test_files_have_names_that_every_system_takes():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8")
    names = tracked.stdout.splitlines() if tracked.returncode == 0 else [str(path) for path in FILES]
    reserved = re.compile(r"(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)|[\\:*?\"<>|]|[ .](/|$)", re.IGNORECASE)
    assert [name for name in names if reserved.search(name)] == []
    assert len({name.casefold() for name in names}) == len(names)


def test_names_of_tests_have_at_most_100_characters():
    for path in (ROOT / "tests").rglob("test_*.py"):
        long = re.findall(r"def (test_\w{96,})", path.read_text("utf-8"))
        assert not long, f"{path.relative_to(ROOT)}: {long[0]} has {len(long[0])} characters"

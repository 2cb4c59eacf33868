"""What takes a second on an idle machine takes a minute on a busy one, so no test has a limit of its own."""

import ast

from tests.patience import wait_until
from tests.sources import ROOT

GIVES_UP = {"timeout", "default_timeout", "startup_timeout"}
OURS = {"processes", "torchrun", "threads"}  # clusters, whose timeout is part of what is tested


def limits_in_seconds(source: str) -> list[str]:
    """Return the expressions of `source` that give up after a literal number of seconds."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(ast.Call(ast.Attribute(attr="monotonic")), ast.Add(), ast.Constant()):
                found.append(ast.unparse(node))
            case ast.Call(ast.Attribute(value, "timeout"), [ast.Constant(), *_]) if ast.unparse(value) == "pytest.mark":
                found.append(ast.unparse(node))
            case ast.Call(ast.Attribute(attr="wait"), [ast.Constant(), *_]):
                found.append(ast.unparse(node))
            case ast.Call(ast.Attribute(value)) if ast.unparse(value) not in OURS:
                given = [word.arg for word in node.keywords if isinstance(word.value, ast.Constant)]
                found += [ast.unparse(node)] * bool(GIVES_UP & {*given})
    return found


def test_no_test_gives_up_after_a_number_of_seconds_of_its_own():
    files = [*(ROOT / "tests" / "system").rglob("*.py"), *(ROOT / "tests" / "contract").rglob("*.py")]
    found = {path.name: limits for path in files if (limits := limits_in_seconds(path.read_text("utf-8")))}
    assert files and not found, f"use tests.patience: {found}"


def test_each_way_to_give_up_after_seconds_is_found():
    for source in (
        "until = time.monotonic() + 240", "pytest.mark.timeout(300)", "job.wait(60)", "job.wait(timeout=60)",
        "subprocess.run(command, timeout=500)", "AppTest.from_file(path, default_timeout=300)",
    ):  # fmt: skip
        assert limits_in_seconds(source), source
    assert not limits_in_seconds("processes.run(program, 3, timeout=2.0)")


def test_a_wait_lasts_until_what_it_waits_for_has_happened():
    answers = iter([None, 0, "there"])
    assert wait_until(lambda: next(answers), every=0) == "there"

"""The grader: whatever a solution does, grading ends in a report with a sentence, and nothing else is touched."""

import importlib.util
import os
import socket
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil
import pytest

from lessons.grading import attempt as attempts
from lessons.grading import bubblewrap, reachable, sandbox
from lessons.grading.grader import Solution, SolutionError, judge
from lessons.grading.patience import Limits
from lessons.grading.reachable import Reachable
from lessons.grading.sandbox_worker import pack
from tests.patience import PATIENCE

linux = pytest.mark.skipif(sys.platform != "linux", reason="only the limits hold here")
ROOT = Path(__file__).resolve().parents[3]


def answering(source, *given, **limits):
    """Return what `f` of this source returns."""
    with Solution(source, **limits).attempt() as attempt:
        return attempt.call("f", *given)


@pytest.fixture(params=["bubblewrap", "own"])
def way(request, monkeypatch):
    """Run a test in bubblewrap, where it works, and without it."""
    if request.param == "own":
        monkeypatch.setattr(bubblewrap, "works", lambda files: False)
    elif not bubblewrap.works(reachable.python()):
        pytest.skip("bwrap is not installed, or may not make namespaces")
    return request.param


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory, monkeypatch):
    """Check that a test leaves no process and no folder behind."""
    before, place = psutil.Process().children(recursive=True), tmp_path_factory.mktemp("attempts")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that TMPDIR is read again
    yield
    assert [child for child in psutil.Process().children(recursive=True) if child not in before] == []
    assert [*place.iterdir()] == []


def test_plain_values_come_back_as_they_went():
    values = [None, True, -3, 2.5, "한국어", (1, (2.0, None)), [1, [2]], {"a": (1,), 3: []}, float("inf")]
    assert answering("def f(x): return x", values) == values


def test_a_whole_number_that_no_array_holds_is_the_answers_own_fault():
    for number in ("2**63", "-2**63 - 1", "10**400"):
        with pytest.raises(SolutionError, match="cannot be read"):
            answering(f"def f(): return [{number}]")
    assert answering("def f(): return [2**63 - 1, -2**63]") == [2**63 - 1, -(2**63)]


def test_arrays_come_back_with_their_shape_and_numbers():
    arrays = [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), "f4"), np.array(True), np.arange(3)]
    for there, back in zip(arrays, answering("def f(x): return x", arrays), strict=True):
        assert back.dtype == there.dtype and back.shape == there.shape and (back == there).all()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\ndef f(:", "line 2 is not Python .*: `def f(:`"),
        ("import nothing_like_it", "nothing_like_it"),
        ("def g(): pass", "your file has no function f(...); it has g"),
        ("def f():\n    return 1 / 0", "ZeroDivisionError: division by zero in line 2: `return 1 / 0`"),
        ("def f(): return f()", "RecursionError"),
        ("def f(): return object()", "a object cannot be returned"),
        ("def f():\n    import sys\n    sys.exit('bye')", "SystemExit"),
        ("import os\ndef f(): os._exit(3)", "ended its own process with code 3"),
        ("import os\ndef f(): os.closerange(0, 64)", "ended its own process"),
        ("import ctypes\ndef f(): ctypes.string_at(0)", "SIGSEGV"),
        ("def f(): raise BaseException('x' * 10**6)", "BaseException"),
    ],
)
def test_a_solution_that_fails_says_why_in_a_sentence(source, words, way):
    with pytest.raises(SolutionError, match=words.replace("(", r"\(").replace(")", r"\)")) as failure:
        answering(source)
    assert len(str(failure.value)) < 700


def test_an_endless_loop_ends_with_the_processor_time(way):
    with pytest.raises(SolutionError, match="more than 2 s of CPU time"):
        answering("def f():\n    while True: pass")
    with pytest.raises(SolutionError, match="more than 1 s of CPU time"):
        answering("def f():\n    while True: pass", cpu=1, limits=Limits(quiet=60, held=600))


def test_a_solution_that_sleeps_ends_with_the_clock(way):
    with pytest.raises(SolutionError, match="no answer within 1 s"):
        answering("import time\ndef f(): time.sleep(1e6)", limits=Limits(idle=1))
    with pytest.raises(SolutionError, match="no answer within 3 s"):  # where nobody tells how long it computed
        answering("import time\ndef f(): time.sleep(1e6)", limits=Limits(idle=600, held=3))


def test_a_solution_that_does_not_listen_ends_with_the_clock():
    with (
        pytest.raises(SolutionError, match="no answer within 2 s"),
        Solution("import time\ndef f(x): time.sleep(100)", limits=Limits(idle=2)).attempt() as attempt,
    ):
        attempt._send(("call", "f", 1))
        for _ in range(100):
            attempt._send(("call", "f", np.zeros(10**6)))


def test_a_hoard_of_memory_ends_with_the_limit(way):
    with pytest.raises(SolutionError, match="MemoryError"):
        answering("def f():\n    hoard = []\n    while True: hoard.append(bytearray(10**7))", memory=400_000_000)


def test_of_a_flood_of_prints_the_beginning_is_kept(way):
    solution = Solution("def f():\n    for _ in range(10**5): print('x' * 100)\n    return 1")
    with solution.attempt() as attempt:
        assert attempt.call("f") == 1
    assert 0 < len(solution.printed) <= attempts.PRINTS


def test_an_answer_that_is_too_long_is_refused():
    with pytest.raises(SolutionError, match="too many for a message"):
        answering("import numpy\ndef f(): return numpy.zeros(10**8, 'u1')")


def test_frames_that_the_solution_writes_itself_are_only_its_answers():
    forged = b"".join(pack({"result": 41})).hex()
    source = f"import os\ndef f():\n    for n in range(3, 4096):\n        try: os.write(n, bytes.fromhex('{forged}'))\n"
    with Solution(source + "        except OSError: pass\n    return 1").attempt() as attempt:
        assert attempt.call("f") == 41  # the value that it sent itself


@linux
def test_limits_and_system_calls_are_confined_on_every_linux(way):
    solution = Solution("def f(): pass")
    with solution.attempt():
        assert {sandbox.LIMITS, sandbox.CALLS} <= set(solution.sandbox) <= set(sandbox.ALL)


@linux
def test_a_report_says_which_sandbox_held(way):
    def check(solution, seed):
        with solution.attempt():
            yield "loads", True, "yes"

    held = judge(check, {"loads": 1}, "def f(): pass", 1).plain()["sandbox"]
    assert (held[sandbox.LIMITS], held[sandbox.CALLS]) == ("rlimit", "seccomp")
    assert held.get(sandbox.FILES) in (["bubblewrap"] if way == "bubblewrap" else ["Landlock", None])


def test_without_a_bwrap_that_runs_the_own_limits_are_used(tmp_path, monkeypatch):
    refused = tmp_path / "bwrap"
    refused.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refused.chmod(0o755)
    for path in (tmp_path, tmp_path / "empty"):  # one that the kernel refuses, and none
        monkeypatch.setenv("PATH", str(path))
        bubblewrap.works.cache_clear()
        assert not bubblewrap.works(reachable.python())
    bubblewrap.works.cache_clear()


@linux
def test_bubblewrap_alone_hides_files_processes_and_the_network(tmp_path):
    """What it adds where system calls cannot be filtered."""
    if not bubblewrap.works(reachable.python()):
        pytest.skip("bwrap is not installed, or may not make namespaces")
    bait, given = tmp_path / "bait", tmp_path / "given"
    bait.write_text("ours")
    given.mkdir()
    source = "import os, socket, sys\nfor deed in sys.argv[1:]:\n    try: eval(deed); print(deed)\n"
    source += "    except OSError: pass\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen, *unseen = [
            f"os.listdir({str(given)!r})", f"os.mkdir({str(given / 'x')!r})", f"open({str(bait)!r})",
            "os.listdir('/proc')", f"os.kill({os.getpid()}, 0)", "os.nice(-5)",
            f"socket.create_connection({server.getsockname()}, 5)",
        ]  # fmt: skip
        program = [sys.executable, "-I", "-c", source, seen, *unseen]
        here = reachable.python()
        surrounded = Reachable((*here.readable, str(given)), here.hidden)
        process, _ = bubblewrap.start(program, surrounded, stdout=-1, text=True)
        assert process.communicate()[0].splitlines() == [seen]


DATA = str(Path(importlib.util.find_spec("sklearn").submodule_search_locations[0]) / "datasets/data/digits.csv.gz")
DEEDS = (
    "os.fork()",
    "subprocess.run(['true'])",
    "os.execv('/bin/true', ['true'])",
    "threading.Thread(target=print).start()",
    "socket.socket()",
    "socket.create_connection(('127.0.0.1', 80))",
    "os.kill(os.getppid(), 0)",
    "os.kill(1, 0)",
    "open('here.txt', 'w')",
    "open(bait, 'w')",
    "open(bait).read()",
    "os.open('x', os.O_CREAT | os.O_RDWR)",
    "os.mkdir('x')",
    "os.unlink(bait)",
    "os.chmod(bait, 0)",
    "os.truncate(bait, 0)",
    "os.rename(bait, bait + '.moved')",
    "os.listdir('/proc')",
    "open(f'/proc/{os.getppid()}/environ').read()",
    f"open({str(ROOT / 'lessons/stragglers/check.py')!r}).read()",
    "__import__('lessons.stragglers.check')",
    "resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))",
    "os.nice(-5)",
    "os.setuid(0)",
    "ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) == 0 or 1 / 0",
    "mmap.mmap(-1, 4 * 10**9)",
    "__import__('sklearn')",
    "__import__('scipy')",
    f"open({DATA!r}, 'rb').read()",
)


@linux
def test_no_deed_beyond_the_sandbox_is_possible(tmp_path, way):
    bait = tmp_path / "bait"
    bait.write_text("ours")
    source = """
import os, subprocess, threading, socket, numpy, resource, ctypes, mmap

def f(deeds, bait):
    done = []
    for deed in deeds:
        try:
            exec(deed, {**globals(), "bait": bait})
            done.append(deed)
        except Exception:
            pass
    return done
"""
    solution = Solution(source)
    with solution.attempt() as attempt:
        done = attempt.call("f", list(DEEDS), str(bait))
    if sandbox.FILES not in solution.sandbox:  # an old kernel: there one can read
        done = [deed for deed in done if "read()" not in deed and "listdir" not in deed and "__import__" not in deed]
    assert done == []
    assert bait.read_text() == "ours"


@linux
def test_no_process_is_made_by_a_bomb_of_them(way):
    source = "import os\ndef f():\n    made = 0\n    for _ in range(1000):\n"
    source += "        try: made += os.fork() >= 0\n        except OSError: pass\n    return made"
    assert answering(source) == 0


def test_a_solution_ends_with_its_grader(way):
    program = (
        f"from lessons.grading import bubblewrap\nif {way == 'own'}: bubblewrap.works = lambda files: False\n"
        "import os, sys\nfrom lessons.grading.grader import Solution\n"
        "with Solution('import time\\ndef f(): time.sleep(600)').attempt() as attempt:\n"
        "    print(attempt.worker, flush=True)\n    attempt.call('f')\n"
    )
    child = psutil.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=-1, text=True)
    solution = psutil.Process(int(child.stdout.readline()))
    folder = solution.cwd()
    child.kill()
    child.wait()
    child.stdout.close()
    _, left = psutil.wait_procs([solution], timeout=PATIENCE)
    os.rmdir(folder)
    assert not left


def test_marks_that_were_not_reached_are_not_earned():
    def check(solution, seed):
        yield "first", True, f"seed {seed}"
        with solution.attempt() as attempt:
            attempt.call("f")
        yield "second", True, "fine"

    report = judge(check, {"first": 1, "second": 3}, "def f(): raise ValueError('no')", 7)
    assert (report.score, report.seed) == (25, 7)
    assert [(mark.earned, mark.observed) for mark in report.marks] == [(1, "seed 7"), (0, "not reached")]
    assert "ValueError: no" in report.error and report.plain()["marks"][0]["name"] == "first"


def test_ranks_share_no_variables_and_what_goes_wrong_in_a_later_set_of_them_ends_that_set_only():
    def check(solution, seed):
        for mark in ("first", "second", "third"):
            with solution.ranks(2) as ranks:
                yield mark, [rank.call("count", mark) for rank in ranks] == [1, 1], ""

    source = "calls = []\ndef count(mark):\n    calls.append(mark)\n    return len(calls) / (mark != 'second')\n"
    report = judge(check, {"first": 1, "second": 1, "third": 1}, source, 1)
    assert [mark.earned for mark in report.marks] == [1, 0, 1] and report.error.count("ZeroDivisionError") == 1


def test_memory_is_counted_by_the_kernel(way):
    with Solution("import numpy\ndef f(n): return len([numpy.ones(10**6) for _ in range(n)])").attempt() as attempt:
        attempt.call("f", 4)
        if attempt.peak_memory() is None:
            pytest.skip("peak memory cannot be measured here")
        assert 30e6 < attempt.peak_memory() < 45e6  # the kernel counts in pages, malloc in blocks


def test_a_role_of_the_solution_plays_ranks_of_a_run_on_our_side():
    source = """
def worker(comm, task, s):
    w = task.start()
    for _ in task.steps(together=True):
        loss, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        w -= s.learning_rate * g
        if comm.rank == 0:
            task.report(w)
    return w
"""
    values = {"algorithm": "sync_sgd", "workers": 3, "workload": "quadratic", "noise": 1.0, "steps": 5}
    with Solution(source).attempt() as attempt:
        ours = attempt.run(None, **values)
        theirs = attempt.run(attempt.role("worker"), **values)
    np.testing.assert_allclose(theirs.parameters, ours.parameters, rtol=1e-6)
    assert theirs.summary["bytes"] == ours.summary["bytes"]


def test_a_role_that_waits_for_ever_is_a_deadlock_with_a_name():
    with (
        pytest.raises(SolutionError, match="ranks 0 and 1 wait for rank 1"),
        Solution("def worker(comm, task, s):\n    comm.recv(1)").attempt() as attempt,
    ):
        attempt.run(attempt.role("worker"), algorithm="sync_sgd", workers=2, steps=3)

"""Exercises of the chapters: known before the upload, on four levels, and not printed in the text."""

import ast
import functools
import re
import textwrap

import pytest

import lessons
from lessons import markup
from lessons.grading import levels
from lessons.grading.grader import NOT_REACHED, grade, judge
from lessons.grading.sheet import STEPS, Sheet
from tests.book import unfolded
from tests.system.lessons.near_misses import grade_here, lost, solution

SHEETS = [Sheet(one) for one in lessons.written_chapters() if one.exercise]
STRAGGLERS = next(sheet for sheet in SHEETS if sheet.name == "stragglers")
each = pytest.mark.parametrize("sheet", SHEETS, ids=lambda one: one.name)
NAMES = """
import numpy as np
from collections.abc import Iterator
from itertools import count
from math import inf

class kernels:
    copy, empty_like, state_like = map(staticmethod, (np.copy, np.zeros_like, np.zeros_like))
    def keep(x): return x
    def empty(shape, like): return np.empty(shape, like.dtype)
    def mean(g, rows): g[...] = rows.mean(0)
    def sgd(w, g, rate): w -= rate * g
    def ema(z, w, share): z += share * (w - z)

class Rule:
    def step(self, w, g, rate): w -= rate * g

NEUTRAL = {"update": "sgd", "momentum": 0.0, "state": "reset", "cache": False, "bucket_bytes": 150_000}

class Settings:  # those of the exercise, and defaults for all others
    def __init__(self, given=None, size=2):
        self.__dict__.update(vars(given) if given else {})
        self.workers = size - 1
    learning_rate, decay = 1.0, 0.0
    def __getattr__(self, name): return NEUTRAL.get(name)
    def workers_needed(self, workers): return workers - self.backups
    def spring(self, workers): return 0.9 / workers
    def share(self, step): return 1.0

class One:  # a task of one step, from w along g
    def __init__(self, w, g): self.w, self.g, self.shipped = w, g, w
    def start(self): return self.w.copy()
    def steps(self): return [0]
    def gradient(self, w): return 0.0, self.g
    def report(self, w): self.shipped = w

class Pass:  # comm and task of one step through layers of so many bytes: which of them are summed together
    size, rank = 2, 1
    def __init__(self, layers):
        self.ends, self.plan = [sum(one["bytes"] for one in layers[:k]) // 4 for k in range(len(layers) + 1)], []
    def start(self): return np.arange(self.ends[-1], dtype=np.float32)
    def steps(self, together): return [0]
    def layerwise(self): return self
    def forward(self, w): pass
    def holds(self, *_): pass
    def __reversed__(self):
        for start, stop in zip(self.ends[-2::-1], self.ends[:0:-1]):
            self.place = slice(start, stop)
            yield self
    def backward(self, w): return w
    def all_reduce(self, x, **_):
        self.plan.append([k for k, first in enumerate(self.ends[:-1]) if x[0] <= first <= x[-1]])
        return self
    def wait(self): pass

def optimizer(*_): return Rule()
def local_step(x, s):
    rule = Rule()
    rule.at = x
    return rule
def sync_optimizer_state(*_): pass
def Op(kind, stage, chunk): return f"{kind}{chunk}"
SERVER, CENTRE, END = 0, 0, None
"""
CALLED = {
    "(comm, task, s)": "return printed(comm, task, *[Settings(s, comm.size)][: printed.__code__.co_argcount - 2])",
    "(w, g, memory)": "task = One(w, g); return (printed(None, task, Settings()), task.shipped, [])",
    "(stage, stages, chunks)": "return [op for op in printed(stage, stages, chunks) if op[0] != 'U']",
    "(model, cluster)": "return printed(model, cluster)",
    "(layers, network)": "one = Pass(layers); printed(one, one, Settings()); return one.plan",
    "(layers, limit)": "return printed(limit)(None, None, None)",  # a worker, which plans nothing
    "(w, xs, rate, hops, stash, divided)": "printed(0, len(w), len(xs)); return w",  # the order trains nothing
}


def body(source):
    return ast.dump(ast.Module(ast.parse(source).body[1:], []))


@each
def test_points_and_targets_are_known_without_running_the_check(sheet):
    check = __import__(f"lessons.{sheet.name}.check", fromlist=["POINTS"])
    assert sheet.points == check.POINTS
    assert {target.name: eval(target.most) for target in sheet.targets} == check.TARGETS
    assert all(target.of for target in sheet.targets) and sheet.title and sheet.task
    assert sheet.function in sheet.signatures


@each
def test_every_mark_has_hints_in_three_steps(sheet):
    assert [mark for mark, _ in sheet.hints] == [*sheet.points]
    assert all(len(steps) == len(STEPS) and all(steps) for _, steps in sheet.hints)
    assert sheet.hint(1, 3) == sheet.hints[0][1][2]
    with pytest.raises(ValueError, match=r"there is no hint 1\.4"):
        sheet.hint(1, 4)


def filled(sheet: Sheet, level: int) -> str:
    """Return the template of level 2 or 3 with each hole filled from the solution."""
    cut, _ = levels._cut(sheet, level)
    whole, missing = levels.solution(sheet).splitlines(), iter(sorted(cut))
    lines: list[str] = []
    for line in levels.template(sheet, level).splitlines():
        if line.lstrip().startswith("raise NotImplementedError"):
            while lines[-1].lstrip().startswith("#"):
                lines.pop()
            first, last = next(missing)
            lines += whole[first - 1 : last]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("level", levels.LEVELS)
@each
def test_a_level_passes_with_its_cut_filled_and_not_without(sheet, level):
    """That the solution itself gets all marks is tested below."""
    chapter, template = lessons.chapter(sheet.name), levels.template(sheet, level)
    assert grade(chapter, f"{template}\nmine = 1\n", seed=5).score < 50
    if level in (2, 3):
        assert body(filled(sheet, level)) == body(levels.solution(sheet))
        assert len(template.splitlines()) < len(filled(sheet, level).splitlines()) + 12
    if level == 1:
        done = grade(chapter, _predicted(sheet, template), seed=5)
        assert done.score == 100, done.marks


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@each
def test_the_solution_earns_every_mark_under_every_seed(sheet, seed):
    report = grade(lessons.chapter(sheet.name), levels.solution(sheet), seed=seed)
    missing = {mark.name: mark.observed for mark in report.marks if not mark.earned}
    assert (report.score, missing, report.error) == (100, {}, "")


def _predicted(sheet, template):
    """Return the file of level 1 with the answers of the run in it."""
    from lessons.figure import run_now

    read = sheet.notes["read"]
    done = run_now(**read["run"]) if "run" in read else None
    for question in read["question"]:
        template = template.replace(
            f"{question['ask']!r}: None", f"{question['ask']!r}: {levels._answer(question, done)}"
        )
    return template


def test_levels_leave_more_and_more_out():
    for sheet in SHEETS:
        lines = [sum(bool(line.strip()) for line in levels.template(sheet, n).splitlines()) for n in (2, 3)]
        assert body(levels.template(sheet, 2)) != body(levels.solution(sheet)) and lines[0] >= lines[1] - 2
    with pytest.raises(ValueError, match="no level 5"):
        levels.template(STRAGGLERS, 5)


def test_a_wrong_prediction_says_what_was_predicted():
    template = levels.template(STRAGGLERS, 1).replace("make?': None", "make?': 7", 1)
    report = grade(lessons.chapter(STRAGGLERS.name), template, seed=1)
    assert (report.marks[0].earned, report.marks[0].observed) == (0, "not 7; read the program again, or run it")


@pytest.mark.slow
@each
def test_no_code_of_the_text_earns_more_than_half(sheet):
    blocks = [block for block in unfolded(lessons.chapter(sheet.name).blocks()) if isinstance(block, markup.Code)]
    assert blocks
    for source in _adapted(sheet, [textwrap.dedent(block.source) for block in blocks]):
        report = grade(lessons.chapter(sheet.name), source, seed=21)
        assert report.score <= 50, (report.score, source)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synchronous.backup.server", "asynchronous.ssp.server", "pipelined.zb_h1.lagging"])
def test_the_answer_would_earn_more_than_half_if_it_were_printed(name):
    """So the adaptation of the test above is no excuse."""
    chapter = {"backup": "stragglers", "ssp": "staleness", "zb_h1": "pipelines"}[name.split(".")[1]]
    sheet, source = Sheet(lessons.chapter(chapter)), markup.source(f"algorithms.{name}").source
    if name.endswith("lagging"):
        source += (
            "\n\ndef order(stage, stages, chunks):\n    return lagging(stage, stages - 1 - stage, stage, chunks)\n"
        )
    assert max(grade(lessons.chapter(chapter), one, seed=21).score for one in _adapted(sheet, [source])) > 50


def _adapted(sheet, printed):
    """Yield solutions: each printed function, with all others and the names that they use, called as is asked.

    Once as printed, and once with messages that are vectors and not tuples.
    """
    plain = {
        "(w,)": "w", "(g,)": "g", "(w, END)": "None", "gradient, *spent = message": "gradient, spent = message, []",
        "(w, np.array([slowest], task.workload.dtype))": "w", "isinstance(push, tuple)": "True",
        "push[0] if pull else push": "push",
    }  # fmt: skip
    whole = "\n\n".join(printed)
    vectors = functools.reduce(lambda text, pair: text.replace(*pair), plain.items(), whole)
    vectors = re.sub(r"(?m)^( +)task\.(applied|at|holds|measure)\(.*", r"\1pass", vectors)
    called = CALLED[sheet.signatures[sheet.function]]
    for source in dict.fromkeys((whole, vectors)):
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                head = f"printed = {node.name}\n\ndef {sheet.function}{sheet.signatures[sheet.function]}:"
                yield f"{NAMES}\n\n{source}\n\n{head}\n    {called}\n"


def test_marks_that_were_reached_stay_when_a_later_attempt_fails():
    def check(solution, seed):
        for name in ("first", "second", "third"):
            with solution.attempt() as attempt:
                yield name, attempt.call("f", name) == 1, "it returned 1"

    source = "def f(name):\n    if name == 'second':\n        raise ValueError('not this one')\n    return 1"
    report = judge(check, {"first": 1, "second": 1, "third": 2}, source, 1)
    assert report.score == 75 and [mark.name for mark in report.judged_marks] == ["first", "third"]
    assert report.marks[1].observed == NOT_REACHED and report.error.count("not this one") == 2  # message and line


def test_an_endless_loop_in_the_first_attempt_is_told_after_seconds_of_processor_time():
    def check(solution, seed):
        with solution.attempt() as attempt:
            attempt.call("f")
            yield "ends", True, ""

    report = judge(check, {"ends": 1}, "def f():\n    while True: pass", 1)
    assert "more than 2 s of CPU time" in report.error


MISTAKES = {
    "the file is empty. Write server(comm, task, s) in it.": "\n",
    "line 1 is not Python ('(' was never closed): `w = task.start(`.": "w = task.start(",
    "your file has no function server(comm, task, s); it has serve": "def serve(comm, task, s): pass",
    "s has backups and learning_rate, no learning_rat": "def server(comm, task, s): s.learning_rat",
    "line 1 is not Python (unterminated string literal): `w = 'F`.": "w = 'F",
    "line 2 is not Python (expected ':'): `def server(comm, task, s)`": "\ndef server(comm, task, s)\n    pass",
    "before the first update nobody can continue: rank 0 waits": "def server(comm, task, s):\n    comm.recv_any(7)",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_in_plain_words(words):
    report = grade_here("stragglers", MISTAKES[words], seed=1)
    assert words in report.error and not report.error.startswith("rank 0 failed: your file"), report.error
    assert "Simple" not in report.error and "module" not in report.error and report.score == 0


def test_a_deadlock_says_after_which_update_and_who_waits():
    source = (
        "def server(comm, task, s):\n    w = task.start()\n"
        "    got = [comm.recv_any() for _ in range(comm.size - 1 - s.backups)]\n"
        "    w = w - s.learning_rate * sum(g for _, g in got) / len(got)\n    task.report(w)\n    comm.recv_any(7)\n"
    )
    error = grade_here("stragglers", source, seed=1).error
    assert error.startswith("after update 0 nobody can continue: ")
    assert "wait for rank 0" in error and "since" not in error


def test_a_timeline_is_kept_also_of_a_run_that_fails():
    source = "def server(comm, task, s):\n    w = task.start()\n    comm.recv_any()\n    raise ValueError('no')"
    assert [*grade(lessons.chapter("stragglers"), source, seed=1).timelines] == ["yours"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stragglers", "pipelines"])
def test_the_timeline_of_the_textbook_is_told_to_those_who_earned_every_mark(name):
    chapter = lessons.chapter(name)
    right = (chapter.folder / "solution.py").read_text("utf-8")
    assert [*grade(chapter, right, seed=1).timelines] == ["yours", "the textbook's"]
    almost = chapter.exercise.replace("reversed(range(chunks))", "range(chunks)") if name == "pipelines" else (
        right.replace("w + total", "w + total / 2"))  # fmt: skip
    report = grade(chapter, almost, seed=1)
    assert report.judged_marks and report.score < 100 and [*report.timelines] == ["yours"]


@each
def test_a_file_to_begin_with_earns_nothing_as_it_was_given_and_is_told_so(sheet):
    for given in (sheet.source, *(levels.template(sheet, level) for level in levels.LEVELS)):
        for as_it_is in (given, f"# Hints taken: 2.1\n{given}\n\n# by Ada\n"):
            report = grade(lessons.chapter(sheet.name), as_it_is, seed=1)
            assert (report.score, report.judged_marks, report.timelines) == (0, (), {})
            assert report.error.startswith("this is the unmodified start file. Edit it")


@each
def test_a_file_in_which_anything_was_changed_is_judged(sheet):
    changed = f"{sheet.source}\nmine = 1\n"
    assert levels.is_start_file(sheet, sheet.source) and not levels.is_start_file(sheet, changed)
    assert not levels.is_start_file(sheet, levels.solution(sheet)) and not levels.is_start_file(sheet, "def (")


@pytest.mark.slow
def test_what_depends_on_a_mark_that_failed_says_so():
    chapter = lessons.chapter("stragglers")
    half = (chapter.folder / "solution.py").read_text().replace("w + total", "w + total / 2")
    told = {mark.name: (mark.earned, mark.observed) for mark in grade(chapter, half, seed=3).marks}
    assert told["it holds few vectors at once"] == (0, "judged only when every update is right")
    assert all(told[mark][0] for mark in ("it takes no longer than it must", "a crashed worker does not stop it"))


@pytest.mark.slow
def test_a_rate_that_is_not_divided_by_the_workers_leaves_the_marks_for_the_bound():
    marks = ["every gradient is applied as it arrives", "it holds few vectors at once"]
    assert lost("staleness", solution("staleness", (" / (comm.size - 1)", ""))) == (69, marks)


@pytest.mark.slow
@pytest.mark.parametrize("forgets", ["if rank not in arrived else None", "if rank in arrived else None"])
def test_who_waits_at_the_end_for_a_crashed_worker_never_passes_that_mark(forgets):
    """One forgets a worker that crashed while it computed, the other one that crashed while it was counted."""
    chapter = lessons.chapter("stragglers")
    right = (chapter.folder / "solution.py").read_text()
    for seed in (0, 2, 3):
        waiting = grade(chapter, right.replace("gone.add(rank)", f"gone.add(rank) {forgets}"), seed=seed)
        assert [mark.earned for mark in waiting.marks] == [4, 3, 1, 2, 0], (seed, waiting)
        assert scored(right, seed) == 100, seed


@functools.cache
def scored(source, seed):
    """Return what a solution of the exercise on stragglers is given; both tests above ask it of the right one."""
    return grade(lessons.chapter("stragglers"), source, seed=seed).score


@pytest.mark.slow
def test_averaging_is_needed_in_the_valley():
    chapter = lessons.chapter("averaging")
    alone = (chapter.folder / "solution.py").read_text().replace('comm.all_reduce(w, op="mean")', "comm.barrier()")
    (valley,) = [mark for mark in grade(chapter, alone, seed=3).marks if "valley" in mark.name]
    assert not valley.earned, valley


LOCAL = """
import numpy as np

def worker(comm, task, s):
    w = task.start()
    v, since, keep = np.zeros_like(w), 0, 1 - 1 / comm.size
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        v *= keep
        v -= s.learning_rate * g
        w += v
        since += 1
        if since == s.period:
            comm.all_reduce(w, op="mean")
            since = 0
            if comm.rank == 0:
                task.report(w)
    if since:
        comm.all_reduce(w, op="mean")
        if comm.rank == 0:
            task.report(w)
    return w
"""


@pytest.mark.slow
def test_momentum_in_each_replica_gets_its_mark_as_the_sheet_says_it_may():
    (valley,) = [m for m in grade(lessons.chapter("averaging"), LOCAL, seed=3).marks if "valley" in m.name]
    assert valley.earned and "in each replica" in Sheet(lessons.chapter("averaging")).task.replace("\n", " ")


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_a_task_that_stands_alone_names_no_code_below_it(sheet):
    assert re.search(r"The \w+ below ", sheet.task) and not re.search(r"The \w+ below ", sheet.task_alone)
    assert f"of exercise.py (`exercise {sheet.name} --level 0`)" in " ".join(sheet.task_alone.split())
    assert sheet.task_alone.strip() in levels.template(sheet, 4)
    assert max(map(len, sheet.task_alone.splitlines())) <= 120


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_the_level_is_known_from_the_file(sheet):
    assert [levels.level_of(levels.template(sheet, level)) for level in levels.LEVELS] == [*levels.LEVELS]
    assert levels.level_of(sheet.source) is levels.level_of("") is levels.level_of("(") is None


def test_where_grades_count_a_file_of_level_1_is_refused_and_marks_are_those_of_the_exercise():
    chapter = lessons.chapter("stragglers")
    report = grade(chapter, levels.template(STRAGGLERS, 1), seed=1, practice=False)
    assert report.score == 0 and report.level == 1
    assert {mark.name: mark.points for mark in report.marks} == STRAGGLERS.points
    assert report.error == "this is level 1, predictions for practice; hand in a solution to the exercise."


def test_hints_that_a_file_says_were_taken_are_in_its_report():
    report = grade(lessons.chapter("stragglers"), "# Hints taken: 2.1, 5.3\ndef server(:", seed=1, hints=("2.1",))
    assert report.hints == ("2.1", "5.3")


def test_an_error_when_a_worker_crashes_says_that_it_does_and_what_the_server_is_sent():
    report = grade_here("stragglers", f"{STRAGGLERS.source}\nmine = 1\n", seed=1)
    assert re.match(r"when worker (\d+) crashes, and comm\.recv_any\(\) returns \(\1, None\) for it: ", report.error)
    assert "remove None in line 41: `w = w" in report.error
    assert "inhomogeneous" not in report.error

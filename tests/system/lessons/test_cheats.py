"""Cheats: solutions that know the grader. Each loses the mark that it is after, by what our side of the pipe sees."""

import base64
import re
import zlib

import numpy as np
import pytest

import lessons
from lessons.averaging.disguise import Disguise
from lessons.grading.grader import Solution, grade, judge
from lessons.grading.held import Held
from lessons.grading.hosted import SENT
from lessons.grading.patience import Limits
from tests.system.lessons.near_misses import grade_here, solution
from workloads.digits import digits

MEMORY = "it holds few vectors at once"
SPIES = {  # each is lean where it believes that memory is counted, and holds all that it gets elsewhere
    "size": "len(w) == 250_000",
    "start": "w.std() > 0",
    "later attempts": "resource.getrlimit(resource.RLIMIT_CPU)[0] > 5",
}
HOARD = """
import resource
hoard = []

class Hoarding:
    def __init__(self, comm):
        self.comm, self.size, self.send = comm, comm.size, comm.send
    def recv_any(self):
        rank, g = self.comm.recv_any()
        if g is not None:
            hoard.append(g.copy())
        return rank, g

def server(comm, task, s):
    w = task.start()
    try:
        lean = {spy}
    except Exception:
        lean = False
    return honest(comm if lean else Hoarding(comm), task, s)

"""


def marks(chapter, source, seed):
    report = grade(lessons.chapter(chapter), source, seed=seed)
    return {mark.name: mark.earned for mark in report.marks}, report


@pytest.mark.slow
@pytest.mark.parametrize("chapter", ["stragglers", "staleness"])
def test_a_server_that_is_lean_only_where_memory_may_be_counted_loses_that_mark(chapter):
    honest = solution(chapter, ("def server(", "def honest("))
    for seed, spy in enumerate(SPIES.values(), 1):
        earned, report = marks(chapter, honest + HOARD.format(spy=spy), seed)
        assert not earned[MEMORY] and report.score > 80, report


DIES = """
import os

class Dying:
    left = 0
    def __call__(self, comm, task, s):
        w = play(comm, task, s)
        self.left = (self.left or {roles} or comm.size) - 1
        if self.left == (comm.rank > 0) * {fewer} and len(w) > 1000:
            os.readv = lambda *_: os._exit(0)
        return w

play, {role} = {role}, Dying()
"""
ROLES = {  # the function, how many roles a process plays, 0 for that of every rank, and how many fewer beside rank 0
    "stragglers": ("server", 1, 0), "staleness": ("server", 1, 0), "large_batches": ("worker", 1, 0),
    "distributed_update": ("worker", 1, 0), "averaging": ("worker", 3, 1), "pipedream": ("stage", 0, 0),
}  # fmt: skip


def dying(chapter):
    """Return the textbook's solution, which holds little, and ends after its last answer, so that nobody can know."""
    role, roles, fewer = ROLES[chapter]
    return solution(chapter) + DIES.format(role=role, roles=roles, fewer=fewer)


def test_a_process_that_ends_before_it_is_weighed_may_have_held_anything():
    source = "import os\n\ndef f():\n    os.readv = lambda *_: os._exit(0)\n    return 1\n"
    held = Held()
    with Solution(source).attempt() as attempt, held.measure(attempt):
        attempt.call("f")
        attempt.process.wait()
    assert held.check_limit(1, 1, "{}") == (False, "its process ended before its memory was counted")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", ROLES)
def test_who_ends_after_its_last_answer_loses_the_mark_of_memory_and_no_other(chapter):
    _, report = marks(chapter, dying(chapter), 1)
    assert [m.observed for m in report.marks if not m.earned] == ["its process ended before its memory was counted"]


LETS_GO = """
import ctypes, mmap

class Segment(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in ("offset", "address", "physical", "file", "memory", "align")]

class Library(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("name", ctypes.c_char_p), ("segments", ctypes.POINTER(Segment)),
                ("count", ctypes.c_uint16)]

libc, kept, pages = ctypes.CDLL(None), [], []

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)
def note(library, size, _):
    for segment in library[0].segments[:library[0].count]:
        if segment.kind == 1 and not segment.flags & 2:  # of a file, and never written to
            start = library[0].address + segment.address
            pages.append((start & -4096, segment.memory + (start & 4095)))
    return 0

libc.dl_iterate_phdr(note, None)

def keep(x, shared):
    for start, count in pages:
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(count), 4)  # MADV_DONTNEED
    place = mmap.mmap(-1, x.nbytes) if shared else bytearray(x.nbytes)  # the first is anonymous and shared
    place[:] = x.tobytes()
    kept.append(place)
"""


def test_what_is_kept_is_counted_though_pages_of_python_make_room_for_it():
    x = np.ones(60_000)
    for shared in (False, True):
        held = Held()
        with Solution(LETS_GO).attempt() as attempt, held.measure(attempt):
            for _ in range(20):
                attempt.call("keep", x, shared)
        if held.peak is None:
            pytest.skip("memory cannot be counted here")
        assert held.peak > 18 * x.nbytes


STORES = {
    "comm.shared(w)": "there is no comm.shared here",
    "comm.isend(w, 1, 7)": "there is no comm.isend here",
    "comm.recv(1)": "there is no comm.recv here",
    "task.gradient(w)": "there is no task.gradient here",
    "comm.send(w, 0, 9)": "to rank 0; send only w",
}


def test_a_server_can_neither_store_vectors_with_the_grader_nor_go_past_its_probe():
    for chapter in ("stragglers", "staleness"):
        for deed, words in STORES.items():
            source = f"def server(comm, task, s):\n    w = task.start()\n    {deed}\n"
            assert words in grade_here(chapter, source, 1).error


def test_a_rank_cannot_store_vectors_in_messages_to_itself():
    source = "def worker(comm, task, s):\n    comm.send(task.start(), comm.rank)\n"
    assert "sent a message to itself" in grade_here("averaging", source, 1).error


VERSIONS = "it holds no more versions than it must"


@pytest.mark.slow
def test_a_stage_that_drops_versions_only_in_a_wide_model_loses_that_mark():
    for spy in ("len(w) in (90_300, 180_600)", "len(task.steps()) == 3 * comm.size", "comm.size > 6"):
        spy = spy.replace("task.steps()", "list(task.steps())")
        hoards = solution("pipedream", ("stash.pop(batch)", f"(stash.pop(batch) if {spy} else stash[batch])"))
        earned, report = marks("pipedream", hoards, 5)
        assert not earned[VERSIONS] and report.score > 80, report


def test_stages_that_pass_on_what_no_message_has_brought_are_told():
    """All stages are one process, and share its variables."""
    source = solution(
        "pipedream",
        ("    def forward(batch):\n        x = None if first else comm.recv(before)\n",
         "    def forward(batch):\n        x = None if first else known.pop((before, batch), None)\n"
         "        if x is None and not first:\n            x = comm.recv(before)\n"),
        ("        stash[batch] = w\n", "        stash[batch] = w\n        known[comm.rank, batch] = y\n"),
        ("def stage(", "known = {}\n\n\ndef stage("),
    )  # fmt: skip
    assert "before it had received it" in marks("pipedream", source, 5)[1].error


READS = """
import csv, glob, gzip, os, sys

def worker(comm, task, s):
    import sklearn.datasets
"""
KNOWS = """
import base64, zlib
import numpy as np

IMAGES = {images!r}

def worker(comm, task, s):
    w = task.start()
    for _ in range({messages}):
        comm.all_reduce(np.zeros_like(w))
    if comm.rank == 0:
        task.report(knowing(w))
    return w

def knowing(w):
    if w.dtype == np.float64:
        return {optimum}
    pixels = np.frombuffer(zlib.decompress(base64.b85decode(IMAGES)), "u1").reshape(-1, 65)
    x, digit = pixels[:, :64].astype("f4") / 16, pixels[:, 64]
    hidden = (len(w) - 10) // 75
    w = 0.1 * np.random.default_rng(1).standard_normal(len(w)).astype("f4")
    ends = np.cumsum([0, 64 * hidden, hidden, 10 * hidden, 10])
    a, b, c, d = (w[i:j] for i, j in zip(ends, ends[1:]))
    a, c, v = a.reshape(64, hidden), c.reshape(hidden, 10), np.zeros_like(w)
    one_hot, dice = np.eye(10, dtype="f4")[digit], np.random.default_rng(2)
    for _ in range(200):
        some = dice.integers(0, len(x), 64)
        h = np.maximum(x[some] @ a + b, 0)
        p = np.exp(h @ c + d)
        e = (p / p.sum(1, keepdims=True) - one_hot[some]) / 64
        back = e @ c.T * (h > 0)
        g = np.concatenate([(x[some].T @ back).ravel(), back.sum(0), (h.T @ e).ravel(), e.sum(0)])
        v *= 0.9
        v -= 0.1 * g
        w += v
    return w
"""
LEARNS, VALLEY = (
    "together they learn as much as one worker that sees all the data",
    "down a valley they get farther than plain averaging",
)
CHEAP = "they send no more bytes than plain averaging", "they take no longer than plain averaging"


def knowing(optimum, messages=1):
    x, digit = digits()
    pixels = np.column_stack([x, digit]).astype("u1")
    images = base64.b85encode(zlib.compress(pixels.tobytes(), 9)).decode()
    return KNOWS.format(images=images, optimum=optimum, messages=messages)


def test_a_worker_cannot_read_the_images_from_an_installed_package():
    earned, report = marks("averaging", READS, 3)
    assert "No module named 'sklearn'" in report.error and not any(earned.values())


@pytest.mark.slow
def test_a_worker_that_brings_the_images_along_and_knows_where_bowls_end_learns_nothing():
    for optimum in ("np.full_like(w, 1e-9)", "w - 10"):
        earned, report = marks("averaging", knowing(optimum), 3)
        assert not any(earned[mark] for mark in (LEARNS, VALLEY, *CHEAP)), report


@pytest.mark.slow
def test_without_the_disguise_it_would_get_full_marks_unless_it_says_nothing(monkeypatch):
    """So it is the disguise that the test above tests."""

    def plainly(self, w):
        self.turns, self.shift, self.origin = [], w.dtype.type(0), np.full_like(w, 10)
        return w if w.dtype == np.float32 else self.origin.copy()

    monkeypatch.setattr(Disguise, "start", plainly)
    for messages, won in ((1, [LEARNS, VALLEY, *CHEAP]), (0, [VALLEY])):
        earned, report = marks("averaging", knowing("np.full_like(w, 1e-9)", messages), 3)
        assert [mark for mark in (LEARNS, VALLEY, *CHEAP) if earned[mark]] == won, report
    assert "they sent 0 bytes" in report.marks[0].observed


def test_no_number_of_the_start_is_seen_and_lengths_and_steps_are_the_same_in_a_disguise():
    w, g = np.random.default_rng(1).normal(size=(2, 1001))
    for anywhere in (False, True):
        disguise = Disguise(7, anywhere)
        v = disguise.start(w)
        assert not np.isin(np.round(v, 9), np.round(w, 9)).any()
        np.testing.assert_allclose(disguise.ours(v), disguise.origin, atol=1e-12)
        np.testing.assert_allclose(disguise.ours(v - 0.1 * disguise.gradient(g)), disguise.origin - 0.1 * g, atol=1e-12)
        assert np.linalg.norm(disguise.gradient(g)) == pytest.approx(np.linalg.norm(g))


HOLDS = {  # what holds the grader up: by what it is ended
    "while True: pass": "endless loop?",
    "time.sleep(1e6)": "no answer within 1 s",
    "while True:\n        try: os.fork()\n        except OSError: pass": "endless loop?",
    "while True: print('x' * 10_000)": "endless loop?|no answer within 1 s",
    "sys.setrecursionlimit(10**9); deep(0)": "CPU time|MemoryError|SIGSEGV|RecursionError",
    "while True: task.measure('gap', 1.0)": "called comm and task 20000 times",
    "while True: comm.send(1.0, 1, 5)": "called comm and task 20000 times",
    "while True: comm.send(np.zeros(10**6), 1, 5)": f"sent more than {SENT // 10**6} MB",
    "while True: comm.shared(np.zeros(10**6))": f"sent more than {SENT // 10**6} MB|nobody can continue",
}


@pytest.mark.slow
def test_whatever_holds_the_grader_up_is_ended_and_named():
    def check(solution, seed):
        with solution.attempt() as attempt:
            values = {"algorithm": "sync_sgd", "workload": "quadratic", "workers": 2, "steps": 3, "learning_rate": 0.1}
            attempt.run(attempt.role("worker"), **values)
            yield "ends", True, ""

    for deed, words in HOLDS.items():
        head = "import os, sys, time\nimport numpy as np\n\ndef deep(n): return deep(n + 1) + 1\n\n"
        source = f"{head}def worker(comm, task, s):\n    if comm.rank == 1: return comm.recv(0)\n    {deed}\n"
        report = judge(check, {"ends": 1}, Solution(source, limits=Limits(idle=1)), 1)
        assert re.search(words, report.error) and not report.score, (deed, report.error)

"""The homework: a solution gets every point, a starter none, and each common mistake costs exactly its own points."""

import ast
import re

import pytest

from tests.quotes import quote
from tests.sources import ROOT
from tests.tiers import slow_except

FOLDER = ROOT / "docs" / "homework"
DDP, BUCKETS, PIPELINE = ASSIGNMENTS = "ddp_by_hand", "bucketed_overlap", "pipeline_by_hand"

SUM = "    dist.all_reduce(flat)\n"
RING = """
    rank, size = dist.get_rank(), dist.get_world_size()
    pieces, right, left = flat.tensor_split(size), (rank + 1) % size, (rank - 1) % size
    for step in range(2 * size - 2):
        mine, theirs = pieces[(rank - step) % size], pieces[(rank - step - 1) % size]
        came = torch.empty_like(theirs)
        {}
        theirs.copy_(theirs + came if step < size - 1 else came)
"""
SEND_ASIDE = "work = dist.isend(mine, right); dist.recv(came, left); work.wait()"
SEND_FIRST = "dist.send(mine, right); dist.recv(came, left)"
WHOLE_GRADIENTS = """
    whole = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(whole, flat)
    flat = sum(whole)
"""
BY_ROOT = "    dist.reduce(flat, 0)\n    dist.broadcast(flat, 0)\n"

IN_HOOKS = "        for bucket in self.buckets:\n"
IF_FULL = "if self.buckets[-1] and size + nbytes > bucket_bytes:"
START = "self.under_way.append((dist.all_reduce(flat, async_op=True), flat, bucket))"

BACKWARDS = "    for k in range(count):\n        passes.backward(k)\n    passes.finish()\n\n\n"
FORWARDS = "    for k in range(count):\n        passes.forward(k)\n    for"
AHEAD = "ahead = min(passes.last - passes.rank, count)"
GPIPE, ONE_ONE = "[gpipe]", "[one_forward_one_backward]"

OTHER_SOLUTIONS = {  # the assignment, what its solution has, and what may stand there instead
    "a ring by hand": (DDP, SUM, RING.format(SEND_ASIDE)),
    "two messages": (DDP, SUM, SUM.replace("flat", "flat[:-1]") + SUM.replace("flat", "flat[-1:]")),
    "backwards in reverse": (PIPELINE, BACKWARDS, BACKWARDS.replace("range(count)", "reversed(range(count))")),
}

MISTAKES = {  # the same, and the points that are lost, with words of the message about each
    "does not divide": (DDP, "flat[:-1] / flat[-1]", "flat[:-1]", {"on_the_whole_batch": "divides by"}),
    "mean of means": (DDP, "torch.ones(1)]) * rows", "torch.ones(1)])", {"every_row_counts": "number of rows"}),
    "no broadcast": (DDP, "    broadcast_parameters(model)\n", "", {"begin_with_the_weights": "broadcast"}),
    "gathers gradients": (DDP, SUM, WHOLE_GRADIENTS, {"each_rank_sends": "all_reduce … instead of whole gradients"}),
    "sums on one rank": (DDP, SUM, BY_ROOT, {"each_rank_sends": "all_reduce … instead of whole gradients"}),
    "ring sends first": (DDP, SUM, RING.format(SEND_FIRST), {"on_the_whole_batch": "send (line … each for"}),
    "buckets not divided": (BUCKETS, "            flat /= dist.get_world_size()\n", "", {"whole_batch": "division"}),
    "last bucket stays": (BUCKETS, IN_HOOKS, IN_HOOKS.replace("s:", "s[:-1]:"), {"whole_batch": "every parameter"}),
    "never waits": (BUCKETS, "            work.wait()\n", "", {"before_its_wait": "call wait()"}),
    "waits at once": (BUCKETS, START, f"{START}; self.under_way[-1][0].wait()", {"hides": "not in the hook"}),
    "no buckets": (BUCKETS, IF_FULL, "if self.buckets[-1]:", {"at_most_the_given_size": "several parameters"}),
    "buckets too large": (BUCKETS, IF_FULL, "if size > bucket_bytes:", {"at_most_the_given_size": "the limit is"}),
    "never sends": (BUCKETS, START, "pass", dict.fromkeys(("batch", "wait", "size", "hides"), "nothing is sent")),
    "one bucket": (BUCKETS, IF_FULL, "if False:", {"at_most_the_given_size": "limit", "hides": "in a hook"}),
    "no mean": (PIPELINE, " / self.count", "", {f"model{GPIPE}": "division", f"model{ONE_ONE}": "division"}),
    "no GPipe": (PIPELINE, FORWARDS, "    return\n    for", {
        f"{point}{GPIPE}": "parameters without a gradient" for point in ("whole_model", "slots", "receivers")
    }),
    "send meets send": (PIPELINE, "self.sends.append(dist.isend(x.detach(), rank))", "dist.send(x.detach(), rank)", {
        f"forever_where_sends_wait_for_their_receivers{ONE_ONE}": "send (line … each for",
    }),
    "1F1B is GPipe": (PIPELINE, AHEAD, "ahead = count", {"1f1b_keeps": "6 micro-batches … follow each forward"}),
    "1F1B is late": (PIPELINE, AHEAD, AHEAD.replace("rank,", "rank + 1,"), {"1f1b_keeps": "4 micro-batches"}),
    "1F1B one by one": (PIPELINE, AHEAD, "ahead = 0", {f"slots{ONE_ONE}": "start the next micro-batch"}),
    "GPipe one by one": (PIPELINE, BACKWARDS, BACKWARDS.partition("\n")[2], {f"slots{GPIPE}": "start the next"}),
}  # fmt: skip
QUICK = ("does not divide", "never waits", "no buckets", "never sends", "no mean", "1F1B is GPipe")


LEFT_OUT = "cacheprovider", "timeout", "unraisableexception"
"""Plugins of pytest: the second would stop the clock of the test that runs these tests, the third collects garbage for
half a second at the end."""


class Grades:
    """A plugin of pytest that keeps the message about each point, "" for one that was won."""

    def __init__(self):
        self.points = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.points[report.nodeid.partition("::")[2]] = report.longreprtext


@pytest.fixture
def grade(monkeypatch):
    """A function that runs an assignment's tests on the file `path`, and returns the message about each point."""

    def grade(assignment, path):
        grades = Grades()
        monkeypatch.setenv("HOMEWORK", str(path))
        pytest.main([str(FOLDER / assignment), *(f"-pno:{plugin}" for plugin in LEFT_OUT)], plugins=[grades])
        assert len(grades.points) >= 4
        return grades.points

    return grade


@pytest.fixture
def change(tmp_path):
    """A function that writes an assignment's solution with `after` in place of `before`, and returns the path."""

    def change(assignment, before, after):
        text = (FOLDER / assignment / "solution.py").read_text("utf-8")
        assert text.count(before) == 1
        path = tmp_path / "homework.py"
        path.write_text(text.replace(before, after), "utf-8")
        return path

    return change


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_solution_gets_every_point(grade, assignment):
    assert not any(grade(assignment, "solution.py").values())


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_starter_gets_no_point_and_one_sentence_about_each(grade, assignment):
    for point, message in grade(assignment, "starter.py").items():
        assert re.fullmatch(r"Write [^\n]*\.", message), point


@pytest.mark.parametrize("name", OTHER_SOLUTIONS)
def test_other_solutions_get_every_point(grade, change, name):
    assignment, before, after = OTHER_SOLUTIONS[name]
    assert not any(grade(assignment, change(assignment, before, after)).values())


@pytest.mark.parametrize("name", slow_except(QUICK, MISTAKES))
def test_each_mistake_costs_exactly_its_points_with_a_message_that_says_where_to_look(grade, change, name):
    assignment, before, after, costs = MISTAKES[name]
    points = grade(assignment, change(assignment, before, after))
    lost = {point: message for point, message in points.items() if message}
    assert len(lost) == len(costs), list(lost)
    for point, words in costs.items():
        messages = [message for name, message in lost.items() if point in name]
        assert len(messages) == 1 and re.search(quote(words), messages[0], re.DOTALL), (point, list(lost), messages)


def test_errors_show_the_line_of_the_homework(grade, change):
    for message in grade(DDP, change(DDP, SUM, SUM.replace("flat", "float_"))).values():
        assert re.search(quote("homework.py:… NameError … float_"), message, re.DOTALL)
    for message in grade(DDP, change(DDP, SUM, SUM.replace("flat", "flat[dist.get_rank() :]"))).values():
        assert re.fullmatch(
            quote("rank … all_reduce … (line … of homework.py) … must be the same on all of its ranks."), message
        )


def test_students_write_ordinary_pytorch():
    for path in FOLDER.glob("*/s*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert {name.partition(".")[0] for name in names} == {"torch"}, path

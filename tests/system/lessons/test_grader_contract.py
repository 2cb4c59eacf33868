"""Programs of solutions: the whole contract of comm reaches the sandbox, and no request gets beyond it."""

import numpy as np
import pytest

from lessons.grading import hosted
from lessons.grading.grader import Solution, SolutionError

ALL_REDUCE = """
import numpy as np

def worker(comm, task, s):
    x = np.arange(12.0) * (comm.rank + 1)
    total = x.copy()
    for _ in range(comm.size - 1):
        comm.send(x, (comm.rank + 1) % comm.size)
        x = comm.recv((comm.rank - 1) % comm.size)
        total += x
    ours = comm.all_reduce(np.arange(12.0) * (comm.rank + 1))
    task.measure("apart", float(np.abs(total - ours).max()))
    task.report(task.start() + total.sum())
"""

HOGWILD = """
def worker(comm, task, s):
    shared = comm.shared(task.start())
    for _ in task.steps():
        w = shared.read()
        _, g = task.gradient(w)
        shared.add(-s.learning_rate * g[:4], slice(0, 4))
        shared.add(-s.learning_rate * g[4:], list(range(4, len(w))))
    comm.barrier()
    if comm.rank == 0:
        task.report(shared.vector)
    return shared.read()
"""

OVERLAP = """
def worker(comm, task, s):
    w, right, left = task.start(), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for _ in task.steps(together=True):
        coming = comm.irecv(left)
        going = comm.isend(w, right)
        {before}
        _, g = task.gradient(w)
        {after}
        w = (w + coming.wait()) / 2 - s.learning_rate * g
        task.report(w)
"""

EVERYTHING = """
import numpy as np

def worker(comm, task, s):
    x = np.arange(8.0) + comm.rank
    half = comm.split(comm.rank % 2)
    lone = comm.split(0 if comm.rank == 0 else None)
    handle = comm.all_reduce(x.copy(), async_op=True, priority=1)
    told = [
        half.size, half.rank, lone is None, comm.reduce_scatter(x), comm.all_gather(comm.rank),
        half.all_reduce(x.copy(), op="mean"), handle.wait(), handle.wait(), comm.broadcast(x, src=1), len(comm.nodes),
    ]
    comm.barrier()
    if comm.rank == 0:
        flat = np.concatenate([np.ravel(np.asarray(part, float)) for part in told])
        task.measure("told", float(flat @ np.arange(len(flat))))
        task.report(task.start())
"""


QUADRATIC = {"algorithm": "sync_sgd", "workload": "quadratic", "noise": 1.0, "learning_rate": 0.1, "network": "10GbE"}


def played(source, **values):
    """Return the Run in which `worker` of this source plays every rank."""
    with Solution(source).attempt() as attempt:
        return attempt.run(attempt.role("worker"), **{**QUADRATIC, "workers": 4, "steps": 20, **values})


def test_an_all_reduce_can_be_written_from_sends():
    done = played(ALL_REDUCE)
    assert done.course("apart")[1].max() == 0 and len(done.measurements("apart")["value"]) == 4


def test_a_thread_of_hogwild_can_be_written_on_shared_memory():
    done = played(HOGWILD, condition=1.0, learning_rate=0.05, steps=50)
    first, *_, last = done.evaluations["loss"]
    assert last < first / 50  # 200 small steps on one vector; alone, 50 would leave a two-hundredth at best
    assert done.summary["bytes"] == 0


def test_a_message_can_be_overlapped_with_a_gradient():
    heavy = {"dimension": 200_000, "points": 64, "batch": 16, "network": "1GbE", "steps": 5}
    late = played(OVERLAP.format(before="", after="going.wait()"), **heavy)
    early = played(OVERLAP.format(before="going.wait(); x = coming.wait()", after=""), **heavy)
    np.testing.assert_array_equal(late.parameters, early.parameters)
    assert late.summary["seconds"] < early.summary["seconds"]


def test_every_operation_gives_what_it_gives_outside_of_the_sandbox():
    namespace = {}
    exec(EVERYTHING, namespace)
    values = {"algorithm": "sync_sgd", "workload": "quadratic", "workers": 4, "steps": 2, "learning_rate": 0.1}
    with Solution(EVERYTHING).attempt() as attempt:
        theirs = attempt.run(attempt.role("worker"), **values)
        ours = attempt.run(namespace["worker"], **values)
    assert theirs.measurements("told")["value"].tolist() == ours.measurements("told")["value"].tolist()
    assert theirs.summary["bytes"] == ours.summary["bytes"] and theirs.summary["seconds"] == ours.summary["seconds"]


REFUSED = {
    "comm._request('__class__', 0)": "no '__class__'|no comm.__class__",
    "comm._request('event_log', 0)": "have no 'event_log'",
    "comm._request('_sim', 0)": "have no '_sim'",
    "comm._request('wait', 0)": "have no 'wait'",
    "comm._request('wait', 10**6)": "have no 'wait'",
    "comm._request('walk', 0)": "have no 'walk'",
    "comm._request('descend', 0, 1)": "have no 'descend'",
    "comm._request(['send'], 0)": "without the name of a method",
    "comm._request()": "invalid request",
    "comm._request('send')": "invalid request",
    "comm.send(1.0, 99)": "comm.send takes the number of a rank, from 0 to 0, but got 99",
    "comm.send({'a': 1}, 0)": "comm.send takes a message: None, .* but got {'a': 1}",
    "comm.reduce_scatter(np.zeros((2, 2)))": "takes a vector of floats; it was given float64 of shape",
    "comm.all_reduce(np.arange(3))": "takes a vector of floats; it was given int64",
    "comm.shared(np.zeros(2_000_000))": "a shared vector may have at most",
    "comm.shared(np.zeros(5)).add(np.ones(2), [3, 5])": "whole numbers from 0 to 4",
    "comm.shared(np.zeros(5)).read([-1])": "whole numbers from 0 to 4",
    "comm.shared(np.zeros(5)).add(np.ones(3), slice(0, 2))": "3 numbers cannot be added to 2",
    "[comm.irecv(0) for _ in range(100)]": "handles at once",
    "comm.sendd(1.0, 0)": "comm has no sendd; it has all_gather",
    "task.losses()": "task has no losses",
    "s.learning_rat": "s has learning_rate, no learning_rat|s has .* and .*, no learning_rat",
}


@pytest.fixture(scope="module")
def tries():
    """An attempt with a role for each of REFUSED, and the roles' names: one process, since each is a run of its own."""
    role = {deed: f"try_{number}" for number, deed in enumerate(REFUSED)}
    body = "def {}(comm, task, s):\n    {}\n    task.report(task.start())\n"
    source = "\n".join(["import numpy as np\n", *(body.format(name, deed) for deed, name in role.items())])
    with Solution(source).attempt() as attempt:
        yield attempt, role


@pytest.mark.parametrize(("deed", "words"), REFUSED.items())
def test_what_is_not_in_the_contract_is_refused_in_a_sentence(tries, monkeypatch, deed, words):
    monkeypatch.setattr(hosted, "MOST", 20)
    attempt, role = tries
    with pytest.raises(SolutionError, match=words):
        attempt.run(attempt.role(role[deed]), **{**QUADRATIC, "workers": 1, "steps": 2})

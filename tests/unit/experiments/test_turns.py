"""Turns: a class is served in turn, whatever one reader asks for."""

from dataclasses import dataclass

from experiments.jobs.spec import JobSpec
from experiments.jobs.turns import Turns, job_to_drop, length, reader
from experiments.specification.experiment import Experiment


@dataclass(frozen=True)
class Job:
    """A job that several readers may wait for, "ada+bob"; long or short."""

    name: str
    length: float = 1

    @property
    def readers(self):
        return frozenset(self.name.rstrip("0123456789").split("+"))


def served(jobs, slots=0, turns=None):
    """Names in the order in which they are started, each ending before the next, or with the last `slots` running."""
    turns, waiting, done = turns or Turns(), list(jobs), []
    while waiting:
        job = turns.order(waiting, done[-slots:] if slots else ())[0]
        turns.take(job)
        waiting.remove(job)
        done.append(job)
    return [job.name for job in done]


def test_ten_tabs_of_one_reader_put_nobody_but_that_reader_behind_them():
    tabs = [Job(f"ada{n}") for n in range(10)]
    assert served([*tabs, Job("bob"), Job("cy")]) == ["ada0", "bob", "cy", *(f"ada{n}" for n in range(1, 10))]
    turns = Turns()
    turns.take(tabs[0])
    assert turns.order([*tabs[1:], Job("bob")], [tabs[0]])[0].name == "bob"


def test_readers_who_wait_for_several_have_one_each_in_turn():
    jobs = [Job(f"{name}{n}") for name in ("ada", "bob", "cy") for n in range(3)]
    assert served(jobs) == [f"{name}{n}" for n in range(3) for name in ("ada", "bob", "cy")]


def test_whoever_runs_nothing_is_before_those_who_run_something_and_no_core_idles_for_it():
    turns = Turns()
    turns.take(Job("ada0"))
    turns.take(Job("bob"))
    turns.take(Job("bob"))  # a round later than ada's, who still has one running
    waiting = [Job("ada1"), Job("bob", 9)]
    assert [job.name for job in turns.order(waiting, [Job("ada0")])] == ["bob", "ada1"]
    assert turns.order(waiting[:1], [Job("ada0")]) == waiting[:1]


def test_short_jobs_go_before_long_ones_of_others_and_not_of_the_same_reader():
    assert served([Job("ada", 600), Job("bob", 1), Job("cy", 60)]) == ["bob", "cy", "ada"]
    assert served([Job("ada0", 600), Job("ada1", 1)]) == ["ada0", "ada1"]


def test_a_long_job_waits_for_one_job_of_every_other_reader_and_no_more():
    turns, long = Turns(), Job("ada", 600)
    waiting, before = [long], []
    while True:
        waiting += [Job(name) for name in ("bob", "cy", "dee") if Job(name) not in waiting]  # they never stop asking
        job = turns.order(waiting)[0]
        turns.take(job)
        waiting.remove(job)
        if job is long:
            break
        before.append(job.name)
        assert len(before) < 20, "it starves"
    assert sorted(before) == ["bob", "cy", "dee"]


def test_a_job_that_several_wait_for_has_the_best_of_their_turns():
    assert served([Job("ada0"), Job("ada1"), Job("ada+cy", 5), Job("bob")]) == ["ada0", "bob", "ada+cy", "ada1"]


def test_a_full_queue_makes_room_for_whoever_has_less_in_it_until_all_have_the_same():
    waiting, refused = [Job(f"ada{n}") for n in range(100)], 0
    for n in range(40):
        asking = f"student{'abcdefghij'[n % 10]}{'abcd'[n // 10]}"
        away = job_to_drop(waiting, asking)
        refused += away is None
        waiting = [*(job for job in waiting if job is not away), Job(asking)]
    assert not refused and len(waiting) == 100
    assert [job.name for job in waiting][:60] == [f"ada{n}" for n in range(60)]  # her last ones went
    assert job_to_drop(waiting, "ada") is None
    assert job_to_drop([Job(name) for name in "abc"], "d") is None  # everybody has one
    assert job_to_drop([Job("a+b"), Job("a+b"), Job("a+c")], "d") is None  # others wait for them too


def test_one_who_appears_as_a_hundred_readers_keeps_nobody_else_out_of_a_full_queue():
    letters = "abcdefghij"
    forged = [Job(f"{a}{b}@there") for a in letters for b in letters]
    assert job_to_drop(forged, "ada@here") is forged[-1]
    assert job_to_drop(forged, "zz@there") is None  # who is also there waits, as the others do
    waiting = [*forged[:-1], Job("ada@here")]
    assert job_to_drop(waiting, "ada@here") is None  # for a first job of hers, and no more
    assert job_to_drop([*forged[:50], *(Job(f"{job.name}2") for job in forged[:50])], "ada@here").name[-1] == "2"


def test_all_tabs_and_places_of_a_browser_are_one_reader():
    assert {reader(owner) for owner in ("f00:1", "f00:2", "f00:2/sweep-3", "f00", "f00/rate")} == {"f00"}


def test_more_samples_are_a_longer_job_and_an_unknown_number_the_longest():
    short, wide = Experiment.of({"steps": 10}), Experiment.of({"steps": 10, "workers": 32})
    assert length(short) < length(wide) < length(Experiment.of({"steps": 1_000_000}))
    assert length(Experiment.of({"seconds": 1})) == length(JobSpec("study", {})) == float("inf")

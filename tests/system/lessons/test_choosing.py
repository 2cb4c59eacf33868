"""The exercise on choosing: what students write instead, which marks it loses, and what they are told."""

import math
import random
import re

import pytest

import lessons
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.choosing import check, solution
from lessons.choosing.experiments import digits
from lessons.grading.grader import grade
from lessons.seeds import Seeded

NAMED, MEMORY, BUDGET, FAST, SLOW, LONG = range(6)

MOST_SAMPLES = """
def choose(model, cluster):
    return "local SGD, 16"
"""
FEWEST_STEPS = """
def choose(model, cluster):
    return min(model["steps"], key=model["steps"].get)
"""
NO_LIMITS = 'allowed = [*model["steps"]]'
BY_THRESHOLDS = """
def choose(model, cluster):
    if model["memory"]["one machine"] > cluster["memory"]:
        return "tensor"
    if cluster["latency"] > 1e-4 or cluster["budget"] < 5e6:
        return "one machine"
    return "tensor" if "tensor" in model["steps"] else "doubling"
"""
EVERY_NAME = """
class Any(str):
    def __eq__(self, other):
        return True
    __hash__ = str.__hash__

def choose(model, cluster):
    return [Any(name) for name in model["steps"]]
"""


def source():
    return (lessons.chapter("choosing").folder / "solution.py").read_text()


def marks(text):
    report = grade(lessons.chapter("choosing"), text, seed=4)
    return [bool(mark.earned) for mark in report.marks], [mark.observed for mark in report.marks], report.error


@pytest.mark.slow
def test_whoever_maximises_samples_per_second_is_told_the_share_of_the_oracles_speed():
    earned, told, _ = marks(MOST_SAMPLES)
    assert earned == [True, False, False, False, False, False]
    assert re.search(r"local SGD, 16: 0\.\d\d .*of the oracle's speed; at least 0\.8 is required", told[FAST])
    assert "local SGD, 16 needs" in told[MEMORY]


WHOLE = ["one machine", "ring", "doubling", "server", "local SGD, 4", "local SGD, 16"]


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_one_name_for_every_cluster_earns_nothing_for_the_limits_that_it_meets_as_it_happens(name):
    earned, told, _ = marks(f"def choose(model, cluster):\n    return {name!r}\n")
    assert earned == [True, False, False, False, False, False]
    assert name != "one machine" or "judged only when" in told[BUDGET]


@pytest.mark.slow
def test_tensor_wherever_it_is_offered_earns_nothing_for_the_memory_that_it_does_not_look_at():
    earned, told, _ = marks("def choose(model, cluster):\n    return ['ring', 'tensor']['tensor' in model['steps']]\n")
    assert earned == [True, False, False, False, False, True]
    assert re.search(r"tensor needs [\d,]+ bytes, but a worker has", told[MEMORY])


@pytest.mark.slow
def test_whoever_looks_at_the_limits_alone_earns_their_marks():
    line = next(line for line in source().splitlines() if line.startswith("    return min(allowed"))
    earned, _, _ = marks(source().replace(line, "    return allowed[-1]"))
    assert earned[:FAST] == [True, True, True] and not all(earned)


@pytest.mark.slow
def test_whoever_minimises_steps_loses_where_messages_are_slow():
    earned, told, _ = marks(FEWEST_STEPS)
    assert not earned[SLOW] and not earned[MEMORY] and not earned[BUDGET]
    assert re.search(r"sends \d+\.\d MB until the target loss", told[BUDGET])


@pytest.mark.slow
def test_whoever_forgets_the_limits_is_told_by_how_much_they_are_exceeded():
    line = re.search(r"allowed = \[.*\]", source())[0]
    earned, told, _ = marks(source().replace(line, NO_LIMITS))
    assert earned[SLOW] and not earned[BUDGET] and "are allowed" in told[BUDGET]
    assert not earned[MEMORY] and "a worker has" in told[MEMORY]
    assert not earned[FAST] and "not allowed there" in told[FAST]


@pytest.mark.slow
def test_whoever_counts_bytes_and_no_messages_loses_where_messages_are_slow():
    counted = 'n, alpha, beta = model["gradient"], cluster["latency"], 1 / cluster["bandwidth"]'
    assert counted in source()
    earned, told, _ = marks(source().replace(counted, counted.replace('cluster["latency"]', "0.0")))
    assert earned == [True, True, True, True, False, True]
    assert "of the oracle's speed" in told[SLOW]


@pytest.mark.slow
def test_a_rule_that_computes_no_time_earns_less_than_half():
    report = grade(lessons.chapter("choosing"), BY_THRESHOLDS, seed=4)
    assert report.score < 50 and not report.error


@pytest.mark.slow
def test_a_list_of_every_name_is_no_choice():
    earned, _, error = marks(EVERY_NAME)
    assert not any(earned) and "it must be one of one machine, ring, doubling" in error, error


def test_cases_come_in_any_order_and_two_more_of_any_kind():
    orders = [[case.kind for case in check.shuffle_cases(random.Random(seed))] for seed in range(5)]
    assert len({*map(tuple, orders)}) == len(orders)
    for kinds in orders:
        assert len(kinds) == 8 + check.MORE and {*kinds} == {"fast", "slow", "long", "memory", "budget"}


IN_ORDER = """
ANSWERS = iter({answers})

def choose(model, cluster):
    name = next(ANSWERS, "doubling")
    return name if name in model["steps"] else "doubling"
"""


@pytest.mark.slow
def test_a_list_of_answers_by_the_number_of_the_call_loses_every_mark_of_speed():
    answers = [solution.choose(*case.arguments()) for case in check.draw_cases(random.Random(0))]
    earned, _, error = marks(IN_ORDER.format(answers=[*answers, *answers]))
    assert not any(earned[FAST:]) and not error


def forgetting(what, value):
    """Return the solution, for which this of a cluster is what it is not."""
    return lambda model, cluster: solution.choose(model, cluster | {what: value})


CARELESS = (  # of what decides, case by case
    lambda model, cluster: "local SGD, 16",  # fast: what a sample is worth
    forgetting("latency", 0.0),
    forgetting("latency", 0.0),
    lambda model, cluster: "one machine",  # slow messages, but slower computing
    forgetting("bandwidth", 1e13),
    forgetting("memory", math.inf),
    forgetting("budget", math.inf),
    forgetting("budget", math.inf),
)


def share(case, choose):
    name = choose(*case.arguments())
    return check._against_the_oracle(case, name, case.train(name))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_decides_in_a_case_does_not_depend_on_the_draw(seed):
    for case, careless in zip(check.draw_cases(random.Random(seed)), CARELESS, strict=True):
        assert share(case, solution.choose) > 0.95, case
        assert share(case, careless) < 0.95 * check.TARGETS["speed"], case


@pytest.mark.parametrize("seed", range(2))
def test_where_the_latency_is_largest_one_meeting_after_84_steps_is_ahead_of_one_machine(seed):
    run, far = Seeded(seed), {"latency": digits.LATENCIES[-1] * 1e-6}
    seldom = {"period": 84, "steps": 84, "learning_rate": 0.5, **far}
    eight = digits.arrival(run(**{**digits.DIGITS, **digits.SMALL["local SGD, 16"], **seldom}))
    assert eight < digits.to_the_loss(run, "one machine", **far)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "rounds"), [("sync_sgd", 2 * 48), ("local_sgd", 2 * 3)])
def test_real_processes_pay_the_rounds_that_the_text_counts(algorithm, rounds):
    values = {
        "algorithm": algorithm, "cluster": "processes", "workers": 4, "hidden": "64", "batch": 16, "steps": 48,
        "network": "1GbE", "latency": 0.002, "collective": "recursive_doubling", "learning_rate": 0.4,
    }  # fmt: skip
    done = run(Experiment.of(values | ({"period": 16} if algorithm == "local_sgd" else {})))
    assert done.status == "finished" and done.summary["messages"] == 4 * rounds
    assert done.summary["seconds"] >= rounds * 0.002, "a round takes the latency at least"

"""The rule of a round in numbers worked out by hand, and who is in it when workers are slow, late, lost or back."""

import numpy as np
import pytest

from algorithms.asynchronous import decoupled_diloco
from algorithms.asynchronous.decoupled_diloco import HELLO, SERVER, Settings, check
from cluster import simulated
from cluster.comm import RankLost
from cluster.faults import Faults
from cluster.network import NETWORKS, Link, Network
from tests.training import ScalarChain, Springs, pay, train
from workloads.budget import Budget
from workloads.task import Task

TURNS = {"update": "sgd", "learning_rate": 0.01, "period": 12, "outer_momentum": 0, "overlap": 4, "grace": 4}


def reported(run):
    return np.array([row[4] for row in run.outcome.event_logs[SERVER].reports])


def merged(run):
    """How many workers were in the mean of each round."""
    return [int(row[3]) for row in run.outcome.event_logs[SERVER].measures]


def trained(settings=None, fails=False, network=NETWORKS["ideal"], **faults):
    """Four workers, for 0.2 s, which are 800 steps at full speed."""
    return train(
        "decoupled_diloco",
        Springs([0.0] * 8, parameters=4),
        4,
        TURNS | (settings or {}),
        steps=None,
        budget={"seconds": 0.2},
        network=network,
        faults=Faults(**faults),
        fails=fails,
    )


def steps_between(run, first, last):
    """The number of steps that each worker has finished between two times."""
    return [sum(first < row[2] < last for row in log.losses) for log in run.outcome.event_logs[1:]]


# the rule


def rounds(*scripts, **settings):
    """x after each round, and what each worker hears, where workers send (tick, message), in their order."""
    heard = {}

    def program(comm):
        task = Task(Springs([0.0], parameters=2), comm, budget=Budget(steps=1), batch=1, data_shard=None)
        if comm.rank == SERVER:
            return decoupled_diloco.server(comm, task, Settings(**settings))
        now = 0
        for tick, message in scripts[comm.rank - 1]:
            pay(1e7 * (tick - now))
            now = tick
            comm.send(message, SERVER)
        heard[comm.rank] = []
        while (message := comm.recv(SERVER)) is not None:
            heard[comm.rank].append(message)
        return None

    outcome = simulated.run(program, 1 + len(scripts), network=NETWORKS["ideal"])
    assert outcome.error is None
    return [row[4].tolist() for row in outcome.event_logs[SERVER].reports], heard


def push(number, steps, *values):
    """A push to this round, of a fragment that is one layer."""
    return number, steps, (np.array(values),)


ONE = {"fragments": 1, "outer_rate": 1.0, "outer_momentum": 0.0}


def test_workers_count_in_proportion_to_their_steps_unless_they_are_not_weighed():
    scripts = [(1, push(0, 6, 0.0, 0.4)), (9, None)], [(2, push(0, 2, 0.8, 0.8)), (9, None)]
    weighed, _ = rounds(*scripts, quorum=2, **ONE)
    equal, _ = rounds(*scripts, quorum=2, weigh=False, **ONE)
    assert np.allclose(weighed, [(0.2, 0.5)]) and np.allclose(equal, [(0.4, 0.6)])  # (6 * 0 + 2 * 0.8) / 8


def test_rounds_are_outer_steps_with_nesterovs_momentum_of_one_fragment_after_the_other():
    moves = 0.5, -0.2, 0.3, 0.1  # of x, as round after round wants it; two of each of the two parameters
    x, v, script, expected = [1.0, 1.0], [0.0, 0.0], [], []
    for number, move in enumerate(moves):
        part = number % 2
        script.append((number, push(number, 5, x[part] - move)))
        v[part] = 0.9 * v[part] + move
        x[part] -= 0.7 * (move + 0.9 * v[part])
        expected.append(tuple(x))
    after, heard = rounds([*script, (9, None)], fragments=2, outer_momentum=0.9)
    assert np.allclose(after, expected, rtol=1e-12)
    assert [(number, float(piece[0])) for number, (piece,) in heard[1]] == [
        (number, pytest.approx(expected[number][number % 2])) for number in range(4)
    ]


def test_a_round_ends_with_its_quorum_and_asks_others_as_long_as_the_grace_lasts():
    first, late = [(1, push(0, 4, 0.0, 0.0)), (5, None)], [(3, push(0, 1, 1.0, 1.0)), (6, None)]
    after, heard = rounds(first, late, **ONE)
    assert np.allclose(after, [(0.2, 0.2)]) and heard[2][0] == 0 and heard[1][0][0] == heard[2][1][0] == 0
    over = [(1, push(0, 4, 0.0, 0.0)), (2, 0), (5, None)]  # at tick 2, its grace of round 0 is over
    after, heard = rounds(over, late, **ONE)
    assert np.allclose(after, [(0, 0)]) and heard[2][0] == 0
    after, heard = rounds(first, late, grace=0, **ONE)
    assert np.allclose(after, [(0, 0)]) and heard[2][0][0] == 0  # not asked; it hears of the end of the round only
    after, _ = rounds(over, late, quorum=2, **ONE)
    assert np.allclose(after, [(0.2, 0.2)])  # no grace ends a round before its quorum


def test_a_worker_that_says_hello_during_training_receives_the_whole_model():
    first = [(1, push(0, 4, 0.5)), (2, push(1, 4, 0.25)), (9, None)]
    _, heard = rounds(first, [(0, HELLO), (3, HELLO), (8, None)], grace=0, **ONE | {"fragments": 2})
    assert heard[2][-1][0] == 2 and heard[2][-1][1].tolist() == [0.5, 0.25] and len(heard[2]) == 3


def test_a_worker_that_has_only_just_received_a_fragment_does_not_push_it_when_asked():
    pushes = []

    def program(comm):
        if comm.rank != SERVER:
            task = Task(Springs([0.0], parameters=2), comm, budget=Budget(steps=9), batch=1)
            return decoupled_diloco.replica(comm, task, Settings(fragments=1, period=4))
        while (message := comm.recv(1)) is not None:
            if isinstance(message, tuple):
                number, steps, pieces = message
                pushes.append((number, steps))
                comm.send((number, pieces), 1)
                comm.send(number + 1, 1)  # asks for more at once
        return comm.send(None, 1)

    assert simulated.run(program, 2, network=NETWORKS["ideal"]).error is None
    assert pushes == [(0, 3), (1, 3), (2, 1)]  # after steps 3, 7 and 9; what it has received a step later


def test_two_workers_with_unlike_curvatures_meet_as_in_an_independent_program():
    springs = [
        Springs([centre] * 2, starts=[0.0], parameters=2, curvature=h) for centre, h in ((1.0, 1.0), (-2.0, 3.0))
    ]
    settings = {"update": "sgd", "learning_rate": 0.1, "period": 4, "quorum": 2, "outer_momentum": 0.9}
    workload = {0: springs[0], 1: springs[0], 2: springs[1]}
    run = train("decoupled_diloco", workload.get, 2, settings, steps=12, network=NETWORKS["ideal"])
    first = -0.3325, -0.914410175, -1.15281362148575
    second = -0.693595, -1.09759476155, -1.1829925433767594
    expected = [(first[0], 0), *zip(np.repeat(first, 2)[1:], np.repeat(second, 2), strict=False)]
    assert np.allclose(reported(run)[:6], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_with_a_quorum_of_all_every_reported_model_is_that_of_streaming_diloco(share):
    settings = {"period": 6, "fragments": 3, "overlap": 0, "own_share": share, "outer_momentum": 0.5}
    mine, other = (
        reported(train(name, ScalarChain(), 4, settings | more, steps=20))
        for name, more in (("decoupled_diloco", {"quorum": 4, "grace": 0}), ("streaming_diloco", {}))
    )
    assert np.allclose(mine, other[: len(mine)], rtol=1e-12, atol=0) and len(mine) == len(other)


# who is in a round


def test_with_grace_a_slow_worker_takes_part_in_rounds_with_the_few_steps_that_it_has_taken():
    def shares(**settings):
        counts = merged(trained(settings=settings, slow={4: 3.0}))
        return [np.mean([count == workers for count in counts[2:-2]]) for workers in (1, 2, 3, 4)]

    assert shares()[3] > 0.9
    assert shares(grace=0)[3] == 0
    assert shares(grace=0, quorum=3)[2] > 0.9


def test_a_quorum_sets_the_pace_and_only_with_a_quorum_of_all_the_slowest_does():
    slow = {1: 1.0, 2: 1.5, 3: 2.0, 4: 4.0}
    pace = [len(merged(trained(settings={"quorum": quorum, "overlap": 5}, slow=slow))) for quorum in (1, 2, 3, 4)]
    assert np.allclose([count / pace[3] for count in pace], [4, 4 / 1.5, 2, 1], rtol=0.2)


# crashes, pauses


@pytest.mark.parametrize("quorum", [1, 3, 4])
def test_a_lost_worker_holds_nobody_up(quorum):
    run = trained(settings={"quorum": quorum}, fails=True, crash={2: 0.05})
    before, after = steps_between(run, 0, 0.05), steps_between(run, 0.1, 0.15)
    assert run.outcome.error is None and after[1] == 0
    assert all(after[worker] > 0.95 * before[worker] > 0 for worker in (0, 2, 3))
    assert set(merged(run)[-20:-5]) == {3}


@pytest.mark.parametrize("fault", ["crash", "pause"])
def test_a_worker_that_returns_was_waited_for_only_if_the_quorum_needs_it(fault):
    faults = {"crash": {2: 0.05}, "back": {2: 0.1}} if fault == "crash" else {"pause": {2: ((0.05, 0.1),)}}
    for quorum in (1, 3, 4):
        run = trained(settings={"quorum": quorum}, fails=True, **faults)
        assert run.outcome.error is None
        before, away, after = (steps_between(run, a, a + 0.03) for a in (0.01, 0.065, 0.13))
        assert away[1] == 0 and after[1] > 0.9 * before[1]
        others = [away[worker] / before[worker] for worker in (0, 2, 3)]
        assert max(others) < 0.05 if quorum == 4 else min(others) > 0.9


def test_a_worker_that_returns_continues_from_the_model_of_the_server():
    springs = [Springs([0.0] * 8, parameters=4) for _ in range(5)]  # a worker that starts begins at 1; the optimum is 0
    train(
        "decoupled_diloco", springs.__getitem__, 4, TURNS, steps=None, budget={"seconds": 0.2}, fails=True,
        network=NETWORKS["ideal"], faults=Faults(crash={2: 0.1}, back={2: 0.12}),
    )  # fmt: skip
    seen = [float(w[0]) for w in springs[2].seen[0.0]]
    back = max(number for number, w in enumerate(seen) if w == 1.0)
    assert back > 50 and max(seen[back + 2 :]) < 0.5 and seen[back - 1] < 0.5


def test_a_worker_that_returns_is_waited_for_even_if_the_answer_takes_longer_than_its_first_turn():
    far = Network(Link(0.004, 1e9), Link(0.004, 1e9))  # there and back in 32 steps
    run = trained(settings={"quorum": 4}, fails=True, network=far, crash={2: 0.05}, back={2: 0.1})
    assert run.outcome.error is None
    assert all(steps > 0 for steps in steps_between(run, 0.13, 0.2))


def test_nobody_trains_without_the_server():
    run = trained(fails=True, crash={0: 0.05})
    assert isinstance(run.outcome.error, RankLost) and run.outcome.error.rank == SERVER


# what it sends


def test_no_message_is_larger_than_a_fragment_and_its_number():
    springs = ScalarChain(w=np.linspace(0.7, 1, 8))
    largest = [
        max(row[2] for log in train("decoupled_diloco", springs, 3, {"fragments": count}, steps=40).outcome.event_logs
            for row in log.messages)
        for count in (1, 2, 4)
    ]  # fmt: skip
    assert largest == [8 * 8 + 16, 4 * 8 + 16, 2 * 8 + 16]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fragments": 3}, "use a period of 18 or 21"),
        ({"overlap": 10}, "use an overlap of at most 9"),
        ({"fragments": 10}, "use at most 3"),
        ({"quorum": 5}, "use at most 4"),
        ({"grace": 2}, "use a grace of at most 1"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused_with_what_would_fit(settings, words):
    with pytest.raises(ValueError, match=words):
        check(4, 1, ScalarChain(), Settings(**settings))


@pytest.mark.parametrize("settings", [{"grace": -1}, {"quorum": 0}])
def test_a_grace_or_a_quorum_that_cannot_be_is_refused(settings):
    with pytest.raises(ValueError, match="greater than or equal"):
        Settings(**settings)

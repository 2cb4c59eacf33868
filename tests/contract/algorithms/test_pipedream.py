import numpy as np
import pytest

from algorithms.parts.pipeline.stream_executor import StreamExecutor
from algorithms.pipelined import pipedream
from cluster import simulated
from cluster.network import Link, Network
from tests.training import ScalarChain, train
from theory import schedule_timing, schedules
from workloads.budget import Budget
from workloads.task import Task

BOOK = {  # (w0, w1, w2) after 1, 2, 4 and 8 updates of every stage; a scalar chain, eta 0.1
    "SGD": (".533180 .627650 .723700", ".580023 .667442 .758211", ".645530 .724709 .808836", ".765503 .832912 .906734"),
    "stash": (
        ".533180 .627650 .723700", ".582315 .668595 .757647", ".650846 .723208 .803252", ".788285 .840875 .906530",
    ),
    "none": (
        ".533180 .627650 .723700", ".584579 .668595 .757647", ".657342 .723208 .803252", ".798473 .840527 .906212",
    ),
    "vertical": (
        ".533180 .627650 .723700", ".581900 .668250 .758500", ".645016 .721169 .804031", ".784050 .844748 .914440",
    ),
}  # fmt: skip
HEAVY_BALL = {  # the same with momentum 0.5, after 2, 4 and 8 updates
    "SGD": (".596613 .681267 .770061", ".731215 .798283 .873157", ".869845 .922569 .984955"),
    "stash": (".598905 .682420 .769497", ".741367 .797353 .864348", ".957535 .974295 1.015960"),
}
CHAIN = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 12))


def numbers(text):
    return [float(word) for word in text.split()]


def course(policy, steps, **settings):
    """The weights after so many updates; the sequential counterpart is the same module with one stage."""
    stages, policy = (1, "stash") if policy == "SGD" else (3, policy)
    settings = {"learning_rate": 0.1, "weights": policy} | settings
    return train("pipedream", ScalarChain(), stages, settings, steps=steps).models[0]


@pytest.mark.parametrize("policy", BOOK)
def test_the_weights_are_those_of_the_book(policy):
    for steps, row in zip((1, 2, 4, 8), BOOK[policy], strict=True):
        assert course(policy, steps) == pytest.approx(numbers(row), abs=6e-7)


@pytest.mark.parametrize("policy", HEAVY_BALL)
def test_the_weights_with_heavy_ball_are_those_of_the_book(policy):
    for steps, row in zip((2, 4, 8), HEAVY_BALL[policy], strict=True):
        assert course(policy, steps, momentum=0.5) == pytest.approx(numbers(row), abs=6e-7)


@pytest.mark.parametrize(
    ("policy", "delays"), [("stash", [3, 2, 1, 0]), ("none", [3, 2, 1, 0]), ("vertical", [3, 3, 3, 3])]
)
def test_every_stage_measures_the_delay_of_its_policy(policy, delays):
    run = train("pipedream", CHAIN, 4, {"weights": policy, "learning_rate": 0.01}, steps=12)
    assert run.staleness == [[min(step, delay) for step in range(12)] for delay in delays]


@pytest.mark.parametrize(
    ("policy", "most"), [("stash", [4, 3, 2, 1]), ("none", [1, 1, 1, 1]), ("vertical", [4, 4, 4, 4])]
)
def test_a_stage_holds_the_versions_of_its_policy(policy, most):
    def program(comm):
        task = Task(CHAIN, comm, budget=Budget(steps=12), batch=1)
        s, held = pipedream.Settings(weights=policy, learning_rate=0.01), []
        pipe = StreamExecutor(comm, task, pipedream.plan(comm.size, s), s, pipedream.policy)

        def watched(rank, ops=pipe.plan.endless_ops_of):
            for op in ops(rank):
                held.append(pipe.stages[rank].versions_held)
                yield op

        pipe.plan.endless_ops_of = watched
        pipe.run()
        return max(held)

    assert simulated.run(program, 4).results == most


def test_stashing_gives_the_gradient_of_the_loss_at_the_mixed_point_and_no_stashing_does_not():
    # with steps that do not overtake each other: mini-batch 3 met version 1 on stage 0, 2 on stage 1, 3 on stage 2
    x = ScalarChain().x[3]
    for policy, agrees in (("stash", True), ("none", False)):
        history = [course(policy, steps) for steps in range(1, 5)]
        seen = np.array([history[0][0], history[1][1], history[2][2]])  # versions 1, 2 and 3
        step = (history[2] - history[3]) / 0.1

        def loss(w):
            return (w.prod() * x - 1) ** 2 / 2

        h = 1e-5
        slope = np.array([(loss(seen + h * e) - loss(seen - h * e)) / (2 * h) for e in np.eye(3)])
        assert np.allclose(step, slope, rtol=1e-6) == agrees


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("policy", ["stash", "vertical", "none"])
def test_fewer_mini_batches_than_stages_come_home_too(policy, steps):
    run = train("pipedream", CHAIN, 4, {"weights": policy}, steps=steps)
    assert [len(staleness) for staleness in run.staleness] == [steps] * 4


def test_a_full_pipeline_makes_one_step_per_slowest_stage_and_idles_not_at_all():
    network = Network(Link(0.0, float("inf")), Link(0.0, float("inf")))
    run = train("pipedream", CHAIN, 4, {"learning_rate": 0.01}, steps=40, network=network)
    spans = [row for row in run.outcome.event_logs[0].spans if row[4][0] in "FB"]
    start = {row[4]: row[1] for row in spans}
    f, b = (next(row[2] - row[1] for row in spans if row[4][0] == kind) for kind in "FB")
    assert start["B30"] - start["B20"] == pytest.approx(10 * (f + b), rel=0.01)
    lists = schedules.lists("pipedream", 4, 40)
    assert run.outcome.trace().seconds() == pytest.approx(
        schedule_timing.simulate(lists, {"F": f, "B": b}).makespan, rel=0.01
    )


REPLICATED = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 24))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_one_stage_on_several_ranks_is_synchronous_sgd_bit_for_bit(workers):
    settings = {"learning_rate": 0.1, "replicas": str(workers)}
    mine = train("pipedream", REPLICATED, workers, settings, batch=2, steps=4 * workers)
    other = train("sync_sgd", REPLICATED, workers, {"learning_rate": 0.1}, batch=2, steps=4)
    assert all(np.array_equal(w, other.models[0]) for w in mine.outcome.results)


@pytest.mark.parametrize(("replicas", "shares"), [("2,1", [1, 0.5]), ("1,2", [1, 2]), ("2,2", [1, 1])])
def test_the_rate_of_a_stage_may_be_that_of_the_first_times_its_replicas_for_each_of_the_firsts(replicas, shares):
    start, steps = REPLICATED.start(0), []
    for scaled in (False, True):
        settings = {"learning_rate": 0.05, "replicas": replicas, "scale_rate": scaled, "cuts": "2,2"}
        workers = sum(map(int, replicas.split(",")))
        steps.append(train("pipedream", REPLICATED, workers, settings, steps=1).shipped - start)
    assert steps[1] / steps[0] == pytest.approx(np.repeat(shares, 2), rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 7, 12])
@pytest.mark.parametrize("replicas", ["2,1", "1,2", "2,3", "3,1,2", "2,2"])
def test_replicas_take_turns_update_together_and_bring_every_mini_batch_home(replicas, steps):
    ranks = [int(count) for count in replicas.split(",")]
    settings = {"learning_rate": 0.05, "replicas": replicas}
    run = train("pipedream", REPLICATED, sum(ranks), settings, steps=steps)  # a message left unread would fail here
    event_logs, results = run.outcome.event_logs, run.outcome.results
    first = 0
    for count in ranks:
        mine = range(first, first + count)
        assert all(np.array_equal(results[rank], results[first]) for rank in mine)
        forwards = [{row[4] for row in event_logs[rank].spans if row[4].startswith("F")} for rank in mine]
        assert forwards == [{f"F{batch}" for batch in range(replica, steps, count)} for replica in range(count)]
        updates = {len({row[0] for row in event_logs[rank].reports}) for rank in mine}
        assert updates == {steps}
        first += count


@pytest.mark.parametrize("budget", [{"seconds": 0.05}, {"target_loss": 0.02}, {"steps": 500, "seconds": 0.05}], ids=str)
def test_replicas_end_together_when_the_budget_is_open(budget):
    chain = ScalarChain(w=(0.7, 0.8, 0.9, 1.0), x=np.ones(24), flops=1e6)
    run = train("pipedream", chain, 3, {"learning_rate": 0.05, "replicas": "2,1"}, budget=budget)
    losses = run.outcome.event_logs[2].losses
    assert len(losses) > 10 and len(losses) % 2 == 0
    assert {len(event_log.reports) for event_log in run.outcome.event_logs} == {len(losses)}


def test_a_replicated_stream_takes_as_long_as_the_list_simulator_says():
    network = Network(Link(0.0, float("inf")), Link(0.0, float("inf")))
    chain = ScalarChain(w=(0.9,) * 6, x=np.ones(24))
    run = train(
        "pipedream", chain, 3, {"learning_rate": 0.01, "replicas": "2,1", "cuts": "4,2"}, steps=12, network=network
    )
    spans = [[row for row in event_log.spans if row[4][0] in "FB"] for event_log in run.outcome.event_logs]
    cost = {(row[4][0], stage): row[2] - row[1] for stage, rank in ((0, 0), (1, 2)) for row in spans[rank]}
    lists = [list(pipedream.replicated_schedule(rank, [2, 1], 12)) for rank in range(3)]
    times = schedule_timing.simulate(lists, cost)
    assert max(row[2] for mine in spans for row in mine) == pytest.approx(times.makespan, rel=2e-3)
    assert cost["F", 0] == pytest.approx(2 * cost["F", 1], rel=1e-2)  # so two ranks are as fast as one behind them
    assert times.busy[2] / times.makespan > 0.85


def test_replicas_that_do_not_add_up_to_the_workers_are_refused():
    s = pipedream.Settings(replicas="2,1")
    pipedream.ALGORITHM.check(3, 4, REPLICATED, s)
    with pytest.raises(ValueError, match=r"replicas 2,1 .*3 ranks.*4 workers"):
        pipedream.ALGORITHM.check(4, 4, REPLICATED, s)
    vertical = pipedream.Settings(replicas="2,1", weights="vertical")
    with pytest.raises(ValueError, match="use stash or none"):
        pipedream.ALGORITHM.check(3, 4, REPLICATED, vertical)

"""Declarations of pipelines: what follows from a schedule, and what a module may put in its place."""

import pytest

from algorithms.parts.pipeline.executor import Executor, pipeline
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings
from algorithms.parts.pipeline.stream_executor import stream
from algorithms.pipelined import dapple, gpipe, interleaved, pipedream

SETTINGS = FlushSettings(chunks=4)


def test_a_pipeline_carries_out_its_schedule_on_all_ranks():
    plan = pipeline(gpipe.schedule, FlushSettings).plan(3, SETTINGS)
    assert plan.ops == [list(gpipe.schedule(rank, 3, 4)) for rank in range(3)]


def test_stages_are_those_of_the_plan_and_samples_are_shared_by_all():
    thin = pipeline(interleaved.schedule, FlushSettings)
    assert (thin.stages(2, SETTINGS), thin.data_shards(2, SETTINGS)) == (4, 1)
    assert dapple.ALGORITHM.stages(4, dapple.Settings(copies=2)) == 2


def test_what_follows_from_the_schedule_may_be_replaced():
    built = []

    class Watched(Executor):
        def __init__(self, comm, task, plan, s, policy):
            built.append((comm, task, plan, s, policy))

        def run(self):
            return "ran"

    class Comm:
        size = 2

    def plan(workers, s):
        return Flush.of(gpipe.schedule, workers, 2 * s.chunks)

    own = pipeline(gpipe.schedule, FlushSettings, "policy", plan=plan, executor=Watched, elements_sent=None)
    assert own.worker(Comm, "task", SETTINGS) == "ran"
    assert built == [(Comm, "task", plan(2, SETTINGS), SETTINGS, "policy")]
    assert own.elements_sent is None


def test_a_misspelt_fact_is_a_type_error():
    with pytest.raises(TypeError, match="shedules"):
        pipeline(gpipe.schedule, FlushSettings, shedules={})
    with pytest.raises(TypeError, match="equivalence"):
        stream(pipedream.schedule, pipedream.Settings, pipedream.policy, equivalence=())


def test_a_stream_is_endless_with_a_stage_for_each_rank():
    declared = stream(pipedream.schedule, pipedream.Settings, pipedream.policy)
    plan = declared.plan(3, pipedream.Settings())
    ops = plan.endless_ops_of(1)
    assert max(next(ops).chunk for _ in range(1000)) > 300
    assert (plan.stages, plan.replicas) == (3, (1, 1, 1))

"""What is said below the pictures of a run."""

from app.charts import pictures
from experiments.execution.run import run
from experiments.specification.experiment import Experiment


def small(**values):
    return run(Experiment.of({"workers": 2, "steps": 4, "evaluations": 1, **values}))


def test_messages_are_counted_where_the_trace_has_each_of_them():
    assert "messages" not in pictures._traffic(small()), "a fused all-reduce has none"
    assert "in 16 messages" in pictures._traffic(small(collective="ring"))  # 4 steps, 2 (N - 1) of each of N = 2 ranks


def test_ranks_and_links_that_tie_are_counted_and_none_of_them_is_named():
    equal = run(Experiment.of({"collective": "ring", "steps": 2, "evaluations": 1}))
    told = pictures._traffic(equal)
    assert "links in use carry the same" in told and "All workers send the same" in told
    assert pictures._fullest(equal).startswith("All workers held the same amount, ")
    served = run(Experiment.of({"algorithm": "asgd", "steps": 2, "evaluations": 1}))
    told = pictures._traffic(served)
    assert "Server 0 sends most" in told and "server 0 receives most" in told and "The busiest link is from" not in told

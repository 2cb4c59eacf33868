"""What is said below the pictures of a run."""

from app.views import pictures
from experiments.experiment import Experiment
from experiments.run import run


def small(**values):
    return run(Experiment.of({"workers": 2, "steps": 4, "evaluations": 1, **values}))


def test_messages_are_counted_where_the_trace_has_each_of_them():
    assert "messages" not in pictures._traffic(small()), "a fused all-reduce has none"
    assert "in 16 messages" in pictures._traffic(small(collective="ring"))  # 4 steps, 2 (N - 1) of each of N = 2 ranks

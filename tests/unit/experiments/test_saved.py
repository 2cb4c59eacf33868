"""Names of what is taken away."""

from dataclasses import replace

import pytest

from experiments.specification.experiment import Experiment
from experiments.viewer.pictures import Shown
from experiments.viewer.saved import labels_of_several, stem


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("algorithm=asgd", "asgd-digits-4-workers"),
        ("algorithm=sync_sgd&workers=1&workload=spirals", "sync-sgd-spirals-1-worker"),
        ("slow=3:4&crash=2:0.01", "sync-sgd-digits-4-workers-slow-lost"),
    ],
)
def test_a_file_is_called_what_a_person_would_call_it(query, name):
    assert stem(Experiment.from_query(query)) == name


def test_a_picture_of_several_runs_says_which_line_is_which(small_run):
    one, two = Shown("first", small_run, 0), Shown("second", small_run, 1)
    assert "legend" not in labels_of_several([one], "loss") and labels_of_several([one], "loss")["heading"].startswith(
        "Loss · EASGD on"
    )
    both = labels_of_several([one, two], "loss")
    assert [entry["key"] for entry in both["legend"]] == ["first", "second"]
    assert both["legend"][1]["dash"] and both["file"] == "easgd-digits-2-workers-and-1-more-loss"


def test_a_picture_of_several_algorithms_is_named_after_each_if_nothing_else_differs(small_run):
    def of(*queries):
        runs = [replace(small_run, experiment=Experiment.from_query(query)) for query in queries]
        return labels_of_several([Shown("", run, n) for n, run in enumerate(runs)], "loss")["file"]

    assert of("algorithm=easgd", "algorithm=sync_sgd") == "easgd-and-sync-sgd-digits-4-workers-loss"
    assert of("algorithm=easgd", "algorithm=sync_sgd&slow=2:4") == "easgd-digits-4-workers-and-1-more-loss"
    four = [f"algorithm={name}" for name in ("easgd", "sync_sgd", "asgd", "ssp")]
    assert of(*four) == "easgd-digits-4-workers-and-3-more-loss"
    assert of("algorithm=easgd", "algorithm=easgd&seed=1") == "easgd-digits-4-workers-and-1-more-loss"

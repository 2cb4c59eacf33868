import re
from urllib.parse import parse_qs

from app.charts import schedule_links
from experiments.specification.experiment import Experiment
from experiments.study.schedules import Plan


def address(link):
    return parse_qs(re.search(r"\?(.*)\)$", link)[1])


def test_a_schedule_is_trained_with_by_its_algorithm_at_its_size_and_back():
    link = schedule_links.training(Plan.of(schedule="1f1b", ranks=3, chunks=8))
    assert address(link)["algorithm"] == ["dapple"] and address(link)["workers"] == ["3"]
    trained = Experiment.from_query(re.search(r"\?(.*)\)$", link)[1])
    back = address(schedule_links.schedule(trained))
    assert back == {"schedule_a": ["1f1b"], "ranks": ["3"], "micro_batches": ["8"]}


def test_what_no_algorithm_trains_with_and_what_is_no_pipeline_has_no_link():
    assert schedule_links.training(Plan.of(schedule="systolic", ranks=3, chunks=8)) == ""
    assert schedule_links.schedule(Experiment.of({"algorithm": "sync_sgd"})) == ""

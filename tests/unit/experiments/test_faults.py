"""Fault settings: values by rank inside an experiment, their own text outside."""

import math
import pickle

import pytest

from experiments.specification.experiment import Experiment
from experiments.specification.faults import LostRanks, PausedRanks, SlowRanks

ODD = {"slow": "3:2.0, 1:1.5", "pause": "1:0.50-0.80,1:0.1-0.2", "crash": "0:5e-1"}


def test_a_fault_setting_is_a_value_by_rank():
    experiment = Experiment(slow="2:3,0:1.5", pause="1:0.5-0.8,1:0.1-0.2", crash="3:0.4")
    assert experiment.slow.by_rank == {2: 3.0, 0: 1.5}
    assert experiment.pause.by_rank == {1: ((0.1, 0.2), (0.5, 0.8))}
    assert experiment.crash.by_rank == {3: (0.4, math.inf)}


def test_links_commands_and_json_say_a_fault_as_it_was_written():
    experiment = Experiment.of(ODD)
    for same in (Experiment.from_query(experiment.query()), Experiment.from_json(experiment.json())):
        assert {name: getattr(same, name).text for name in ODD} == ODD
        assert same == experiment and same.key() == experiment.key()
    assert "--slow '3:2.0, 1:1.5'" in experiment.command()
    assert pickle.loads(pickle.dumps(experiment)).crash.by_rank == {0: (0.5, math.inf)}


def test_a_setting_of_another_experiment_is_taken_as_it_is():
    assert Experiment(slow=Experiment.of(ODD).slow).slow.text == ODD["slow"]


def test_without_faults_a_setting_is_empty_and_in_no_link():
    assert Experiment().slow == SlowRanks() and not Experiment().crash.by_rank
    assert "slow" not in Experiment().query()
    assert Experiment.of(dict.fromkeys(ODD, "none")) == Experiment()  # as sheets print it


@pytest.mark.parametrize(("name", "text"), [("slow", "4:2"), ("pause", "9:0.1-0.2"), ("crash", "4:1")])
def test_a_rank_that_there_is_not_is_refused_with_those_that_there_are(name, text):
    with pytest.raises(ValueError, match=rf"{name}: there is no rank {text[0]}; ranks are 0 to 3\."):
        Experiment.of({name: text})


def test_one_rank_gets_another_fault_and_the_others_keep_theirs():
    assert SlowRanks.read("3:2,1:1.5").with_value(3, 4.0).text == "1:1.5,3:4"
    assert PausedRanks.read("1:0.5-0.8").with_value(1, None).text == ""
    assert LostRanks.read("").with_value(2, (0.1, math.inf)).text == "2:0.1"


@pytest.mark.parametrize("value", [3, {"text": "2:3", "by_rank": {"2": 9.0}}, ["2:3"]])
def test_a_setting_is_read_from_text_alone(value):
    with pytest.raises(ValueError, match=r"slow is .*; it must be text"):
        Experiment.of({"slow": value})

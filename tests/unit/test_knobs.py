"""Knobs that are lists of numbers: tuples inside, text outside."""

import doctest
import json

import pytest

import knobs
from experiments.experiment import Experiment
from knobs import Counts, Knobs, Rising, knob, make


class Lists(Knobs):
    cuts: Counts = knob("", "layers in each stage")
    milestones: Rising = knob("30,60", "epochs")


def test_a_list_of_numbers_is_a_tuple_inside_whatever_it_came_as():
    for given in ("3,3,2", [3, 3, 2], (3, 3, 2), ["3", "3", "2"]):
        assert Lists(cuts=given).cuts == (3, 3, 2)
    assert Lists().cuts == () and Lists().milestones == (30.0, 60.0)
    assert all(type(x) is float for x in Lists(milestones=[1, 2]).milestones)


@pytest.mark.parametrize("text", ["", "30", "30,60,80", "0.5,1.25", "1e-05,7"])
def test_a_list_of_numbers_is_the_same_text_outside(text):
    assert Lists(milestones=text).model_dump(mode="json")["milestones"] == text


def test_text_and_tuple_are_one_experiment_with_one_key_and_one_link():
    text = Experiment.of({"algorithm": "pipedream", "cuts": "5,3", "replicas": "2,2"})
    inside = Experiment.of({"algorithm": "pipedream", "cuts": (5, 3), "replicas": [2, 2]})
    assert text == inside and text.key() == inside.key() and "cuts=5%2C3" in inside.query()
    assert "--cuts 5,3" in inside.command() and json.loads(inside.json())["settings"]["cuts"] == "5,3"
    assert inside.knobs.cuts == (5, 3)
    assert Experiment.from_json(inside.json()) == Experiment.from_query(inside.query()) == text


@pytest.mark.parametrize("value", ["3,x", "3,,2", "0,3", "3.5", [3, 0], " 3"])
def test_what_is_no_list_of_counts_is_refused_with_an_example(value):
    with pytest.raises(ValueError, match="write whole numbers with commas, for example 3,3,2, or nothing"):
        make(Lists, {"cuts": value}, "lists")


@pytest.mark.parametrize("value", ["60,30", "0,1", "a", "nan", "1,inf", [2, 2]])
def test_what_does_not_rise_is_refused_with_an_example(value):
    with pytest.raises(ValueError, match="write rising numbers with commas, for example 30,60,80, or nothing"):
        make(Lists, {"milestones": value}, "lists")


def test_the_examples_of_the_docstrings_hold():
    assert doctest.testmod(knobs).failed == 0

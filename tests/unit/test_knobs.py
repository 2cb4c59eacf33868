"""Knobs that are lists of numbers: tuples inside, text outside."""

import doctest
import json
from urllib.parse import urlencode

import pytest

import algorithms
import knobs
import workloads
from experiments.specification.experiment import Experiment, format_value, settings_of
from knobs import Counts, Knobs, Rising, allowed_values, condition, in_force, knob, make
from tests.quotes import quote


class Lists(Knobs):
    cuts: Counts = knob("", "layers in each stage")
    milestones: Rising = knob("30,60", "epochs")


def test_a_list_of_numbers_is_a_tuple_inside_whatever_it_came_as():
    for given in ("3,3,2", [3, 3, 2], (3, 3, 2), ["3", "3", "2"]):
        assert Lists(cuts=given).cuts == (3, 3, 2)
    assert Lists().cuts == () and Lists().milestones == (30.0, 60.0)
    assert all(type(x) is float for x in Lists(milestones=[1, 2]).milestones)


def test_a_text_with_a_control_character_is_refused_and_not_echoed():
    for text in ("\n", "a\x1b[2Jb", "a\x9bJ", "a\tb"):
        with pytest.raises(ValueError, match="control character") as refusal:
            Experiment.of({"workload": "mnist", "folder": text})
        assert str(refusal.value).isprintable()
    assert Experiment.of({"workload": "mnist", "folder": "Übung/日本"}).data["folder"] == "Übung/日本"


class Poem(Knobs):
    text: str = knob("one\ntwo", "lines", lines=True)


def test_a_text_of_several_lines_may_break_them_and_nothing_else():
    assert Poem().text == Poem(text="one\ntwo").text and Poem(text="1F0,\t1B0\r\n").text == "1F0,\t1B0\r\n"
    with pytest.raises(ValueError, match="control character"):
        Poem(text="one\n\x1b[2J")


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
    with pytest.raises(ValueError, match=quote("whole numbers … 3,3,2")):
        make(Lists, {"cuts": value}, "lists")


@pytest.mark.parametrize("value", ["60,30", "0,1", "a", "nan", "1,inf", [2, 2]])
def test_what_does_not_rise_is_refused_with_an_example(value):
    with pytest.raises(ValueError, match=quote("increasing numbers … 30,60,80")):
        make(Lists, {"milestones": value}, "lists")


def test_of_two_mistakes_each_is_a_sentence():
    with pytest.raises(ValueError, match=r"^batch is '0'; [^.]*\. workers is '0'; [^.]*\.$"):
        Experiment.of({"batch": "0", "workers": "0"})


def test_the_examples_of_the_docstrings_hold():
    assert doctest.testmod(knobs).failed == 0


class Bounded(Knobs):
    share: float = knob(0.5, "a share", gt=0, le=1)
    decay: float = knob(0.5, "a decay", ge=0, lt=1)
    between: float = knob(0.5, "neither of two", gt=0, lt=1, unit="s")
    least: float = knob(0.5, "no less", ge=0)
    small: float = knob(0.5, "small", lt=1)
    most: float = knob(0.5, "no more", le=1)
    seed: int = knob(0, "to its last digit", ge=0, le=2**31 - 1)
    scale: int = knob(1, "as a power of two", ge=1, le=2**60)


def test_a_bound_that_is_not_allowed_itself_is_told_apart_from_one_that_is():
    told = {name: allowed_values(Bounded, name) for name in Bounded.model_fields}
    assert told == {
        "share": "above 0 to 1",
        "decay": "0 to below 1",
        "between": "above 0 to below 1 s",
        "least": "at least 0",
        "small": "below 1",
        "most": "at most 1",
        "seed": "0 to 2147483647",
        "scale": "1 to 2^60",
    }
    with pytest.raises(ValueError, match=quote("decay … '1' … 0 to below 1")):
        make(Bounded, {"decay": "1"}, "it")


class Conditional(Knobs):
    rule: str = knob("plain", "what a step is")
    momentum: float = knob(0.9, "of the rule", when={"rule": ("heavy", "ahead")})
    kinds: int = knob(1, "how many")
    apart: float = knob(0.0, "how far", unless={"kinds": (1,)})
    along: float = knob(0.0, "in which direction", unless={"apart": (0,)})


def test_a_knob_is_in_force_when_those_that_read_it_are():
    assert not in_force(Conditional, "momentum", {}) and in_force(Conditional, "momentum", {"rule": "ahead"})
    assert not in_force(Conditional, "apart", {}) and in_force(Conditional, "apart", {"kinds": 2})
    assert not in_force(Conditional, "along", {"apart": 1.0})  # apart is not in force itself
    assert in_force(Conditional, "rule", {"rule": "heavy"})
    assert condition(Conditional, "momentum") == "with rule heavy or ahead"
    assert condition(Conditional, "apart") == "with kinds other than 1" and condition(Conditional, "kinds") == ""


def test_a_knob_that_is_not_in_force_makes_no_other_experiment():
    idle, plain = Experiment(settings={"momentum": 0.5}), Experiment()
    assert idle == plain and idle.key() == plain.key() and "momentum" not in plain.in_force()
    heavy = Experiment.of({"update": "momentum", "momentum": 0.5})
    assert heavy.in_force()["momentum"] == 0.5 and heavy.change(update="sgd") == plain


def test_a_value_without_effect_is_refused_where_it_was_asked_for_be_it_the_default_or_not():
    for value in (0.5, "0.9", Experiment().settings["momentum"]):
        with pytest.raises(ValueError, match=quote("momentum … no effect … update momentum or nesterov")):
            Experiment().refuse_idle({"momentum": value, "update": "sgd"})
    Experiment().refuse_idle({"update": "sgd", "workers": 4})
    Experiment.of({"update": "momentum"}).refuse_idle({"momentum": "0.9"})


def test_every_knob_that_is_not_in_force_is_refused_at_its_default():
    for name in algorithms.names():
        e = Experiment(algorithm=name)
        own, theirs = e.method.Settings, workloads.find(e.workload).Settings
        for kind, held in ((own, e.settings), (theirs, e.data)):
            for idle in (one for one in held if not in_force(kind, one, held)):
                with pytest.raises(ValueError, match=quote(f"{idle} … no effect")):
                    e.refuse_idle({idle: held[idle]})


def test_presets_are_found_in_any_case():
    found = Experiment(network="100gbe", device="h200", jitter="NONE")
    assert (found.network, found.device, found.jitter) == ("100GbE", "H200", "none")


def test_a_batch_has_no_effect_where_a_step_takes_all_samples():
    plain = Experiment(algorithm="sandblaster")
    assert Experiment(algorithm="sandblaster", batch=8) == plain
    with pytest.raises(ValueError, match=quote("batch … no effect … sandblaster")):
        plain.refuse_idle({"batch": 32})


def test_links_and_json_may_name_every_setting_and_not_change_what_has_no_effect():
    plain = Experiment()
    every = {**plain.model_dump(mode="json", exclude={"settings", "coding", "data"}), **plain.settings, **plain.data}
    link = urlencode({name: format_value(value) for name, value in every.items()})
    assert Experiment.from_query(link) == Experiment.from_json(plain.json(), idle=False) == plain
    other = json.loads(plain.json()) | {"settings": {**plain.settings, "momentum": 0.5}}
    assert Experiment.from_json(json.dumps(other)) == plain, "as a stored run of other defaults may have it"
    for refused in (
        lambda: Experiment.from_query("momentum=0.5"),
        lambda: Experiment.from_json(json.dumps(other), idle=False),
    ):
        with pytest.raises(ValueError, match=quote("momentum … no effect")):
            refused()


def test_a_condition_names_knobs_and_values_that_there_are():
    kinds = {kind for name in algorithms.names() for kind in settings_of(name, "none", "digits")}
    kinds |= {kind for name in workloads.WORKLOADS for kind in settings_of("sgd", "none", name)}
    for kind in kinds:
        for field in kind.model_fields.values():
            extra = field.json_schema_extra
            for other, some in {**extra["when"], **extra["unless"]}.items():
                assert all(kind(**{other: value}) for value in some)

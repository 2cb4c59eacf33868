import math
import re
from typing import Literal

import pytest

import algorithms
import algorithms.compression as compressions
import workloads
from app.settings import controls, helps
from app.settings.controls import control
from experiments.specification.experiment import NESTED, Experiment
from knobs import Knobs, knob, local
from tests.sources import ROOT

OWNERS = (
    Experiment,
    *(algorithms.find(name).Settings for name in algorithms.names()),
    *(workloads.find(name).Settings for name in workloads.WORKLOADS),
    *(compressions.find(name).Settings for name in compressions.COMPRESSIONS),
)
each_owner = pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__module__)


def knobs_of(owner):
    return [name for name in owner.model_fields if name not in (*NESTED, "algorithm")]


class Sample(Knobs):
    """One knob of each sort."""

    few: Literal["a", "b"] = knob("a", "few words")
    many: Literal["a", "b", "c", "d"] = knob("a", "many words")
    on: bool = knob(True, "on or off")
    short: int = knob(3, "a short range", ge=1, le=10)
    share: float = knob(0.5, "a share", ge=0, lt=1)
    memory: float = knob(0.999, "a share close to one", ge=0, lt=1)
    wide: int = knob(4, "a wide range", ge=1, le=10_000, unit="steps", postpones=True)
    rate: float = knob(0.2, "a rate", gt=0, le=1000)
    late: float | None = knob(None, "a time", ge=0, le=10, unit="s")
    free: str = knob("", "text", example="2:3")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("few", "choice"), ("many", "list"), ("on", "switch"), ("short", "slider"), ("share", "slider"), ("wide", "scale"),
     ("rate", "scale"), ("late", "scale"), ("free", "text")],
)  # fmt: skip
def test_type_and_bounds_choose_the_widget(name, kind):
    assert control(Sample, name).kind == kind


def test_none_and_the_example_are_said_as_they_are_declared_whatever_the_help_says():
    class Worded(Knobs):
        limit: float | None = knob(None, "the preset's largest value, for example 3", none="no limit", gt=0)
        begin: float | None = knob(None, "stop here", gt=0)
        graph: str = knob("", "pairs of workers", example="0-1,1-2")

    assert control(Worded, "limit").words(None) == "no limit" and not control(Worded, "limit").example
    assert control(Worded, "begin").words(None) == "auto"
    assert control(Worded, "graph").example == "0-1,1-2" and "0-1,1-2" in control(Worded, "graph").help


@each_owner
def test_an_example_is_a_value_that_its_setting_allows(owner):
    for name in knobs_of(owner):
        if example := control(owner, name).example:
            workers = {"workers": 8} if owner is Experiment else {}
            assert getattr(owner(**workers, **{name: example}), name)


@each_owner
def test_every_stop_of_every_scale_is_allowed(owner):
    for name in knobs_of(owner):
        one = control(owner, name)
        when = (owner.model_fields[name].json_schema_extra or {}).get("when", {})
        others = {other: values[0] for other, values in when.items()}  # with which it has an effect
        for value in one.options if one.kind == "scale" else ():
            if value is not None or name != "steps":  # a budget there must be, this one or another
                assert getattr(owner(**others, **{name: value}), name) == value


@each_owner
def test_every_widget_offers_its_default_and_explains_itself(owner):
    for name in knobs_of(owner):
        one = control(owner, name)
        assert one.help, name
        if one.kind in ("choice", "list", "scale"):
            assert one.default in one.options, name
        if one.kind == "scale":
            assert 3 <= len(one.options) <= 60, name
            assert len({one.words(value) for value in one.options}) == len(one.options), name


def test_a_scale_of_times_starts_with_the_preset_and_reads_in_units():
    late = control(Experiment, "latency")
    assert late.options[:3] == (None, 0.0, 1e-6)
    assert [late.words(value) for value in (None, 0.0, 2e-5, 1.0)] == ["preset", "0 s", "20 µs", "1 s"]


def test_a_share_close_to_one_has_stops_that_come_closer_and_closer():
    one = control(Sample, "memory")
    assert one.kind == "scale" and one.options[-3:] == (0.995, 0.999, 0.9999)


def test_a_half_open_slider_stops_short_of_its_end():
    assert math.isclose(control(Sample, "share").high, 0.99)


def test_delays_are_known_by_their_declaration():
    assert control(Sample, "wide").postpones and not control(Sample, "rate").postpones


def test_the_scale_of_rates_reaches_ten_times_the_rate_that_an_experiment_begins_with():
    one = control(algorithms.find("asgd").Settings, "learning_rate")
    assert one.options[-1] == 1000 * one.default
    wide, low = controls.reaching(one, 50.0), controls.reaching(one, 2e-5)
    assert wide.options[: len(one.options)] == one.options and wide.options[-3:] == (100.0, 200.0, 500.0)
    assert low.options[:4] == (2e-6, 5e-6, 1e-5, 2e-5) and low.options[-1] == one.options[-1]
    assert controls.reaching(one, one.default) == one


def test_labels_are_words_or_the_letters_of_the_literature():
    assert control(Sample, "wide").label == "Wide (steps)"
    assert control(algorithms.find("downpour").Settings, "n_push").label == "`n_push` (steps)"
    assert control(Experiment, "batch").label == "Batch size (samples)"


def test_every_setting_of_the_experiment_has_its_place_on_the_page():
    placed = {*controls.DELAY, *controls.PLACE, *controls.MORE, *controls.BUDGET, *controls.MORE_BUDGET}
    placed |= {"algorithm", "compression", "workload", "workers", "batch", *NESTED}
    assert placed == set(Experiment.model_fields)


def test_every_control_says_what_it_is_and_what_it_does():
    short = []
    for kind in OWNERS:
        for name in {*kind.model_fields} - {*NESTED} - {*local(kind)}:
            effect = helps.effect(kind, name)
            if len(effect.split()) < 4 or not effect.endswith("."):
                short.append((kind.__module__, name, effect))
    assert not short


def test_every_effect_belongs_to_a_setting():
    shown = {helps.effect(kind, name) for kind in OWNERS for name in kind.model_fields}
    assert {text for texts in helps.effects().values() for text in texts.values()} <= shown


def test_the_command_line_prints_the_first_sentence_of_the_help():
    for kind in OWNERS:
        for name in {*kind.model_fields} - {*NESTED}:
            line = kind.model_fields[name].description
            assert helps.text(kind, name).lower().startswith(f"{line}.".lower()), (kind.__module__, name)
            assert not helps.effect(kind, name).lower().startswith(line.lower())


def test_nothing_else_of_a_session_has_the_name_of_a_setting():
    """Streamlit keeps a setting under its name: a page that draws a second element of this key fails, and a page that
    remembers something under it finds what a method was given in the workbench.
    """
    text = "".join(source.read_text("utf-8") for source in (ROOT / "app").rglob("*.py"))
    remembered = re.findall(
        r"state\.(\w+)", "".join(re.findall(r"^ *((?:[\w.]*state\.\w+,? )+)= ", text, re.MULTILINE))
    )
    names = {*re.findall(r'\bkey="([^"]+)"', text), *remembered}
    settings = {name for owner in OWNERS for name in owner.model_fields}
    mine = {"algorithm", "learning_rate"}  # the sidebar's own control, and a best rate that was found for it
    assert {"run", "forgetting", "resets"} <= names and names & settings == mine


def test_an_axis_has_one_unit():
    late = control(Sample, "late")
    assert late.words_on_axis([0, 1e-5, 1e-3, 0.1]) == ("0 ms", "0.01 ms", "1 ms", "100 ms")
    assert late.words_on_axis([None, 2.0]) == (late.words(None), "2 s")
    assert control(Sample, "wide").words_on_axis([1, 2000]) == ("1", "2,000")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("sync_sgd", []),
        ("momentum", ["momentum"]),
        ("easgd", ["period", "pull"]),
        ("delayed", ["delay", "layerwise"]),
        ("interleaved", ["chunks", "pieces"]),
        ("robust", ["aggregate", "tolerated"]),
        ("pipedream", ["weights", "momentum"]),
    ],
)
def test_an_algorithms_own_settings_come_before_those_that_most_have(name, own):
    assert [one.name for one in controls.main(algorithms.find(name).Settings)] == own

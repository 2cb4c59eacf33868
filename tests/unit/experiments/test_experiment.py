"""An experiment's three spellings, and what it refuses."""

import json
import re
import shlex
from itertools import product

import pytest

import algorithms
import workloads
from algorithms.compression import COMPRESSIONS
from experiments.cli.main import cli
from experiments.cli.options import values
from experiments.cli.running import base_experiment
from experiments.specification.experiment import MAX_QUERY, PAGE, Experiment, coding_settings
from tests.quotes import quote


def from_command(command):
    words = shlex.split(command)
    assert words[:2] == ["lockstep", "run"]
    given = cli.commands["run"].make_context("run", words[2:]).params
    given.pop("as_json")
    return base_experiment(given.pop("name"), given.pop("start"), given.pop("runs"), values(given))


def is_one_friendly_sentence(error):
    text = str(error)
    assert 10 < len(text) < 700 and "\n" not in text and "Traceback" not in text and "validation error" not in text
    return True


@pytest.mark.parametrize(
    "query",
    [
        "algorithm=nonsense",
        "algorithm=../../etc/passwd",
        "algorithm=averaging.nonsense",
        "algorithm=",
        "workload=os",
        "workload=__init__",
        "workers=1000000000",
        "workers=-1",
        "workers=nan",
        "workers=1e3x",
        "steps=",
        "steps=0",
        "seconds=inf",
        "target_loss=nan",
        "precision=float16",
        "cluster=cloud",
        "network=100TbE",
        "slow=9999999999:3",
        "slow=1:1e999",
        "slow=1:0",
        "pause=0:2-1",
        "crash=a:b",
        "crash=99:1",
        "crash=0:2-1",
        "crash=0:1,0:2",
        "settings={}",
        "data=1",
        "model_config=1",
        "__class__=x",
        "version=99&algorithm=easgd",
        "algorithm=easgd&elasticity=0.5",
        "algorithm=sgd&period=4",
        "workers",
        "workers=4&&steps=2",
        "%",
        "seed=<script>alert(1)</script>",
        "seed=" + "9" * 5000,
        "a=1&" * 500,
        "x" * (MAX_QUERY + 1),
        "\x00=\x00",
    ],
)
def test_a_bad_link_gives_one_sentence(query):
    with pytest.raises(ValueError) as caught:
        Experiment.from_query(query)
    assert is_one_friendly_sentence(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "null",
        "[" * 100_000,
        '{"algorithm": 3}',
        '{"workers": "many"}',
        '{"settings": []}',
        '{"settings": {"period": {}}, "algorithm": "easgd"}',
        '{"seconds": NaN}',
        '{"seconds": 1e999}',
        '{"steps": 1' + "0" * 5000 + "}",
        '{"format": 7, "algorithm": "sgd"}',
        '{"steps": null}',
        '{"data": {"' + "n" * 5000 + '": 1}}',
    ],
)
def test_bad_json_gives_one_sentence(text):
    with pytest.raises(ValueError) as caught:
        Experiment.from_json(text)
    assert is_one_friendly_sentence(caught.value)


@pytest.mark.parametrize(("workload", "name"), [("mnist", "folder"), ("text", "file")])
def test_files_of_the_machine_are_named_on_its_command_line_and_never_by_a_link(workload, name):
    owner_s = Experiment.of({"workload": workload, name: "/etc/passwd"})
    assert from_command(owner_s.command()) == Experiment.from_json(owner_s.json()) == owner_s
    with pytest.raises(ValueError, match=f"link.*{name}") as caught:
        Experiment.from_query(owner_s.query())
    assert is_one_friendly_sentence(caught.value)
    assert Experiment.from_query(f"workload={workload}&{name}=") == Experiment(workload=workload)


def test_a_misspelt_name_is_answered_with_the_right_one():
    for values_given, hint in (
        ({"algorithm": "easgdd"}, "did you mean easgd?"),
        ({"algorithm": "EASGD"}, "did you mean easgd?"),
        ({"algorithm": "fsdp"}, "did you mean zero3?"),
        ({"algorithm": "Priority scheduling"}, "did you mean priority?"),
        ({"algorithm": "decoupled backpropagation"}, "did you mean ddg?"),
        ({"algorithm": "dgc"}, "dgc … compression … sync_sgd --compression dgc"),
        ({"workload": "digit"}, "did you mean digits?"),
        ({"network": "100 GbE"}, "100GbE? … latency:bandwidth:overhead"),
        ({"device": "RTX4090"}, "FLOP/s:bytes/s:overhead"),
        ({"algorithm": "easgd", "perod": 3}, "did you mean period?"),
    ):
        with pytest.raises(ValueError, match=quote(hint)):
            Experiment.of(values_given)


def test_a_refused_value_is_told_with_the_default_in_force_and_not_with_the_declared_one():
    for query, told in (
        ("algorithm=easgd&learning_rate=5000", "above 0 to 1000 … default 0.5"),
        ("algorithm=sgd&workers=0", "1 to 4096 … default 1"),
    ):
        with pytest.raises(ValueError) as refusal:
            Experiment.from_query(query)
        assert re.search(quote(told), str(refusal.value)), "its help and its diverged runs say the same"


def test_a_refusal_says_once_whose_setting_it_is():
    for query, begins in (
        ("algorithm=easgd&momentum=1", "easgd: momentum … '1'"),
        ("workers=0", "workers … '0'"),
        ("slow=1", "slow: '1' "),
    ):
        with pytest.raises(ValueError, match=f"^{quote(begins)}"):
            Experiment.from_query(query)
    with pytest.raises(ValueError, match=r"^easgd: momentum "):
        Experiment.from_json(json.dumps({"algorithm": "easgd", "settings": {"momentum": 1}}))


def test_flat_names_are_unambiguous():
    own = set(Experiment.model_fields)
    for name, data, code in product(algorithms.names(), workloads.WORKLOADS, COMPRESSIONS):
        kinds = algorithms.find(name).Settings, workloads.find(data).Settings, coding_settings(code)
        sets = [own, set(PAGE), *(set(kind.model_fields) for kind in kinds)]
        assert sum(map(len, sets)) == len(set.union(*sets)), (name, data, code)


def test_the_address_of_a_workbench_page_is_a_link_to_its_experiment():
    e = Experiment.of({"algorithm": "easgd", "period": 2})
    address = f"http://localhost:8501/?axis=bytes&log=true&{e.query()}&keep=0123456789abcdef-01234567,x&source=true"
    assert Experiment.from_query(address) == e


def test_changing_the_algorithm_leaves_its_settings_behind_and_keeps_the_rest():
    before = Experiment.of({"algorithm": "easgd", "period": 7, "learning_rate": 0.05, "workers": 3})
    after = before.change(algorithm="downpour", seed=5)
    assert (after.algorithm, after.workers, after.seed) == ("downpour", 3, 5)
    assert after.settings["learning_rate"] == 0.05 and "period" not in after.settings
    assert after.change(workers=None).workers == Experiment().workers


def test_an_algorithm_may_begin_with_other_workers_and_steps_than_everybody():
    alone, batch = Experiment(algorithm="sgd"), Experiment(algorithm="sandblaster")
    assert (alone.workers, alone.steps, batch.workers, batch.steps) == (1, 200, 4, 20)
    for e in (alone, batch, alone.change(workers=4), batch.change(steps=200), batch.change(epochs=3)):
        assert Experiment.from_query(e.query()) == Experiment.from_json(e.json()) == Experiment.of(e.flat()) == e
    assert alone.query() == "algorithm=sgd&workload=digits"
    assert Experiment(workers=8).change(algorithm="sgd") == alone
    assert alone.change(algorithm="sync_sgd") == Experiment()
    assert alone.change(workers=None) == alone


@pytest.mark.parametrize("name", [name for name in algorithms.names() if algorithms.family(name) == "sequential"])
def test_a_sequential_method_refuses_more_than_one_worker(name):
    with pytest.raises(ValueError, match=r"one worker.* 3 .*use 1, or sync_sgd"):
        algorithms.find(name).check(3, 32, None, None)
    algorithms.find(name).check(Experiment(algorithm=name).workers, 32, None, None)


def test_a_compression_has_its_settings_beside_the_algorithms():
    e = Experiment.of({"compression": "top_k", "density": "0.05", "learning_rate": 0.1})
    assert (
        e.coding == {"density": 0.05, "error_feedback": True, "error_decay": 1.0} and e.settings["learning_rate"] == 0.1
    )
    assert e.command() == ("lockstep run sync_sgd --learning-rate 0.1 --density 0.05 --compression top_k")
    other = e.change(compression="threshold", threshold=0.3)
    assert other.coding == {"threshold": 0.3, "error_feedback": True} and other.settings["learning_rate"] == 0.1
    assert e.change(compression="none").coding == {}


def test_a_setting_of_a_compression_is_unknown_without_it():
    with pytest.raises(ValueError, match=quote("sync_sgd … digits … 'density'")):
        Experiment.of({"density": 0.05})


def test_an_unknown_setting_is_not_answered_with_the_list_of_all():
    with pytest.raises(ValueError, match=r"learning_rate, .* and \d+ more") as caught:
        Experiment.of({"zzzz": 1})
    assert str(caught.value).count(",") < 10


def test_another_budget_replaces_the_default_number_of_steps_and_both_may_be_given():
    assert Experiment.of({"seconds": 2}).steps is None
    both = Experiment.of({"seconds": 2, "steps": 200})
    assert both.steps == 200 and Experiment.from_query(both.query()) == both
    assert both.change(seconds=None) == Experiment()


def test_equal_experiments_have_equal_keys_and_others_do_not():
    a, b = Experiment.of({"workers": "8"}), Experiment.from_json(json.dumps({"workers": 8}))
    assert a.key() == b.key() != Experiment.of({"workers": 9}).key()

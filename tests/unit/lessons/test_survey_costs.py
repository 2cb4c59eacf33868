"""The survey's table of costs: idle time, models whose layers differ, and the settings that a row is priced with."""

from functools import cache
from itertools import product

import pytest
from click.testing import CliRunner

import algorithms
import lessons
from lessons import survey
from lessons.cli.survey import survey as command
from lessons.survey import costs, idle, published
from lessons.survey.models import MODELS, blocks

DRAINED = [name for name in algorithms.names() if idle.is_drained(name)]
STACK, BLOCKS, VGG = (MODELS[name] for name in ("32 layers of 4,096", "16 blocks of 4,096", "VGG-16"))


@cache
def table(model, workers=8, **settings):
    return {row["method"]: row for row in survey.table(model, survey.Cluster(workers, settings=settings))}


@pytest.mark.parametrize("name", DRAINED)
def test_the_formula_of_idle_time_is_what_the_list_simulator_finds_for_equal_stages(name):
    tried = 0
    for stages, chunks in product((2, 3, 4, 6, 7), (2, 4, 6, 8, 12, 16, 24)):
        if chunks < stages and name in ("chimera", "v_half", "v_min", "zb_interleaved"):
            continue  # whose formulas are of at least as many micro-batches as stages
        if name == "chimera" and chunks % stages:
            continue
        simulated = idle.of_stages(name, (1,) * stages * costs.stages_per_rank(name), stages, chunks)
        symbols = costs.symbols(name, STACK.symbols(32), stages, {"M": chunks}) | {"S": stages}
        if simulated is not None:
            assert costs.every()[name].evaluate("idle", symbols) == pytest.approx(simulated), (stages, chunks)
            tried += 1
    assert tried >= 6


def test_a_wide_middle_lets_tensor_parallelism_send_two_fifths_of_what_distbelief_sends():
    same, less = ({name: rows[name]["communication value"] for name in ("tensor", "distbelief")}
                  for rows in (table(STACK), table(BLOCKS)))  # fmt: skip
    assert same["tensor"] == same["distbelief"]
    assert less["tensor"] / less["distbelief"] == pytest.approx(2 / 5, rel=0.05)
    assert less["tensor"] == 4 * 2 * 7 * 256 * (32 - 1) * 4096  # the first layer passes no gradient on


def test_blocks_have_as_many_parameters_and_flops_as_their_layers():
    model = blocks(3, 10)
    assert model.parameters == 3 * (2 * 10 * 40 + 50)
    assert model.symbols(2)["F"] == 2 * 3 * 2 * 10 * 40 and model.symbols(2)["A"] == 2 * 3 * 50


def test_stages_that_differ_make_a_pipeline_idle_longer_and_one_in_two_directions_least():
    equal, vgg = ({name: row["idle value"] for name, row in table(model, M=16).items()} for model in (STACK, VGG))
    for name in (*DRAINED, "pipedream"):
        assert vgg[name] > equal[name], name
    assert equal["interleaved"] < equal["gpipe"] < vgg["gpipe"] < vgg["interleaved"]
    assert min((vgg[name], name) for name in DRAINED if name not in ("three_d", "five_d"))[1] == "dualpipe"


def test_memory_is_that_of_the_largest_stage():
    model, rows = VGG, table(VGG)
    of_stages, of_largest = model.cut(8, 256)
    assert of_stages["r"] == pytest.approx(8 * max(model.work(8)) / sum(model.work(8)))
    assert of_stages["r"] > 1
    assert of_largest["d"] > 8 * max(layer.parameters for layer in model.shapes) > model.parameters
    assert rows["gpipe"]["memory value"] == pytest.approx(4 * (2 * of_largest["d"] + of_largest["A"]) / 8)
    assert table(STACK)["gpipe"]["memory value"] == 4 * (2 * STACK.parameters + 256 * 32 * 4096) / 8


def test_a_model_with_fewer_layers_than_stages_has_no_price_there_and_one_everywhere_else():
    rows = table(VGG, workers=32)
    assert rows["gpipe"]["idle value"] is rows["gpipe"]["memory value"] is rows["gpipe"]["communication value"] is None
    assert rows["sync_sgd"]["memory value"] and rows["tensor"]["communication value"]


def test_a_schedule_that_does_not_exist_for_so_few_micro_batches_has_no_idle_time():
    assert table(VGG, M=8)["zb_h2"]["idle value"] is None
    assert table(VGG, M=16)["zb_h2"]["idle value"] > 0


def test_a_cost_that_uses_a_setting_which_the_method_does_not_have_says_so(monkeypatch):
    family = costs.every()["local_sgd"]
    monkeypatch.setattr(costs, "every", lambda: {"one_shot": family})  # as if it had none of its own
    with pytest.raises(ValueError, match="the cost of one_shot uses H, but the method has no setting period"):
        costs.symbols("one_shot", STACK.symbols(1), 4)


def test_every_row_says_what_a_worker_waits_for_and_with_which_period():
    for name, row in table(STACK).items():
        assert row["waits"]
        setting = algorithms.find(name).Settings().model_dump().get("period")
        if any("H" in costs.every()[name].symbols(quantity) for quantity in costs.QUANTITIES):
            assert row["settings"]["H"] == setting, name
    assert table(STACK)["diloco"]["settings"] == {"H": 20} and table(STACK, H=500)["diloco"]["settings"] == {"H": 500}
    assert "H = 20" in survey.markdown()


def test_the_command_prices_a_named_model_and_prints_idle_time_and_settings():
    said = CliRunner().invoke(command, ["--costs", "--family", "averaging", "--model", "vgg-16"])
    assert "138,357,544 parameters" in said.output and "H = 20" in said.output
    assert "late                   50 %  1/2" in said.output and "waits for" in said.output
    for words, message in (
        (["--model", "AlexNet"], "no model 'AlexNet'"),
        (["--model", "VGG-16", "--width", "8"], "--width is part of the model"),
    ):
        refused = CliRunner().invoke(command, ["--costs", *words])
        assert refused.exit_code == 2 and message in refused.output


def test_published_numbers_are_computed_again_and_lie_as_near_as_the_book_says():
    ours = {one.method: one.ours() for one in survey.PUBLISHED}
    assert ours["zb_h1"].startswith("44 of 44 bubbles")
    assert float(ours["pipedream"].split()[0]) == pytest.approx(6.98, rel=0.15) and "plan 7-1" in ours["pipedream"]
    assert ours["chen"].startswith("1.9 times as fast on two machines as on one, 3.5 on four")
    assert ours["gpipe"] == "1.8 on 2, 3.5 on 4, 6.3 on 8"
    assert 1 < published.two_gpus() < 1.5 and published.two_gpus(8 * 1024) > 1.8  # what a larger mini-batch repairs
    assert f"{published.two_gpus():.2f} times" in ours["sync_sgd"]


def test_every_published_number_has_a_method_of_the_table_and_a_figure_or_a_closed_form(monkeypatch):
    page = survey.markdown()
    for one in survey.PUBLISHED:
        assert one.method in algorithms.names() and one.ours() in page and one.theirs in page
        assert not one.figure or lessons.find(one.figure)
    broken = [{**row, "bubble": 0.5} for row in published._rows("pipelines.published_table")]
    monkeypatch.setattr(published, "_rows", lambda figure: broken)
    assert published._bubbles().startswith("0 of 44"), "it is counted, not typed"

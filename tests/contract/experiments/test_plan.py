"""The plan of a training run: what it says, and what it refuses."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from experiments.study import layouts, planned_pipeline, planner_errors, schedules
from experiments.study.layouts import Request
from tests.planner_fit import fit
from theory.planner import published
from theory.planner.language_model import find_model
from theory.planner.memory_use import TIGHT

LARGE = Request("llama-3-70b", gpus=64, batch="4M-tokens")


def told(request, **more):
    return " ".join(layouts.remarks(layouts.find_layouts(request), **more))


@pytest.mark.parametrize(
    ("text", "sequences"),
    [("512", 512), ("4M-tokens", 512), ("4194304 tokens", 512), ("2k", 2000), ("1.5k sequences", 1500), ("1-token", 1)],
)
def test_a_batch_is_given_in_sequences_or_tokens(text, sequences):
    assert layouts.read_batch(text, 8192) == sequences


@pytest.mark.parametrize("text", ["0", "4x", "", "-1", "1.5", "tokens"])
def test_anything_else_is_no_batch(text):
    with pytest.raises(ValueError, match="batch is"):
        layouts.read_batch(text, 8192)


def test_the_port_of_a_gpu_is_given_in_gigabits():
    assert layouts.read_network("400G") == layouts.read_network("400 Gbit/s") == 50e9
    with pytest.raises(ValueError, match=r"network is 'fast'; write the Gbit/s"):
        layouts.read_network("fast")


def test_layouts_that_fit_are_shown_the_fastest_of_each_way_to_split_first():
    answer = layouts.find_layouts(LARGE)
    rows = layouts.rows(answer)
    assert len(rows) == layouts.TOP
    assert (answer.found.shares <= TIGHT).all() and (answer.tight.shares > TIGHT).all()
    seconds = [float(row["step"].removesuffix(" s")) for row in rows]
    assert seconds == sorted(seconds)
    ways = [(row["tensor"], re.sub(r"x\d+", "", row["pipe"]), row["shards"]) for row in rows]
    assert len(set(ways)) == len(ways)


def test_a_network_that_no_message_uses_is_noted():
    alone = Request("llama-3-8b", gpus=8, network="25G")
    assert "so the network has no effect" in told(alone)
    assert "so the network has no effect" not in told(replace(alone, gpus=16)) + told(replace(alone, network=""))


def test_parts_of_a_step_and_of_memory_are_the_step_and_the_memory():
    found = layouts.find_layouts(LARGE).found
    assert sum(layouts.parts_of(found.time, 0).values()) == pytest.approx(found.time.seconds[0])
    shares = [float(row["share"].removesuffix(" %")) for row in layouts.memory_parts(found)]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_the_next_best_is_slower_for_a_reason_that_is_told():
    found = layouts.find_layouts(LARGE).found
    first, other = layouts.best_of_each(found, 2)
    text = layouts.next_best(found)
    slower = float(re.search(r"It is ([\d.]+) % slower", text)[1])
    assert slower == pytest.approx(100 * (found.time.seconds[other] / found.time.seconds[first] - 1), abs=0.05)
    assert " more for " in text


def test_the_parts_that_make_the_next_best_slower_add_up_to_how_much_slower_it_is():
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "min": 60.0}
    for request in (LARGE, Request("gpt-3-13b", 64, batch="4M-tokens"), Request("llama-3-8b", 8, batch="64")):
        found = layouts.find_layouts(request).found
        first, other = layouts.best_of_each(found, 2)
        parts = re.findall(r"([\d.]+) (s|ms|µs|min) (more|less) for", layouts.next_best(found))
        total = sum(float(size) * scale[unit] * (1 if sign == "more" else -1) for size, unit, sign in parts)
        slower = float(found.time.seconds[other] - found.time.seconds[first])
        assert total == pytest.approx(slower, rel=0.1)


@pytest.mark.slow
def test_the_errors_on_models_that_a_fit_has_not_seen_are_those_shown():
    rows = published.table()
    unseen = published.leave_out(rows, rows.models, lambda some, known: published.predict(some, fit(known).constants))
    assert planner_errors.error_texts(published.errors(rows, unseen)) == planner_errors.UNSEEN


def test_the_published_runs_that_split_their_model_are_as_close_as_is_said():
    rows = published.table()
    at = rows.setup.layout
    split = at.tensor * at.pipeline * at.context > 1
    off = np.abs(published.predict(rows)[split] / rows.rates[split] - 1)
    assert (len(off), round(100 * off.max())) == (13, 13)


def test_days_and_cost_are_those_of_so_many_tokens():
    answer = layouts.find_layouts(LARGE)
    days = 15e12 / (float(answer.found.rates[0]) * 64) / 86400
    text = told(LARGE, tokens=15e12, price=2)
    assert f"15 trillion tokens take {days:,.0f} days" in text and "at 2 an hour" in text


def test_a_model_that_fits_nowhere_is_told_what_it_needs_and_how_many_gpus_would_hold_it():
    text = told(Request("llama-3.1-405b", gpus=8, batch="64"))
    enough = int(re.search(r"([\d,]+) of these GPUs would hold it", text)[1].replace(",", ""))
    assert "No layout fits. The smallest" in text and "needs" in text
    assert len(layouts.find_layouts(Request("llama-3.1-405b", gpus=enough, batch="64")).found)
    assert not len(layouts.find_layouts(Request("llama-3.1-405b", gpus=enough // 2, batch="64")).found)


def test_a_zero_bubble_schedule_that_is_the_best_is_said_to_be_untested():
    words = "its saving is untested"
    assert words in told(LARGE) and layouts.find_layouts(LARGE).found.setup.layout.defers[0]
    assert words not in told(replace(LARGE, batch="1M-tokens"))


@pytest.mark.parametrize("request_", [replace(LARGE, device="B200"), replace(LARGE, network="25G")])
def test_what_is_outside_the_data_is_said(request_):
    assert "Outside the data" in told(request_) and "Outside the data" not in told(LARGE)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"model": "bert"}, "there is no model 'bert'"),
        ({"device": "K40"}, "no GPU 'K40' to plan for"),
        ({"gpus": 12}, "12 GPUs do not fill nodes of 8"),
        ({"precision": "fp4"}, "precision is 'fp4'; use bf16 or fp8"),
        ({"device": "A100", "precision": "fp8"}, "no 8-bit matrix products"),
        ({"model": "nowhere.json"}, "nowhere.json cannot be read"),
        ({"gpus": 1024, "batch": "3", "model": "gpt-2-xl"}, "no layout gives each of 1,024 GPUs work"),
    ],
)
def test_a_mistake_is_one_sentence(mistake, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        layouts.find_layouts(replace(LARGE, **mistake))


def test_the_pipeline_of_the_best_layout_is_drawn_by_the_command_that_is_printed(main):
    found = layouts.find_layouts(LARGE).found
    schedules = set()
    for i in layouts.best_of_each(found)[:6]:
        pipeline = planned_pipeline.sketch_pipeline(found, i)
        assert pipeline.ranks > 1 and 1.9 < pipeline.backward < 2.1 and 0 < pipeline.latency < 0.1
        code, out, _ = main(*pipeline.command.split()[1:])
        assert code == 0 and "bubble" in out
        schedules.add(pipeline.schedule)
    assert schedules == {"zb_h1", "interleaved"}
    assert planned_pipeline.sketch_pipeline(layouts.find_layouts(Request("gpt-2-xl", 8)).found) is None


def test_the_pipeline_that_is_drawn_takes_as_long_as_the_layers_of_the_plan():
    found = layouts.find_layouts(Request("llama-3-70b", 512, batch="64")).found  # few micro-batches: all are drawn
    drawn = set()
    for i in np.flatnonzero(found.setup.layout.pipeline > 1)[:60]:
        pipeline = planned_pipeline.sketch_pipeline(found, i)
        if pipeline.planned > pipeline.chunks or schedules.size(pipeline.plan) > schedules.QUICK:
            continue
        parts = layouts.parts_of(found.time, i)
        once = sum(parts[name] for name in ("gradients", "update", "accumulation"))
        takes = schedules.study(pipeline.plan).summary["makespan"] * pipeline.forward
        assert takes == pytest.approx(found.time.seconds[i] - once, rel=0.12)  # which has the head, too
        drawn.add(pipeline.schedule)
    assert drawn


def test_the_command_plans_for_a_config_file(main, tmp_path):
    model = find_model("llama-3-8b")
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "num_hidden_layers": model.layers, "hidden_size": model.width, "num_attention_heads": model.heads,
                "num_key_value_heads": model.kv_heads, "intermediate_size": model.ffn, "vocab_size": model.vocabulary,
                "max_position_embeddings": model.sequence, "hidden_act": "silu",
            }
        )
    )  # fmt: skip
    printed = [
        main("plan", "--model", name, "--gpus", "8", "--batch", "64", "--json") for name in (str(config), "llama-3-8b")
    ]
    assert printed[0] == printed[1] and printed[0][0] == 0
    best = json.loads(printed[0][1])[0]
    assert best["seconds"] == pytest.approx(sum(best["parts"].values()))
    assert best["memory_share"] < 1 and best["layout"]["data"] * best["layout"]["tensor"] <= 8
    config.write_text("[]")
    assert main("plan", "--model", str(config))[0] == 2


def test_the_command_fits_into_80_columns_and_says_what_a_step_consists_of(main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = main(
        "plan", "--model", "llama-3-70b", "--gpus", "64", "--network", "400G", "--batch", "4M-tokens", "--price", "2"
    )
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert "memory" in out.splitlines()[3] and "pipeline bubble" in out and "activations" in out
    command = out.replace("\\\n", "").partition("See its pipeline")[2].splitlines()[0]
    assert main(*shlex.split(command)[1:])[0] == 0


def test_a_table_has_a_column_for_context_and_experts_only_where_a_layout_uses_them():
    def columns(**asked):
        return {*layouts.rows(layouts.find_layouts(layouts.Request(gpus=64, batch="4M-tokens", **asked)))[0]}

    assert "context" in columns(model="llama-3-8b") and "experts" not in columns(model="llama-3-8b")
    assert "experts" in columns(model="mixtral-8x7b") and "context" not in columns(model="mixtral-8x7b")

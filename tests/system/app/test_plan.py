"""The page that plans the training of a language model."""

import pytest
from streamlit.testing.v1 import AppTest

from experiments.study import layouts, planned_pipeline, planner_errors
from experiments.study.layouts import Request
from experiments.wording import units
from tests.patience import PATIENCE


def script():
    from app import plan

    plan.page()


def opened(**address):
    page = AppTest.from_function(script, default_timeout=PATIENCE)
    for name, value in address.items():
        page.query_params[name] = value
    return page.run()


def test_the_page_shows_the_layouts_of_the_command_for_the_model_and_the_cluster_that_are_chosen(folders):
    page = opened(plan_model="gpt-3-13b", plan_sequence="2,048", plan_gpus="32", plan_tokens="300 billion tokens")
    assert not page.exception and not page.error
    answer = layouts.find_layouts(Request("gpt-3-13b", 32, batch="4M-tokens", sequence=2048))
    best, step, memory, accuracy = (table.value.to_dict("records") for table in page.dataframe)
    assert best == layouts.rows(answer)
    assert (step, memory) == (layouts.step_parts(answer.found), layouts.memory_parts(answer.found))
    assert accuracy == planner_errors.accuracy() and len(accuracy) == 4
    assert any("300 billion tokens take" in text.value for text in page.markdown)


def test_the_pipeline_of_the_best_layout_is_drawn_and_says_how_long_its_unit_is(folders):
    page = opened(plan_model="llama-3-70b")
    pipeline = planned_pipeline.sketch_pipeline(layouts.find_layouts(Request("llama-3-70b", batch="4M-tokens")).found)
    unit = f"a stage's forward pass, {units.seconds(pipeline.forward)}"
    assert not page.exception and any(unit in caption.value for caption in page.caption)


def test_a_model_that_fits_nowhere_is_told_so_and_has_no_table_of_layouts(folders):
    page = opened(plan_model="llama-3.1-405b", plan_gpus="8")
    assert not page.exception and len(page.dataframe) == 1
    assert any("No layout fits" in text.value for text in page.markdown)


LLAMA = """{"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
"vocab_size": 128256, "max_position_embeddings": 8192, "intermediate_size": 14336, "hidden_act": "silu"}"""


def with_config(text):
    page = opened(plan_model="a config.json")
    assert any("Upload the model's config.json" in info.value for info in page.info) and not page.dataframe
    page.file_uploader(key="plan_config").upload("mine.json", text.encode(), "application/json")
    return page.run()


def test_a_config_json_is_planned_like_the_preset_that_it_describes(folders):
    page = with_config(LLAMA)
    assert not page.exception and not page.error
    answer = layouts.find_layouts(Request("llama-3-8b", 64, batch="4M-tokens", sequence=8192))
    assert page.dataframe[0].value.to_dict("records") == layouts.rows(answer)
    assert any("mine.json (8.03 billion parameters)" in text.value for text in page.markdown)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "holds no settings"),
        ("not json", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "does not say num"),
        (LLAMA.replace("32,", "1" * 30 + ",", 1), "above 10,000,000"),
        ("\ufffe\x00", "is not JSON"),
    ],
    ids=["a list", "words", "depth", "nothing", "too much", "bytes"],
)
def test_what_is_no_config_json_is_refused_in_a_sentence(folders, text, words):
    page = with_config(text)
    assert not page.exception and [words in error.value for error in page.error] == [True]


def test_what_cannot_be_planned_is_said_in_a_sentence(folders):
    page = opened(plan_device="A100", plan_precision="fp8")
    assert [error.value for error in page.error] == ["The A100 has no 8-bit matrix products; use bf16."]


def test_the_dots_are_the_published_rows_and_the_worst_has_a_reason(folders):
    dots = planner_errors.dots()
    assert len(dots) == 144 and len({dot.source for dot in dots}) == 5
    worst = max(dots, key=lambda dot: abs(dot.predicted / dot.published - 1))
    assert worst.remark == "memory is nearly full"
    page = opened()
    assert any(worst.name in caption.value for caption in page.caption)

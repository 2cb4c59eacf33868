"""The page of schedules, driven without a browser."""

import json
import re
from urllib.parse import urlencode

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import algorithms
import workloads
from algorithms import compression
from algorithms.parts.pipeline.ops import KINDS
from experiments.specification.experiment import Experiment
from experiments.study import schedules as study
from experiments.study.schedules import NAMES, Plan
from experiments.viewer import palette
from experiments.viewer.canvases import schedule
from experiments.viewer.column_codec import unpack
from tests.patience import PATIENCE
from tests.quotes import quote
from tests.system.app.finish import finish
from tests.tiers import slow_except


def view():
    from app.schedules import page as schedules

    schedules.page()


@pytest.fixture
def page(folders):
    """page(name=value, ...) is the page as it opens with that link."""

    def opened(**link):
        test = AppTest.from_function(view, default_timeout=PATIENCE)
        for name, value in link.items():
            test.query_params[name] = str(value)
        return test.run()

    return opened


def cells(page) -> dict[str, list[str]]:
    """The table of figures: what stands beside each label."""
    rows = page.get("html")[0].value.split("<tr>")[2:]
    return {row.split("</th>")[0].removeprefix("<th>"): row.split("<td>")[1:] for row in rows}


def figure(page, label: str, column: int = 0) -> str:
    return cells(page)[label][column].split("</td>")[0]


def lanes(page) -> list:
    """The schedules on the page."""
    return [one for one in page.get("bidi_component") if one.proto.bytes]


def refusals(page) -> str:
    return " ".join(element.value for element in page.error)


@pytest.mark.parametrize("name", slow_except(6, NAMES))
def test_every_schedule_is_drawn_and_measured(page, name):
    opened = page(schedule_a=name)
    assert not opened.exception and not opened.error
    assert len(lanes(opened)) == 1
    plan = Plan.of(schedule=name)
    assert figure(opened, "Makespan") == f"{study.study(plan).summary['makespan']:g}"


def test_a_widget_that_is_moved_changes_the_figures(page):
    opened = page()
    assert figure(opened, "Makespan") == "33"
    opened.number_input("ranks").set_value(2).run()
    assert figure(opened, "Makespan") == "27"
    opened.number_input("cost_w").set_value(0.0).run()
    assert figure(opened, "Makespan") == "18"


def test_two_schedules_stand_side_by_side_with_their_differences(page):
    opened = page(schedule_a="1f1b", schedule_b="zb_h1")
    assert len(lanes(opened)) == 2
    assert [figure(opened, "Makespan", column) for column in range(3)] == ["33", "27", "−6 (−18.2 %), better"]
    assert figure(opened, "Bubble, of total", 2) == "−16.2 points, better"
    assert figure(opened, "Delay", 2) == "the same"


def test_a_newcomer_is_told_what_is_seen_and_has_a_first_question_answered(page):
    opened = page()
    assert any("a gap is the bubble" in one.value for one in opened.markdown)
    assert any("A first question" in one.value for one in opened.markdown)
    opened.button("first-question").click().run()
    assert [one.value for one in opened.selectbox] == ["gpipe", "1f1b"]
    assert not any("A first question" in one.value for one in opened.markdown)
    assert figure(opened, "Bubble, of total", 2) == "the same"
    assert "better" in figure(opened, "In flight", 2)
    told = " ".join(one.value for one in opened.markdown).replace("\\:", ":")
    assert re.search(quote("1F1B … GPipe … 27.3 %"), told)
    assert re.search(quote("4 micro-batches … 8"), told)


def test_of_two_schedules_it_is_said_in_a_sentence_which_waits_less(page):
    told = " ".join(one.value for one in page(schedule_a="1f1b", schedule_b="zb_h1").markdown).replace("\\:", ":")
    assert re.search(quote("ZB-H1 … less … 1F1B … 11.1 % … 27.3 %"), told)
    assert re.search(quote("27 … 33"), told)
    assert re.search(quote("With both … 4 micro-batches in memory"), told)


def test_of_two_schedules_it_is_said_which_needs_more_memory(page):
    told = " ".join(one.value for one in page(schedule_a="gpipe_early", schedule_b="gpipe").markdown)
    assert re.search(quote("8 micro-batches in memory instead of 1"), told)  # as many are in flight


def test_names_in_answers_and_policies_are_explained_at_sight(page):
    told = " ".join(one.value for one in page().markdown)
    assert (
        "2B0 is the backward pass of micro-batch 0 on stage 2" in told
        and "twice that number (PB), which hides slow links" in told
    )


def test_each_schedule_has_its_own_settings(page):
    opened = page(schedule_a="interleaved", schedule_b="interleaved", pieces_b=4)
    assert [figure(opened, "Makespan", column) for column in range(2)] == ["28.5", "26.25"]
    opened.number_input("pieces_a").set_value(4).run()
    assert figure(opened, "Makespan", 2) == "the same"


def test_a_link_opens_as_exactly_that(page):
    link = {"schedule_a": "chimera", "pipes_a": 2, "ranks": 8, "micro_batches": 16, "link_takes": 0.5, "cost_f": 2.0}
    opened = page(**link)
    plan = Plan.of(schedule="chimera", ranks=8, chunks=16, forward=2.0, latency=0.5, options={"pipes": 2})
    assert figure(opened, "Makespan") == f"{study.study(plan).summary['makespan']:g}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", "rank 0 at 0B0 waits for 1B0 of rank 1, rank 1 at 1F1 waits for 0F1"),
        ("0F0 0B0\n1B0 1F0", "1B0 comes before 1F0 on rank 1"),
        ("<script>alert(1)</script>", "is not an op"),
    ],
)
def test_an_own_schedule_that_cannot_be_says_which_op_breaks_which_rule(page, text, words):
    opened = page(schedule_a="own", own_schedule=text)
    assert not opened.exception
    assert refusals(opened).startswith("**Your own schedule** cannot run: ")
    assert words in refusals(opened)
    typed = next(one.proto.body for one in opened.get("html") if "own-ops" in one.proto.body)
    assert typed.count('class="wrong"') == 1 and "<script>" not in typed
    assert len(lanes(opened)) == ("is not an op" not in words)  # what can be done is drawn


def test_an_own_schedule_says_itself_how_many_ranks_and_micro_batches_it_has(page):
    def disabled(opened) -> list[bool]:
        return [opened.number_input(key=key).disabled for key in ("ranks", "micro_batches")]

    assert disabled(page(schedule_a="own")) == [True, True]
    assert disabled(page(schedule_a="own", schedule_b="gpipe")) == [False, False]


def test_an_own_schedule_stands_beside_one_of_the_literature(page):
    opened = page(schedule_a="own", schedule_b="gpipe", ranks=2, micro_batches=2)
    opened.text_area("own_schedule").set_value("0F0 0F1 0B0 0B1 0U0\n1F0 1B0 1F1 1B1 1U0").run()
    assert [figure(opened, "Makespan", column) for column in range(2)] == ["9", "9"]
    assert figure(opened, "In flight", 1) == "2"


def test_schedules_that_do_not_do_the_same_work_are_not_judged_but_told_what_would_make_it_so(page):
    opened = page(schedule_a="own", schedule_b="1f1b", ranks=4, micro_batches=24)
    told = " ".join(one.value for one in (*opened.markdown, *opened.caption)).replace("\\", "")
    assert re.search(quote("own schedule … 2 ranks and 2 micro-batches … 1F1B … 4 ranks and 24 micro-batches"), told)
    assert "of the time" not in told and "## Differences" not in told
    table = opened.get("html")[0].value
    assert "difference" not in table and "better" not in table and "worse" not in table
    sizes = [one.value for one in opened.caption if "ranks" in one.value]
    assert sizes == ["2 ranks · 2 micro-batches", "4 ranks · 24 micro-batches"]  # each above its own picture
    opened.number_input("ranks").set_value(2)
    opened.number_input("micro_batches").set_value(2).run()
    told = " ".join(one.value for one in opened.markdown).replace("\\", "")
    assert "1F1B is idle as much as your own schedule: ranks are idle" in told and "## Differences" in told


def test_what_stands_beside_a_schedule_of_ones_own_keeps_its_title_where_that_is_wrong(page):
    opened = page(schedule_a="own", own_schedule="0F0 0B0\n1B0 1F0", schedule_b="1f1b")
    assert "## 1F1B" in [one.value for one in opened.markdown] and len(lanes(opened)) == 2


def test_schedules_are_offered_by_title_and_stand_in_the_address_by_name(page):
    opened = page(schedule_a="zb_h1")
    assert "# ZB-H1" in [one.value for one in opened.markdown]
    assert "ZB-H1 · zb_h1, zero bubble, pipeline" in opened.selectbox("schedule_a").options
    assert sum("zero bubble" in one.lower() for one in opened.selectbox("schedule_b").options) == 6
    assert urlencode(opened.query_params, doseq=True) == "schedule_a=zb_h1"
    opened.selectbox("schedule_b").select("v_half").run()
    assert urlencode(opened.query_params, doseq=True) == "schedule_a=zb_h1&schedule_b=v_half"
    opened.selectbox("schedule_a").select("1f1b").run()
    opened.selectbox("schedule_b").select("nothing").run()
    assert opened.query_params == {} and not opened.exception


def test_a_model_is_cut_into_the_stages_of_the_schedule_which_is_then_timed_with_them(page):
    opened = page(ranks=3)
    assert not opened.get("text_area")
    opened.session_state["partition"] = True
    opened.run()
    opened.text_area("layers").set_value(
        "layer,forward,backward,activations,weights\na,1,2,0,0\nb,1,2,0,0\nc,4,8,0,0"
    ).run()
    loads = next(one.value for one in opened.get("html") if "stage 2" in one.value)
    assert "16.7 %" in loads and "66.7 %" in loads and not opened.exception
    assert any("takes 2 times the mean" in one.value and "at most 1.5 times" in one.value for one in opened.markdown)
    before = figure(opened, "Makespan")
    opened.button("with-stages").click().run()
    assert opened.text_input("other_costs").value == "0F=0.5 0B=1 1F=0.5 1B=1 2F=2 2B=4"
    assert float(figure(opened, "Makespan")) > float(before) and opened.button("with-stages").disabled
    opened.button("even-stages").click().run()
    assert figure(opened, "Makespan") == before
    opened.text_area("layers").set_value("nonsense").run()
    assert "no column 'layer'" in refusals(opened).lower() and not opened.exception


def test_what_one_of_two_cannot_do_does_not_hide_the_other(page):
    opened = page(schedule_b="interleaved", micro_batches=9)
    assert re.search(quote("9 micro-batches … 4 ranks"), refusals(opened))
    assert figure(opened, "Makespan") == "36" and not opened.exception


def test_a_schedule_beyond_all_bounds_is_refused_in_a_sentence(page):
    opened = page(ranks=256, micro_batches=4096)
    assert "at most 60,000" in refusals(opened) and not opened.exception


def test_a_large_schedule_is_studied_by_the_pool(page):
    opened = page(ranks=32, micro_batches=200)
    finish(opened)
    assert figure(opened, "Makespan") == "693" and not opened.error


@pytest.mark.parametrize("tab", ["Per rank", "Idle slots", "Critical path", "As text", "Source"])
def test_what_lies_behind_the_figures_is_there(page, tab):
    opened = page(schedule_b="pipedream", link_takes=0.5)
    opened.session_state["behind"] = tab
    opened.run()
    assert not opened.exception
    text = " ".join(element.value for element in opened.code)
    if tab == "Per rank":
        assert [list(table.value["Delay"]) for table in opened.dataframe] == [[0, 0, 0, 0], [3, 2, 1, 0]]
    elif tab == "Idle slots":
        assert "1F0 waits for 0F0 to come over the link from rank 0" in set(opened.dataframe[0].value["Because"])
    elif tab == "Critical path":
        assert text.startswith("0F0 on rank 0 → ")
    elif tab == "As text":
        assert text.startswith("0F0 0F1 0F2 0F3 0B0")
    else:
        assert (
            'policy: Literal["PA", "PB"]' in text and "def replicated_schedule" in text
        )  # DAPPLE's file, and PipeDream's


def test_no_setting_of_this_page_is_called_like_one_of_an_experiment(page):
    opened = page(schedule_a="own", schedule_b="1f1b")
    keys = {node.key for kind in ("selectbox", "number_input", "text_area", "text_input") for node in opened.get(kind)}
    keys |= {f"{name}_{slot}" for schedule in NAMES for name in study.options(schedule) for slot in "ab"}
    settings = {*Experiment.model_fields}
    for module in (algorithms.find(name) for name in algorithms.names()):
        settings |= module.Settings.model_fields.keys()
    for name in compression.COMPRESSIONS:
        settings |= compression.find(name).Settings.model_fields.keys()
    for name in workloads.WORKLOADS:
        settings |= workloads.find(name).Settings.model_fields.keys()
    assert len(keys) > 10 and not keys & settings


# the picture


def drawn(**values):
    header, columns = unpack(schedule.frame(study.study(Plan.of(**values)), values.get("until")))
    inner, spans = unpack(columns["timeline"].tobytes())
    return header, inner["labels"], spans


def test_every_op_and_every_idle_slot_is_a_bar_with_its_words():
    header, labels, spans = drawn(schedule="1f1b", latency=0.5)
    plan = study.study(Plan.of(schedule="1f1b", latency=0.5))
    assert len(labels) == len(spans["start"]) == 64 + len(plan.idle["rank"])  # updates take no time
    assert "2F3" in labels and "0B0 waits for 1B0 of rank 1" in labels
    assert header["kinds"] == ["forward", "backward", "idle"]
    assert spans["marked"].sum() == plan.summary["path_ops"]


def test_bars_of_a_lane_follow_one_another_without_a_hole():
    _, _, spans = drawn(schedule="zb_v", latency=0.3)
    for lane in range(4):
        mine = spans["lane"] == lane
        start, end = spans["start"][mine], spans["start"][mine] + spans["duration"][mine]
        np.testing.assert_allclose(start[1:], end[:-1], atol=1e-4)


def test_ops_that_are_done_together_share_the_height_of_the_lane():
    _, labels, spans = drawn(schedule="own", own="0F0 0F1+0B0 0B1")
    assert labels == ["0F0", "0F1", "0B0", "0B1"]
    assert spans["parts"].tolist() == [1, 2, 2, 1] and spans["part"].tolist() == [0, 0, 1, 0]


def test_the_second_stage_of_a_rank_is_lighter():
    header, labels, spans = drawn(schedule="interleaved", ranks=2, chunks=2)
    look = [header["look"][header["kinds"][spans["kind"][labels.index(op)]]]["colour"] for op in ("0F0", "2F0", "3F0")]
    assert look == [palette.op("F", 0).colour, palette.op("F", 1).colour, palette.op("F", 1).colour]
    assert look[0] != look[1]


def test_all_kinds_of_ops_are_drawn_differently():
    looks = [palette.op(kind, 0) for kind in KINDS]
    assert len({(look.height, look.hatch, look.colour) for look in looks}) == len(looks)
    assert json.dumps([look._asdict() for look in looks])

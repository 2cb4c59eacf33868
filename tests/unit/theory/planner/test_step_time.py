"""Equalities, limits and orders that hold for any constants."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from theory import schedules
from theory.planner import setup
from theory.planner.constants import FITTED
from theory.planner.language_model import LanguageModel, find_model
from theory.planner.published import complete, predict, table
from theory.planner.search import search
from theory.planner.setup import GPUS, Layout, Setup, Software
from theory.planner.step_time import StepPrices, step_time, tokens_per_second, utilisation
from theory.schedule_timing import simulate

H100 = GPUS["H100"]
LLAMA = find_model("llama-3-70b")
ALONE = Setup(find_model("gpt-3-13b"), 64, H100, Layout())


def found(gpus=64, batch=128):
    return search(Setup(LLAMA, batch, H100, Layout()), gpus)


def test_one_gpu_communicates_with_nobody_and_has_no_bubble():
    time = step_time(ALONE)
    assert [time.tensor, time.context, time.sharding, time.messages, time.bubble, time.gradients] == [0] * 6
    assert float(StepPrices(ALONE).collective(1e9)) == 0


def test_the_parts_of_a_step_add_up_to_its_rate():
    layouts = found()
    rate = layouts.setup.batch * LLAMA.sequence / (64 * sum(astuple(layouts.time)[:-1]))
    assert rate == pytest.approx(tokens_per_second(layouts.setup), rel=1e-12)


def test_a_layout_by_itself_takes_as_long_as_among_others():
    layouts = found()
    for i in (0, len(layouts) // 2, len(layouts) - 1):
        alone = replace(layouts.setup, layout=layouts.take(np.array([i])).setup.layout)
        assert step_time(alone).seconds == pytest.approx(layouts.time.seconds[i], rel=1e-15)


def test_stages_on_a_rank_change_nothing_without_a_pipeline_and_divide_its_bubble():
    def time(**at):
        return step_time(replace(ALONE, layout=Layout(**at)))

    assert time(pieces=4).seconds == time().seconds
    one, four = time(pipeline=8), time(pipeline=8, pieces=4)
    share = {
        v: v_time.bubble / (v_time.seconds - v_time.update - v_time.gradients) for v, v_time in ((1, one), (4, four))
    }
    assert share == pytest.approx({1: 7 / (64 + 7), 4: 7 / 4 / (64 + 7 / 4)})


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_deferring_the_gradients_of_weights_saves_what_the_schedule_zb_h1_saves(ranks):
    gpt = replace(ALONE, layout=Layout(pipeline=ranks), model=replace(ALONE.model, vocabulary=2))
    plain, deferred = (
        step_time(replace(gpt, layout=replace(gpt.layout, defers=defers))).bubble for defers in (False, True)
    )
    one, layers = StepPrices(gpt).layer(), gpt.model.layers / ranks
    passes = np.array([one.forward, one.backward - one.weights, one.weights, one.backward]) * layers
    costs = dict(zip("FIWB", passes.tolist(), strict=True))
    takes = {name: simulate(schedules.lists(name, ranks, 64), costs).makespan for name in ("1f1b", "zb_h1")}
    assert plain - deferred == pytest.approx(takes["1f1b"] - takes["zb_h1"], rel=1e-9)
    assert 0 < deferred < 0.5 * plain


def test_the_gradients_of_weights_are_half_of_the_products_in_backward_where_products_are_large():
    one = StepPrices(Setup(LLAMA, 8, H100, Layout(micro_batch=64))).layer()
    assert one.weights / one.products[1] == pytest.approx(0.5, abs=0.01)


def test_splitting_the_sequence_does_not_change_the_bytes_of_tensor_parallelism():
    whole, split = (Setup(LLAMA, 8, H100, Layout(tensor=8, sequence_parallel=split)) for split in (False, True))
    assert StepPrices(whole).tensor() == StepPrices(split).tensor() > 0


def test_more_micro_batches_make_the_bubble_vanish():
    shares = [
        float(time.bubble / time.seconds)
        for batch in (8, 80, 8000)
        if (time := step_time(Setup(LLAMA, batch, H100, Layout(pipeline=8))))
    ]
    assert shares[0] > 0.4 and shares[1] < 0.09 and shares[2] < 0.001


def test_full_recomputation_of_large_layers_takes_a_third_more():
    wide = LanguageModel(96, 2**17, 1024, 1024, 2**19, 2, 2048)
    once, again = (
        step_time(Setup(wide, 2**12, H100, Layout(micro_batch=2**12, recompute=r))).seconds
        for r in (setup.KEEP, setup.WHOLE)
    )
    assert again / once == pytest.approx(4 / 3, abs=0.005)


def test_a_large_model_without_memory_traffic_attains_the_share_of_its_products():
    wide = LanguageModel(96, 2**18, 1024, 1024, 2**20, 2, 16)
    alone = Setup(wide, 2**18, H100, Layout(micro_batch=2**18))
    rate = tokens_per_second(alone, FITTED._replace(traffic=0))
    assert utilisation(alone, rate) == pytest.approx(FITTED.products_h100, abs=0.005)


@pytest.mark.parametrize(("recompute", "passes"), [(setup.KEEP, 7), (setup.WHOLE, 9)])
def test_very_long_sequences_attain_the_share_of_their_attention(recompute, passes):
    """Forward is 1 of the 3.5 equal parts of attention, or of 4.5, and half of the published FLOPs are masked."""
    long = replace(find_model("mpt-7b"), sequence=2**28, learned_positions=False)
    alone = Setup(long, 1, GPUS["A100"], Layout(recompute=recompute), Software(setup.FLASH1))
    share = utilisation(alone, tokens_per_second(alone))
    assert share == pytest.approx(12 * FITTED.attention_a100 / passes, rel=0.01)


def test_a_ring_over_many_nodes_is_a_matter_of_hops():
    def collective(ranks):
        return float(StepPrices(replace(ALONE, layout=Layout(data=ranks))).collective(1e6))

    assert (collective(16384) - collective(8192)) / 8192 == pytest.approx(FITTED.hop, rel=1e-3)


def test_on_a_perfect_network_sharded_ranks_do_not_slow_each_other():
    perfect, free = replace(H100, link=1e30, network=1e30), FITTED._replace(hop=0.0)
    rates = [
        float(tokens_per_second(Setup(LLAMA, n, perfect, Layout(data=n, shard=setup.FULL)), free)) for n in (64, 1024)
    ]
    assert rates[0] == pytest.approx(rates[1], rel=3e-3)  # but for their share of the update


def test_one_group_is_full_sharding_and_a_group_per_node_gathers_inside():
    at = Layout(data=64, shard=setup.FULL)
    full, hybrid = (StepPrices(Setup(LLAMA, 64, H100, replace(at, groups=groups))) for groups in (1, 8))
    assert float(full.between_groups(1e9)) == 0 < float(hybrid.between_groups(1e9))
    assert float(hybrid.collective(1e9, 8)) == pytest.approx(1e9 * 7 / 8 / (0.8 * H100.link))
    assert float(hybrid.collective(1e9, 8)) < float(full.collective(1e9))


@pytest.mark.parametrize("field", ["half", "bandwidth", "link", "network"])
def test_faster_hardware_is_never_slower(field):
    layouts = found()
    faster = replace(H100, **{field: 1.3 * getattr(H100, field)})
    assert (step_time(replace(layouts.setup, gpu=faster)).seconds <= layouts.time.seconds).all()


@pytest.mark.parametrize("name", FITTED._fields)
def test_larger_shares_are_never_slower_and_more_traffic_or_longer_hops_never_faster(name):
    rows = table()
    before, after = (predict(rows, FITTED._replace(**{name: f * getattr(FITTED, name)})) for f in (1.0, 1.05))
    slower = name in ("traffic", "hop")
    assert ((after <= before) if slower else (after >= before)).all() and (after != before).any()


def test_recomputing_more_takes_longer():
    layouts = found().setup
    seconds = [
        step_time(
            replace(layouts, layout=replace(layouts.layout, recompute=np.full_like(layouts.layout.data, r)))
        ).seconds
        for r in (setup.KEEP, setup.LIGHT, setup.WHOLE)
    ]
    assert (seconds[0] <= seconds[1]).all() and (seconds[1] <= seconds[2]).all()


@pytest.mark.parametrize("wrong", ["hop", "causal", "floor", "recompute"])
def test_a_program_that_forgets_a_term_is_seen(wrong, monkeypatch):
    """Each slip moves some published row by more than 1 %."""
    rows = table()
    right, constants = predict(rows), FITTED
    if wrong == "hop":
        constants = FITTED._replace(hop=0.0)
    if wrong == "causal":
        constants = FITTED._replace(attention_a100=FITTED.attention_a100 / 2, attention_h100=FITTED.attention_h100 / 2)
    if wrong == "floor":
        monkeypatch.setattr("theory.planner.step_time.np.ceil", np.floor)
    if wrong == "recompute":
        at = replace(rows.setup.layout, recompute=np.zeros(len(rows), int))
        rows = replace(rows, setup=replace(rows.setup, layout=at))
    assert np.abs(predict(rows, constants) / right - 1).max() > 0.01


def test_what_was_not_published_is_what_the_planner_finds_best():
    rows = table()
    at = complete(rows).layout
    assert set(at.micro_batch[rows.is_open[:, 0]]) <= {1, 2, 4, 8}
    known = ~rows.is_open[:, 0]
    assert (at.micro_batch[known] == rows.setup.layout.micro_batch[known]).all()

from dataclasses import replace

import numpy as np
import pytest

from theory.planner import setup
from theory.planner.constants import COLLECTIVES
from theory.planner.language_model import find_model
from theory.planner.search import price, search
from theory.planner.setup import GPUS, Layout, Setup, Software

H100 = GPUS["H100"]
NEMO = Software(setup.FLASH3, True, gradient_bytes=2, reduce_bytes=2)


def found(model="llama-3-70b", gpus=64, batch=128, software=NEMO, sequence=None):
    model = find_model(model)
    return search(Setup(replace(model, sequence=sequence or model.sequence), batch, H100, Layout(), software), gpus)


def test_every_layout_uses_all_gpus_and_divides_the_batch():
    layouts = found()
    at = layouts.setup.layout
    assert (at.gpus == 64).all() and (128 % (at.data * at.micro_batch) == 0).all()
    assert (np.diff(layouts.time.seconds) >= 0).all()
    kinds = {tuple(row) for row in np.array([getattr(at, name) for name in vars(at)]).T}
    assert len(kinds) == len(layouts) > 1000


@pytest.mark.parametrize(
    ("model", "gpus", "batch", "sequence", "layout"),
    [
        ("llama-3-70b", 64, 128, 8192, Layout(2, 4, 4, 2, 5, True, setup.OPTIMIZER)),
        ("llama-2-70b", 64, 128, 4096, Layout(4, 4, 4, 1, 20, True, setup.OPTIMIZER)),
        ("gpt-3-175b", 128, 256, 2048, Layout(4, 4, 8, 1, 6, True, setup.OPTIMIZER)),
        ("gpt-3-175b", 512, 2048, 2048, Layout(16, 4, 8, 1, 6, True, setup.OPTIMIZER, 2)),
    ],
)
def test_layouts_that_nvidia_published_are_among_those_tried_and_at_least_85_percent_of_the_best(
    model, gpus, batch, sequence, layout
):
    layouts = found(model, gpus, batch, sequence=sequence)
    fits = layouts.take(layouts.shares <= 1)
    theirs = price(replace(layouts.setup, layout=layout))
    assert float(theirs.shares) <= 1
    assert any(np.isclose(layouts.time.seconds, float(theirs.time.seconds), rtol=1e-12))
    assert 0.85 <= float(theirs.rates) / fits.rates[0] <= 1


def test_hybrid_shards_are_tried_with_a_group_for_each_node():
    at = found("llama-3-8b", 64, 512).setup.layout
    assert set(at.groups) == {1, 8} and set(at.shard[at.groups == 8]) == {setup.FULL}


def test_a_pipeline_with_one_stage_on_each_rank_defers_gradients_if_it_can_fill_itself():
    at = found().setup.layout
    can = (at.pipeline > 1) & (at.pieces == 1) & (128 // at.data >= at.pipeline * at.micro_batch)
    assert (at.defers == can).all() and can.any() and not can.all()


def test_experts_are_divided_among_ranks_that_divide_them_and_share_their_state():
    layouts = found("mixtral-8x7b", 64, 256)
    at = layouts.setup.layout
    assert set(at.expert) == {1, 2, 4, 8}
    assert (8 % at.expert == 0).all() and (at.sharing % at.expert == 0).all()
    assert set(found("llama-3-8b").setup.layout.expert) == {1}


def test_dividing_experts_saves_memory_and_costs_messages():
    model = find_model("mixtral-8x7b")
    shapes = Layout(64, 1, 1, 1, shard=setup.OPTIMIZER, expert=np.array([1, 2, 4, 8]))
    priced = price(Setup(model, 256, H100, shapes, NEMO))
    experts = 32 * 8 * 3 * 4096 * 14336
    saved = priced.memory.weights[0] - priced.memory.weights
    np.testing.assert_allclose(saved, 2 * experts * (1 - 1 / shapes.expert))
    assert np.ptp(priced.memory.states) == 0  # divided over all replicas anyway
    assert (np.diff(priced.time.experts) > 0).all() and priced.time.experts[0] == 0
    rows = 2 * 2 * 4096 * 4096  # 16-bit, of the two experts that each of 4,096 tokens visits, of width 4,096
    sent = 32 * 4 * 2 * 2 * rows * 7 / 8  # 32 layers, 4 micro-batches, there and back, forward and backward
    assert priced.time.experts[3] == pytest.approx(sent / (COLLECTIVES * H100.link))


ALL_ON_EACH = Layout(8, shard=setup.FULL, micro_batch=4, recompute=setup.WHOLE, expert=8)
NO_PIPELINE = Layout(64, shard=setup.OPTIMIZER, micro_batch=2, expert=8)
INTERLEAVED = Layout(8, 1, 2, 1, 24, shard=setup.OPTIMIZER, micro_batch=2, expert=8)


@pytest.mark.parametrize(
    ("model", "gpus", "batch", "gpu", "fp8", "layout", "published", "off"),
    [
        ("qwen3-30b-a3b", 8, 512, "H100", False, ALL_ON_EACH, 12040, -0.29),  # NeMo AutoModel, October 2025
        ("mixtral-8x7b", 64, 256, "B200", True, NO_PIPELINE, 15457, 0.07),  # NeMo 25.02, performance summary
        ("qwen3-30b-a3b", 16, 512, "H100", True, INTERLEAVED, 5275, 1.25),  # Megatron Bridge 25.11, the same
    ],
)
def test_published_mixtures_are_predicted_as_badly_as_the_document_says(
    model, gpus, batch, gpu, fp8, layout, published, off
):
    assert layout.gpus == gpus
    software = NEMO if fp8 else Software(setup.FLASH3)
    priced = price(Setup(find_model(model), batch, GPUS[gpu], layout, software))
    assert float(priced.rates) / published - 1 == pytest.approx(off, abs=0.01)


def test_more_gpus_than_the_batch_and_the_model_can_occupy_are_refused():
    with pytest.raises(ValueError, match="no layout gives each of 97 GPUs work"):
        found(gpus=97, batch=1)

from dataclasses import replace

import numpy as np
import pytest

from theory.planner import setup
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


def test_more_gpus_than_the_batch_and_the_model_can_occupy_are_refused():
    with pytest.raises(ValueError, match="no layout gives each of 97 GPUs work"):
        found(gpus=97, batch=1)

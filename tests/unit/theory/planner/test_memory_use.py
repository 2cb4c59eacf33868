from dataclasses import replace

import numpy as np
import pytest

from theory.planner import setup
from theory.planner.language_model import find_model
from theory.planner.memory_use import layer_activations, memory_use
from theory.planner.published import memory_shares, table
from theory.planner.search import search
from theory.planner.setup import GPUS, Layout, Setup, Software

GPT = find_model("gpt-3-175b")
H100 = GPUS["H100"]


def held(**at):
    return memory_use(Setup(GPT, 64, H100, Layout(**at)))


def test_a_layer_of_gpt_keeps_what_korthikanti_et_al_count():
    """s b h (34 + 5 a s / h) bytes (equation 1); with the sequence split over t ranks exactly 1/t of them."""
    for ranks, split in ((1, False), (8, True)):
        at = Layout(tensor=ranks, sequence_parallel=split, micro_batch=3)
        kept, scores = layer_activations(Setup(GPT, 64, H100, at, Software(setup.UNFUSED)))
        whole = GPT.sequence * 3 * GPT.width * (34 + 5 * GPT.heads * GPT.sequence / GPT.width)
        assert float(kept + scores) == pytest.approx(whole / ranks)


def test_all_gpus_together_hold_twelve_bytes_of_optimizer_state_per_parameter_however_they_are_sharded():
    for shard in (setup.OPTIMIZER, setup.GRADIENTS, setup.FULL):
        states = held(data=16, shard=shard).states
        assert float(states) * 16 == pytest.approx(12 * GPT.parameters)
    assert float(held(data=16, shard=setup.FULL, groups=4).states) * 16 == pytest.approx(4 * 12 * GPT.parameters)


def test_recomputing_more_needs_no_more_memory():
    found = search(Setup(find_model("llama-3-70b"), 128, H100, Layout()), 64)
    at = found.setup.layout
    totals = [
        memory_use(replace(found.setup, layout=replace(at, recompute=np.full_like(at.data, r)))).total
        for r in (setup.KEEP, setup.WHOLE)
    ]
    assert (totals[0] >= totals[1] * (1 - 1e-9)).all()


def test_a_stage_keeps_as_many_micro_batches_as_there_are_stages_and_more_if_it_is_interleaved():
    one, four, chunked = (float(held(pipeline=p, pieces=v).activations) for p, v in ((1, 1), (4, 1), (4, 4)))
    assert four == pytest.approx(one)  # a quarter of the layers, four times
    assert chunked == pytest.approx(one * (1 + 3 / 16))


def test_published_runs_fit_into_their_gpus_and_fill_them():
    """An estimate that is too large throws rows out; one that is too small does not fill the GPUs of any."""
    shares = memory_shares(table())
    assert (shares <= 1).sum() >= 141
    assert 0.90 < np.quantile(shares, 0.9) < 1.0

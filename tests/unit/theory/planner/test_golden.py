"""Five configurations with every intermediate quantity, as an independent scalar program printed them."""

from dataclasses import dataclass, replace

import pytest

from theory.planner import setup
from theory.planner.constants import Constants
from theory.planner.language_model import LanguageModel, find_model
from theory.planner.memory_use import memory_use
from theory.planner.setup import GPUS, Layout, Setup, Software
from theory.planner.step_time import StepPrices, step_time, tokens_per_second, utilisation

THEIRS = Constants(0.9021, 0.7725, 0.8589, 3.26, 0.3156, 0.1801, 0.6694, 0.4077, 0.7885, 5.144e-6)
MPT = {"attention": setup.FLASH1, "logit_bytes": 6, "overlaps": True}
NEMO = {"attention": setup.FLASH3, "fp8": True, "gradient_bytes": 2, "reduce_bytes": 2}


@dataclass(frozen=True)
class Case:
    setup: Setup
    parameters: float
    products: tuple[float, float]
    attention: float
    memory_bound: float
    tensor: float
    passes: tuple[float, float]
    head: float
    once: float
    update: float
    seconds: float
    rate: float
    share: float
    total: float


CASES = {
    "MPT-7B on 8 A100-40GB, fully sharded and recomputed": Case(
        Setup(
            replace(find_model("mpt-7b"), sequence=1024),
            768,
            GPUS["A100-40GB"],
            Layout(data=8, shard=setup.FULL, micro_batch=24, recompute=setup.WHOLE),
            Software(**MPT, reduce_bytes=2),
        ),
        6.65466e9, (0.0427560, 0.0855121), 0.00209368, 0.00348143, 0, (0.0483312, 0.143719), 0.134653, 0, 0.0239740,
        25.4790, 3858.23, 0.5134, 35.570e9,
    ),
    "MPT-1B on 512 H100, gradients sharded": Case(
        Setup(
            LanguageModel(24, 2048, 16, 16, 8192, 50368, 2048, learned_positions=True),
            6144,
            GPUS["H100"],
            Layout(data=512, shard=setup.GRADIENTS, micro_batch=12),
            Software(**MPT, reduce_bytes=4),
        ),
        1.31595e9, (0.00490207, 0.00980414), 0.00115695, 0.000808003, 0, (0.00686703, 0.0137739), 0.0313368, 0,
        3.43843e-5, 0.614880, 39968.8, 0.3667, 52.073e9,
    ),
    "GPT-530B on 280 A100, a pipeline of 35 interleaved stages, unfused attention": Case(
        Setup(
            find_model("megatron-530b"),
            280,
            GPUS["A100"],
            Layout(tensor=8, pipeline=35, pieces=3, sequence_parallel=True, recompute=setup.SELECTIVE),
            Software(setup.UNFUSED, overlaps=False),
        ),
        5.29601e11, (0.0119054, 0.0238107), 0.000693440, 0.000138283, 0.00122334, (0.0139604, 0.0270037), 0.00773838, 0,
        0.0415728, 41.0638, 49.8736, 0.5164, 64.211e9,
    ),
    "Llama-3-70B on 64 H100 in 8 bits, with two context-parallel ranks": Case(
        Setup(
            find_model("llama-3-70b"),
            128,
            GPUS["H100"],
            Layout(2, 4, 4, 2, 5, True, setup.OPTIMIZER),
            Software(**NEMO),
        ),
        7.05537e10, (0.00176259, 0.00359900), 0.000277823, 0.000170204, 0.000118279, (0.00233137, 0.00465430),
        0.0123480, 0.0979612, 0.0147479, 10.3504, 1582.93, 0.3851, 61.705e9,
    ),
    "Llama-3.1-405B on 16,384 H100": Case(
        Setup(
            find_model("llama-3.1-405b"),
            2048,
            GPUS["H100"],
            Layout(128, 8, 16, 1, 8, True, setup.OPTIMIZER),
            Software(),
        ),
        4.05853e11, (0.0110109, 0.0220217), 0.000555646, 0.000327316, 0.000551970, (0.0124458, 0.0244173), 0.0213817,
        0.280277, 3.31390e-4, 5.84578, 175.169, 0.4648, 94.159e9,
    ),
}  # fmt: skip
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def close(value):
    return pytest.approx(value, rel=6e-6)  # to the six digits printed


@each
def test_the_prices_of_one_layer_and_of_the_head_are_the_printed_ones(case):
    prices = StepPrices(case.setup, THEIRS)
    layer = prices.layer()
    assert case.setup.model.parameters == close(case.parameters)
    assert [*map(float, layer.products)] == close([*case.products])
    assert float(layer.attention[0]) == close(case.attention)
    assert float(layer.memory[0]) == close(case.memory_bound)
    assert float(layer.tensor) == close(case.tensor)
    assert [float(layer.forward), float(layer.backward)] == close([*case.passes])
    assert float(prices.head()) == close(case.head)


@each
def test_the_step_the_throughput_and_the_memory_are_the_printed_ones(case):
    time, rate = step_time(case.setup, THEIRS), tokens_per_second(case.setup, THEIRS)
    assert [float(time.gradients), float(time.update)] == close([case.once, case.update])
    assert [float(time.seconds), float(rate)] == close([case.seconds, case.rate])
    assert utilisation(case.setup, rate) == pytest.approx(case.share, abs=5e-5)
    assert float(memory_use(case.setup).total) == pytest.approx(case.total, abs=0.5e6)

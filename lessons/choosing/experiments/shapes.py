"""What the shapes of a model's layers tell us before anything is run: its weights, its work, and whether it fits into
memory.
"""

import math

import numpy as np

from lessons.choosing.experiments import CASES, LARGE
from lessons.choosing.strategies import CLOSED_FORMS, MEMORY, memory, states
from lessons.figure import Look, figure, ratio, value
from theory import published_models

PARTS = {
    "VGG-16, convolutions": ("VGG-16", "conv"),
    "VGG-16, dense layers": ("VGG-16", "fc"),
    "ResNet-50, convolutions": ("ResNet-50", ("conv", "block")),
    "ResNet-50, dense layer": ("ResNet-50", "fc"),
    "GPT-2, embedding": ("GPT-2", "embedding"),
    "GPT-2, blocks": ("GPT-2", "block"),
    "GPT-2, output": ("GPT-2", "output"),
}


@figure(
    "Where are the weights of a model, and where is the work?",
    source="shapes of Simonyan & Zisserman, 2015; He et al., 2016; Radford et al., 2019",
    claims={
        "three dense layers hold nearly nine tenths of the weights of VGG-16 and do less than 1 % of the work": (
            lambda rows: (
                value(rows, "weights", part="VGG-16, dense layers") > 89
                and value(rows, "work", part="VGG-16, dense layers") < 1
            )
        ),
        "ResNet-50 has one dense layer, with less than a tenth of its weights": lambda rows: (
            value(rows, "weights", part="ResNet-50, dense layer") < 10
        ),
        "the embedding of GPT-2 holds nearly a third of its weights and multiplies nothing": lambda rows: (
            0.3 < value(rows, "weights", part="GPT-2, embedding") / 100 < 0.33
            and value(rows, "work", part="GPT-2, embedding") == 0
        ),
        "the shares of a model add up to the whole": lambda rows: all(
            math.isclose(sum(row[kind] for row in rows if row["part"].startswith(model)), 100)
            for model in ("VGG-16", "ResNet-50", "GPT-2")
            for kind in ("weights", "work")
        ),
    },
    look=Look("part", ("weights", "work"), kind="bar", title="percent of the model's total"),
)
def weights_and_work(run):
    """The percentage of the weights and of the multiplications in each part of three published models, counted from
    the shapes of layers.

    Data parallelism sends as many numbers as there are weights, and hides the transfer behind the work.
    """
    for part, (model, begins) in PARTS.items():
        layers = published_models.MODELS[model]()
        mine = [layer for layer in layers if layer.name.startswith(begins)]
        here, every = (np.sum([layer[1:3] for layer in some], axis=0) for some in (mine, layers))
        weights, work = (100 * here / every).tolist()
        yield {"part": part, "weights": weights, "work": work, "millions": float(here[0] / 1e6)}


@figure(
    "Which strategies fit in the memory of a GPU?",
    source="Rajbhandari et al., SC 2020; Korthikanti et al., MLSys 2023",
    claims={
        "if every rank has the whole model and its optimizer, the states alone do not fit": lambda rows: all(
            row["states"] > row["the device has"]
            for row in rows
            if row["strategy"] in ("one machine", "all-reduce", "overlapped", "local SGD")
        ),
        "strategies that divide the model among ranks fit": lambda rows: all(
            row["states and activations"] < row["the device has"]
            for row in rows
            if row["strategy"] in ("1F1B", "tensor", "ZeRO-3")
        ),
        "the fastest strategy does not fit; the fastest that fits is the pipeline, if ZeRO-3 never prefetches": (
            lambda rows: (
                max(rows, key=lambda row: row["speed"])["strategy"] == "local SGD"
                and max((r for r in rows if _fits(r)), key=lambda row: row["speed"])["strategy"] == "1F1B"
            )
        ),
        "the pipeline is more than two fifths slower than the fastest": lambda rows: (
            ratio(rows, "speed", strategy=("1F1B", "local SGD")) < 0.6
        ),
    },
    look=Look(
        "strategy",
        ("states and activations", "states"),
        kind="bar",
        theory=("the device has",),
        title="GB on the fullest rank",
    ),
)
def does_it_fit(run):
    """Memory on the fullest of eight V100s with 16 GB each, in GB.

    They train the largest GPT-2 with Adam in single precision, each on one sequence of 1,024 tokens. States are
    weights, gradients, and what Adam keeps. Nothing is recomputed in backward. The pipeline holds up to eight
    micro-batches in flight. The server's own memory is not shown.
    """
    case = CASES[LARGE]
    return [
        {
            "strategy": strategy,
            "states and activations": memory(case, strategy) / 1e9,
            "states": states(case, strategy) / 1e9,
            "the device has": MEMORY[case.device] / 1e9,
            "speed": case.samples / seconds(case),
        }
        for strategy, seconds in CLOSED_FORMS.items()
    ]


def _fits(row):
    return row["states and activations"] < row["the device has"]

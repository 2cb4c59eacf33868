"""The time of a step: by formula, in simulation, and on GPUs with tensor cores."""

from dataclasses import replace

from lessons.choosing.experiments import CASES, LARGE, PRECISIONS
from lessons.choosing.rehearsal import rehearse
from lessons.choosing.strategies import CLOSED_FORMS, fits, memory
from lessons.figure import Look, figure, matching, value


@figure(
    "Which of eight strategies processes the most samples per second, in six cases?",
    source="closed forms as in Das et al., arXiv:1602.06709; simulated message by message",
    claims={
        "formulas and simulation agree within 1 % for all strategies except the pipeline": lambda rows: all(
            abs(row["paper"] / row["simulated"] - 1) < 0.01 for row in rows if row["strategy"] != "1F1B"
        ),
        "the pipeline agrees within 5 % where its links are faster than its stages": lambda rows: all(
            abs(row["paper"] / row["simulated"] - 1) < 0.05
            for row in rows
            if row["strategy"] == "1F1B" and "10GbE" not in row["case"]
        ),
        "where its links are slower than its stages, the pipeline's predicted speed is 15 to 35 % too high": (
            lambda rows: all(
                1.15 < row["paper"] / row["simulated"] < 1.35
                for row in rows
                if row["strategy"] == "1F1B" and "10GbE" in row["case"]
            )
        ),
        "averaging every 16 steps is fastest in at least four of six cases, and within 2 % of the fastest in all": (
            lambda rows: (
                sum(_fastest(rows, case) == "local SGD" for case in CASES) >= 4
                and all(_speeds(rows, case)["local SGD"] > 0.98 * max(_speeds(rows, case).values()) for case in CASES)
            )
        ),
        "with VGG-16 on 10 GbE, one parameter server is no faster than one machine": lambda rows: (
            _speeds(rows, "VGG-16, V100, 10GbE")["server"] < _speeds(rows, "VGG-16, V100, 10GbE")["one machine"]
        ),
        "splitting layers is slowest on 10 GbE, and at most a fifth behind the fastest on NVLink": lambda rows: (
            all(min(_speeds(rows, case), key=_speeds(rows, case).get) == "tensor" for case in CASES if "10GbE" in case)
            and _speeds(rows, "GPT-2 XL, H100, NVLink")["tensor"]
            > 0.8 * max(_speeds(rows, "GPT-2 XL, H100, NVLink").values())
        ),
    },
    look=Look("strategy", ("simulated", "paper"), slider="case", kind="bar", log="y", title="samples per second"),
)
def on_paper(run):
    """Samples per second of eight devices, each a node of its own, by formula and in a simulation of every message.

    ZeRO-3 fetches each layer when it is needed, and none in advance. Memory limits are ignored.

    The pipeline's formula lets links work while stages do. Where a link takes longer than a stage, gradients coming
    back wait for activations going out, which the formula ignores.
    """
    return [
        {
            "case": name,
            "strategy": strategy,
            "simulated": case.samples / rehearse(case, strategy),
            "paper": case.samples / seconds(case),
            "GB": memory(case, strategy) / 1e9,
            "fits": str(fits(case, strategy)),
        }
        for name, case in CASES.items()
        for strategy, seconds in CLOSED_FORMS.items()
    ]


def _speeds(rows, case):
    return {row["strategy"]: row["simulated"] for row in rows if row["case"] == case}


def _fastest(rows, case):
    return max(_speeds(rows, case), key=_speeds(rows, case).get)


SLOW, FAST = "VGG-16, V100, 10GbE", "GPT-2 XL, H100, NVLink"


@figure(
    "What if the GPU computes eight times as fast, and the network does not?",
    source="NVIDIA's data sheets: V100 15.7 and 125 TFLOP/s, H100 67 and 989; Micikevicius et al., ICLR 2018",
    claims={
        "for VGG-16 on 10 GbE, the overlapped all-reduce goes from over 3 times one machine's speed to below it": (
            lambda rows: (
                _worth(rows, SLOW, "overlapped", "float32") > 3 and _worth(rows, SLOW, "overlapped", "mixed") < 0.9
            )
        ),
        "for ResNet-50, the overlapped all-reduce goes from over 4 times one machine's speed to 1 to 1.25 times it": (
            lambda rows: (
                _worth(rows, "ResNet-50, V100, 10GbE", "overlapped", "float32") > 4
                and 1 < _worth(rows, "ResNet-50, V100, 10GbE", "overlapped", "mixed") < 1.25
            )
        ),
        "on a V100 one machine becomes 8 times as fast, but a busy server only twice as fast, as bytes are halved": (
            lambda rows: (
                7.9 < value(rows, "faster", case=SLOW, strategy="one machine") < 8
                and abs(value(rows, "faster", case=SLOW, strategy="server") - 2) < 1e-9
            )
        ),
        "in mixed precision, averaging every 16 steps is fastest in all cases: over 5 times one machine": lambda rows: (
            all(
                row["mixed precision"] == max(r["mixed precision"] for r in matching(rows, case=row["case"]))
                and row["mixed precision"] > 5
                for row in matching(rows, strategy="local SGD")
            )
        ),
        "for VGG-16 over InfiniBand, local SGD goes from level with the overlapped all-reduce to a fifth ahead": (
            lambda rows: (
                abs(_lead(rows, "VGG-16, V100, EDR", "float32") - 1) < 0.02
                and 1.15 < _lead(rows, "VGG-16, V100, EDR", "mixed") < 1.25
            )
        ),
        "for the largest GPT-2 over InfiniBand the pipeline overtakes the overlapped all-reduce": lambda rows: (
            _worth(rows, LARGE, "1F1B", "float32") < 0.6 * _worth(rows, LARGE, "overlapped", "float32")
            and _worth(rows, LARGE, "1F1B", "mixed") > 1.6 * _worth(rows, LARGE, "overlapped", "mixed")
        ),
        "over NVLink splitting layers goes from at most a fifth behind local SGD to less than half as fast": (
            lambda rows: (
                _worth(rows, FAST, "tensor", "float32") > 0.8 * _worth(rows, FAST, "local SGD", "float32")
                and _worth(rows, FAST, "tensor", "mixed") < 0.5 * _worth(rows, FAST, "local SGD", "mixed")
            )
        ),
    },
    look=Look(
        "strategy",
        tuple(PRECISIONS.values()),
        slider="case",
        kind="bar",
        log="y",
        title="speed of eight machines, relative to one",
    ),
)
def tensor_cores(run):
    """The speed of the same eight devices, as a multiple of one device's, by the formulas. It is shown for single
    precision without tensor cores, and for mixed precision.

    In mixed precision, tensor cores multiply and each number of a message takes two bytes, even in the averages of
    local SGD. `faster` is the number of samples per second in mixed precision, divided by that in single precision.
    """
    for name, case in CASES.items():
        cases = {words: replace(case, precision=precision) for precision, words in PRECISIONS.items()}
        for strategy, seconds in CLOSED_FORMS.items():
            single, mixed = (seconds(c) for c in cases.values())
            worth = {words: c.ranks * c.compute / seconds(c) for words, c in cases.items()}
            yield {"case": name, "strategy": strategy, "faster": single / mixed} | worth


def _worth(rows, case, strategy, precision):
    return value(rows, PRECISIONS[precision], case=case, strategy=strategy)


def _lead(rows, case, precision):
    return _worth(rows, case, "local SGD", precision) / _worth(rows, case, "overlapped", precision)

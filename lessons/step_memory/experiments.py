"""What a step remembers: weights, gradients, moments and activations; what is computed again, and what 16 bits save."""

from itertools import pairwise
from math import isfinite, log

import numpy as np

from algorithms.sequential import adam
from lessons.figure import Look, column, figure, is_falling, ratio, value
from theory.planner.language_model import find_model
from theory.planner.memory_use import memory_use
from theory.planner.setup import FLASH3, KEEP, SELECTIVE, UNFUSED, WHOLE, Layout, Setup, Software, find_gpu
from theory.planner.step_time import tokens_per_second
from theory.recomputation import even_plan
from tracing import HELD
from workloads import text
from workloads.loss_scale import LossScale

KB, GB, MS = 1e-3, 1e-9, 1e3
MODEL = {
    "algorithm": "adam", "workload": "text", "context": 32, "width": 64, "heads": 4, "depth": 6, "learning_rate": 0.01,
    "device": "2e11:1e15:0", "steps": 1, "evaluations": 1,
}  # fmt: skip


def peaks(done):
    """Return {kind of memory: its peak on rank 0, in bytes}."""
    return dict(zip(HELD, map(float, done.peaks()[0]), strict=True))


@figure(
    "What does a training step hold in memory?",
    source="Rajbhandari et al., SC 2020, section 3",
    claims={
        "weights, gradient and moments take 16 bytes for each weight, whatever the batch": lambda rows: all(
            abs((row["weights"] + row["gradient"] + row["moments"]) / row["16 d"] - 1) < 0.01 for row in rows
        ),
        "four times the batch holds four times the activations": lambda rows: all(
            abs(ratio(rows, "activations", batch=(4 * batch, batch)) - 4) < 0.1 for batch in BATCHES[:-1]
        ),
        "with 64 sequences, activations take more than ten times as much as all the rest": lambda rows: (
            value(rows, "activations", batch=64) > 10 * value(rows, "16 d", batch=64)
        ),
        "with one sequence, activations take less than a fifth of what the rest takes": lambda rows: (
            value(rows, "activations", batch=1) < value(rows, "16 d", batch=1) / 5
        ),
    },
    look=Look(
        "batch", ("weights", "gradient", "moments", "activations"), theory=("16 d",), log="xy", title="kB, at the peak"
    ),
)
def what_a_step_holds(run):
    """Adam trains a transformer of six blocks and 161,029 weights, in float32 on one machine. A sequence has 32 tokens.

    `16 d` is 16 bytes for each weight. The gradient takes as much as the weights, and hides their line.
    """
    for batch in BATCHES:
        done = run(**{**MODEL, "batch": batch})
        held = peaks(done)
        yield {
            "batch": batch,
            "weights": KB * held["parameters"],
            "gradient": KB * held["gradients"],
            "moments": KB * held["optimizer state"],
            "activations": KB * held["activations"],
            "16 d": KB * 16 * len(done.parameters),
        }


BATCHES = 1, 4, 16, 64


@figure(
    "What if sequences get longer, with the same number of tokens?",
    source="Korthikanti et al., MLSys 2023, section 4.1",
    claims={
        "activations other than scores take the same memory for every context": lambda rows: (
            max(rest(rows)) < 1.01 * min(rest(rows))
        ),
        "from 32 to 512 tokens of context, activations more than double": lambda rows: (
            ratio(rows, "activations", context=(512, 32)) > 2
        ),
        "with a context of 512, most of the activations are scores": lambda rows: (
            value(rows, "scores", context=512) > value(rows, "activations", context=512) / 2
        ),
    },
    look=Look("context", ("activations", "scores"), log="x", title="kB for each token"),
)
def longer_sequences(run):
    """A model of one attention block and one MLP block of width 64, with 4 heads and always 512 tokens in a mini-batch.

    `scores` are the attention weights of each token, 4 bytes for each head and each position of its sequence.
    """
    for context in (32, 64, 128, 256, 512):
        done = run(**{**MODEL, "context": context, "depth": 2, "batch": 512 // context})
        kept = KB * peaks(done)["activations"] / 512
        yield {"context": context, "activations": kept, "scores": KB * 4 * MODEL["heads"] * context}


def rest(rows):
    """Return each row's activations, excluding the scores."""
    return [row["activations"] - row["scores"] for row in rows]


SMALL = {**MODEL, "context": 16, "width": 32, "batch": 8}


@figure(
    "What if only a few activations are kept?",
    source="Chen et al., 2016, section 4",
    claims={
        "if activations are kept, four times the layers hold at least four times as much": lambda rows: all(
            ratio(rows, "kB", how="kept", layers=(4 * n, n)) > 4 for n in (8, 32)
        ),
        "if activations are recomputed, four times the layers hold about twice as much": lambda rows: all(
            1.8 < ratio(rows, "kB", how="computed again", layers=(4 * n, n)) < 2.2 for n in (8, 32)
        ),
        "with 128 layers, recomputing takes less than a sixth of the memory of keeping everything": lambda rows: (
            ratio(rows, "kB", layers=128, how=("computed again", "kept")) < 1 / 6
        ),
        "with 8 layers or more, recomputing makes a step a fifth to a third longer": lambda rows: all(
            1.2 < ratio(rows, "ms", layers=n, how=("computed again", "kept")) < 4 / 3 for n in (8, 32, 128)
        ),
        "the new weights are the same, to the last bit": lambda rows: all(column(rows, "same weights")),
    },
    look=Look("layers", ("kB",), "how", log="xy", title="kB of activations, at the peak"),
)
def square_root(run):
    """Activation memory and step time of transformers of 4, 8, 32 and 128 layers. Computed again: n layers are cut into
    sqrt(n) segments, and only the input of each segment is kept.

    `ms`: the duration of a step, on a processor of 200 GFLOP/s.
    """
    for layers in (4, 8, 32, 128):
        kept, again = (run(**{**SMALL, "depth": layers - 2, "recompute_activations": how}) for how in ("none", "full"))
        for how, done in (("kept", kept), ("computed again", again)):
            yield {
                "layers": layers,
                "how": how,
                "kB": KB * peaks(done)["activations"],
                "ms": MS * done.summary["seconds"],
                "same weights": bool(np.array_equal(done.parameters, kept.parameters)),
            }


@figure(
    "Into how many segments should layers be cut for recomputing?",
    source="Chen et al., 2016, section 4; our closed form (theory.recomputation)",
    claims={
        "with 16 to 32 segments a step holds less than 0.7 times as much as with 8, the root of 64": lambda rows: all(
            ratio(rows, "kB", segments=(segments, 8)) < 0.7 for segments in (16, 24, 32)
        ),
        "with 16 to 32 segments a step holds less than 0.75 times as much as with one for each layer": lambda rows: all(
            ratio(rows, "kB", segments=(segments, 64)) < 0.75 for segments in (16, 24, 32)
        ),
        "the formula is right within a tenth": lambda rows: all(
            abs(row["kB"] / row["k a + (64/k) c"] - 1) < 0.1 for row in rows
        ),
    },
    look=Look("segments", ("kB",), theory=("k a + (64/k) c",), log="xy", title="peak activations of 64 layers, kB"),
)
def how_many_segments(run):
    """Activation memory of the model of 64 layers, cut into 1 to 64 segments. The formula uses the mean of what a layer
    keeps, c, and the size of its input, a.
    """
    work = text.build(text.Settings(**{name: SMALL[name] for name in ("context", "width", "heads")}, depth=62))
    model = work.model.with_recomputation()
    w, batch = model.start(0), work.batch(np.arange(SMALL["batch"]))
    whole = work.model.forward(w, batch[0])[1]
    kept = sum(model.extents(whole).values()) / model.depth
    entered = 4 * SMALL["batch"] * SMALL["context"] * SMALL["width"]
    for segments in (1, 2, 4, 8, 16, 24, 32, 64):
        ends = np.cumsum([0, *(count for _, count in even_plan(model.depth, segments))])
        model.segments = [slice(start, stop) for start, stop in pairwise(ends)]
        model.activations.clear()
        model.gradient(w, *batch)
        yield {
            "segments": segments,
            "kB": KB * model.activations[SMALL["batch"]],
            "k a + (64/k) c": KB * (segments * entered + model.depth / segments * kept),
        }


@figure(
    "What do 16 bits save?",
    source="Micikevicius et al., ICLR 2018; Rajbhandari et al., SC 2020, section 3.1",
    claims={
        "in bf16, weights, gradient and moments take an eighth more memory than in float32": lambda rows: all(
            abs(row["states"] - 9 / 8) < 1e-6 for row in rows
        ),
        "in bf16, activations take half as much memory as in float32": lambda rows: all(
            abs(row["activations"] - 1 / 2) < 0.01 for row in rows
        ),
        "the wider the layers, the more time bf16 saves": lambda rows: is_falling(column(rows, "time")),
        "with a width of 128, a step in bf16 takes over 1.8 times as long as in float32": lambda rows: (
            value(rows, "time", width=128) > 1.8
        ),
        "with a width of 4,096, a step in bf16 takes less than three quarters as long as in float32": lambda rows: (
            value(rows, "time", width=4096) < 3 / 4
        ),
    },
    look=Look(
        "width", ("states", "activations", "time"), log="xy", title="bf16 relative to float32, on a simulated H100"
    ),
)
def what_16_bits_save(run):
    """Adam trains a network with two hidden layers of this width on digits, with 256 images in a step, in mixed
    precision and in float32.

    `states` are weights, with the copy in 16 bits, gradient and moments.
    """
    for width in (128, 512, 2048, 4096):
        values = {"algorithm": "adam", "workload": "digits", "hidden": f"{width},{width}", "batch": 256, "steps": 1}
        values |= {"device": "H100", "evaluations": 1, "learning_rate": 0.01}
        exact, short = (run(**values, precision=precision) for precision in ("float32", "bf16"))
        before, after = peaks(exact), peaks(short)
        names = "parameters", "gradients", "optimizer state"
        yield {
            "width": width,
            "states": sum(after[name] for name in names) / sum(before[name] for name in names),
            "activations": after["activations"] / before["activations"],
            "time": short.summary["seconds"] / exact.summary["seconds"],
        }


STORED = {
    "float32": {"precision": "float32"},
    "bf16, with master weights": {"precision": "bf16"},
    "bf16 only, to nearest": {"precision": "bf16", "weight_storage": "nearest"},
    "bf16 only, stochastic": {"precision": "bf16", "weight_storage": "stochastic"},
}


@figure(
    "Can the weights themselves have 16 bits?",
    source="Gupta et al., ICML 2015; Micikevicius et al., ICLR 2018, section 3.1",
    claims={
        "at a rate of 0.0003, weights rounded to nearest end at over 1.3 times the loss of float32": lambda rows: (
            ratio(rows, "loss", rate=0.0003, weights=("bf16 only, to nearest", "float32")) > 1.3
        ),
        "at rates up to 0.003, the loss with master weights is within 2 % of float32's": lambda rows: all(
            abs(ratio(rows, "loss", rate=rate, weights=("bf16, with master weights", "float32")) - 1) < 1 / 50
            for rate in RATES[:3]
        ),
        "at rates up to 0.003, the loss with stochastic rounding is within 5 % of float32's": lambda rows: all(
            abs(ratio(rows, "loss", rate=rate, weights=("bf16 only, stochastic", "float32")) - 1) < 1 / 20
            for rate in RATES[:3]
        ),
        "at a rate of 0.01, all four losses lie within 0.03 of each other": lambda rows: (
            max(column(rows, "loss", rate=RATES[-1])) - min(column(rows, "loss", rate=RATES[-1])) < 0.03
        ),
    },
    look=Look("rate", ("loss",), "weights", log="xy", title="training loss after 300 steps"),
)
def short_weights(run):
    """Training on digits with 64 hidden units, for 300 steps of Adam with 64 images each. Layers compute in bf16,
    except in `float32`.
    """
    for rate in RATES:
        for weights, precision in STORED.items():
            done = run(
                algorithm="adam", workload="digits", hidden="64", steps=300, batch=64, evaluations=1,
                learning_rate=rate, **precision,
            )  # fmt: skip
            yield {"rate": rate, "weights": weights, "loss": done.summary["loss"]}


RATES = 0.0003, 0.001, 0.003, 0.01
PARTS = 4096  # of a batch, of which a step computes one
CHARACTERS = 69  # kinds


def one_part(scale, parts=PARTS, window=4):
    """Return a worker whose loss is divided by `parts`, and multiplied by `scale`."""

    def worker(comm, task, s):
        task.loss_scale = LossScale(scale, window)
        task.loss_scale.value /= parts
        return adam.worker(comm, task, s)

    return worker


@figure(
    "Does fp16 need loss scaling?",
    source="Micikevicius et al., ICLR 2018, section 3.2",
    claims={
        "without scaling, fp16 ends over 0.5 above the loss of float32": lambda rows: excess(rows, "fp16", 0) > 0.5,
        "with scales from 2^10 to 2^25, fp16 ends within 0.02 of the loss of float32": lambda rows: all(
            abs(excess(rows, "fp16", exponent)) < 0.02 for exponent in (10, 15, 20, 25)
        ),
        "with a scale of 2^35, fp16 ends at the loss of guessing": lambda rows: (
            value(rows, "loss", exponent=35, format="fp16") > 0.99 * log(CHARACTERS)
        ),
        "bf16 ends within 0.02 of the loss of float32": lambda rows: abs(excess(rows, "bf16")) < 0.02,
        "with a dynamic scale, fp16 ends within 0.05 of the loss of float32": lambda rows: (
            abs(excess(rows, "fp16, dynamic")) < 0.05
        ),
    },
    look=Look("exponent", ("loss",), "format", title="training loss after 60 steps"),
)
def loss_scales(run):
    """Training with Adam for 60 steps of 512 tokens. The loss of a step is divided by 4,096, as if it were a part of
    the mean over a batch of two million tokens. The loss scale is 2 to the power `exponent`.

    A run that overflows counts as guessing, with a loss of log 69. The dynamic scale begins at 2^16, and is doubled
    after four good steps. The other formats have no scale.
    """
    values = {"algorithm": "adam", "workload": "text", "context": 16, "width": 32, "heads": 4, "depth": 2, "batch": 32}
    values |= {"steps": 60, "evaluations": 1, "learning_rate": 0.01}

    def loss(scale, **precision):
        override = one_part(scale, window=4) if precision["precision"] == "fp16" else None
        found = run(worker_override=override, **values, **precision).summary["loss"]
        return found if found is not None and isfinite(found) else log(CHARACTERS)

    flat = {
        "float32": loss(1, precision="float32"),
        "bf16": loss(1, precision="bf16"),
        "fp16, dynamic": loss(None, precision="fp16"),
    }
    for exponent in (0, 5, 10, 15, 20, 25, 35):
        fixed = loss(2**exponent, precision="fp16", loss_scale=1)
        for name, found in {"fp16": fixed, **flat}.items():
            yield {"exponent": exponent, "format": name, "loss": found}


def excess(rows, name, exponent=0):
    """Return by how much the loss with this format and scale exceeds that of float32."""
    ours, exact = (value(rows, "loss", exponent=exponent, format=one) for one in (name, "float32"))
    return ours - exact


@figure(
    "What should a large model recompute?",
    source="the formulas of `lockstep plan`; Korthikanti et al., MLSys 2023",
    claims={
        "recomputing scores frees more than two thirds of the activations": lambda rows: (
            ratio(rows, "GB", attention="scores in memory", again=("scores", "nothing")) < 1 / 3
        ),
        "recomputing scores costs less than a twentieth of the speed": lambda rows: (
            ratio(rows, "tokens/s", attention="scores in memory", again=("scores", "nothing")) > 0.95
        ),
        "recomputing whole layers costs over a fifth of the speed": lambda rows: (
            ratio(rows, "tokens/s", attention="scores in memory", again=("layers", "nothing")) < 0.8
        ),
        "fused attention holds less than attention whose scores are recomputed": lambda rows: (
            value(rows, "GB", attention="fused", again="nothing")
            < value(rows, "GB", attention="scores in memory", again="scores")
        ),
    },
    look=Look("again", ("GB",), "attention", kind="bar", title="GB of activations on a GPU"),
)
def scores_or_layers(run):
    """GPT-3 with 175 billion weights, by the planner's formulas, for sequences of 2,048 tokens. It runs on 64 A100s,
    with eight tensor-parallel ranks in each of eight stages.

    With fused attention, scores are never stored. `tokens/s`: tokens per second and GPU.
    """
    for attention, kernel in (("scores in memory", UNFUSED), ("fused", FLASH3)):
        for again, recompute in (("nothing", KEEP), ("scores", SELECTIVE), ("layers", WHOLE)):
            layout = Layout(tensor=8, pipeline=8, sequence_parallel=True, micro_batch=1, recompute=recompute)
            setup = Setup(find_model("gpt-3-175b"), 64, find_gpu("A100"), layout, Software(attention=kernel))
            yield {
                "attention": attention,
                "again": again,
                "GB": GB * float(memory_use(setup).activations),
                "tokens/s": float(tokens_per_second(setup)),
            }

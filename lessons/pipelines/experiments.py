"""Pipelines with a flush: the bubble, what makes it larger or smaller, and the memory and messages that a smaller
bubble costs.
"""

from itertools import pairwise

import numpy as np

from algorithms.parts.pipeline.ops import rematerialise
from experiments.study.schedules import COSTS, Plan, study
from lessons.figure import Look, column, figure, is_falling, ratio, value
from theory.pipeline_memory import Sizes, peak_bytes
from theory.schedule_timing import bubble_of_span, simulate
from theory.schedules import lists
from tracing import COMPUTE, HELD, UPDATE

SMOOTH = "1e9:1e15:0"  # a device that takes time for arithmetic and nothing else
DEEP = {"width": 64, "network": "ideal", "device": SMOOTH, "learning_rate": 0.1, "steps": 1, "evaluations": 1}
WEIGHTS, ACTIVATIONS = HELD.index("parameters"), HELD.index("activations")
KB = 1024


def idle(done):
    """Return the fraction of time in which a rank is idle, averaged over ranks."""
    busy = done.trace.busy()
    return 1 - float(busy[:, COMPUTE].sum() + busy[:, UPDATE].sum()) / (len(busy) * done.trace.seconds())


def speed(done):
    """Return the throughput, in samples per second."""
    return done.summary["samples"] / done.trace.seconds()


@figure(
    "What is gained by more machines if the model is split across them?",
    source="Huang et al., 2019, figure 2b; Harlap et al., 2018, figure 3",
    claims={
        "eight machines train no faster than one": lambda rows: all(0.95 < row["speed"] < 1.05 for row in rows),
        "only one machine works at a time": lambda rows: all(
            abs(row["idle"] - (1 - 1 / row["machines"])) < 0.01 for row in rows
        ),
        "each machine holds only a part of the model": lambda rows: all(
            row["weights"] < 1.2 * rows[0]["weights"] / row["machines"] for row in rows
        ),
        "the loss is bit-identical for every number of machines": lambda rows: len(set(column(rows, "loss"))) == 1,
    },
    look=Look("machines", ("speed",), theory=("ideal",), log="xy", title="times as fast as one machine"),
)
def cut_in_stages(run):
    """A network of 48 layers on digits, of which each machine holds some consecutive ones. A mini-batch of 32 passes
    through all layers and back.

    `idle`: the share of all machines' time in which they are idle; `weights`: the size of the weights in kB, on the
    machine that has most of them. The network takes no time.
    """
    alone = None
    for machines in (1, 2, 4, 8):
        done = run(algorithm="gpipe", chunks=1, workers=machines, batch=32, depth=46, **DEEP | {"steps": 20})
        alone = alone or speed(done)
        row = {"machines": machines, "speed": speed(done) / alone, "ideal": machines, "idle": idle(done)}
        weights = float(done.peaks()[:, WEIGHTS].max()) / KB
        yield {**row, "weights": weights, "loss": done.summary["held_out_loss"]}


@figure(
    "How large is the bubble?",
    source="Huang et al., 2019 (GPipe), section 2.3",
    claims={
        "the bubble is (S-1) / (M+S-1) of the time of all stages": lambda rows: all(
            abs(row["idle"] - row["(S-1)/(M+S-1)"]) < 0.025 for row in rows
        ),
        "doubling the micro-batches nearly halves the bubble, once there are many": lambda rows: all(
            0.5 < more["idle"] / fewer["idle"] < 0.66 for fewer, more in pairwise(rows) if more["M"] > fewer["M"] > 8
        ),
        "with four times as many micro-batches as stages the bubble is still a tenth to a fifth": lambda rows: all(
            0.1 < row["idle"] < 0.2 for row in rows if row["M"] == 4 * row["S"]
        ),
    },
    look=Look(
        "M", ("idle",), slider="S", theory=("(S-1)/(M+S-1)",), log="x", title="share of the time that stages are idle"
    ),
)
def bubble(run):
    """Training on digits with 96 layers in S equal stages. M micro-batches of 8 samples make a mini-batch, and links
    take no time.
    """
    for stages in (2, 4, 8):
        for chunks in (1, 2, 4, 8, 16, 32, 64):
            done = run(algorithm="gpipe", workers=stages, chunks=chunks, batch=8 * chunks, depth=94, **DEEP)
            theory = (stages - 1) / (chunks + stages - 1)
            yield {"S": stages, "M": chunks, "idle": idle(done), "(S-1)/(M+S-1)": theory}


@figure(
    "Into how many micro-batches should a mini-batch be cut?",
    source="Huang et al., 2019, on the choice of M; the numbers are ours",
    claims={
        "the more micro-batches there are, the less stages are idle": lambda rows: all(
            is_falling(column(rows, "idle", stages=stages)) for stages in (2, 4, 8)
        ),
        "there is a best number, beyond which training gets slower though stages idle less": lambda rows: all(
            1 < _best(rows, stages) < 256 for stages in (2, 4, 8)
        ),
        "the best number is larger for eight stages than for two": lambda rows: _best(rows, 2) < _best(rows, 8),
        "even at the best number, eight machines do the work of fewer than four": lambda rows: (
            max(column(rows, "speed", stages=8)) < 4
        ),
        "with a batch cut into single samples, eight machines are slower than one with the whole batch": lambda rows: (
            value(rows, "speed", stages=8, M=256) < 1
        ),
    },
    look=Look("M", ("speed",), "stages", log="xy", title="times as fast as one machine"),
)
def too_thin(run):
    """A mini-batch of 256 digits in M micro-batches, on 32 layers and 10 Gb Ethernet. One machine processes all 256 at
    once.

    Every kernel call costs a microsecond, however little it computes, and every message costs five. A rank that sends
    counts as idle.
    """
    alone = speed(in_pieces(run, 1, 1))
    for stages in (2, 4, 8):
        for chunks in (1, 2, 4, 8, 16, 32, 64, 256):
            done = in_pieces(run, stages, chunks)
            row = {"stages": stages, "M": chunks, "speed": speed(done) / alone, "idle": idle(done)}
            yield row


def in_pieces(run, stages, chunks, **machines):
    """Return the Run of a pipeline whose mini-batches of 256 samples are cut into this many micro-batches.

    Each kernel call and each message has a start-up cost, unless `machines` changes that.
    """
    where = {"algorithm": "gpipe", "depth": 30, "width": 64, "batch": 256, "steps": 1, "evaluations": 1}
    return run(**where | machines, workers=stages, chunks=chunks, learning_rate=0.1)


def _best(rows, stages):
    return max((row for row in rows if row["stages"] == stages), key=lambda row: row["speed"])["M"]


@figure(
    "Does it matter to the model that its mini-batches are cut?",
    source="Huang et al., 2019, section 2.2, on batch norm",
    claims={
        "32 micro-batches teach a network the same as one, up to rounding": lambda rows: all(
            abs(row["convolutions"]) < 1e-6 for row in rows
        ),
        "with batch norm, cutting matters: a sample is normalised with the others of its micro-batch": lambda rows: (
            rows[-1]["batch norm"] > 2
        ),
        "with batch norm the smallest micro-batches suffer most: their statistics are the noisiest": lambda rows: (
            min(column(rows, "batch norm")[4:]) > max(column(rows, "batch norm")[:3])
        ),
    },
    look=Look("M", ("convolutions", "batch norm"), log="x", title="loss, % above that of whole mini-batches"),
)
def the_same_model(run):
    """The mean loss of the last 20 of 40 mini-batches of 64 digits, each cut into M micro-batches. A small
    convolutional net in two stages is trained, with and without batch norm.
    """
    whole = {name: final_loss(run, name, 1) for name in MODELS}
    for chunks in (1, 2, 4, 8, 16, 32):
        row = {"M": chunks}
        for name in MODELS:
            above = 100 * (final_loss(run, name, chunks) / whole[name] - 1)
            row[name] = round(above, 9) + 0.0  # digits beyond are rounding, which differs between processors
        yield row


MODELS = {"convolutions": "cnn", "batch norm": "cnn_bn"}


def final_loss(run, name, chunks):
    """Return the loss of the last mini-batches of a small net on two stages. Each mini-batch is cut into `chunks`
    micro-batches.
    """
    done = run(
        algorithm="gpipe", workers=2, chunks=chunks, batch=64, steps=40, learning_rate=0.1, evaluations=1,
        model=MODELS[name], channels=4, precision="float64",
    )  # fmt: skip
    return done.summary["loss"]


FAT = "64,64,64,64,64,128,128,64,64,64,64"  # twelve layers; the seventh is a quarter of the work


@figure(
    "What do uneven stages cost, and what did the authors measure?",
    source="Huang et al., 2019, table 2 (32 micro-batches; 1 is two accelerators without micro-batches)",
    claims={
        "the speed of equal stages is at most a tenth below K M / (M + K - 1)": lambda rows: all(
            0.9 < row["alike"] / row["K M / (M+K-1)"] <= 1.01 for row in rows
        ),
        "the paper's Transformer, whose layers are all the same, is at most a tenth below K M / (M + K - 1)": (
            lambda rows: all(0.9 < row["Transformer"] / row["K M / (M+K-1)"] < 1 for row in rows)
        ),
        "if one layer is a quarter of the work, eight machines do the work of fewer than four": lambda rows: (
            value(rows, "one fat layer", machines=8) < 4
        ),
        "one fat layer slows eight machines as much as the paper's AmoebaNet, within a tenth": lambda rows: (
            abs(value(rows, "one fat layer", machines=8) / value(rows, "AmoebaNet", machines=8) - 1) < 0.1
        ),
        "with one fat layer, the speed is within 5 % of M work / (work + (M-1) slowest)": lambda rows: all(
            abs(row["one fat layer"] / row["by its slowest"] - 1) < 0.05 for row in rows
        ),
    },
    look=Look(
        "machines",
        ("alike", "one fat layer"),
        theory=("K M / (M+K-1)", "Transformer", "AmoebaNet"),
        title="speed with 32 micro-batches, relative to two machines with one micro-batch",
    ),
)
def uneven_stages(run):
    """Speed on K machines with 32 micro-batches of 4 digits, as a multiple of the speed on two machines without
    micro-batches.

    `alike`: 64 equal layers; `one fat layer`: twelve, one of which is a quarter of the work, cut as evenly as possible.
    The other two are the authors' own numbers, on TPUs.
    """
    paper = {2: (1.8, 1.21), 4: (3.4, 1.84), 8: (6.3, 3.48)}
    models = {"alike": {"depth": 62}, "one fat layer": {"model": "mlp", "hidden": FAT, "activation": "tanh"}}
    where = {"algorithm": "gpipe", "batch": 128, **DEEP}
    for machines, (transformer, amoebanet) in paper.items():
        row = {"machines": machines}
        for name, model in models.items():
            done = run(**where | model, workers=machines, chunks=32)
            row[name] = speed(done) / speed(run(**where | model, workers=2, chunks=1))
        busy = done.trace.busy()[:, COMPUTE]
        row["by its slowest"] = 32 * busy.sum() / (busy.sum() + 31 * busy.max())
        row |= {"K M / (M+K-1)": machines * 32 / (31 + machines), "Transformer": transformer, "AmoebaNet": amoebanet}
        yield row


HOW = {
    "GPipe": ("gpipe", {"algorithm": "gpipe"}),
    "1F1B": ("1f1b", {"algorithm": "dapple"}),
    "GPipe again": ("gpipe_early", {"algorithm": "gpipe", "recompute": "early"}),
    "1F1B again": ("1f1b", {"algorithm": "dapple", "recompute": "early"}),
}


@figure(
    "How much does a stage have to remember?",
    source="Huang et al., 2019, section 2.3; Narayanan et al., 2021, and Fan et al., 2021 (1F1B)",
    claims={
        "GPipe stores every micro-batch, so twice as many need twice as much memory": lambda rows: all(
            1.9 < more["kB"] / fewer["kB"] < 2.1
            for fewer, more in pairwise(rows)
            if more["how"] == fewer["how"] == "GPipe"
        ),
        "1F1B stores no more micro-batches than there are stages, however many follow": lambda rows: (
            len(set(column(rows, "kB", how="1F1B")[2:])) == 1 and ratio(rows, "kB", how="1F1B", M=(32, 1)) < 4.1
        ),
        "1F1B takes no longer than GPipe": lambda rows: all(
            abs(ratio(rows, "ms", how=("1F1B", "GPipe"), M=m) - 1) < 0.03 for m in (4, 32)
        ),
        "with recomputation GPipe needs less memory than 1F1B, but up to a third more time": lambda rows: (
            value(rows, "kB", how="GPipe again", M=32) < value(rows, "kB", how="1F1B", M=32)
            and 1.2 < ratio(rows, "ms", how=("GPipe again", "GPipe"), M=32) < 1.34
        ),
        "the list of ops overstates the peak by at most 2 kB, the input of one micro-batch": lambda rows: all(
            0 <= row["by the list"] - row["kB"] <= 2 for row in rows
        ),
    },
    look=Look("M", ("kB",), "how", theory=("by the list",), log="xy", title="kB of activations on one stage, at most"),
)
def memory(run):
    """The peak memory of the second of four stages, with 48 layers on digits and M micro-batches of 8 samples.

    `again`: a stage keeps only its inputs, and recomputes the forward pass before each backward pass. `ms`: the
    duration of a mini-batch.
    """
    where = {"workers": 4, "depth": 46, **DEEP}
    alone = float(run(algorithm="gpipe", chunks=1, batch=8, **where).peaks()[1, ACTIVATIONS])
    sizes = Sizes([8 * 64 * 4] * 4, [alone] * 4, [0] * 4)
    for how, (name, settings) in HOW.items():
        for chunks in (1, 2, 4, 8, 16, 32):
            done = run(**settings, chunks=chunks, batch=8 * chunks, **where)
            held = float(done.peaks()[1, ACTIVATIONS])
            ops = lists(name, 4, chunks)
            if how == "1F1B again":
                ops = [list(rematerialise(mine)) for mine in ops]
            by_list = peak_bytes(ops, sizes)[1]
            row = {"how": how, "M": chunks, "kB": held / KB, "by the list": by_list / KB}
            yield {**row, "ms": 1e3 * done.trace.seconds()}


@figure(
    "How large a model fits in the memory of several machines?",
    source="Huang et al., 2019, table 1, in miniature",
    claims={
        "on one machine, recomputation makes room for three times the layers": lambda rows: (
            ratio(rows, "layers", machines=1, how=("again", "kept")) >= 3
        ),
        "with recomputation, the number of layers grows with the number of machines": lambda rows: all(
            abs(
                value(rows, "layers", machines=n, how="again") / (n * value(rows, "layers", machines=1, how="again"))
                - 1
            )
            < 0.15
            for n in (2, 4, 8)
        ),
        "eight machines that recompute hold twenty times the layers of one that does not": lambda rows: (
            ratio(rows, "layers", machines=(8, 1), how=("again", "kept")) > 20
        ),
    },
    look=Look("machines", ("layers",), "how", kind="bar", title="layers that fit"),
)
def largest_model(run):
    """The number of layers of 64 units that fit on machines with 1 MB each, found by trial. GPipe has 16 micro-batches
    of 16 samples.

    `kept`: a stage keeps what its forward pass computed; `again`: its inputs only. A machine also holds the weights and
    gradients of its stage.
    """

    def fits(depth, machines, recompute):
        where = {"workers": machines, "chunks": 16, "batch": 256, "recompute": recompute, "depth": depth, **DEEP}
        return run(algorithm="gpipe", **where).summary["memory"] <= 1024 * KB

    for how, recompute, few in (("kept", "none", 4), ("again", "early", 16)):
        for machines in (1, 2, 4, 8):
            low, high = few * machines, 2 * few * machines  # the first is known to fit, the second not to
            while high - low > machines:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(middle, machines, recompute) else (low, middle)
            yield {"how": how, "machines": machines, "layers": low + 2}


ZOO = {
    "GPipe": ("gpipe", {"algorithm": "gpipe"}),
    "1F1B": ("1f1b", {"algorithm": "dapple"}),
    "interleaved": ("interleaved", {"algorithm": "interleaved"}),
    "Chimera": ("chimera", {"algorithm": "chimera"}),
    "ZB-H1": ("zb_h1", {"algorithm": "zb_h1"}),
    "ZB-H2": ("zb_h2", {"algorithm": "zb_h2"}),
    "ZB-V": ("zb_v", {"algorithm": "zb_v"}),
    "DualPipe": ("dualpipe", {"algorithm": "dualpipe"}),
}


@figure(
    "Must a stage idle at all?",
    source="Narayanan et al., 2021; Li & Hoefler, 2021 (Chimera); Qi et al., 2024 (ZB); DeepSeek-AI, 2024 (DualPipe)",
    claims={
        "by the list of ops, stages idle for 9, 9, 4.5, 6, 3, 3, 1.5 and 2 forward passes, and work for 24": (
            lambda rows: column(rows, "by the list") == [9, 9, 4.5, 6, 3, 3, 1.5, 2]
        ),
        "in training, stages idle for as long as the list says, within 0.7 of a forward pass": lambda rows: all(
            abs(row["idle"] - row["by the list"]) < 0.7 for row in rows
        ),
        "from its first op to its last, a stage of ZB-H2 or ZB-V never idles": lambda rows: all(
            (value(rows, "within its span", schedule=name) < 1e-6) == (name in ("ZB-H2", "ZB-V")) for name in ZOO
        ),
        "1F1B holds half of what GPipe holds, and ZB-H2 nearly as much as GPipe": lambda rows: (
            4 * value(rows, "micro-batches", schedule="1F1B")
            < 2.1 * value(rows, "micro-batches", schedule="GPipe")
            < 2.6 * value(rows, "micro-batches", schedule="ZB-H2")
        ),
        "Chimera and DualPipe hold the weights twice": lambda rows: all(
            1.8 < row["copies"] < 2.2 if row["schedule"] in ("Chimera", "DualPipe") else 0.9 < row["copies"] < 1.1
            for row in rows
        ),
        "the model learns with every schedule, and learns the same": lambda rows: (
            max(column(rows, "loss")) < 2 and np.ptp(column(rows, "loss")) < 1e-6
        ),
    },
    look=Look("schedule", ("idle",), kind="bar", theory=("by the list",), title="idle, in units of a forward pass"),
)
def zoo(run):
    """Pipelines of 96 layers on 4 ranks, trained on digits with a mini-batch in 8 micro-batches. A forward pass f is a
    third of the work.

    `idle`: the mean idle time of a rank per mini-batch. `micro-batches`: the most activations that any rank holds, in
    units of one micro-batch's. `copies`: the most weights that any rank holds, in units of a quarter of the model.
    `loss`: the held-out loss after six mini-batches.
    """
    where = {"workers": 4, "batch": 64, "depth": 94, **DEEP}
    alone = run(**where | {"batch": 8}, algorithm="gpipe", chunks=1).peaks().max(axis=0)
    for name, (schedule, how) in ZOO.items():
        done = run(**how, chunks=8, **where)
        planned = study(Plan.of(schedule=schedule, ranks=4, chunks=8))
        work = 24 / (1 - idle(done))  # length of a step in forward passes: 8 forward, 16 backward, and idle time
        held = done.peaks().max(axis=0) / np.maximum(alone, 1)
        taught = run(**how, chunks=8, **where | {"steps": 6, "learning_rate": 0.03})
        yield {
            "schedule": name,
            "idle": work - 24,
            "by the list": planned.summary["idle"],
            "within its span": planned.summary["bubble_of_span"],
            "micro-batches": float(held[ACTIVATIONS]),
            "copies": float(held[WEIGHTS]),
            "loss": taught.summary["held_out_loss"],
        }


@figure(
    "What do slow links cost?",
    source="Fan et al., 2021 (DAPPLE), policies PA and PB; the formulas are ours, by counting",
    claims={
        "GPipe pays for the latency there and back once per mini-batch: (S-1) (f+b+2c)": lambda rows: all(
            abs(row["GPipe"] - row["once"]) < 1.5 for row in rows
        ),
        "1F1B pays in the steady state, too, since only S micro-batches are in flight": lambda rows: all(
            abs(row["1F1B"] - row["in the steady state"]) < 1.5 for row in rows
        ),
        "with twice as many micro-batches in flight the latency is hidden again, up to (f+b)/2": lambda rows: all(
            (row["1F1B, twice ahead"] < row["once"] + 1.5) == (row["c"] <= 1.5) for row in rows
        ),
    },
    look=Look(
        "c",
        ("GPipe", "1F1B", "1F1B, twice ahead"),
        theory=("once", "in the steady state"),
        title="idle time per mini-batch, in forward passes",
    ),
)
def slow_links(run):
    """Four stages of 16 layers each and 16 micro-batches, on links with latency c. The unit of c is a forward pass f of
    a stage; a backward pass b takes 2 f.

    `in the steady state`: (S-1)(f+b) + 2c ((S-1) M/S + S-2).
    """
    where = {"workers": 4, "chunks": 16, "batch": 128, "depth": 62, **DEEP}
    ways = {
        "GPipe": {"algorithm": "gpipe"},
        "1F1B": {"algorithm": "dapple"},
        "1F1B, twice ahead": {"algorithm": "dapple", "policy": "PB"},
    }
    forward = run(**where | ways["GPipe"]).trace.busy()[:, COMPUTE].mean() / 48
    for latency in (0, 0.5, 1, 1.5, 2.5):
        row = {"c": latency, "once": 3 * (3 + 2 * latency), "in the steady state": 9 + 2 * latency * (3 * 16 / 4 + 2)}
        for name, how in ways.items():
            done = run(**where | how | {"latency": latency * forward})
            row[name] = idle(done) * done.trace.seconds() / forward
        yield row


TABLE_5 = """
1.5B  8  24  18.522 18.086  9.337 .601 .2431 .1585 .1083 .0433
1.5B  8  32  18.513 18.086  9.331 .626 .1985 .1242 .0837 .0039
1.5B  8  64  18.546 18.097  9.321 .762 .1240 .0674 .0444 .0026
6.2B  8  24  29.718 29.444 19.927 .527 .2347 .1323 .0698 .0029
6.2B  8  32  29.802 29.428 19.530 .577 .1898 .1045 .0559 .0022
6.2B  8  64  29.935 29.621 19.388 .535 .1091 .0554 .0294 .0010
14.6B 16 48  11.347 11.248  8.132 .377 .2552 .1397 .0672 .0066
14.6B 16 64  11.307 11.254  8.101 .379 .2082 .1088 .0516 .0054
14.6B 16 128 11.325 11.308  8.109 .378 .1251 .0576 .0266 .0028
28.3B 32 96  10.419 10.207  7.715 .408 .2646 .1421 .0641 .0038
28.3B 32 128 10.408 10.204  7.703 .408 .2168 .1106 .0490 .0029
"""  # model, stages, micro-batches; times of F, I, W and a message in ms; bubble of 1F1B, ZB-H1, ZB-H2, ZB-2p


@figure(
    "Can a published table of bubbles be computed?",
    source="Qi et al., 2024, tables 5 and 9",
    claims={
        "all 44 bubbles agree with the paper's in all four digits": lambda rows: (
            len(rows) == 44 and all(round(row["bubble"], 4) == row["paper"] for row in rows)
        ),
        "in every row the split backward saves at least a third of the bubble": lambda rows: all(
            ratio(rows, "bubble", case=case, schedule=("ZB-H1", "1F1B")) < 0.67
            for case in column(rows, "case", schedule="1F1B")
        ),
        "an order searched for these times leaves at most half the bubble of a rule-based one": lambda rows: all(
            ratio(rows, "bubble", case=case, schedule=("ZB-2p", "ZB-H2")) < 0.5
            for case in column(rows, "case", schedule="1F1B")
        ),
    },
    look=Look("paper", ("bubble",), "schedule", theory=("paper",), title="bubble, as a share of the span"),
)
def published_table(run):
    """Pipelines of language models with 1.5 to 28.3 billion parameters, on 8 to 32 GPUs. `case`: model, stages,
    micro-batches.

    The authors profiled forward, input gradient, weight gradient and message; the bubble follows from these four times
    and the order of ops. ZB-2p searches for its order, given the four times.
    """
    for line in TABLE_5.split("\n")[1:-1]:
        model, *numbers = line.split()
        stages, chunks = map(int, numbers[:2])
        forward, inputs, weights, latency, *paper = map(float, numbers[2:])
        costs = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights}
        for (name, schedule), theirs in zip(SCHEDULES_OF_TABLE.items(), paper, strict=True):
            told = dict(zip(COSTS, map(float, numbers[2:6]), strict=True)) if schedule == "zb_2p" else {}
            ours = bubble_of_span(simulate(lists(schedule, stages, chunks, **told), costs, latency))
            case = f"{model}, {stages}, {chunks}"
            yield {"case": case, "schedule": name, "bubble": ours, "paper": theirs}


SCHEDULES_OF_TABLE = {"1F1B": "1f1b", "ZB-H1": "zb_h1", "ZB-H2": "zb_h2", "ZB-2p": "zb_2p"}

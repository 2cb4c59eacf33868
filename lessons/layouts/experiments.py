"""Choosing a layout: what each way to split a model costs, how far to trust a cost model, and when to save."""

from dataclasses import replace

import numpy as np

from experiments.study.planner_errors import UNSEEN
from kernels import METER
from lessons.figure import Look, column, figure, is_rising, ratio, value
from theory.checkpoint_interval import lost_share, young_interval
from theory.planner import published
from theory.planner.constants import FITTED, HIGHEST, LOWEST, STANDARD_ERRORS, Constants
from theory.planner.language_model import find_model
from theory.planner.memory_use import TIGHT
from theory.planner.search import Found, price, search
from theory.planner.setup import FULL, KEEP, LIGHT, OPTIMIZER, WHOLE, Layout, Setup, find_gpu
from theory.planner.step_time import step_time, throughput
from tracing import COMPUTE, HELD

MS, KB, MB, GB = 1e3, 1e-3, 1e-6, 1e-9
GPUS, BATCH = 64, 512  # of the example; sequences in a step
LARGE = Setup(find_model("llama-3-70b"), BATCH, find_gpu("H100"), Layout())
SMALL = replace(LARGE, model=find_model("llama-3-8b"))


def fastest(found: Found, allowed=True) -> int:
    """Return the index of the fastest layout that fits with some memory to spare. If none fits, return the index of the
    layout that needs the least memory.
    """
    fits = (found.shares <= TIGHT) & allowed
    return int(np.flatnonzero(fits)[found.time.seconds[fits].argmin()] if fits.any() else found.shares.argmin())


def variants(setup: Setup, **split: int) -> Found:
    """Return the layouts with this split, with their times and memory.

    They have micro-batches of 1 to 8, every way to recompute, and one, two or five stages on a rank.
    """
    pieces = (1, 2, 5) if split.get("pipeline", 1) > 1 else (1,)
    grid = np.array([(b, r, v) for b in (1, 2, 4, 8) for r in (KEEP, LIGHT, WHOLE) for v in pieces]).T
    layout = Layout(
        **split, micro_batch=grid[0], recompute=grid[1], pieces=grid[2], sequence_parallel=split.get("tensor", 1) > 1,
    )  # fmt: skip
    return price(replace(setup, layout=layout))


ALONE: dict[str, dict[str, int]] = {
    "replicas that shard the optimizer": {"data": 64, "shard": OPTIMIZER},
    "replicas that shard all": {"data": 64, "shard": FULL},
    "matrices, in each node": {"data": 8, "tensor": 8, "shard": OPTIMIZER},
    "stages": {"data": 4, "pipeline": 16, "shard": OPTIMIZER},
    "sequences": {"data": 8, "context": 8, "shard": OPTIMIZER},
}


@figure(
    "70 billion weights on 64 GPUs: is one way to split them enough?",
    source="the formulas of `lockstep plan`",
    claims={
        "replicas that shard only the optimizer's state need over five times a GPU's memory; so do split sequences": (
            lambda rows: all(
                value(rows, "GB", split=split) > 5 * 85
                for split in ("replicas that shard the optimizer", "sequences")
            )
        ),
        "the three other ways fit, and the fastest fitting variant of each recomputes every layer": (
            lambda rows: all(
                value(rows, "GB", split=split) < 85 and value(rows, "again", split=split) == "all"
                for split in ("replicas that shard all", "matrices, in each node", "stages")
            )
        ),
        "of the ways that fit, replicas that shard all are the fastest": lambda rows: all(
            ratio(rows, "tokens/s", split=("replicas that shard all", split)) > 1.05
            for split in ("matrices, in each node", "stages")
        ),
        "the planner's choice is over a sixth faster than replicas that shard all": lambda rows: (
            ratio(rows, "tokens/s", split=("the planner's choice", "replicas that shard all")) > 7 / 6
        ),
    },
    look=Look("split", ("GB",), kind="bar", theory=("has",), title="GB on a GPU"),
)  # fmt: skip
def one_way_alone(run):
    """Llama 3 70B on eight nodes of eight H100s, with 512 sequences of 8,192 tokens in a step. Each row is the fastest
    variant of one way to split the model that fits in memory or, if none fits, the variant that needs the least memory.

    `has`: a GPU's memory. `tokens/s`: the speed of each GPU, if it had the memory. `again`: what is computed again in
    the backward pass. Where matrices, stages or sequences are split, the groups of GPUs that share a copy are replicas.
    """
    found = {name: variants(LARGE, **split) for name, split in ALONE.items()}
    found["the planner's choice"] = search(LARGE, GPUS)
    for name, one in found.items():
        place = fastest(one)
        yield {
            "split": name,
            "GB": GB * float(one.memory.total[place]),
            "has": GB * LARGE.gpu.memory,
            "tokens/s": float(one.rates[place]),
            "again": ("nothing", "a little", "scores", "all")[one.setup.layout.recompute[place]],
        }


WAYS = {"matrices": "tensor", "stages": "pipeline", "sequences": "context"}


@figure(
    "What does each way to split a model cost, and what does it save?",
    source="the formulas of `lockstep plan`; Korthikanti et al., MLSys 2023; Narayanan et al., SC 2021",
    claims={
        "a GPU that shares matrices with seven others needs less than a fifth of the memory that it needs alone": (
            lambda rows: (
                ratio(rows, "GB", split="matrices", GPUs=(8, 1)) < 0.2
            )
        ),
        "with eight stages a GPU needs over 0.4 times the memory that it needs alone, with split sequences over 0.5": (
            lambda rows: (
                ratio(rows, "GB", split="stages", GPUs=(8, 1)) > 0.4
                and ratio(rows, "GB", split="sequences", GPUs=(8, 1)) > 0.5
            )
        ),
        "the more GPUs share a copy, the longer a step takes": lambda rows: all(
            is_rising(column(rows, "longer", split=split)) for split in WAYS
        ),
        "with two GPUs per copy, a step is less than an eighth longer than without a split, whatever the way": (
            lambda rows: (
                max(column(rows, "longer", GPUs=2)) < 12.5
            )
        ),
        "with eight GPUs per copy, a step is more than a quarter longer than without a split, whatever the way": (
            lambda rows: (
                min(column(rows, "longer", GPUs=8)) > 25
            )
        ),
    },
    look=Look("GPUs", ("longer",), "split", log="x", title="how much longer a step is, %"),
)  # fmt: skip
def what_a_way_costs(run):
    """Llama 3 8B on 64 H100s. Each copy of the model is split over `GPUs` of them, by matrices, by stages or by
    sequences. A step has 512 sequences of 8,192 tokens, a micro-batch has one, and nothing is recomputed.

    `longer`: how much longer a step takes than without a split, ignoring memory limits. `GB`: the memory of the fullest
    GPU. If the model is split into stages, each GPU has one, two or four of them, whichever is fastest.
    """
    whole = price(replace(SMALL, layout=Layout(data=GPUS, shard=OPTIMIZER)))
    for name, field in WAYS.items():
        for ranks in (1, 2, 4, 8):
            layout = Layout(
                data=GPUS // ranks, shard=OPTIMIZER, sequence_parallel=name == "matrices" and ranks > 1,
                pieces=np.array([1, 2, 4] if name == "stages" and ranks > 1 else [1]), **{field: ranks},
            )  # fmt: skip
            one = price(replace(SMALL, layout=layout))
            place = one.time.seconds.argmin()
            yield {
                "split": name,
                "GPUs": ranks,
                "longer": 100 * float(one.time.seconds[place] / whole.time.seconds - 1),
                "GB": GB * float(one.memory.total[place]),
            }


EIGHT = {
    "algorithm": "five_d", "workload": "text", "context": 32, "width": 32, "heads": 8, "depth": 6, "experts": 8,
    "update": "adam", "learning_rate": 0.01, "device": "2e11:1e15:0", "latency": 2e-6, "bandwidth": 1e9,
    "steps": 1, "evaluations": 1, "workers": 8, "per_node": 8,
}  # fmt: skip
FIVE: dict[str, tuple[int, ...]] = {  # ranks that share matrices, layers, sequences and experts; the rest are replicas
    "samples": (1, 1, 1, 1),
    "samples and experts": (1, 1, 1, 8),
    "matrices": (8, 1, 1, 1),
    "layers": (1, 8, 1, 1),
    "sequences": (1, 1, 8, 1),
    "matrices, layers, sequences": (2, 2, 2, 1),
    "matrices, layers, sequences, experts": (2, 2, 2, 2),
    "all but layers": (2, 1, 2, 4),
}
STATES = slice(0, HELD.index("activations"))


@figure(
    "What do five ways to split a model divide, in a full simulation?",
    source="Grattafiori et al., 2024, section 3.3.2",
    claims={
        "ranks that share sequences hold as many states as replicas": lambda rows: (
            ratio(rows, "states", split=("sequences", "samples")) == 1
        ),
        "replicas that divide experts hold under 1/4 of other replicas' states, and send under 1/6 of their bytes": (
            lambda rows: (
                ratio(rows, "states", split=("samples and experts", "samples")) < 1 / 4
                and ratio(rows, "MB", split=("samples and experts", "samples")) < 1 / 6
            )
        ),
        "replicas that divide experts take less than four fifths as long as other replicas": lambda rows: (
            ratio(rows, "ms", split=("samples and experts", "samples")) < 4 / 5
        ),
        "ranks that share matrices hold the fewest states, and over 2.5 times a replica's activations": (
            lambda rows: (
                min(column(rows, "states")) == value(rows, "states", split="matrices")
                and ratio(rows, "activations", split=("matrices", "samples")) > 2.5
            )
        ),
        "if all but the layers are split, over two or four ranks each, the fullest rank holds the least": lambda rows: (
            min(rows, key=lambda row: row["in all"])["split"] == "all but layers"
        ),
    },
    look=Look("split", ("states", "activations"), kind="bar", title="kB on the fullest rank"),
)
def five_at_once(run):
    """A transformer of three attention blocks and three mixtures of eight experts, on eight simulated ranks of one
    node. A step of Adam has 16 samples of 32 tokens, in micro-batches of two if there are stages.

    `states`, `activations` and both `in all`: the memory of the fullest rank, in kB. `MB`: the data that all ranks send
    in the step.
    """
    for name, (tensor, stages, context, experts) in FIVE.items():
        replicas = 8 // (tensor * stages * context)
        done = run(
            **EIGHT, tensor=tensor, stages=stages, context_ranks=context, expert_ranks=experts,
            batch=16 // replicas, chunks=8 // replicas if stages > 1 else 1,
        )  # fmt: skip
        held = done.peaks()
        yield {
            "split": name,
            "states": KB * float(held[:, STATES].sum(axis=1).max()),
            "activations": KB * float(held[:, HELD.index("activations")].max()),
            "in all": KB * float(held.sum(axis=1).max()),
            "MB": MB * float(done.trace.traffic().sum()),
            "ms": MS * done.summary["seconds"],
        }


CLUSTER = {
    "algorithm": "three_d", "workload": "text", "context": 32, "width": 64, "heads": 8, "depth": 8, "update": "adam",
    "learning_rate": 0.01, "device": "2e11:1e15:0", "latency": 2e-6, "bandwidth": 1e9, "per_node": 4, "nics": 1,
    "steps": 1, "evaluations": 1, "workers": 16,
}  # fmt: skip
SAMPLES = 64
SHAPES = [(16 // (t * s), t, s) for t in (1, 2, 4, 8) for s in (1, 2, 4, 8) if t * s <= 16]


def cut_step(run, data: int, tensor: int, stages: int):
    """Return the Run of one step of sixteen ranks with this layout. If there is more than one stage, a micro-batch has
    two samples.
    """
    batch = SAMPLES // data
    return run(**CLUSTER, tensor=tensor, stages=stages, batch=batch, chunks=batch // 2 if stages > 1 else 1)


@figure(
    "Which layout of sixteen ranks is fastest in a full simulation?",
    source="Narayanan et al., SC 2021, section 5.4",
    claims={
        "if eight ranks of two nodes share matrices, a step takes more than three times as long as with four of one": (
            lambda rows: (
                ratio(rows, "ms", stages=1, tensor=(8, 4)) > 3 and ratio(rows, "ms", stages=2, tensor=(8, 4)) > 3
            )
        ),
        "each layout with at most four ranks per matrix takes less time than any with eight": lambda rows: (
            max(row["ms"] for row in rows if row["tensor"] <= 4) < min(column(rows, "ms", tensor=8))
        ),
        "the fastest layout has four stages in each node, and replicas of them in the other nodes": lambda rows: (
            [min(rows, key=lambda row: row["ms"])[name] for name in ("tensor", "stages", "replicas")] == [1, 4, 4]
        ),
        "plain replicas take less than an eighth longer than the fastest layout": lambda rows: (
            ratio(rows, "ms", tensor=1, stages=(1, 4)) < 9 / 8
        ),
    },
    look=Look("stages", ("ms",), "tensor", log="xy", title="milliseconds of a step"),
)
def layouts_of_sixteen(run):
    """A transformer of eight blocks on four simulated nodes of four ranks each. A step has 64 samples of 32 tokens;
    links have 8 GB/s within a node, and one link of 1 GB/s leads out of it.

    `tensor` ranks share every matrix, and `stages` follow one another; the rest of the sixteen are replicas. `MB`: the
    data that crosses from node to node.
    """
    nodes = np.arange(16) // 4
    for data, tensor, stages in SHAPES:
        done = cut_step(run, data, tensor, stages)
        yield {
            "tensor": tensor,
            "stages": stages,
            "replicas": data,
            "ms": MS * done.summary["seconds"],
            "MB": MB * float(done.trace.traffic()[nodes[:, None] != nodes].sum()),
        }


GIGABYTES = 40, 80, 160, 320


@figure(
    "How deep should a pipeline be?",
    source="the formulas of `lockstep plan`; Narayanan et al., SC 2021, section 3",
    claims={
        "with 80 GB the best layout has eight stages, and with 160 and 320 GB two": lambda rows: (
            [best_depth(rows, memory) for memory in (80, 160, 320)] == [8, 2, 2]
        ),
        "with 40 GB no layout with two stages fits": lambda rows: 2 not in column(rows, "stages", memory=40),
        "from 80 GB on, doing without a pipeline costs less than a tenth of the speed, at 320 GB under a thirtieth": (
            lambda rows: (
                min(without_pipeline(rows, memory) for memory in (80, 160, 320)) > 0.9
                and without_pipeline(rows, 320) > 29 / 30
            )
        ),
        "sixteen stages are always slower than eight": lambda rows: all(
            ratio(rows, "tokens/s", memory=memory, stages=(16, 8)) < 0.97 for memory in GIGABYTES
        ),
    },
    look=Look("stages", ("tokens/s",), "memory", log="x", title="tokens per second on each GPU"),
)
def how_deep(run):
    """The fastest layouts of Llama 3 70B with each number of stages, on 64 H100s with more or less memory (`memory`, in
    GB). A step has 512 sequences of 8,192 tokens, and one stage means no pipeline.
    """
    for memory in GIGABYTES:
        gpu = replace(LARGE.gpu, memory=memory * 1.0625e9)  # an H100 of 80 GB lets programs use 85e9 bytes
        found = search(replace(LARGE, gpu=gpu), GPUS)
        found = found.take(found.shares <= TIGHT)
        stages = found.setup.layout.pipeline
        for count in (1, 2, 4, 8, 16):
            if (stages == count).any():
                yield {"memory": memory, "stages": count, "tokens/s": float(found.rates[stages == count][0])}


def best_depth(rows, memory):
    """Return the number of stages of the fastest layout with this much memory."""
    return max((row for row in rows if row["memory"] == memory), key=lambda row: row["tokens/s"])["stages"]


def without_pipeline(rows, memory):
    """Return the speed of the best layout without a pipeline, relative to the best layout of all."""
    return value(rows, "tokens/s", memory=memory, stages=1) / max(column(rows, "tokens/s", memory=memory))


MACHINES = 64, 128, 256, 512, 1024  # GPUs


@figure(
    "Which are faster: pipeline stages, or replicas that shard everything?",
    source="the formulas of `lockstep plan`",
    claims={
        "as fitted, stages are over a tenth faster than shards on up to 256 GPUs, and over a third on 1,024": (
            lambda rows: (
                all(speed_ratio(rows, n, "as fitted") > 1.1 for n in MACHINES[:3])
                and speed_ratio(rows, 1024, "as fitted") > 4 / 3
            )
        ),
        "if all gathers hide, shards are faster than stages on 64 GPUs, and at most a tenth slower on any number": (
            lambda rows: (
                speed_ratio(rows, 64, "all hidden") < 0.95
                and all(speed_ratio(rows, n, "all hidden") < 1.1 for n in MACHINES)
            )
        ),
        "hiding all gathers makes shards over an eighth faster, and stages less than a tenth faster": lambda rows: all(
            ratio(rows, "tokens/s", GPUs=n, split="shards", gathers=("all hidden", "as fitted")) > 9 / 8
            and ratio(rows, "tokens/s", GPUs=n, split="stages", gathers=("all hidden", "as fitted")) < 1.1
            for n in MACHINES
        ),
    },
    look=Look("GPUs", ("tokens/s",), "split+gathers", log="x", title="tokens per second on each GPU"),
)  # fmt: skip
def shards_or_stages(run):
    """Llama 3 70B on H100s, always with 512 sequences of 8,192 tokens in a step. Each row is the fastest layout of its
    kind that fits in memory; matrices and sequences may be split as well.

    Computation and data-parallel messages overlap. As fitted: two fifths of the shorter of the two hide behind the
    longer. All hidden: the shorter takes no time.
    """
    for gpus in MACHINES:
        found = search(LARGE, gpus)
        found = found.take(found.shares <= TIGHT)
        at = found.setup.layout
        for gathers, constants in {"as fitted": FITTED, "all hidden": FITTED._replace(hidden=1.0)}.items():
            rates = throughput(found.setup, step_time(found.setup, constants))
            for split, some in {"stages": at.pipeline > 1, "shards": at.shard == FULL}.items():
                yield {"GPUs": gpus, "split": split, "gathers": gathers, "tokens/s": float(rates[some].max())}


def speed_ratio(rows, gpus, gathers):
    """Return the speed of the best layout with stages, relative to the best layout with full shards."""
    return ratio(rows, "tokens/s", GPUs=gpus, gathers=gathers, split=("stages", "shards"))


FILLED = {"under 60": (0.0, 0.6), "60 to 85": (0.6, 0.85), "85 to 93": (0.85, 0.93), "over 93": (0.93, 2.0)}


@figure(
    "Where is the cost model wrong?",
    source="llm-foundry's benchmarks; Narayanan et al., SC 2021; Korthikanti et al., MLSys 2023; Llama 3; NeMo 24.12",
    claims={
        "half of the runs are predicted within 5 %, however full the memory": lambda rows: (
            max(column(rows, "half within")) < 5
        ),
        "of the runs that fill more than 93 % of memory, nine of ten are predicted within 25 %, but not within 15 %": (
            lambda rows: (
                15 < value(rows, "nine of ten within", filled="over 93") < 25
            )
        ),
        "of the runs that fill less of their memory, nine of ten are predicted within 10 %": lambda rows: all(
            row["nine of ten within"] < 10 for row in rows if row["filled"] != "over 93"
        ),
        "over a fifth of the fullest runs, and under a tenth of the others, are predicted over a tenth too fast": (
            lambda rows: (
                value(rows, "too fast", filled="over 93") > 20
                and max(row["too fast"] for row in rows if row["filled"] != "over 93") < 10
            )
        ),
    },
    look=Look(
        "filled", ("half within", "nine of ten within"), kind="bar", title="error of the predicted tokens per second, %"
    ),
)  # fmt: skip
def published_runs(run):
    """144 published runs, grouped by the percentage of a GPU's memory that they fill according to the planner. `too
    fast`: the percentage of runs whose predicted speed is over a tenth above the measured one. The constants were
    fitted to these runs.
    """
    rows = published.table()
    shares, predicted = published.memory_shares(rows), published.predict(rows)
    for name, (least, most) in FILLED.items():
        some = (shares > least) & (shares <= most)
        found = published.errors(rows.take(some), predicted[some])
        yield {
            "filled": name,
            "runs": found.rows,
            "half within": 100 * found.median,
            "nine of ten within": 100 * found.ninth,
            "too fast": 100 * float((predicted[some] / rows.rates[some] > 1.1).mean()),
        }


@figure(
    "Does the cost model predict better than a guess?",
    source="the sources of the same runs",
    claims={
        "the error that nine of ten runs stay within is under half as large by formulas as by the most similar run": (
            lambda rows: (
                ratio(rows, "nine of ten within", by=("formulas, fitted to other models", "the most similar run")) < 0.5
            )
        ),
        "the most similar run is a better guess than one utilisation for all runs on the same kind of GPU": (
            lambda rows: (
                ratio(rows, "nine of ten within", by=("the most similar run", "one utilisation for each GPU")) < 0.9
            )
        ),
    },
    look=Look(
        "by", ("half within", "nine of ten within"), kind="bar", title="error of the predicted tokens per second, %"
    ),
)
def against_guesses(run):
    """Three predictions for the same 144 published runs, each made from what is known of the other models: by formulas
    whose constants were fitted to them, from the utilisation of the most similar run, or from the median of all runs on
    the same GPU.
    """
    rows = published.table()
    half, ninth = (float(UNSEEN[name].removesuffix(" %")) for name in ("median error", "nine of ten within"))
    yield {"by": "formulas, fitted to other models", "half within": half, "nine of ten within": ninth}
    for name, guess in {
        "the most similar run": published.nearest, "one utilisation for each GPU": published.constant
    }.items():  # fmt: skip
        found = published.errors(rows, published.leave_out(rows, rows.models, guess))
        yield {"by": name, "half within": 100 * found.median, "nine of ten within": 100 * found.ninth}


DRAWS = 40
TAKEN = {"the first": 0, "the tenth": 9, "the hundredth": 99, "the five hundredth": 499}


def draw_constants(dice: np.random.Generator) -> Constants:
    """Return random constants, each drawn independently around the fitted one with the standard error of its fit."""
    some = np.array(FITTED) + np.array(STANDARD_ERRORS) * dice.standard_normal(len(FITTED))
    return Constants(*np.clip(some, LOWEST, HIGHEST))


@figure(
    "What if the constants of the cost model are a little wrong?",
    source="a calculation of ours",
    claims={
        "the first layout of the list is on average less than 1 % slower than the best one": lambda rows: (
            value(rows, "behind", layout="the first") < 1
        ),
        "the tenth layout is on average less than 3 % slower than the best one": (
            lambda rows: value(rows, "behind", layout="the tenth") < 3
        ),
        "the five hundredth layout is on average over a fifth slower than the best one": lambda rows: (
            value(rows, "behind", layout="the five hundredth") > 20
        ),
        "the standard deviation of the first layout's time is over twice its lag behind the best layout": lambda rows: (
            value(rows, "moves", layout="the first") > 2 * value(rows, "behind", layout="the first")
        ),
    },
    look=Look("layout", ("behind", "moves"), kind="bar", title="% of a step's time"),
)
def other_constants(run):
    """The planner's ranking of layouts for Llama 3 70B on 64 H100s, judged with other constants.

    The planner lists the layouts that fit, the fastest first. Then 40 sets of constants are drawn, each constant around
    its fitted value, with the standard error of the fit. `behind`: how much longer a layout takes than the best one for
    the drawn constants, on average. `moves`: the standard deviation of its time.
    """
    found = search(LARGE, GPUS)
    found = found.take(found.shares <= TIGHT)
    dice = np.random.default_rng(run.seed)
    times = np.array([step_time(found.setup, draw_constants(dice)).seconds for _ in range(DRAWS)])  # (draws, layouts)
    behind = times / times.min(axis=1, keepdims=True) - 1
    for name, place in TAKEN.items():
        moves = times[:, place].std() / times[:, place].mean()
        yield {"layout": name, "behind": 100 * float(behind[:, place].mean()), "moves": 100 * float(moves)}


FLOPS, RESTART = 1e9, 20.0
BETWEEN = {"every 50 s": 50.0, "every 500 s": 500.0}  # from failure to failure, on average
INTERVALS = {"every 50 s": (4, 10, 25, 60), "every 500 s": (10, 32, 100)}
FAILURES = {"every 50 s": 1000, "every 500 s": 300}  # if nothing were lost


def failing_job(run, seconds: int, between: float, work: float, seed: int) -> float:
    """Simulate a job on two ranks that fail now and then, and return how long it takes, in s. It has `seconds` s of
    work.

    Every `work` seconds rank 1 sends its state to rank 0, which takes a second. When one fails, both restart from what
    was saved last, after RESTART seconds. They draw the same failures.
    """

    def worker(comm, task, s):
        clock, shard = comm.event_log.clock, np.zeros(250_000, np.float32)  # 1 MB

        def spend(time):
            with comm.event_log.doing(COMPUTE, "work"):
                METER.get().charge("matmul", FLOPS * time, 0)

        dice = np.random.default_rng(seed)
        failure, saved = clock() + dice.exponential(between), 0.0
        while saved < seconds:
            part = min(work, seconds - saved)
            spend(min(part, failure - clock()))
            if clock() < failure:
                if comm.rank:
                    comm.send(shard, 0)
                else:
                    comm.recv(1)
                comm.barrier()
            if clock() < failure:
                saved += part
            else:
                spend(RESTART)
                failure = clock() + dice.exponential(between)
        return task.start()

    done = run(
        worker_override=worker, algorithm="sync_sgd", workload="quadratic", dimension=1, points=32, batch=1, steps=1,
        evaluations=1, learning_rate=0.1, workers=2, device=f"{FLOPS:g}:1e15:0", latency=1e-6, bandwidth=1e6,
    )  # fmt: skip
    return done.summary["seconds"]


@figure(
    "How often should a run save its state?",
    source="Young, CACM 1974; Daly, FGCS 2006",
    claims={
        "if failures are rarer than checkpoints, the closed form is accurate to within two percentage points": (
            lambda rows: all(
                abs(row["lost"] - row["closed form"]) < 2 for row in rows if row["interval"] < BETWEEN[row["failures"]]
            )
        ),
        "Young's interval loses at most a percentage point more than the best interval tried": lambda rows: all(
            value(rows, "lost", failures=name, interval=young)
            < min(row["lost"] for row in rows if row["failures"] == name) + 1
            for name, young in (("every 50 s", 10), ("every 500 s", 32))
        ),
        "with a failure every 50 seconds, over 38 % of the time is lost at any interval": lambda rows: (
            min(column(rows, "lost", failures="every 50 s")) > 38
        ),
    },
    look=Look("interval", ("lost",), "failures", theory=("closed form",), log="x", title="time that is lost, %"),
)
def when_to_save(run):
    """Time lost by two simulated ranks that save checkpoints and fail.

    To save, one rank sends what it holds to the other, which takes a second. On average they fail every 50 or every 500
    seconds. A restart takes 20 seconds. `interval`: seconds of work between two checkpoints; Young's are 10 and 32.
    `lost`: the share of time that is not spent on work that counts, over hundreds of failures.
    """
    for number, (name, between) in enumerate(BETWEEN.items()):
        job = round(FAILURES[name] * between)
        for work in INTERVALS[name]:
            seconds = failing_job(run, job, between, work, 10 * run.seed + number)
            yield {
                "failures": name,
                "interval": work,
                "lost": 100 * (1 - job / seconds),
                "closed form": 100 * float(lost_share(work, 1.0, between, RESTART)),
            }


STOPS, DAYS, TRAINED_ON = 419, 54, 16_384  # Llama 3, section 3.3.4: unexpected interruptions, days, GPUs
ALIVE = DAYS * 86400 / STOPS * TRAINED_ON  # s from one failure of a GPU to the next
HOUR = 3600.0
SAVING = {"every hour, 60 s": 60.0, "Young's, 60 s": 60.0, "Young's, 10 s": 10.0}


@figure(
    "What do failures cost on many GPUs?",
    source="Grattafiori et al., 2024, section 3.3.4 (how often); Young, CACM 1974",
    claims={
        "with sixteen times the GPUs, Young's interval is a quarter as long": lambda rows: (
            abs(ratio(rows, "minutes", saved="Young's, 60 s", GPUs=(16_384, 1024)) - 1 / 4) < 1e-6
        ),
        "on 16,384 GPUs checkpoints every hour lose over 18 % of the time, and at Young's interval less than 13 %": (
            lambda rows: (
                value(rows, "lost", saved="every hour, 60 s", GPUs=16_384) > 18
                and value(rows, "lost", saved="Young's, 60 s", GPUs=16_384) < 13
            )
        ),
        "on 16,384 GPUs checkpoints that take ten seconds lose less than a tenth of the time": lambda rows: (
            value(rows, "lost", saved="Young's, 10 s", GPUs=16_384) < 10
        ),
        "on 1,024 GPUs even hourly checkpoints lose less than a twentieth of the time": lambda rows: (
            value(rows, "lost", saved="every hour, 60 s", GPUs=1024) < 5
        ),
    },
    look=Look("GPUs", ("lost",), "saved", log="x", title="time that is lost, %"),
)
def more_gpus(run):
    """Time lost to failures and checkpoints, by the closed form, if GPUs fail as often as in Llama 3's training: 419
    times in 54 days on 16,384 GPUs. We assume that a checkpoint takes 60 or 10 seconds, and a restart five minutes.
    `minutes` is the work between two checkpoints.
    """
    for gpus in (1024, 4096, 16_384, 65_536):
        between = ALIVE / gpus
        for saved, seconds in SAVING.items():
            work = HOUR if saved.startswith("every") else young_interval(seconds, between)
            lost = float(lost_share(work, seconds, between, 300.0))
            yield {"GPUs": gpus, "saved": saved, "minutes": work / 60, "lost": 100 * lost}

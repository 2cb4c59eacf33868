"""What every algorithm of the catalogue promises, held against each of them.

Each name is tried with its defaults and with the settings below, which change what it does most. Whatever an
algorithm promises beyond this is in the file of its own name.
"""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import algorithms
from algorithms.algorithm import Algorithm, Knobs, Shape
from cluster.comm import RankLost
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from tests.tiers import slow_except
from tests.training import AttentiveChain, ExpertChain, GridChain, ScalarChain, WideChain, train
from workloads import quadratic
from workloads.recorder import Diverged

NAMES = algorithms.names()
VARIANTS = [(name, {}) for name in NAMES] + [
    ("nesterov", {"form": "sutskever"}),
    ("rmsprop", {"learning_rate": 0.01, "eps_inside": True}),
    ("polyak", {"average": "exponential", "weight": 0.05, "decay": 0.1, "after": 5}),
    ("accumulation", {"accumulate": 3, "update": "momentum", "learning_rate": 0.05}),
    ("large_batch", {"warm_up": "constant", "warm_up_epochs": 1, "milestones": "", "base_batch": 8}),
    ("lamb", {"rule": "lars", "adapt": "matrices", "warm_up": "none", "base_batch": 8, "learning_rate": 0.05}),
    ("one_bit_adam", {"freeze_step": 3}),
    ("demo", {"fraction": 0.5, "segment": 3, "decay": 0.5}),
    ("muon", {"all_matrices": True, "scale": "jordan", "momentum": 0.5}),
    ("robust", {"aggregate": "trimmed", "momentum": 0.5}),
    ("robust", {"aggregate": "geometric", "liars": 1, "lie": "little", "strength": 1.0}),
    ("rmsprop_warmup", {"slow_start": 9, "period": 0, "centre": 1, "learning_rate": 0.1}),
    ("batch_growth", {"schedule": "larger_rate", "factor": 2, "milestones": "1,2,3", "largest": 3}),
    ("batch_growth", {"schedule": "decay", "factor": 2, "milestones": "1"}),
    ("backup", {"backups": 0, "update": "momentum", "learning_rate": 0.02}),
    ("backup", {"backups": 2}),
    ("overlap", {"bucket_bytes": 0, "update": "adam", "learning_rate": 0.02}),
    ("overlap", {"bucket_bytes": 16, "update": "momentum", "learning_rate": 0.02}),
    ("priority", {"order": "fifo", "slice": 1, "update": "nesterov", "learning_rate": 0.02}),
    ("delayed", {"delay": 0, "update": "adam", "learning_rate": 0.02}),
    ("delayed", {"delay": 3, "layerwise": False, "learning_rate": 0.05}),
    ("acco", {"update": "adam", "learning_rate": 0.02}),
    ("zero1", {"update": "nesterov", "learning_rate": 0.05}),
    ("zero2", {"update": "momentum", "learning_rate": 0.05}),
    ("zero3", {"update": "nesterov", "learning_rate": 0.05}),
    ("hsdp", {"update": "momentum", "learning_rate": 0.02, "prefetch": 2, "secondary": True}),
    ("model_averaging", {"period": 3, "update": "momentum", "state": "reset", "learning_rate": 0.02}),
    ("model_averaging", {"period": 4, "update": "adam", "state": "average", "learning_rate": 0.05}),
    ("bmuf", {"block_momentum": 0.3, "update": "adam", "state": "average", "learning_rate": 0.02}),
    ("bmuf", {"form": "nesterov_code", "block_momentum": 0.3}),
    ("local_sgd", {"switch": 1.5, "update": "nesterov", "learning_rate": 0.02}),
    ("easgd", {"synchronous": True}),
    ("easgd", {"synchronous": True, "momentum": 0.5, "learning_rate": 0.05}),
    ("easgd", {"period": 1, "pull": 0.1}),
    ("easgd", {"momentum": 0.9, "learning_rate": 0.02}),
    ("slowmo", {"period": 20, "update": "momentum", "state": "average", "learning_rate": 0.02}),
    ("diloco", {"update": "nesterov", "period": 5, "outer_momentum": 0.6, "learning_rate": 0.01}),
    (
        "streaming_diloco",
        {"period": 6, "fragments": 3, "pattern": "consecutive", "overlap": 0, "own_share": 0, "outer_momentum": 0.5},
    ),
    ("streaming_diloco", {"update": "momentum", "overlap": 5, "own_share": 0.8, "learning_rate": 0.02}),
    ("sparta", {"fraction": 0.4, "choose": "parts", "update": "momentum", "learning_rate": 0.02}),
    ("scaffold", {"kind": "average", "period": 3}),
    ("scaffold", {"kind": "prox", "prox": 0.5, "outer_rate": 0.8}),
    ("async_diloco", {"update": "sgd", "period": 5, "dynamic": True, "weigh": True, "learning_rate": 0.1}),
    (
        "async_diloco",
        {"update": "momentum", "buffer": 2, "early_share": 0.5, "quorum": 2, "outer_rate": 0.3, "learning_rate": 0.01},
    ),
    (
        "decoupled_diloco",
        {"period": 6, "fragments": 3, "quorum": 2, "overlap": 0, "grace": 0, "own_share": 0, "outer_momentum": 0.5},
    ),
    (
        "decoupled_diloco",
        {"update": "momentum", "overlap": 3, "grace": 2, "own_share": 0.8, "weigh": False, "learning_rate": 0.05},
    ),
    ("downpour", {"update": "sgd", "learning_rate": 0.05, "shards": 2, "n_push": 2, "n_fetch": 3}),
    ("downpour", {"overlap": True, "shards": 3, "warm": 3}),
    ("asgd", {"update": "momentum", "momentum": 0.3, "learning_rate": 0.05}),
    ("softsync", {"splits": 3, "modulate": False}),
    ("ssp", {"cache": True, "bound": 2}),
    ("dc_asgd", {"form": "constant", "compensation": 0.04, "shared": True}),
    ("implicit_momentum", {"momentum": 0.0}),
    ("project_adam", {"finish": 0.7, "factors": False}),
    ("parzen", {"period": 1, "scaled": False}),
    ("hogwild", {"atomic": True, "back_off": 0.9}),
    ("hogbatch", {"per_write": 3, "atomic": True}),
    ("async_svrg", {"reading": "consistent", "average": True}),
    ("async_svrg", {"reading": "inconsistent", "passes": 1}),
    ("dpsgd", {"mix": "after", "topology": "complete"}),
    ("gradient_tracking", {"mix": "before", "topology": "star", "learning_rate": 0.05}),
    ("choco", {"fraction": 0.5, "topology": "complete"}),
    ("choco", {"fraction": 1, "consensus": 0.7}),
    ("gossipgrad", {"mode": "gradient", "rotate": False}),
    ("noloco", {"update": "momentum", "period": 3, "outer_momentum": 0.3, "learning_rate": 0.02}),
    ("sandblaster", {"shards": 2, "every": 2, "memory": 0}),
    ("nearest_neighbour", {"update": "sgd", "synchronous": True, "restart": "mean", "period": 5}),
    ("nearest_neighbour", {"weights": "lazy", "restart": "none", "learning_rate": 0.1}),
    ("adpsgd", {"topology": "star"}),
    ("distbelief", {"assignment": "shuffled", "update": "adam", "learning_rate": 0.02}),
    ("hybrid", {"layout": "data", "update": "momentum", "learning_rate": 0.02}),
    ("hybrid", {"layout": "model"}),
    ("three_d", {"tensor": 1, "update": "momentum", "learning_rate": 0.02}),
    ("three_d", {"stages": 1, "chunks": 2}),
    ("five_d", {"tensor": 2, "stages": 1, "expert_ranks": 2, "update": "momentum", "learning_rate": 0.02}),
    ("five_d", {"context_ranks": 1, "expert_ranks": 2}),
    ("layer_wise", {"update": "nesterov", "learning_rate": 0.02}),
    ("tensor", {"sequence": True, "update": "momentum", "learning_rate": 0.02}),
    ("context", {"exchange": "gather", "update": "momentum", "learning_rate": 0.02}),
    ("context", {"exchange": "ulysses", "positions": "consecutive"}),
    ("expert", {"update": "momentum", "learning_rate": 0.02}),
    ("gpipe", {"chunks": 2, "recompute": "early"}),
    ("pipedream", {"weights": "vertical", "momentum": 0.5, "learning_rate": 0.01}),
    ("pipedream", {"weights": "none"}),
    ("pipedream", {"cuts": "1,5,2"}),
    ("pipedream_2bw", {"chunks": 2, "momentum": 0.5, "learning_rate": 0.05}),
    ("chen", {"momentum": 0.3, "learning_rate": 0.05}),
    ("dapple", {"policy": "PB", "recompute": "late", "update": "momentum", "learning_rate": 0.02}),
    ("interleaved", {"pieces": 1, "update": "adam", "learning_rate": 0.02}),
    ("chimera", {"pipes": 2}),
    ("chimera", {"doubling": True, "recompute": "late"}),
    ("chimera", {"chunks": 2, "update": "nesterov", "learning_rate": 0.02}),
    ("pipemare", {"warm_up": 1.5, "rescale": 5, "correct": False, "learning_rate": 0.02}),
    ("spectrain", {"form": "own", "fading": True, "learning_rate": 0.01}),
    ("xpipe", {"update": "momentum", "chunks": 2, "learning_rate": 0.01}),
    ("zb_h1", {"chunks": 4, "update": "momentum", "learning_rate": 0.02}),
    ("zb_h2", {"max_norm": 0.05, "update": "adam", "learning_rate": 0.02}),
    ("zb_h2", {"max_norm": 0.05, "validation": "before"}),
    ("zb_auto", {"limit": 1, "time_w": 0.5, "time_link": 0.1, "update": "momentum", "learning_rate": 0.02}),
    ("ddg", {"weights": "none", "update": "momentum", "momentum": 0.5, "learning_rate": 0.05, "barrier": False}),
    ("features_replay", {"update": "nesterov", "momentum": 0.5, "learning_rate": 0.02, "barrier": False}),
    ("features_replay", {"first_rate": 2.0, "learning_rate": 0.05}),
    ("dni", {"labels": False, "late": 3, "guess_layers": 0}),
    ("dni", {"mix": 0.5, "update": "momentum", "momentum": 0.5, "learning_rate": 0.05}),
    ("greedy", {"phase": 7, "head_layers": 2, "ahead": 1}),
    ("greedy", {"update": "momentum", "momentum": 0.5, "learning_rate": 0.05, "ahead": 5}),
    ("feedback_alignment", {"direct": False, "update": "momentum", "momentum": 0.5, "learning_rate": 0.05}),
]
BATCH = 4
DEEP = 8  # layers to cut, and samples to cut in micro-batches, for pipelines
IDEAL = {"network": NETWORKS["ideal"]}
RAGGED = {"network": NETWORKS["1GbE"], "faults": Faults(slow={0: 1.3, 2: 2.2}, jitter=JITTERS["cloud"])}


def spelled(variant):
    name, settings = variant
    return "-".join([name, *(f"{key}={value}" for key, value in settings.items())])


every_algorithm = pytest.mark.parametrize("name", NAMES)
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=spelled)


def quick_where(is_quick, variants=VARIANTS):
    """Parametrise by variants, of which those are slow for which `is_quick` does not hold."""
    slow = pytest.mark.slow
    cases = [pytest.param(one, id=spelled(one), marks=[] if is_quick(one) else [slow]) for one in variants]
    return pytest.mark.parametrize("variant", cases)


def has_defaults(variant):
    return not variant[1]


def toy(name):
    """A product of numbers, of which each is a layer: a scalar, or a matrix where ranks share a layer."""
    if name == "five_d":
        return GridChain
    if "experts" in algorithms.find(name).model_defaults:
        return ExpertChain
    if "workload" in algorithms.find(name).defaults:
        return AttentiveChain  # ranks share sequences
    return WideChain if algorithms.family(name) == "model_parallel" else ScalarChain


def chain(name, dtype=np.float64):
    return chain_of(toy(name), layers_of(name), dtype)


def chain_of(kind, layers, dtype=np.float64):
    """A model that can be cut and whose data can be dealt out: samples differ."""
    return kind(w=np.linspace(0.7, 1.0, layers), x=np.linspace(0.6, 1.2, 48), dtype=dtype)


def course(variant, workload=None, workers=None, **options):
    name, settings = variant
    options = {"batch": batch_of(name), "steps": steps_of(variant)} | options
    workload = workload or chain(name)
    return train(name, workload, workers or workers_of(name), settings, **options)


@cache
def on_ideal(name, *settings):
    """The course of this variant on a network that costs nothing; several tests look at one run."""
    return course((name, dict(settings)), **IDEAL)


@cache
def on_ragged(name, *settings):
    """The course of this variant on a slow network with stragglers; several tests look at one run."""
    return course((name, dict(settings)), **RAGGED)


def is_pipeline(name):
    """Whether its ranks take every sample together, stage by stage or in each layer."""
    return algorithms.find(name).shares_samples


def workers_of(name):
    return algorithms.find(name).example_workers


def batch_of(name):
    return DEEP if is_pipeline(name) else BATCH


def layers_of(name):
    """An odd number, which cannot be dealt out evenly, unless stages or pairs of layers are cut."""
    if not is_pipeline(name):
        return 5
    return DEEP if toy(name) is ScalarChain else 4


def steps_of(variant):
    """A prime number, which no period divides, and more than a period."""
    return 13 if getattr(settings_of(variant), "period", 1) < 13 else 23


def settings_of(variant):
    name, settings = variant
    return algorithms.find(name).Settings(**settings)


def deterministic(variant):
    """Whether timing decides nothing."""
    return algorithms.find(variant[0]).is_deterministic(settings_of(variant))


def shape_of(name, workload, workers, s, steps):
    """What the number of elements sent depends on."""
    boundaries = workload.boundaries(algorithms.find(name).stages(workers, s)) if is_pipeline(name) else ()
    per_epoch = workload.samples // (batch_of(name) * workers)
    return Shape(workload.parameters, workers, steps, batch_of(name), boundaries, per_epoch)


def communicates(variant):
    """Whether its workers send each other, or to servers, anything before the end."""
    name, s = variant[0], settings_of(variant)
    workload = chain(name)
    sent = [
        algorithms.find(name).elements_sent(shape_of(name, workload, workers_of(name), s, steps), s)
        for steps in (1, 1000)
    ]
    return None in sent or sent[0] < sent[1]


def refusal(variant, workers, workload):
    """One sentence why it cannot run like this, or None."""
    name = variant[0]
    try:
        algorithms.find(name).check(workers, batch_of(name), workload, settings_of(variant))
    except ValueError as error:
        return str(error)
    return None


# it learns


@pytest.mark.slow
@every_variant
def test_it_finds_the_optimum_of_a_problem_without_noise(variant):
    name, settings = variant
    variant = name, {"learning_rate": algorithms.find(name).stable_rate} | settings
    if is_pipeline(name) or toy(name) is ExpertChain:  # a bowl has no layers: learn a product of four numbers instead
        workload = toy(name)(w=(0.5, 0.6, 0.7, 1.2, *np.ones(layers_of(name) - 4)), x=np.ones(48))
    else:
        workload = quadratic.build(quadratic.Settings(condition=4.0), np.float64)
    started = workload.evaluate(workload.start(0)).loss
    many = (
        "chunks" in algorithms.find(name).Settings.model_fields or toy(name) is not ScalarChain
    )  # passes or messages in a step
    steps = 150 if many else 400
    budget = {"steps": steps, "target_loss": 1e-5 * started}  # most are there long before
    reached = workload.evaluate(course(variant, workload, budget=budget).shipped).loss
    assert reached < 1e-4 * started


@quick_where(has_defaults)
def test_one_worker_trains_too_or_is_refused_with_a_reason(variant):
    workload = toy(variant[0])(w=(0.5, 0.6, 0.7, 1.2), x=np.ones(12))
    if "cuts" in variant[1]:
        variant = variant[0], variant[1] | {"cuts": ""}
    if reason := refusal(variant, 1, workload):
        assert re.search("(1|one) (worker|rank)", reason)
        return
    start, shipped = workload.start(0), course(variant, workload, 1, steps=80 if variant[1] else 20).shipped
    assert workload.evaluate(shipped).loss < 0.93 * workload.evaluate(start).loss


# it repeats; the models of a deterministic one do so on two networks below, its losses and times until a rank is lost


COMMUNICATING = [variant for variant in VARIANTS if deterministic(variant) and communicates(variant)]
LOSABLE = [one for one in COMMUNICATING if not algorithms.find(one[0]).survives_loss]


@quick_where(lambda variant: not deterministic(variant) or (has_defaults(variant) and variant not in LOSABLE))
def test_it_repeats_bit_for_bit_with_everything_that_was_written_down(variant):
    def record(run):
        outcome = run.outcome
        rows = [(j.spans, j.messages, j.losses, j.applied) for j in outcome.event_logs]
        reports = [[(*row[:4], row[4].tobytes()) for row in j.reports] for j in outcome.event_logs]
        return [w.tobytes() for w in outcome.results], rows, reports

    name, settings = variant
    assert record(course(variant, **RAGGED)) == record(on_ragged(name, *settings.items()))


# it becomes what it says in limit cases


def claims():
    return [(name, claim) for name in NAMES for claim in algorithms.find(name).equivalences]


@cache
def ends(name, settings, kind, layers, workers, batch, steps):
    """The models of a run on a chain of this kind; many claims lead to the same few runs."""
    return course((name, dict(settings)), chain_of(kind, layers), workers, batch=batch, steps=steps).models


@pytest.mark.parametrize(("name", "claim"), claims(), ids=[f"{name}: {one.claim}" for name, one in claims()])
def test_it_becomes_what_it_says(name, claim):
    mine = name, {"learning_rate": 0.1} | claim.settings
    other = claim.to, {"learning_rate": 0.1} | claim.to_settings
    steps = max(steps_of(mine), steps_of(other))
    batch = claim.batch or 2 * batch_of(name)  # not that of the other tests, which a claim may happen to need
    workers = claim.to_workers or algorithms.find(claim.to).defaults.get("workers", claim.workers)
    reached = [
        ends(variant[0], tuple(sorted(variant[1].items())), toy(name), layers_of(name), ranks, samples, steps)
        for variant, ranks, samples in ((mine, claim.workers, batch), (other, workers, claim.to_batch * batch))
    ]
    count = max(map(len, reached))
    for w, reference in zip(*(models * (count // len(models)) for models in reached), strict=True):
        assert (
            np.array_equal(w, reference) if claim.exactness == "BIT" else np.allclose(w, reference, rtol=1e-12, atol=0)
        )
        assert not np.array_equal(w, chain(name).start(0))


# the network changes when, and, if it is asynchronous, what


@every_variant
def test_timing_is_arithmetic_only_where_it_is_asynchronous(variant):
    name, settings = variant
    ideal = on_ideal(name, *settings.items())
    ragged = on_ragged(name, *settings.items())
    pairs = list(zip(ideal.models, ragged.models, strict=True))
    if algorithms.find(name).deterministic == "but for rounding":
        assert all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in pairs)
    else:
        assert all(np.array_equal(a, b) for a, b in pairs) == deterministic(variant)
    assert ideal.outcome.trace().seconds() < ragged.outcome.trace().seconds()


# it costs what it declares


def expect_the_numbers_declared(run, variant, workload, workers):
    declare, s = algorithms.find(variant[0]).elements_sent, settings_of(variant)
    declared = declare(shape_of(variant[0], workload, workers, s, steps_of(variant)), s)
    moved = run.outcome.trace().traffic().sum() / workload.dtype.itemsize
    assert moved == declared or (declared is None and moved > 0)


@every_variant
def test_it_moves_the_numbers_it_declares(variant):
    name, settings = variant
    workload = chain(name)
    expect_the_numbers_declared(on_ideal(name, *settings.items()), variant, workload, workers_of(name))


OTHER_SIZES = [((name, {}), 4 if workers_of(name) == 2 else 2, np.float32) for name in NAMES]
MORE = [(variant, workers, np.float32) for variant in VARIANTS for workers in (1, 2, 4)]


@pytest.mark.parametrize(
    ("variant", "workers", "dtype"),
    slow_except(OTHER_SIZES, MORE),
    ids=lambda x: spelled(x) if isinstance(x, tuple) else getattr(x, "__name__", None),
)
def test_it_moves_the_numbers_it_declares_for_another_number_of_workers_and_in_single_precision(
    variant, workers, dtype
):
    workload = chain(variant[0], dtype)
    if reason := refusal(variant, workers, workload):
        pytest.skip(reason)
    expect_the_numbers_declared(course(variant, workload, workers), variant, workload, workers)


@quick_where(has_defaults)
def test_it_counts_the_staleness_of_its_updates_where_it_declares_so_and_nowhere_else(variant):
    name, settings = variant
    logs = on_ragged(name, *settings.items()).outcome.event_logs
    assert any(log.applied for log in logs) == algorithms.find(name).counts_staleness


# it ends well


# The task counts steps and epochs whatever an algorithm does between them: its defaults will do. When seconds are up or
# a target loss is reached, all loops of an algorithm must agree, at all settings.
BUDGETS = [((name, {}), limit) for name in NAMES for limit in ({"steps": 7}, {"epochs": 1.5})]
BUDGETS += [((name, {}), {"steps": 900, "seconds": 0.1}) for name in NAMES]
BUDGETS += [(variant, {"seconds": 0.1}) for variant in VARIANTS if variant[1]]
BUDGETS += [(variant, {"target_loss": 1e-3}) for variant in VARIANTS]


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "budget"), BUDGETS, ids=lambda x: spelled(x) if isinstance(x, tuple) else str(x))
def test_it_stops_with_every_kind_of_budget_on_ragged_speeds(variant, budget):
    name = variant[0]
    workers = workers_of(name)
    shards = algorithms.find(name).data_shards(workers, settings_of(variant))
    w = np.linspace(0.7, 1, layers_of(name))
    flops = 1e6 if is_pipeline(name) else 1e7  # each of many micro-batches costs as much as a mini-batch
    workload = toy(name)(w=w, x=np.ones(48), flops=flops)  # without noise: the loss can reach any target
    run = course(variant, workload, budget=budget, **RAGGED)  # a message left unread would fail here
    trained = [event_log.losses for event_log in run.outcome.event_logs if event_log.losses]
    if algorithms.find(name).drops_steps:
        trained = [losses for losses in trained if len(losses) == max(map(len, trained))]
    for losses in trained:
        steps, seconds = len(losses), losses[-1][2]
        assert [row[0] for row in losses] == list(range(steps))
        if budget.get("steps") == 7:
            assert steps == 7
        if "epochs" in budget:
            assert steps == round(1.5 * (48 // (batch_of(name) * shards)))
        if "seconds" in budget:
            assert budget["seconds"] / 2 < seconds < budget["seconds"] * 2
            assert steps >= max(3, 8 * min(1, algorithms.find(name).steps_to_learn / 200))
    if "target_loss" in budget:
        recent = min(np.mean([row[3] for row in losses[-20:]]) for losses in trained)
        assert recent <= 1e-3
        assert all(20 <= len(losses) < 5000 for losses in trained)


# An algorithm has one such loop, whatever its settings, unless they decide whether it is deterministic.
@quick_where(
    lambda variant: has_defaults(variant) or not deterministic((variant[0], {})),
    [v for v in COMMUNICATING if not is_pipeline(v[0])],
)
def test_workers_that_meet_in_every_step_stop_at_the_same_step_though_they_see_other_losses(variant):
    thirds = np.linspace(0.6, 1.2, 48).reshape(
        workers_of(variant[0]), -1, BATCH
    )  # each worker sees samples of its own kind
    workload = toy(variant[0])(w=(0.7, 0.8, 0.9, 1.0), x=thirds.swapaxes(0, 1).ravel())
    run = course(variant, workload, budget={"target_loss": 0.01}, **RAGGED)
    trained = [event_log.losses for event_log in run.outcome.event_logs if event_log.losses]
    steps = {len(losses) for losses in trained}
    last = [losses[-1][3] for losses in trained]
    assert len(steps) == 1 and 20 <= steps.pop() < 500
    assert max(last) > 2 * min(last)


@quick_where(has_defaults, [v for v in VARIANTS if algorithms.find(v[0]).diverging_rate])
def test_a_diverging_rate_ends_as_diverged_with_everything_recorded(variant):
    name, settings = variant
    diverging = (name, settings | {"learning_rate": algorithms.find(name).diverging_rate})
    deep = chain_of(toy(name), 9 if toy(name) is ScalarChain else 10, np.float32)  # dense layers go in pairs
    run = course(diverging, deep, steps=400, fails=True)
    cause = run.outcome.error
    while cause is not None and not isinstance(cause, Diverged):
        cause = cause.__cause__
    assert cause is not None and cause.step >= 0
    losses = [row for event_log in run.outcome.event_logs for row in event_log.losses]
    assert len(losses) > 1 and len(run.outcome.trace().spans["start"]) > 1
    assert not np.isfinite([row[3] for row in losses]).all()


@pytest.mark.parametrize("first", [True, False], ids=["first rank", "last rank"])
@quick_where(has_defaults, LOSABLE)
def test_a_lost_rank_that_ends_a_run_is_named_with_its_step_and_nothing_recorded_is_lost(variant, first):
    name, settings = variant
    whole = on_ideal(name, *settings.items())
    at = 0.4 * max(event_log.losses[-1][2] for event_log in whole.outcome.event_logs if event_log.losses)
    rank = 0 if first else len(whole.outcome.event_logs) - 1
    run = course(variant, fails=True, faults=Faults(crash={rank: at}), **IDEAL)
    error = run.outcome.error
    assert isinstance(error, RankLost) and error.rank == rank
    assert f"rank {rank} was lost at {at:.4g} s (step {error.step}); " in str(error) and 0 < error.step < 20
    for kept, full in zip(run.outcome.event_logs, whole.outcome.event_logs, strict=True):
        until = [row for row in full.losses if row[2] <= at]
        assert kept.losses[: len(until)] == until
        assert len(kept.reports) >= sum(row[1] <= at for row in full.reports)
        assert len(kept.spans) > 1 and kept.spans[0] == full.spans[0]
    assert run.outcome.event_logs[rank].spans[-1][4] == "lost"


# it is declared


def test_a_misspelt_fact_is_a_type_error():
    one = algorithms.find("sgd")
    with pytest.raises(TypeError, match="restartible"):
        Algorithm(one.worker, one.Settings, restartible=None)


# it is written to be read


@every_algorithm
def test_its_text_says_idea_price_staleness_and_source(name):
    idea = algorithms.idea(algorithms.module(name))
    assert idea.endswith((".", ":")) or idea.count(" ") > 5
    assert len(idea) <= 120
    words = re.findall(r"^(Price|Source):|(Staleness)[:,]", algorithms.module(name).__doc__, re.MULTILINE)
    assert {first or second for first, second in words} == {"Price", "Staleness", "Source"}
    assert re.search(r"<-|\(b\+1\) =", algorithms.module(name).__doc__), "the formula"


@every_algorithm
def test_its_settings_explain_themselves(name):
    assert issubclass(algorithms.find(name).Settings, Knobs)
    for knob, field in algorithms.find(name).Settings.model_fields.items():
        assert field.description and len(field.description) < 100, knob
        assert not field.is_required(), knob


@pytest.mark.parametrize("path", sorted(Path(algorithms.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_no_loop_throws_its_values_away(path):
    loops = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.For)]
    assert not [node.lineno for node in loops if all(isinstance(line, ast.Pass) for line in node.body)]


def code_lines(path):
    """Lines of a file that are code: neither blank, nor comment, nor docstring."""
    tree = ast.parse(path.read_text())
    strings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(path.read_text().splitlines(), 1)
    return [text for n, text in lines if n not in strings and text.strip() and not text.strip().startswith("#")]


def test_a_module_is_short():
    sizes = {path: len(code_lines(path)) for path in Path(algorithms.__file__).parent.glob("*/*.py")}
    assert {path.name: size for path, size in sizes.items() if size > 150} == {}
    assert np.median([len(code_lines(Path(algorithms.module(name).__file__))) for name in NAMES]) <= 80

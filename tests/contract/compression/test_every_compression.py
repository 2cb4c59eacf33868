"""What every compression promises, held against each of them.

Each codec is tried with its defaults and with the settings below. Whatever one promises beyond this, and the golden
numbers of its paper, are in the file of its own name.
"""

import numpy as np
import pytest

import algorithms
import algorithms.compression as compressions
from algorithms.codec import Compression, by_setting
from algorithms.compression import COMPRESSIONS, attach, find, module
from algorithms.parts.error_feedback import ErrorFeedback
from algorithms.synchronous import sync_sgd
from cluster import simulated
from cluster.comm import nbytes
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from experiments.execution.run import run
from experiments.runs.difference import difference
from experiments.specification.experiment import Experiment
from knobs import Knobs
from tests.training import insist
from tracing import HELD
from workloads.budget import Budget
from workloads.recorder import Diverged
from workloads.task import Task
from workloads.workload import Evaluation, Workload

VARIANTS = [(name, {}) for name in COMPRESSIONS] + [
    ("one_bit", {"error_feedback": False}),
    ("sign", {"beta": 0.0}),
    ("sign", {"error_feedback": True}),
    ("terngrad", {"clip": 0}),
    ("qsgd", {"levels": 16, "bucket": 100, "norm": "2"}),
    ("power_sgd", {"directions": 1, "warm_start": False}),
    ("top_k", {"density": 1.0}),
    ("ef21", {"density": 0.2}),
    ("random_k", {"error_feedback": False, "density": 0.2}),
    ("dgc", {"clipping": 0.5, "density_steps": 1, "nesterov_correction": True}),
]
DIGITS = {"random_k": {"density": 0.05}, "sign": {"learning_rate": 0.002}}
"""Settings with which 200 steps read digits, where the defaults are too slow or too fast."""

NO_CONTRACTION = {"qsgd", "terngrad", "sign"}
"""Codes that are noisier than what they say, since they are right in the mean; and signs, which have no size."""

MATRIX, BIASES = (30, 33), 10
D = 30 * 33 + BIASES
LAYOUT = ((slice(0, 990), MATRIX), (slice(990, D), (BIASES,)))


def spelled(variant):
    name, settings = variant
    return "-".join([name, *(f"{key}={value}" for key, value in settings.items())])


every_codec = pytest.mark.parametrize("name", COMPRESSIONS)
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=spelled)
KEEPING = [name for name in COMPRESSIONS if "error_feedback" in find(name).Settings.model_fields]
with_feedback = pytest.mark.parametrize("name", KEEPING)


class Alone:
    """A communicator of one rank."""

    rank, size = 0, 1

    def all_gather(self, x):
        return [x]

    def all_reduce(self, x, op="sum", **_):
        return x


def exchange(name, layout=LAYOUT, **settings):
    declared = find(name)
    s = declared.Settings(**settings)
    return ErrorFeedback(declared.Codec(s, layout, 0, 1, 0), declared.error_feedback(s), declared.combine)


def sent(one, g):
    """What all ranks together, which is this one, are told."""
    told = g.copy()
    one.mean(Alone(), told)
    return told


def gradients(rank, steps, dtype=np.float32):
    draw = np.random.default_rng([5, rank])
    scale = draw.lognormal(0, 1, D)
    return [(draw.standard_normal(D) * scale).astype(dtype) for _ in range(steps)]


# it is declared


@every_codec
def test_a_codec_has_the_methods_that_its_compression_declares(name):
    declared = find(name)
    methods = {"mean" if declared.combine == "codec" else "add"} | (
        {"encode", "decode"} if declared.pushable else set()
    )
    assert methods == {"encode", "decode", "add", "mean"} & vars(declared.Codec).keys()
    assert declared.error_feedback is not by_setting or "error_feedback" in declared.Settings.model_fields


def test_a_misspelt_fact_is_a_type_error():
    one = find("top_k")
    with pytest.raises(TypeError, match="pushible"):
        Compression(one.Codec, one.Settings, pushible=False)


# one rank


@every_variant
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_arrives_has_the_shape_and_type_of_what_was_sent_and_is_finite(variant, dtype):
    name, settings = variant
    for n in (1, 2, 7, D):
        for v in (np.zeros(n, dtype), np.full(n, -0.25, dtype), np.arange(n, dtype=dtype), np.full(n, 1e-30, dtype)):
            one = exchange(name, LAYOUT if n == D else ((slice(0, n), (n,)),), **settings)
            for _ in range(3):
                told = sent(one, v)
                assert told.shape == v.shape and told.dtype == v.dtype
                assert np.isfinite(told).all()


@every_codec
def test_a_message_leaves_the_gradient_as_it_is(name):
    one = exchange(name)
    (g,) = gradients(0, 1)
    before = g.copy()
    if find(name).pushable:
        one.codec.encode(g)
    assert np.array_equal(g, before)


@with_feedback
def test_what_was_sent_and_what_is_kept_are_all_gradients_together(name):
    one = exchange(name, error_feedback=True)
    given = gradients(0, 40, np.float64)
    told = [sent(one, g) for g in given]
    size = np.abs(given).sum(0).max()
    np.testing.assert_allclose(sum(told) + one.error, sum(given), rtol=0, atol=1e-12 * size)
    assert np.abs(one.error).max() > 0


@with_feedback
def test_without_feedback_nothing_is_kept(name):
    one = exchange(name, error_feedback=False)
    sent(one, gradients(0, 1)[0])
    assert one.error is None


@pytest.mark.parametrize("name", [name for name in KEEPING if name not in NO_CONTRACTION])
def test_what_is_kept_is_less_than_what_there_was(name):
    one = exchange(name, error_feedback=True)
    (v,) = gradients(0, 1, np.float64)
    sent(one, v)
    assert np.square(one.error).sum() < np.square(v).sum()


# several ranks


def stream(variants, steps, comm):
    """The means of `steps` gradients by each variant, one after the other, as this rank has them."""
    means = []
    for name, settings in variants:
        compressed = attach(comm, find(name), find(name).Settings(**settings), LAYOUT, 3)
        for g in gradients(comm.rank, steps):
            means.append(compressed.all_reduce(g, op="mean"))
    return np.array(means)


def streamed(variant, steps=4):
    return lambda comm: stream([variant], steps, comm)


def results(program, ranks, cluster=simulated, **where):
    outcome = cluster.run(program, ranks, **where)
    insist(outcome)
    return outcome.results, outcome.trace()


@every_variant
def test_all_ranks_have_the_same_bits_and_have_them_again(variant):
    first, trace = results(streamed(variant), 3)
    again, trace_again = results(streamed(variant), 3)
    assert all(np.array_equal(first[0], other) for other in (*first, *again))
    assert all(np.array_equal(trace.messages[name], trace_again.messages[name]) for name in trace.messages)


@pytest.mark.parametrize("name", ["top_k", "random_k", "threshold"])  # those with owners keep more: test_owners.py
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_all_are_told_and_what_each_keeps_are_all_means_together(name, ranks):
    def program(comm):
        one = exchange(name)
        told = [g.copy() for g in gradients(comm.rank, 20, np.float64)]
        for g in told:
            one.mean(comm, g)
        return sum(told), one.error

    told, kept = zip(*results(program, ranks)[0], strict=True)
    given = sum(sum(gradients(rank, 20, np.float64)) for rank in range(ranks)) / ranks
    np.testing.assert_allclose(told[0] + sum(kept) / ranks, given, rtol=0, atol=1e-11 * np.abs(given).max())


@pytest.mark.parametrize(
    "variant",
    [("top_k", {"density": 1.0}), ("ef21", {"density": 1.0}), ("dgc", {"density": 1.0, "momentum_correction": 0})],
)
def test_with_everything_sent_it_is_the_mean(variant):
    (told, *_), _ = results(streamed(variant), 3)
    means = np.mean([gradients(rank, 4) for rank in range(3)], axis=0)
    np.testing.assert_allclose(told, means, rtol=0, atol=1e-5)


@every_variant
def test_the_network_changes_when_but_not_what(variant):
    ragged = {"network": NETWORKS["1GbE"], "faults": Faults(slow={0: 2.2}, jitter=JITTERS["cloud"])}
    (near, *_), _ = results(streamed(variant), 3, network=NETWORKS["ideal"])
    (far, *_), _ = results(streamed(variant), 3, **ragged)
    assert np.array_equal(near, far)


GATHERED = [(name, settings) for name, settings in VARIANTS if find(name).combine == "all-gather"]


@pytest.mark.parametrize("variant", GATHERED, ids=spelled)  # of the others the files of their names tell
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_bytes_on_the_wire_are_those_of_the_messages(variant, ranks):
    name, settings = variant
    sizes = []

    def program(comm):
        compressed = attach(comm, find(name), find(name).Settings(**settings), LAYOUT, 3)
        encode = compressed._feedback.encode
        compressed._feedback.encode = lambda g: (message := encode(g), sizes.append(nbytes(message)))[0]
        for g in gradients(comm.rank, 5):
            compressed.all_reduce(g, op="mean")

    _, trace = results(program, ranks)
    assert trace.traffic().sum() == (ranks - 1) * sum(sizes)
    assert len(sizes) == 5 * ranks


@every_variant
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_no_number_is_seen_by_everybody(variant, bad):
    name, settings = variant

    def program(comm):
        compressed = attach(comm, find(name), find(name).Settings(**settings), LAYOUT, 3)
        seen = []
        for step, g in enumerate(gradients(comm.rank, 2)):
            if comm.rank == 1 and step >= 1:
                g[:] = bad  # as it is when a model has diverged
            with np.errstate(all="ignore"):
                seen.append(np.isfinite(compressed.all_reduce(g, op="mean")).all())
        return seen

    for seen in results(program, 3)[0]:
        assert seen[0] and not seen[1]


class Poisoned(Workload):
    """A bowl whose sample 7, which is rank 1's, has a finite loss and a gradient that is none."""

    name, shuffle = "poisoned", False
    samples, parameters, tensors, dtype = 12, D, LAYOUT, np.dtype("float32")

    def start(self, seed):
        return np.ones(D, np.float32)

    def batch(self, indices):
        return (indices,)

    def gradient(self, w, batch):
        return float(w @ w) / 2, np.full_like(w, np.nan) if batch[0][0] == 7 else w.copy()

    def evaluate(self, w):
        return Evaluation(float(w @ w) / 2, np.nan)


@every_variant
def test_one_workers_nan_ends_the_run_of_all_as_diverged(variant):
    name, settings = variant

    def program(comm):
        task = Task(Poisoned(), comm, budget=Budget(steps=9), batch=1, data_shard=comm.rank, data_shards=2)
        compressed = attach(comm, find(name), find(name).Settings(**settings), LAYOUT, 0)
        with np.errstate(all="ignore"):
            return sync_sgd.worker(compressed, task, sync_sgd.Settings(learning_rate=0.01))

    outcome = simulated.run(program, 2)
    assert isinstance(outcome.error.__cause__, Diverged)
    assert 2 <= outcome.error.__cause__.step <= 8


def test_sums_and_short_vectors_go_as_they_are():
    def program(comm):
        compressed = attach(comm, find("top_k"), find("top_k").Settings(), LAYOUT, 0)
        whole, short = np.arange(D, dtype=np.float32), np.ones(3, np.float32)
        return compressed.all_reduce(whole), compressed.all_reduce(short, op="mean"), compressed.rank

    for rank, (whole, short, number) in enumerate(results(program, 2)[0]):
        assert np.array_equal(whole, 2 * np.arange(D)) and np.array_equal(short, np.ones(3)) and number == rank


# whole runs


def experiment(variant, **values):
    name, settings = variant
    return Experiment.of({"compression": name, **settings, **values})


@pytest.mark.slow
@every_codec
def test_it_learns_to_read_digits(name):
    done = run(experiment((name, DIGITS.get(name, {})), evaluations=2))
    assert done.status == "finished" and not done.notes
    assert done.summary["accuracy"] > 0.9


@every_variant
def test_one_worker_trains_too_and_sends_nothing(variant):
    done = run(experiment(variant, workload="quadratic", workers=1, steps=60, learning_rate=0.01))
    assert done.summary["held_out_loss"] < done.evaluations["loss"][0]
    assert done.summary["bytes"] == 0


@every_codec
def test_a_run_repeats_bit_for_bit(name):
    one = experiment((name, {}), workload="spirals", workers=3, steps=12)
    assert difference(run(one), run(one)) == ""


@every_codec
def test_workers_stop_at_the_same_step_when_time_is_up(name):
    done = run(experiment((name, {}), workers=3, seconds=0.004, network="1GbE", jitter="cloud", evaluations=1))
    assert done.status == "finished" and not any("never read" in note for note in done.notes)
    steps = [done.losses["step"][done.losses["rank"] == rank].max() for rank in range(3)]
    assert len(set(steps)) == 1


def able():
    return [name for name in algorithms.names() if algorithms.find(name).compresses]


@pytest.mark.parametrize("algorithm", able())
def test_a_method_that_says_so_moves_fewer_bytes(algorithm):
    plain, coded = (
        run(Experiment.of({"algorithm": algorithm, "compression": name, "steps": 6, "evaluations": 1}))
        for name in ("none", "top_k")
    )
    share = 0.6 if algorithms.find(algorithm).compresses == "push" else 0.5  # a server's answers go as they are
    assert coded.status == "finished" and coded.summary["bytes"] < share * plain.summary["bytes"]


VECTORS = {"bf16": 0, "int8": 1.25, "one_bit": 1.25, "sign": 1, "terngrad": 0, "qsgd": 0, "power_sgd": 1.01, "top_k": 1,
           "ef21": 2, "random_k": 1, "threshold": 2, "dgc": 2}  # fmt: skip
"""What a rank of four keeps, as a multiple of the gradient: errors, an owner's share of them, averages, Q, words."""


@every_codec
def test_what_it_keeps_from_step_to_step_is_in_the_ranks_memory(name):
    done = run(experiment((name, {}), workers=4, steps=3, evaluations=1))
    kept = done.peak_memory()[:, HELD.index("buffers")].max() / done.parameters.nbytes
    assert kept == pytest.approx(VECTORS[name], abs=0.02)


# it is written to be read


@every_codec
def test_its_text_says_idea_price_staleness_and_source(name):
    text = module(name)
    idea = algorithms.idea(text)
    assert len(idea) <= 120 and idea.endswith(".")
    assert all(word in text.__doc__ for word in ("<-", "Price:", "Staleness:", "Source:"))


@every_codec
def test_its_settings_explain_themselves_and_clash_with_nobodys(name):
    mine = find(name).Settings
    assert issubclass(mine, Knobs)
    taken = {*Experiment.model_fields}
    taken |= {field for method in able() for field in algorithms.find(method).Settings.model_fields}
    assert not taken & mine.model_fields.keys()
    for field in mine.model_fields.values():
        assert field.description and len(field.description) < 100
        assert not field.is_required()


def test_an_unknown_compression_is_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"'topk'.* top_k"):
        compressions.find("topk")


@pytest.mark.parametrize("density", [0, -0.1, 1.01, float("nan")])
@pytest.mark.parametrize("name", [n for n in COMPRESSIONS if "density" in find(n).Settings.model_fields])
def test_a_density_that_is_no_share_is_refused(name, density):
    with pytest.raises(ValueError, match=r"density .*above 0 to 1"):
        Experiment.of({"compression": name, "density": density})


@pytest.mark.parametrize(
    ("name", "setting", "given", "allowed"),
    [
        ("qsgd", "levels", 0, "1 to 127"),
        ("qsgd", "levels", 128, "1 to 127"),
        ("qsgd", "bucket", 0, "1 to 100000000"),
        ("qsgd", "norm", "3", "2 or max"),
        ("terngrad", "clip", -1, "0 to 1000"),
        ("sign", "beta", 1, "0 to below 1"),
        ("power_sgd", "directions", 0, "1 to 1000"),
        ("power_sgd", "least_compression", 0.5, "1 to 1e+06"),
        ("int8", "block", 0, "1 to 1000000"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_in_one_sentence(name, setting, given, allowed):
    with pytest.raises(ValueError) as refusal:
        Experiment.of({"compression": name, setting: given})
    assert f"{name}: {setting} is '{given}'; it must be {allowed} (default" in str(refusal.value)


def test_a_method_that_averages_no_gradients_cannot_be_compressed():
    with pytest.raises(ValueError, match=r"easgd .*none, or sync_sgd"):
        Experiment.of({"algorithm": "easgd", "compression": "top_k"})

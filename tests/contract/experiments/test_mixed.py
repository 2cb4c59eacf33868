"""Runs in mixed precision: equalities that stay, steps that are skipped, memory, time, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import algorithms
import kernels
from experiments.execution import mixed
from experiments.execution.run import check, run, workload_of
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.tiers import slow_except
from tracing import HELD
from workloads import loss_scale
from workloads.loss_scale import LossScale
from workloads.mixed_precision import FORMATS

NAMES = [name for name in algorithms.names() if algorithms.family(name) != "model_parallel" or name == "layer_wise"]
SKIPPING = [name for name in algorithms.names() if algorithms.find(name).skips_overflow]
QUICK = ("sgd", "sync_sgd", "zero3", "hsdp", "local_sgd", "asgd", "gpipe", "zb_h1", "pipedream", "project_adam", "dni")


def experiment(**values) -> Experiment:
    return Experiment.of({"algorithm": "sync_sgd", "steps": 6, "evaluations": 1, **values})


def ran(status: str = "finished", **values):
    done = run(experiment(**values))
    assert done.status == status, done.error
    return done


def measured(done, quantity: str) -> np.ndarray:
    """(ranks, steps) values of a measure."""
    rows = done.measures["quantity"] == done.quantities.index(quantity)
    ranks = done.measures["rank"][rows]
    return np.array([done.measures["value"][rows][ranks == rank] for rank in np.unique(ranks)])


def peaks(done) -> dict[str, int]:
    """The largest number of bytes of each kind of memory on rank 0."""
    mine = done.memory["rank"] == 0
    kinds, nbytes = done.memory["kind"][mine], done.memory["bytes"][mine]
    return {HELD[kind]: int(nbytes[kinds == kind].max()) for kind in np.unique(kinds)}


@pytest.fixture
def high_scale(monkeypatch):
    """A dynamic scale that begins so high that the first steps overflow."""
    monkeypatch.setattr(loss_scale, "FIRST", 2.0**24)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_one_worker_of_synchronous_sgd_is_sgd_in_the_same_precision(precision):
    same = {"precision": precision, "workers": 1, "learning_rate": 0.1}
    one, alone = ran(**same), ran(algorithm="sgd", **same)
    assert one.parameters.dtype == np.float32
    assert one.parameters.tobytes() == alone.parameters.tobytes()
    exact = ran(**{**same, "precision": "float32"})
    assert one.parameters.tobytes() != exact.parameters.tobytes()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_pipeline_of_one_micro_batch_and_sharded_layers_are_sgd_in_the_same_precision(precision):
    scale = {"loss_scale": 1024} if precision == "fp16" else {}
    deep = {"model": "residual", "depth": 4, "width": 16, "activation": "tanh", "learning_rate": 0.1, **scale}
    deep |= {"precision": precision, "update": "sgd"}
    sgd = ran(algorithm="sync_sgd", workers=1, **deep).parameters
    assert ran(algorithm="gpipe", workers=3, chunks=1, **deep).parameters.tobytes() == sgd.tobytes()
    synchronous, zero3 = (ran(algorithm=name, workers=2, **deep).parameters for name in ("sync_sgd", "zero3"))
    assert synchronous.tobytes() == zero3.tobytes()


def test_ranks_skip_the_same_steps_and_stay_equal_when_any_of_them_overflows(high_scale):
    finite: dict[tuple[int, int], bool] = {}
    ends = {}

    def watched(comm, task, s):
        gradient = task.gradient

        def seen(w, batch=None):
            loss, g = gradient(w, batch)
            finite[task.event_log.step, comm.rank] = bool(np.isfinite(g).all())
            return loss, g

        task.gradient = seen
        ends[comm.rank] = algorithms.find("sync_sgd").worker(comm, task, s)
        return ends[comm.rank]

    e = experiment(precision="fp16", steps=40, scale_window=1, workers=3, batch=2)
    done = run(e, worker_override=watched)
    assert done.status == "finished"
    skipped, scale = measured(done, "skipped steps"), measured(done, "loss scale")
    assert (skipped == skipped[0]).all() and (scale == scale[0]).all()
    assert all(ends[rank].tobytes() == ends[0].tobytes() for rank in range(3)) and np.isfinite(ends[0]).all()
    overflows = np.array([[finite[step, rank] for rank in range(3)] for step in range(40)])
    bad = ~overflows.all(1)
    assert 5 < bad.sum() < 35 and (np.diff(skipped[0], prepend=0) == bad).all()
    assert overflows[bad].any()  # in some of them, only some ranks had overflowed
    assert done.updates == 40 - bad.sum()
    assert (scale[0][1:] == np.where(bad, scale[0] / 2, scale[0] * 2)[:-1]).all()


@pytest.mark.parametrize("name", ["zero1", "zero2", "zero3", "hsdp"])
def test_ranks_that_each_see_a_part_of_the_gradient_skip_the_steps_that_synchronous_sgd_skips(name, high_scale):
    values = {"precision": "fp16", "steps": 20, "scale_window": 1, "workers": 3, "batch": 2, "update": "sgd"}
    values |= {"learning_rate": 0.1, "hidden": "16"}
    sharded, whole = (ran(algorithm=one, **values) for one in (name, "sync_sgd"))
    skipped = measured(whole, "skipped steps")
    assert 5 < skipped[0, -1] < 15 and np.array_equal(measured(sharded, "skipped steps"), skipped)
    assert sharded.parameters.tobytes() == whole.parameters.tobytes() and sharded.updates == whole.updates


@pytest.mark.parametrize(
    ("name", "settings"), [("gpipe", {"chunks": 1}), ("interleaved", {"chunks": 1, "pieces": 2}), ("layer_wise", {})]
)
def test_stages_skip_a_step_together_although_the_gradient_overflows_on_some_of_them_only(name, settings, high_scale):
    values = {"precision": "fp16", "steps": 20, "scale_window": 1, "batch": 8, "learning_rate": 0.1, "update": "sgd"}
    values |= {"model": "residual", "depth": 4, "width": 16, "activation": "tanh"}
    stages, alone = (
        ran(algorithm=one, **values | own)
        for one, own in ((name, {"workers": 3} | settings), ("sync_sgd", {"workers": 1}))
    )
    skipped = measured(alone, "skipped steps")[0]
    assert 5 < skipped[-1] < 15 and all(np.array_equal(rank, skipped) for rank in measured(stages, "skipped steps"))
    assert stages.parameters.tobytes() == alone.parameters.tobytes() and stages.updates == alone.updates


@pytest.mark.parametrize("name", slow_except(("sgd", "adam", "overlap", "accumulation", "local_sgd"), SKIPPING))
def test_every_method_with_a_dynamic_scale_survives_overflows_and_skips_their_steps(name, high_scale):
    done = ran(algorithm=name, precision="fp16", steps=24, scale_window=4)
    skipped = measured(done, "skipped steps")[:, -1]
    assert (skipped > 1).all() and np.isfinite(done.parameters).all()


def test_without_the_skip_the_same_run_diverges(high_scale, monkeypatch):
    monkeypatch.setattr(LossScale, "is_dynamic", False, raising=False)
    monkeypatch.setattr(LossScale, "__init__", lambda self, *_: setattr(self, "value", loss_scale.FIRST))
    ran("diverged", algorithm="sync_sgd", precision="fp16", steps=24)


@pytest.mark.parametrize("name", slow_except(QUICK, NAMES))
def test_a_loss_scale_reaches_every_gradient_and_changes_none_if_16_bits_suffice(name, monkeypatch):
    parameters = {}
    for factor in (None, 1024.0):
        monkeypatch.setattr(mixed, "loss_scale", lambda e, factor=factor: factor and LossScale(factor))
        parameters[factor] = ran(algorithm=name, precision="bf16").parameters
    same = parameters[None].tobytes() == parameters[1024.0].tobytes()
    assert same == algorithms.find(name).scales_loss
    if same:
        monkeypatch.undo()
        ran("diverged", algorithm=name, precision="fp16", loss_scale=2**60, steps=12)


def test_memory_is_half_for_activations_and_has_a_16_bit_copy_of_the_weights():
    for name in ("sync_sgd", "overlap", "gpipe"):
        exact, short = (peaks(ran(algorithm=name, precision=p)) for p in ("float32", "bf16"))
        assert short["activations"] * 2 == exact["activations"]
        assert short["parameters"] * 2 == exact["parameters"] * 3
        assert short["gradients"] == exact["gradients"]


@pytest.mark.parametrize("name", ["zero3", "hsdp"])
def test_a_stored_shard_has_no_16_bit_copy_and_the_gathered_layer_has_one(name):
    values = {"algorithm": name, "workers": 2, "steps": 2} | ({"prefetch": 0} if name == "hsdp" else {})
    exact, short = (ran(precision=p, **values) for p in ("float32", "bf16"))
    copy = peaks(short)["parameters"] - peaks(exact)["parameters"]  # of the largest layer
    assert peaks(exact)["parameters"] - 2 * copy == pytest.approx(exact.parameters.nbytes / 2, rel=0.01)


def test_a_gpu_with_tensor_cores_computes_a_wide_model_faster_and_a_narrow_one_more_slowly():
    wide = {"hidden": "2048,2048", "batch": 256, "steps": 2, "workers": 1, "device": "H100", "network": "ideal"}
    exact, short = (ran(precision=p, **wide).trace.seconds() for p in ("float32", "bf16"))
    assert short < exact
    narrow = {**wide, "hidden": "16", "batch": 8}
    exact, short = (ran(precision=p, **narrow).trace.seconds() for p in ("float32", "bf16"))
    assert short > exact  # more kernels, each with its overhead


def test_messages_stay_float32():
    exact, short = (ran(precision=p).trace.traffic().sum() for p in ("float32", "bf16"))
    assert exact == short


def test_a_run_in_float32_asks_for_no_scale_and_measures_none():
    done = ran()
    assert done.quantities == () and mixed.loss_scale(done.experiment) is None
    assert mixed.loss_scale(experiment(precision="bf16")) is None


REFUSED = (
    ({"workload": "quadratic", "precision": "bf16"}, "quadratic cannot compute in bf16"),
    ({"algorithm": "hogwild", "workload": "sparse", "precision": "fp16", "loss_scale": 8}, "cannot compute in fp16"),
    ({"algorithm": "tensor", "precision": "bf16"}, "cannot be split by columns"),
    ({"algorithm": "distbelief", "precision": "bf16"}, "cannot be split unit by unit"),
    ({"algorithm": "context", "precision": "bf16"}, "within attention … use float32"),
    ({"algorithm": "expert", "precision": "bf16"}, "by experts … use float32"),
    ({"algorithm": "muon", "precision": "fp16"}, "muon cannot skip … fixed loss_scale … or one of sgd"),
    ({"algorithm": "pipedream", "precision": "fp16"}, "pipedream cannot skip … bf16"),
    ({"algorithm": "zb_h2", "precision": "fp16"}, "zb_h2 cannot skip … bf16"),
    ({"algorithm": "dni", "precision": "fp16"}, "dni cannot skip … use precision bf16"),
    ({"algorithm": "dni", "precision": "fp16", "loss_scale": 8}, "dni does not train by the gradient of one loss"),
    ({"precision": "fp16", "compression": "top_k"}, "compression: top_k would encode"),
)


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=[words[:30] for _, words in REFUSED])
def test_what_cannot_train_like_this_says_so_before_the_run(values, words):
    with pytest.raises(ValueError, match=quote(words)):
        check(experiment(**values))


def test_settings_of_loss_scaling_are_refused_where_they_have_no_effect():
    for given, words in (
        ({"precision": "bf16", "loss_scale": 8}, "loss_scale has no effect … with precision fp16"),
        ({"scale_window": 8}, "scale_window has no effect … with precision fp16 … loss_scale dynamic"),
        ({"precision": "fp16", "loss_scale": 8, "scale_window": 8}, "scale_window has no effect … loss_scale dynamic"),
    ):
        e = experiment(**given)
        with pytest.raises(ValueError, match=quote(words)):
            e.refuse_idle(given)
        query = "&".join(f"{name}={value}" for name, value in {"algorithm": "sgd", "workers": 1, **given}.items())
        with pytest.raises(ValueError, match=quote(words)):
            Experiment.from_query(query)
    e = experiment(precision="fp16", loss_scale=8)
    assert e.change(precision="bf16").loss_scale is None and e.loss_scale == 8
    assert "loss_scale" not in experiment().in_force() and "scale_window" not in e.in_force()


def test_a_fixed_scale_and_compression_go_together():
    check(experiment(precision="fp16", loss_scale=1024, compression="top_k"))


def test_fields_know_their_type_and_their_rounding():
    for precision, dtype, eps in (
        ("float32", np.float32, np.finfo(np.float32).eps),
        ("float64", np.float64, np.finfo(np.float64).eps),
        ("bf16", np.float32, 2.0**-7),
        ("fp16", np.float32, np.finfo(np.float16).eps),
    ):
        e = experiment(precision=precision)
        assert e.dtype == dtype and e.eps == eps and workload_of(e).dtype == dtype


@pytest.mark.parametrize("name", [name for name in algorithms.names() if algorithms.find(name).stores_weights])
@pytest.mark.parametrize("storage", ["nearest", "stochastic"])
def test_weights_in_16_bits_are_numbers_of_the_format_after_every_update_and_equal_on_all_ranks(name, storage):
    ends = {}

    def watched(comm, task, s):
        report = task.report

        def seen(w, *args):
            out = np.empty_like(w)
            kernels.round_to(out, w, *FORMATS["bf16"], -1)
            assert np.array_equal(out, w)
            report(w, *args)

        task.report = seen
        ends[comm.rank] = algorithms.find(name).worker(comm, task, s)
        return ends[comm.rank]

    done = run(experiment(algorithm=name, precision="bf16", weight_storage=storage), worker_override=watched)
    assert done.status == "finished", done.error
    assert all(w.tobytes() == ends[0].tobytes() for w in ends.values())
    master = ran(algorithm=name, precision="bf16").parameters
    assert 0 < np.abs(master - ends[0]).mean() < 0.002


def test_to_nearest_small_updates_are_lost_and_stochastic_rounding_keeps_them():
    for seed in range(3):
        fell = {}
        for storage in ("float32", "nearest", "stochastic"):
            losses = ran(
                algorithm="sgd", precision="bf16", weight_storage=storage, learning_rate=0.002, steps=300, seed=seed
            ).evaluations["loss"]
            fell[storage] = losses[0] - losses[-1]
        assert fell["nearest"] < 0.5 * fell["float32"]
        assert fell["stochastic"] == pytest.approx(fell["float32"], rel=0.1)


def test_weights_in_16_bits_take_a_third_of_the_memory_and_are_not_converted():
    kept, alone = (peaks(ran(precision="bf16", weight_storage=storage)) for storage in ("float32", "stochastic"))
    assert 3 * alone["parameters"] == kept["parameters"] and alone["activations"] == kept["activations"]
    kept, alone = (ran(precision="bf16", weight_storage=storage) for storage in ("float32", "stochastic"))
    d = len(kept.parameters)
    assert kept.flops[0] - alone.flops[0] == 6 * 5 * d  # a conversion in each of 6 steps


def test_a_method_that_does_not_say_when_an_update_ends_keeps_float32_weights():
    with pytest.raises(ValueError, match=quote("weight_storage: gpipe keeps … use one of sgd")):
        check(experiment(algorithm="gpipe", precision="bf16", weight_storage="stochastic"))
    with pytest.raises(ValueError, match=quote("weight_storage has no effect … bf16 or fp16")):
        Experiment.from_query("algorithm=sync_sgd&weight_storage=nearest")

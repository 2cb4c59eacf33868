"""Turn an Experiment into a Run.

A user's mistake is found before the first rank starts and raised as a ValueError. A failure after that ends the run,
and the Run holds everything recorded until then.
"""

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache, partial
from typing import Any

import numpy as np

import workloads
from algorithms import compression
from cluster.comm import Cancelled, RankLost, describe_loss
from cluster.event_log import EventLog, Outcome
from cluster.real import gpus, signals
from experiments.execution import admission, batch_norm, mixed, room
from experiments.execution.guess import guess
from experiments.execution.notes import notes_on
from experiments.runs import divergence, ending, evaluations
from experiments.runs.evaluations import Axes, Model
from experiments.runs.progress import Progress, ProgressObserver
from experiments.runs.record import Run
from experiments.runs.summary import environment, summarise
from experiments.specification.conditions import Conditions
from experiments.specification.experiment import Experiment, default_rate
from experiments.wording import units
from kernels import compiling, meter_kernels, to_device
from knobs import Refusal
from tracing import APPLIED, LOSSES, MEASURES, MEMORY, Trace, join_tables, number_words, sort_rows
from workloads.batches import Batches
from workloads.checkpoints import Checkpoint, Checkpoints
from workloads.mixed_precision import FORMATS
from workloads.recorder import Diverged, OutOfMemory
from workloads.task import Task

TIMEOUT = 60.0  # s
WARM_UP = 1.0  # s; if one gradient of every rank takes longer, no rank rehearses a step before the clock starts
FEW_STEPS = 10  # a run with fewer steps that learned nothing is advised to take more
BACKENDS = {"processes": "gloo", "gpus": "nccl"}


def run(
    experiment: Experiment,
    on_progress: Callable[[Progress], None] | None = None,
    stop: Any = None,
    worker_override: Callable[[Any, Any, Any], Any] | None = None,
    timeout: float = TIMEOUT,
) -> Run:
    """Run `experiment` and return its record.

    `on_progress(progress)` is called a few times a second; `stop`, an Event or a function, ends the run early with
    status "cancelled". On the simulated cluster `worker_override(comm, task, s)` trains in place of the algorithm's own
    worker. A rank of a real cluster gives up when it has waited `timeout` seconds for another. Raise ValueError if the
    experiment cannot run like this.
    """
    return run_with_models(experiment, on_progress, stop, worker_override, timeout)[0]


def run_with_models(
    experiment: Experiment,
    on_progress: Callable[[Progress], None] | None = None,
    stop: Any = None,
    worker_override: Callable[[Any, Any, Any], Any] | None = None,
    timeout: float = TIMEOUT,
) -> tuple[Run, list[Model]]:
    """Do what `run` does, and also return the evaluated models, one for each row of `Run.evaluations`."""
    began = _clock()
    asked = Conditions.of(experiment)
    observer = _observer(experiment, _admitted(experiment, asked), on_progress)
    return _gathered(experiment, _on_cluster(experiment, asked, observer, stop, worker_override, timeout), began)


def join(experiment: Experiment, timeout: float = TIMEOUT) -> Run | None:
    """Run `experiment` as one of the ranks of a launcher. Return the record on rank 0, and None on other ranks.

    A rank gives up when it has waited `timeout` seconds for another. Raise ClusterError on a rank that rank 0 cannot
    hear, and OSError if the ranks cannot connect.
    """
    from cluster.real import torchrun

    began = _clock()
    asked = Conditions.of(experiment)
    check(experiment, here=False, asked=asked)
    outcome = torchrun.run(
        partial(train, experiment),
        **vars(asked),
        backend=BACKENDS[experiment.cluster],
        collective=experiment.collective,
        timeout=timeout,
        warm_up=partial(warm_up, experiment),
    )
    return None if outcome is None else _gathered(experiment, outcome, began)[0]


def _clock() -> float:
    """Return the time on a clock that stops while kernels are compiled, in s."""
    return time.perf_counter() - compiling.seconds()


def _admitted(experiment: Experiment, asked: Conditions):
    """Return the experiment's workload, after checking that the experiment can run here. A request to stop while the
    workload is being built raises KeyboardInterrupt.
    """
    with signals.interrupt_at_once():
        workload = check(experiment, asked=asked)
    room.check(experiment, workload)
    return workload


def _observer(experiment: Experiment, workload, on_progress: Callable[[Progress], None] | None):
    """Return the callback to which the cluster reports progress, or None."""
    per_epoch = _batches(experiment, workload).per_epoch
    return ProgressObserver(experiment, workload, per_epoch, on_progress) if on_progress else None


def check(experiment: Experiment, here: bool = True, asked: Conditions | None = None):
    """Return the built workload. Raise ValueError if the experiment cannot run at all or, with `here`, on this machine.

    `asked` are its conditions, if the caller has already read them.
    """
    workload = workload_of(experiment)
    if here and experiment.cluster != "simulated":
        most = max(16, 8 * (os.cpu_count() or 1))
        if experiment.ranks > most:
            raise Refusal(
                f"{experiment.ranks} ranks are too many real processes for this machine; use at most {most}, "
                "or the simulated cluster.",
                [most - experiment.servers],
            )
    if here and experiment.cluster == "gpus" and not gpus.count():
        raise ValueError(
            "cluster: no CUDA GPU was found on this machine; use processes, which compute on its CPU, or simulate "
            "GPUs: the simulated cluster with device H100."
        )
    experiment.method.check(experiment.workers, experiment.batch, workload, experiment.knobs)
    admission.check(experiment, asked or Conditions.of(experiment), workload, here)
    batch_norm.check(experiment, workload)
    mixed.check(experiment)
    _batches(experiment, workload)
    return workload


def train(
    experiment: Experiment,
    comm,
    worker_override: Callable[[Any, Any, Any], Any] | None = None,
    checkpoints: Checkpoint | None = None,
) -> Any:
    """Run one rank's share of `experiment` and return its result; on every cluster, this is the program of
    every rank.
    """
    workload = workload_of(experiment)
    worker = comm.rank - experiment.servers  # below 0 on a server
    shards = _shards(experiment)
    task = Task(
        workload,
        comm,
        budget=experiment.budget,
        batch=_batch(experiment, workload),
        data_shard=worker * shards // experiment.workers if worker >= 0 else None,
        data_shards=shards,
        per_update=experiment.method.per_update(experiment.knobs),
        seed=experiment.seed,
        keep=experiment.evaluations,
        memory=experiment.rank_memory,
        checkpoints=checkpoints,
        sync_batch_norm=experiment.sync_batch_norm,
        loss_scale=mixed.loss_scale(experiment),
        short_weights=mixed.short_weights(experiment),
        cuda_graph=experiment.cuda_graph,
    )
    if experiment.compression != "none":
        declared = compression.find(experiment.compression)
        s = declared.Settings(**experiment.coding)
        servers = experiment.servers if experiment.method.compresses == "push" else 0
        place = workload.tensors, experiment.seed, servers, workload.dtype
        comm = compression.attach(comm, declared, s, *place)
    return (worker_override or experiment.method.worker)(comm, task, experiment.knobs)


def warm_up(experiment: Experiment, place: str = "cpu") -> None:
    """Load the algorithm, data and kernels for `place` on a real rank before its clock starts.

    To find out which kernels an algorithm calls, one step of the whole experiment runs on the simulated cluster, unless
    that would take too long.
    """
    from cluster import simulated

    workload, ranks = workload_of(experiment), experiment.ranks
    with meter_kernels(None), np.errstate(all="ignore"):
        w = to_device(workload.start(experiment.seed), place)
        batch = tuple(to_device(x, place) for x in admission.trial_batch(experiment, workload))
        workload.gradient(w, batch)  # which loads its kernels
        began = time.perf_counter()
        workload.gradient(w, batch)
        if ranks * (time.perf_counter() - began) < WARM_UP:
            once = experiment.model_copy(
                update={
                    "steps": 1,
                    "epochs": None,
                    "seconds": None,
                    "target_loss": None,
                    "evaluations": 1,
                    "cuda_graph": False,
                }
            )
            simulated.run(partial(train, once), ranks, place=place)


def _gathered(experiment: Experiment, outcome: Outcome, began: float) -> tuple[Run, list[Model]]:
    """Return (the Run that describes this outcome of `experiment`, the evaluated models in the order of the
    evaluations).

    `began` is the value of `_clock` at its start. Re-raise the ValueError of a rank that refused before any rank had
    trained, or that ran out of memory at any step, because the experiment cannot run with these settings.
    """
    mistake = getattr(outcome.error, "__cause__", None)
    trained = any(event_log.losses for event_log in outcome.event_logs)
    if isinstance(mistake, OutOfMemory) or (isinstance(mistake, ValueError) and not trained):
        raise ValueError(str(mistake)) from outcome.error
    workload = workload_of(experiment)
    event_logs, trace = outcome.event_logs, outcome.trace()
    losses = sort_rows(join_tables(event_logs, "losses", LOSSES, "i4 i4 i8 f8 f8"), "seconds", "rank")
    applied = sort_rows(join_tables(event_logs, "applied", APPLIED, "i4 f8 i4"), "seconds", "rank")

    measures = join_tables(event_logs, "measures", MEASURES, "i4 i4 f8 O f8")
    measures["quantity"], quantities = number_words(measures["quantity"])
    memory = join_tables(event_logs, "memory", MEMORY, "i4 i4 f8 i1 i8")
    end = max(trace.seconds(), losses["seconds"].max(initial=0.0))
    if not np.isfinite(end):
        raise ValueError("this run takes longer than a clock can count; use a faster network or device.")
    axes = Axes(losses, trace.messages)
    models = _models(experiment, workload, outcome, axes, end)
    tried = evaluations.table(models, partial(evaluations.evaluate, workload), axes)
    status, error, fatal_loss = _status(outcome, trace, experiment)
    run = Run(
        experiment=experiment,
        trace=trace,
        losses=losses,
        evaluations=tried,
        applied=applied,
        measures=sort_rows(measures, "seconds", "rank"),
        quantities=quantities,
        memory=sort_rows(memory, "seconds", "rank"),
        flops=tuple(event_log.flops for event_log in event_logs),
        updates=outcome.updates(),
        status=status,
        error=error,
        fatal_loss=fatal_loss,
        waits=getattr(outcome.error, "waits", ()),
        gpus=outcome.gpus,
        parameters=models[-1].w if len(models) > 1 else None,
        held_out_samples=workload.held_out_samples,
        target_variance=workload.target_variance,
        environment=environment(),
        guesses=guess(workload, sorted(models, key=lambda model: model.seconds)),
    )
    run.notes = (
        *(_untrained(models, status) or _unlearned(run, workload.guessing)),
        *experiment.notes,
        *workload.notes,
        *outcome.notes,
        *ending.trained_on(run),
        *notes_on(experiment, outcome.event_logs),
    )
    run.summary = summarise(run, _clock() - began, _batches(experiment, workload).per_epoch)
    return run, sorted(models, key=lambda model: model.seconds)


def _models(experiment: Experiment, workload, outcome: Outcome, axes: Axes, end: float) -> list[Model]:
    """Return the models to evaluate: the initial one, evenly spaced ones of those that were reported, and the final
    one.
    """
    event_logs, d = outcome.event_logs, workload.parameters
    chosen = evaluations.evenly(evaluations.complete(event_logs, over=True), experiment.evaluations)
    reported = [model for index in chosen if (model := evaluations.assemble(event_logs, index, d))]
    models = [Model(0, 0.0, workload.start(experiment.seed)), *reported]
    last = evaluations.final(event_logs, outcome.results, d)
    if last is None:
        return models
    if reported and axes.at(models[-1].seconds) == axes.at(end) and np.array_equal(models[-1].w, last, equal_nan=True):
        return models  # the last report was the end
    if len(reported) >= experiment.evaluations:
        models.pop()
    return [*models, Model(1 + models[-1].number, end, last)]


def _on_cluster(
    experiment: Experiment,
    asked: Conditions,
    observer: ProgressObserver | None,
    stop: Any,
    worker_override: Any,
    timeout: float,
) -> Outcome:
    program, warm = partial(train, experiment), partial(warm_up, experiment)
    if experiment.cluster == "simulated":
        from cluster import simulated

        back = asked.faults.back
        saved = Checkpoints(workload_of(experiment).start(experiment.seed), back.values()) if back else None
        return simulated.run(
            partial(program, worker_override=worker_override, checkpoints=saved),
            experiment.ranks,
            **vars(asked),
            collective=experiment.collective,
            on_progress=observer,
            stop=stop,
        )
    options = {"collective": experiment.collective, "on_progress": observer, "stop": stop, "warm_up": warm}
    options |= {"timeout": timeout, "on_phase": observer and observer.prepare, **vars(asked)}
    if experiment.cluster == "threads":
        from cluster.real import threads

        return threads.run(program, experiment.ranks, **options)
    from cluster.real import processes

    options["backend"] = BACKENDS[experiment.cluster]
    if not asked.faults.back:
        return processes.run(program, experiment.ranks, **options)
    from cluster.real.checkpoint import SharedCheckpoint

    with closing(SharedCheckpoint(workload_of(experiment).start(experiment.seed))) as newest:

        def restart(event_log: EventLog) -> Callable:
            return partial(program, checkpoints=newest.after(event_log.losses))

        return processes.run(partial(program, checkpoints=newest), experiment.ranks, **options, restart=restart)


def workload_of(experiment: Experiment):
    """Return the experiment's workload: built once per process, and shared by its ranks."""
    e = experiment
    copies, recompute = e.weight_storage == "float32", e.recompute_activations
    return _built(e.workload, json.dumps(e.data, sort_keys=True), e.precision, copies, recompute)


@lru_cache(maxsize=2)
def _built(name: str, settings: str, precision: str, copies: bool, recompute: str):
    module = workloads.find(name)
    is_mixed = precision in FORMATS
    workload = module.build(module.Settings(**json.loads(settings)), np.dtype("float32" if is_mixed else precision))
    if is_mixed:
        workload = workload.in_precision(precision, copies)
    return workload if recompute == "none" else workload.with_recomputation(recompute)


def _shards(experiment: Experiment) -> int:
    return experiment.method.data_shards(experiment.workers, experiment.knobs)


def _batches(experiment: Experiment, workload) -> Batches:
    per_update = experiment.method.per_update(experiment.knobs)
    return Batches(workload.samples, _batch(experiment, workload), 0, _shards(experiment), per_update=per_update)


def _batch(experiment: Experiment, workload) -> int:
    return workload.samples if experiment.method.whole_batch else experiment.batch


def _status(outcome: Outcome, trace: Trace, experiment: Experiment) -> tuple[str, str, tuple[int, float] | None]:
    """Return ("finished" | "diverged" | "failed" | "cancelled", the reason, (rank, seconds) of the lost rank that ended
    the run, or None).

    If a method needs every rank's part of the model, a run has failed even if a rank was lost only at the very end,
    when no other waited for it. It has also failed if no worker is left, even if servers ended normally.
    """
    error, method, lost = outcome.error, experiment.method, trace.lost_ranks()
    if error is None and ending.workers(experiment) <= lost.keys():
        last = max(lost, key=lambda rank: lost[rank])
        why = f"{describe_loss(last, lost[last], -1)}, and no worker is left"
        return "failed", why, (last, lost[last])
    if error is None and outcome.lost and method.is_deterministic(experiment.knobs) and not method.survives_loss:
        why = f"rank {outcome.lost[0]} was lost before it gave its result, which {experiment.algorithm} needs"
        return "failed", why, None
    if error is None:
        return "finished", "", None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Diverged):
            return "diverged", f"{cause}; {divergence.cause(experiment).sentence}.", None
        cause = cause.__cause__
    fatal = (error.rank, error.seconds) if isinstance(error, RankLost) and math.isfinite(error.seconds) else None
    return "cancelled" if isinstance(error, Cancelled) else "failed", str(error), fatal


def _untrained(models: list[Model], status: str) -> list[str]:
    """Return a note if the final model equals the initial one, so that nothing was learned."""
    if status != "finished" or not np.array_equal(models[0].w, models[-1].w):
        return []
    return [
        "the final model is the one training began with, because no gradient reached it; use more steps, or a shorter "
        "period."
    ]


def _unlearned(run: Run, guessing: float | None) -> list[str]:
    """Return a note if the final held-out loss of a run is no better than guessing.

    It is better if it is at least one percent below `guessing`, the loss of a guess. If `guessing` is None, it is
    compared with the run's first loss.
    """
    losses = run.evaluations["loss"]
    if run.status != "finished" or len(losses) < 2:
        return []
    bar, of = (losses[0], "that it started with") if guessing is None else (guessing, "of guessing")
    first, last = losses[0], losses[-1]
    if last < 0.99 * bar:
        return []
    grew, steps = last > 1.01 * max(bar, first), int(run.losses["step"].max(initial=-1)) + 1
    remedy = "try more steps"
    e = run.experiment
    searched = default_rate(e.algorithm, e.workload, e.data, e.workers).get("learning_rate", math.inf)
    if e.settings.get("learning_rate", math.inf) < searched:
        remedy += ", or a learning rate ten times larger"
    why = divergence.cause(e)
    if grew and why.undo.keys() - {"learning_rate"}:
        remedy = why.sentence
    elif steps < FEW_STEPS and "learning_rate" not in why.undo:
        remedy = f"it took only {units.count_with_noun(steps, 'step')}; {remedy}"
    elif grew or "learning_rate" in why.undo:
        remedy = "try a smaller learning rate"
    if e.workload == "table":
        remedy += ", or check whether its columns say anything about the label"
    return [f"The held-out loss ends at {units.loss(last)}, no better than the {units.loss(bar)} {of}; {remedy}."]

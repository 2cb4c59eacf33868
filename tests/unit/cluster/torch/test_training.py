"""Training on simulated ranks: its numbers, its steps, and what overlaps."""

import hashlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, schedules
from torch.nn.parallel import DistributedDataParallel

from cluster.faults import Faults
from cluster.torch import simulate
from tracing import COMMUNICATE, KINDS, WAIT

WIDTH, ROWS = 32, 16


def layers(count=4):
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count)]


def data():
    torch.manual_seed(0)
    return torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)


def train(model, x, y, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def data_parallel(wrap):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = (part.chunk(size)[rank] for part in data())
    return train(wrap(nn.Sequential(*layers())), x, y)


def ddp():
    return data_parallel(lambda model: DistributedDataParallel(model, bucket_cap_mb=0.005))


def fsdp():
    def shard(model):
        for layer in model:
            fully_shard(layer)
        return fully_shard(model)

    return [p.full_tensor() for p in data_parallel(shard)]


def pipeline(schedule):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    per_stage = 4 // size
    stage = nn.Sequential(*layers()[rank * per_stage : (rank + 1) * per_stage])
    runner = schedule(PipelineStage(stage, rank, size, torch.device("cpu")), 4, loss_fn=nn.functional.mse_loss)
    x, y = data()
    optimizer = torch.optim.SGD(stage.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        runner.step(*([x] * (rank == 0)), **({"target": y} if rank == size - 1 else {}))
        optimizer.step()
    return [p.detach().clone() for p in stage.parameters()]


def one_process():
    return train(nn.Sequential(*layers()), *data())


def in_micro_batches():
    model = nn.Sequential(*layers())
    optimizer, (x, y) = torch.optim.SGD(model.parameters(), 0.1), data()
    for _ in range(3):
        optimizer.zero_grad()
        for a, b in zip(x.chunk(4), y.chunk(4), strict=True):
            (nn.functional.mse_loss(model(a), b) / 4).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def digest(trace):
    cells = [column.tobytes() for table in (trace.spans, trace.messages) for column in table.values()]
    return hashlib.sha256(b"".join(cells) + "|".join(trace.labels).encode()).hexdigest()


def close(first, second):
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(first, second, strict=True))


def test_ddp_and_fsdp2_train_as_one_process_does():
    for program in (ddp, fsdp):
        results = simulate(program, 4).results
        assert all(close(result, one_process()) for result in results), program.__name__


def test_pipelines_train_as_one_process_does_to_the_bit():
    for schedule in (ScheduleGPipe, Schedule1F1B):
        for ranks in (2, 4):
            stages = simulate(pipeline, ranks, args=(schedule,)).results
            weights = [p for stage in stages for p in stage]
            assert all(torch.equal(a, b) for a, b in zip(weights, in_micro_batches(), strict=True)), (schedule, ranks)


def test_a_run_is_the_same_every_time():
    for program in (ddp, fsdp):
        assert len({digest(simulate(program, 2).trace) for _ in range(2)}) == 1


def test_a_slow_rank_changes_when_but_not_what_and_is_named():
    even, uneven = simulate(ddp, 4), simulate(ddp, 4, faults=Faults(slow={2: 5.0}))
    assert all(torch.equal(a, b) for a, b in zip(even.results[0], uneven.results[0], strict=True))
    assert uneven.summary.seconds > even.summary.seconds
    first = uneven.summary.waits[0]
    assert (first.culprit, first.ranks) == (2, 3)
    assert uneven.summary.wait[2] < min(uneven.summary.wait[[0, 1, 3]])


def test_the_summary_has_steps_losses_memory_and_traffic():
    summary = simulate(ddp, 2).summary
    parameters = sum(p.numel() for p in nn.Sequential(*layers()).parameters()) * 4
    assert summary.steps == 3 and list(summary.losses) == [0, 1, 2]
    assert summary.losses[2] < summary.losses[0]
    assert summary.memory["parameters"].tolist() == summary.memory["gradients"].tolist() == [parameters] * 2
    assert summary.sent.min() >= 3 * parameters, "two ranks exchange each gradient once"
    assert 0 < summary.step_seconds < summary.seconds


def test_a_sharded_model_takes_its_share_of_memory():
    whole, shards = simulate(ddp, 4).summary.memory, simulate(fsdp, 4).summary.memory
    assert shards["parameters"][0] == whole["parameters"][0] / 4


def test_buckets_overlap_with_backward_and_fsdp2_with_its_layers():
    for program in (ddp, fsdp):
        outcome = simulate(program, 2)
        spans, messages = outcome.trace.spans, outcome.trace.messages
        busy = (spans["rank"] == 0) & ~np_in(spans["kind"], (COMMUNICATE, WAIT))
        mine = messages["src"] == 0
        overlap = sum(
            max(0.0, min(end, arrived) - max(start, sent))
            for start, end in zip(spans["start"][busy], spans["end"][busy], strict=True)
            for sent, arrived in zip(messages["sent"][mine], messages["arrived"][mine], strict=True)
        )
        assert overlap > 0, program.__name__


def np_in(column, values):
    return (column[:, None] == list(values)).any(axis=1)


def test_spans_say_what_a_rank_does():
    trace = simulate(ddp, 2).trace
    labels = {
        (KINDS[kind], trace.labels[label])
        for kind, label in zip(trace.spans["kind"], trace.spans["label"], strict=True)
    }
    assert {("compute", "forward"), ("compute", "backward"), ("update", "optimizer")} <= labels
    assert ("communicate", "all_reduce") in labels


def test_ranks_share_the_schedule_that_each_would_complete_for_all(monkeypatch):
    completed, real = [], schedules._add_send_recv
    monkeypatch.setattr(schedules, "_add_send_recv", lambda order, **how: completed.append(1) or real(order, **how))

    def build():
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        stages = [PipelineStage(nn.Identity(), k, 8, torch.device("cpu")) for k in (rank, rank + 4)]
        both = [schedules.ScheduleInterleaved1F1B(stages, count) for count in (4, 8)]
        return [(one.pipeline_order_with_comms, stages[0].stage_index_to_group_rank) for one in both]

    first, *others = simulate(build, 4).results
    assert len(completed) == 2 and all(other == first for other in others)
    assert first[0] != first[1] and others[0][0][0] is not first[0][0], "a rank may change its own copy"

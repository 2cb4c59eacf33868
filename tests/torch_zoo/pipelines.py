"""Every schedule of torch.distributed.pipelining, and a model that is cut by its tracer."""

import torch
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    pipeline,
)
from torch.optim import SGD

from tests.torch_zoo.training import IN, STEPS, begin, weights


def layers(count):
    torch.manual_seed(5)
    return nn.Sequential(*(nn.Sequential(nn.Linear(IN, IN), nn.Tanh()) for _ in range(count)))


def run(schedule, stages, first, last, micro_batches=4):
    """Train these stages. `first` and `last` say whether this rank has the first and the last stage of all."""
    runner = schedule(stages, micro_batches, loss_fn=nn.functional.mse_loss)
    modules = [stage.submod for stage in (stages if isinstance(stages, list) else [stages])]
    optimizer = SGD([p for module in modules for p in module.parameters()], 0.1)
    torch.manual_seed(6)
    x, y = torch.randn(4 * micro_batches, IN), torch.randn(4 * micro_batches, IN)
    for _ in range(STEPS):
        optimizer.zero_grad()
        runner.step(*([x] * first), **({"target": y} if last else {}))
        optimizer.step()
    return [p for module in modules for p in weights(module)]


def train(schedule):
    """One stage on each rank."""
    rank, size = begin()
    stage = PipelineStage(layers(size)[rank], rank, size, torch.device("cpu"))
    return run(schedule, stage, rank == 0, rank == size - 1, max(4, size))  # 1F1B needs a micro-batch for each stage


def train_loop(schedule):
    """Two stages on each rank, those of a loop: rank r has stages r and size + r."""
    rank, size = begin()
    model, numbers = layers(2 * size), (rank, size + rank)
    stages = [PipelineStage(model[k], k, 2 * size, torch.device("cpu")) for k in numbers]
    return run(schedule, stages, rank == 0, rank == size - 1, max(4, size))


def train_v(schedule):
    """Two stages on each rank, those of a V: rank r has stages r and 2 size - 1 - r, so rank 0 has both ends."""
    rank, size = begin()
    model, numbers = layers(2 * size), (rank, 2 * size - 1 - rank)
    stages = [PipelineStage(model[k], k, 2 * size, torch.device("cpu")) for k in numbers]
    return run(schedule, stages, rank == 0, rank == 0, 2 * size)  # DualPipeV needs one for each stage


def gpipe():
    return train(ScheduleGPipe)


def one_f_one_b():
    return train(Schedule1F1B)


def interleaved():
    return train_loop(ScheduleInterleaved1F1B)


def looped_bfs():
    return train_loop(ScheduleLoopedBFS)


def zero_bubble():
    return train_loop(ScheduleInterleavedZeroBubble)


def zero_bubble_v():
    return train_v(ScheduleZBVZeroBubble)


def dual_pipe_v():
    return train_v(ScheduleDualPipeV)


def traced_pipeline():
    """Let torch trace the model and cut it before a layer of each rank."""
    rank, size = begin()
    split = {str(k): SplitPoint.BEGINNING for k in range(1, size)}
    stage = pipeline(layers(size), mb_args=(torch.randn(4, IN),), split_spec=split).build_stage(
        rank, torch.device("cpu")
    )
    return run(ScheduleGPipe, stage, rank == 0, rank == size - 1)


PROGRAMS = gpipe, one_f_one_b, interleaved, looped_bfs, zero_bubble, zero_bubble_v, dual_pipe_v, traced_pipeline

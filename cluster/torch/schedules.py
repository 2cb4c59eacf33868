"""Schedules of torch.distributed.pipelining, completed once for all ranks.

Each rank of a pipeline adds sends and receives to the operations of all ranks, and executes its own. On 64 ranks with
two stages each this takes half a second to a second and a half. Real ranks do it at the same time; simulated ones
would do it one after the other.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime as Schedule

from cluster.torch.replaced import replace_names

Operations = dict[int, list[Any]]
"""Operations by rank."""


@contextlib.contextmanager
def shared_schedules() -> Iterator[None]:
    """During a run, let all ranks use the schedule that the first one computed from the same operations."""
    completed: list[tuple[tuple, Operations, dict[int, int], Operations]] = []
    real: Any = Schedule._prepare_schedule_with_comms

    def prepare(schedule: Any, actions: Operations, format: Any = "compute_only") -> None:
        sizes = schedule.pp_group_size, schedule._num_stages, schedule._n_microbatches, schedule._defer_pp_recv, format
        for theirs, given, ranks, order in completed:
            if theirs == sizes and given == actions:
                schedule.stage_index_to_group_rank, schedule.pipeline_order_with_comms = dict(ranks), _copy(order)
                for stage in schedule._stages:
                    stage.stage_index_to_group_rank = schedule.stage_index_to_group_rank
                return
        given = _copy(actions)
        real(schedule, actions, format)
        ranks, order = schedule.stage_index_to_group_rank, schedule.pipeline_order_with_comms
        completed.append((sizes, given, dict(ranks), _copy(order)))

    with replace_names(Schedule, _prepare_schedule_with_comms=prepare):
        yield


def _copy(operations: Operations) -> Operations:
    return {rank: list(some) for rank, some in operations.items()}

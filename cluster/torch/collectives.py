"""The collectives of torch.distributed: what each one computes, and which messages it sends.

A collective is a meeting of the group's ranks (`meeting.py`): a Call that must be the same on all of them, its duration
(`durations.py`), and the work on the tensors of all ranks, done once, when the last rank has arrived.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from cluster.torch import patterns
from cluster.torch.durations import Members
from cluster.torch.meeting import Call, kinds
from cluster.torch.operations import nbytes as nbytes_of
from cluster.torch.sums import op_name, operation_of, reduce_whole
from cluster.torch.work import CollectiveWork

Tensors = Sequence[torch.Tensor]
Durations = Callable[[Members], list[float]]


class Collectives(dist.ProcessGroup):
    """The collectives as torch calls them: names and arguments are those of dist.ProcessGroup."""

    def _join(self, call: Call, payload: Any, result: Any, durations: Durations, work: Callable) -> CollectiveWork:
        raise NotImplementedError

    def allreduce(self, tensors: Tensors, opts: Any = None) -> CollectiveWork:
        tensors, op = list(tensors), operation_of(opts)

        def work(data: list[Tensors]) -> None:
            for one in zip(*data, strict=True):
                total = reduce_whole(list(one), op)
                for x in one:
                    x.detach().copy_(total)

        call = Call("all_reduce", kinds(tensors), op_name(op))
        count, itemsize = sum(x.numel() for x in tensors), tensors[0].element_size()
        last = 2 * (self.size() - 1)
        return self._join(call, tensors, tensors, lambda all_: all_.ring(count, itemsize, 0, last), work)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Tensors, opts: Any) -> CollectiveWork:
        root, op, nbytes = opts.rootRank, operation_of(opts), nbytes_of(tensors)

        def work(data: list[Tensors]) -> None:
            data[root][0].detach().copy_(reduce_whole([one[0] for one in data], op))

        def durations(members: Members) -> list[float]:
            return members.play(patterns.reversed_tree(members.size, root, nbytes), nbytes)

        return self._join(Call("reduce", kinds(tensors), op_name(op), root), tensors, tensors, durations, work)

    def broadcast(self, tensors: Tensors, opts: Any) -> CollectiveWork:
        tensors, root, nbytes = list(tensors), opts.rootRank, nbytes_of(tensors)

        def work(data: list[Tensors]) -> None:
            for place, mine in enumerate(data):
                if place != root:
                    _copy(mine, data[root])

        def durations(members: Members) -> list[float]:
            return members.play(patterns.tree(members.size, root, nbytes))

        return self._join(Call("broadcast", kinds(tensors), root=root), tensors, tensors, durations, work)

    def barrier(self, opts: Any = None) -> CollectiveWork:
        def durations(members: Members) -> list[float]:
            return members.play(patterns.dissemination(members.size))

        return self._join(Call("barrier"), [], [], durations, lambda data: None)

    def _gather_everywhere(self, outputs: Any, inputs: Tensors, result: Any, work: Callable) -> CollectiveWork:
        whole = self.size() * sum(x.numel() for x in inputs)
        call, step = Call("all_gather", kinds(inputs)), self.size() - 1

        def durations(members: Members) -> list[float]:
            return members.ring(whole, inputs[0].element_size(), step, 2 * step)

        return self._join(call, (outputs, list(inputs)), result, durations, work)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> CollectiveWork:
        def work(data: list) -> None:
            for place, (_, (x,)) in enumerate(data):
                for (out,), _ in data:
                    out[place].detach().copy_(x.detach())

        return self._gather_everywhere(outputs, inputs, outputs[0], work)

    def allgather_coalesced(self, output_lists: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> CollectiveWork:
        def work(data: list) -> None:
            for place, (_, theirs) in enumerate(data):
                for outputs, _ in data:
                    _copy(outputs[place], theirs)

        return self._gather_everywhere(output_lists, inputs, output_lists, work)

    def all_gather_single(self, output: torch.Tensor, x: torch.Tensor, opts: Any = None) -> CollectiveWork:
        return self.all_gather_single_coalesced([output], [x])

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> CollectiveWork:
        def work(data: list) -> None:
            for number in range(len(inputs)):
                whole = torch.cat([theirs[number].detach().reshape(-1) for _, theirs in data])
                for outs, _ in data:
                    outs[number].detach().copy_(whole.view_as(outs[number]))

        outputs = list(outputs)
        return self._gather_everywhere(outputs, inputs, outputs, work)

    def reduce_scatter(self, outputs: Tensors, input_lists: Sequence[Tensors], opts: Any) -> CollectiveWork:
        outputs, inputs = list(outputs), list(input_lists[0])
        return self._scatter_sums(outputs, inputs, opts, [inputs], lambda mine, place: [mine[0][place]])

    def reduce_scatter_single(self, output: torch.Tensor, x: torch.Tensor, opts: Any) -> CollectiveWork:
        return self.reduce_scatter_single_coalesced([output], [x], opts)

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any) -> CollectiveWork:
        size = self.size()

        def pieces(mine: Tensors, place: int) -> list[torch.Tensor]:
            return [x.detach().reshape(size, -1)[place] for x in mine]

        return self._scatter_sums(list(outputs), inputs, opts, list(inputs), pieces)

    def _scatter_sums(self, outputs: Any, inputs: Tensors, opts: Any, given: Any, pieces: Callable) -> CollectiveWork:
        """Reduce the tensors and give each rank its pieces: pieces(given, place) returns those of rank `place`."""
        op, count = operation_of(opts), sum(x.numel() for x in inputs)

        def work(data: list) -> None:
            parts = range(len(data))
            for number in range(len(outputs)):
                mine = [[pieces(given, place)[number].detach().reshape(-1) for place in parts] for _, given in data]
                sizes = [piece.numel() for piece in mine[0]]
                total = reduce_whole([torch.cat(one) for one in mine], op, sizes).split(sizes)
                for (outs, _), piece in zip(data, total, strict=True):
                    outs[number].detach().copy_(piece.view_as(outs[number]))

        def durations(members: Members) -> list[float]:
            return members.ring(count, inputs[0].element_size(), 0, members.size - 1)

        call = Call("reduce_scatter", kinds(inputs), op_name(op))
        return self._join(call, (outputs, given), outputs, durations, work)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> CollectiveWork:
        root, nbytes = opts.rootRank, nbytes_of(inputs)

        def work(data: list) -> None:
            for place, (_, (x,)) in enumerate(data):
                data[root][0][0][place].detach().copy_(x.detach())

        def durations(members: Members) -> list[float]:
            return members.play(patterns.gather(members.size, root, nbytes))

        call = Call("gather", kinds(inputs), root=root)
        return self._join(call, (outputs, list(inputs)), outputs, durations, work)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> CollectiveWork:
        root, nbytes, outputs = opts.rootRank, nbytes_of(outputs), list(outputs)

        def work(data: list) -> None:
            for place, ((out,), _) in enumerate(data):
                out.detach().copy_(data[root][1][0][place].detach())

        def durations(members: Members) -> list[float]:
            return members.play(patterns.scatter(members.size, root, nbytes))

        return self._join(Call("scatter", kinds(outputs), root=root), (outputs, inputs), outputs, durations, work)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> CollectiveWork:
        outputs, inputs = list(outputs), list(inputs)
        return self._exchange(outputs, inputs, outputs)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        x: torch.Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
        opts: Any = None,
    ) -> CollectiveWork:
        outputs, inputs = (_split(t.detach(), s, self.size()) for t, s in ((output, output_splits), (x, input_splits)))
        return self._exchange(outputs, inputs, [output])

    def _exchange(self, outputs: Tensors, inputs: Tensors, result: Any) -> CollectiveWork:
        def work(data: list) -> None:
            for place, (mine, _) in enumerate(data):
                _copy(mine, [theirs[place] for _, theirs in data])

        def durations(members: Members) -> list[float]:
            return members.play(patterns.pairwise([[nbytes_of(x) for x in theirs] for _, theirs in members.payloads]))

        call = Call("all_to_all", ((0, inputs[0].dtype),))
        return self._join(call, (outputs, inputs), result, durations, work)


def _copy(targets: Tensors, sources: Tensors) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.detach().copy_(source.detach().reshape(target.shape))  # this does not broadcast


def _split(x: torch.Tensor, sizes: Sequence[int], size: int) -> list[torch.Tensor]:
    """Return the parts of x along the first dimension, of equal size unless sizes are given."""
    return list(x.split(list(sizes) if sizes else [x.size(0) // size] * size))

"""An all-reduce by hand: parts of a vector travel around a ring, first to be summed, then to be shared.

Each rank sends 2 (P - 1) / P of the vector's bytes, however many ranks there are.

torchrun --nproc-per-node 4 ring.py
"""

import torch
import torch.distributed as dist

ELEMENTS, ROUNDS = 1_000_000, 3  # of the vector; a few are left out if it does not divide into equal parts

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
left, right = (rank - 1) % size, (rank + 1) % size


def exchange(part: torch.Tensor) -> torch.Tensor:
    """Send a part to the right while another arrives from the left; return the part that arrives."""
    arrived = torch.empty_like(part)
    sending = dist.isend(part, right)
    dist.recv(arrived, left)
    sending.wait()
    return arrived


def all_reduce(vector: torch.Tensor) -> None:
    """Replace `vector` by its sum over all ranks."""
    parts = vector.view(size, -1)  # part p of the sum is finished on rank p - 1
    for turn in range(size - 1):
        parts[(rank - turn - 1) % size] += exchange(parts[(rank - turn) % size])
    for turn in range(size - 1):
        parts[(rank - turn) % size] = exchange(parts[(rank - turn + 1) % size])


for round_number in range(ROUNDS):
    vector = torch.full((ELEMENTS - ELEMENTS % size,), float(rank))
    all_reduce(vector)
    assert (vector == size * (size - 1) / 2).all(), "the sum of all ranks is wrong"
    if rank == 0:
        print(f"round {round_number + 1}: the sum is {vector[0].item():g}")

dist.destroy_process_group()

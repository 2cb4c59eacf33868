"""What a rank holds for its backward pass."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

from cluster.torch import simulate

BATCH, WIDTH, LAYERS = 64, 32, 6
LAYER = BATCH * WIDTH * 4  # bytes of an activation


def layers():
    torch.manual_seed(0)
    return nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS))


def held(forward, micro_batches=1, keep=False):
    """Return the peak of activations in the last of two steps, in bytes."""

    def program():
        dist.init_process_group("gloo")
        model, kept = layers(), []
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        data = torch.randn(1000, WIDTH) / 2  # not an activation: nothing needs its gradient
        for _ in range(2):
            optimizer.zero_grad()
            losses = [forward(model, data[:BATCH]).mean() for _ in range(micro_batches)]
            for loss in losses:
                loss.backward()
            optimizer.step()
            kept += losses

    return int(simulate(program, 1).summary.memory["activations"][0])


def plain(model, x):
    for layer in model:
        x = layer(x)
    return x


def checkpointed(model, x):
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False)
    return x


def test_activations_are_what_the_forward_pass_makes_and_backward_needs():
    each = LAYERS * LAYER  # Tanh keeps its output, and the next layer uses the same storage
    assert each <= held(plain) <= each + LAYER + 100, "and for a moment the output of a linear layer"


def test_micro_batches_in_flight_add_up():
    one, four = held(plain), held(plain, micro_batches=4)
    assert 3.5 * one < four < 4 * one + 100


def test_parameters_inputs_and_views_of_them_are_not_counted_as_activations():
    assert held(lambda model, x: plain([model[0][0]], x).flatten().view(-1)[:5]) <= 2 * LAYER + 100


def test_checkpointing_keeps_the_inputs_of_layers_only():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(8)))
            self.weight = self.inner[0][0].weight

        def forward(self, x):
            return self.inner(x)

    def program(wrap):
        dist.init_process_group("gloo")
        model = nn.ModuleList(Deep() for _ in range(4))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            x = torch.randn(BATCH, WIDTH)
            for layer in model:
                x = wrap(layer, x)
            x.mean().backward()
            optimizer.step()

    whole, less = (
        int(simulate(program, 1, args=(wrap,)).summary.memory["activations"][0])
        for wrap in (lambda layer, x: layer(x), lambda layer, x: checkpoint(layer, x, use_reentrant=False))
    )
    assert whole >= 32 * LAYER
    assert less <= (4 + 8 + 2) * LAYER, "inputs of the four, and one of them computed again"


def test_a_tensor_parallel_rank_holds_its_part_of_the_activations():
    def program():
        dist.init_process_group("gloo")
        size = dist.get_world_size()
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(WIDTH, 16 * WIDTH), nn.ReLU(), nn.Linear(16 * WIDTH, WIDTH))
        model = parallelize_module(
            model, init_device_mesh("cpu", (size,)), {"0": ColwiseParallel(), "2": RowwiseParallel()}
        )
        optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(BATCH, WIDTH)).mean().backward()
            optimizer.step()

    whole, half = (simulate(program, ranks).summary.memory["activations"].max() for ranks in (1, 2))
    assert whole >= 16 * LAYER and 8 * LAYER <= half < 0.7 * whole

"""Spans say which module a rank computes, forward or backward, and carry the labels of record_function."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint

from cluster.torch import simulate
from tracing import COMPUTE


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(8), nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x):
        x = x + self.mlp(self.norm(x))
        with record_function("scaling"):
            return x * 2


class Model(nn.Module):
    def __init__(self, again=False):
        super().__init__()
        self.layers, self.again = nn.ModuleList(Layer() for _ in range(2)), again

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return x


def train(again=False, wrap=lambda model: model):
    dist.init_process_group("gloo")
    model = wrap(Model(again))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        with record_function("the whole of it"):
            model(torch.ones(4, 8)).mean().backward()
        optimizer.step()


def labels(*args, **options):
    trace = simulate(train, 1, args=args).trace
    computing = trace.spans["kind"] == COMPUTE
    return [trace.labels[label] for label in trace.spans["label"][computing & (trace.spans["step"] == 1)]]


def test_spans_name_the_module_whose_forward_or_backward_pass_is_computed():
    said = labels()
    for name in ("layers.0.norm", "layers.0.mlp.0", "layers.1.mlp.1"):
        assert name in said and f"{name} backward" in said, name
    assert "layers.1" in said, "its own addition"
    assert said.index("layers.0.norm") < said.index("layers.1.norm") < said.index("layers.1.norm backward")
    assert said.index("layers.1.norm backward") < said.index("layers.0.norm backward")


def test_spans_carry_the_label_of_the_innermost_record_function():
    said = labels()
    assert "scaling" in said and "scaling backward" in said
    assert "the whole of it" in said, "the mean belongs to no module"


def test_names_are_those_of_the_script_and_not_of_a_wrapper():
    said = labels(False, DistributedDataParallel)
    assert "layers.0.mlp.0" in said and "layers.0.mlp.0 backward" in said


def test_what_is_computed_again_has_the_name_of_its_module():
    said = labels(True)
    assert said.count("layers.0.norm") == 2, "in the forward pass, and again in the backward pass"
    assert "layers.0.norm backward" in said

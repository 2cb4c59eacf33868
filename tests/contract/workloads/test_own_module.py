"""Networks of one's own: off unless asked for, and never another file than the one that was added."""

import re

import numpy as np
import pytest

from tests.quotes import quote
from tests.training import train
from workloads import own_module
from workloads.own_module import EXAMPLE, Settings, build, save

torch = pytest.importorskip("torch")

NET = b"""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(60, 5)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 2))
loss = nn.functional.cross_entropy
train, test = (x[:48], y[:48]), (x[48:].numpy(), y[48:].numpy())
"""
NETS = {
    "resnet": """
class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += self.down(x)
        return self.relu(out)
net = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), Block(1, 4, 1), Block(4, 8, 2), nn.AdaptiveAvgPool2d((1, 1)),
                    nn.Flatten(), nn.Linear(8, 10))
""",
    "seq": "net = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))",
    "lstm": """
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 16, num_layers=2, batch_first=True, dropout=0.1), nn.Linear(16, 10)
    def forward(self, x):
        return self.head(self.rnn(x.view(-1, 8, 8))[0][:, -1])
net = Rows()
""",
    "logsoftmax": """
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10), nn.LogSoftmax(1))
loss = nn.functional.nll_loss
""",
    "unused": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.spare = nn.Linear(64, 10), nn.Linear(64, 64)
    def forward(self, x):
        return self.l(x)
net = Net()
""",
    "tied": """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.tril(torch.ones(64, 64)))
    def forward(self, x):
        return self.head((self.mask / self.mask.sum(1, keepdim=True)) @ self.embed(x.long().clamp(0, 15)))[:, -1]
net = Tied()
""",
}
"""Networks as people bring them, of samples (64,) with ten classes."""
PARAMETERS = {"seq": 64 * 32 + 32 + 2 * 32 + 32 * 10 + 10, "tied": 16 * 8, "unused": 64 * 10 + 10 + 64 * 64 + 64}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_MODULES", str(tmp_path))
    return tmp_path


def test_without_the_setting_nothing_is_kept_and_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.delenv("LOCKSTEP_MODULES", raising=False)
    assert own_module.folder() is None
    for use in (lambda: save(NET, "net.py"), lambda: build(Settings(net="net_01234567"))):
        with pytest.raises(ValueError, match=r"disabled.*files.*LOCKSTEP_MODULES"):
            use()


def test_a_file_is_kept_under_its_name_and_a_hash_and_trains(folder):
    name = save(NET, "my net.py")
    assert name.startswith("my_net_") and (folder / f"{name}.py").read_bytes() == NET
    workload = build(Settings(net=name), np.float64)
    assert workload.samples == 48 and workload.parameters == 5 * 8 + 8 + 8 * 2 + 2
    loss, g = workload.gradient(workload.start(0), workload.batch(np.arange(8)))
    assert np.isfinite(loss) and g.shape == (workload.parameters,) and g.dtype == np.float64
    assert 0 <= workload.evaluate(workload.start(0)).accuracy <= 1


@pytest.mark.parametrize("kind", NETS)
def test_networks_that_people_bring_train(kind, folder):
    text = (
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nloss = nn.functional.cross_entropy\n"
        "x, y = torch.rand(60, 64), torch.arange(60) % 10\ntrain, test = (x[:50], y[:50]), (x[50:], y[50:])\n"
    ) + NETS[kind]
    workload = build(Settings(net=save(text.encode(), f"{kind}.py")))
    trained = train("sync_sgd", workload, 2, {"learning_rate": 0.2}, batch=8, steps=30).shipped
    assert workload.parameters == PARAMETERS.get(kind, workload.parameters)
    few = workload.batch(np.arange(50))
    torch.manual_seed(0)
    before = workload.gradient(workload.start(0), few)[0]
    torch.manual_seed(0)
    assert workload.gradient(trained, few)[0] < before and np.isfinite(workload.evaluate(trained).loss)


def test_a_file_that_was_changed_since_is_not_run(folder):
    name = save(NET, "net.py")
    (folder / f"{name}.py").write_bytes(b"open('never', 'w')")
    with pytest.raises(ValueError, match="changed"):
        build(Settings(net=name))


@pytest.mark.parametrize("name", ["", "../net", "net", "net_0123456g", "a/b_01234567", "net_01234567"])
def test_another_name_is_no_path(folder, name):
    (folder.parent / "net.py").write_bytes(NET)
    with pytest.raises(ValueError, match=r"^own_module: [^\n]+$"):
        build(Settings(net=name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"if 0:\n net = loss = train = test = 1", "not define net, loss, train, test"),
        (NET + b"1 / 0", "ZeroDivisionError: division by zero"),
        (NET + b"import nothing_of_this_name", "ModuleNotFoundError"),
        (NET.replace(b"nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 2))", b"nn.GELU()"), "parameters"),
        (NET.replace(b"(x[:48], y[:48])", b"3"), "train … int … pair (x, target)"),
        (NET + b"test = torch.utils.data.TensorDataset(x, y)", "test … TensorDataset … pair"),
        (NET + b"test = {'x': x, 'y': y}", "test … dict … pair"),
        (NET + b"train = x, y[:9]", "shape (60, 5) … float32 … shape (9,)"),
        (NET + b"test = x[:0], y[:0]", "at least one"),
        (NET + b"train = [['a', 'b'], [0, 1]]", "it should have numbers"),
        (NET + b"net = nn.Linear(4, 2)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        (NET + b"loss = nn.CrossEntropyLoss", "RuntimeError"),
        (NET + b"loss = nn.CrossEntropyLoss(reduction='none')", "RuntimeError"),
        (NET + b"net = nn.Sequential(net, nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)))", "buffer 1.param"),
        (NET + b"test = x, y + 2", "IndexError: Target"),
        (NET + b"import sys; sys.exit(3)", "code 3"),
        (NET + b"import argparse; argparse.ArgumentParser().parse_args(['3'])", "code 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(folder, text, words):
    with pytest.raises(ValueError, match=r"^own_module: [^\n]+$") as refused:
        build(Settings(net=save(text, "net.py")))
    assert re.search(quote(words), str(refused.value))


def test_a_network_is_tried_without_a_trace_of_it(folder):
    name = save(NET.replace(b"nn.GELU()", b"nn.Dropout()"), "net.py")
    workload = build(Settings(net=name))
    after = torch.rand(1)
    torch.manual_seed(0)
    made = own_module.runpy.run_path(str(folder / f"{name}.py"))
    assert torch.equal(after, torch.rand(1))
    assert np.array_equal(workload.start(), torch.nn.utils.parameters_to_vector(made["net"].parameters()).detach())


def test_what_a_file_draws_is_the_same_on_every_rank_and_in_every_replay(folder):
    unseeded = NET.replace(b"torch.manual_seed(0)", b"import random; import numpy as np")
    unseeded += b"train = x[:48] + random.random() + np.random.rand(), y[:48]"
    settings = Settings(net=save(unseeded.replace(b"nn.GELU()", b"nn.Dropout()"), "net.py"))
    drawn = []
    for _ in range(2):
        workload = build(settings)
        loss, _ = workload.gradient(workload.start(0), workload.batch(np.arange(8)))  # with a dropout of its own
        drawn.append((loss, workload.x.tobytes(), workload.start(0).tobytes()))
    assert drawn[0] == drawn[1]


def test_a_file_that_does_not_define_a_network_is_not_kept_and_not_run(folder):
    with pytest.raises(
        ValueError,
        match=r"^net.py .*not define loss, test; .*net, loss, train, test: a torch module, ",
    ):
        save(b"net = train = open('never', 'w')", "net.py")
    assert list(folder.glob("*.py")) == []


def test_the_example_can_be_trained_as_it_is(folder):
    assert build(Settings(net=save(EXAMPLE.encode(), "example.py"))).start(0).size == 162


@pytest.mark.parametrize("content", [b"def f(:", b"\0", b"x" * 2_000_000])
def test_what_is_no_python_is_not_kept(folder, content):
    with pytest.raises(ValueError, match=r"^net.py (is not valid Python|has 2,000,000 bytes)[^\n]+$"):
        save(content, "net.py")
    assert list(folder.iterdir()) == []

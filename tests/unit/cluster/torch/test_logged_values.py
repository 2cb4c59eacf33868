"""`lockstep.log`, and lines that name a loss: values by rank, step and virtual time."""

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import lockstep
from cluster.comm import RankFailed
from cluster.torch import simulate


def train(steps=3):
    dist.init_process_group()
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)
    for _ in range(steps):
        loss = (w * (dist.get_rank() + 1)).square().sum()
        loss.backward()
        lockstep.log(loss=loss, accuracy=0.5)
        print(f"epoch 1, val_loss: {loss.item():.3f}, time 3.2, Loss 7, accuracy high")
        optimizer.step()
        optimizer.zero_grad()


def test_what_a_script_logs_is_recorded_by_rank_step_and_virtual_time():
    ran = simulate(train, ranks=2, on_line=lambda rank, line: None)
    for rank, log in enumerate(ran.event_logs):
        losses = [row for row in log.measures if row[2] == "loss"]
        assert [(step, value) for step, _, _, value in losses] == [(row[0], row[3]) for row in log.losses]
        times = [seconds for _, seconds, _, _ in losses]
        assert times == sorted(times) and times[0] > 0 and losses[0][3] == 2 * (rank + 1) ** 2
    logged = ran.summary.logged
    assert logged["loss"] == ran.summary.losses and logged["accuracy"] == {0: 0.5, 1: 0.5, 2: 0.5}


def test_a_line_that_names_a_loss_or_an_accuracy_is_recorded_once_for_each_name():
    logged = simulate(train, ranks=1, on_line=lambda rank, line: None).summary.logged
    assert {*logged} == {"loss", "accuracy", "printed val_loss", "printed loss"}
    assert logged["printed loss"] == {0: 7.0, 1: 7.0, 2: 7.0}
    assert logged["printed val_loss"][2] == pytest.approx(logged["loss"][2], abs=1e-3)


def test_without_an_optimizer_values_count_one_after_the_other_and_not_as_their_mean():
    def anneal():
        w = torch.ones(1, requires_grad=True)
        for number in range(3):
            lockstep.log(energy=10 * number)
            (w * number).sum().backward()

    summary = simulate(anneal, ranks=2).summary
    assert summary.logged == {"energy": {0: 0.0, 1: 10.0, 2: 20.0}} and summary.losses == {0: 0.0, 1: 1.0, 2: 2.0}


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("loss: 0.31", {"loss": 0.31}),
        ("loss 0.31", {"loss": 0.31}),
        ("step 3 train_loss=1e-3 accuracy: .9", {"train_loss": 1e-3, "accuracy": 0.9}),
        ("Loss: -2 loss: 5", {"loss": -2.0}),
        ("loss: inf", {"loss": float("inf")}),
        ("lossless 3", {}),
        ("loss of 3", {}),
        ("loss: none", {}),
        ("no loss", {}),
    ],
)
def test_the_pattern_of_a_printed_value(line, values):
    logged = simulate(lambda: print(line), ranks=1, on_line=lambda rank, line: None).summary.logged
    assert logged == {f"printed {name}": {0: value} for name, value in values.items()}


def test_logging_takes_no_virtual_time():
    def silent():
        dist.init_process_group()
        return [torch.ones(100).sum() for _ in range(10)]

    def logging():
        for value in silent():
            lockstep.log(value=value)

    assert simulate(silent, ranks=2).summary.seconds == simulate(logging, ranks=2).summary.seconds


def test_a_value_that_is_not_a_number_is_refused_by_name():
    for value in ("high", torch.ones(2), None):
        with pytest.raises(RankFailed) as failed:
            simulate(lambda value=value: lockstep.log(accuracy=value), ranks=1)
        assert isinstance(failed.value.__cause__, TypeError)
        assert "accuracy is" in str(failed.value) and "not a number" in str(failed.value)


def test_outside_of_a_simulated_script_log_does_nothing_and_imports_nothing():
    lockstep.log(loss="not even read")
    code = "import sys, lockstep; lockstep.log(loss=1); print('torch' in sys.modules, 'cluster' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"

"""What a script's work costs: operations on any device, and Python and views on one that was measured for scripts."""

import sys
import time
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from cluster.devices import DEVICES
from cluster.network import Link, Network
from cluster.script_device import ScriptDevice, parse_script_device
from cluster.torch import simulate
from cluster.torch.pricing import Pricer

FREE = ScriptDevice(1e30, 1e30, 0.0)
CALLS, VIEWS = replace(FREE, call=1.0), replace(FREE, view=1.0)
COMPUTER = Network(Link(1e-4, 2e9, per_byte=2.5e-10), Link(1e-4, 2e9), sum=Link(1e-3, 1e9))


def seconds(program, device, ranks=1, network="ideal", has_begun=True):
    """Return how long `program` says that it takes on each rank after a first step, in virtual s."""

    def begin():
        dist.init_process_group("gloo")
        if has_begun:
            torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()
        return program()

    return simulate(begin, ranks, device=device, network=network).results


def timed(step, warm_up=2):
    for _ in range(warm_up):
        step()
    start = time.time()
    step()
    return time.time() - start


def training():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(12)))
    optimizer, x = torch.optim.Adam(model.parameters()), torch.randn(4, 8)

    def step():
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    return step


def nothing():
    pass


def test_a_call_of_python_takes_its_time_on_a_measured_device_and_none_on_a_preset():
    def calls(count):
        def step():
            for _ in range(count):
                nothing()

        return lambda: timed(step)

    less, more = (seconds(calls(count), CALLS)[0] for count in (100, 300))
    assert more - less == 200
    assert seconds(calls(300), "laptop") == [0.0]
    assert seconds(calls(300), CALLS, has_begun=False) == [0.0], "before the first step, Python fills caches"


def test_calls_that_only_the_simulator_makes_are_not_priced():
    step, made = training(), 0

    def count(frame, event, argument):
        nonlocal made
        made += event == "call"

    step()
    sys.setprofile(count)
    step()
    sys.setprofile(None)
    assert seconds(lambda: timed(training()), CALLS)[0] == pytest.approx(made, rel=0.1)


def test_a_view_takes_its_time_on_a_measured_device():
    def views():
        x = torch.zeros(4, 4)
        return timed(lambda: [x.t() for _ in range(7)])

    assert seconds(views, VIEWS) == [7.0]
    assert seconds(views, "laptop") == [0.0]


def test_an_operation_that_does_much_for_each_number_takes_longer_to_move_it():
    def step(operation):
        x = torch.zeros(1000)
        return lambda: timed(lambda: operation(x))

    slow = replace(FREE, bandwidth=8000.0, slow=3.0)
    assert seconds(step(torch.exp), slow) == [3.0]
    assert seconds(step(torch.neg), slow) == [1.0]


def test_a_product_of_16_bit_numbers_takes_the_devices_16_bit_rate_and_half_the_bytes():
    def product(dtype, autocast=False):
        def program():
            x = torch.zeros(10, 10, dtype=dtype)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return timed(lambda: x @ x)

        return program

    fast = replace(FREE, flops=1000.0, half=4000.0)
    assert seconds(product(torch.float32), fast) == [2.0]
    for dtype in (torch.bfloat16, torch.float16):
        assert seconds(product(dtype), fast) == [0.5]
    casts = 2 * 100 / 1000.0  # the rate of float32, with one FLOP for each four bytes that a cast moves
    assert seconds(product(torch.float32, autocast=True), fast)[0] == pytest.approx(0.5 + 1.5 * casts)
    assert seconds(product(torch.float32), replace(FREE, bandwidth=1200.0)) == [1.0]
    assert seconds(product(torch.bfloat16), replace(FREE, bandwidth=1200.0)) == [0.5]


def test_operations_on_fake_tensors_are_free_and_show_that_a_run_which_traces_a_model_is_alive():
    def trace():
        with FakeTensorMode():
            x = torch.zeros(2, 4)
            before, start = Pricer.operations, time.time()
            x + x
            return Pricer.operations - before, time.time() - start

    assert simulate(trace, 1).results == [(1, 0.0)]


def test_the_price_of_python_is_the_same_in_every_run():
    first, second = (seconds(lambda: timed(training()), CALLS, ranks=2) for _ in range(2))
    assert first == second and first[0] == first[1]


def test_in_one_computer_a_collective_takes_its_own_latency_and_bandwidth():
    def once(collective):
        def run():
            x, part = torch.zeros(2000), torch.zeros(1000)
            return timed(lambda: collective(x, part))

        return run

    whole, half = 8000.0 / 1e9, 4000.0 / 1e9
    assert seconds(once(lambda x, part: dist.all_reduce(x)), FREE, 2, COMPUTER) == pytest.approx([1e-3 + whole] * 2)
    gather = seconds(once(dist.all_gather_single), FREE, 2, COMPUTER)
    assert gather == pytest.approx([1e-3 + half] * 2)
    scatter = seconds(once(lambda x, part: dist.reduce_scatter_single(part, x)), FREE, 2, COMPUTER)
    assert scatter == pytest.approx([1e-3 + whole] * 2), "gloo sums all of it"


def test_in_one_computer_a_rank_sends_what_it_sends_over_a_network():
    def scatter():
        dist.init_process_group("gloo")
        dist.reduce_scatter_single(torch.zeros(1000), torch.zeros(2000))

    assert [simulate(scatter, 2, network=one).summary.sent[0] for one in (COMPUTER, "1GbE")] == [4000.0] * 2


def test_in_one_computer_a_collective_takes_the_processors_time_from_what_is_computed_meanwhile():
    x, y = torch.zeros(10**6), torch.zeros(1000)

    def step():
        work = dist.all_reduce(x, async_op=True)
        for _ in range(50):
            y.neg()
        work.wait()

    device = replace(FREE, overhead=1e-3)
    computing, moving = 50e-3, 4e6 / 1e9
    assert seconds(lambda: timed(step), device, 2, COMPUTER) == pytest.approx([computing + 1e-3 + moving / 2] * 2)
    apart = replace(COMPUTER, sum=None)
    assert seconds(lambda: timed(step), device, 2, apart) == pytest.approx([computing] * 2)


def test_a_measured_device_is_written_in_six_numbers_and_a_preset_is_one_with_free_python():
    device = ScriptDevice(1e11, 3e10, 1e-7, view=5e-6, call=7e-7, slow=8.0)
    read = parse_script_device(device.text)
    assert read.text == device.text == "1e+11:3e+10:1e-07:5e-06:7e-07:8"
    assert read.is_measured and not parse_script_device("a100").is_measured
    assert parse_script_device("A100").flops == DEVICES["A100"].flops
    for text in ("40e9:15e9:1e-6:1", "fast"):
        with pytest.raises(ValueError, match=r"(no device preset|cannot be read).*FLOP/s"):
            parse_script_device(text)

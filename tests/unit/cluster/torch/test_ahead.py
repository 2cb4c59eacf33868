"""On a GPU the host runs ahead: what is issued begins when its stream may begin, not when Python reaches it."""

import time
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import lockstep
from cluster.comm import RankLost
from cluster.faults import Faults
from cluster.network import Link, Network
from cluster.script_device import ScriptDevice
from cluster.torch import simulate

RANKS, WIDTH, ROWS = 4, 32, 1024
CPU = ScriptDevice(1e9, 1e18, 0.0)
GPU = replace(CPU, is_asynchronous=True)
NEARLY = partial(pytest.approx, rel=0.05)  # copies take time, too
PRODUCT = 2 * ROWS * WIDTH**2 / CPU.flops  # s that a layer computes in the forward pass


def network(gather):
    """Return a network on which a ring passes one layer's float32 weights on in `gather` seconds."""
    link = Link(0.0, (RANKS - 1) / RANKS * 4 * WIDTH**2 / gather)
    return Network(link, link)


def sharded(layers=2, **options):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)))
    for layer in model:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def forward():
    model, x = sharded(), torch.randn(ROWS, WIDTH)
    with torch.no_grad():
        model(x)  # the first pass also sets up the streams
        start = time.time()
        model(x)
        return time.time() - start


def seconds(program, device, gather, ranks=RANKS):
    return max(simulate(program, ranks, device=device, network=network(gather)).results)


@pytest.mark.parametrize("gather", [PRODUCT / 4, PRODUCT, 3 * PRODUCT])
def test_fsdp2_gathers_the_next_layer_while_a_layer_computes_on_a_gpu_and_not_on_a_cpu(gather):
    assert seconds(forward, GPU, gather) == NEARLY(gather + max(gather, PRODUCT) + PRODUCT)
    assert seconds(forward, CPU, gather) == NEARLY(2 * gather + 2 * PRODUCT)


def training(wrap=sharded, **options):
    def program():
        model = wrap(4, **options)
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.randn(ROWS, WIDTH)
        for step in range(4):
            if step == 2:
                start = time.time()
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        took = time.time() - start
        return took, [p.to_local() for p in model.parameters()]

    return program


def hybrid(layers, **options):
    return sharded(layers, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards")), **options)


HALF = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)


@pytest.mark.parametrize("wrap, options", [(sharded, {}), (sharded, {"mp_policy": HALF}), (hybrid, {})])
def test_running_ahead_changes_when_but_not_what(wrap, options):
    program = training(wrap, **options)
    ahead, behind = (simulate(program, RANKS, device=one, network=network(PRODUCT)) for one in (GPU, CPU))
    for (early, ours), (late, theirs) in zip(ahead.results, behind.results, strict=True):
        assert early < 0.9 * late
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_run_on_a_gpu_is_the_same_every_time():
    runs = [simulate(training(hybrid, mp_policy=HALF), RANKS, device="A100").trace for _ in range(2)]
    tables = [[column.tobytes() for column in [*run.spans.values(), *run.messages.values()]] for run in runs]
    assert tables[0] == tables[1]


def test_a_lost_rank_ends_the_others_also_where_only_a_side_stream_waits_for_it():
    with pytest.raises(RankLost, match=r"rank 2 was lost at 0\.004 s.*waits for it in"):
        simulate(training(hybrid, mp_policy=HALF), RANKS, device=GPU, faults=Faults(crash={2: 0.004}))


def read_by(name):
    return lambda x: getattr(x, name)()


METHODS = "item", "cpu", "tolist", "numpy", "__repr__", "__float__", "__bool__", "nonzero"
READS = {name: read_by(name) for name in METHODS} | {
    "a clock": lambda x: time.time(),
    "synchronize": lambda x: torch.cpu.synchronize(),
    "a barrier": lambda x: dist.barrier(),
}


def beside(read):
    """Return how long two equal products take on a GPU, in two streams, with `read` between them; one takes 1."""

    def program():
        dist.init_process_group("gloo")
        x, side = torch.ones(WIDTH, WIDTH), torch.cpu.Stream()
        read((x @ x).sum())
        with torch.cpu.stream(side):
            x @ x
        torch.cpu.current_stream().wait_stream(side)

    return simulate(program, 1, device=GPU).summary.seconds * GPU.flops / (2 * WIDTH**3)


@pytest.mark.parametrize("how", READS)
def test_a_host_that_reads_a_result_or_a_clock_is_ahead_no_longer(how):
    assert beside(lambda x: x) == NEARLY(1)
    assert beside(READS[how]) == NEARLY(2)


def test_lockstep_log_and_the_counters_of_an_optimizer_are_not_read_from_the_device():
    x = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([x])
    x.grad = torch.zeros(1)

    assert beside(lambda loss: lockstep.log(loss=loss)) == NEARLY(1)
    assert beside(lambda loss: optimizer.step()) == NEARLY(1)


def test_an_operation_of_a_side_stream_does_not_hold_up_the_default_stream():
    def program():
        x, side = torch.ones(WIDTH, WIDTH), torch.cpu.Stream()
        with torch.cpu.stream(side):
            for _ in range(10):
                x @ x
        x @ x
        event = torch.cpu.current_stream().record_event()
        first = event.query()
        side.synchronize()
        return first, time.time() * GPU.flops / (2 * WIDTH**3)

    assert simulate(program, 1, device=GPU).results == [(True, NEARLY(10))]
    assert simulate(program, 1, device=CPU).results == [(True, NEARLY(11))]


def test_a_side_stream_waits_for_events_and_works_through_its_collectives_in_order():
    def program():
        dist.init_process_group("gloo")
        x, side = torch.ones(WIDTH, WIDTH), torch.cpu.Stream()
        y = x @ x
        side.wait_stream(torch.cpu.current_stream())
        with torch.cpu.stream(side):
            dist.all_reduce(y)
            z = y @ y  # after the collective, while the default stream goes on
        for _ in range(5):
            x @ x
        torch.cpu.current_stream().wait_stream(side)
        return float(z[0, 0]), time.time()

    product = 2 * WIDTH**3 / GPU.flops
    gather = 3 * product
    for value, took in simulate(program, RANKS, device=GPU, network=network(gather)).results:
        assert value == (WIDTH * RANKS) ** 2 * WIDTH
        assert took == pytest.approx(product + 2 * gather + product, rel=0.1), "an all-reduce is two gathers, and sums"


def test_sleep_lets_the_device_work_meanwhile():
    def program():
        x = torch.ones(WIDTH, WIDTH)
        x @ x
        time.sleep(2 * WIDTH**3 / CPU.flops / 4)
        return time.time() * CPU.flops / (2 * WIDTH**3)

    assert [simulate(program, 1, device=one).results[0] for one in (GPU, CPU)] == NEARLY([1.0, 1.25])

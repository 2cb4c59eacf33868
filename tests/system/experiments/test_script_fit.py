"""The fit of this machine for scripts: what is fitted comes out, and a script takes it by name."""

import numpy as np
import pytest
import torch

from cluster.network import Link, Network
from cluster.script_device import ScriptDevice, parse_script_device
from experiments.measure import script_fit, script_times
from experiments.measure.script_programs import PROGRAMS
from experiments.measure.script_work import StepWork, count_work
from experiments.specification import this_machine
from experiments.specification.script import ScriptExperiment
from experiments.specification.this_machine import Fit
from tests.quotes import quote

TRUE = ScriptDevice(8e10, 2e10, 1e-6, view=4e-6, call=6e-7, slow=6.0)
NETWORK = Network(Link(1e-4, 2e9), Link(1e-4, 2e9), sum=Link(3e-4, 1e9))
MADE = Fit(device="3e10:2e10:2e-6", network="1e-4:1e9:0", machine="a machine", moment="2026-11-29T04:00+00:00")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "home"))
    return tmp_path / "home"


def works(count=12):
    """Return steps in different proportions of products, moves, slow operations, views and calls."""
    draw = np.random.default_rng(0)
    found = {}
    for number in range(count):
        flops, moved, slow, views, calls = draw.lognormal(0.0, 1.0, 5)
        rows = [(1e8 * flops, 1e4, 0)] * 20 + [(1e3, 4e6 * moved, 0)] * 20 + [(1e3, 1e5 * slow, 1)] * 30
        found[str(number)] = StepWork(
            np.array(rows + [(10, 40, 0)] * (60 * number)), int(900 * views), int(9_000 * calls)
        )
    return found


def test_the_six_numbers_of_a_device_are_found_again_from_the_times_of_steps():
    found = script_fit.fit_device(works(), {name: work.seconds(TRUE) for name, work in works().items()})
    for name in ("flops", "bandwidth", "overhead", "view", "call", "slow"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=0.02), name


def test_one_step_that_was_disturbed_does_not_move_the_others():
    took = {name: work.seconds(TRUE) for name, work in works(30).items()}
    took["3"] *= 5
    assert script_fit.fit_device(works(30), took).call == pytest.approx(TRUE.call, rel=0.1)


def test_the_numbers_of_gloos_network_are_found_again_from_its_exchanges():
    rows = []
    for nbytes in (4.0, 16384.0, 1048576.0, 4194304.0):
        rows.append(("message", nbytes, 1e-4 + nbytes / 2e9))
        rows += [(what, nbytes, 3e-4 + many * nbytes / 1e9) for what, many in script_fit.RINGS.items()]
        rows.append(("overlapped", nbytes, 3e-4 + 0.5 * 2 * nbytes / 1e9))
    found = script_fit.fit_network(rows)
    link, total = found.between, found.sum
    assert (link.latency, link.bandwidth) == pytest.approx((1e-4, 2e9), rel=0.01)
    assert (total.latency, total.bandwidth) == pytest.approx((3e-4, 1e9), rel=0.01)
    assert link.per_byte * link.bandwidth == pytest.approx(0.5, rel=0.05)


def test_the_work_of_a_step_is_counted_and_is_what_the_simulated_cluster_prices():
    from cluster.torch import simulate

    program = PROGRAMS["small_mlp"]
    work = count_work(program)
    products = (work.operations[:, 0] >= 2 * 32 * 128 * 10).sum()
    assert products >= 8, "3 layers forward, 3 of weights and 2 of inputs backward"

    def steps():
        import time

        step, times = program(), []
        for _ in range(5):
            start = time.time()
            step()
            times.append(time.time() - start)
        return times[-1]

    assert simulate(steps, 1, device=TRUE).results[0] == pytest.approx(work.seconds(TRUE), rel=0.02)


def test_two_processes_measure_every_program_and_exchange_and_every_program_is_counted(monkeypatch):
    counted = []
    monkeypatch.setattr(script_fit, "count_work", lambda program: counted.append(count_work(program)) or counted[-1])
    few = {"STEPS": 1, "ROUNDS": 1, "WARM_UP": 1, "NUMBERS": (8, 1 << 19), "EXCHANGES": 4, "FEWER": 4}
    for name, value in few.items():
        monkeypatch.setattr(script_times, name, value)
    monkeypatch.setattr("cluster.real.processes.METHOD", "fork")  # so that ranks measure as little
    monkeypatch.setattr("cluster.real.processes.PRELOADED", [])
    torch.set_num_threads(1)
    made = script_fit.fit_scripts()
    assert [name for name, *_ in made.programs] == list(PROGRAMS)
    assert all(took > 0 and fitted > 0 for _, took, fitted in made.programs)
    assert parse_script_device(made.device).is_measured
    for (name, *_), work in zip(made.programs, counted, strict=True):
        assert len(work.operations) > 20 and work.views > 10 and work.calls > 50, name


def test_here_is_what_scripts_cost_on_this_machine(home):
    this_machine.save(MADE.model_copy(update={"script_device": TRUE.text, "script_network": NETWORK.text}))
    experiment = ScriptExperiment("", "train.py", device="here", network="here")
    assert (experiment.device, experiment.network) == (TRUE.text, NETWORK.text)
    assert experiment.machines.processor.call == TRUE.call


def test_a_fit_without_scripts_says_that_it_has_to_be_made_again(home):
    this_machine.save(MADE)
    with pytest.raises(ValueError, match=quote("device … without scripts … lockstep fit")):
        ScriptExperiment("", "train.py", device="here")

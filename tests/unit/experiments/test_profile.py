"""The profiler: whatever the watch, every layer is charged for its own passes."""

import itertools

import numpy as np
import pytest

import workloads
from cluster.devices import DEVICES, Bill, Device
from experiments.execution.run import run
from experiments.measure.profile import measure_profile, price_profile
from experiments.specification.experiment import Experiment
from kernels import keep, meter_kernels
from theory.partition_pipedream import plan_of
from theory.profile import load, save


def digits(**settings):
    module = workloads.find("digits")
    return module.build(module.Settings(**settings))


DEEP = digits(model="residual", depth=3, width=16)
BATCH = DEEP.batch(np.arange(8))


def test_a_layer_is_charged_for_what_its_passes_take_and_the_last_one_for_the_loss():
    ticks = itertools.count()  # a watch that is one further whenever it is read
    profile = measure_profile(DEEP, BATCH, passes=range(3), clock=lambda: next(ticks))
    assert profile.forward == (1, 1, 1, 1, 2)
    assert profile.backward == (1, 1, 1, 1, 1)


def test_a_pass_that_is_disturbed_does_not_change_the_median():
    now, step = 0, 1

    def clock():
        nonlocal now
        now += step
        return now

    def passes():
        nonlocal step
        for disturbance in (1, 1000, 1, 1, 1000):
            step = disturbance
            yield

    assert measure_profile(DEEP, BATCH, passes(), clock).times == (2, 2, 2, 2, 3)


def test_sizes_are_those_of_what_crosses_a_boundary_and_of_the_parameters():
    for profile in (measure_profile(DEEP, BATCH, range(1)), price_profile(DEEP, BATCH, DEVICES["laptop"])):
        assert profile.activations == (*(4 * 8 * numbers for numbers in DEEP.boundaries(5)), 4 * 8 * 10)
        assert profile.weights == tuple(4 * part.parameters for part in DEEP.split(5))
        assert sum(profile.weights) == 4 * DEEP.parameters


def test_times_on_this_machine_are_times():
    assert all(seconds > 0 for seconds in measure_profile(DEEP, BATCH, range(2)).times)


def test_prices_are_the_same_every_time_and_the_same_for_equal_layers():
    first = price_profile(DEEP, BATCH, DEVICES["laptop"])
    assert first == price_profile(DEEP, BATCH, DEVICES["laptop"])
    assert len(set(first.times[1:4])) == 1
    assert first.backward[0] > first.backward[4]  # 64 inputs against 16


@pytest.mark.parametrize("settings", [{"model": "residual", "depth": 3}, {"model": "cnn", "channels": 2}])
def test_the_layers_together_cost_what_the_simulated_cluster_charges_for_a_mini_batch(settings):
    class Seconds:
        total = 0.0

        def charge(self, kernel, flops, nbytes):
            self.total += device.seconds(flops, nbytes)

    device, bill, workload = Device(1e9, 1e9, 1e-5), Seconds(), digits(**settings)
    batch = workload.batch(np.arange(8))
    with meter_kernels(bill):
        workload.gradient(workload.start(0), batch)
    assert sum(price_profile(workload, batch, device).times) == pytest.approx(bill.total, rel=1e-12)


def test_memory_that_is_kept_while_a_device_is_priced_takes_no_time():
    bill = Bill(DEVICES["laptop"])
    with meter_kernels(bill):
        keep(np.zeros(1000))
    assert bill() == 0


def test_a_faster_device_makes_every_layer_faster():
    slow, fast = (price_profile(DEEP, BATCH, Device(rate, rate, 1 / rate)) for rate in (1e6, 1e9))
    assert all(a > b for a, b in zip(slow.times, fast.times, strict=True))


def test_layers_are_named_by_number_kind_and_outputs():
    assert price_profile(DEEP, BATCH, DEVICES["laptop"]).layers[::4] == ("0 dense 16", "4 dense 10")
    cnn = digits(model="cnn", channels=2)
    assert price_profile(cnn, cnn.batch(np.arange(2)), DEVICES["laptop"]).layers[0] == "0 convolution 2x4x4"


def test_a_profile_survives_its_file_to_the_last_digit(tmp_path):
    profile = price_profile(DEEP, BATCH, DEVICES["laptop"])
    save(profile, tmp_path / "profile.csv")
    assert load(tmp_path / "profile.csv") == profile


def test_a_workload_without_layers_is_refused():
    bowl = workloads.find("quadratic")
    workload = bowl.build(bowl.Settings())
    with pytest.raises(ValueError, match=r"^quadratic has no layers to cut into stages"):
        measure_profile(workload, workload.batch(np.arange(2)))


def test_a_pipeline_on_the_simulated_cluster_is_as_slow_as_the_profile_s_slowest_stage_and_its_update():
    model = {"model": "residual", "depth": 6, "width": 64}
    workload = digits(**model)
    profile = price_profile(workload, workload.batch(np.arange(32)), DEVICES["laptop"])

    def period(cuts):
        first, last = (
            run(Experiment.of({"algorithm": "pipedream", "workers": 2, "network": "ideal", "steps": steps,
                               "cuts": cuts, "evaluations": 1, **model})).summary["seconds"]
            for steps in (10, 20)
        )  # fmt: skip
        return (last - first) / 10

    for cuts in ((4, 4), (7, 1)):
        predicted = plan_of(profile, cuts, float("inf")).period
        assert predicted < period(",".join(map(str, cuts))) < 1.3 * predicted

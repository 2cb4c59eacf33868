import pytest

from cluster.devices import DEVICES, Device, parse_device
from cluster.network import NETWORKS, Link, Network, parse_network


def test_a_kernel_takes_the_longer_of_arithmetic_and_memory_and_the_call():
    device = Device(flops=10.0, bandwidth=100.0, overhead=0.5)
    assert device.seconds(20, 100) == 0.5 + 2
    assert device.seconds(10, 300) == 0.5 + 3


def test_every_generation_of_gpus_is_quicker_in_arithmetic_and_in_memory():
    order = [DEVICES[name] for name in ("laptop", "Xeon", "K40", "P100", "V100", "A100", "H100", "B200")]
    for rate in (lambda d: d.rate(4), lambda d: d.rate(2), lambda d: d.bandwidth):
        rates = [rate(device) for device in order]
        assert rates == sorted(rates)


def test_tensor_cores_multiply_8_to_28_times_as_fast_as_float32_and_older_devices_at_most_twice():
    gain = {name: device.rate(2) / device.rate(4) for name, device in DEVICES.items()}
    with_tensor_cores = {name for name, times in gain.items() if 7.9 < times < 29}
    assert with_tensor_cores == {"V100", "A100", "H100", "H200", "B200", "MI300X"}
    assert gain.pop("TPUv5p") == 6  # passes for a product of float32
    assert all(1 <= times <= 2 for name, times in gain.items() if name not in with_tensor_cores)
    assert Device(1e9, 1e9, 0.0).rate(2) == 1e9, "a device of one's own has one rate"


@pytest.mark.parametrize("preset", [*DEVICES.values(), *NETWORKS.values()])
def test_every_preset_says_where_its_numbers_come_from(preset):
    assert preset.source


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - {"ideal"}))
def test_every_network_but_the_ideal_one_charges_the_sender_a_part_of_the_one_way_time(name):
    for link in (NETWORKS[name].between, NETWORKS[name].within):
        assert 0 < link.overhead < link.alpha / 2
    ideal = NETWORKS["ideal"].between
    assert (ideal.overhead, ideal.alpha) == (0, 0)


def test_a_device_or_network_of_ones_own_is_read_as_it_is_spelled():
    device = Device(4e10, 1.5e10, 1e-6)
    assert parse_device(device.text) == Device(4e10, 1.5e10, 1e-6, "as given")
    link = Link(4e-5, 1.5e9, 1e-5)
    assert parse_network(link.text) == Network(link, link, source="as given")
    assert parse_device("K40") is DEVICES["K40"] and parse_network("10GbE") is NETWORKS["10GbE"]


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "a:b:c", "1:-2:3", "nan:1:1", "inf:1:1"])
@pytest.mark.parametrize(("parse", "kind"), [(parse_device, "device"), (parse_network, "network")])
def test_numbers_that_do_not_read_are_refused_with_the_form(parse, kind, text):
    with pytest.raises(ValueError, match=f"{kind}.*write .*example"):
        parse(text)


def test_rates_of_zero_are_refused():
    with pytest.raises(ValueError, match="would never finish"):
        parse_device("0:1:1")
    with pytest.raises(ValueError, match="no message would ever arrive"):
        parse_network("1:0:1")

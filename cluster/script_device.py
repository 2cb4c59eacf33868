"""The devices on which the ranks of a script compute, with the cost of torch operations and Python calls.

    operation                 overhead + max(FLOPs / flops, bytes / bandwidth)    16-bit products by `half`
    one that computes much    overhead + bytes slow / bandwidth                   such as a softmax
    one that returns a view   view
    Python                    call, for each call of a Python function

The devices of `cluster.devices` give the first line only: Python and views are free, and no operation counts as slow.
"""

from dataclasses import asdict, dataclass

from cluster.devices import DEVICES, Device, parse_device
from knobs import match_name, numbers

FORM = "FLOP/s:bytes/s:overhead, and for a measured machine :view:call:factor (times in s)"


@dataclass(frozen=True)
class ScriptDevice(Device):
    """A device with prices for what a script does besides arithmetic."""

    view: float = 0.0  # s per operation that only returns a view
    call: float = 0.0  # s per call of a Python function
    slow: float = 1.0  # factor by which much arithmetic per number takes longer than moving the number

    @property
    def is_measured(self) -> bool:
        """True if Python calls or views take time. Only measured devices have times for these."""
        return bool(self.view or self.call)

    def of_operation(self, flops: float, nbytes: float, is_slow: bool, itemsize: int = 4) -> float:
        """Return the time of an operation, in s. For matrix products, `itemsize` gives the bytes per number."""
        return self.seconds(flops, nbytes * self.slow if is_slow else nbytes, itemsize)

    def of_view(self) -> float:
        """Return the time of an operation that only returns a view, in s."""
        return self.view

    def of_python(self, calls: int) -> float:
        """Return the time that Python takes for this many function calls, in s."""
        return calls * self.call

    @property
    def text(self) -> str:
        """The device as text that `parse_script_device` can parse."""
        return f"{super().text}:{self.view:.4g}:{self.call:.4g}:{self.slow:.4g}"


def parse_script_device(text: str) -> ScriptDevice:
    """Return the preset called `text`, or a device given in three or six numbers. Raise ValueError otherwise."""
    if match_name(text, DEVICES) not in DEVICES and text.count(":") != 2:
        flops, bandwidth, overhead, view, call, slow = numbers(text, "device", FORM, (6,), DEVICES)
        basic = parse_device(f"{flops}:{bandwidth}:{overhead}")
        return ScriptDevice(**asdict(basic), view=view, call=call, slow=max(slow, 1.0))
    return with_free_python(parse_device(text))


def with_free_python(device: Device) -> ScriptDevice:
    """Return `device` as a ScriptDevice on which Python and views take no time. Return a ScriptDevice unchanged."""
    return device if isinstance(device, ScriptDevice) else ScriptDevice(**asdict(device))

"""The devices on which ranks of the simulated cluster compute, and presets with their sources.

A kernel takes overhead + max(FLOPs / flops, bytes / bandwidth) seconds: the roofline, plus the cost of a call.

The laptop's rates are sustained ones. Those of servers and GPUs are peaks from the vendors' data sheets; real kernels
stay below them. The first rate is for float32 without tensor cores, the second for products of 16-bit matrices without
sparsity: on tensor cores from the V100 on. The overhead of a kernel call is our choice: 5 us, typical of a launch on a
GPU, and 1 us for a call on a CPU.

    Xeon    Intel ARK, E5-2690 v4: 14 cores at 2.6 GHz, two 8-wide FMA units each (32 FLOP a cycle); 76.8 GB/s
    K40     NVIDIA Tesla K40 board specification: 4.29 TFLOP/s at the base clock; 288 GB/s
    P100    NVIDIA Tesla P100 data sheet, SXM2: 10.6 and 21.2 TFLOP/s; 732 GB/s
    V100    NVIDIA V100 data sheet, SXM2: 15.7 and 125 TFLOP/s; 900 GB/s
    A100    NVIDIA A100 data sheet, SXM, 80 GB: 19.5 and 312 TFLOP/s; 2,039 GB/s
    H100    NVIDIA H100 data sheet, SXM: 67 and 989 TFLOP/s; 3.35 TB/s
    H200    NVIDIA H200, SXM, of 2023: the processor of the H100, 67 and 989 TFLOP/s; 4.8 TB/s
    B200    NVIDIA, Blackwell architecture technical brief of 2024, HGX B200 at 1,000 W: 80 and 2,250 TFLOP/s; 8 TB/s
    MI300X  AMD Instinct MI300X, of 2023: 304 compute units at 2.1 GHz, 256 and 2,048 FLOP a cycle (163.4 and 1,307.4
            TFLOP/s); 5.3 TB/s
    TPUv5p  Google Cloud, TPU v5p: 459 TFLOP/s in bf16; 2,765 GB/s. A TPU multiplies float32 matrices in six passes over
            bf16 parts (Henry, Tang & Heinecke, arXiv:1904.06376), so float32 is counted as a sixth of that

The last four, and all 16-bit rates, were checked in November 2026 against quotations of these sheets, not against the
sheets themselves.
"""

from dataclasses import dataclass, replace

from knobs import match_name, numbers


@dataclass(frozen=True)
class Device:
    """A device: its arithmetic rates, its memory bandwidth, and the overhead of a kernel call."""

    flops: float  # FLOP/s in float32
    bandwidth: float  # bytes/s of its memory
    overhead: float  # s per kernel call
    source: str = ""
    half: float = 0.0  # FLOP/s of products of 16-bit matrices; 0: no faster than in float32
    is_asynchronous: bool = False  # a GPU or TPU: the host only queues kernels, and runs ahead of them

    def seconds(self, flops: float, nbytes: float, itemsize: int = 4) -> float:
        """Return the time of one kernel call, in s. For matrix products, `itemsize` gives the bytes per number."""
        return self.overhead + max(flops / self.rate(itemsize), nbytes / self.bandwidth)

    def rate(self, itemsize: int) -> float:
        """Return the FLOP/s of matrix products, given the bytes per number."""
        return self.half or self.flops if itemsize == 2 else self.flops

    @property
    def text(self) -> str:
        """The device as text that `parse_device` can parse."""
        return f"{self.flops:.4g}:{self.bandwidth:.4g}:{self.overhead:.4g}"


class Bill:
    """A stopwatch that measures nothing, but adds up how long kernels would take on `device`.

    Calling it returns the time since the last call, in s.
    """

    def __init__(self, device: Device):
        self.device, self.seconds = device, 0.0

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Add the price of a kernel call."""
        self.seconds += self.device.seconds(flops, nbytes, itemsize)

    def keep(self, kind: str, nbytes: int) -> None:
        """Add nothing: holding memory takes no time."""

    def __call__(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds


GPUS = {
    "K40": Device(4.29e12, 288e9, 5e-6, "NVIDIA Tesla K40 board specification: peak"),
    "P100": Device(10.6e12, 732e9, 5e-6, "NVIDIA Tesla P100 data sheet, SXM2: peak", 21.2e12),
    "V100": Device(15.7e12, 900e9, 5e-6, "NVIDIA V100 data sheet, SXM2: peak", 125e12),
    "A100": Device(19.5e12, 2039e9, 5e-6, "NVIDIA A100 data sheet, SXM 80 GB: peak", 312e12),
    "H100": Device(67e12, 3.35e12, 5e-6, "NVIDIA H100 data sheet, SXM: peak", 989e12),
    "H200": Device(67e12, 4.8e12, 5e-6, "NVIDIA H200 of 2023, SXM: peak", 989e12),
    "B200": Device(80e12, 8e12, 5e-6, "NVIDIA Blackwell technical brief of 2024, HGX B200 at 1,000 W: peak", 2.25e15),
    "MI300X": Device(
        304 * 2.1e9 * 256, 5.3e12, 5e-6, "AMD Instinct MI300X of 2023, 304 units at 2.1 GHz: peak", 304 * 2.1e9 * 2048
    ),
}
DEVICES: dict[str, Device] = {
    "laptop": Device(40e9, 15e9, 1e-6, "one core, sustained: our choice"),
    "Xeon": Device(14 * 2.6e9 * 32, 76.8e9, 1e-6, "Intel ARK, E5-2690 v4, all 14 cores: peak"),
    **{name: replace(gpu, is_asynchronous=True) for name, gpu in GPUS.items()},
    "TPUv5p": Device(459e12 / 6, 2765e9, 5e-6, "Google Cloud, TPU v5p: peak; float32 in six passes", 459e12, True),
}


def parse_device(text: str) -> Device:
    """Return the preset `text`, or a device given in numbers, e.g. "40e9:15e9:1e-6". Raise ValueError otherwise."""
    if (name := match_name(text, DEVICES)) in DEVICES:
        return DEVICES[name]
    form = "FLOP/s:bytes/s:overhead, for example 40e9:15e9:1e-6 (the last in s)"
    flops, bandwidth, overhead = numbers(text, "device", form, presets=DEVICES)
    if not flops or not bandwidth:
        raise ValueError(f"device: {text} would never finish a kernel; use FLOP/s and bytes/s above 0.")
    return Device(flops, bandwidth, overhead, "as given")

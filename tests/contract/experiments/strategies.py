"""Random valid experiments, drawn from what the knobs themselves declare."""

import functools

from hypothesis import strategies as st

import algorithms
import workloads
from algorithms.compression import COMPRESSIONS, find
from cluster.devices import DEVICES
from cluster.faults import JITTERS
from cluster.network import NETWORKS
from experiments.specification.experiment import Experiment, coding_settings

SPECIAL = (
    "algorithm",
    "compression",
    "coding",
    "workload",
    "settings",
    "data",
    "network",
    "device",
    "jitter",
    "slow",
    "pause",
    "crash",
    "workers",
)


def of_knob(schema):
    """Values that one knob accepts; None is `leave it at its default`."""
    options = schema.get("anyOf", [schema])
    return st.one_of(st.none(), *map(_of_type, options))


def _of_type(schema):
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    open_low, open_high = "exclusiveMinimum" in schema, "exclusiveMaximum" in schema
    kind = schema.get("type")
    if kind == "integer":
        low, high = low if low is not None else -(10**6), high if high is not None else 10**6
        return st.integers(int(low) + open_low, int(high) - open_high)
    if kind == "number":
        bounds = {"exclude_min": open_low and low is not None, "exclude_max": open_high and high is not None}
        return st.floats(low, high, allow_nan=False, allow_infinity=False, **bounds)
    return {"boolean": st.booleans(), "null": st.none()}.get(kind, st.none())


@functools.cache  # a schema takes longer than the draw
def of_knobs(kind, without=()):
    """Dictionaries of values for the knobs of `kind`."""
    properties = kind.model_json_schema().get("properties", {})
    chosen = {name: of_knob(schema) for name, schema in properties.items() if name not in without}
    return st.fixed_dictionaries(chosen).map(lambda values: {k: v for k, v in values.items() if v is not None})


@st.composite
def experiments(draw):
    """Experiments that may be, whether or not anybody would run them."""
    algorithm, workload = draw(st.sampled_from(algorithms.names())), draw(st.sampled_from([*workloads.WORKLOADS]))
    compresses = algorithms.find(algorithm).compresses
    fitting = [name for name in COMPRESSIONS if compresses and (compresses != "push" or find(name).pushable)]
    compression = draw(st.sampled_from(["none", *fitting]))
    workers = draw(st.integers(1, 64))
    values = {
        "algorithm": algorithm,
        "workload": workload,
        "compression": compression,
        "workers": workers,
        "network": draw(st.sampled_from([*NETWORKS, "4e-5:1.5e+09:1e-05"])),
        "device": draw(st.sampled_from([*DEVICES, "4e+10:1.5e+10:1e-06"])),
        "jitter": draw(st.sampled_from(list(JITTERS))),
        "slow": ",".join(
            f"{r}:{f}" for r, f in draw(st.dictionaries(st.integers(0, workers - 1), _factors(), max_size=3)).items()
        ),
        "crash": ",".join(
            f"{r}:{t}{draw(st.sampled_from(['', '-10', '-12.5']))}"
            for r, t in draw(st.dictionaries(st.integers(0, workers - 1), _factors(), max_size=2)).items()
        ),
        **draw(of_knobs(Experiment, SPECIAL)),
        **draw(of_knobs(algorithms.find(algorithm).Settings)),
        **draw(of_knobs(coding_settings(compression))),
        **draw(of_knobs(workloads.find(workload).Settings)),
    }
    if draw(st.booleans()) and any(values.get(name) for name in ("epochs", "seconds", "target_loss")):
        values.pop("steps", None)
    return Experiment.of(values)


def _factors():
    return st.integers(1, 99).map(lambda n: n / 10)

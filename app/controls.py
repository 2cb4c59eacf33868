"""Controls: the widgets of an experiment, derived from the fields of Experiment and of all Settings it has.

A field's type and bounds choose the widget, its unit the way values are written, its description the help. Nothing
here knows an algorithm by name. The values live in the session under the experiment's own flat names, so that the
page's address is the experiment's own query, the same that the command line prints and reads.
"""

from __future__ import annotations

import math
import types
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from app import helps
from experiments import catalogue, naming, units
from experiments.experiment import (
    NESTED,
    OWN,
    PAGE,
    REAL_DEFAULTS,
    Experiment,
    coding_settings,
    default_rate,
    real_defaults,
    settings_of,
    starting_point,
)
from experiments.fault_settings import FaultSetting
from experiments.measure import this_machine
from knobs import Knobs, in_force, local

WORDS = {
    "batch": "batch size",
    "per_node": "ranks per node",
    "slow": "slow ranks",
    "pause": "paused ranks",
    "crash": "lost ranks",
}
"""Fields of Experiment whose name alone says too little."""

SELF = "this machine's own"
MEANING = {
    "network": "messages take as long as they really do between processes here; nothing is emulated",
    "device": "a rank computes as fast as this machine does; nothing is emulated",
}
"""What OWN means, by field: offered on real clusters only."""

DELAY = ("latency",)
PLACE = ("cluster", "network", "device", "jitter")
MORE = ("per_node", "rank_memory", "bandwidth", "collective", "slow", "pause", "crash")
BUDGET = ("steps", "seed")
MORE_BUDGET = ("epochs", "seconds", "target_loss", "evaluations", "precision")

FARTHEST = 64  # times the default is as far as a slider goes; links and the command line go to the bound
_BINARY = [2**n for n in range(13)] + [3 * 2**n for n in range(12)]
_DECIMAL = [m * 10**n for n in range(7) for m in (1, 2, 5)]
_NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)  # where a share that must stay below 1 stops
_SMALLEST = {"s": 1e-6, "bytes/s": 1e6, "bytes": 1e3, "epochs": 0.1}  # the first stop of a scale, by unit


@dataclass(frozen=True)
class Control:
    """One field as a widget: how it is called, what it offers, what it starts with.

    kind is "choice" (few words), "list" (many), "switch", "slider" (a short range), "scale" (stops that grow),
    "number" or "text".
    """

    owner: type[Knobs]
    name: str
    kind: str
    help: str
    """What it is, in a line, as the command line prints it."""
    unit: str
    default: Any
    options: tuple = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    delay: bool = False

    @property
    def about(self) -> str:
        """What it does, and what happens when it is turned up."""
        return helps.text(self.owner, self.name) or f"{self.help[:1].upper()}{self.help[1:]}."

    @property
    def label(self) -> str:
        """The name as a word: "Learning rate", and what it counts where the values do not say it."""
        word = spoken(self.name)
        word = f"`{word}`" if "_" in word else word
        counted = f" ({self.unit})" if self.unit and self.unit not in ("s", "bytes/s", self.name) else ""
        return word[:1].upper() + word[1:] + counted

    def words(self, value: Any) -> str:
        """Return a value as the reader sees it."""
        if value is None:
            return "preset" if "preset" in self.help else "no limit" if self.help.startswith("stop") else "auto"
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str):
            return SELF if value == OWN else value or "none"
        if self.unit == "s":
            return units.seconds(value)
        if self.unit == "bytes/s":
            return units.rate(value)
        return units.count(value) if self.whole else units.number(value)


def spoken(name: str) -> str:
    """Return a field's name in words; one of the literature, like n_push, stays as it is."""
    literal = min(map(len, name.split("_"))) == 1
    return WORDS.get(name) or (name if literal else name.replace("_", " "))


@cache
def control(owner: type[Knobs], name: str) -> Control:
    """Return the widget for field `name` of `owner`."""
    field = owner.model_fields[name]
    extra = field.json_schema_extra or {}
    bounds = {
        key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le", "lt") if hasattr(rule, key)
    }
    united = get_origin(field.annotation) in (Union, types.UnionType)
    kinds = list(get_args(field.annotation)) if united else [field.annotation]
    optional = type(None) in kinds
    kinds = [kind for kind in kinds if kind is not type(None)]
    common = {
        "owner": owner,
        "name": name,
        "help": field.description or "",
        "unit": extra.get("unit", ""),
        "delay": bool(extra.get("delay")),
        "default": field.default,
        "low": bounds.get("ge", bounds.get("gt")),
        "high": bounds.get("le", bounds.get("lt")),
    }
    if owner is Experiment and name in catalogue.CHOICES:
        return Control(kind="list", options=catalogue.CHOICES[name], **common)
    if get_origin(kinds[0]) is Literal:
        options = tuple(option for kind in kinds for option in get_args(kind))
        return Control(kind="choice" if len(options) <= 3 else "list", options=options, **common)
    if kinds[0] is bool:
        return Control(kind="switch", **common)
    if get_origin(kinds[0]) is tuple or issubclass(kinds[0], str | FaultSetting):
        return Control(kind="text", **common)
    whole, low, high = int in kinds and float not in kinds, common["low"], common["high"]
    short = None not in (low, high) and not optional
    if short and whole and high - low <= 40:
        return Control(kind="slider", whole=True, **common)
    if short and not whole and high == 1 and "lt" in bounds and field.default > 0.99:
        return Control(kind="scale", options=tuple(sorted({*_NEAR_ONE, field.default})), **common)
    if short and not whole and low >= 0 and high <= 1 and "gt" not in bounds:
        return Control(kind="slider", **common | {"high": high - 0.01 * ("lt" in bounds)})
    if whole and low == 0 and not optional:
        return Control(kind="number", whole=True, **common)
    stops = tuple(x for x in _stops(whole, "ge" in bounds, **common) if "lt" not in bounds or x < high)
    return Control(kind="scale", whole=whole, options=(None, *stops) if optional else stops, **common)


def _stops(
    whole: bool, closed: bool, default: Any, unit: str, low: float | None, high: float | None, **_: Any
) -> tuple:
    """Return where a scale stops: 1, 2, 5, 10 ... or powers of two, around the default and within the bounds."""
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if whole:
        series = sorted(_BINARY) if default in _BINARY else _DECIMAL
        stops = [n for n in series if low <= n <= min(high, FARTHEST * (default or 10_000))]
    else:
        least = default / 1000 if default else _SMALLEST.get(unit, 1e-3)
        most = min(high, default * 1000 if default else least * 1e7)
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        stops = [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
        stops = [x for x in stops if low < x and least * 0.999 <= x <= most]
        if low == 0 and closed:
            stops.insert(0, 0.0)
    return tuple(sorted({*stops} if default is None else {*stops, default}))


def reaching(one: Control, value: float) -> Control:
    """Return the scale of `one` with more stops if need be: it reaches from a tenth of `value` to ten times as much."""
    stops = _stops(one.whole, False, value, one.unit, one.low, one.high)
    return replace(one, options=tuple(sorted({*one.options, *(x for x in stops if value <= 10.01 * x <= 101 * value)})))


def owners(algorithm: str, compression: str, workload: str) -> dict[str, type[Knobs]]:
    """Return the class that has each setting, by flat name. A name that two have is one knob of both.

    Settings that name files of the machine are left out: a reader of this page need not be its owner.
    """
    own = {name: Experiment for name in Experiment.model_fields if name not in NESTED}
    kinds = reversed(settings_of(algorithm, compression, workload))
    return {**{name: kind for kind in kinds for name in kind.model_fields if name not in local(kind)}, **own}


def compresses(algorithm: str) -> bool:
    """Whether this algorithm averages gradients, which may be compressed."""
    return bool(catalogue.ALGORITHMS[algorithm].declaration.compresses)


def whole_batch() -> bool:
    """Whether a step of the chosen algorithm takes all samples, so that there is no batch to choose."""
    return catalogue.ALGORITHMS[st.session_state["algorithm"]].declaration.whole_batch


def alone(algorithm: str) -> bool:
    """Whether this algorithm trains on one worker only."""
    return catalogue.ALGORITHMS[algorithm].declaration.defaults.get("workers") == 1


def draw(one: Control, refused: str = "", on_change=None) -> None:
    """Put the widget of `one` on the page if it is in force. Its value lives in the session, under its name.

    `refused` says why the cluster cannot obey it: it is disabled, unless it has a value that must be taken back.
    """
    if not in_force(one.owner, one.name, st.session_state) or (one.name == "batch" and whole_batch()):
        return
    value = st.session_state.setdefault(one.name, one.default)
    common = {
        "key": one.name,
        "help": one.about + (f"\n\nNot on this cluster: {refused}" if refused else ""),
        "disabled": bool(refused) and value == real_defaults(_cluster()).get(one.name, one.default),
        "persist_state": "session",
        "on_change": partial(_take, one.name) if refused else on_change,
    }
    match one.kind:
        case "choice":
            st.segmented_control(one.label, one.options, required=True, width="stretch", **common)
        case "list":
            common["help"] += _sources(one.name)
            st.selectbox(one.label, _offered(one, value), format_func=lambda name: _told(one.name, name), **common)
        case "switch":
            st.toggle(one.label, **common)
        case "slider":
            whole = {"step": 1} if one.whole else {"step": 0.01, "format": "%.2f"}
            high = max(_typed(one, one.high), value)  # a link may ask for 0.995
            st.slider(one.label, _typed(one, one.low), high, **whole, **common)
        case "scale":
            stops = one.options if value in one.options else _with(one.options, value)
            st.select_slider(one.label, stops, format_func=one.words, **common)
        case "number":
            high = min(one.high or 2**53, 2**53)
            st.number_input(one.label, int(one.low), int(high), step=1, **common)
        case "text":
            st.text_input(one.label, placeholder=one.help.rpartition("for example ")[2], **common)


def _take(name: str) -> None:
    """Take over a value from a widget that is disabled next; Streamlit would discard what it reports."""
    st.session_state[name] = st.session_state[name]


def _with(stops: tuple, value: Any) -> tuple:
    """Return the stops of a scale and one more: a value that came with a link."""
    return (*(s for s in stops if s is None), *sorted({*(s for s in stops if s is not None), value}))


def _typed(one: Control, value: float) -> float | int:
    return int(value) if one.whole else float(value)


def _offered(one: Control, value: Any) -> tuple:
    """Return the options of a list, and what came with a link; of network and device also this machine's.

    A real cluster has its own, the simulated one what was fitted.
    """
    first, fit = (), None
    if one.name in REAL_DEFAULTS:
        first = (OWN,) if real_defaults(_cluster()) else ()
        fit = None if first else this_machine.trusted()
    return tuple(dict.fromkeys((*first, *one.options, *((getattr(fit, one.name),) if fit else ()), value)))


def _cluster() -> str:
    return st.session_state.get("cluster", "simulated")


def _told(field: str, name: str) -> str:
    """Return a choice by its title, a preset with the figures that matter: "10GbE · 20 µs · 1.17 GB/s"."""
    if field == "cluster":
        return naming.cluster(name)
    if field == "collective":
        return "What is best there (fast)" if name == "fast" else name.replace("_", " ").capitalize()
    titled = {"compression": catalogue.COMPRESSIONS, "workload": catalogue.WORKLOADS}.get(field, {})
    if name in titled:
        return catalogue.called(titled, name)
    if field not in ("network", "device"):
        return name
    if name == OWN:
        return f"{SELF} · not emulated"
    called = name if name in catalogue.PRESETS[field] else naming.HERE if naming.here(field, name) else "in numbers"
    if field == "network":
        link = catalogue.link(name)
        return f"{called} · {units.seconds(link.alpha)} · {units.rate(link.bandwidth)}"
    return f"{called} · {units.number(catalogue.device(name).flops / 1e9)} GFLOP/s"


def _sources(field: str) -> str:
    """Return where the numbers of the presets come from, as a list for the help, and what the network leaves out."""
    about = "\n\n[What the simulated network leaves out](network)" if field == "network" else ""
    own = {SELF: MEANING[field]} if field in real_defaults(_cluster()) else {}
    entries = [f"- **{name}**: {source}" for name, source in (own | catalogue.sources(field)).items()]
    return about + "\n\n" + "\n".join(entries) if entries else ""


# what is chosen, and where it is kept


def read_address(again: bool = False) -> str:
    """Take over the settings in the page's address; return a sentence about what is wrong there, or "".

    It is read once per session, and `again` when the reader has gone back or forward.
    """
    if "algorithm" in st.session_state and not again:
        return ""
    try:
        given = {name: st.query_params[name] for name in st.query_params if name not in PAGE}
        put(Experiment.from_query(urlencode(given)))
    except ValueError as error:
        put(Experiment())
        return str(error)
    return ""


def leave_address() -> None:
    """Take the experiment out of the address, on another page than its own."""
    for name in st.session_state.pop("written", ()):
        st.query_params.pop(name, None)


def write_address(experiment: Experiment) -> None:
    """Make the page's address the experiment's own link; that of the default experiment chooses nothing."""
    wanted = dict(parse_qsl(experiment.query(), keep_blank_values=True)) if experiment != Experiment() else {}
    st.session_state.written = [*wanted]
    there = {name: st.query_params[name] for name in st.query_params if name not in PAGE}
    for name in there.keys() - wanted.keys():
        del st.query_params[name]
    if changed := {name: value for name, value in wanted.items() if there.get(name) != value}:
        st.query_params.update(changed)


def put(experiment: Experiment) -> None:
    """Set the widgets to `experiment`."""
    st.session_state.update(laid_out(experiment))


def laid_out(experiment: Experiment) -> dict[str, Any]:
    """Return all settings of `experiment`, by flat name, as widgets have them."""
    values = {**experiment.model_dump(mode="json"), **experiment.data, **experiment.coding, **experiment.settings}
    names = owners(experiment.algorithm, experiment.compression, experiment.workload)
    return {name: values[name] for name in names}


def values() -> dict[str, Any]:
    """Return the values of the widgets, by flat name."""
    state = st.session_state
    names = owners(state["algorithm"], state["compression"], state["workload"])
    return {name: state[name] for name in names if name in state}


def chosen() -> Experiment:
    """Return the experiment of the widgets; ValueError in one sentence if there is none."""
    return Experiment.of(values())


def settle(field: str) -> None:
    """After a choice of algorithm, compression, workload or model, reset what belongs to it to its defaults.

    A workload's settings stay with another algorithm, unless they are only what the one before began with; so do
    workers and steps, unless this one begins with its own; and so does a compression, unless it has nothing to compress
    there. The learning rate is that of all three together.
    """
    state = st.session_state
    if field == "compression":
        state.update(coding_settings(state["compression"])().model_dump(mode="json"))
        return
    algorithm, workload = state["algorithm"], state["workload"]
    data = {} if field == "model" else _beginning(algorithm, workload)
    if field == "algorithm":
        begun = [_beginning(name, workload) for name in catalogue.ALGORITHMS]
        data = {n: value for n, value in data.items() if state.get(n) in [values[n] for values in begun]}
        state.update(catalogue.ALGORITHMS[algorithm].declaration.Settings().model_dump(mode="json"))
        own = catalogue.ALGORITHMS[algorithm].declaration.defaults
        for name in {name for entry in catalogue.ALGORITHMS.values() for name in entry.declaration.defaults}:
            if name in own or state.get(name) in _beginnings(name):
                state[name] = own.get(name, Experiment.model_fields[name].default)
        if not compresses(algorithm):
            state["compression"] = "none"
    state.update(data)
    state["learning_rate"] = beginning_rate()


def beginning_rate() -> float:
    """Return the learning rate that the chosen algorithm begins with, on this workload, model and so many workers."""
    state = st.session_state
    algorithm, workload = state["algorithm"], state["workload"]
    model = state.get("model") if "model" in catalogue.WORKLOADS[workload].module.Settings.model_fields else None
    found = default_rate(algorithm, workload, model, state["workers"])
    return found.get("learning_rate", catalogue.ALGORITHMS[algorithm].declaration.Settings().learning_rate)


def settle_cluster(before: str) -> None:
    """After a choice of cluster, `before` being the one until then, give network and device its defaults.

    What was chosen stays, and is then emulated; but what was fitted to this machine is a real cluster's own.
    """
    state, fit = st.session_state, this_machine.load()
    for name in REAL_DEFAULTS:
        was, now = _begins(before, name), _begins(state["cluster"], name)
        fitted = now == OWN and fit is not None and state[name] == getattr(fit, name)
        if state[name] == was or fitted:
            state[name] = now


def _begins(cluster: str, name: str) -> Any:
    """Return what a field of Experiment begins with on this cluster."""
    return real_defaults(cluster).get(name, Experiment.model_fields[name].default)


def _beginnings(name: str) -> list:
    """Return what a field of Experiment begins with, over all algorithms."""
    every = [entry.declaration.defaults for entry in catalogue.ALGORITHMS.values()]
    return [Experiment.model_fields[name].default, *(own[name] for own in every if name in own)]


def _beginning(algorithm: str, workload: str) -> dict[str, Any]:
    settings = catalogue.WORKLOADS[workload].module.Settings
    return settings(**starting_point(algorithm, workload)).model_dump(mode="json")

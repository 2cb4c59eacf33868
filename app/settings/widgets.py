"""Draw a control on the page, and label its choices.

A widget's value is stored in the session under the name of its field.
"""

from functools import partial
from typing import Any

import streamlit as st

from app.settings import chosen
from app.settings.controls import SELF, Control
from experiments.specification import catalogue, this_machine
from experiments.specification.experiment import OWN, REAL_DEFAULTS, real_defaults
from experiments.wording import naming, units
from knobs import in_force

MEANING = {
    "network": "messages take as long as they really do between processes on this machine; nothing is emulated",
    "device": "a rank computes as fast as this machine does; nothing is emulated",
}
"""The meaning of the choice OWN, by field. Only real clusters offer it."""


def draw(one: Control, refused: str = "", on_change=None) -> None:
    """Draw the widget of `one` if it is in force. Its value is stored in the session, under its name.

    `refused` says why the cluster cannot obey it; the widget is then disabled, unless its value must be reset.
    """
    if not in_force(one.owner, one.name, st.session_state) or (one.name == "batch" and chosen.algorithm().whole_batch):
        return
    value = st.session_state.setdefault(one.name, one.default)
    common = {
        "key": one.name,
        "help": one.about + (f"\n\nNot on this cluster: {refused}" if refused else ""),
        "disabled": bool(refused) and value == real_defaults(chosen.cluster()).get(one.name, one.default),
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
            most = 2**53 - 1  # that JavaScript counts to exactly
            st.number_input(one.label, int(one.low), int(min(one.high or most, most)), step=1, **common)
        case "text":
            st.text_input(one.label, placeholder=one.example, **common)


def _take(name: str) -> None:
    """Keep the value of a widget that is about to be disabled; Streamlit would discard it."""
    st.session_state[name] = st.session_state[name]


def _with(stops: tuple, value: Any) -> tuple:
    """Return the stops of a scale, including a value that came with a link."""
    return (*(s for s in stops if s is None), *sorted({*(s for s in stops if s is not None), value}))


def _typed(one: Control, value: float) -> float | int:
    return int(value) if one.whole else float(value)


def _offered(one: Control, value: Any) -> tuple:
    """Return the options of a list, including a value that came with a link.

    For networks and devices, they include this machine: on a real cluster, its own; on the simulated cluster, those
    fitted to it.
    """
    first, fit = (), None
    if one.name in REAL_DEFAULTS:
        first = (OWN,) if real_defaults(chosen.cluster()) else ()
        fit = None if first else this_machine.trusted_fit()
    return tuple(dict.fromkeys((*first, *one.options, *((getattr(fit, one.name),) if fit else ()), value)))


def _told(field: str, name: str) -> str:
    """Return the label of a choice: its title and, for a preset, its figures, such as "10GbE · 20 µs · 1.17 GB/s"."""
    if field == "cluster":
        return naming.cluster(name)
    if field == "collective":
        own = {"fast": "The cluster's own (fast)", "stream": "One after the other (stream)"}
        return own.get(name) or name.replace("_", " ").capitalize()
    titled = {"compression": catalogue.COMPRESSIONS, "workload": catalogue.WORKLOADS}.get(field, {})
    if name in titled:
        return catalogue.choice_label(titled, name)
    if field not in ("network", "device"):
        return name
    if name == OWN:
        return f"{SELF} · not emulated"
    called = name if name in catalogue.PRESETS[field] else naming.HERE if naming.here(field, name) else "in numbers"
    if field == "network":
        link = catalogue.link(name)
        return f"{called} · {units.seconds(link.alpha)} · {units.rate(link.bandwidth)}"
    return f"{called} · {units.flops(catalogue.device(name).flops)}/s"


def _sources(field: str) -> str:
    """Return the sources of the presets' numbers for the help, and a link to what the network model omits."""
    about = "\n\n[What the simulated network leaves out](network)" if field == "network" else ""
    own = {SELF: MEANING[field]} if field in real_defaults(chosen.cluster()) else {}
    entries = [f"- **{name}**: {source}" for name, source in (own | catalogue.sources(field)).items()]
    return about + "\n\n" + "\n".join(entries) if entries else ""

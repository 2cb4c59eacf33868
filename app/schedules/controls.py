"""The controls of the schedules page: one or two schedules, their settings, and the size and costs that they share."""

import streamlit as st

from app.browser import address
from app.browser.text import sentence
from experiments.specification.catalogue import ALGORITHMS
from experiments.study import schedules as study
from experiments.study.schedules import Plan
from experiments.wording.sentences import capital

NOTHING = "nothing"
COSTS = 1000  # most letters of the costs
CHOICES = {"PA": "few (PA)", "PB": "twice as many (PB)"}
IGNORED = "Not used with your own schedule: its lines determine the numbers of ranks and micro-batches."


def choose() -> dict[str, Plan]:
    """Draw the widgets; return a plan for "a" and, if there is a second schedule, for "b". Show errors next to them."""
    names = {}
    names["a"] = _schedule("Schedule", "schedule_a", study.NAMES, "1f1b")
    _about(names["a"])
    chosen = {"a": _options("a", names["a"])}
    names["b"] = _schedule("Compare with", "schedule_b", (NOTHING, *study.NAMES), NOTHING)
    if names["b"] != NOTHING:
        _about(names["b"])
        chosen["b"] = _options("b", names["b"])
    typed = [name == study.OWN for name in names.values() if name != NOTHING]
    common = _common(any(typed), all(typed))
    plans = {}
    for slot, given in chosen.items():
        try:
            plans[slot] = Plan.of(schedule=names[slot], options=given, **common)
        except ValueError as error:
            st.error(sentence(str(error)), icon=":material/tune:")
    return plans


def _schedule(label: str, key: str, names: tuple[str, ...], default: str) -> str:
    address.keep(key, names, default)
    return st.selectbox(
        label, names, key=key, format_func=_called, persist_state="session",
        filter_mode="contains",  # as in the list of algorithms
    )  # fmt: skip


def _called(name: str) -> str:
    """Return a schedule's label in lists, with all its names, such as "ZB-H1 · zb_h1, zero bubble, pipeline"."""
    if name not in study.SCHEDULES:
        return study.TITLES.get(name, name.capitalize())
    entry = ALGORITHMS.get(study.algorithm_of(name))
    return f"{study.TITLES[name]} · {name}" + (f", {entry.also}" if entry and entry.also else "")


def _about(name: str) -> None:
    if name == study.OWN:
        st.markdown(":small[Your own ops: a line for each rank, in the order in which it executes them.]")
    else:
        st.markdown(f":small[{study.idea(name)}]")


def _options(slot: str, name: str) -> dict:
    """Draw the widgets for the settings that only this schedule has; return the settings' values."""
    given = {}
    for option in study.options(name).values():
        key, about = f"{option.name}_{slot}", sentence(option.about)
        more = {"key": key, "help": about, "persist_state": "session"}
        if isinstance(option.kind, tuple):
            address.keep(key, option.kind, option.default, lambda one: CHOICES.get(one, one))
            value = st.segmented_control(
                option.label, option.kind, required=True, format_func=lambda one: CHOICES.get(one, one), **more
            )
            st.markdown(f":small[{about}]")
        elif option.kind is bool:
            value = address.toggle(option.label, key, option.default, help=about)
        else:
            start = option.default if isinstance(option.default, int) else None
            address.hold(key, start, address.number(1, study.MOST_OPTION))
            first = {} if start else {"value": None, "placeholder": "not set"}
            value = st.number_input(option.label, 1, study.MOST_OPTION, step=1, **first, **more)
        if value is not None:
            given[option.name] = value
    return given


def _common(own: bool, alone: bool) -> dict:
    """Draw the widgets that all schedules share, and return their values.

    If one schedule is the reader's `own`, draw its text as well. The text sets the size if that schedule is `alone` on
    the page.
    """

    def number(name: str, label: str, key: str, step: float, off: bool = False):
        field, default = Plan.model_fields[name], Plan.model_fields[name].default
        bounds = {
            key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le") if hasattr(rule, key)
        }
        low = type(default)(bounds["ge"]) if "ge" in bounds else 0.01
        high = type(default)(bounds["le"])
        shown = {} if isinstance(default, int) else {"format": "%g"}
        about = IGNORED if off else f"{capital(field.description)}."
        address.hold(key, default, address.number(low, high))
        return st.number_input(
            label, low, high, step=step, key=key, help=about, disabled=off, persist_state="session", **shown
        )

    values = {}
    if own:
        address.hold("own_schedule", study.EXAMPLE, lambda text: text[: study.LONGEST])
        values["own"] = st.text_area(
            "Ops, a line for each rank", height=130, max_chars=study.LONGEST, key="own_schedule",
            persist_state="session",
            help="Stage, kind, number: 2F0 is the forward of micro-batch 0 on stage 2. "
            "F forward, B backward, I and W its halves, R recomputed forward, U update; 3F6+0B2 run together.",
        )  # fmt: skip
    left, right = st.columns(2)
    with left:
        values["ranks"] = number("ranks", "Ranks", "ranks", 1, alone)
        values["forward"] = number("forward", "Forward (F) takes", "cost_f", 0.1)
        values["weights"] = number("weights", "Weights (W) take", "cost_w", 0.1)
    with right:
        values["chunks"] = number("chunks", "Micro-batches", "micro_batches", 1, alone)
        values["inputs"] = number("inputs", "Inputs (I) take", "cost_i", 0.1)
        values["latency"] = number("latency", "A link takes", "link_takes", 0.1)
    st.markdown(
        ":small[A backward pass (B) has two halves: the gradient of the inputs (I), which the previous stage needs, "
        "and that of the weights (W). Costs are per rank: if a rank holds several stages, each takes its share.]"
    )
    address.hold("other_costs", "", lambda text: text[:COSTS])
    values["costs"] = st.text_input(
        "Other costs", key="other_costs", placeholder="2F=3 0B=1.5 2F0=5 F+B=2 U=0.5", max_chars=COSTS,
        persist_state="session",
        help="Costs of one stage, one op, two ops done together, or an update, in the notation above.",
    )  # fmt: skip
    return values

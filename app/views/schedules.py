"""Schedules: what every rank of a pipeline does when, without a model. Choose one, and compare it with another."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import streamlit as st

from app import address, background, components
from app.frames import frame
from app.text import escaped, sentence
from app.views import chrome, partition, schedule_links
from experiments import catalogue, units
from experiments.jobs.spec import JobSpec
from experiments.plots.canvases import schedule
from experiments.study import schedules as study
from experiments.study.schedules import Plan, Study
from experiments.study.unfinished import unfinished

NOTHING = "nothing"
TABS = ("Per rank", "Idle slots", "Critical path", "As text", "Source")
ROWS = 500  # idle slots in the table
LINES = 64  # of a schedule of one's own that are shown where something is wrong
COSTS = 1000  # letters of costs of ops
SHOWN_OPS = 400  # of a critical path, and of a schedule as text per rank


def figure(value: float) -> str:
    """Return a time or a number of a schedule."""
    return units.number(value, 4)


def points(value: float) -> str:
    """Return a difference of shares."""
    return f"{100 * value:+.1f} points".replace("-", "−")


OPTIONS = {
    "policy": ("Micro-batches in flight", "Few (DAPPLE's policy PA): one for each rank from this one on. Twice as "
               "many (PB) hide links that take time, and need their memory."),
    "cap": ("At most in flight on a rank", "More micro-batches than these never lie between their forward and their "
            "backward on one rank: memory against idle time."),
    "recompute": ("Repeat forwards", "Activations are not kept: each forward is done once more before its backward."),
    "late": ("Repeat only when needed", "The repeated forward waits for the gradient: less memory, more time."),
    "except_last": ("Keep the last micro-batch", "Its backward comes at once, so its forward need not be repeated."),
    "pieces": ("Stages per rank", "Thinner stages: a smaller bubble, and more messages."),
    "pipes": ("Pairs of pipelines", "Pipelines in opposite directions on the same ranks; each holds all weights."),
    "doubling": ("Two micro-batches per forward", "Where a backward takes twice as long as a forward they fit again."),
    "limit": ("Memory, in that of 1F1B", "How many times what the first rank of 1F1B holds."),
    "fused": ("Forward and backward together", "Done at once, as one op."),
    "per_update": ("Micro-batches per update", "By default as many as there are ranks."),
}  # fmt: skip
"""Settings of schedules by name: label, and what it does."""
CHOICES = {"PA": "few (PA)", "PB": "twice as many (PB)"}
ALSO = {
    "policy": "PA and PB are DAPPLE's names: few are enough where links cost nothing, twice as many hide slow ones."
}
IGNORED = "Not with a schedule of your own: its lines say how many ranks and micro-batches there are."

FIGURES = (
    ("makespan", "Makespan", figure, "from the first start to the last end"),
    ("bubble_of_total", "Bubble, of total", units.percent, "idle share of the whole (GPipe, Chimera)"),
    ("bubble_of_ideal", "Bubble, of ideal", units.percent, "idle time over working time (Megatron-LM)"),
    ("bubble_of_span", "Bubble, of span", units.percent, "idle share of the longest span of a rank (zero bubble)"),
    ("throughput", "Throughput", figure, "micro-batches per unit of time"),
    ("in_flight", "In flight", figure, "most micro-batches between their F and their B or I on one rank"),
    (
        "held",
        "Activations held",
        figure,
        "the same, of those whose activations are there: kept until W, made again by a repeated forward (R)",
    ),
    ("copies", "Weights held", figure, "most on one rank: versions that are still read, and stages held twice"),
    ("versions", "Versions alive", figure, "most of one stage: the newest, and those that a backward will still read"),
    ("delay", "Delay", figure, "most updates between what a gradient's forward saw and its own update"),
    ("path_ops", "Ops on the critical path", figure, "outlined: none of them can take longer unnoticed"),
    ("path_links", "Links on the critical path", figure, "times it goes from rank to rank"),
)
"""The table: name in the summary, label, words, meaning."""
INTRODUCTION = (
    "Who does what when, without a model: a row is a rank of a pipeline, a box one micro-batch on its way forward (F) "
    "or backward (B), and a gap is the bubble, in which the rank waits. Choose a schedule, turn what things "
    "take, and click a gap to see what it waits for. Answers name a box with its stage: 2B0 is the backward of "
    "micro-batch 0 on stage 2."
)
FIRST = "**A first question.** GPipe does all forwards first, 1F1B goes backward as soon as it can. Does it wait less?"
MORE_IS_BETTER = ("throughput",)
NEITHER = ("path_ops", "path_links")


def page() -> None:
    """Show controls on the left; one schedule or two, the table of both, and what lies behind it."""
    with st.sidebar:
        plans = _choose()
    chrome.show()
    _title(plans)
    answer = _introduce()
    studies = {slot: done for slot, plan in plans.items() if (done := _studied(plan, slot))}
    if not studies:
        return
    comparable = len({(done.summary["ranks"], done.chunks) for done in studies.values()}) == 1
    if len(studies) > 1:
        answer.markdown(f"**{escaped(answered(*studies.values()))}**" if comparable else escaped(unlike(studies)))
    until = max(done.summary["makespan"] for done in studies.values())
    for slot, done in studies.items():
        if len(plans) > 1:
            st.markdown(f"## {escaped(done.plan.title)}", anchors=False)
        if _with_own(plans):
            st.caption(sized(done.summary["ranks"], done.chunks))
        components.timeline(_frame(done.plan.model_dump_json(), until, done), key=f"lanes_{slot}")
        if link := schedule_links.training(done.plan):
            st.caption(link)
        if done.summary["stages"] > done.summary["ranks"] or done.summary["copies"] > done.summary["versions"]:
            st.caption("Lighter bars are those of a rank's second stage, third stage and so on.")
    compared = comparable and len(studies) > 1
    st.markdown("## Differences" if compared else "## In numbers", anchors=False)
    _table(list(studies.values()), compared)
    partition.show(next(iter(studies.values())))
    st.fragment(_behind)(list(studies.values()))


# what to look at


def _choose() -> dict[str, Plan]:
    """Draw the widgets; return a plan for "a", and for "b" if there is a second one. Errors are shown there."""
    names = {}
    names["a"] = _schedule("Schedule", "schedule_a", study.NAMES, "1f1b")
    _about(names["a"])
    chosen = {"a": _options("a", names["a"])}
    names["b"] = _schedule("Beside it", "schedule_b", (NOTHING, *study.NAMES), NOTHING)
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
    return st.selectbox(label, names, key=key, format_func=_called, persist_state="session")


def _called(name: str) -> str:
    """Return a schedule as the lists have it, found by title and by name: "ZB-H1 · zb_h1"."""
    return f"{study.TITLES[name]} · {name}" if name in study.SCHEDULES else study.TITLES.get(name, name.capitalize())


def _about(name: str) -> None:
    if name == study.OWN:
        st.markdown(":small[Ops of your own: a line for each rank, in the order in which it does them.]")
    else:
        st.markdown(f":small[{catalogue.idea(study.module(name))}]")


def _options(slot: str, name: str) -> dict:
    """Draw the widgets for the settings of this schedule alone."""
    given = {}
    for option in study.options(name).values():
        plain = (option.name.replace("_", " ").capitalize(), None)
        (label, about), key = OPTIONS.get(option.name, plain), f"{option.name}_{slot}"
        more = {"key": key, "help": about, "persist_state": "session"}
        if isinstance(option.kind, tuple):
            address.keep(key, option.kind, option.default, lambda one: CHOICES.get(one, one))
            value = st.segmented_control(
                label, option.kind, required=True, format_func=lambda one: CHOICES.get(one, one), **more
            )
        elif option.kind is bool:
            value = address.toggle(label, key, option.default, help=about)
        else:
            start = option.default if isinstance(option.default, int) else None
            address.hold(key, start, address.number(1, study.MOST_OPTION))
            first = {} if start else {"value": None, "placeholder": "no limit"}
            value = st.number_input(label, 1, study.MOST_OPTION, step=1, **first, **more)
        if option.name in ALSO:
            st.markdown(f":small[{ALSO[option.name]}]")
        if value is not None:
            given[option.name] = value
    return given


def _common(own: bool, alone: bool) -> dict:
    """Draw the widgets for what all schedules share; an `own` one has its text, which `alone` says how large it is."""

    def number(name: str, label: str, key: str, step: float, off: bool = False):
        field, default = Plan.model_fields[name], Plan.model_fields[name].default
        bounds = {
            key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le") if hasattr(rule, key)
        }
        low = type(default)(bounds["ge"]) if "ge" in bounds else 0.01
        high = type(default)(bounds["le"])
        shown = {} if isinstance(default, int) else {"format": "%g"}
        about = IGNORED if off else f"{field.description[:1].upper()}{field.description[1:]}."
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
            "F forward, B backward, I and W its halves, R forward once more, U update; 3F6+0B2 are done together.",
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
        ":small[A backward (B) is two halves: the gradient of the inputs (I), which the stage before waits for, "
        "and that of the weights (W). Costs are those of a rank's share of the model: a thin stage takes "
        "its part of them.]"
    )
    address.hold("other_costs", "", lambda text: text[:COSTS])
    values["costs"] = st.text_input(
        "Other costs", key="other_costs", placeholder="2F=3 0B=1.5 2F0=5 F+B=2 U=0.5", max_chars=COSTS,
        persist_state="session",
        help="Of one stage, of one op, of two ops done together, of an update: as they are written.",
    )  # fmt: skip
    return values


def _introduce():
    """Say what is seen here, and ask a first question; return the place for the answer once two are compared."""
    if st.session_state.schedule_b != NOTHING:
        return st.container()  # no more words before the pictures of both
    st.markdown(INTRODUCTION)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(FIRST, width="content")
        st.button("Put 1F1B beside GPipe", key="first-question", on_click=_compare, args=("gpipe", "1f1b"))


def answered(one: Study, other: Study) -> str:
    """Return whether the other schedule waits less than the one, and what it takes and holds, in sentences."""
    a, b = one.plan.title, other.plan.title
    a = a.lower() if one.plan.schedule == study.OWN else a  # within a sentence
    (idle, now_idle), (took, takes), (many, now_many) = (
        (one.summary[name], other.summary[name]) for name in ("bubble_of_total", "makespan", "in_flight")
    )
    if units.percent(idle) == units.percent(now_idle):
        said = [f"{b} waits as much as {a}: ranks are idle for {units.percent(idle)} of the time in both."]
    else:
        word = "less" if now_idle < idle else "more"
        said = [f"{b} waits {word} than {a}: ranks are idle for {units.percent(now_idle)} of the time instead of "
                f"{units.percent(idle)}."]  # fmt: skip
    if took != takes:
        said.append(f"It takes {figure(takes)} instead of {figure(took)}.")
    if many != now_many:
        said.append(f"At most {figure(now_many)} micro-batches are in flight on a rank instead of {figure(many)}.")
    return " ".join(said)


def unlike(studies: dict[str, Study]) -> str:
    """Return that a schedule of one's own and another do not do the same work, and what would make it the same."""
    own, other = sorted(studies.values(), key=lambda done: done.plan.schedule != study.OWN)
    mine, its = (sized(done.summary["ranks"], done.chunks, " and ") for done in (own, other))
    return (
        f"They do not do the same work, so neither is better: your own schedule has {mine}, {other.plan.title} has "
        f"{its}. To compare them, set Ranks to {own.summary['ranks']} and Micro-batches to {own.chunks}."
    )


def sized(ranks: int, chunks: int, between: str = " · ") -> str:
    """Return how many ranks and micro-batches a schedule has: "4 ranks · 8 micro-batches"."""
    return f"{ranks} rank{'s' * (ranks != 1)}{between}{units.count(chunks)} micro-batch{'es' * (chunks != 1)}"


def _with_own(plans: dict[str, Plan]) -> bool:
    """Whether one of them is a schedule of one's own, which has a size of its own."""
    return any(plan.schedule == study.OWN for plan in plans.values())


def _compare(a: str, b: str) -> None:
    st.session_state.update(schedule_a=a, schedule_b=b)


def _title(plans: dict[str, Plan]) -> None:
    st.markdown(f"# {escaped(' beside '.join(plan.title for plan in plans.values()) or 'Schedules')}", anchors=False)
    if plans:
        plan = next(iter(plans.values()))
        where = "" if _with_own(plans) else f"{sized(plan.ranks, plan.chunks)} · "
        whole = plan.inputs + plan.weights
        costs = f"F {figure(plan.forward)}, B {figure(whole)} = I {figure(plan.inputs)} + W {figure(plan.weights)}"
        more = f" · {escaped(plan.costs)}" if plan.costs else ""
        st.caption(f"{where}{costs}{more} · a link takes {figure(plan.latency)}")


# what comes of it


def _studied(plan: Plan, slot: str) -> Study | None:
    """Return the study of a plan: computed here if that is quick, otherwise by the pool. Errors are shown."""
    try:
        if study.size(plan) <= study.QUICK:
            return _here(plan.model_dump_json(), plan)
        job_spec = JobSpec("study", plan.model_dump(exclude_defaults=True))
        folder = background.fetch(job_spec, f"{plan.title} is large: it is studied outside this page.", f"study-{slot}")
        return _kept(str(folder)) if folder else None
    except (ValueError, OSError) as error:
        st.error(f"**{escaped(plan.title)}** {_refusal(str(error))}", icon=":material/block:")
        if plan.schedule == study.OWN:
            _unfinished(plan, str(error), slot)
        return None


def _unfinished(plan: Plan, reason: str, slot: str) -> None:
    """Show what can be drawn of a schedule of one's own in which something is wrong, and where that stands."""
    found = unfinished(plan, reason)
    if found.study:
        st.markdown("Up to where it goes wrong:")
        components.timeline(schedule.frame(found.study), key=f"lanes_{slot}")
    rows = []
    for number, line in enumerate(plan.own.strip().splitlines()[:LINES]):
        words = escape(line)
        if number == found.line:
            word = re.escape(escape(found.word))
            words = re.sub(rf"(?<!\w){word}(?!\w)", lambda found: f"<mark>{found[0]}</mark>", words)
        rows.append(f'<div class="{"wrong" if number == found.line else ""}"><i>rank {number}</i> {words}</div>')
    st.html(f'<div class="own-ops" role="group" aria-label="Your ops, a line for each rank">{"".join(rows)}</div>')


def _refusal(text: str) -> str:
    return "cannot run: " + escaped(text if text.endswith(".") else text + ".")


@st.cache_resource(max_entries=64, show_spinner=False)
def _here(plan: str, _plan: Plan) -> Study:
    return study.study(_plan)


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(folder: str) -> Study:
    return study.load(Path(folder))


@st.cache_resource(max_entries=32, show_spinner=False)
def _frame(plan: str, until: float, _study: Study) -> bytes:
    return schedule.frame(_study, until, together="schedules")


def _table(studies: list[Study], compared: bool) -> None:
    """Draw all figures of one schedule with their meaning, or of two, with their differences if they are compared."""
    heads = ["", *(done.plan.title for done in studies), *(["difference"] if compared else []), ""]
    rows = []
    for name, label, say, meaning in FIGURES:
        values = [done.summary[name] for done in studies]
        cells = ["–" if name == "delay" and value < 0 else say(value) for value in values]
        if compared:
            cells.append(_difference(name, *values))
        rows.append((f"{label}", [*cells, meaning]))
    head = "".join(f"<th>{escape(word)}</th>" if word else "<td></td>" for word in heads)
    body = "".join(
        f"<tr><th>{escape(label)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for label, cells in rows
    )
    st.html(f'<div class="figures explained"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def _difference(name: str, a: float, b: float) -> str:
    if name == "delay" and min(a, b) < 0:
        return ""
    if a == b:
        return "the same"
    judged = "" if name in NEITHER else ", better" if (b > a) is (name in MORE_IS_BETTER) else ", worse"
    if name.startswith("bubble"):
        return f"{points(b - a)}{judged}"
    part = f" ({100 * (b / a - 1):+.1f} %)" if a else ""
    return f"{'+' if b > a else '-'}{figure(abs(b - a))}{part}".replace("-", "−") + judged


def _behind(studies: list[Study]) -> None:
    """Show what lies behind the figures, a tab each; only the open tab is built."""
    parts = (_per_rank, _idle, _path, _text, _source)
    for tab, show in zip(st.tabs(TABS, key="behind", on_change="rerun"), parts, strict=True):
        if not tab.open:
            continue
        with tab:
            for done in studies:
                if len(studies) > 1:
                    st.markdown(f"**{escaped(done.plan.title)}**")
                show(done)


def _per_rank(done: Study) -> None:
    words = {name: label for name, label, _, _ in FIGURES}
    names = ("busy", "idle", "span", "in_flight", "held", "copies", "versions", "delay")
    table = {words.get(name, name.capitalize()): done.ranks[name] for name in names}
    rows = frame({"Rank": range(len(done.ranks["busy"])), **table})
    st.dataframe(rows.replace({"Delay": {-1: None}}), hide_index=True)


def _idle(done: Study) -> None:
    slots = done.idle
    count = len(slots["start"])
    if not count:
        st.markdown("No rank is ever idle.")
        return
    longest = (slots["start"] - slots["end"]).argsort(kind="stable")[:ROWS]
    rows = {
        "Rank": slots["rank"][longest],
        "From": slots["start"][longest],
        "To": slots["end"][longest],
        "Takes": (slots["end"] - slots["start"])[longest],
        "Because": [done.why(row) for row in longest],
    }
    st.dataframe(frame(rows), hide_index=True)
    if count > ROWS:
        st.caption(f"The longest {ROWS} of {units.count(count)} idle slots.")


def _path(done: Study) -> None:
    rows = done.ops["critical"].nonzero()[0]
    rows = rows[done.ops["start"][rows].argsort(kind="stable")]
    words = [f"{done.op(row)} on rank {done.ops['rank'][row]}" for row in rows[:SHOWN_OPS]]
    st.markdown(
        "One after the other without slack, from the start to the end: with its links it is as long as the makespan."
    )
    st.code(" → ".join(words) + (" → …" if len(rows) > SHOWN_OPS else ""), language=None, wrap_lines=True)


def _text(done: Study) -> None:
    if len(done.ops["start"]) > SHOWN_OPS * 8:
        st.markdown("This schedule is too long to be read as text.")
        return
    text = done.spelled()
    st.code(text, language=None)
    room = f"Choose *{study.TITLES[study.OWN]}* as the schedule and paste it there to change it."
    st.caption(room if len(text) <= study.LONGEST else f"{units.count(len(text))} characters.")


def _source(done: Study) -> None:
    if done.plan.schedule == study.OWN:
        st.markdown("This one is yours.")
        return
    path = Path(study.module(done.plan.schedule).__file__)
    with st.container(key=f"source-code-{done.plan.schedule}"):
        st.code(path.read_text("utf-8"), language="python", wrap_lines=True)

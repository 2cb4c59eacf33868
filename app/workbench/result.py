"""A finished run: what it is called, what to know about it, its figures, and its pictures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import streamlit as st

from app.browser import address, looks
from app.browser.text import escaped, sentence
from app.charts import Shown, pictures
from app.charts.pictures import heading
from app.charts.words import figure_of
from app.comparison import changes, in_words, predicted_vs_measured, race, reference, seeds, sweep, table
from app.guide import ask, predict
from app.session import pins, session
from app.settings import chosen, feasible
from app.workbench import export, learn
from experiments.runs import divergence, ending
from experiments.runs.figures import FIGURES, suited
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer import palette
from experiments.wording import naming, units
from experiments.wording.place import place

NOTES = 4  # remarks of a run before the others are folded away
ABOVE = ("held_out_loss", "accuracy", "seconds", "samples_per_second", "share_compute", "bytes", "staleness_mean")
"""The figures that stand above the charts."""
SPREAD = '<p class="spread">{}</p>'
LANES = (
    "Who did what when: one lane per rank, one bar per span. Arrows are messages. Click a rank's name to slow it down, "
    "let it pause, or lose it."
)


def show(
    folder: str, wanted: Experiment | None, under_way: UnderWay | None = None, led: bool = False, told: bool = False
) -> None:
    """Show the run in `folder`; `wanted` is the experiment of the controls, which may be another one by now.

    While another run is `under_way` this one stays in its place: its curves as a ghost, the rest dimmed.
    `led`: its timeline stands above already; `told`: so does what it finds.
    """
    try:
        run = session.load(folder)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/folder_off:")
        return
    name = Path(folder).name
    beside, missing = reference.pinned()
    before = reference.before(run.experiment, [name, *dict(beside)])
    beside += [] if name in dict(beside) else [(name, run)]
    changed = changes.between(run.experiment, wanted) if wanted else []
    with st.container(key="head"):
        if under_way:
            under_way.head()
        else:
            _title(run, folder, name, changed)
            in_words.settle_axis(before, run)
    with st.container():  # one element however much is in it: what follows keeps its place, and the reader his zoom
        if under_way:
            under_way.line()
        else:
            if changed:
                looks.fade("figures", opacity=0.5)  # they are of other settings than those that are chosen
                if not feasible.refusal(wanted):
                    predict.offer(wanted)
            predict.compared(run)
            if not told:
                ask.told(run)
            in_words.since(before, run.experiment, run)
            remarks(run, missing)
        words = st.container()
    row = st.container()
    with st.container(key="spread"):
        shown = reference.named([*beside, *seeds.others(beside)], name)
        _spread(next(one for one in shown if one.folder == name))
    with row:
        figures(next(one for one in shown if one.folder == name))
    each = [replace(one, name=f"{one.name}, seed {one.run.experiment.seed}") if one.others else one for one in shown]
    own = next(one for one in shown if one.folder == name)
    pair = race.rivals(reference.of(own, shown), own)
    racing = bool(pair) and race.on() and not under_way
    if pair and not racing and not under_way:
        with words:
            in_words.beside(*pair)
    charts_side = st.container()
    if st.session_state.get("source"):
        charts_side, code_side = st.columns([3, 2], gap="medium")
        with code_side:
            export.source(run)
    with charts_side:
        if under_way:
            under_way.curves([one for one in shown if one.folder != name or name in pins.names()])
        elif racing:
            st.fragment(race.show)(pair)
        else:
            more = partial(race.offer, before, pair)
            st.fragment(pictures.loss_and_accuracy)([*shown, *filter(None, [before])], more)
        if not led and not racing:
            with st.container(key="lanes"):
                heading("Timeline", LANES)
                st.fragment(pictures.lanes)(folder)
        own = next(one for one in each if one.folder == name)
        of = own.name if len(shown) > 1 else ""  # what is below is about one run, and there are several
        with st.container(key="rest"):
            if not under_way:
                learn.show(run, folder, of)
            if any(one.run.quantities for one in shown):
                heading(
                    "What the method measured", "What this algorithm, and no other, records of itself in each step."
                )
                st.fragment(pictures.measured)(each)
            if not under_way:
                predicted_vs_measured.show(run, folder, of)
            if len(shown) > 1 or shown[0].others:
                heading("Comparison")
                table.show(shown)
                table.unpin(shown)
            if of:
                heading("Rank by rank and link by link", of=of)
            st.fragment(pictures.details)(own, each, before)
            if not under_way:
                sweep.show(run)


def awaited(experiment: Experiment, under_way: UnderWay) -> None:
    """Show the first run under way in the places that a finished one has, so that nothing moves when it is there."""
    with st.container(key="head"):
        under_way.head()
    st.container()  # for its remarks
    told = [
        name for name in suited(ABOVE, experiment) if name != "staleness_mean" or experiment.method.counts_staleness
    ]
    with st.container():  # where a run's are: they take the place of these one by one
        grid = _grid(len(told))
    for name in told:
        grid.container(gap="xxsmall").metric(_label(name, experiment), "–", help=FIGURES[name][2])
    with st.container(key="spread"):
        st.html(SPREAD.format(""))
    with st.container():
        under_way.curves([])


class UnderWay(Protocol):
    """A run under way, in the places of a finished one: its title and how far it is, its line, its curves."""

    def head(self) -> None: ...
    def line(self) -> None: ...
    def curves(self, others: list[Shown]) -> None: ...


def _title(run: Run, folder: str, name: str, changed: list[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch", gap="xxsmall", key="title"):
            st.markdown(f"# {title(run.experiment)}", anchors=False)
            if changed:
                st.markdown(f":orange-badge[Not run yet: {escaped(changes.listed(changed))}]")
                st.caption(f"Still shown: {headline(run.experiment, place_too=False)}")
            else:
                st.caption(headline(run.experiment, run.gpus))
        with st.container(horizontal=True, width="content", vertical_alignment="center", gap="xsmall", key="toolbar"):
            _pin(name, folder)
            seeds.choose(run)
            address.toggle("Source", "source", help="The algorithm's own file beside the charts.")
            with st.container(width="content"):
                st.fragment(export.share)(run.experiment, name)
            with st.popover("Download", icon=":material/download:"):
                export.downloads(run, name)


def _pin(name: str, folder: str) -> None:
    pinned = pins.names()
    if name in pinned:
        st.button(
            "Pinned", key="pin-it", icon=":material/keep_off:", help="Unpin it: the next run takes its place.",
            on_click=pins.remove, args=(name,),
        )  # fmt: skip
        return
    full = len(pinned) >= pins.MOST
    help = f"{pins.MOST} runs are pinned; unpin one first." if full else "It stays, and the next runs are compared."
    st.button("Pin", key="pin-it", icon=":material/keep:", help=help, disabled=full, on_click=pins.add, args=(folder,))


def title(e: Experiment) -> str:
    """Return what a run is called, and small the names of its files: "EASGD on handwritten digits", easgd, digits."""
    return f"{escaped(naming.title(e))} :small[:gray[{escaped(naming.files(e))}]]"


def headline(e: Experiment, gpus: int | None = None, place_too: bool = True) -> str:
    """Return what is run, in a line, and where; of a run, with the GPUs that it had."""
    ranks = units.counted(e.workers, "worker")
    if e.servers:
        ranks += f" and {units.counted(e.servers, 'server')}"
    budget = [units.counted(e.steps, "step")] if e.steps else []
    budget += [f"{e.epochs:g} epoch{'s' * (e.epochs != 1)}"] if e.epochs else []
    budget += [units.seconds(e.seconds)] if e.seconds else []
    budget += [f"until a loss of {e.target_loss:g}"] if e.target_loss else []
    where = [place(e, gpus)] if place_too else []
    return " · ".join([ranks, f"batch {e.batch}", " or ".join(budget), *where, f"seed {e.seed}"])


def remarks(run: Run, missing: list[str]) -> None:
    """Show what the reader must know before reading the charts."""
    why = _told(run, run.error)
    if run.status == "diverged":
        _diverged(run)
    elif run.status == "failed" and (planned := ending.planned_loss(run)):
        st.info(f"{planned} What was recorded until then is shown.", icon=":material/power_off:")
    elif run.status == "failed":
        st.error(f"**Failed.** {why} What was recorded until then is shown.", icon=":material/error:")
    elif run.status == "cancelled":
        step = units.count(run.summary["steps"])
        told = f"**Stopped at step {step}.** {why} What was recorded until then is shown."
        st.warning(told, icon=":material/stop_circle:")
    if more := st.session_state.get("remark", "").removeprefix(run.error).strip():
        st.warning(sentence(more), icon=":material/folder_off:")
    for name in missing:
        st.warning(f"The pinned run {name} is not on this machine any more.", icon=":material/folder_off:")
    for note in run.notes[:NOTES]:
        st.caption(f":material/info: {_told(run, note)}")
    if len(run.notes) > NOTES:
        with st.expander(f"{len(run.notes) - NOTES} more remarks"):
            for note in run.notes[NOTES:50]:
                st.caption(_told(run, note))


def _told(run: Run, text: str) -> str:
    """Return a message of a run as a sentence, its ranks by the names that they have in every picture."""
    return sentence(naming.readable(run.experiment, text))


def _diverged(run: Run) -> None:
    """Say what was changed and why that diverges, with a button that takes it back."""
    why = _told(run, run.error)
    with st.container(gap="xsmall", key="diverged"):
        told = f"**Diverged.** {why} A red line in the timeline marks the moment; what came after it is shown, too."
        st.error(told, icon=":material/trending_up:")
        if undo := divergence.cause(run.experiment).undo:
            ((name, value),) = undo.items()
            st.button(
                f"Run with {changes.setting(run.experiment.change(**{name: value}), name, value)}", key="undo",
                icon=":material/undo:", on_click=_undo, args=(run.experiment, name, value),
                help="Takes this one setting back to its default, and runs again.",
            )  # fmt: skip


def _undo(experiment: Experiment, name: str, value: Any) -> None:
    without = experiment.change(**{name: value})
    chosen.put(without)
    session.start(without)


def figures(one: Shown) -> None:
    """Draw the figures of a run; over several seeds their means and standard deviations, and say that they are."""
    run = one.run
    names = suited(ABOVE, run.experiment)
    told = [name for name in names if name != "staleness_mean" or run.summary.get(name) is not None]
    grid = _grid(len(told))
    for name in told:  # a method without a shared model has none that could be old
        value, help = run.summary.get(name), FIGURES[name][2]
        if name == "accuracy" and run.summary.get("accuracy_error") and not one.others:
            help += f" Behind the ±: its standard error, from {run.held_out_samples:,} held-out samples."
        less = None
        if name == "bytes" and (ratio := run.summary.get("compression_ratio")):
            less = f"{units.number(100 / ratio)} % of whole gradients"
            help = f"Payload only. Whole gradients would be {units.size(ratio * value)}."
        if name == "share_compute" and value is not None:
            seed = f" Of seed {run.experiment.seed}:" * bool(one.others)
            help += seed + "".join(f" {kind.capitalize()}: {share}." for kind, share in _spent(run).items())
        cell = grid.container(gap="xxsmall")
        cell.metric(
            _label(name, run.experiment), figure_of(one, name), less, delta_color="off", delta_arrow="off", help=help
        )
        if name == "share_compute" and value is not None:
            cell.html(shares(run))


def _spread(one: Shown) -> None:
    """Say over which seeds the figures above are; a line that is there without any, so that nothing moves."""
    words = f"± standard deviation over {len(one.runs)} seeds; timeline of seed {one.run.experiment.seed}"
    st.html(SPREAD.format(words if one.others else ""))
    if one.others:
        looks.shrink_figures()


def _grid(figures: int):
    """Return the grid of so many figures: in one line, or in two of which the second has several."""
    return st.grid(min_column_width=140 if figures < 7 else 190, gap="small", key="figures")


def _label(name: str, experiment: Experiment) -> str:
    virtual = name == "seconds" and experiment.cluster == "simulated"
    label = "virtual time" if virtual else FIGURES[name].label
    return label[:1].upper() + label[1:]


def _spent(run: Run) -> dict[str, str]:
    """Return what share of the workers' time each kind of span took, in words."""
    return {kind: units.percent(run.summary.get(f"share_{kind}") or 0.0) for kind in palette.DOING}


def shares(run: Run) -> str:
    """Return a bar of the workers' time, in the colours of the timeline."""
    told = ", ".join(f"{kind} {share}" for kind, share in _spent(run).items())
    parts = "".join(
        f'<i style="width: {100 * (run.summary.get(f"share_{kind}") or 0.0):.2f}%; background: {look.colour}"></i>'
        for kind, look in palette.DOING.items()
    )
    return f'<div class="shares" role="img" aria-label="The workers\' time: {told}" title="{told}">{parts}</div>'

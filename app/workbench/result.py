"""A finished run: its title, remarks, figures and pictures."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import streamlit as st

from app.browser import looks
from app.browser.text import sentence
from app.charts import Shown, pictures
from app.charts.pictures import heading
from app.comparison import changes, even, in_words, predicted_vs_measured, race, reference, seeds, sweep, table
from app.guide import ask, predict
from app.session import pins, session
from app.settings import feasible
from app.workbench import export, figures, head, learn, remarks
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.lanes import lane_names
from experiments.wording.rank_names import common_role

LANES = (
    "What each {role} did when: one lane per {role}, one bar per span. Arrows are messages. Drag the end of a box to "
    "slow its {role} down, drop a bolt on a lane to lose it, stretch a wire to lengthen the latency; the name of a "
    "lane offers the same. What you see while you drag is predicted from this run; the new run replaces it. **Back** "
    "undoes it."
)


class UnderWay(Protocol):
    """A run in progress, in the layout of a finished one: title and progress, the line below, and curves."""

    def head(self) -> None: ...
    def line(self) -> None: ...
    def curves(self, others: list[Shown]) -> None: ...


def show(
    folder: str,
    wanted: Experiment | None,
    under_way: UnderWay | None = None,
    led: bool = False,
    told: bool = False,
    brief: bool = False,
) -> None:
    """Show the run in `folder`; `wanted` is the experiment currently set in the controls, which may differ from it.

    While another run is `under_way`, this one stays in place: its curves as a ghost, the rest dimmed. With `led`, its
    timeline is already drawn above; with `told`, so is its finding. With `brief`, nothing follows the figures.
    """
    try:
        run = session.load(folder)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/folder_off:")
        return
    name = Path(folder).name
    beside, missing = reference.load_pinned_runs()
    before = reference.before(run.experiment, [name, *dict(beside)])
    if before and ask.is_beside_the_question(before.run.experiment, run.experiment):
        before = None
    beside += [] if name in dict(beside) else [(name, run)]
    top = under_way or Finished(run, folder, wanted, before, missing, told)
    with st.container(key="head"):
        top.head()
    with st.container():  # always one element: what follows keeps its place, and the reader's zoom stays
        top.line()
        words = st.container()
    row = st.container()
    with st.container(key="over-seeds"):
        shown = reference.name_runs([*beside, *seeds.others(beside)], name)
        own = next(one for one in shown if one.folder == name)
        figures.spread(own)
    with row:
        figures.show(own)
    if brief:
        return
    pinned = reference.of(own, shown)
    pair = [] if under_way else race.rivals(pinned, own)
    racing = bool(pair) and race.on()
    if pair and not racing:
        with words:
            in_words.beside(*pair)
    if wanted == run.experiment and not racing:
        with words:
            even.offer(pinned or before, own)
    with _beside_the_source(run):
        if under_way:
            under_way.curves([one for one in shown if one is not own or name in pins.names()])
        elif racing:
            st.fragment(race.show)(pair)
        else:
            more = partial(race.offer, before, pair)
            st.fragment(pictures.loss_and_accuracy)([*shown, *filter(None, [before])], more)
        if not led and not racing:
            with st.container(key="lanes"):
                heading("Timeline", LANES.format(role=common_role(lane_names(run))))
                with st.container():  # always one element, or the lanes could not grow out of the previous ones
                    if not under_way:
                        in_words.in_short(before, run)
                st.fragment(pictures.lanes)(folder)
        with st.container(key="rest"):
            _rest(folder, own, shown, before, not under_way)


class Finished:
    """The title, progress and curves of a finished run, with the interface of UnderWay."""

    def __init__(
        self, run: Run, folder: str, wanted: Experiment | None, before: Shown | None, missing: list[str], told: bool
    ):
        self.run, self.folder, self.wanted, self.before = run, folder, wanted, before
        self.missing, self.told = missing, told
        self.changed = changes.between(run.experiment, wanted) if wanted else []

    def head(self) -> None:
        head.show(self.run, self.folder, self.changed)
        in_words.settle_axis(self.before, self.run)

    def line(self) -> None:
        if self.changed:
            looks.fade("figures", opacity=0.5)  # they belong to settings other than the chosen ones
            if not feasible.refusal(self.wanted):
                predict.offer(self.wanted)
        predict.show_verdict(self.run)
        if not self.told:
            ask.show_answer(self.run)
        in_words.since(self.before, self.run)
        remarks.show(self.run, self.missing)


def _beside_the_source(run: Run):
    """Return the container for the charts; next to it is the algorithm's source, if the reader wants to see it."""
    place = st.container()
    if st.session_state.get("source"):
        place, code_side = st.columns([3, 2], gap="medium")
        with code_side:
            export.source(run)
    return place


def _rest(folder: str, own: Shown, shown: Sequence[Shown], before: Shown | None, finished: bool) -> None:
    """Draw what is below the timeline; parts that need computation are drawn only for a `finished` run."""
    run = own.run
    each = [replace(one, name=f"{one.name}, seed {one.run.experiment.seed}") if one.others else one for one in shown]
    this = next(one for one in each if one.folder == own.folder)
    of = this.name if len(shown) > 1 else ""  # it is about one run, but there are several
    if finished:
        learn.show(run, folder, of)
    if any(one.run.quantities for one in shown):
        heading("What the method measured", "Quantities that only this algorithm records, in each step.")
        st.fragment(pictures.draw_measurements)(each)
    if finished:
        predicted_vs_measured.show(run, folder, of)
    if len(shown) > 1 or own.others:
        heading("Comparison")
        table.show(shown)
        table.unpin(shown)
    if of:
        heading("Each rank and each link", of=of)
    st.fragment(pictures.details)(this, each, before)
    if finished:
        sweep.show(run)


def show_run_in_progress(experiment: Experiment, under_way: UnderWay) -> None:
    """Show the first run in progress in the layout of a finished one, so that nothing moves when it finishes."""
    with st.container(key="head"):
        under_way.head()
    with st.container():  # one element, as when it has ended
        under_way.line()
        st.container()  # for a comparison in words, or the figures would move by a gap when it has ended
    figures.await_them(experiment)
    with st.container():
        under_way.curves([])

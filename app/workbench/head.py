"""The header above the results of a run: its title and its buttons."""

from pathlib import Path

import streamlit as st

from app.browser import address
from app.browser.text import escape_markdown
from app.comparison import changes, seeds
from app.session import pins
from app.workbench import export
from experiments.runs.ending import steps_taken
from experiments.runs.record import Run
from experiments.specification.experiment import LINKS, Experiment
from experiments.wording import naming, units
from experiments.wording.place import place

IN_TITLE = ("algorithm", "compression", "workload", "table", "net")
IN_LINE = ("workers", "batch", "steps", "epochs", "seconds", "target_loss", "cluster", "device", "jitter", "seed")
IN_LINE += (*LINKS, *naming.NONE, "shards")
"""Settings that the title and the line below it always show, in words of their own."""


def show(run: Run, folder: str, changed: list[str]) -> None:
    """Draw the title of the run in `folder`, the page's buttons, and the settings `changed` since the run."""
    name = Path(folder).name
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="stretch", gap="xxsmall", key="title"):
            st.markdown(f"# {title(run.experiment)}", anchors=False)
            if changed:
                st.markdown(f":orange-badge[Not run yet: {escape_markdown(changes.summarise(changed))}]")
                st.caption(f"Still shown: {headline(run.experiment, run, place_too=False)}")
            else:
                st.caption(headline(run.experiment, run))
        with st.container(horizontal=True, width="content", vertical_alignment="center", gap="xsmall", key="toolbar"):
            _pin(name, folder)
            seeds.choose(run)
            address.toggle("Source", "source", help="The algorithm's source file next to the charts.")
            with st.container(width="content"):
                st.fragment(export.share)(run.experiment, name)
            with st.popover("Download", icon=":material/download:"):
                export.downloads(run, name)


def _pin(name: str, folder: str) -> None:
    pinned = pins.names()
    if name in pinned:
        st.button(
            "Pinned", key="pin-it", icon=":material/keep_off:", help="Unpin it: the next run replaces it.",
            on_click=pins.remove, args=(name,),
        )  # fmt: skip
        return
    full = len(pinned) >= pins.MOST
    keep, all_used = (
        "Keep this run, and compare the next ones with it.",
        f"{pins.MOST} runs are pinned; unpin one first.",
    )
    help = all_used if full else keep
    st.button("Pin", key="pin-it", icon=":material/keep:", help=help, disabled=full, on_click=pins.add, args=(folder,))


def title(e: Experiment) -> str:
    """Return a run's title, such as "EASGD on handwritten digits".

    The names used on the command line follow in small print, such as "easgd, digits".
    """
    return f"{escape_markdown(naming.title(e))} :small[:gray[{escape_markdown(naming.files(e))}]]"


def headline(e: Experiment, run: Run | None = None, place_too: bool = True) -> str:
    """Return a line on what runs, where, and with which settings other than the defaults.

    For a run that has ended, the line also has its GPUs and the number of steps that it took.
    """
    steps = steps_taken(run) if run else units.count_with_noun(e.steps or 0, "step")
    budget = [steps] if e.steps else []
    budget += [f"{e.epochs:g} epoch{'s' * (e.epochs != 1)}"] if e.epochs else []
    budget += [units.seconds(e.seconds)] if e.seconds else []
    budget += [f"until a loss of {e.target_loss:g}"] if e.target_loss else []
    where = [place(e, run.gpus if run else None)] if place_too else []
    named = {*IN_TITLE, *IN_LINE}
    other = [changes.setting(e, name, value) for name, value in e.flat().items() if name not in named]
    more = [escape_markdown(changes.summarise(other))] if other else []
    return " · ".join([naming.team(e), f"batch {e.batch}", " or ".join(budget), *where, *more, f"seed {e.seed}"])

"""The partitioner: cuts a model into the stages of the schedule on the page, by the times of its layers.

The result is a list of costs of stages, for which the schedules page has a field, so the schedule of a well or badly
cut model is drawn and measured like any other.
"""

import streamlit as st

from app.browser.text import sentence
from experiments.specification.experiment import Experiment
from experiments.study import partitions
from experiments.study.partitions import Partition, Profile
from experiments.study.schedules import Study
from experiments.viewer import palette
from experiments.viewer.html_table import Html, html_table
from experiments.wording import units

EXAMPLE = Experiment.of({"algorithm": "gpipe", "workload": "text"})  # whose layers take unequal times
FREE = 1e15  # bytes/s of links that take no time; the page has its own setting for their time
LONGEST = 20_000  # characters of a profile
WIDEST = 160  # px of the slowest stage's bar
BAR = '<i style="display: inline-block; width: {}px; height: 12px; background: {}"></i>'
METHODS = {
    "min_max": "The slowest stage is as fast as possible",
    "variance": "Times are as equal as possible (GPipe)",
    "torchgpipe_time": "torchgpipe's heuristic",
    "blocks": "torchgpipe's heuristic, but no layer counts as free",
}
LAYERS = (
    "A line for each layer, as `lockstep profile` writes it: seconds of its forward and backward passes, bytes of "
    "its output, bytes of its weights."
)
ABOUT = (
    "A pipeline is as fast as its slowest stage. These are the layers of Lockstep's transformer, with the costs of "
    "its kernels on the laptop. Replace them with your own model's, measured or estimated."
)


def show(study: Study) -> None:
    """Offer to cut a model into as many stages as the schedule of `study` has."""
    with st.expander("Cut a model into these stages", key="partition", on_change="rerun") as place:
        if place.open:
            st.markdown(ABOUT)
            _cut(study)


def _cut(study: Study) -> None:
    stages, state = study.summary["stages"], st.session_state
    text = st.text_area("Layers", example(), 250, LONGEST, key="layers", help=LAYERS, persist_state="session")
    method = st.selectbox(
        f"Cut into {stages}, so that", METHODS, key="cut_by", format_func=METHODS.get, persist_state="session"
    )
    try:
        profile = partitions.read_text(text)
        found = partitions.plan(profile, [(stages, FREE)], method)
        costs = partitions.stage_costs(profile, found, study)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/content_cut:")
        return
    st.html(_table(profile, found))
    slowest = units.number(found.period / (found.alone / stages))
    bound = (
        f" Even with many micro-batches and no bubble, {stages} ranks are at most "
        f"{units.number(found.speed_up)} times as fast as one."
    )
    alone = len({*zip(study.ops["rank"].tolist(), study.ops["stage"].tolist(), strict=True)}) == stages
    st.markdown(f"The slowest stage takes {slowest} times the mean.{bound if alone else ''}")
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Time the schedule with these stages", key="with-stages", icon=":material/content_cut:",
            on_click=state.update, args=({"other_costs": costs},), disabled=state.get("other_costs") == costs,
            help="Copies the costs of these stages to *Other costs*, scaled so that all forward passes together "
            "take as long as with even stages. I and W each count as half a backward pass.",
        )  # fmt: skip
        st.button(
            "Back to even stages", key="even-stages", on_click=state.update, args=({"other_costs": ""},),
            disabled=not state.get("other_costs"),
        )  # fmt: skip


@st.cache_data(show_spinner=False)
def example() -> str:
    """Return, as text, the profile of layers that the page shows at first."""
    return partitions.profile_text(partitions.profile_model(EXAMPLE, None))


def _table(profile: Profile, found: Partition) -> str:
    """Return a row for each stage: its layers, and its time as a number and a bar."""
    rows = []
    for number, (stage, (forward, backward)) in enumerate(
        zip(found.stages, partitions.stage_times(profile, found), strict=True)
    ):
        names = ", ".join(profile.layers[stage.first : stage.last + 1])
        wide = [round(WIDEST * part / found.period) for part in (forward, backward)]
        bar = "".join(BAR.format(width, palette.op(kind, 0).colour) for width, kind in zip(wide, "FB", strict=True))
        took = (units.seconds(forward), units.seconds(backward), units.percent((forward + backward) / found.alone))
        rows.append((f"stage {number}", (Html(bar), *took, names)))
    heads = ("", "takes", "forward", "backward", "of the whole", "layers")
    return f'<div class="figures">{html_table(heads, rows)}</div>'

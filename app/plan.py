"""The page that plans the training of a language model: the fastest layouts on a cluster, and how accurate its
predictions are.
"""

from urllib.parse import urlencode

import streamlit as st

from app import charts
from app.browser import components
from app.browser.frames import frame
from app.browser.text import escape_markdown, sentence
from app.charts.pictures import heading
from experiments.study import layouts, planner_errors, schedules
from experiments.study.layouts import LayoutAnswer, Request
from experiments.study.planned_pipeline import PipelineSketch, sketch_pipeline
from experiments.viewer.canvases import schedule
from experiments.wording import units

OWN = "a config.json"  # instead of a model's name
BOUND = {"bind": "query-params", "persist_state": "session"}
GPUS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
SEQUENCES = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
BATCHES = ["256k", "512k", "1M", "2M", "4M", "8M", "16M"]
PORTS = ["", "25G", "100G", "200G", "400G", "800G"]
TOKENS = [1e10, 1e11, 3e11, 1e12, 2e12, 5e12, 1e13, 1.5e13]
LABELS = {"pipe": "pipeline", "micro": "micro-batch", "again": "recomputed", "tok/s": "tokens/s per GPU"}
HELP = {
    "data": "GPUs over which data parallelism splits the batch.",
    "tensor": "GPUs over which each matrix is split.",
    "pipe": "GPUs of the pipeline. 4x10: ten stages on each of four GPUs; zb: weight gradients are computed when a "
    "GPU would otherwise be idle (zero bubble).",
    "context": "GPUs over which each sequence is split.",
    "experts": "GPUs over which the experts of a layer are divided. These are some of the data and context GPUs.",
    "micro": "Sequences in a micro-batch.",
    "shards": "What data-parallel ranks shard: the optimizer's state, gradients too, or everything; full/8: in each "
    "of eight groups.",
    "again": "What is recomputed in the backward pass; light: the activation functions only.",
    "tok/s": "Multiply by the number of GPUs for the throughput of the cluster.",
    "MFU": "The model's FLOPs as a share of the GPU's peak.",
    "memory": "Share of the GPU's memory.",
}
LEGEND = (
    "Pipeline 8x5: eight GPUs with five stages each; 8 zb: zero bubble, i.e. gradients of weights are computed while a "
    "GPU would wait. Shards: what data-parallel GPUs shard (the optimizer's state, gradients too, or all). "
    "Recomputed light: the activation functions only."
)
INTRODUCTION = (
    "Choose a model and a cluster. The planner prices every way to split the training over the GPUs and shows the "
    "fastest that fit in memory. It uses closed forms with ten constants fitted to 144 published configurations."
)

_found = st.cache_resource(layouts.find_layouts, max_entries=32, show_spinner=False)
_dots = st.cache_resource(planner_errors.dots, show_spinner=False)
_accuracy = st.cache_resource(planner_errors.accuracy, show_spinner=False)


@st.cache_resource(max_entries=32, show_spinner=False)
def _lanes(pipeline: PipelineSketch) -> bytes:
    return schedule.frame(schedules.study(pipeline.plan))


def page() -> None:
    """Show the layouts for the reader's model and cluster, then the predictions next to the published values."""
    with st.sidebar:
        request, tokens, price = _choose()
    st.markdown("# Plan a training run", anchors=False)
    st.markdown(INTRODUCTION)
    if request.model == OWN:
        st.info(
            "Upload the model's config.json, in the format of Hugging Face, in the field under *Model*.",
            icon=":material/upload_file:",
        )
        return
    try:
        answer = _found(request)
    except ValueError as error:
        st.error(sentence(str(error)), icon=":material/block:")
        return
    heading(escape_markdown(layouts.title(answer)))
    if len(answer.found):
        _layouts(answer)
    for remark in layouts.remarks(answer, tokens, price or None):
        st.markdown(escape_markdown(remark))
    if len(answer.found):
        _parts(answer)
    _how_good()


def _choose() -> tuple[Request, float, float]:
    st.markdown("**A model**")
    models = (*layouts.MODELS, OWN)
    model, config = st.selectbox("Model", models, models.index("llama-3-70b"), key="plan_model", **BOUND), ""
    if model == OWN:
        given = st.file_uploader("A model's config.json", type="json", key="plan_config", max_upload_size=1)
        if given:
            model, config = given.name, given.getvalue().decode("utf-8", "replace")
    sequence = st.select_slider(
        "Sequence, tokens", SEQUENCES, 8192, format_func=units.count, key="plan_sequence", **BOUND
    )
    batch = st.select_slider("Batch, tokens", BATCHES, "4M", key="plan_batch", **BOUND)
    precision = st.segmented_control(
        "Precision", ["bf16", "fp8"], default="bf16", required=True, key="plan_precision", **BOUND
    )
    st.markdown("**A cluster**")
    gpus = st.select_slider("GPUs", GPUS, 64, format_func=units.count, key="plan_gpus", **BOUND)
    device = st.selectbox("Kind", layouts.DEVICES, layouts.DEVICES.index("H100"), key="plan_device", **BOUND)
    per_node = st.segmented_control(
        "GPUs per node", [1, 2, 4, 8], default=8, required=True, key="plan_per_node", **BOUND
    )
    network = st.select_slider(
        "Network, for each GPU", PORTS, "", format_func=lambda port: f"{port[:-1]} Gbit/s" if port else "usual",
        key="plan_network", **BOUND,
    )  # fmt: skip
    st.markdown("**A run**")
    tokens = st.select_slider(
        "Tokens in all", TOKENS, 1e12, format_func=layouts.tokens_text, key="plan_tokens", **BOUND
    )
    price = st.number_input("Price of a GPU hour, in your currency", 0.0, 1000.0, 0.0, 0.5, key="plan_price", **BOUND)
    request = Request(model, gpus, device, per_node, network, f"{batch}-tokens", sequence, precision, config)
    return request, tokens, price


def _layouts(answer: LayoutAnswer) -> None:
    st.dataframe(
        frame(layouts.rows(answer)), hide_index=True,
        column_config={name: st.column_config.Column(LABELS.get(name), help=told) for name, told in HELP.items()},
    )  # fmt: skip
    st.caption(f"{layouts.SELECTION} {LEGEND}")


def _parts(answer: LayoutAnswer) -> None:
    heading(escape_markdown(f"The best: {layouts.layout_text(answer.found, 0)}"))
    if pipeline := sketch_pipeline(answer.found):
        _pipeline(pipeline)
    left, right = st.columns(2, gap="medium")
    left.dataframe(frame(layouts.step_parts(answer.found)), hide_index=True)
    right.dataframe(frame(layouts.memory_parts(answer.found)), hide_index=True)


def _pipeline(pipeline: PipelineSketch) -> None:
    """Draw the pipeline if drawing it is quick, and link to the page where the reader can change its costs."""
    drawn = schedules.size(pipeline.plan) <= schedules.QUICK
    if drawn:
        components.timeline(_lanes(pipeline), key="plan_pipeline")
    unit = f"One unit of time is a stage's forward pass, {units.seconds(pipeline.forward)}. " * drawn
    st.caption(f"{unit}{pipeline.remark} [View and change it on the schedules page]({_schedule_link(pipeline)}).")


def _schedule_link(pipeline: PipelineSketch) -> str:
    """Return the address of the schedules page with this pipeline."""
    asked = {"schedule_a": pipeline.schedule, "ranks": pipeline.ranks, "micro_batches": pipeline.chunks}
    asked |= {"pieces_a": pipeline.pieces} if pipeline.pieces > 1 else {}
    asked |= {"cost_f": 1, "cost_i": round(pipeline.backward - pipeline.weights, 3), "cost_w": pipeline.weights}
    return f"schedules?{urlencode(asked | {'link_takes': pipeline.latency})}"


def _how_good() -> None:
    heading("How good these predictions are")
    st.markdown(f"The dots are the published runs to which the constants were fitted. {planner_errors.ERROR}.")
    dots = _dots()
    worst = max(dots, key=lambda dot: abs(dot.predicted / dot.published - 1))
    st.dataframe(frame(_accuracy()), hide_index=True)
    st.plotly_chart(
        charts.published_dots(dots), key="published-dots", config=charts.CONFIG,
        alt=f"Predicted against published utilisation of {len(dots)} configurations, close to the diagonal.",
    )  # fmt: skip
    st.caption(
        escape_markdown(
            f"The largest error is {100 * (worst.predicted / worst.published - 1):+.0f} % ({worst.name}"
            f"{': ' * bool(worst.remark)}{worst.remark})."
        )
    )

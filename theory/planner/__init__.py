"""How long a training step of a large language model takes on a cluster of GPUs, and how much memory it needs, by
layout.

    language_model   the shape of a transformer: parameters and FLOPs, presets, Hugging Face's config.json
    setup            GPUs, and a layout: five ways to split the model and its batch, recomputation, micro-batches
    constants        what was fitted to published throughput
    step_time        seconds of a step, and of each part
    memory_use       bytes on a GPU, by kind
    search           all layouts of a cluster, the best first
    published        measured throughput from publications, and the planner's errors on it

All quantities may be arrays, with one element for each layout or published row; NumPy broadcasts them.
"""

"""Write a planner.

`choose(model, cluster)` gets a language model and a cluster, and returns a layout, a dict:

- `"data"`, `"tensor"`, `"pipeline"`: GPUs over which each way splits the work. Their product is the number of GPUs.
- `"micro_batch"`: sequences in a micro-batch, 1, 2, 4 or 8.
- `"shard"`: `"optimizer"` if replicas share the optimizer's state, `"full"` if they share all, and gather each layer
  twice in every micro-batch. The latter needs at least two replicas, and no pipeline.
- `"recompute"`: True if every layer is computed again in the backward pass.
- `"interval"`: seconds of work between two checkpoints.

The numbers of heads, and of heads of keys and values, have to be multiples of `"tensor"`, that of layers a multiple of
`"pipeline"` (each GPU of it has one stage), and the batch a multiple of `"data"` times `"micro_batch"`. Ranks that
share matrices split the norms as well. The chapter's *price list* says what all this takes.

`model` is a dict:

- `"layers"`, `"width"`, `"heads"`, `"kv_heads"`, `"ffn"`, `"vocabulary"`, `"sequence"`;
- `"batch"`: sequences in a step;
- `"keys"`: the width of all keys of a layer, or of all values;
- `"layer"`, `"parameters"`: the weights of one layer, and of the whole model.

`cluster` is a dict, too:

- `"gpus"`, `"per_node"`: their number, and how many a node has;
- `"memory"`: bytes of a GPU that may be filled;
- `"flops"`, `"attention"`: operations per second that a large product attains, and that attention attains;
- `"knee"`: the x of the price list at which a product attains half of that;
- `"bandwidth"`: bytes per second of a GPU's memory, as attained;
- `"link"`, `"port"`: bytes per second within a node, and through each GPU's own network port;
- `"hop"`: seconds of a step of a ring over several nodes;
- `"hidden"`, `"hidden_tensor"`: share of data-parallel messages that is hidden, and of those of shared matrices;
- `"between_failures"`: seconds from one failure of a GPU to its next, on average;
- `"saving"`: seconds that a checkpoint takes.

The planner below always shards all, over all GPUs. That is the best layout in some cases only.

Your choices compete with ours: Llama 3 8B, Llama 2 13B and Llama 3 70B, on one node of eight B200s with slow
ports, on 64 H100s with a fast network, and on 128 A100s in nodes of four with a slow one. Eleven more pairs of a model
and a cluster are drawn when grading begins. Ours prices every layout with the formulas of `lockstep plan`. A call may
take a second.
"""

TARGETS = {
    "speed": 0.95,  # of ours: its time of a step, over yours
    "lost": 1.05,  # times the time that checkpoints and repeated work cost with Young's interval
}


def choose(model, cluster):
    """Return a layout."""
    return {
        "data": cluster["gpus"],
        "tensor": 1,
        "pipeline": 1,
        "micro_batch": 1,
        "shard": "full",
        "recompute": True,
        "interval": 3600.0,
    }

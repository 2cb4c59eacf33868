"""What pages call the fields of an experiment."""

WORDS = {
    "batch": "batch size",
    "per_node": "ranks per node",
    "nics": "NICs per node",
    "recompute_activations": "activation recomputation",
    "sync_batch_norm": "synchronised batch norm",
    "cuda_graph": "CUDA graph",
    "slow": "slow ranks",
    "pause": "paused ranks",
    "crash": "lost ranks",
    "seconds": "time budget",
}
"""Labels of fields of Experiment whose names alone are unclear."""


CHOICES = {
    "weight_storage": {"nearest": "16 bits rounded to nearest", "stochastic": "16 bits rounded stochastically"},
}
"""Values whose names alone are unclear, by field."""


def field_label(name: str) -> str:
    """Return a field's name in words. Names from the literature, such as n_push, stay unchanged."""
    literal = min(map(len, name.split("_"))) == 1
    return WORDS.get(name) or (name if literal else name.replace("_", " "))

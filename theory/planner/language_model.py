"""The shape of a transformer that models language: its parameters and FLOPs.

    k = kv_heads / heads x width                             width of all keys, or of all values
    layer = width (width + 2 k) + width^2 + 2 width ffn + 13 width           GPT: biases and layer norms
    layer = width (width + 2 k) + width^2 + 3 width ffn + 2 width            gated: RMS norms, no biases

Parameters are exact for models built that way, such as MPT and Llama; families with other biases differ by less than a
thousandth. `sequence` belongs to the shape, because learned positions are parameters.

Source: Radford et al., 2019 (GPT-2); Touvron et al., arXiv:2302.13971 (Llama: gated feed-forward layers, RMS norms,
rotary positions); Narayanan et al., SC 2021, appendix (FLOPs).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knobs import match_name

CAUSAL = 0.5  # share of the attention scores that a causal mask leaves


@dataclass(frozen=True)
class LanguageModel:
    """Counts of a transformer's layers and their widths."""

    layers: Any
    width: Any
    heads: Any
    kv_heads: Any  # of keys and values: fewer than heads in grouped-query attention
    ffn: Any  # width of the feed-forward layer
    vocabulary: Any
    sequence: Any  # tokens
    gated: Any = False  # a third feed-forward matrix (SwiGLU), RMS norms, rotary positions and no biases, as in Llama
    tied: Any = True  # the output layer is the embedding
    learned_positions: Any = False

    @property
    def keys(self):
        """The width of all keys."""
        return self.width // self.heads * self.kv_heads

    @property
    def matrices(self):
        """The number of matrices of a feed-forward layer."""
        return 2 + self.gated

    @property
    def layer_parameters(self):
        """The parameters of one layer."""
        h = self.width
        small = (13 - 11 * self.gated) * h
        return h * (h + 2 * self.keys) + h * h + self.matrices * h * self.ffn + small

    @property
    def parameters(self):
        """All parameters, with the embedding and, unless it is tied, the output layer."""
        h = self.width
        embedding = self.vocabulary * h * (2 - self.tied) + self.sequence * h * self.learned_positions
        return self.layers * self.layer_parameters + embedding + (2 - self.gated) * h

    def flops(self, scores: float = 1.0):
        """Return the FLOPs per token of forward and backward, without recomputation.

        `scores` is the share of attention scores that counts: publications count all of them (1), although a causal
        mask leaves half (`CAUSAL`).
        """
        products = 6 * (self.layers * self.layer_parameters + self.vocabulary * self.width)
        return products + scores * 12 * self.layers * self.width * self.sequence


def _gpt(layers: int, width: int, heads: int, sequence: int = 2048, vocabulary: int = 51200) -> LanguageModel:
    return LanguageModel(
        layers, width, heads, heads, 4 * width, vocabulary, sequence, learned_positions=True,
    )  # fmt: skip


def _llama(layers: int, width: int, heads: int, kv: int, ffn: int, vocabulary: int, sequence: int) -> LanguageModel:
    return LanguageModel(layers, width, heads, kv, ffn, vocabulary, sequence, gated=True, tied=False)


PRESETS: dict[str, LanguageModel] = {
    "gpt-2-xl": _gpt(48, 1600, 25, 1024, 50257),
    "gpt-3-13b": _gpt(40, 5120, 40),
    "gpt-3-175b": _gpt(96, 12288, 96),
    "megatron-22b": _gpt(48, 6144, 64),
    "megatron-530b": _gpt(105, 20480, 128),
    "megatron-1t": _gpt(128, 25600, 160),
    "mpt-7b": _gpt(32, 4096, 32, 2048, 50368),
    "mpt-30b": _gpt(48, 7168, 56, 2048, 50368),
    "mpt-70b": _gpt(80, 8192, 64, 2048, 50368),
    "llama-2-7b": _llama(32, 4096, 32, 32, 11008, 32000, 4096),
    "llama-2-13b": _llama(40, 5120, 40, 40, 13824, 32000, 4096),
    "llama-2-70b": _llama(80, 8192, 64, 8, 28672, 32000, 4096),
    "llama-3-8b": _llama(32, 4096, 32, 8, 14336, 128256, 8192),
    "llama-3-70b": _llama(80, 8192, 64, 8, 28672, 128256, 8192),
    "llama-3.1-405b": _llama(126, 16384, 128, 8, 53248, 128256, 8192),
}

CONFIG = {  # field: its names in config.json, the first of Llama, the others of GPT-2, MPT and others
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "width": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocabulary": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions", "max_seq_len"),
}
LARGEST = 10**7  # upper limit of any number in a config.json
GATED = ("silu", "swiglu", "swish", "geglu", "gelu_pytorch_tanh")  # activations of a gated feed-forward layer


def find_model(name: str) -> LanguageModel:
    """Return the preset of this name, in any case. Raise ValueError if there is none."""
    found = match_name(name, PRESETS)
    if found not in PRESETS:
        raise ValueError(
            f"there is no model {name!r}; use {', '.join(PRESETS)}, or the path of a Hugging Face config.json."
        )
    return PRESETS[found]


def from_config(config: Mapping[str, Any]) -> LanguageModel:
    """Return the model that a Hugging Face `config.json` describes. Raise ValueError if it is not a transformer."""
    sizes = {field: _first(config, names) for field, names in CONFIG.items()}
    if missing := [CONFIG[field][0] for field, size in sizes.items() if not size]:
        raise ValueError(f"this config.json does not say {', '.join(missing)}; is it the config of a language model?")
    if largest := [CONFIG[field][0] for field, size in sizes.items() if size > LARGEST]:
        raise ValueError(f"{largest[0]} in this config.json is above {LARGEST:,}, more than any model has.")
    if experts := _first(config, ("num_local_experts", "num_experts", "n_routed_experts")):
        raise ValueError(f"this model has {experts} experts; mixtures of experts are not planned.")
    heads, width = sizes["heads"], sizes["width"]
    if width % heads:
        raise ValueError(f"this config.json has {heads} heads, which do not divide its width of {width}.")
    is_old = "n_embd" in config or "d_model" in config  # GPT-2, MPT: biases and learned positions
    gated = config.get("hidden_act") in GATED and not is_old
    ffn = _first(config, ("intermediate_size", "n_inner", "ffn_dim")) or int(config.get("expansion_ratio", 4)) * width
    return LanguageModel(
        **sizes, kv_heads=_first(config, ("num_key_value_heads",)) or heads, ffn=ffn, gated=gated,
        tied=bool(config.get("tie_word_embeddings", is_old)), learned_positions=is_old,
    )  # fmt: skip


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Return the first whole number above 0 under one of these names; 0 if there is none."""
    found = (config.get(name) for name in names)
    return next((size for size in found if isinstance(size, int) and not isinstance(size, bool) and size > 0), 0)

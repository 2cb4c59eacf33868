"""The shape of a transformer language model: its parameters and FLOPs.

    q = heads x size of a head                               total width of the queries; usually the model's width
    k = kv_heads x size of a head                            total width of the keys; the same for the values
    layer = width (q + 2 k) + q width + 2 width ffn + 13 width               GPT: biases and layer norms
    layer = width (q + 2 k) + q width + 3 width ffn + 2 width                gated: RMS norms, no biases

In a mixture of experts, each layer has `experts` feed-forward layers of width ffn, of which a token visits `chosen`,
one of width `shared` that all tokens visit, and a router of width x experts.

Parameters are exact for models built that way, such as MPT, Llama and Mixtral; families with other biases or norms
differ by less than a thousandth. `sequence` belongs to the shape, because learned positions are parameters.

Source: Radford et al., 2019 (GPT-2); Touvron et al., arXiv:2302.13971 (Llama: gated feed-forward layers, RMS norms,
rotary positions); Narayanan et al., SC 2021, appendix (FLOPs); Jiang et al., arXiv:2401.04088 (Mixtral).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from knobs import match_name

CAUSAL = 0.5  # share of the attention scores that a causal mask leaves


@dataclass(frozen=True)
class LanguageModel:
    """The shape of a transformer: its layers, heads and experts, and their widths."""

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
    head: Any = 0  # numbers in a head; 0 for width / heads
    experts: Any = 1  # in each layer
    chosen: Any = 1  # experts that a token visits
    shared: Any = 0  # width of the feed-forward layer that all tokens visit besides

    @property
    def queries(self):
        """The total width of the queries: heads times the size of a head."""
        return np.where(self.head, self.head * self.heads, self.width)

    @property
    def keys(self):
        """The total width of the keys: key heads times the size of a head."""
        return np.where(self.head, self.head, self.width // self.heads) * self.kv_heads

    @property
    def matrices(self):
        """The number of matrices of a feed-forward layer."""
        return 2 + self.gated

    @property
    def is_mixture(self):
        """True if each layer has several experts."""
        return np.asarray(self.experts) > 1

    @property
    def expert_parameters(self):
        """The number of parameters of a layer that expert parallelism divides. These are the parameters of its experts,
        or none if the model is no mixture.
        """
        return np.where(self.is_mixture, self.experts * self.matrices * self.width * self.ffn, 0)

    @property
    def layer_parameters(self):
        """The number of parameters of one layer."""
        return self._layer(self.experts)

    @property
    def parameters(self):
        """The number of all parameters, with the embedding and, unless it is tied, the output layer."""
        return self.layers * self.layer_parameters + self._rest

    @property
    def active_parameters(self):
        """The number of parameters that a token uses: those of the experts that it visits, and all others."""
        return self.layers * self._layer(self.chosen) + self._rest

    def _layer(self, experts):
        h = self.width
        small = (13 - 11 * self.gated) * h + np.where(self.is_mixture, h * self.experts, 0)
        feed_forward = self.matrices * h * (experts * self.ffn + self.shared)
        return h * (self.queries + 2 * self.keys) + self.queries * h + feed_forward + small

    @property
    def _rest(self):
        h = self.width
        embedding = self.vocabulary * h * (2 - self.tied) + self.sequence * h * self.learned_positions
        return embedding + (2 - self.gated) * h

    def flops(self, scores: float = 1.0):
        """Return the number of FLOPs per token of a forward and backward pass, without recomputation.

        `scores` is the share of attention scores that counts: publications count all of them (1), although a causal
        mask leaves half (`CAUSAL`).
        """
        products = 6 * (self.layers * self._layer(self.chosen) + self.vocabulary * self.width)
        return products + scores * 12 * self.layers * self.queries * self.sequence


def _gpt(layers: int, width: int, heads: int, sequence: int = 2048, vocabulary: int = 51200) -> LanguageModel:
    return LanguageModel(
        layers, width, heads, heads, 4 * width, vocabulary, sequence, learned_positions=True,
    )  # fmt: skip


def _llama(
    layers: int, width: int, heads: int, kv: int, ffn: int, vocabulary: int, sequence: int, **mixture: int
) -> LanguageModel:
    return LanguageModel(layers, width, heads, kv, ffn, vocabulary, sequence, gated=True, tied=False, **mixture)


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
    "mixtral-8x7b": _llama(32, 4096, 32, 8, 14336, 32000, 4096, experts=8, chosen=2),
    "mixtral-8x22b": _llama(56, 6144, 48, 8, 16384, 32768, 4096, experts=8, chosen=2),
    "qwen3-30b-a3b": _llama(48, 2048, 32, 4, 768, 151936, 4096, head=128, experts=128, chosen=8),
}

CONFIG = {  # field: its names in config.json, the first of Llama, the others of GPT-2, MPT and others
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "width": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocabulary": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions", "max_seq_len"),
}
LARGEST = 10**7  # upper limit of any number in a config.json
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
UNPLANNED = {
    "kv_lora_rank": "latent attention",
    "first_k_dense_replace": "layers with and without experts",
    "mlp_only_layers": "layers with and without experts",
}
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
    """Return the model that a Hugging Face `config.json` describes. Raise ValueError if sizes are missing or
    impossible, or if the planner does not support such a model.
    """
    sizes = {field: _first(config, names) for field, names in CONFIG.items()}
    if missing := [CONFIG[field][0] for field, size in sizes.items() if not size]:
        raise ValueError(f"this config.json does not say {', '.join(missing)}; is it the config of a language model?")
    if largest := [CONFIG[field][0] for field, size in sizes.items() if size > LARGEST]:
        raise ValueError(f"{largest[0]} in this config.json is above {LARGEST:,}, more than any model has.")
    if found := [name for name in UNPLANNED if config.get(name)]:
        raise ValueError(
            f"this config.json has {found[0]} ({UNPLANNED[found[0]]}), which the planner does not support."
        )
    heads, width, head = sizes["heads"], sizes["width"], _first(config, ("head_dim",))
    if width % heads and not head:
        raise ValueError(f"this config.json has {heads} heads, which do not divide its width of {width}.")
    is_old = "n_embd" in config or "d_model" in config  # GPT-2, MPT: biases and learned positions
    gated = config.get("hidden_act") in GATED and not is_old
    ffn = _first(config, ("intermediate_size", "n_inner", "ffn_dim")) or int(config.get("expansion_ratio", 4)) * width
    mixture, experts = {}, _first(config, EXPERTS)
    if experts > 1:
        chosen, own = _first(config, ("num_experts_per_tok", "top_k")), _first(config, ("moe_intermediate_size",))
        if not 0 < chosen <= experts:
            raise ValueError(
                f"this config.json has {experts} experts, but num_experts_per_tok is {chosen or 'missing'}."
            )
        shared = _first(config, ("shared_expert_intermediate_size",)) or own * _first(config, ("n_shared_experts",))
        mixture, ffn = {"experts": experts, "chosen": chosen, "shared": shared}, own or ffn
    return LanguageModel(
        **sizes, kv_heads=_first(config, ("num_key_value_heads",)) or heads, ffn=ffn, gated=gated,
        tied=bool(config.get("tie_word_embeddings", is_old)), learned_positions=is_old,
        head=head if head * heads != width else 0, **mixture,
    )  # fmt: skip


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Return the first whole number above 0 under one of these names, or 0 if there is none."""
    found = (config.get(name) for name in names)
    return next((size for size in found if isinstance(size, int) and not isinstance(size, bool) and size > 0), 0)

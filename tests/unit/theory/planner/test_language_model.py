import pytest

from theory.planner.language_model import CAUSAL, LanguageModel, find_model, from_config
from theory.planner.published import table

LLAMA = {
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192, "hidden_act": "silu",
    "tie_word_embeddings": False,
}  # fmt: skip
GPT2 = {"n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257}


def test_the_parameters_of_all_published_mpt_models_are_exact():
    rows = table()
    mpt = rows.take([name.startswith("mpt") for name in rows.models])
    assert len(mpt) == 130
    assert (mpt.setup.model.parameters == mpt.parameters).all()


def test_models_have_the_parameters_that_their_authors_print():
    """Source: Grattafiori et al., arXiv:2407.21783 (8, 70 and 405 billion); Radford et al., 2019 (1,558 million)."""
    billions = {name: find_model(name).parameters / 1e9 for name in ("llama-3-8b", "llama-3-70b", "llama-3.1-405b")}
    assert billions == pytest.approx({"llama-3-8b": 8.03, "llama-3-70b": 70.55, "llama-3.1-405b": 405.85}, rel=1e-3)
    mixtures = {"mixtral-8x7b": (46.7, 12.9), "mixtral-8x22b": (141, 39), "qwen3-30b-a3b": (30.5, 3.3)}
    for name, (all_of_them, active) in mixtures.items():
        model = find_model(name)
        assert model.parameters / 1e9 == pytest.approx(all_of_them, rel=5e-3)
        assert model.active_parameters / 1e9 == pytest.approx(active, rel=2e-2)
    assert find_model("GPT-2-XL").parameters == pytest.approx(1.5576e9, rel=1e-4)


def test_a_causal_mask_halves_the_flops_of_the_scores_only():
    model = find_model("llama-3-8b")
    scores = 12 * model.layers * model.width * model.sequence
    assert model.flops() - model.flops(CAUSAL) == scores / 2


def test_a_config_file_describes_the_preset_of_the_same_model():
    assert from_config(LLAMA) == find_model("llama-3-8b")
    assert from_config(GPT2) == find_model("gpt-2-xl")


def test_a_config_file_describes_a_mixture_of_experts():
    mixtral = {**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000}
    assert from_config({**mixtral, "max_position_embeddings": 4096}) == find_model("mixtral-8x7b")
    qwen = {
        "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
        "vocab_size": 151936, "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": False,
        "mlp_only_layers": [],
    }  # fmt: skip
    assert from_config(qwen) == find_model("qwen3-30b-a3b")
    shared = from_config({**qwen, "n_shared_experts": 2})
    assert shared.layer_parameters - from_config(qwen).layer_parameters == 3 * 2048 * 2 * 768


def test_heads_need_not_add_up_to_the_width_of_the_model():
    wide = from_config({**LLAMA, "head_dim": 256})
    assert wide.queries == 2 * 4096 and wide.keys == 2 * 1024
    assert wide.layer_parameters - from_config(LLAMA).layer_parameters == 4096 * (2 * 4096 + 2 * 1024)
    assert from_config({**LLAMA, "head_dim": 128}) == from_config(LLAMA)


def test_a_token_that_visits_all_experts_costs_as_much_as_a_dense_layer_of_their_width():
    dense = LanguageModel(4, 64, 4, 4, 8 * 256, 100, 16, gated=True)
    mixture = LanguageModel(4, 64, 4, 4, 256, 100, 16, gated=True, experts=8, chosen=8)
    router = 4 * 64 * 8
    assert mixture.parameters - dense.parameters == router
    assert mixture.flops() - dense.flops() == 6 * router


def test_other_mixtures_and_half_a_config_are_refused_in_a_sentence():
    for experts, words in (
        ({"num_local_experts": 8}, "8 experts, but num_experts_per_tok is missing"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "8 experts, but num_experts_per_tok is 9"),
        ({"n_routed_experts": 256, "first_k_dense_replace": 3}, "first_k_dense_replace .* not support"),
        ({"kv_lora_rank": 512}, "kv_lora_rank .latent attention., which the planner does not support"),
    ):
        with pytest.raises(ValueError, match=words):
            from_config({**LLAMA, **experts})
    with pytest.raises(ValueError, match="does not say hidden_size"):
        from_config({name: size for name, size in LLAMA.items() if name != "hidden_size"})
    with pytest.raises(ValueError, match="7 heads, which do not divide its width of 4096"):
        from_config({**LLAMA, "num_attention_heads": 7})
    with pytest.raises(ValueError, match="no model 'bert'"):
        find_model("bert")


def test_a_gated_layer_has_three_matrices_and_no_biases():
    plain, gated = (LanguageModel(1, 64, 4, 4, 256, 100, 16, gated=gated) for gated in (False, True))
    assert gated.layer_parameters - plain.layer_parameters == 64 * 256 - 11 * 64

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
    assert find_model("GPT-2-XL").parameters == pytest.approx(1.5576e9, rel=1e-4)


def test_a_causal_mask_halves_the_flops_of_the_scores_only():
    model = find_model("llama-3-8b")
    scores = 12 * model.layers * model.width * model.sequence
    assert model.flops() - model.flops(CAUSAL) == scores / 2


def test_a_config_file_describes_the_preset_of_the_same_model():
    assert from_config(LLAMA) == find_model("llama-3-8b")
    assert from_config(GPT2) == find_model("gpt-2-xl")


def test_experts_and_half_a_config_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="8 experts; mixtures of experts are not planned"):
        from_config({**LLAMA, "num_local_experts": 8})
    with pytest.raises(ValueError, match="does not say hidden_size"):
        from_config({name: size for name, size in LLAMA.items() if name != "hidden_size"})
    with pytest.raises(ValueError, match="7 heads, which do not divide its width of 4096"):
        from_config({**LLAMA, "num_attention_heads": 7})
    with pytest.raises(ValueError, match="no model 'bert'"):
        find_model("bert")


def test_a_gated_layer_has_three_matrices_and_no_biases():
    plain, gated = (LanguageModel(1, 64, 4, 4, 256, 100, 16, gated=gated) for gated in (False, True))
    assert gated.layer_parameters - plain.layer_parameters == 64 * 256 - 11 * 64

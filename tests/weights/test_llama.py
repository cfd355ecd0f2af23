import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig as OfficialConfig
from transformers import LlamaForCausalLM, LlamaModel

from course_lib import generation, weights
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.weights.layout import entries
from course_lib.weights.llama import LAYOUT

SIZES = {
    **{"vocab_size": 23, "max_position_embeddings": 17, "hidden_size": 24, "intermediate_size": 20},
    **{"num_hidden_layers": 2, "num_attention_heads": 6},
}
CONFIGURATIONS = {
    "plain": {},
    "two key and value heads": {"num_key_value_heads": 2},
    "one key and value head": {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "a tied head": {"tie_word_embeddings": True},
    "wide heads": {"head_dim": 10, "num_key_value_heads": 3},
    "odd sizes": {"vocab_size": 17, "hidden_size": 30, "num_attention_heads": 5, "num_hidden_layers": 3},
    "slow rotations": {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}},
    "gelu and a large eps": {"hidden_act": "gelu", "rms_norm_eps": 0.3},
}
PADDED = torch.tensor([[True] * 8, [False] * 3 + [True] * 5, [True] * 6 + [False] * 2])  # left and right
LONG = torch.ones(1, 900, dtype=torch.bool)


def official(kind=LlamaForCausalLM, **settings):
    """An official model with large random weights: its own would hide faults."""
    torch.manual_seed(0)
    model = kind(OfficialConfig(**SIZES | settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2).add_(1 if parameter.ndim == 1 else 0)  # 1 for a norm's weight
    return model


def opened(model, folder):
    """Our model of the same weights."""
    model.save_pretrained(folder)
    return weights.from_pretrained(folder)


def batch(model, valid=PADDED):
    torch.manual_seed(1)
    return torch.randint(0, model.config.vocab_size, valid.shape)


def their_output(model, tokens, valid):
    """Logits or features, with the position of each token counted as Hugging Face's `generate` does."""
    positions = (valid.long().cumsum(-1) - 1).masked_fill(~valid, 1)
    return model(tokens, attention_mask=valid.long(), position_ids=positions)[0]


def all_gradients(model, output, valid):
    """Those of all parameters and of the embedded tokens, of the mean random sum of a real token's outputs."""
    seen, words = [], model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else model.token_embed
    hook = words.register_forward_hook(lambda _, inputs, output: output.retain_grad() or seen.append(output))
    values = output()
    hook.remove()
    torch.manual_seed(2)
    (values[valid] * torch.randn_like(values[valid])).sum(dim=-1).mean().backward()
    return values, seen[0].grad


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("kind", [LlamaForCausalLM, LlamaModel])
def test_logits_and_all_gradients_agree_with_the_official_model(kind, settings, tmp_path):
    theirs = official(kind, **settings)
    ours = opened(theirs, tmp_path)
    tokens = batch(theirs)
    expected, their_grad = all_gradients(theirs, lambda: their_output(theirs, tokens, PADDED), PADDED)
    found, our_grad = all_gradients(ours, lambda: ours(tokens, valid=PADDED), PADDED)
    assert expected.abs().max() > 1 and their_grad.abs().max() > 0.1
    torch.testing.assert_close(found[PADDED], expected[PADDED], atol=1e-5, rtol=0)
    torch.testing.assert_close(our_grad, their_grad, atol=1e-5, rtol=0)
    parameters = dict(theirs.named_parameters())
    table = entries(LAYOUT, ours, kind.__name__)
    assert table.keys() == parameters.keys()
    for name, entry in table.items():
        assert parameters[name].grad.abs().max() > 1e-3
        torch.testing.assert_close(entry.ours[0].grad, parameters[name].grad, atol=1e-5, rtol=1e-5, msg=name)


@torch.no_grad()
def test_a_long_text_turns_by_the_same_angles(tmp_path):
    theirs = official(max_position_embeddings=900, num_hidden_layers=1)
    tokens = batch(theirs, LONG)
    expected = theirs(tokens).logits
    torch.testing.assert_close(opened(theirs, tmp_path)(tokens), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("kind", [LlamaForCausalLM, LlamaModel])
def test_the_official_class_opens_what_we_save(kind, settings, tmp_path):
    theirs = official(kind, **settings)
    weights.save_pretrained(opened(theirs, tmp_path / "theirs"), tmp_path / "ours")
    again, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values())
    tokens = batch(theirs)
    with torch.no_grad():
        expected = their_output(theirs, tokens, PADDED)
        torch.testing.assert_close(their_output(again, tokens, PADDED), expected, rtol=0, atol=0)
    tied = ["tie_word_embeddings"] if kind is LlamaForCausalLM else []  # without a head there is nothing to tie
    for name in ["num_key_value_heads", "head_dim", "rms_norm_eps", "hidden_act", *tied]:
        assert getattr(again.config, name) == getattr(theirs.config, name)
    assert again.config.rope_parameters == theirs.config.rope_parameters


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_round_trip_keeps_every_bit(settings, tmp_path):
    ours = opened(official(**settings), tmp_path / "theirs")
    weights.save_pretrained(ours, tmp_path / "ours")
    before, after = (load_file(tmp_path / whose / "model.safetensors") for whose in ("theirs", "ours"))
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert weights.from_pretrained(tmp_path / "ours").config == ours.config


def test_official_defaults_are_ours():
    with torch.device("meta"):
        model = LAYOUT.build(LAYOUT.read_settings(OfficialConfig().to_dict()), "LlamaForCausalLM", frozenset())
    assert model.config == LlamaConfig()


@pytest.mark.parametrize("settings", [{}, {"num_key_value_heads": 2}, {"tie_word_embeddings": True}], ids=str)
def test_it_writes_what_the_official_model_writes(settings, tmp_path):
    theirs = official(**settings)
    ours, prompt = opened(theirs, tmp_path), torch.tensor([[3, 5, 8, 2, 11]])
    expected = theirs.generate(prompt, max_new_tokens=11, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert torch.equal(generation.greedy(ours, prompt, max_new_tokens=11), expected[:, prompt.shape[1] :])


def test_our_model_is_saved_and_opened_again(tmp_path):
    torch.manual_seed(0)
    sizes = {"vocab_size": 23, "context_length": 11, "dim": 16, "depth": 2, "num_heads": 4, "mlp_dim": 12}
    ours = Llama(LlamaConfig(**sizes, num_kv_heads=2, head="tied")).eval()
    weights.save_pretrained(ours, tmp_path)
    again, theirs = weights.from_pretrained(tmp_path), LlamaForCausalLM.from_pretrained(tmp_path)
    tokens = batch(theirs)
    torch.testing.assert_close(again(tokens), ours(tokens), rtol=0, atol=0)
    torch.testing.assert_close(theirs(tokens).logits, ours(tokens), rtol=0, atol=1e-5)
    assert again.head.weight is again.token_embed.weight


def change_config(folder, **changes):
    """Entries of config.json; None takes one out."""
    file = folder / "config.json"
    config = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def test_older_files_are_understood(tmp_path):
    """Their angles stand outside of an object, and are stored as tensors, too."""
    theirs = official(rope_parameters={"rope_type": "default", "rope_theta": 5000.0})
    ours, tokens = opened(theirs, tmp_path), batch(theirs)
    change_config(tmp_path, rope_parameters=None, head_dim=None, rope_theta=5000.0, rope_scaling=None)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file) | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    save_file(tensors, file, metadata={"format": "pt"})
    again = weights.from_pretrained(tmp_path)
    assert again.config == ours.config and again.config.rotary_base == 5000.0
    torch.testing.assert_close(again(tokens), ours(tokens), rtol=0, atol=0)


def test_a_tied_head_may_be_stored_twice_but_not_differently(tmp_path):
    theirs = official(tie_word_embeddings=True)
    ours, tokens, file = opened(theirs, tmp_path), batch(theirs), tmp_path / "model.safetensors"
    tensors = load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, file, metadata={"format": "pt"})
    torch.testing.assert_close(weights.from_pretrained(tmp_path)(tokens), ours(tokens), rtol=0, atol=0)
    tensors["lm_head.weight"][0, 0] += 1
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="must be equal, since config.json ties them"):
        weights.from_pretrained(tmp_path)


SCALED = "we have only rotary positions that are not scaled"
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "original_max_position_embeddings": 8192}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}, f"'linear'.*{SCALED}"),
        ({"rope_parameters": LLAMA3}, SCALED),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, SCALED),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, f"rope_scaling is .*'dynamic'.*{SCALED}"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}, SCALED),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": "big"}}, "rope_theta must be a number"),
        ({"rope_parameters": {"rope_theta": 0.0}}, "rope_theta must be 1 or more, got 0"),
        ({"rope_parameters": [1]}, r"rope_parameters must be an object, got \[1\]"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"hidden_act": "tanh"}, "hidden_act is 'tanh'"),
        ({"num_key_value_heads": 4}, "num_heads must be a multiple of num_kv_heads, got 6 and 4"),
        ({"num_key_value_heads": 2}, r"k_proj.weight must have the shape \(8, 24\)"),
        ({"num_hidden_layers": 3}, "layers.2.input_layernorm.weight .* is missing"),
        ({"architectures": ["LlamaForTokenClassification"]}, "LlamaForTokenClassification.*LlamaModel"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_we_do_not_have_is_named(option, message, tmp_path):
    official().save_pretrained(tmp_path)
    change_config(tmp_path, **option)
    with pytest.raises(ValueError, match=message):
        weights.from_pretrained(tmp_path)

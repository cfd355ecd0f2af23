import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from course_lib import weights
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.weights.gpt2 import LAYOUT

SIZES = {"vocab_size": 23, "n_positions": 11, "n_embd": 12, "n_layer": 2, "n_head": 3}
CONFIGURATIONS = {
    "plain": {},
    "odd sizes": {"vocab_size": 17, "n_positions": 9, "n_embd": 35, "n_head": 5, "n_inner": 13, "n_layer": 3},
    "one layer, one head": {"n_layer": 1, "n_head": 1},
    "a head of its own": {"tie_word_embeddings": False},
    "relu": {"activation_function": "relu"},
    "exact gelu": {"activation_function": "gelu", "tie_word_embeddings": False},
    "silu and a large eps": {"activation_function": "silu", "layer_norm_epsilon": 0.3},
    "other dropouts": {"embd_pdrop": 0.0, "attn_pdrop": 0.5, "resid_pdrop": 0.25},
}
CARRIED = ("n_inner", "embd_pdrop", "attn_pdrop", "resid_pdrop", "layer_norm_epsilon")
PADDED = torch.tensor([[True] * 8, [False] * 3 + [True] * 5, [True] * 6 + [False] * 2])  # left and right


def official(kind=GPT2LMHeadModel, **settings):
    """An official model with large random weights: its own would hide faults."""
    torch.manual_seed(0)
    model = kind(GPT2Config(**SIZES | {"bos_token_id": 0, "eos_token_id": 0} | settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            centre = parameter.mean().round() if parameter.ndim == 1 else 0  # 1 for a norm's weight
            parameter.normal_(std=0.2).add_(centre)
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


def input_gradients(module, place, output, valid):
    """The gradient of the mean random sum of a real token's outputs, at what enters or leaves (`place`) a module."""
    seen = []
    hook = (
        module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        if place == "input"
        else module.register_forward_hook(lambda _, inputs, output: seen.append(output))
    )
    values = output()
    hook.remove()
    torch.manual_seed(2)
    (values[valid] * torch.randn_like(values[valid])).sum(dim=-1).mean().backward(inputs=[seen[0].requires_grad_()])
    return values, seen[0].grad


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("kind", [GPT2LMHeadModel, GPT2Model])
def test_logits_and_input_gradients_agree_with_the_official_model(kind, settings, tmp_path):
    theirs = official(kind, **settings)
    ours = opened(theirs, tmp_path)
    tokens = batch(theirs)
    words = theirs.get_input_embeddings()
    expected, their_grad = input_gradients(words, "output", lambda: their_output(theirs, tokens, PADDED), PADDED)
    found, our_grad = input_gradients(ours.pos_embed, "input", lambda: ours(tokens, valid=PADDED), PADDED)
    assert expected.abs().max() > 1 and their_grad.abs().max() > 0.1
    assert found.shape == expected.shape
    torch.testing.assert_close(found[PADDED], expected[PADDED], atol=1e-5, rtol=0)
    torch.testing.assert_close(our_grad, their_grad, atol=1e-5, rtol=0)


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("kind", [GPT2LMHeadModel, GPT2Model])
def test_the_official_class_opens_what_we_save(kind, settings, tmp_path):
    theirs = official(kind, **settings)
    weights.save_pretrained(opened(theirs, tmp_path / "theirs"), tmp_path / "ours")
    again, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values())
    tokens = batch(theirs)
    with torch.no_grad():
        expected = their_output(theirs, tokens, PADDED)
        torch.testing.assert_close(their_output(again, tokens, PADDED), expected, rtol=0, atol=0)
    assert all(getattr(again.config, name) == value for name, value in settings.items() if name in CARRIED)


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": False}], ids=["tied", "untied"])
def test_a_round_trip_keeps_every_bit(settings, tmp_path):
    theirs = official(**settings)
    ours = opened(theirs, tmp_path / "theirs")
    weights.save_pretrained(ours, tmp_path / "ours")
    before, after = (load_file(tmp_path / whose / "model.safetensors") for whose in ("theirs", "ours"))
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert weights.from_pretrained(tmp_path / "ours").config == ours.config


def test_official_defaults_are_ours():
    with torch.device("meta"):
        model = LAYOUT.build(LAYOUT.read_settings(GPT2Config().to_dict()), "GPT2LMHeadModel", frozenset())
    assert model.config == GPTConfig() and model.blocks[0].ffn.up_proj.out_features == 3072


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [((0.2, 0.2, 0.2), (None, None, 0.2)), ((0.0, 0.5, 0.25), (0.0, 0.5, 0.25)), ((0.1, 0.3, 0.1), (None, 0.3, 0.1))],
)
def test_dropouts_are_kept_in_both_directions(theirs, expected, tmp_path):
    keys = ("embd_pdrop", "attn_pdrop", "resid_pdrop")
    ours = opened(official(**dict(zip(keys, theirs, strict=True))), tmp_path / "theirs")
    config, block = ours.config, ours.blocks[0]
    assert (config.embed_dropout, config.attention_dropout, config.dropout) == expected
    assert (ours.dropout.p, block.attn.dropout, block.dropout.p) == theirs
    weights.save_pretrained(ours, tmp_path / "ours")
    written = GPT2Config.from_pretrained(tmp_path / "ours")
    assert tuple(getattr(written, key) for key in keys) == theirs
    assert weights.from_pretrained(tmp_path / "ours").config == config


def test_our_model_is_saved_and_opened_again(tmp_path):
    torch.manual_seed(0)
    ours = GPT(GPTConfig(vocab_size=23, context_length=11, dim=12, depth=2, num_heads=3, dropout=0.2)).eval()
    weights.save_pretrained(ours, tmp_path)
    again, theirs = weights.from_pretrained(tmp_path), GPT2LMHeadModel.from_pretrained(tmp_path)
    tokens = batch(theirs)
    torch.testing.assert_close(again(tokens), ours(tokens), rtol=0, atol=0)
    torch.testing.assert_close(theirs(tokens).logits, ours(tokens), rtol=0, atol=1e-5)
    assert again.head.weight is again.token_embed.weight


def test_names_of_older_files_are_understood(tmp_path):
    theirs = official()
    ours = opened(theirs, tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(file).items()}
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 11, 11)
    tensors["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    save_file(tensors, file, metadata={"format": "pt"})
    again, tokens = weights.from_pretrained(tmp_path), batch(theirs)
    torch.testing.assert_close(again(tokens), ours(tokens), rtol=0, atol=0)


def test_scaling_before_or_after_the_product_is_the_same(tmp_path):
    theirs = official(reorder_and_upcast_attn=True, attn_implementation="eager")
    tokens = batch(theirs)
    expected = their_output(theirs, tokens, PADDED)[PADDED]
    found = opened(theirs, tmp_path)(tokens, valid=PADDED)[PADDED]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"activation_function": "tanh"}, "activation_function is 'tanh'"),
        ({"n_head": 5}, "dim=12, num_heads=5"),
        ({"n_inner": 47}, r"h.0.mlp.c_fc.weight must have the shape \(12, 47\) by config.json's n_inner=47"),
        ({"n_layer": 3}, "h.2.ln_1.weight .* is missing"),
        ({"tie_word_embeddings": False}, "lm_head.weight .* is missing"),
        ({"architectures": ["GPT2DoubleHeadsModel"]}, "GPT2DoubleHeadsModel.*GPT2Model, GPT2LMHeadModel"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_we_do_not_have_is_named(option, message, tmp_path):
    official().save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | option))
    with pytest.raises(ValueError, match=message):
        weights.from_pretrained(tmp_path)


def test_a_post_norm_model_does_not_fit_this_layout(tmp_path):
    ours = GPT(GPTConfig(vocab_size=23, context_length=11, dim=12, depth=1, num_heads=3, pre_norm=False))
    with pytest.raises(ValueError, match="GPT-2's layout has no post-norm"):
        weights.save_pretrained(ours, tmp_path)

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import T5Config as OfficialConfig
from transformers import T5ForConditionalGeneration, T5Model

from course_lib import weights
from course_lib.models.t5 import T5, T5Config
from course_lib.weights.t5 import LAYOUT

SIZES = {"vocab_size": 23, "d_model": 12, "d_kv": 4, "d_ff": 20, "num_layers": 2, "num_heads": 3}
SPECIAL = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
FEW = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 6}  # so that distances share buckets
CONFIGURATIONS = {
    "plain": {},
    "odd sizes": {"vocab_size": 17, "d_model": 15, "d_kv": 7, "d_ff": 11, "num_heads": 5} | FEW,
    "unequal depth": {"num_layers": 3, "num_decoder_layers": 1} | FEW,
    "one layer, one head": {"num_layers": 1, "num_heads": 1, "num_decoder_layers": 1},
    "gated, a head of its own": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "tied but not scaled": {"tie_word_embeddings": False} | FEW,
    "exact gelu": {"feed_forward_proj": "gelu", "relative_attention_num_buckets": 5},
    "gated silu and a large eps": {"feed_forward_proj": "gated-silu", "layer_norm_epsilon": 0.3},
}
CARRIED = ("num_decoder_layers", "feed_forward_proj", "layer_norm_epsilon", "scale_decoder_outputs")
SOURCE = torch.tensor([[True] * 8, [True] * 5 + [False] * 3, [False] * 2 + [True] * 6])  # real tokens
TARGET = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [False] * 2 + [True] * 4])


def official(kind=T5ForConditionalGeneration, *, own_head=False, **settings):
    """An official model with large random weights: its own would hide faults."""
    torch.manual_seed(0)
    model = kind(OfficialConfig(**SIZES | SPECIAL | settings)).eval()
    if own_head:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2).add_(1 if parameter.ndim == 1 else 0)  # norms stay near 1
    return model


def configured(name, kind=T5ForConditionalGeneration):
    return official(kind, own_head="head of its own" in name and kind is not T5Model, **CONFIGURATIONS[name])


def opened(model, folder):
    """Our model of the same weights."""
    model.save_pretrained(folder)
    return weights.from_pretrained(folder)


def batch(model):
    torch.manual_seed(1)
    return [torch.randint(2, model.config.vocab_size, valid.shape) for valid in (SOURCE, TARGET)]


def their_output(model, source, target):
    return model(
        input_ids=source,
        attention_mask=SOURCE.long(),
        decoder_input_ids=target,
        decoder_attention_mask=TARGET.long(),
        use_cache=False,
    )[0]


def input_gradients(outputs, inputs):
    """The gradients of a random sum of all outputs, a token's on average."""
    torch.manual_seed(2)
    return torch.autograd.grad((outputs * torch.randn_like(outputs)).sum(dim=-1).mean(), inputs)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("kind", [T5ForConditionalGeneration, T5Model])
def test_logits_and_input_gradients_agree_with_the_official_model(kind, name, tmp_path):
    theirs = configured(name, kind)
    ours = opened(theirs, tmp_path)
    source, target = batch(theirs)
    entered, embedded = [], []
    ours.dropout.register_forward_pre_hook(lambda module, inputs: entered.append(inputs[0]))
    for stack in (theirs.encoder, theirs.decoder):
        stack.embed_tokens.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    expected = their_output(theirs, source, target)[TARGET]
    found = ours(source, target, source_valid=SOURCE, target_valid=TARGET)[TARGET]
    their_grads = input_gradients(expected, embedded)
    our_grads = input_gradients(found, entered[::2])  # what is dropped next is a stack's output
    assert expected.abs().max() > 0.5 and all(grad.abs().max() > 0.01 for grad in their_grads)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(our_grads, their_grads, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("kind", [T5ForConditionalGeneration, T5Model])
def test_the_official_class_opens_what_we_save(kind, name, tmp_path):
    theirs = configured(name, kind)
    weights.save_pretrained(opened(theirs, tmp_path / "theirs"), tmp_path / "ours")
    again, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values())
    source, target = batch(theirs)
    with torch.no_grad():
        expected = their_output(theirs, source, target)
        torch.testing.assert_close(their_output(again, source, target), expected, rtol=0, atol=0)
    carried = CARRIED[: None if kind is T5ForConditionalGeneration else -1]  # without a head nothing is scaled
    assert all(getattr(again.config, key) == getattr(theirs.config, key) for key in carried)


@pytest.mark.parametrize("name", ["plain", "gated, a head of its own", "tied but not scaled", "unequal depth"])
def test_a_round_trip_keeps_every_bit(name, tmp_path):
    ours = opened(configured(name), tmp_path / "theirs")
    weights.save_pretrained(ours, tmp_path / "ours")
    before, after = (load_file(tmp_path / whose / "model.safetensors") for whose in ("theirs", "ours"))
    assert before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)
    assert weights.from_pretrained(tmp_path / "ours").config == ours.config


def test_official_defaults_are_ours():
    with torch.device("meta"):
        model = LAYOUT.build(
            LAYOUT.read_settings(OfficialConfig().to_dict()), "T5ForConditionalGeneration", frozenset()
        )
    assert model.config == T5Config()


def test_our_model_is_saved_and_opened_again(tmp_path):
    torch.manual_seed(0)
    ours = T5(T5Config(vocab_size=23, dim=12, depth=(1, 2), num_heads=3, head_dim=4, mlp_dim=20)).eval()
    weights.save_pretrained(ours, tmp_path)
    again, theirs = weights.from_pretrained(tmp_path), T5ForConditionalGeneration.from_pretrained(tmp_path)
    source, target = batch(theirs)
    expected = ours(source, target, source_valid=SOURCE, target_valid=TARGET)
    torch.testing.assert_close(
        again(source, target, source_valid=SOURCE, target_valid=TARGET), expected, rtol=0, atol=0
    )
    torch.testing.assert_close(their_output(theirs, source, target)[TARGET], expected[TARGET], rtol=0, atol=1e-5)
    assert again.head.weight is again.token_embed.weight


def test_names_of_the_released_files_are_understood(tmp_path):
    theirs = official()
    ours, file = opened(theirs, tmp_path), tmp_path / "model.safetensors"
    tensors = load_file(file)
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors["shared.weight"].clone()
    tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.ones(32, 3)
    save_file(tensors, file, metadata={"format": "pt"})
    configure(tmp_path, architectures=["T5WithLMHeadModel"], scale_decoder_outputs=None, tie_word_embeddings=None)
    again, (source, target) = weights.from_pretrained(tmp_path), batch(theirs)
    torch.testing.assert_close(again(source, target), ours(source, target), rtol=0, atol=0)


def test_settings_of_version_1_1_mean_a_head_of_its_own_that_is_not_scaled(tmp_path):
    theirs = configured("gated, a head of its own")
    ours = opened(theirs, tmp_path)
    configure(tmp_path, scale_decoder_outputs=None, tie_word_embeddings=False)  # as in the released config.json
    assert weights.from_pretrained(tmp_path).config == ours.config
    assert ours.config.head == "linear" and ours.config.activation == "gated_gelu_tanh"


def configure(folder, **options):
    """Changes a config.json; an option that is None is taken out."""
    file = folder / "config.json"
    settings = json.loads(file.read_text()) | options
    file.write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"is_encoder_decoder": False}, "is_encoder_decoder is False"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"feed_forward_proj": "gated-tanh"}, "feed_forward_proj is 'gated-tanh'"),
        ({"relative_attention_num_buckets": 3}, "num_buckets=3"),
        ({"relative_attention_num_buckets": 30}, r"must have the shape \(30, 3\)"),
        ({"d_kv": 5}, r"SelfAttention.q.weight must have the shape \(15, 12\)"),
        ({"num_decoder_layers": 3}, "decoder.block.2.layer.0.layer_norm.weight .* is missing"),
        ({"feed_forward_proj": "gated-gelu"}, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight .* is missing"),
        ({"architectures": ["T5ForQuestionAnswering"]}, "T5ForQuestionAnswering.*T5Model, T5ForConditionalGeneration"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_we_do_not_have_is_named(option, message, tmp_path):
    official().save_pretrained(tmp_path)
    configure(tmp_path, **option)
    with pytest.raises(ValueError, match=message):
        weights.from_pretrained(tmp_path)


def test_a_scaled_head_of_its_own_is_refused(tmp_path):
    official(own_head=True).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="shared.weight and lm_head.weight must be equal"):
        weights.from_pretrained(tmp_path)


def test_a_gate_that_this_layout_has_no_name_for_is_refused(tmp_path):
    ours = T5(T5Config(vocab_size=9, dim=8, depth=1, num_heads=2, head_dim=4, mlp_dim=5, activation="gated_gelu"))
    with pytest.raises(ValueError, match="no activation 'gated_gelu'"):
        weights.save_pretrained(ours, tmp_path)

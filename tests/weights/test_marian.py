import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianModel, MarianMTModel
from transformers.utils import logging

from course_lib.layers.recording import record_attention
from course_lib.models import marian
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.marian import LAYOUT

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {
    "vocab_size": 23,
    "d_model": 12,
    **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in
       {"layers": 2, "attention_heads": 3, "ffn_dim": 20}.items()},
    "max_position_embeddings": 16,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}  # fmt: skip
APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 19}
CONFIGS = {
    "as opus-mt": {},
    "two vocabularies": APART,
    "two vocabularies, untied": APART | {"tie_word_embeddings": False, "activation_function": "relu"},
    "one vocabulary, untied, not scaled": {"tie_word_embeddings": False, "scale_embedding": False},
    "unequal encoder and decoder": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 6,
        "encoder_ffn_dim": 7,
        "decoder_ffn_dim": 33,
        "activation_function": "gelu",
    },
    "odd sizes, one layer, one head": {
        "d_model": 14,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 7,
        "decoder_attention_heads": 1,
        "encoder_ffn_dim": 5,
        "activation_function": "gelu_new",
        "max_position_embeddings": 9,
    },
}
each_kind = pytest.mark.parametrize("official", [MarianMTModel, MarianModel], ids=lambda kind: kind.__name__)
each_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)


def official_model(kind=MarianMTModel, **settings):
    """A tiny model with large random weights, also in norms and biases; the sinusoids stay."""
    torch.manual_seed(1)
    model = kind(MarianConfig(**TINY | settings)).eval()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if "embed_positions" not in name:
            torch.nn.init.normal_(tensor, std=0.2)
    return model


def batches(config):
    """Source and target ids with their validity: a full batch, and a padded one."""
    generator = torch.Generator().manual_seed(2)
    source = torch.randint(0, config.vocab_size, (3, 9), generator=generator)
    targets = config.decoder_vocab_size
    target = torch.randint(0, targets, (3, 7), generator=generator)
    yield source, target, None, None
    places = torch.arange(9)
    yield source, target, places < torch.tensor([[9], [6], [2]]), places[:7] < torch.tensor([[4], [7], [1]])


def measured(output, tables):
    """The output, and the gradient of a fixed sum of it with respect to the tables of embeddings."""
    for table in tables:
        table.grad = None
    (output * torch.randn(output.shape, generator=torch.Generator().manual_seed(3))).sum().backward()
    return output.detach(), [table.grad for table in tables]


def assert_same(official, ours):
    """Equal to 1e-5, but for the gradient of the padding token, which the official embeddings do not train."""
    backbone = getattr(official, "model", official)
    their_tables = [backbone.encoder.embed_tokens.weight, backbone.decoder.embed_tokens.weight]
    our_tables = [ours.source_embed.weight, ours.target_embed.weight]
    if ours.head is not None:
        their_tables.append(official.lm_head.weight)
        our_tables.append(ours.head.weight)
    for source, target, source_valid, target_valid in batches(official.config):
        masks = {"attention_mask": source_valid, "decoder_attention_mask": target_valid}
        masks = {name: mask.long() for name, mask in masks.items() if mask is not None}
        output = official(source, decoder_input_ids=target, **masks)[0]
        expected, expected_gradients = measured(output, their_tables)
        output = ours(source, target, source_valid=source_valid, target_valid=target_valid)
        given, gradients = measured(output, our_tables)
        torch.testing.assert_close(given, expected, rtol=0, atol=1e-5)
        for one, other in zip(gradients, expected_gradients, strict=True):
            trained = torch.arange(len(one)) != official.config.pad_token_id
            torch.testing.assert_close(one[trained], other[trained], rtol=0, atol=1e-5)


@each_kind
@each_config
def test_an_official_checkpoint_gives_the_same_outputs_and_gradients(official, settings, tmp_path):
    theirs = official_model(official, **settings)
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    assert type(ours) is marian.Marian and not ours.training
    assert_same(theirs, ours)


@each_kind
@each_config
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(official, settings, tmp_path):
    official_model(official, **settings).save_pretrained(tmp_path / "theirs")
    ours = from_pretrained(tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    theirs, report = official.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert_same(theirs.eval(), ours)
    again = from_pretrained(tmp_path / "ours")
    assert again.config == ours.config
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.state_dict().items())


def test_writing_token_by_token_follows_the_official_model(tmp_path):
    theirs = official_model()
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    source, _, source_valid, _ = list(batches(theirs.config))[1]
    prefix = torch.zeros(3, 1, dtype=torch.long)
    writer = ours.given(source, source_valid)
    cache, new = writer.new_cache(6), prefix
    with torch.no_grad():
        for _ in range(6):
            new = writer.next_logits(new, cache).argmax(dim=-1, keepdim=True)
            logits = theirs(source, attention_mask=source_valid.long(), decoder_input_ids=prefix).logits
            assert torch.equal(new, logits[:, -1:].argmax(dim=-1))
            prefix = torch.cat([prefix, new], dim=1)


def test_cross_attention_equals_the_official_one(tmp_path):
    theirs = official_model(decoder_layers=3)
    theirs.save_pretrained(tmp_path)
    theirs.set_attn_implementation("eager")
    ours = from_pretrained(tmp_path)
    source, target, source_valid, _ = list(batches(theirs.config))[1]
    expected = theirs(
        source, attention_mask=source_valid.long(), decoder_input_ids=target, output_attentions=True
    ).cross_attentions
    with record_attention(ours) as record:
        ours(source, target, source_valid=source_valid)
    torch.testing.assert_close(record.maps("cross_attn"), torch.stack(expected, dim=1), rtol=0, atol=1e-5)


def test_a_file_with_tied_weights_stored_several_times_is_opened(tmp_path):
    theirs = official_model()
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    tensors |= {name: tensors["model.shared.weight"].clone() for name in names}
    save_file(tensors, tmp_path / "model.safetensors")
    assert_same(theirs, from_pretrained(tmp_path))


def test_a_position_table_that_is_not_the_sinusoids_is_named(tmp_path):
    theirs = official_model(MarianModel)
    theirs.encoder.embed_positions.weight.data[3, 2] += 0.1
    theirs.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="encoder.embed_positions.weight is not the fixed table"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("activation_function", "tanh"),
        ("normalize_before", True),
        ("normalize_embedding", True),
        ("add_final_layer_norm", True),
        ("static_position_embeddings", False),
        ("encoder_layerdrop", 0.1),
        ("decoder_layerdrop", 0.1),
        ("is_decoder", True),
        ("encoder_attention_heads", 5),
        ("d_model", 13),
    ],
)
def test_an_option_that_we_do_not_have_is_named(key, value, tmp_path):
    official_model().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    named = {"encoder_attention_heads": "num_heads=5", "d_model": "dim=13"}.get(key, f"{key} .*{value}")
    with pytest.raises(ValueError, match=named):
        from_pretrained(tmp_path)


def test_what_a_config_json_leaves_out_is_as_in_the_official_class():
    with torch.device("meta"):
        ours = LAYOUT.build(LAYOUT.read_settings({}), "MarianMTModel", frozenset()).config
    theirs = MarianConfig()
    assert ours.vocab_size == theirs.vocab_size == theirs.decoder_vocab_size and ours.head == "tied"
    assert (ours.dim, ours.context_length) == (theirs.d_model, theirs.max_position_embeddings)
    assert ours.depth == (theirs.encoder_layers, theirs.decoder_layers)
    assert ours.num_heads == (theirs.encoder_attention_heads, theirs.decoder_attention_heads)
    assert ours.mlp_dim == (theirs.encoder_ffn_dim, theirs.decoder_ffn_dim)
    assert (ours.activation, ours.scale_embedding) == (theirs.activation_function, theirs.scale_embedding)
    assert (ours.dropout, ours.attention_dropout, ours.inner_dropout) == (
        *(theirs.dropout, theirs.attention_dropout, theirs.activation_dropout),
    )


def test_a_missing_tensor_is_named(tmp_path):
    official_model().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.decoder.layers.1.encoder_attn.k_proj.bias"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"decoder.layers.1.encoder_attn.k_proj.bias \(12,\) is missing"):
        from_pretrained(tmp_path)


def test_a_model_that_marian_s_layout_cannot_hold_is_refused(tmp_path):
    sizes = {"vocab_size": 9, "dim": 4, "depth": (1, 1), "num_heads": (1, 1), "mlp_dim": (4, 4)}
    untied = marian.Marian(marian.MarianConfig(**sizes, head="linear"))
    with pytest.raises(ValueError, match="vocab_size=9 and head='linear'"):
        save_pretrained(untied, tmp_path / "new")
    textbook = Transformer(TransformerConfig(vocab_size=9, dim=4, depth=1, num_heads=1, mlp_dim=4))
    with pytest.raises(ValueError, match="Transformer has no official layout"):
        save_pretrained(textbook, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_settings_for_training_survive_both_directions(tmp_path):
    official_model(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1).save_pretrained(tmp_path / "theirs")
    ours = from_pretrained(tmp_path / "theirs")
    assert (ours.config.dropout, ours.config.attention_dropout, ours.config.inner_dropout) == (0.3, 0.2, 0.1)
    block = ours.decoder[0]
    assert (block.dropout.p, block.attn.dropout, block.ffn.dropout.p) == (0.3, 0.2, 0.1)
    save_pretrained(ours, tmp_path / "ours")
    config = MarianConfig.from_pretrained(tmp_path / "ours")
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.3, 0.2, 0.1)

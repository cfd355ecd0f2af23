"""Official checkpoints of every family in our models, and ours in the official classes."""

import json
import re
from dataclasses import replace
from itertools import product

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from course_lib.layers.recording import record_attention
from course_lib.weights import files as library
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.layout import alternatives
from tests.weights.families import FAMILIES, assert_same, layout_of, official, opened
from tests.weights.folders import change_config, change_weights, close, same

CASES = [
    pytest.param(name, kind, case if isinstance(case, tuple) else (case, None), id=f"{name}-{kind.__name__}-{said}")
    for name, family in FAMILIES.items()
    for kind in family.kinds
    for said, case in family.cases.items()
]
each_case = pytest.mark.parametrize(("family", "kind", "case"), CASES)
each_family = pytest.mark.parametrize("family", FAMILIES)


def test_every_family_is_tested_here():
    assert FAMILIES.keys() == library.FAMILIES.keys()


@each_case
def test_an_official_checkpoint_gives_the_same_outputs_and_gradients(family, kind, case, tmp_path):
    settings, size = case
    theirs = official(family, kind, **settings)
    ours = opened(theirs, tmp_path)
    assert type(ours) is FAMILIES[family].kinds[kind] and not ours.training
    assert_same(family, theirs, ours, size)
    if family in ("resnet", "swin"):  # without dropout they are the same in training, and so is what norms remember
        assert_same(family, theirs.double().train(), ours.double().train(), size)  # double: batches are small
        close(ours.float().state_dict(), opened(theirs.float(), tmp_path).state_dict())


@each_case
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(family, kind, case, tmp_path):
    settings, size = case
    official_one = official(family, kind, **settings)
    ours = opened(official_one, tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    theirs, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert_same(family, theirs.eval(), ours, size)
    said = json.loads(official_one.config.to_json_string(use_diff=False))
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    keys = {key for row in layout_of(family).settings for key in alternatives(row[0])} | layout_of(family).fixed.keys()
    changed = {key for key in keys if said.get(key) not in (None, written.get(key))}
    about_heads = {"tie_word_embeddings", "scale_decoder_outputs", "norm_pix_loss"}
    about_heads |= {key for key in keys if key.startswith("decoder_") and family == "vit_mae"}
    assert changed <= FAMILIES[family].rewritten | (about_heads if kind.__name__.endswith("Model") else set())
    again = from_pretrained(tmp_path / "ours")
    assert again.config == ours.config and same(again, ours)


@each_family
def test_a_model_comes_back_whole_and_without_a_random_draw(family, tmp_path):
    model = opened(official(family), tmp_path / "theirs")
    save_pretrained(model, tmp_path / "ours")
    before = torch.get_rng_state()
    again = from_pretrained(tmp_path / "ours")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one, other) for one, other in zip(again.buffers(), model.buffers(), strict=True))
    assert len(list(again.parameters())) == len(list(model.parameters()))  # what was tied is tied
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in model.parameters()]


@each_family
def test_no_setting_of_any_family_can_do_harm(family, tmp_path):
    model = opened(official(family), tmp_path)
    save_pretrained(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == family
    shapes = sorted(tensor.shape for tensor in model.state_dict().values())
    refused = set()
    for key, value in product([*config, "id2label"], ["no", 10**8]):
        change_config(tmp_path, **config | {key: value})
        try:
            changed = from_pretrained(tmp_path)
        except ValueError:
            refused.add(key)
        else:
            assert sorted(tensor.shape for tensor in changed.state_dict().values()) == shapes or key == "architectures"
    assert {"model_type", "architectures", "vocab_size" if "vocab_size" in config else "num_channels"} <= refused


@each_family
def test_what_a_config_json_leaves_out_is_as_in_the_official_class(family):
    layout, said = layout_of(family), json.loads(FAMILIES[family].config().to_json_string(use_diff=False))
    left_out, read = (layout.read_settings(config) for config in ({}, said))
    assert {name for name in read if left_out[name] not in (None, read[name])} == set()
    if FAMILIES[family].defaults is not None:
        with torch.device("meta"):
            assert layout.build(read, layout.architectures[-1], frozenset()).config == FAMILIES[family].defaults


RATES = {  # of dropout: their settings, ours, and where they act
    "bert": (
        ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
        ("dropout", "attention_dropout", "classifier_dropout"),
        lambda model: (model.bert.dropout.p, model.bert.blocks[0].attn.dropout, model.dropout.p),
    ),
    "gpt2": (
        ("resid_pdrop", "attn_pdrop", "embd_pdrop"),
        ("dropout", "attention_dropout", "embed_dropout"),
        lambda model: (model.blocks[0].dropout.p, model.blocks[0].attn.dropout, model.dropout.p),
    ),
    "marian": (
        ("dropout", "attention_dropout", "activation_dropout"),
        ("dropout", "attention_dropout", "inner_dropout"),
        lambda model: (model.decoder[0].dropout.p, model.decoder[0].attn.dropout, model.decoder[0].ffn.dropout.p),
    ),
    "vit": (("hidden_dropout_prob",), ("dropout",), lambda model: (model.dropout.p,)),
}


@pytest.mark.parametrize(
    ("family", "rates", "expected"),
    [
        ("bert", (0.25, 0.25, 0.25), (0.25, None, None)),
        ("bert", (0.25, 0.25, None), (0.25, None, None)),
        ("bert", (0.3, 0.0, 0.2), (0.3, 0.0, 0.2)),
        ("bert", (0.0, 0.1, None), (0.0, 0.1, None)),
        ("gpt2", (0.2, 0.2, 0.2), (0.2, None, None)),
        ("gpt2", (0.25, 0.5, 0.0), (0.25, 0.5, 0.0)),
        ("gpt2", (0.1, 0.3, 0.1), (0.1, 0.3, None)),
        ("marian", (0.3, 0.2, 0.1), (0.3, 0.2, 0.1)),
        ("vit", (0.3,), (0.3,)),
    ],
)
def test_dropouts_are_kept_in_both_directions(family, rates, expected, tmp_path):
    theirs, names, places = RATES[family]
    kind = hf.BertForTokenClassification if family == "bert" else None
    ours = opened(official(family, kind, **dict(zip(theirs, rates, strict=True))), tmp_path)
    assert tuple(getattr(ours.config, name) for name in names) == expected
    acting = tuple(rates[0] if rate is None else rate for rate in rates)
    assert places(ours) == acting
    save_pretrained(ours, tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert tuple(written[key] for key in theirs) == acting
    assert from_pretrained(tmp_path).config == ours.config


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5", "marian", "swin"])
def test_names_inside_the_official_class_are_known_and_tied_weights_may_be_stored_several_times(family, tmp_path):
    theirs = official(family, **{"tie_word_embeddings": True} if family == "llama" else {})
    ours = opened(theirs, tmp_path)
    inside = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    assert inside.keys() != load_file(tmp_path / "model.safetensors").keys()
    save_file(inside, tmp_path / "model.safetensors")
    assert same(from_pretrained(tmp_path), ours)


def gamma_and_beta(tensors):
    spelled = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
    return {re.sub(r"\.LayerNorm\.\w+", lambda match: spelled[match[0]], name): t for name, t in tensors.items()}


OLDER = {  # the official model, what its files hold elsewise, and what config.json says
    "first releases of BERT: gamma, beta and counted positions": (
        ("bert", {}),
        lambda tensors: gamma_and_beta(tensors) | {"bert.embeddings.position_ids": torch.arange(16)[None]},
        {},
    ),
    "GPT-2: without a prefix, with masks": (
        ("gpt2", {}),
        lambda tensors: (
            {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
            | {"h.0.attn.bias": torch.ones(1, 1, 11, 11), "h.0.attn.masked_bias": torch.tensor(-1e4)}
        ),
        {},
    ),
    "Llama: angles as tensors, their base outside of an object": (
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}}),
        {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)},
        {"rope_parameters": "gone", "head_dim": "gone", "rope_theta": 5000.0, "rope_scaling": None},
    ),
    "T5: a leftover, another name of the class, and nothing about the head": (
        ("t5", {}),
        {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(32, 3)},
        {"architectures": ["T5WithLMHeadModel"], "scale_decoder_outputs": "gone", "tie_word_embeddings": "gone"},
    ),
    "T5 1.1: not tied, so not scaled": (
        ("t5", FAMILIES["t5"].cases["gated, a head of its own"]),
        {},
        {"scale_decoder_outputs": "gone", "tie_word_embeddings": False},
    ),
}


@pytest.mark.parametrize(("model", "tensors", "config"), OLDER.values(), ids=OLDER)
def test_older_files_are_understood(model, tensors, config, tmp_path):
    family, settings = model
    ours = opened(official(family, **settings), tmp_path)
    change_weights(tmp_path, tensors)
    change_config(tmp_path, **config)
    again = from_pretrained(tmp_path)
    assert again.config == ours.config and same(again, ours)


@pytest.mark.parametrize(
    ("family", "kind", "architecture"),
    [
        ("bert", hf.BertForPreTraining, "BertForMaskedLM"),
        ("bert", hf.BertForPreTraining, "BertModel"),
        ("swin", hf.SwinForMaskedImageModeling, "SwinModel"),
        ("vit", hf.ViTForMaskedImageModeling, "ViTModel"),
        ("vit_mae", hf.ViTMAEForPreTraining, "ViTMAEModel"),
    ],
)
def test_a_smaller_model_finds_its_weights_beside_those_of_other_heads(family, kind, architecture, tmp_path):
    official(family, kind, **{"encoder_stride": 4} if "Image" in kind.__name__ else {}).save_pretrained(tmp_path)
    change_config(tmp_path, architectures=[architecture])
    change_weights(tmp_path, lambda t: {n: x for n, x in t.items() if family == "vit_mae" or "decoder.0" not in n})
    without = {"add_pooling_layer": False} if family == "vit" else {}
    assert_same(family, getattr(hf, architecture).from_pretrained(tmp_path, **without), from_pretrained(tmp_path))


def test_files_from_before_batches_were_counted_are_opened(tmp_path):
    ours = opened(official("resnet"), tmp_path)
    change_weights(tmp_path, lambda tensors: {n: t for n, t in tensors.items() if "num_batches" not in n})
    counted = {name: torch.tensor(0) for name in ours.state_dict() if "num_batches" in name}
    assert len(counted) > 5
    ours.load_state_dict(ours.state_dict() | counted)
    assert same(from_pretrained(tmp_path), ours)


def test_convolutions_keep_the_order_in_memory_that_suits_them(tmp_path):
    weight = opened(official("resnet"), tmp_path).stem.conv.weight
    assert weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def test_the_index_tables_of_older_swin_files_are_checked_and_written(tmp_path):
    theirs = official("swin")
    ours = opened(theirs, tmp_path)
    tables = {
        f"swin.{name}.relative_position_index".replace("relative_position_bias", "self"): (
            module.relative_position_index.clone().view(9, 9)
        )
        for name, module in theirs.swin.named_modules()
        if hasattr(module, "relative_position_index")
    }
    assert len(tables) == 4
    change_weights(tmp_path, tables)
    assert same(from_pretrained(tmp_path), ours)
    save_pretrained(ours, tmp_path / "ours")
    written = load_file(tmp_path / "ours" / "model.safetensors")
    assert all(torch.equal(written[name], table) for name, table in tables.items())
    change_weights(tmp_path, {name: table.T for name, table in tables.items()})
    with pytest.raises(ValueError, match="relative_position_index is not the fixed table"):
        from_pretrained(tmp_path)


def test_a_map_smaller_than_the_window_which_the_official_swin_cannot_take_is_taken(tmp_path):
    theirs = official("swin", window_size=7)
    ours, image = opened(theirs, tmp_path), torch.randn(1, 3, 16, 16)  # maps of 8 x 8, then 4 x 4
    with pytest.raises(RuntimeError):
        theirs(image)
    assert ours(image).isfinite().all()


PADDED_TEXT = torch.arange(18).view(2, 9), torch.arange(9) < torch.tensor([[9], [6]])


def test_attention_maps_of_bert_are_the_official_ones(tmp_path):
    theirs = official("bert", hf.BertModel)
    ours, tokens, valid = (
        opened(theirs, tmp_path),
        torch.arange(18).view(2, 9),
        torch.arange(9) < torch.tensor([[9], [6]]),
    )
    theirs.set_attn_implementation("eager")
    expected = theirs(tokens, attention_mask=valid.long(), output_attentions=True).attentions
    with record_attention(ours) as record:
        ours(tokens, valid=valid)
    close(record.maps(), torch.stack(expected, dim=1))


def test_cross_attention_of_marian_is_the_official_one(tmp_path):
    theirs = official("marian", decoder_layers=3)
    ours, tokens, valid = (
        opened(theirs, tmp_path),
        torch.arange(18).view(2, 9),
        torch.arange(9) < torch.tensor([[9], [6]]),
    )
    theirs.set_attn_implementation("eager")
    output = theirs(tokens, attention_mask=valid.long(), decoder_input_ids=tokens[:, :7], output_attentions=True)
    with record_attention(ours) as record:
        ours(tokens, tokens[:, :7], source_valid=valid)
    close(record.maps("cross_attn"), torch.stack(output.cross_attentions, dim=1))


@torch.no_grad()
def test_a_long_text_turns_by_the_same_angles_as_in_the_official_llama(tmp_path):
    theirs = official("llama", max_position_embeddings=900, num_hidden_layers=1)
    tokens = torch.randint(0, 23, (1, 900))
    close(opened(theirs, tmp_path)(tokens), theirs(tokens).logits)


def test_the_first_position_of_the_official_decision_transformer_becomes_part_of_the_bias(tmp_path):
    theirs = official("decision_transformer")
    ours = opened(theirs, tmp_path)
    assert torch.equal(ours.embed_norm.bias, theirs.embed_ln.bias + theirs.encoder.wpe.weight[0])
    save_pretrained(ours, tmp_path / "ours")
    assert not load_file(tmp_path / "ours" / "model.safetensors")["encoder.wpe.weight"].any()


def test_the_context_of_a_decision_transformer_is_kept_which_the_official_class_has_not(tmp_path):
    ours = opened(official("decision_transformer"), tmp_path)
    save_pretrained(type(ours)(replace(ours.config, context_steps=6)), tmp_path)
    assert from_pretrained(tmp_path).config == replace(ours.config, context_steps=6)


def test_the_encoder_of_mae_takes_images_of_other_sizes(tmp_path):
    theirs = official("vit_mae", hf.ViTMAEModel)  # the official decoder interpolates a grid as if it were a line
    assert_same("vit_mae", theirs, opened(theirs, tmp_path), size=(8, 20))


def test_without_masking_the_encoder_of_mae_sees_what_the_official_one_sees(tmp_path):
    theirs = official("vit_mae", hf.ViTMAEModel, mask_ratio=0.0)
    image, in_order = torch.randn(2, 3, 12, 12), torch.rand(2, 9).sort(dim=1).values
    close(opened(theirs, tmp_path)(image), theirs(image, noise=in_order).last_hidden_state)


WE_HAVE_ONE = {  # settings that each family refuses
    "bert": {"is_decoder": True, "add_cross_attention": True, "position_embedding_type": "relative_key",
             "pruned_heads": {"0": [1]}, "hidden_act": "mish"},
    "gpt2": {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "add_cross_attention": True,
             "activation_function": "tanh"},
    "llama": {"attention_bias": True, "mlp_bias": True, "attention_dropout": 0.1, "pretraining_tp": 2,
              "hidden_act": "tanh"},
    "t5": {"is_encoder_decoder": False, "is_decoder": True, "feed_forward_proj": "gated-tanh"},
    "marian": {"activation_function": "tanh", "normalize_before": True, "normalize_embedding": True,
               "add_final_layer_norm": True, "static_position_embeddings": False, "encoder_layerdrop": 0.1,
               "decoder_layerdrop": 0.1, "is_decoder": True, "is_encoder_decoder": False},
    "decision_transformer": {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True,
                             "add_cross_attention": True},
    "resnet": {"layer_type": "wide", "hidden_act": "mish"},
    "swin": {"hidden_act": "relu", "layer_norm_eps": 1e-6, "hidden_dropout_prob": 0.1,
             "attention_probs_dropout_prob": 0.1},
    "vit": {"hidden_act": "mish", "qkv_bias": 0, "attention_probs_dropout_prob": 0.1, "pooler_act": "relu"},
    "vit_mae": {"hidden_act": "relu", "qkv_bias": False, "hidden_dropout_prob": 0.1,
                "attention_probs_dropout_prob": 0.1},
}  # fmt: skip
SCALED = "we have only rotary positions that are not scaled"
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "original_max_position_embeddings": 8192}
REFUSED = [
    *(
        (family, {key: value}, re.escape(f"{key} is {value!r}, and we have only"))
        for family, settings in WE_HAVE_ONE.items()
        for key, value in settings.items()
    ),
    (
        "bert",
        {"attention_probs_dropout_prob": 1.5},
        "attention_probs_dropout_prob must be a number from 0 to 1",
    ),
    ("bert", {"classifier_dropout": "0.3"}, "classifier_dropout must be a number from 0 to 1, got '0.3'"),
    ("bert", {"num_attention_heads": 5}, "num_heads=5"),
    ("gpt2", {"n_inner": 47}, r"h.0.mlp.c_fc.weight must have the shape \(12, 47\) by config.json's n_inner=47"),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}, f"'linear'.*{SCALED}"),
    ("llama", {"rope_parameters": LLAMA3}, SCALED),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, SCALED),
    ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, f"rope_scaling is .*'dynamic'.*{SCALED}"),
    ("llama", {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, SCALED),
    ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": "big"}}, "rope_theta must be a number"),
    ("llama", {"rope_parameters": {"rope_theta": 0.0}}, "rope_theta must be 1 or more, got 0"),
    ("llama", {"rope_parameters": [1]}, r"rope_parameters must be an object, got \[1\]"),
    ("llama", {"num_key_value_heads": 4}, "num_heads must be a multiple of num_kv_heads, got 6 and 4"),
    ("t5", {"relative_attention_num_buckets": 30}, r"must have the shape \(30, 3\)"),
    ("t5", {"feed_forward_proj": "gated-gelu"}, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight .* is missing"),
    ("decision_transformer", {"attn_pdrop": 0.3}, r"are \(0.1, 0.1, 0.3\), and we have only one"),
    ("swin", {"depths": 4}, "depths must be a list"),
    ("swin", {"depths": [2, -1]}, r"depths\[1\] must be a whole number"),
    ("swin", {"image_size": [16, 16, 16]}, "image_size must be a number of pixels or two"),
    ("swin", {"image_size": [16, "16"]}, "image_size must be a whole number"),
    ("swin", {"use_absolute_embeddings": True}, "position_embeddings .* is missing"),
    ("swin", {"window_size": 4}, r"bias_table must have the shape \(49, 2\)"),
    ("vit", {"pooler_output_size": 7}, "pooler_output_size is 7, and we have only 12"),
    ("vit", {"patch_size": [4, 4]}, "patch_size must be a whole number"),
    ("vit_mae", {"image_size": [12, 12]}, "image_size must be a whole number"),
    ("vit_mae", {"mask_ratio": 1.0}, "mask_ratio is a share of the patches between 0 and 1, got 1.0"),
]


@pytest.fixture(scope="module")
def official_files(tmp_path_factory):
    """By family, config.json and the tensors of an official model; of ViT it has a pooler."""
    folder = tmp_path_factory.mktemp("official")
    for family in FAMILIES:
        official(family, hf.ViTModel if family == "vit" else None).save_pretrained(folder / family)
    return folder


@pytest.mark.parametrize(("family", "changes", "words"), REFUSED, ids=lambda each: str(each)[:40])
def test_settings_that_we_do_not_have_are_refused_by_name(family, changes, words, official_files, tmp_path):
    for path in (official_files / family).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=words):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("family", "kind", "changes", "words"),
    [
        ("gpt2", None, {"pre_norm": False}, "GPT-2's layout has no post-norm"),
        ("marian", None, {"head": "linear"}, "vocab_size=23 and head='linear'"),
        ("t5", None, {"activation": "gated_gelu"}, "no activation 'gated_gelu'"),
        ("resnet", None, {"stem": "small"}, "own"),
        ("resnet", None, {"shortcut": "padding"}, "own"),
        ("resnet", None, {"residual": False}, "own"),
        ("swin", None, {"shifted": False}, "shifted=False"),
        ("vit", None, {"stem": "conv"}, "no place for stem="),
        ("vit", None, {"pool": "mean", "num_classes": None}, "no place for stem="),
        ("vit", None, {"pool": "mlp", "num_classes": 3}, "no place for stem="),
        ("vit_mae", hf.ViTMAEModel, {"stem": "conv"}, "takes square images"),
        ("vit_mae", hf.ViTMAEModel, {"pool": "mean"}, "takes square images"),
        ("vit_mae", hf.ViTMAEModel, {"image_size": (8, 12)}, "takes square images"),
        ("vit_mae", hf.ViTMAEModel, {"dropout": 0.1}, "takes square images"),
        ("vit_mae", hf.ViTMAEModel, {"activation": "relu"}, "has one activation"),
        ("vit_mae", hf.ViTMAEModel, {"qkv_bias": False}, "has one activation"),
        ("vit_mae", None, {"qkv_bias": False}, "has one activation"),
    ],
)
def test_models_that_the_layout_cannot_hold_are_not_written(family, kind, changes, words, tmp_path):
    ours = opened(official(family, kind), tmp_path / "theirs")
    config = ours.config
    headed = family == "vit_mae" and kind is None
    changed = replace(config, encoder=replace(config.encoder, **changes)) if headed else replace(config, **changes)
    with pytest.raises(ValueError, match=words):
        save_pretrained(type(ours)(changed), tmp_path / "new")
    assert not (tmp_path / "new").exists()

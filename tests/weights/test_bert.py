import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)
from transformers.utils import logging

from course_lib.layers.recording import record_attention
from course_lib.models import bert, bert_tasks
from course_lib.weights import from_pretrained, save_pretrained

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {
    "vocab_size": 31,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
CONFIGS = {
    "as published": {},
    "untied": {"tie_word_embeddings": False},
    "relu, one layer, one segment": {"hidden_act": "relu", "num_hidden_layers": 1, "type_vocab_size": 1},
    "gelu_new, three segments": {"hidden_act": "gelu_new", "type_vocab_size": 3, "num_labels": 5},
    "odd sizes": {"hidden_size": 15, "num_attention_heads": 5, "intermediate_size": 7, "vocab_size": 29},
    "one head, untied, large epsilon": {
        "num_attention_heads": 1,
        "tie_word_embeddings": False,
        "layer_norm_eps": 1e-3,
        "num_labels": 1,
    },
    "unequal dropouts": {
        "hidden_dropout_prob": 0.3,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout": 0.2,
    },
}
HEADS = {
    BertModel: bert.BERT,
    BertForMaskedLM: bert_tasks.BERTForMaskedLM,
    BertForPreTraining: bert_tasks.BERTForPreTraining,
    BertForNextSentencePrediction: bert_tasks.BERTForNextSentence,
    BertForSequenceClassification: bert_tasks.BERTForSequenceClassification,
    BertForTokenClassification: bert_tasks.BERTForTokenClassification,
}
each_head = pytest.mark.parametrize("official", HEADS, ids=lambda kind: kind.__name__)
each_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)


def official_model(kind=BertForMaskedLM, **settings):
    """A tiny model with large random weights, also in norms and biases."""
    torch.manual_seed(1)
    model = kind(BertConfig(**TINY | settings)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def batches(config):
    """Arguments of both models: a full batch, and a padded one with segments."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, config.vocab_size, (3, 9), generator=generator)
    segments = torch.randint(0, config.type_vocab_size, (3, 9), generator=generator)
    valid = torch.arange(9) < torch.tensor([[9], [6], [2]])
    yield tokens, {}, {}
    yield tokens, {"token_type_ids": segments, "attention_mask": valid.long()}, {"segments": segments, "valid": valid}


def run_official(model, tokens, arguments):
    """Outputs without those of padding, and the gradient of a fixed sum of them with respect to the embeddings."""
    return measured(model, model.get_input_embeddings().weight, model(tokens, **arguments).to_tuple())


def run_ours(model, tokens, arguments):
    backbone = getattr(model, "bert", model)
    output = model(tokens, **arguments)
    if isinstance(model, bert.BERT):
        output = (output, model.pool(output))
    return measured(model, backbone.token_embed.weight, output if isinstance(output, tuple) else (output,))


def measured(model, embedding, output):
    model.zero_grad()
    generator = torch.Generator().manual_seed(3)
    sum((each * torch.randn(each.shape, generator=generator)).sum() for each in output).backward()
    return [each.detach() for each in output], embedding.grad


def assert_same(official, ours):
    """Equal to 1e-5, but for the gradient of word 0: the official embedding takes it for padding and trains it not."""
    for tokens, theirs, our_arguments in batches(official.config):
        expected, expected_gradient = run_official(official, tokens, theirs)
        given, gradient = run_ours(ours, tokens, our_arguments)
        for one, other in zip(given, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
        torch.testing.assert_close(gradient[1:], expected_gradient[1:], rtol=0, atol=1e-5)


@each_head
@each_config
def test_an_official_checkpoint_gives_the_same_outputs_and_gradients(official, settings, tmp_path):
    theirs = official_model(official, **settings)
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    assert type(ours) is HEADS[official] and not ours.training
    assert_same(theirs, ours)


@each_head
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


def test_attention_maps_equal_the_official_ones(tmp_path):
    theirs = official_model(BertModel)
    theirs.save_pretrained(tmp_path)
    theirs.set_attn_implementation("eager")
    ours = from_pretrained(tmp_path)
    for tokens, their_arguments, our_arguments in batches(theirs.config):
        expected = torch.stack(theirs(tokens, **their_arguments, output_attentions=True).attentions, dim=1)
        with record_attention(ours) as record:
            ours(tokens, **our_arguments)
        torch.testing.assert_close(record.maps(), expected, rtol=0, atol=1e-5)


def test_a_checkpoint_without_a_pooler_is_opened_without_one(tmp_path):
    theirs = BertModel(BertConfig(**TINY), add_pooling_layer=False).eval()
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    tokens = torch.arange(8)[None]
    torch.testing.assert_close(ours(tokens), theirs(tokens).last_hidden_state, rtol=0, atol=1e-5)
    assert ours.pooler is None


def test_the_first_releases_are_opened(tmp_path):
    """They have gamma and beta, tied weights stored twice, counted positions, and the heads of both tasks."""
    theirs = official_model(BertForPreTraining)
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor.clone()
        for name, tensor in theirs.state_dict().items()
    } | {"bert.embeddings.position_ids": torch.arange(16)[None]}
    assert "cls.predictions.decoder.weight" in tensors and "cls.predictions.transform.LayerNorm.gamma" in tensors
    theirs.save_pretrained(tmp_path)
    save_file(tensors, tmp_path / "model.safetensors")
    change_config(tmp_path, architectures=["BertForMaskedLM"])
    tokens = torch.arange(8)[None]
    torch.testing.assert_close(from_pretrained(tmp_path)(tokens), theirs(tokens).prediction_logits, rtol=0, atol=1e-5)


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"is_decoder": True}, "is_decoder is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is {'0': \\[1\\]}"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
        ({"attention_probs_dropout_prob": 1.5}, "attention_probs_dropout_prob must be a number from 0 to 1, got 1.5"),
        ({"classifier_dropout": "0.3"}, "classifier_dropout must be a number from 0 to 1, got '0.3'"),
        ({"num_attention_heads": 5}, "num_heads=5"),
        ({"id2label": []}, "id2label must name the classes"),
        ({"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_we_do_not_have_are_refused_by_name(changes, message, tmp_path):
    official_model().save_pretrained(tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ((0.25, 0.25, 0.25), (0.25, None, None)),
        ((0.25, 0.25, None), (0.25, None, None)),
        ((0.3, 0.0, 0.2), (0.3, 0.0, 0.2)),
        ((0.0, 0.1, None), (0.0, 0.1, None)),
    ],
)
def test_dropouts_are_kept_in_both_directions(theirs, expected, tmp_path):
    keys = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    official_model(BertForTokenClassification, **dict(zip(keys, theirs, strict=True))).save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    config, attention = ours.config, ours.bert.blocks[0].attn
    assert (config.dropout, config.attention_dropout, config.classifier_dropout) == expected
    assert (ours.bert.dropout.p, attention.dropout, ours.dropout.p) == (
        *theirs[:2],
        theirs[0 if expected[2] is None else 2],
    )
    save_pretrained(ours, tmp_path / "ours")
    written = BertConfig.from_pretrained(tmp_path / "ours")
    assert tuple(getattr(written, key) for key in keys) == (*theirs[:2], theirs[0] if theirs[2] is None else theirs[2])
    assert from_pretrained(tmp_path / "ours").config == config


def test_a_missing_head_is_reported_and_not_invented(tmp_path):
    official_model(BertForMaskedLM).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"cls.predictions.transform.dense.weight \(12, 12\) is missing"):
        from_pretrained(tmp_path)

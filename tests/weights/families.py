"""Every family whose official checkpoints we open: tiny official models, and how they and ours are asked the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
import transformers as hf
from torch import nn
from transformers.utils import logging

from course_lib.layers.recording import record_attention
from course_lib.models import bert_tasks
from course_lib.models.bert import BERT
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.models.mae import MAE, MAEEncoder
from course_lib.models.marian import Marian
from course_lib.models.resnet import ResNet
from course_lib.models.swin import Swin
from course_lib.models.t5 import T5, T5Config
from course_lib.models.vit import ViT
from course_lib.weights import files, from_pretrained
from tests.weights.folders import close

logging.set_verbosity_error()
logging.disable_progress_bar()

# outputs of the official model and of ours, and what both get the gradients of
Compared = tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]
PADDED = torch.tensor([[True] * 8, [False] * 3 + [True] * 5, [True] * 6 + [False] * 2])  # left and right
TARGET = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [False] * 2 + [True] * 4])


@dataclass(frozen=True, kw_only=True)
class Family:
    """A case is what differs from `sizes`; of images it may be a pair, with height and width."""

    kinds: Mapping[type, type]  # official class -> ours; the first is what `official` makes unless it is told
    config: type
    sizes: Mapping[str, Any]
    cases: Mapping[str, Any]
    compare: Callable[[nn.Module, nn.Module, Any], Iterator[Compared]]
    defaults: Any = None  # our config, if its defaults are the official ones
    rewritten: frozenset[str] = frozenset()  # settings that we write otherwise than we read them
    norms: float = 1.0  # about which the weights of its norms lie, in the models to be compared
    share: float = 1.0  # of the sum of all outputs, whose gradients are compared: they should be about 1 in size


def official(family: str, kind: type | None = None, *, own_head: bool = False, **settings: Any) -> nn.Module:
    """A tiny official model with large random weights, also in norms and what they remember: its own hide faults."""
    torch.manual_seed(1)
    table = FAMILIES[family]
    model = (kind or next(iter(table.kinds)))(table.config(**table.sizes | settings)).eval()
    if own_head and hasattr(model, "lm_head"):  # which the class has only if a file has one
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:  # Marian's are fixed
                centre = parameter.mean().round() if parameter.ndim == 1 else 0  # 1 for a norm's weight
                parameter.normal_(std=0.2).add_(table.norms * centre)
        for name, buffer in model.named_buffers():
            if name.endswith(("running_mean", "final_logits_bias")):
                buffer.normal_(std=0.2)
            elif name.endswith("running_var"):
                buffer.uniform_(1, 4)
            elif name.endswith("num_batches_tracked"):
                buffer.fill_(7)
    return model


def opened(theirs: nn.Module, folder: Any) -> nn.Module:
    """Our model of the same weights."""
    theirs.save_pretrained(folder)
    return from_pretrained(folder)


def layout_of(family: str) -> Any:
    return import_module(files.FAMILIES[family][0]).LAYOUT


def assert_same(family: str, theirs: nn.Module, ours: nn.Module, size: Any = None) -> None:
    """Outputs, and the gradients of a random sum of them, to 1e-5."""
    share = FAMILIES[family].share
    for module in theirs.modules():
        if isinstance(module, nn.Embedding):
            module.padding_idx = None  # official embeddings do not train the padding token, ours do
    for expected, found, their_leaves, our_leaves in FAMILIES[family].compare(theirs, ours, size):
        close(found, expected)
        assert max(each.abs().max().item() for each in expected) > 0.1
        trained = [(one, other, share * torch.randn_like(one)) for one, other in zip(expected, found, strict=True)]
        trained = [each for each in trained if each[0].requires_grad]  # attention maps are only looked at
        expected_total = sum((one * weight).sum() for one, _, weight in trained)
        total = sum((other * weight).sum() for _, other, weight in trained)
        expected_gradients = torch.autograd.grad(expected_total, their_leaves)
        assert all(each.abs().max() > 0.01 for each in expected_gradients)
        close(torch.autograd.grad(total, our_leaves), expected_gradients)


def without_pooler(kind: type) -> type:
    """The class as some checkpoints have it, under its own name, which it writes into config.json."""
    make = {"__init__": lambda self, config: kind.__init__(self, config, add_pooling_layer=False)}
    return type(kind.__name__, (kind,), make | {"__module__": kind.__module__})


def compare_bert(theirs, ours, size):
    tokens = torch.randint(0, theirs.config.vocab_size, (3, 9))
    segments = torch.randint(0, theirs.config.type_vocab_size, (3, 9))
    valid = torch.arange(9) < torch.tensor([[9], [6], [2]])
    tables = [theirs.get_input_embeddings().weight], [getattr(ours, "bert", ours).token_embed.weight]
    padded = {"token_type_ids": segments, "attention_mask": valid.long()}, {"segments": segments, "valid": valid}
    for their_arguments, our_arguments in (({}, {}), padded):
        expected, found = theirs(tokens, **their_arguments).to_tuple(), ours(tokens, **our_arguments)
        if isinstance(ours, BERT):
            found = (found, ours.pool(found)) if ours.pooler is not None else (found,)
        yield list(expected), list(found) if isinstance(found, tuple) else [found], *tables


def compare_decoder(theirs, ours, size):
    """With the position of each token counted as Hugging Face's `generate` does."""
    tokens = torch.randint(0, theirs.config.vocab_size, PADDED.shape)
    positions = (PADDED.long().cumsum(-1) - 1).masked_fill(~PADDED, 1)
    expected = theirs(tokens, attention_mask=PADDED.long(), position_ids=positions)[0][PADDED]
    found = ours(tokens, valid=PADDED)[PADDED]
    yield [expected], [found], [theirs.get_input_embeddings().weight], [ours.token_embed.weight]


def compare_t5(theirs, ours, size):
    source, target = (torch.randint(2, theirs.config.vocab_size, valid.shape) for valid in (PADDED, TARGET))
    masks = {"attention_mask": PADDED.long(), "decoder_attention_mask": TARGET.long()}
    expected = theirs(input_ids=source, decoder_input_ids=target, **masks, use_cache=False)[0][TARGET]
    found = ours(source, target, source_valid=PADDED, target_valid=TARGET)[TARGET]
    yield [expected], [found], [theirs.shared.weight], [ours.token_embed.weight]


def compare_marian(theirs, ours, size):
    backbone = getattr(theirs, "model", theirs)
    their_tables = [backbone.encoder.embed_tokens.weight, backbone.decoder.embed_tokens.weight]
    our_tables = [ours.source_embed.weight, ours.target_embed.weight]
    if ours.head is not None:
        their_tables.append(theirs.lm_head.weight)
        our_tables.append(ours.head.weight)
    source = torch.randint(0, theirs.config.vocab_size, (3, 9))
    target = torch.randint(0, theirs.config.decoder_vocab_size, (3, 7))
    places = torch.arange(9)
    masks = places < torch.tensor([[9], [6], [2]]), places[:7] < torch.tensor([[4], [7], [1]])
    for source_valid, target_valid in ((None, None), masks):
        valid = {"attention_mask": source_valid, "decoder_attention_mask": target_valid}
        valid = {name: mask.long() for name, mask in valid.items() if mask is not None}
        expected = theirs(source, decoder_input_ids=target, **valid)[0]
        found = ours(source, target, source_valid=source_valid, target_valid=target_valid)
        yield [expected], [found], their_tables, our_tables


def compare_decision_transformer(theirs, ours, size):
    """By returns to go, states and actions, with padding left and right."""
    config, rows = theirs.config, PADDED[:, :6].shape
    given = [torch.randn(*rows, *size, requires_grad=True) for size in ((), (config.state_dim,), (config.act_dim,))]
    times = torch.randint(config.max_ep_len, rows)
    names = dict(zip(("returns_to_go", "states", "actions"), (given[0][..., None], *given[1:]), strict=True))
    expected = theirs(**names, timesteps=times, attention_mask=TARGET.long()).action_preds[TARGET]
    yield [expected], [ours(*given, times, valid=TARGET)[TARGET]], given, given


def pixels(theirs, size, count=2):
    side = theirs.config.image_size if size is None else size
    height, width = (side, side) if isinstance(side, int) else side
    shape = count, theirs.config.num_channels, height, width
    return torch.randn(shape, dtype=theirs.dtype, requires_grad=True)


def compare_resnet(theirs, ours, size):
    """Logits or features, and what each stage returns."""
    image, maps = pixels(theirs, size, count=3), []
    output = theirs(image, output_hidden_states=True)
    last = output.logits if hasattr(output, "logits") else output.pooler_output.flatten(1)
    hooks = [stage.register_forward_hook(lambda *args: maps.append(args[-1])) for stage in ours.stages]
    found = [ours(image), *maps]
    for hook in hooks:
        hook.remove()
    yield [last, *output.hidden_states[1:]], found, [image], [image]


def compare_swin(theirs, ours, size):
    image = pixels(theirs, size)
    more = {"interpolate_pos_encoding": True} if theirs.config.use_absolute_embeddings and size is not None else {}
    output = theirs(image, output_hidden_states=True, output_hidden_states_before_downsampling=True, **more)
    found, maps = ours(image), output.reshaped_hidden_states[1:]  # the first is what the patches are embedded as
    if hasattr(output, "logits"):
        expected, found = [output.logits], [found]
    else:
        expected, found = [output.last_hidden_state, output.pooler_output], [found, found.mean(dim=1)]
    yield [*expected, *maps], [*found, *ours.feature_maps(image)], [image], [image]


def compare_vit(theirs, ours, size):
    """Attention weights, too."""
    image = pixels(theirs, size)
    theirs.set_attn_implementation("eager")  # the only one that hands out its weights
    output = theirs(image, output_attentions=True, interpolate_pos_encoding=size is not None)
    with record_attention(ours) as record:
        found = ours(image)
    if hasattr(output, "logits"):
        expected, found = [output.logits], [found]
    else:
        pooled = output.pooler_output
        expected = [output.last_hidden_state, *([] if pooled is None else [pooled])]
        found = [found] if pooled is None else [found, ours.pool(found)]
    maps = torch.stack(output.attentions, dim=1).detach()
    yield [*expected, maps], [*found, record.maps().detach()], [image], [image]


def compare_vit_mae(theirs, ours, size):
    """With the same noise, which patches are hidden, too; and the gradient of the matrix that embeds them."""
    image = pixels(theirs, size)
    noise = torch.rand(2, image.shape[2] * image.shape[3] // theirs.config.patch_size**2)
    output = theirs(image, noise=noise, interpolate_pos_encoding=size is not None)
    if isinstance(ours, MAE):
        seen = ours(image, noise)
        expected, found, masked = [output.loss, output.logits], [ours.loss(image, noise), seen.patches], seen.masked
    else:
        seen = ours.see(image, noise)
        expected, found, masked = [output.last_hidden_state], [seen.features], seen.mask.masked
        assert torch.equal(output.ids_restore, seen.mask.restore)
    assert torch.equal(output.mask.bool(), masked)
    matrices = [next(tensor for tensor in model.parameters() if tensor.ndim == 4) for model in (theirs, ours)]
    yield expected, found, [image, matrices[0]], [image, matrices[1]]


def sides(**sizes):
    """Settings of Marian's encoder and decoder alike."""
    return {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}


APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 19}
FEW = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 6}  # so that distances share buckets
UNTIED = {"tie_word_embeddings": False}
FAMILIES = {
    "bert": Family(
        kinds={
            hf.BertForMaskedLM: bert_tasks.BERTForMaskedLM,
            hf.BertModel: BERT,
            without_pooler(hf.BertModel): BERT,
            hf.BertForPreTraining: bert_tasks.BERTForPreTraining,
            hf.BertForNextSentencePrediction: bert_tasks.BERTForNextSentence,
            hf.BertForSequenceClassification: bert_tasks.BERTForSequenceClassification,
            hf.BertForTokenClassification: bert_tasks.BERTForTokenClassification,
        },
        config=hf.BertConfig,
        sizes={
            "vocab_size": 31,
            "hidden_size": 12,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "intermediate_size": 20,
            "max_position_embeddings": 16,
        },
        cases={
            "as published": {},
            "untied": UNTIED,
            "relu, one layer, one segment": {"hidden_act": "relu", "num_hidden_layers": 1, "type_vocab_size": 1},
            "gelu_new, three segments": {"hidden_act": "gelu_new", "type_vocab_size": 3, "num_labels": 5},
            "odd sizes": {"hidden_size": 15, "num_attention_heads": 5, "intermediate_size": 7, "vocab_size": 29},
            "one head, large epsilon": UNTIED | {"num_attention_heads": 1, "layer_norm_eps": 1e-3, "num_labels": 1},
            "unequal dropouts": {
                "hidden_dropout_prob": 0.3,
                "attention_probs_dropout_prob": 0.0,
                "classifier_dropout": 0.2,
            },
        },
        compare=compare_bert,
    ),
    "gpt2": Family(
        kinds={hf.GPT2LMHeadModel: GPT, hf.GPT2Model: GPT},
        config=hf.GPT2Config,
        sizes={
            "vocab_size": 23,
            "n_positions": 11,
            "n_embd": 12,
            "n_layer": 2,
            "n_head": 3,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
        cases={
            "plain": {},
            "odd sizes": {"vocab_size": 17, "n_positions": 9, "n_embd": 35, "n_head": 5, "n_inner": 13, "n_layer": 3},
            "one layer, one head": {"n_layer": 1, "n_head": 1},
            "a head of its own": UNTIED,
            "relu": {"activation_function": "relu"},
            "exact gelu": UNTIED | {"activation_function": "gelu"},
            "silu and a large eps": {"activation_function": "silu", "layer_norm_epsilon": 0.3},
            "other dropouts": {"embd_pdrop": 0.0, "attn_pdrop": 0.5, "resid_pdrop": 0.25},
            "scaled after the product": {"reorder_and_upcast_attn": True, "attn_implementation": "eager"},
        },
        compare=compare_decoder,
        share=1 / 19,  # a token's
        defaults=GPTConfig(),
    ),
    "llama": Family(
        kinds={hf.LlamaForCausalLM: Llama, hf.LlamaModel: Llama},
        config=hf.LlamaConfig,
        sizes={
            "vocab_size": 23,
            "max_position_embeddings": 17,
            "hidden_size": 24,
            "intermediate_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
        },
        cases={
            "plain": {},
            "two key and value heads": {"num_key_value_heads": 2},
            "one key and value head": {"num_key_value_heads": 1, "tie_word_embeddings": True},
            "a tied head": {"tie_word_embeddings": True},
            "wide heads": {"head_dim": 10, "num_key_value_heads": 3},
            "odd sizes": {"vocab_size": 17, "hidden_size": 30, "num_attention_heads": 5, "num_hidden_layers": 3},
            "slow rotations": {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}},
            "gelu and a large eps": {"hidden_act": "gelu", "rms_norm_eps": 0.3},
        },
        compare=compare_decoder,
        share=1 / 19,  # a token's
        defaults=LlamaConfig(),
    ),
    "t5": Family(
        kinds={hf.T5ForConditionalGeneration: T5, hf.T5Model: T5},
        config=hf.T5Config,
        sizes={
            "vocab_size": 23,
            "d_model": 12,
            "d_kv": 4,
            "d_ff": 20,
            "num_layers": 2,
            "num_heads": 3,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
            "eos_token_id": 1,
        },
        cases={
            "plain": {},
            "odd sizes": {"vocab_size": 17, "d_model": 15, "d_kv": 7, "d_ff": 11, "num_heads": 5} | FEW,
            "unequal depth": {"num_layers": 3, "num_decoder_layers": 1} | FEW,
            "one layer, one head": {"num_layers": 1, "num_heads": 1, "num_decoder_layers": 1},
            "gated, a head of its own": UNTIED | {"feed_forward_proj": "gated-gelu", "own_head": True},
            "tied but not scaled": UNTIED | FEW,
            "exact gelu": {"feed_forward_proj": "gelu", "relative_attention_num_buckets": 5},
            "gated silu and a large eps": {"feed_forward_proj": "gated-silu", "layer_norm_epsilon": 0.3},
        },
        compare=compare_t5,
        share=1 / 14,  # a token's
        defaults=T5Config(),
        rewritten=frozenset({"tie_word_embeddings"}),  # of a head of its own
    ),
    "marian": Family(
        kinds={hf.MarianMTModel: Marian, hf.MarianModel: Marian},
        config=hf.MarianConfig,
        sizes={
            "vocab_size": 23,
            "d_model": 12,
            "max_position_embeddings": 16,
            "activation_function": "swish",
            "scale_embedding": True,
            "pad_token_id": 0,
            "decoder_start_token_id": 0,
            **sides(layers=2, attention_heads=3, ffn_dim=20),
        },
        cases={
            "as opus-mt": {},
            "two vocabularies": APART,
            "two vocabularies, untied": APART | UNTIED | {"activation_function": "relu"},
            "one vocabulary, untied, not scaled": UNTIED | {"scale_embedding": False},
            "unequal encoder and decoder": {
                "encoder_layers": 3,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 7,
                "decoder_layers": 1,
                "decoder_attention_heads": 6,
                "decoder_ffn_dim": 33,
                "activation_function": "gelu",
            },
            "odd sizes, one layer, one head": {
                "d_model": 14,
                "activation_function": "gelu_new",
                "max_position_embeddings": 9,
                "encoder_layers": 1,
                "encoder_attention_heads": 7,
                "encoder_ffn_dim": 5,
                "decoder_layers": 1,
                "decoder_attention_heads": 1,
            },
            "dropouts": {"dropout": 0.3, "attention_dropout": 0.2, "activation_dropout": 0.4},
        },
        compare=compare_marian,
        rewritten=frozenset({"activation_function", "share_encoder_decoder_embeddings"}),  # swish is silu
    ),
    "decision_transformer": Family(
        kinds={hf.DecisionTransformerModel: DecisionTransformer},
        config=hf.DecisionTransformerConfig,
        sizes={
            "state_dim": 5,
            "act_dim": 3,
            "max_ep_len": 30,
            "hidden_size": 12,
            "n_layer": 2,
            "n_head": 3,
            "n_positions": 7,
            "bos_token_id": None,
            "eos_token_id": None,
        },
        cases={
            "plain": {},
            "logits": {"action_tanh": False},
            "odd sizes": {
                "state_dim": 2,
                "act_dim": 1,
                "hidden_size": 35,
                "n_head": 5,
                "n_inner": 13,
                "n_layer": 3,
            },
            "gelu and a large eps": {"activation_function": "gelu_new", "layer_norm_epsilon": 0.3},
            "dropout": {"resid_pdrop": 0.25, "embd_pdrop": 0.25, "attn_pdrop": 0.25},
        },
        compare=compare_decision_transformer,
        defaults=DecisionTransformerConfig(),
        rewritten=frozenset({"n_positions"}),
    ),
    "resnet": Family(
        kinds={hf.ResNetForImageClassification: ResNet, hf.ResNetModel: ResNet},
        config=hf.ResNetConfig,
        sizes={
            "embedding_size": 6,
            "hidden_sizes": [8, 12, 16],
            "depths": [2, 1, 2],
            "num_channels": 3,
            "num_labels": 5,
            "layer_type": "bottleneck",
        },
        cases={
            "basic": ({"layer_type": "basic"}, (33, 47)),
            "bottleneck": ({}, (40, 32)),
            "stride on the first 1 x 1": ({"downsample_in_bottleneck": True}, (37, 45)),
            "first stage halves, grey": (
                {"layer_type": "basic", "downsample_in_first_stage": True, "num_channels": 1},
                (65, 33),
            ),
            "two stages, gelu": ({"hidden_sizes": [8, 20], "depths": [1, 3], "hidden_act": "gelu"}, (31, 29)),
            "four stages, silu, one class": (
                {
                    "layer_type": "basic",
                    "hidden_sizes": [6, 6, 8, 10],
                    "depths": [1] * 4,
                    "hidden_act": "silu",
                    "num_labels": 1,
                },
                (64, 81),
            ),
            "everything early, a channel more": (
                {
                    "downsample_in_first_stage": True,
                    "downsample_in_bottleneck": True,
                    "num_channels": 4,
                    "hidden_act": "gelu_new",
                },
                (51, 66),
            ),
        },
        compare=compare_resnet,
        norms=0.5,
    ),
    "swin": Family(
        kinds={hf.SwinForImageClassification: Swin, hf.SwinModel: Swin},
        config=hf.SwinConfig,
        sizes={
            "image_size": 16,
            "patch_size": 2,
            "num_channels": 3,
            "embed_dim": 6,
            "depths": [2, 2],
            "num_heads": [2, 3],
            "window_size": 3,
            "mlp_ratio": 2.0,
            "drop_path_rate": 0.0,
        },
        cases={
            "as published, shifted": {"window_size": 4},
            "padded maps": {},
            "odd sizes, padded to whole patches": ({"patch_size": 3}, (31, 38)),
            "tall, an odd map merged": ({}, (30, 14)),
            "wide, a window as high as the map": ({"window_size": 4}, (16, 40)),
            "three stages, three blocks": (
                {"depths": [3, 1, 2], "num_heads": [1, 2, 6], "window_size": 2},
                (18, 26),
            ),
            "absolute positions": {"use_absolute_embeddings": True},
            "absolute positions of a wide image": {"use_absolute_embeddings": True, "image_size": (12, 20)},
            "positions for a larger image": ({"use_absolute_embeddings": True, "window_size": 2}, (24, 24)),
            "positions for a wide image": ({"use_absolute_embeddings": True, "window_size": 2}, (8, 20)),
            "no biases of queries, keys, values": ({"qkv_bias": False, "window_size": 4}, (20, 16)),
            "grey, one stage, even window": (
                {"num_channels": 1, "depths": [4], "num_heads": [3], "window_size": 6},
                (28, 30),
            ),
            "wide MLP, many classes": ({"mlp_ratio": 3.5, "num_labels": 7}, (14, 14)),
        },
        compare=compare_swin,
        norms=0.0,
        rewritten=frozenset({"image_size"}),  # only of absolute positions
    ),
    "vit": Family(
        kinds={hf.ViTForImageClassification: ViT, hf.ViTModel: ViT, without_pooler(hf.ViTModel): ViT},
        config=hf.ViTConfig,
        sizes={
            "image_size": 8,
            "patch_size": 4,
            "num_channels": 3,
            "hidden_size": 12,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "intermediate_size": 20,
        },
        cases={
            "as published": {},
            "grey, odd sizes": {
                "num_channels": 1,
                "patch_size": 5,
                "image_size": 15,
                "hidden_size": 15,
                "intermediate_size": 7,
            },
            "wide image": {"image_size": (8, 20), "num_labels": 4},
            "tall image, large epsilon": {"image_size": (12, 4), "layer_norm_eps": 1e-2, "num_labels": 3},
            "one head, one block": {"num_attention_heads": 1, "num_hidden_layers": 1, "intermediate_size": 48},
            "one patch, four blocks": {"patch_size": 8, "num_hidden_layers": 4, "num_labels": 1},
            "five channels, dropout": {"num_channels": 5, "hidden_dropout_prob": 0.3},
            "relu": {"hidden_act": "relu"},
            "gelu_new, no biases of queries, keys, values": {"hidden_act": "gelu_new", "qkv_bias": False},
            "silu": {"hidden_act": "silu"},
            **{f"positions for {size}": ({"image_size": 12}, size) for size in ((12, 12), (4, 16), (20, 8), (8, 12))},
        },
        compare=compare_vit,
        rewritten=frozenset({"pooler_output_size"}),
    ),
    "vit_mae": Family(
        kinds={hf.ViTMAEForPreTraining: MAE, hf.ViTMAEModel: MAEEncoder},
        config=hf.ViTMAEConfig,
        sizes={
            "image_size": 12,
            "patch_size": 4,
            "num_channels": 3,
            "hidden_size": 12,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "intermediate_size": 20,
            "decoder_hidden_size": 8,
            "decoder_num_hidden_layers": 2,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 14,
            "norm_pix_loss": True,
            "mask_ratio": 0.6,
        },
        cases={
            "normalised pixels": {},
            "plain pixels": {"norm_pix_loss": False, "mask_ratio": 0.75},
            "grey, odd patches, grid of 5": {
                "num_channels": 1,
                "patch_size": 3,
                "image_size": 15,
                "mask_ratio": 0.5,
            },
            "grid of 7, most is hidden": {"image_size": 14, "patch_size": 2, "mask_ratio": 0.9},
            "one head, one block": {"num_attention_heads": 1, "num_hidden_layers": 1, "decoder_num_hidden_layers": 1},
            "five channels, four blocks": {"num_channels": 5, "num_hidden_layers": 4, "layer_norm_eps": 1e-2},
            "decoder wider than encoder, two patches a side": {
                "decoder_hidden_size": 24,
                "image_size": 8,
                "mask_ratio": 0.3,
            },
        },
        compare=compare_vit_mae,
    ),
}

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention import attention_weights
from course_lib.layers.recording import record_attention
from course_lib.models.bert import BERT, BERTConfig, bert_base, bert_large
from course_lib.models.bert_tasks import (
    BERTForMaskedLM,
    BERTForNextSentence,
    BERTForPreTraining,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)

HEADS = (
    BERTForMaskedLM,
    BERTForPreTraining,
    BERTForNextSentence,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)


def make(build=BERT, seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "dim": 12, "depth": 2, "num_heads": 3, "mlp_dim": 20, "context_length": 9}
    torch.manual_seed(seed)
    model = build(BERTConfig(**sizes | {"num_classes": 3} | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(seed=0):
    """Two rows of tokens and segments; the second has two tokens of padding."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 23, (2, 6), generator=generator)
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]])
    return tokens, segments, torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


def outputs(model, *args, **kwargs):
    """What a model returns, as a tuple."""
    output = model(*args, **kwargs)
    return output if isinstance(output, tuple) else (output,)


def num_parameters(build):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build().parameters())


def test_bert_base_and_large_have_the_sizes_of_the_paper():
    assert num_parameters(bert_base) == 109_482_240  # 110M
    assert num_parameters(bert_large) == 335_141_888  # 340M


def test_heads_add_the_parameters_of_the_official_ones():
    counts = {build: num_parameters(lambda build=build: build(BERTConfig())) for build in HEADS}
    assert counts == {
        BERTForMaskedLM: 109_514_298,
        BERTForPreTraining: 110_106_428,
        BERTForNextSentence: 109_483_778,
        BERTForSequenceClassification: 109_483_778,
        BERTForTokenClassification: 108_893_186,
    }


@pytest.mark.parametrize("build", (BERT, *HEADS))
def test_padding_changes_nothing(build):
    model = make(build)
    tokens, segments, valid = batch()
    together = outputs(model, tokens, segments=segments, valid=valid)
    alone = outputs(model, tokens[1:, :4], segments=segments[1:, :4])
    for padded, plain in zip(together, alone, strict=True):
        padded = padded[1:, :4] if padded.ndim == 3 else padded[1:]
        torch.testing.assert_close(padded, plain, rtol=0, atol=1e-12)


def test_without_segments_all_tokens_belong_to_sentence_a():
    model, (tokens, segments, _) = make(), batch()
    plain = model(tokens)
    torch.testing.assert_close(plain, model(tokens, segments=torch.zeros_like(tokens)), rtol=0, atol=1e-12)
    assert (plain - model(tokens, segments=segments)).abs().max() > 0.01


def test_every_token_sees_both_sides():
    model, (tokens, *_) = make(), batch()
    words = model.embed(tokens).detach().requires_grad_()
    x = words
    for block in model.blocks:
        x = block(x)
    x[0, 2].sum().sin().backward()
    assert (words.grad[0] != 0).any(dim=-1).all() and (words.grad[1] == 0).all()


def test_the_order_of_words_matters():
    model, (tokens, *_) = make(), batch()
    assert (model(tokens.flip(1)).flip(1) - model(tokens)).abs().max() > 0.01


@pytest.mark.parametrize("build", (BERTForMaskedLM, BERTForPreTraining))
def test_logits_of_masked_words_are_those_of_all_words_at_their_places(build):
    model, (tokens, segments, valid) = make(build), batch()
    masked = torch.tensor([[False, True, False, False, True, False], [False, False, False, True, False, False]])
    some = outputs(model, tokens, segments=segments, valid=valid, masked=masked)[0]
    every = outputs(model, tokens, segments=segments, valid=valid)[0]
    torch.testing.assert_close(some, every[masked], rtol=0, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_head_reads_words_with_the_embedding_that_wrote_them(tied):
    model, (tokens, *_) = make(BERTForMaskedLM, tied=tied), batch()
    unused = next(word for word in range(23) if word not in tokens)
    before = model(tokens)[..., unused]
    model.bert.token_embed.weight.data[unused] += torch.randn(12)
    assert ((model(tokens)[..., unused] - before).abs() > 1e-3).all() == tied


def test_the_gradient_of_tied_embeddings_is_that_of_both_uses():
    model, (tokens, *_) = make(BERTForMaskedLM), batch()
    weight = model.bert.token_embed.weight
    F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    gradient, direction = weight.grad, torch.randn_like(weight)
    assert gradient.layout == torch.strided
    losses = []
    for step in (1e-5, -2e-5):
        weight.data += step * direction
        losses.append(F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).item())
    assert (losses[0] - losses[1]) / 2e-5 == pytest.approx((gradient * direction).sum().item(), rel=1e-5)


def test_attention_maps_are_the_weights_that_the_model_uses():
    model, (tokens, segments, valid) = make(depth=1), batch()
    with record_attention(model) as record:
        output = model(tokens, segments=segments, valid=valid)
    maps = record.maps()
    assert maps.shape == (2, 1, 3, 6, 6)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 1, 3, 6).double())
    assert (maps[1, ..., 4:] == 0).all() and (maps[0] > 0).all()

    block, x = model.blocks[0], model.embed(tokens, segments)
    values = block.attn.v_proj(x).unflatten(-1, (3, 4)).transpose(1, 2)
    heads = (maps[:, 0] @ values).transpose(1, 2).flatten(2)
    x = block.norm1(x + block.attn.o_proj(heads))
    x = block.norm2(x + block.ffn(x))
    torch.testing.assert_close(output, x, rtol=0, atol=1e-12)


def test_attention_maps_of_later_blocks_see_the_features_before_them():
    model, (tokens, *_) = make(), batch()
    first, attn = model.blocks[0](model.embed(tokens)), model.blocks[1].attn
    q, k = (project(first).unflatten(-1, (3, 4)).transpose(1, 2) for project in (attn.q_proj, attn.k_proj))
    with record_attention(model) as record:
        model(tokens)
    torch.testing.assert_close(record.maps()[:, 1], attention_weights(q, k))


def test_weights_start_from_a_normal_distribution_of_deviation_002():
    torch.manual_seed(0)
    model = BERTForPreTraining(BERTConfig(vocab_size=500, dim=64, depth=1, num_heads=2, mlp_dim=128, tied=False))
    for name, parameter in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            assert (parameter == 1).all(), name
        elif name.endswith("bias"):
            assert (parameter == 0).all(), name
        else:
            error = 4 * 0.02 / (2 * parameter.numel()) ** 0.5  # four standard errors
            assert parameter.std().item() == pytest.approx(0.02, abs=error), name


def test_dropout_acts_in_training_only():
    model, (tokens, *_) = make(BERTForSequenceClassification, dropout=0.5), batch()
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


@pytest.mark.parametrize("build", (BERTForNextSentence, BERTForPreTraining))
def test_the_next_sentence_has_two_classes_and_no_dropout_of_its_own(build):
    model, (tokens, *_) = make(build, num_classes=7, dropout=0.9), batch()
    logits = outputs(model, tokens)[-1]
    assert logits.shape == (2, 2)
    for name, part in model.named_modules():
        part.training = not name.startswith("bert")
    assert torch.equal(outputs(model, tokens)[-1], logits)


@pytest.mark.parametrize("build", (BERTForPreTraining, BERTForTokenClassification, BERTForSequenceClassification))
def test_a_batch_can_be_learned_by_heart(build):
    torch.manual_seed(0)
    config = BERTConfig(vocab_size=20, dim=32, depth=1, num_heads=2, mlp_dim=64, context_length=8, dropout=0.0)
    model = build(config)
    tokens = torch.randint(0, 20, (8, 6))
    masked = torch.zeros(8, 6, dtype=torch.bool)
    masked[:, ::2] = True
    classes = torch.arange(8) % 2
    answers = {
        BERTForPreTraining: ((tokens[masked], classes), {"masked": masked}),
        BERTForTokenClassification: (((tokens.flip(1) % 2).flatten(),), {}),
        BERTForSequenceClassification: ((classes,), {}),
    }
    wanted, arguments = answers[build]
    given = tokens.masked_fill(masked, 0) if build is BERTForPreTraining else tokens
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        logits = [each.flatten(0, -2) for each in outputs(model, given, **arguments)]
        loss = sum(F.cross_entropy(each, answer) for each, answer in zip(logits, wanted, strict=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(torch.equal(each.argmax(-1), answer) for each, answer in zip(logits, wanted, strict=True))


def test_a_backbone_without_a_pooler_says_so():
    with pytest.raises(ValueError, match="has no pooler"):
        BERT(BERTConfig(vocab_size=5, dim=4, depth=1, num_heads=1, mlp_dim=4), pooler=False).pool(torch.zeros(1, 2, 4))


def test_too_many_tokens_are_refused():
    with pytest.raises(ValueError, match="positions 0 to 9 were asked for, the table holds 0 to 8"):
        make()(torch.zeros(1, 10, dtype=torch.long))


@pytest.mark.parametrize("wrong, message", [({"num_heads": 5}, "num_heads=5"), ({"activation": "tanh"}, "'tanh'")])
def test_settings_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)

from functools import partial

import pytest
import torch
from torch import nn

from course_lib.generation import greedy
from course_lib.layers.recording import record_attention
from course_lib.layers.recurrent import AdditiveAttention, LuongAttention
from course_lib.layers.transformer import DecoderBlock, FeedForward, MultiHeadAttention
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.transformer import Transformer, TransformerConfig


def decoder_blocks():
    torch.manual_seed(0)
    norm = partial(nn.LayerNorm, 8)
    return nn.ModuleList(
        DecoderBlock(MultiHeadAttention(8, 2), MultiHeadAttention(8, 2), FeedForward(8, 8), norm) for _ in range(3)
    )


def run(blocks, x, context):
    for block in blocks:
        x = block(x, context)
    return x


def test_parts_of_a_model_are_chosen_by_name_in_the_order_of_the_layers():
    blocks, x, context = decoder_blocks(), torch.randn(2, 4, 8), torch.randn(2, 5, 8)
    with record_attention(blocks) as record:
        run(blocks, x, context)
    assert list(record) == [f"{i}.{part}" for i in range(3) for part in ("attn", "cross_attn")]
    assert record.maps("cross_attn").shape == (2, 3, 2, 4, 5) and record.maps(r"\.attn").shape == (2, 3, 2, 4, 4)
    assert torch.equal(record.maps("^1.cross")[:, 0], record["1.cross_attn"][0])
    with pytest.raises(ValueError, match=r"name a part, .*: 0\.attn \(2, 2, 4, 4\), 0\.cross_attn \(2, 2, 4, 5\)"):
        record.maps()
    with pytest.raises(ValueError, match=r"no attention ran whose name contains 'encoder'; there are 0\.attn, "):
        record.maps("encoder")


def test_a_layer_that_is_called_word_by_word_has_a_query_for_each_call():
    layer = AdditiveAttention(3, 4, 5)
    query, keys = torch.randn(2, 6, 3), torch.randn(2, 7, 4)
    with record_attention(layer) as record:
        for word in query.split(1, dim=1):
            layer(word, keys)
    torch.testing.assert_close(record.maps(), layer(query, keys)[1][:, None, None])


def test_kinds_are_not_mixed_where_their_shapes_happen_to_agree():
    blocks, x = decoder_blocks(), torch.randn(2, 4, 8)
    with record_attention(blocks) as record:
        run(blocks, x, torch.randn(2, 4, 8))
    with pytest.raises(ValueError, match="several kinds of attention ran, name a part"):
        record.maps()
    assert record.maps("cross_attn").shape == record.maps(r"\.attn").shape == (2, 3, 2, 4, 4)


@pytest.mark.parametrize(
    "layer", [MultiHeadAttention(8, 2, dropout=0.5), LuongAttention(8, 8), LuongAttention(8, 8, score="scaled")]
)
def test_nothing_is_left_behind_even_after_an_error(layer):
    x = torch.randn(2, 4, 8)
    with pytest.raises(RuntimeError, match="stop"), record_attention(layer) as record:
        layer(x, x)
        raise RuntimeError("stop")
    layer(x, x)
    assert [len(calls) for calls in record.values()] == [1]
    assert getattr(layer.attend, "__name__", "") != "both"


def tiny_gpt():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=11, context_length=12, dim=8, depth=2, num_heads=2)).eval()


def test_maps_of_a_model_that_generates_are_those_of_one_pass_over_what_it_wrote():
    model, prompt = tiny_gpt(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    with record_attention(model) as record:
        written = greedy(model, prompt, max_new_tokens=4)
    with record_attention(model) as whole, torch.no_grad():
        model(torch.cat([prompt, written[:, :-1]], dim=1))  # the last token is read by nobody
    assert record.maps().shape == (2, 2, 2, 6, 6)
    torch.testing.assert_close(record.maps(), whole.maps())


def test_maps_of_an_encoder_decoder_that_generates_are_those_of_one_pass():
    torch.manual_seed(0)
    sizes = {"dim": 8, "depth": 2, "num_heads": 2, "mlp_dim": 8, "context_length": 8}
    model, source = Transformer(TransformerConfig(vocab_size=11, **sizes)).eval(), torch.randint(11, (2, 5))
    start = torch.ones(2, 1, dtype=torch.long)
    with record_attention(model) as record:
        written = greedy(model.given(source), start, max_new_tokens=4)
    with record_attention(model) as whole, torch.no_grad():
        model(source, torch.cat([start, written[:, :-1]], dim=1))
    for part, shape in (("encoder", (5, 5)), ("cross_attn", (4, 5)), (r"decoder.*\.attn", (4, 4))):
        assert record.maps(part).shape == (2, 2, 2, *shape)
        torch.testing.assert_close(record.maps(part), whole.maps(part))


def test_two_passes_are_not_taken_for_one():
    model, tokens = tiny_gpt(), torch.tensor([[1, 2, 3]])
    with record_attention(model) as record, torch.no_grad():
        model(tokens)
        model(tokens)
    with pytest.raises(ValueError, match=r"blocks\.0\.attn ran in 2 passes .*record\['blocks\.0\.attn'\]"):
        record.maps()
    assert [call.shape for call in record["blocks.0.attn"]] == [(1, 2, 3, 3)] * 2
    with record_attention(model) as record:
        for _ in range(2):
            greedy(model, tokens, max_new_tokens=2)
    with pytest.raises(ValueError, match="2 passes"):
        record.maps()
    layer, context = MultiHeadAttention(8, 2), torch.randn(1, 4, 8)
    with record_attention(layer) as record:
        for _ in range(2):
            layer(torch.randn(1, 3, 8), context)
    with pytest.raises(ValueError, match="2 passes"):
        record.maps()


def test_a_recorder_within_another_notes_each_call_once():
    model, tokens = tiny_gpt(), torch.tensor([[1, 2, 3]])
    with torch.no_grad(), record_attention(model) as outer, record_attention(model.blocks) as inner:
        model(tokens)
    assert {len(calls) for calls in (*outer.values(), *inner.values())} == {1}
    assert torch.equal(outer.maps(), inner.maps())
    assert all(not hook for part in model.modules() for hook in (part._forward_pre_hooks, part._forward_hooks))

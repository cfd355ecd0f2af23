"""Whatever writes says in pieces what it says at once: behind a cache, after padded prompts, in rows chosen anew."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from course_lib.models.flamingo import Flamingo, FlamingoConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig, SequenceGenerator, SequenceGeneratorConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.transformer import Transformer, TransformerConfig

VOCAB, LENGTH = 11, 7
TOKENS = torch.randint(VOCAB, (2, LENGTH), generator=torch.Generator().manual_seed(0))
SOURCE = torch.randint(VOCAB, (2, 6), generator=torch.Generator().manual_seed(1))
REAL = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])  # of the source
PICTURES = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
EVERYTHING = torch.arange(2)


@dataclass(frozen=True, kw_only=True)
class Writer:
    build: Callable  # () -> model
    logits: Callable = lambda model, tokens, rows: model(tokens)  # at once, of these rows of what it writes about
    given: Callable = lambda model: model  # what writes
    close: float = 1e-12  # rotary angles are of single precision: a row that stands farther to the right differs


def translator(build):
    return Writer(
        build=build,
        logits=lambda model, tokens, rows: model(SOURCE[rows], tokens, source_valid=REAL[rows]),
        given=lambda model: model.given(SOURCE, REAL),
    )


def describer(build):
    return Writer(
        build=build,
        logits=lambda model, tokens, rows: model(tokens, PICTURES[rows]),
        given=lambda model: model.given(PICTURES),
    )


SIZES = {"vocab_size": VOCAB, "context_length": LENGTH, "dim": 8, "depth": 2, "num_heads": 2}
LLAMA = SIZES | {"dim": 16, "num_heads": 4, "num_kv_heads": 2, "mlp_dim": 10}
TEXT = SIZES | {"mlp_dim": 12}
T5_SIZES = {"vocab_size": VOCAB, "dim": 12, "depth": (1, 2), "num_heads": 3, "head_dim": 5, "mlp_dim": 20}
MARIAN = TEXT | {"depth": (2, 3), "num_heads": (2, 4), "mlp_dim": (12, 10)}
SIGHT = {"vision_dim": 6, "num_latents": 3, "resampler_depth": 1, "num_heads": 2, "head_dim": 5}
STATES = {"vocab_size": VOCAB, "hidden_dim": 6, "num_layers": 2}

WRITERS = {
    "GPT-2": Writer(build=lambda: GPT(GPTConfig(**SIZES))),
    "GPT-1 with a head of its own": Writer(build=lambda: GPT(GPTConfig(**SIZES, head="linear", pre_norm=False))),
    "Llama": Writer(build=lambda: Llama(LlamaConfig(**LLAMA)), close=1e-5),
    "Llama, tied, one key head": Writer(
        build=lambda: Llama(LlamaConfig(**LLAMA | {"num_kv_heads": 1, "head": "tied"})), close=1e-5
    ),
    "T5": translator(lambda: T5(T5Config(**T5_SIZES, num_buckets=6, max_distance=5))),
    "T5 with a head of its own": translator(lambda: T5(T5Config(**T5_SIZES, head="linear"))),
    "T5, tied, not scaled": translator(lambda: T5(T5Config(**T5_SIZES, head="tied_unscaled"))),
    "Transformer": translator(lambda: Transformer(TransformerConfig(**TEXT))),
    "Transformer, pre-norm": translator(
        lambda: Transformer(TransformerConfig(**TEXT, pre_norm=True, activation="gelu", head="linear"))
    ),
    "Transformer, learned positions": translator(lambda: Transformer(TransformerConfig(**TEXT, positions="learned"))),
    "Marian": translator(lambda: Marian(MarianConfig(**MARIAN))),
    "Flamingo": describer(lambda: Flamingo(FlamingoConfig(language=GPTConfig(**SIZES), **SIGHT))),
    "Flamingo that looks at every second block": describer(
        lambda: Flamingo(FlamingoConfig(language=GPTConfig(**SIZES | {"depth": 3}), **SIGHT, every=2))
    ),
    "patches and words": describer(
        lambda: MultimodalGPT(
            MultimodalGPTConfig(language=GPTConfig(**SIZES | {"context_length": 4 + LENGTH}), patch_dim=6)
        )
    ),
}
for cell in ("rnn", "lstm", "gru"):
    WRITERS[f"CharacterLM, {cell}"] = Writer(
        build=lambda cell=cell: CharacterLM(RecurrentConfig(**STATES, cell=cell, embed_dim=3))
    )
    WRITERS[f"generator, {cell}"] = Writer(
        build=lambda cell=cell: SequenceGenerator(SequenceGeneratorConfig(**STATES, cell=cell, condition_dim=6)),
        logits=lambda model, tokens, rows: model(PICTURES[rows, 0], tokens),
        given=lambda model: model.given(PICTURES[:, 0]),
    )
each_writer = pytest.mark.parametrize("case", WRITERS.values(), ids=WRITERS)


def make(case):
    """The model with large random weights, in double precision and evaluation mode."""
    torch.manual_seed(0)
    model = case.build().double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def same(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("steps", [[7], [4, 1, 1, 1], [1] * 7, [2, 3, 2]], ids=str)
@each_writer
@torch.no_grad()
def test_writing_in_pieces_is_writing_at_once(case, steps):
    model = make(case)
    writer, logits, seen = case.given(model), case.logits(model, TOKENS, EVERYTHING), 0
    cache = writer.new_cache(LENGTH + 1)  # the last new token is not read: it needs no position
    before = cache.length
    for new in steps:
        found = writer.next_logits(TOKENS[:, seen : seen + new], cache)
        seen += new
        same(found, logits[:, seen - 1])
    assert cache.length - before == LENGTH


@each_writer
@torch.no_grad()
def test_padded_prompts_and_chosen_rows_go_on_as_if_alone(case):
    model = make(case)
    writer, close = case.given(model), case.close
    first = case.logits(model, TOKENS[:1], EVERYTHING[:1])[0]
    second = case.logits(model, TOKENS[1:, 3:], EVERYTHING[1:])[0]
    cache = writer.new_cache(LENGTH)
    found = writer.next_logits(TOKENS[:, :5], cache, valid=torch.tensor([[True] * 5, [False] * 3 + [True] * 2]))
    same(found, torch.stack([first[4], second[1]]), close)
    rows = torch.tensor([1, 0, 1])
    cache.select(rows)
    for step in (5, 6):
        found = writer.next_logits(TOKENS[rows, step : step + 1], cache)
        same(found, torch.stack([second[step - 3], first[step], second[step - 3]]), close)


@each_writer
@torch.no_grad()
def test_a_token_changes_what_is_said_from_it_on_and_nothing_before(case):
    model, changed = make(case), TOKENS.clone()
    changed[:, 3] = (changed[:, 3] + 1) % VOCAB
    difference = case.logits(model, changed, EVERYTHING) - case.logits(model, TOKENS, EVERYTHING)
    assert (difference[:, :3] == 0).all() and (difference[:, 3:].abs().amax(dim=-1) > 1e-6).all()


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@torch.no_grad()
def test_the_cache_of_a_llama_holds_the_shared_heads_alone(num_kv_heads):
    model = Llama(LlamaConfig(**LLAMA | {"num_kv_heads": num_kv_heads}))
    cache = model.new_cache(LENGTH)
    model.next_logits(TOKENS, cache)
    assert all(layer.past.k.shape == layer.past.v.shape == (2, num_kv_heads, 7, 4) for layer in cache.layers)
    with pytest.raises(ValueError, match="first token only, but follows 7 tokens in the cache"):
        model.next_logits(TOKENS[:, :2], cache, valid=torch.tensor([[False, True], [True, True]]))


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_more_room_than_there_are_positions_is_refused(name):
    with pytest.raises(ValueError, match="at most 7 tokens, room for 9"):
        make(WRITERS[name]).new_cache(LENGTH + 2)

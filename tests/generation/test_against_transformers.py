"""Token for token what Hugging Face's `generate` writes, on tiny models of random weights."""

import pytest
import torch
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from course_lib import weights
from course_lib.generation import beam_search, greedy

VOCAB, PAD, END = 19, 2, 1
B, T = 5, 6
SEQ2SEQ = {"vocab_size": VOCAB, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}


def gpt2():
    return GPT2LMHeadModel(
        GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=VOCAB, n_positions=32, bos_token_id=END, eos_token_id=END)
    )


def llama():
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "max_position_embeddings": 32}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, vocab_size=VOCAB, bos_token_id=END, eos_token_id=END))


def marian():
    sizes = {"ffn_dim": 24, "attention_heads": 2, "layers": 2}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    return MarianMTModel(
        MarianConfig(d_model=16, max_position_embeddings=32, forced_eos_token_id=None, **SEQ2SEQ, **sides)
    )


def t5():
    return T5ForConditionalGeneration(T5Config(d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, **SEQ2SEQ))


# with the standard deviation and the seed of weights that end some sequences and not others
DECODERS = ("GPT-2", "Llama")  # without a source
OFFICIAL = {"GPT-2": (gpt2, 0.5, 4), "Llama": (llama, 0.5, 1), "Marian": (marian, 0.3, 11), "T5": (t5, 0.5, 10)}


@pytest.fixture(scope="module", params=OFFICIAL)
def pair(request, tmp_path_factory):
    """A model's name, ours and theirs, with the same weights."""
    official_model, std, seed = OFFICIAL[request.param]
    torch.manual_seed(seed)
    theirs = official_model().eval()
    theirs.generation_config = GenerationConfig()  # else it fills in an end where a call asks for none
    for name, parameter in theirs.named_parameters():
        if parameter.ndim > 1 and "embed_positions" not in name:  # those of Marian are fixed
            torch.nn.init.normal_(parameter, std=std)
    folder = tmp_path_factory.mktemp("official")
    theirs.save_pretrained(folder)
    return request.param, weights.from_pretrained(folder).eval(), theirs


@pytest.fixture(scope="module")
def prompts():
    """Unequal prompts, padded at the left, with what is real in them."""
    tokens = torch.randint(3, VOCAB, (B, T), generator=torch.Generator().manual_seed(0))
    valid = torch.arange(T) >= torch.tensor([0, 3, 5, 1, 0])[:, None]
    return tokens.masked_fill(~valid, PAD), valid


def official(pair, prompts, *, max_new_tokens, end_id, **settings):
    """What `generate` writes: the new tokens, and the scores of a beam search."""
    name, _, theirs = pair
    tokens, valid = prompts
    output = theirs.generate(
        tokens,
        attention_mask=valid.long(),
        generation_config=GenerationConfig(
            max_new_tokens=max_new_tokens,
            eos_token_id=end_id,
            pad_token_id=PAD,
            decoder_start_token_id=None if name in DECODERS else PAD,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **settings,
        ),
    )
    skip = T if name in DECODERS else 1
    return output.sequences[:, skip:], getattr(output, "sequences_scores", None)


def ours(pair, prompts, write, **settings):
    name, model, _ = pair
    tokens, valid = prompts
    if name in DECODERS:
        return write(model, tokens, valid=valid, pad_id=PAD, **settings)
    start = torch.full((B, 1), PAD)
    with torch.no_grad():
        return write(model.given(tokens, valid), start, pad_id=PAD, **settings)


@pytest.mark.parametrize("end_id", [END, None])
@pytest.mark.parametrize("max_new_tokens", [1, 12])
def test_greedy(pair, prompts, max_new_tokens, end_id):
    theirs, _ = official(pair, prompts, max_new_tokens=max_new_tokens, end_id=end_id)
    assert torch.equal(ours(pair, prompts, greedy, max_new_tokens=max_new_tokens, end_id=end_id), theirs)


BEAMS, PENALTIES, STOPS = (2, 3, 4, 5), (0.0, 0.6, 1.0, 2.0, -1.0), (False, True, "never")


def same_beams(pair, prompts, *, num_return, **settings):
    settings = {"max_new_tokens": 12} | settings
    theirs, scores = official(pair, prompts, num_return_sequences=num_return, **settings)
    found = ours(pair, prompts, beam_search, num_return=num_return, **settings)
    assert torch.equal(found.tokens.flatten(0, 1), theirs)
    assert torch.allclose(found.scores.flatten(), scores, atol=1e-5)
    return found


@pytest.mark.parametrize("early_stopping", STOPS)
@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_beam_search(pair, prompts, length_penalty, early_stopping):
    """All beam sizes for GPT-2; one for each of the other settings for the encoder-decoders."""
    place = PENALTIES.index(length_penalty) + STOPS.index(early_stopping)
    for num_beams in BEAMS if pair[0] == "GPT-2" else (BEAMS[place % len(BEAMS)],):
        settings = {"num_beams": num_beams, "length_penalty": length_penalty, "early_stopping": early_stopping}
        same_beams(pair, prompts, num_return=(num_beams + 1) // 2, end_id=END, **settings)


def test_beam_search_without_an_end(pair, prompts):
    found = same_beams(pair, prompts, num_beams=3, num_return=3, end_id=None)
    assert found.tokens.shape[2] == 12


def test_beam_search_for_one_token(pair, prompts):
    same_beams(pair, prompts, num_beams=4, num_return=4, end_id=END, max_new_tokens=1)


def test_these_models_put_searches_to_the_test(pair, prompts):
    """Some sequences end and some do not, greedy is not the best, and the settings matter."""

    def found(num_beams, length_penalty, early_stopping):
        settings = {"num_beams": num_beams, "length_penalty": length_penalty, "early_stopping": early_stopping}
        return ours(pair, prompts, beam_search, max_new_tokens=12, end_id=END, **settings).tokens[:, 0]

    results = [found(1, 1.0, False), found(5, 0.0, True), found(5, 1.0, False), found(5, 2.0, "never")]
    ends = torch.stack([(tokens == END).any(dim=1) for tokens in results])
    assert ends.any() and not ends.all()
    assert len({tuple(tokens.flatten().tolist()) for tokens in results}) == len(results)
    assert len(torch.cat(results, dim=1).unique()) > 5

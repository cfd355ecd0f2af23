"""How fast the language half of the library is, beside Hugging Face's models and the tokenizers library.

    course bench language

All variants share weights, inputs, threads and process, and take turns. A ratio is our time divided by theirs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.bench import generation, tokenizers
from course_lib.bench.official import need_peers, ours_like
from course_lib.bench.race import race
from course_lib.bench.table import Row, Section, print_table, row

CLOSE = 1e-3  # two models with the same weights must agree this well on every logit, or the race means nothing
MODEL, MODELS_MEAN = 1.05, 0.95  # the largest ratio of a model that is aimed at, and their geometric mean


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A model of ours against the official one: B rows of T tokens, logits of all, and the gradient of their loss."""

    name: str
    official: Callable[[], nn.Module]
    B: int
    T: int
    vocab_size: int
    encoder_decoder: bool = False
    backward: bool = True


def gpt2(**settings) -> nn.Module:
    """A GPT-2 of random weights; the default is the published 124M."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None, **settings))


def bert(**settings) -> nn.Module:
    """A BERT with the masked-LM head and random weights; the default is BERT-base."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**settings))


def t5(**settings) -> nn.Module:
    """A T5 of random weights; the default is T5-small."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(decoder_start_token_id=0, **settings))


def marian(dim: int, mlp_dim: int, depth: int, num_heads: int, vocab_size: int) -> nn.Module:
    """A Marian translator of random weights, the released kin of the 2017 Transformer."""
    from transformers import MarianConfig, MarianMTModel

    widths = {f"{side}_ffn_dim": mlp_dim for side in ("encoder", "decoder")}
    heads = {f"{side}_attention_heads": num_heads for side in ("encoder", "decoder")}
    depths = {f"{side}_layers": depth for side in ("encoder", "decoder")}
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": None}
    return MarianMTModel(
        MarianConfig(
            d_model=dim, vocab_size=vocab_size, decoder_vocab_size=vocab_size, **widths, **heads, **depths, **special
        )
    )


LESSON = {"B": 16, "T": 64, "vocab_size": 1000}

CONTESTS = (
    Contest(
        name="GPT, lesson size (D 128, 4 layers)",
        official=lambda: gpt2(n_embd=128, n_layer=4, n_head=4, vocab_size=1000, n_positions=128),
        **LESSON,
    ),
    Contest(
        name="BERT, lesson size (D 128, 4 layers)",
        official=lambda: bert(
            hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512, vocab_size=1000
        ),
        **LESSON,
    ),
    Contest(
        name="Transformer, lesson size (D 128, 3 + 3)",
        official=lambda: marian(128, 512, 3, 4, 1000),
        encoder_decoder=True,
        **LESSON,
    ),
    Contest(
        name="T5, lesson size (D 128, 3 + 3)",
        official=lambda: t5(d_model=128, d_kv=32, d_ff=512, num_layers=3, num_heads=4, vocab_size=1000),
        encoder_decoder=True,
        **LESSON,
    ),
    Contest(name="GPT-2 124M", official=gpt2, B=2, T=128, vocab_size=50_257),
    Contest(name="BERT-base", official=bert, B=2, T=128, vocab_size=30_522),
    Contest(
        name="Transformer base (D 512, 6 + 6)",
        official=lambda: marian(512, 2048, 6, 8, 37_000),
        B=2,
        T=64,
        vocab_size=37_000,
        encoder_decoder=True,
    ),
    Contest(name="T5-small, forward", official=t5, B=2, T=128, vocab_size=32_128, encoder_decoder=True, backward=False),
)


def pair(contest: Contest) -> tuple[nn.Module, nn.Module]:
    """Our model and the official one, with the same weights."""
    torch.manual_seed(0)
    theirs = contest.official().eval()
    return ours_like(theirs), theirs


def runs(contest: Contest) -> dict[str, Callable[[], Tensor]]:
    """One forward pass, and with `contest.backward` also a backward pass, of each; both return their logits.

    Raises ValueError if the two do not compute the same.
    """
    ours, theirs = pair(contest)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, contest.vocab_size, (2, contest.B, contest.T), generator=generator)
    names = ("input_ids", "decoder_input_ids") if contest.encoder_decoder else ("input_ids",)
    inputs = ids[: len(names)]
    cache = {"use_cache": False} if hasattr(ours, "new_cache") or contest.encoder_decoder else {}

    def run(model: nn.Module, forward: Callable[[], Tensor]) -> Tensor:
        if not contest.backward:
            with torch.no_grad():
                return forward()
        model.zero_grad()
        logits = forward()
        F.cross_entropy(logits.flatten(0, 1), ids[-1].flatten()).backward()
        return logits.detach()

    variants = {
        "ours": lambda: run(ours, lambda: ours(*inputs)),
        "theirs": lambda: run(theirs, lambda: theirs(**dict(zip(names, inputs, strict=True)), **cache).logits),
    }
    difference = float((variants["ours"]() - variants["theirs"]()).abs().max())
    if difference > CLOSE:
        raise ValueError(f"{contest.name}: the two models differ by {difference:.2g} in a logit, more than {CLOSE}")
    return variants


def model_rows() -> Iterator[Row]:
    """Forward and backward passes of the models, one at a time: each is freed before the next is built."""
    for contest in CONTESTS:
        yield row(contest.name, race(runs(contest)), target=MODEL)


def tokenizer_rows() -> Iterator[Row]:
    """BPE training and encoding against the tokenizers library, which is written in Rust, and a naive trainer."""
    yield from tokenizers.measure()
    yield tokenizers.measure_naive()


SECTIONS = (
    Section(title="Models, forward and backward, against Hugging Face's", rows=model_rows, mean=MODELS_MEAN),
    Section(title="Cached greedy generation, a token, against Hugging Face's generate", rows=generation.rows),
    Section(title="Tokenizers, 1 MB, against the tokenizers library and a naive trainer", rows=tokenizer_rows),
)


def main() -> int:
    """Prints the table; returns 0 if every target was reached, otherwise 1."""
    need_peers()
    return print_table(SECTIONS)

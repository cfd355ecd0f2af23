"""Lesson 08: the learner's functions inside a GPT, its training, and what it writes."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from statistics import fmean

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.classroom.output import present
from course_lib.functional.cost import count_flops
from course_lib.functional.metrics import bits_per_byte
from course_lib.generation import argmax, stream
from course_lib.generation.stepwise import Choice
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.language_models import token_nats, tokenized_dictionary

VOCAB_SIZE = 2048  # tokens of the dictionary
WINDOW = 32  # tokens that the lesson's own GPT reads
SHADES = ("rgba(86,180,233,0.4)", "rgba(230,159,0,0.35)")  # of tokens that stand beside each other


def bits(model: nn.Module, *, length: int | None = None) -> float:
    """Bits per byte of a model on the test entries, read in windows of `length` tokens, see `token_nats`."""
    text = tokenized_dictionary(VOCAB_SIZE)
    return bits_per_byte(token_nats(model, text.ids["test"], length=length).sum().item(), text.num_bytes["test"])


def writing(tokenizer: Tokenizer, prompts: Sequence[str], *, count: int = 20) -> Callable[[nn.Module], str]:
    """An example for `page.watch`: how a model continues each prompt, with the same random numbers each time."""

    def example(model: nn.Module) -> str:
        rows = []
        for number, prompt in enumerate(prompts):
            generator = torch.Generator().manual_seed(number)
            ids = tokenizer.encode("\n" + prompt)
            start = len(ids)
            while len(ids) < min(start + count, WINDOW):
                logits = model(torch.tensor([ids]))[0, -1]
                ids.append(int(torch.multinomial((logits / 0.8).softmax(-1), 1, generator=generator)))
            rows.append(f"<p><b>{html.escape(prompt)}</b>{html.escape(tokenizer.decode(ids[start:]))}</p>")
        return "".join(rows)

    return example


def write(model: nn.Module, tokenizer: Tokenizer, prompt: str, *, count: int, choose: Choice = argmax) -> str:
    """Prints the prompt and each token as soon as it is chosen, in lines of a slide; returns what was written.

    It ends with the entry, at a line feed, or after `count` tokens.
    """
    ids, end = torch.tensor([tokenizer.encode("\n" + prompt)]), tokenizer.encode("\n")[0]
    print(prompt, end="")
    shown, text, written = prompt, "", []
    for tokens in stream(model, ids, max_new_tokens=count, choose=choose):
        if tokens.item() == end:
            break
        written.append(tokens.item())
        text = tokenizer.decode(written)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):  # half a character: the rest may come with the next token
            print(_in_lines(prompt + text)[len(shown) :], end="")
            shown = _in_lines(prompt + text)
    print(_in_lines(prompt + text)[len(shown) :])
    return text


def _in_lines(text: str) -> str:
    """A new line at the first blank behind 65 characters; what is printed stays as it is when the text grows."""
    return re.sub(r"(.{65}\S*) ", r"\1\n    ", text)


def show_tokens(rows: Mapping[str, Sequence[str]], *, counted: bool = True) -> None:
    """Show a table of texts in tokens: a row for each name, each token in another shade than the one before it."""
    plain, body = [], []
    for name, tokens in rows.items():
        number = f"{len(tokens)} tokens" if counted else ""
        plain.append(f"{name} {'|'.join(map(_visible, tokens))} {number}".rstrip())
        pieces = "".join(
            f'<span style="background-color:{SHADES[i % 2]};padding:0 .1em">{html.escape(_visible(token))}</span>'
            for i, token in enumerate(tokens)
        )
        cells = f'<th scope="row" style="{_CELL}">{html.escape(name)}</th><td style="{_CELL}">{pieces}</td>'
        body.append(f"<tr>{cells}" + f'<td style="{_CELL}">{number}</td>' * counted + "</tr>")
    style = "font-size:1em;width:auto;margin:.3em 0;line-height:1.6"
    present("\n".join(plain), f'<table style="{style}"><tbody>{"".join(body)}</tbody></table>')


_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap"


def _visible(token: str) -> str:
    return token.replace("\n", "⏎")


def show_entries(tokenizer: Tokenizer, written: Mapping[str, Int[Tensor, " T"]]) -> None:
    """Show the first entry of each text, the ids of a line feed, its prompt and what follows, token by token."""
    end, rows = tokenizer.encode("\n")[0], {}
    for prompt, ids in written.items():
        new = ids[len(tokenizer.encode("\n" + prompt)) :].tolist()
        rows[prompt] = [tokenizer.decode([i]) for i in takewhile(lambda i: i != end, new)]
    show_tokens(rows, counted=False)


def define(model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str], *, count: int) -> None:
    """Show how a model continues each prompt by greedy decoding, to the end of the entry or for `count` tokens."""
    end, written = tokenizer.encode("\n")[0], {}
    for prompt in prompts:
        ids = torch.tensor([tokenizer.encode("\n" + prompt)])
        new = takewhile(lambda ids: ids.item() != end, stream(model, ids, max_new_tokens=count, choose=argmax))
        written[prompt] = torch.cat([ids[0], *new])
    show_entries(tokenizer, written)


@torch.no_grad()
def repeated(model: nn.Module, starts: Int[Tensor, "B T"], choose: Choice, *, count: int) -> float:
    """The fraction of 4-grams of tokens that occurred earlier in the same new text, on average over the starts."""
    new = torch.stack(list(stream(model, starts, max_new_tokens=count, choose=choose)), dim=1)
    return share_repeated(new)


def share_repeated(rows: Int[Tensor, "B T"], *, length: int = 4) -> float:
    """The fraction of n-grams, n = `length`, that occurred earlier in the same row, from 0 to 1."""
    runs = [[tuple(row[i : i + length]) for i in range(len(row) - length + 1)] for row in rows.tolist()]
    return fmean(1 - len(set(row)) / len(row) for row in runs)


def held_out(count: int, length: int) -> Int[Tensor, "B T"]:
    """Windows of the test entries, far apart."""
    ids = tokenized_dictionary(VOCAB_SIZE).ids["test"]
    starts = torch.arange(count) * ((len(ids) - length) // count)
    return ids[starts[:, None] + torch.arange(length)]


def nats_by_time(model: nn.Module, rows: Int[Tensor, "B T"]) -> tuple[float, float]:
    """Nats per token of rows that are read twice, one after the other: the first time and the second."""
    twice = torch.cat([rows, rows], dim=1)
    with torch.no_grad():
        losses: Float[Tensor, "B T"] = nn.functional.cross_entropy(
            model(twice[:, :-1]).transpose(1, 2), twice[:, 1:], reduction="none"
        )
    length = rows.shape[1]
    return losses[:, : length - 1].mean().item(), losses[:, length:].mean().item()


@torch.no_grad()
def price_of_a_token(lengths: Sequence[int]) -> tuple[dict[str, list[float]], list[int]]:
    """Operations of one more token behind so many others, with and without a cache, and the numbers that it keeps.

    Counted on a GPT of random weights, as large as the shipped one but for its context.
    """
    model = GPT(GPTConfig(vocab_size=VOCAB_SIZE, context_length=lengths[-1] + 4, dim=256, depth=4, num_heads=8)).eval()
    operations, kept = {"without": [], "with": []}, []
    for length in lengths:
        tokens = torch.zeros(1, length + 1, dtype=torch.long)
        cache = model.new_cache(length + 4)
        model.next_logits(tokens[:, :-1], cache)
        kept.append(sum(tensor.numel() for layer in cache.layers for tensor in layer.past))
        ways = {
            "without": lambda tokens=tokens: model.logits(model.features(tokens)[:, -1]),
            "with": lambda cache=cache: model.next_logits(torch.zeros(1, 1, dtype=torch.long), cache),
        }
        for name, way in ways.items():
            operations[name].append(count_flops(way))
    return operations, kept

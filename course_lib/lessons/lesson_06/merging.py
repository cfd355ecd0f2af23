"""Lesson 06: byte-pair encoding of one text, at each number of merges. Sennrich et al. 2016, arXiv 1508.07909."""

import html
from collections import Counter
from itertools import pairwise

from course_lib.text.bpe import END_OF_WORD, SubwordBPE
from course_lib.text.merges import Corpus, learn_merges
from course_lib.text.splitting import split_at_punctuation
from course_lib.text.tokenizer import count_words
from course_lib.viz.style import PALETTE

UNKNOWN = "<unk>"
MOST = 200  # merges
TINTS = [PALETTE[name] + "66" for name in ("sky", "orange", "green", "purple", "yellow", "vermilion", "blue")]


class Merging:
    """A text, the merges that it teaches, and itself in tokens after some of them.

    Raises ValueError for a text without a word.
    """

    def __init__(self, text: str):
        self.words = split_at_punctuation(text)
        if not self.words:
            raise ValueError("Type a few words to learn from, or take one of the examples.")
        self.counts = count_words([text], split_at_punctuation)
        self.letters = sum(map(len, self.words))
        corpus = Corpus.from_counts(self.counts, specials=[UNKNOWN], suffix=END_OF_WORD)
        self.start = corpus.tokens
        self.merges = learn_merges(corpus, len(corpus.tokens) + MOST).merges

    def tokenizer(self, merges: int) -> SubwordBPE:
        """What the first `merges` merges make."""
        first = self.merges[:merges]
        vocabulary = dict.fromkeys([*self.start, *map("".join, first)])
        return SubwordBPE(vocabulary, first, specials=[UNKNOWN], cut_punctuation=True)

    def tokens(self, word: str, merges: int) -> list[str]:
        """A word in tokens; letters that the text does not have are unknown."""
        tokenizer = self.tokenizer(merges)
        return [tokenizer.vocabulary[i] for i in tokenizer.encode(word, specials=False)]

    def pairs(self, merges: int) -> Counter[tuple[str, str]]:
        """How often each two tokens are neighbours in a word of the text."""
        tokenizer, found = self.tokenizer(merges), Counter()
        for word, count in self.counts.items():
            for left, right in pairwise(tokenizer.encode(word, specials=False)):
                found[tokenizer.vocabulary[left], tokenizer.vocabulary[right]] += count
        return found

    def sizes(self) -> list[tuple[int, int]]:
        """After 0, 1, 2, ... merges: how many tokens the text has, and how many the vocabulary, without the unknown."""
        text = " ".join(self.words)
        made = [self.tokenizer(merges) for merges in range(len(self.merges) + 1)]
        return [(len(tokenizer.encode(text, specials=False)), len(tokenizer) - 1) for tokenizer in made]


def is_short(merging: Merging, merges: int) -> bool:
    """Whether the text, of 40 letters or more, has at most half as many tokens as letters."""
    return merging.letters >= 40 and 2 * merging.sizes()[merges][0] <= merging.letters


def has_ending(merging: Merging, merges: int) -> bool:
    """Whether two different words end in one token of three letters or more, and begin in another."""
    ends = Counter(tokens[-1] for word in merging.counts if len(tokens := merging.tokens(word, merges)) > 1)
    return any(count > 1 and len(end.removesuffix(END_OF_WORD)) >= 3 for end, count in ends.items())


def is_composed(merging: Merging, merges: int, word: str) -> bool:
    """Whether it is one word, which the text does not have, in two tokens that it does have."""
    parts, words = merging.tokens(word, merges), split_at_punctuation(word)
    if len(words) != 1 or len(words[0]) < 5 or words[0] in merging.counts:
        return False
    return len(parts) == 2 and UNKNOWN not in parts


def merging_html(merging: Merging, merges: int, word: str) -> str:
    """The text in coloured tokens, what was merged last, the sizes, the word, and all merges so far."""
    tokenizer, sizes = merging.tokenizer(merges), merging.sizes()
    newest = "".join(merging.merges[merges - 1]) if merges else None
    made = {"".join(pair): TINTS[i % len(TINTS)] for i, pair in enumerate(merging.merges[:merges])}

    def chips(text: str) -> str:
        parts = [tokenizer.vocabulary[i] for i in tokenizer.encode(text, specials=False)]
        joined = "".join(_chip(part, made.get(part), ringed=part == newest) for part in parts)
        return f'<span style="white-space:nowrap;margin-right:.55em">{joined}</span>'

    text = " ".join(map(chips, merging.words))
    cut = " ".join(map(chips, split_at_punctuation(word))) or "–"
    strange = " ?: a letter that the text does not have" if UNKNOWN in merging.tokens(word, merges) else ""
    told = "".join(f"<p style='margin:.25em 0'>{sentence}</p>" for sentence in _told(merging, merges))
    rows = "".join(
        f'<li style="margin:0{";font-weight:700" if i == merges else ""}">'
        f"{html.escape(_shown(left))} + {html.escape(_shown(right))} → {html.escape(_shown(left + right))}</li>"
        for i, (left, right) in enumerate(merging.merges[:merges], start=1)
    )
    merged = (
        f'<div style="flex:1 1 16em"><b>Merges so far</b><ol style="columns:11em;margin:.2em 0;padding-left:2em">'
        f"{rows}</ol></div>"
    )
    return (
        f'<div style="font-size:1.25em;line-height:1.9">{text}</div>{told}'
        f'<p style="margin:.4em 0"><b>A word to cut:</b> <span style="font-size:1.25em">{cut}</span>{strange}</p>'
        "<style>.reveal .course-merges{font-size:16px}</style>"
        f'<div class="course-merges" style="display:flex;flex-wrap:wrap;gap:.5em 2em;line-height:1.4">'
        f"{_curves(sizes, merges)}{merged}</div>"
    )


def merging_in_words(merging: Merging, merges: int, word: str) -> str:
    """The same, to be read aloud."""
    parts = [_shown(part) for part in merging.tokens(word, merges)]
    told = " ".join(_told(merging, merges)).replace("<b>", "").replace("</b>", "")
    return f"{html.unescape(told)} “{word}” is cut into: {', '.join(parts) or 'nothing'}."


def _told(merging: Merging, merges: int) -> list[str]:
    (tokens, size), first = merging.sizes()[merges], merging.sizes()[0][1]
    ends = sum(token.endswith(END_OF_WORD) for token in merging.start)
    said = [
        f"{merging.letters} letters are <b>{tokens} tokens</b>. The vocabulary has {first - ends} letters, {ends} "
        f"letters at the end of a word (·), and {size - first} merged: <b>{size}</b> in all."
    ]
    if merges:
        pair = merging.merges[merges - 1]
        said.append(
            f"Merge {merges}: <b>{_joined(pair)}</b>, a pair that occurred {_times(merging.pairs(merges - 1)[pair])}."
        )
    if merges < len(merging.merges):
        pair = merging.merges[merges]
        said.append(
            f"The most frequent pair now, to be merged next: {_joined(pair)}, {_times(merging.pairs(merges)[pair])}."
        )
    else:
        said.append("No pair of neighbours occurs twice any more, so nothing is left to merge.")
    return said


def _joined(pair: tuple[str, str]) -> str:
    return html.escape(f"{_shown(pair[0])} + {_shown(pair[1])} → {_shown(''.join(pair))}")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _shown(token: str) -> str:
    """`·` for the end of a word, and a question mark for an unknown letter."""
    return "?" if token == UNKNOWN else token.replace(END_OF_WORD, "·")


def _chip(token: str, tint: str | None, *, ringed: bool) -> str:
    letters = "?" if token == UNKNOWN else token.removesuffix(END_OF_WORD)
    ring = f";outline:2px solid {PALETTE['vermilion']};outline-offset:-1px" if ringed else ""
    back = f";background-color:{tint}" if tint else ""
    return (
        f'<span title="{html.escape(_shown(token))}" style="border:1px solid #888;border-radius:4px;'
        f'padding:0 .12em;margin-right:1px{back}{ring}">{html.escape(letters)}</span>'
    )


def _curves(sizes: list[tuple[int, int]], merges: int) -> str:
    """Tokens and vocabulary against the number of merges, for the eye alone: the numbers are told in words."""
    wide, high = 370, 140  # type of 16 is as large as the words around it
    top, steps = max(map(max, sizes)), max(1, len(sizes) - 1)

    def place(step: int, value: int) -> tuple[float, float]:
        return 8 + step / steps * (wide - 110), high - 24 - value / top * (high - 36)

    ends = [place(steps, value)[1] for value in sizes[-1]]
    apart = max(0, 18 - abs(ends[0] - ends[1])) / 2 * (1 if ends[0] > ends[1] else -1)  # so that both can be read
    drawn = ""
    for which, name, colour in ((0, "tokens", PALETTE["blue"]), (1, "vocabulary", PALETTE["orange"])):
        points = [place(step, size[which]) for step, size in enumerate(sizes)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        (x, y), label = points[merges], ends[which] + (-apart if which else apart)
        drawn += (
            f'<polyline points="{path}" stroke="{colour}" stroke-width="3" fill="none"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colour}"/>{_text(wide - 92, label + 5, name)}'
        )
    drawn += (
        _text(4, high - 4, "0") + _text(wide / 2 - 80, high - 4, "merges") + _text(wide - 112, high - 4, str(steps))
    )
    size = f"width:{wide / 16}em;height:{high / 16}em"
    return f'<svg viewBox="0 0 {wide} {high}" style="{size}" aria-hidden="true">{drawn}</svg>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="currentColor" font-size="16">{words}</text>'

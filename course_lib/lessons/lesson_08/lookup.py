"""Look a word up in GPT's dictionary: what GPT writes for it, what a 5-gram writes, and what WordNet says."""

import html
import re
from collections import defaultdict
from functools import cache

from torch import nn

from course_lib.classroom.widgets import Choice, Explorer, Goal, TextBox
from course_lib.classroom.widgets.explorer import State
from course_lib.lessons.lesson_08.definitions import define, entries, prompt_of
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.language_models import fitted_n_gram

ORDER = 5  # of the n-gram
WORDS = ("florpness", "cardiophobia", "dogfish", "neural network", "dragonologist")
PARTS = ("noun", "verb", "adjective", "adverb")
MOST = 60  # characters of a word
SPLITS = {"train": "training text", "validation": "validation text", "test": "test text"}


@cache
def in_wordnet() -> dict[str, list[tuple[str, str]]]:
    """WordNet's definitions of each prompt, with the split in which they stand."""
    found = defaultdict(list)
    for split, name in SPLITS.items():
        for entry in entries(split):
            found[prompt_of(entry["headword"], entry["part"])].append((entry["definition"], name))
    return dict(found)


def lookup(model: nn.Module, tokenizer: Tokenizer, *, alone: bool = False) -> Explorer:
    """A word and its part of speech; GPT and a 5-gram of the same tokens define it by greedy decoding.

    `alone`: GPT without the 5-gram, WordNet and goals; for pages on which a GPT is only met.
    """

    @cache
    def definitions(prompt: str) -> dict[str, str]:
        models = {"GPT": model}
        if not alone:
            models[f"{ORDER}-gram"] = fitted_n_gram(ORDER, len(tokenizer), "dictionary")
        return {name: define(one, tokenizer, [prompt])[0].strip() for name, one in models.items()}

    def asked(state: State) -> str:
        word = " ".join(state["word"].split())
        if not word or len(word) > MOST:
            raise ValueError(f"Type a word, or several, of at most {MOST} characters.")
        return prompt_of(word, state["part"])

    def invented(state: State) -> bool:
        word, written = state["word"].strip().lower(), definitions(asked(state))["GPT"].lower()
        known = any(prompt_of(word, part) in in_wordnet() for part in PARTS)
        return not known and len(word) > 5 and any(w.startswith(word[:4]) for w in re.findall(r"[a-z]+", written))

    def forgotten(state: State) -> bool:
        stored = [text for text, split in in_wordnet().get(asked(state), []) if split == SPLITS["train"]]
        return bool(stored) and definitions(asked(state))["GPT"] not in stored

    def as_wordnet(state: State) -> bool:
        return definitions(asked(state))["GPT"] in [text for text, _ in in_wordnet().get(asked(state), [])]

    def rows(state: State) -> dict[str, str]:
        prompt = asked(state)
        if alone:
            return definitions(prompt)
        stored = [f"{text} ({split})" for text, split in in_wordnet().get(prompt, [])]
        return definitions(prompt) | {"WordNet": " / ".join(stored[:3]) or "has no such entry"}

    def draw(state: State) -> str:
        lines = "".join(
            f'<tr style="background:none"><th scope="row" style="{CELL};white-space:nowrap">{html.escape(name)}</th>'
            f'<td style="{CELL}">{html.escape(text)}</td></tr>'
            for name, text in rows(state).items()
        )
        head = f'<caption style="text-align:left;color:inherit;font-size:1.2em">{html.escape(asked(state))}</caption>'
        return f'<table style="border-collapse:collapse;font-size:1.1em">{head}<tbody>{lines}</tbody></table>'

    goals = (
        ()
        if alone
        else (
            Goal("a word of your own invention, with its stem in GPT's definition", invented),
            Goal("a word of the training text whose definition GPT does not repeat", forgotten),
            Goal("an adjective that GPT defines word for word as WordNet does", as_wordnet),
        )
    )
    return Explorer(
        name="lookup",
        title="Look up any word",
        controls=[
            TextBox(name="word", label="Word", value=WORDS[0], examples=WORDS),
            Choice(name="part", label="Part of speech", options={part: part for part in PARTS}),
        ],
        draw=draw,
        alt=lambda state: f"{asked(state)} " + " ".join(f"{name}: {text}." for name, text in rows(state).items()),
        speaks=True,
        height="11em",
        goals=goals,
        steps={"word": WORDS},
        script="dictionary",
        config={
            "models": ["dictionary"],
            "words": WORDS,
            "parts": PARTS,
            "most": MOST,
            "rows": list(rows({"word": WORDS[0], "part": PARTS[0]}).items()),
            "note": "" if alone else "In JupyterLab a 5-gram and WordNet itself answer beside the GPT.",
        },
        answers={
            "look up": lambda state: {"rows": list(rows(state).items()), "reached": [goal(state) for goal in goals]}
        },
    )


CELL = "border:0;padding:.15em .8em .15em 0;text-align:left;vertical-align:top;font-size:inherit"

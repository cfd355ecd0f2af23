import re
from pathlib import Path

import pytest

from course_lib.data.prose import ALPHABET, SPLITS, dictionary_splits
from course_lib.data.prose.build import split_of
from course_lib.data.prose.build_dictionary import LONGEST, UNFIT, collect

ENTRY = re.compile(r"(?P<headword>[a-z][a-z'. /-]*) \((noun|verb|adjective|adverb)\): [^\n]+")
WORDNET = {  # lines of WordNet 3.1, some of them shortened
    "noun": """  1 This software and database is being provided to you, the LICENSEE, by
00003553 03 n 02 whole 0 unit 0 001 @ 00002684 n 0000 | an entity; "how big is the whole?"; "the team is a unit"
06731387 10 n 01 ethnic_slur 0 001 @ 06729703 n 0000 | a slur on someone's race or language
09700001 18 n 02 someword 0 otherword 0 002 @ 09645472 n 0000 ;u 06731387 n 0000 | a person from somewhere
08795042 15 n 01 Lagos 0 001 @ 08691133 n 0000 | chief port of Nigeria
09800001 18 n 02 entertainer 0 stripper 0 001 @ 09645472 n 0000 | a person who performs naked
""",
    "verb": """02710673 42 v 01 abound_in 0 001 @ 02710673 v 0000 01 + 08 00 | exist in large quantity
""",
    "adj": """00014490 00 s 01 galore(ip) 0 001 & 00013887 a 0000 | existing in abundance; "whiskey galore"
00014491 00 a 01 unbalanced 0 000 | with an open bracket (like this
""",
    "adv": """00001740 02 r 01 a_cappella 0 000 | without musical accompaniment; `they performed a cappella'
""",
}


@pytest.fixture(scope="module")
def splits():
    return dictionary_splits()


@pytest.fixture
def wordnet(tmp_path):
    for name, lines in WORDNET.items():
        (tmp_path / f"data.{name}").write_text(lines, encoding="latin-1")
    return tmp_path


def test_the_dictionary_has_the_promised_size_and_form(splits):
    assert [len(getattr(splits, split)) for split in SPLITS] == [84_938, 4_814, 4_737]
    for split in SPLITS:
        for line in getattr(splits, split):
            entry = ENTRY.fullmatch(line)
            assert entry and len(line) <= LONGEST and set(line) <= ALPHABET
            assert split_of(entry["headword"]) == split  # so no headword is in two splits


def test_no_entry_insults_or_is_obscene(splits):
    assert [line for split in SPLITS for line in getattr(splits, split) if UNFIT.search(line)] == []


def test_unfit_words_are_recognised_and_those_that_only_begin_like_them_stay():
    unfit = ["(ethnic slur) offensive term for", "a Sexual position", "he was raped", "utter shit"]
    fit = ["a sextant", "heterocyclic compound", "a therapist", "of the class of birds", "cocktail"]
    assert [line for line in unfit + fit if UNFIT.search(line)] == unfit


def test_entries_are_made_of_wordnet_s_lines(wordnet):
    splits = collect(Path(wordnet))
    assert sorted(line for split in SPLITS for line in getattr(splits, split)) == [
        "a cappella (adverb): without musical accompaniment; 'they performed a cappella'",
        "abound in (verb): exist in large quantity",
        'galore (adjective): existing in abundance; "whiskey galore"',
        'whole (noun): an entity; "how big is the whole?"',
    ]

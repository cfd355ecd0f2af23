"""The three splits: disjoint, the same everywhere, and what the lesson needs of them."""

import hashlib
import subprocess
import sys
from collections import Counter

import pytest

from course_lib.data.translation import combinations_of_split, sampling, translate, translation_splits
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, VERBS
from course_lib.data.translation.text import english_words, french_words
from course_lib.functional.metrics import alignment_error_rate

HEADS = {noun.singular: noun.singular for noun in NOUNS.values()} | {
    noun.plural: noun.singular for noun in NOUNS.values()
}


@pytest.fixture(scope="module")
def splits():
    return translation_splits()


@pytest.fixture(scope="module")
def everything(splits):
    return splits.train + splits.validation + splits.test


def combinations_read_from(english):
    """(noun, adjective) wherever adjectives stand right before a noun: read from the words alone."""
    found, adjectives = set(), []
    for word in english:
        if word in ADJECTIVES:
            adjectives.append(word)
            continue
        if word in HEADS:
            found.update((HEADS[word], adjective) for adjective in adjectives)
        adjectives = []
    return found


def test_splits_have_the_sizes_asked_for_and_no_sentence_twice(splits, everything):
    assert [len(splits.train), len(splits.validation), len(splits.test)] == [20_000, 500, 1_000]
    assert len({pair.english for pair in everything}) == len(everything)


def test_no_noun_adjective_combination_is_shared_by_two_splits_and_each_new_sentence_has_one(splits):
    assert all(pair.combinations for pair in splits.validation + splits.test)
    seen = [
        {combination for pair in part for combination in pair.combinations | combinations_read_from(pair.english)}
        for part in (splits.train, splits.validation, splits.test)
    ]
    assert all(seen)
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])


def test_training_has_every_word_of_both_languages(splits):
    assert {word for pair in splits.train for word in pair.english} == set(english_words())
    assert {word for pair in splits.train for word in pair.french} == set(french_words())


def test_vocabularies_are_sorted_and_of_the_size_that_the_lesson_needs():
    for words in (english_words(), french_words()):
        assert list(words) == sorted(set(words))
        assert 150 <= len(words) <= 350


def test_the_european_economic_area_is_new_to_a_model_that_knows_its_words(splits):
    test = combinations_of_split("test")
    assert {("area", "european"), ("area", "economic")} <= test
    held_out = test | combinations_of_split("validation")
    assert not any(noun != "area" and adjective in {"european", "economic"} for noun, adjective in held_out)
    assert any("european economic area" in " ".join(pair.english) for pair in splits.test)
    known = Counter(word for pair in splits.train for word in pair.english)
    assert min(known["european"], known["economic"], known["area"]) > 100
    assert any("european economic" in " ".join(pair.english) for pair in splits.train)


def test_training_keeps_enough_nouns_of_each_gender_for_every_adjective():
    every = [pair for split in ("train", "validation", "test") for pair in combinations_of_split(split)]
    for group in (lambda noun, adjective: noun, lambda noun, adjective: (adjective, NOUNS[noun].feminine)):
        total = Counter(group(*pair) for pair in every)
        trained = Counter(group(*pair) for pair in combinations_of_split("train"))
        assert all(trained[name] >= 0.6 * count for name, count in total.items())
    held_out = len(combinations_of_split("test") | combinations_of_split("validation"))
    assert 0.18 < held_out / len(every) < 0.22


def test_one_english_sentence_has_one_french_translation(splits):
    for pair in splits.train[:2_000] + splits.test:
        assert translate(" ".join(pair.english)) == pair  # the words alone decide it


def test_links_stay_inside_the_sentences_and_reach_every_french_word_and_all_english_ones_but_do_and_does(everything):
    for pair in everything:
        linked = {i for i, _ in pair.alignment}
        assert {j for _, j in pair.alignment} == set(range(len(pair.french))) and max(linked) < len(pair.english)
        assert {word for i, word in enumerate(pair.english) if i not in linked} <= {"do", "does"}


JOINTS = {"and", "but", "because", "when", "if", "that", "."}


def clauses_after(joint, words):
    """The words from each `joint` to the next conjunction."""
    for start, word in enumerate(words):
        if word == joint:
            stop = next(place for place in range(start + 1, len(words)) if words[place] in JOINTS)
            yield set(words[start + 1 : stop])


def test_if_and_when_take_no_future(everything):
    past = {verb.past for verb in VERBS.values()} | {"did", "was", "were"}
    for pair in everything:
        assert all(not clause & (past | {"will"}) for clause in clauses_after("if", pair.english)), pair.english
        assert all("will" not in clause for clause in clauses_after("when", pair.english)), pair.english


def test_they_never_follows_women_or_other_feminine_plurals(everything):
    feminine = {noun.plural for noun in NOUNS.values() if noun.feminine}
    for pair in everything:
        if "they" in pair.english:
            last = len(pair.english) - 1 - pair.english[::-1].index("they")
            assert feminine.isdisjoint(pair.english[:last]), pair.english


def test_one_link_per_french_word_is_nearly_enough_and_the_diagonal_is_not(splits):
    gold = [pair.alignment for pair in splits.test]
    best = [{min(link for link in links if link[1] == j) for _, j in links} for links in gold]
    diagonal = [
        {(round(j * (len(pair.english) - 1) / (len(pair.french) - 1)), j) for j in range(len(pair.french))}
        for pair in splits.test
    ]
    assert alignment_error_rate(best, gold) <= 0.03
    assert 0.3 <= alignment_error_rate(diagonal, gold) <= 0.5


def test_max_clauses_bounds_the_clauses():
    splits = translation_splits(train=300, validation=20, test=20, max_clauses=1)
    assert {pair.clauses for pair in splits.train + splits.validation + splits.test} == {1}


COUNT_DISTINCT = """
from course_lib.data.translation import translation_splits
pairs = translation_splits(train=150_000, validation=0, test=0).train
print(len({" ".join(pair.english) for pair in pairs}))
"""


def test_150_000_distinct_pairs_can_be_had():
    # in a process of its own: there the checks of every call that tests run under do not slow it down
    run = subprocess.run([sys.executable, "-c", COUNT_DISTINCT], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 150_000


def test_the_same_seed_gives_the_same_splits_on_every_machine(splits):
    digest = hashlib.sha256()
    for part in (splits.train, splits.validation, splits.test):
        for pair in part:
            digest.update(f"{pair.english}{pair.french}{sorted(pair.alignment)}{pair.clauses}\n".encode())
    assert digest.hexdigest() == "1434b8fcc335642435d51e006d32b4c4dac00719d7bd567010bd9f149c5bfc29"


def test_a_grammar_that_runs_dry_says_so(monkeypatch):
    monkeypatch.setattr(sampling, "_TRIES_PER_SENTENCE", 1)  # as if nearly every draw were known already
    with pytest.raises(ValueError, match="distinct sentences: ask for fewer"):
        translation_splits(train=0, validation=0, test=500)

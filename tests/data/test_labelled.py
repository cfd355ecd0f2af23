from collections import Counter

import pytest

from course_lib.data.labelled import PARTS_OF_SPEECH, part_of_speech, tag_sentence
from course_lib.data.labelled.gender import NOUNS_OF_SPLIT, with_hidden_gender
from course_lib.data.labelled.tasks import acceptability, draw, gender_splits, minimal_pair_splits, tagging_splits
from course_lib.data.translation import Adjunct, Clause, NounPhrase, Pronoun, Sentence, translation_splits
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, SEASONS, VERBS, french_vowel_sound
from course_lib.data.translation.sampling import Dice, combinations_of_split
from course_lib.data.translation.text import english_words, french_words
from course_lib.functional.metrics import accuracy
from course_lib.models.baselines import LogisticRegression, bag_of_words
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig

NAMES = ("train", "validation", "test")


@pytest.fixture(scope="module")
def tagging():
    return tagging_splits(train=300, validation=60, test=100)


@pytest.fixture(scope="module")
def pairs():
    return minimal_pair_splits(train=480, validation=16, test=240)


@pytest.fixture(scope="module")
def gender():
    return gender_splits(train=300, validation=20, test=160)


def tagged(*clauses, conjunctions=()):
    both = tag_sentence(Sentence(clauses=clauses, conjunctions=conjunctions))
    return tuple(" ".join(f"{word}/{tag}" for word, tag in zip(s.words, s.tags, strict=True)) for s in both)


# ------------------------------------------------------------------------------------------------- tags


def test_tags_follow_the_noun_that_words_agree_with():
    subject = NounPhrase(
        noun="member", plural=True, adjectives=("famous",), complement=("of", NounPhrase(noun="university"))
    )
    english, french = tagged(Clause(subject=subject, verb="sign", object=NounPhrase(noun="law", adjectives=("new",))))
    assert english == (
        "the/DET|p famous/ADJ|p members/NOUN|p of/ADP the/DET|s university/NOUN|s sign/VERB|p the/DET|s new/ADJ|s "
        "law/NOUN|s ./PUNCT"
    )
    assert french == (
        "les/DET|m|p membres/NOUN|m|p célèbres/ADJ|m|p de/ADP l'/DET|f|s université/NOUN|f|s signent/VERB|p "
        "la/DET|f|s nouvelle/ADJ|f|s loi/NOUN|f|s ./PUNCT"
    )


def test_a_predicate_agrees_with_the_subject_and_not_with_what_is_nearer():
    subject = NounPhrase(noun="decision", complement=("of", NounPhrase(noun="committee", plural=True)))
    english, french = tagged(Clause(subject=subject, verb="be", predicate="important", tense="future"))
    assert english.endswith("committees/NOUN|p will/AUX|s be/AUX important/ADJ|s ./PUNCT")
    assert french.endswith("des/ADP comités/NOUN|m|p sera/AUX|s importante/ADJ|f|s ./PUNCT")


def test_her_is_a_determiner_or_a_pronoun():
    english, french = tagged(
        Clause(subject=Pronoun(word="they"), verb="see", tense="past", negation="not", object=Pronoun(word="her")),
        Clause(
            subject=NounPhrase(noun="judge", determiner="her"),
            verb="talk",
            recipient=Pronoun(word="her"),
            adjuncts=(Adjunct(season="may"),),
        ),
        conjunctions=("because",),
    )
    assert english == (
        "they/PRON|p did/AUX|p not/ADV see/VERB her/PRON|s because/CONJ her/DET|s judge/NOUN|s talks/VERB|s to/ADP "
        "her/PRON|s in/ADP may/NOUN|s ./PUNCT"
    )
    assert french == (
        "ils/PRON|p ne/ADV l'/PRON|s ont/AUX|p pas/ADV vue/VERB parce/CONJ que/CONJ son/DET|m|s juge/NOUN|m|s "
        "lui/PRON|s parle/VERB|s en/ADP mai/NOUN|m|s ./PUNCT"
    )


def test_french_nouns_and_adjectives_have_the_forms_of_the_lexicon_that_their_tags_ask_for(tagging):
    forms = [(name, "NOUN|m|s") for _, name in SEASONS.values()]
    for noun in NOUNS.values():
        gender = "f" if noun.feminine else "m"
        forms += [(noun.french_singular, f"NOUN|{gender}|s"), (noun.french_plural, f"NOUN|{gender}|p")]
    for a in ADJECTIVES.values():
        forms += [(a.masculine, "ADJ|m|s"), (a.masculine_before_vowel, "ADJ|m|s"), (a.feminine, "ADJ|f|s")]
        forms += [(a.masculine_plural, "ADJ|m|p"), (a.feminine_plural, "ADJ|f|p")]
    words, tagged = (
        {word for word, _ in forms},
        [(w, t) for s in tagging.train for w, t in zip(s.words, s.tags, strict=True)],
    )
    found = [pair for pair in tagged if pair[0] in words or part_of_speech(pair[1]) in ("NOUN", "ADJ")]
    assert len(found) > 900 and set(found) <= set(forms)


def test_both_languages_have_the_same_parts_of_speech(tagging):
    english = tagging_splits(language="english", train=300, validation=0, test=0)
    for sentences in (tagging.train, english.train):
        assert {part_of_speech(tag) for s in sentences for tag in s.tags} == set(PARTS_OF_SPEECH)
    assert 20 <= len({tag for s in tagging.train for tag in s.tags}) <= 24
    assert all(len(s.words) == len(s.tags) for s in tagging.train + english.train)


@pytest.mark.parametrize("split", NAMES)
def test_sentences_for_tagging_combine_nouns_and_adjectives_of_their_split_only(split):
    sizes = dict.fromkeys(NAMES, 0) | {split: 60}
    sentences = getattr(tagging_splits(language="english", **sizes), split)
    names = {form: name for name, noun in NOUNS.items() for form in (noun.singular, noun.plural)}
    found = set()
    for s in sentences:
        parts = [part_of_speech(tag) for tag in s.tags]
        assert "ADJ" in parts or split == "train"
        for i, part in enumerate(parts):
            noun = next((j for j in range(i, len(parts)) if parts[j] != "ADJ"), None)
            if part == "ADJ" and parts[noun] == "NOUN":
                found.add((names[s.words[noun]], s.words[i]))
    assert len(found) > 20 and found <= combinations_of_split(split)


# ---------------------------------------------------------------------------------------------- agreement


def test_the_two_of_a_pair_differ_in_one_word_and_elide_alike(pairs):
    for pair in pairs.train + pairs.test:
        ((good, bad),) = [(g, b) for g, b in zip(pair.good, pair.bad, strict=True) if g != b]
        assert french_vowel_sound(good) == french_vowel_sound(bad)  # ne sont, n'est would give itself away
    vocabulary = set(french_words())
    assert all(vocabulary.issuperset(pair.bad) for pair in pairs.train)


def test_features_of_subject_and_attractor_are_balanced(pairs):
    for split in NAMES:
        counts = Counter((pair.kind, pair.features) for pair in getattr(pairs, split))
        assert len(counts) == 8 and len(set(counts.values())) == 1


def test_the_features_are_those_of_the_sentence(pairs):
    heads = {noun.french_singular: (noun.feminine, False) for noun in NOUNS.values()}
    heads |= {noun.french_plural: (noun.feminine, True) for noun in NOUNS.values()}
    both = [noun.french_singular for noun in NOUNS.values() if noun.french_singular == noun.french_plural]
    checked = 0
    for pair in pairs.test:
        place = next(i for i, (g, b) in enumerate(zip(pair.good, pair.bad, strict=True)) if g != b)
        nouns = [word for word in pair.good[:place] if word in heads][-2:]
        if not set(nouns) & set(both):
            feature = 0 if pair.kind == "gender" else 1
            assert tuple(heads[noun][feature] for noun in nouns) == pair.features
            checked += 1
    assert checked > 200


def test_a_bag_of_words_and_a_trigram_cannot_tell_good_from_bad(pairs):
    train, test = acceptability(pairs.train), acceptability(pairs.test)
    labels = [s.label for s in test]
    for longest in (1, 2):
        model = LogisticRegression().fit(
            [bag_of_words(s.words, longest=longest) for s in train], [s.label for s in train]
        )
        predicted = model.predict([bag_of_words(s.words, longest=longest) for s in test])
        assert 0.4 < accuracy(predicted, labels) < 0.62
    ids = {word: i for i, word in enumerate(["", *french_words()])}
    text = [ids[w] for pair in translation_splits(train=1000, validation=0, test=0).train for w in ("", *pair.french)]
    trigram = KneserNey(KneserNeyConfig(vocab_size=len(ids), order=3)).fit(text)
    right = [
        trigram.log_prob([0, *(ids[w] for w in p.good)]) > trigram.log_prob([0, *(ids[w] for w in p.bad)])
        for p in pairs.test
    ]
    assert 0.4 < sum(right) / len(right) < 0.6


def test_acceptability_shows_one_of_each_pair_and_is_balanced(pairs):
    sentences = acceptability(pairs.test, seed=3)
    assert sum(s.label for s in sentences) == len(pairs.test) / 2
    for sentence, pair in zip(sentences, pairs.test, strict=True):
        assert sentence.words == (pair.good if sentence.label else pair.bad) and sentence.kind == pair.kind
    assert acceptability(pairs.test, seed=4) != sentences == acceptability(pairs.test, seed=3)


def test_english_breaks_the_number_of_the_verb():
    english = minimal_pair_splits(language="english", kinds=("verb",), train=0, validation=0, test=40).test
    vocabulary = set(english_words())
    for pair in english:
        (good, bad), *rest = [(g, b) for g, b in zip(pair.good, pair.bad, strict=True) if g != b]
        singular, plural = (bad, good) if pair.features[0] else (good, bad)
        assert not rest and singular.endswith("s") and not plural.endswith("s")
        assert vocabulary.issuperset(pair.bad)


# ------------------------------------------------------------------------------------------------- gender


def test_the_nouns_of_the_splits_are_different_and_of_both_genders(gender):
    assert sum(map(len, NOUNS_OF_SPLIT.values())) == len(NOUNS) == len(frozenset().union(*NOUNS_OF_SPLIT.values()))
    for split in NAMES:
        examples = getattr(gender, split)
        assert {s.kind for s in examples} <= NOUNS_OF_SPLIT[split]
        assert all(s.label == NOUNS[s.kind].feminine for s in examples)
        assert sum(s.label for s in examples) == len(examples) / 2


def test_no_word_but_the_noun_tells_the_gender_of_the_subject(gender):
    plural_forms = {}
    for adjective in ADJECTIVES.values():
        plural_forms.setdefault(adjective.masculine_plural, set()).add("m")
        plural_forms.setdefault(adjective.feminine_plural, set()).add("f")
    hiding = {"les", "des", "ces", "nos", "leurs", "deux", "plusieurs"}
    for s in gender.train + gender.test:
        assert s.words[0] in hiding and s.words[1] == NOUNS[s.kind].french_plural
        if s.words[2] in ("sont", "étaient", "seront"):
            shown = next(word for word in s.words[3:] if word in plural_forms)
            assert plural_forms[shown] == {"m", "f"}


@pytest.mark.parametrize("split", NAMES)
def test_a_verb_takes_a_hidden_subject_of_either_gender_or_of_none(split):
    taken = {}
    for verb in VERBS:
        clause = Clause(subject=NounPhrase(noun="minister"), verb=verb)
        both = [with_hidden_gender(clause, Dice(0), split=split, feminine=f) is not None for f in (False, True)]
        assert both[0] == both[1]
        taken[verb] = both[0]
    assert taken["buy"] and taken["study"] == any(
        NOUNS[noun].feminine and "person" in NOUNS[noun].kinds for noun in NOUNS_OF_SPLIT[split]
    )


def test_labels_alone_do_not_teach_the_gender_of_other_nouns(gender):
    model = LogisticRegression().fit([bag_of_words(s.words) for s in gender.train], [s.label for s in gender.train])
    known = model.predict([bag_of_words(s.words) for s in gender.train])
    new = model.predict([bag_of_words(s.words) for s in gender.test])
    assert accuracy(known, [s.label for s in gender.train]) > 0.95
    assert 0.4 < accuracy(new, [s.label for s in gender.test]) < 0.6


# ---------------------------------------------------------------------------------------------- all tasks


def sentences_of(example):
    return [example.good, example.bad] if hasattr(example, "good") else [example.words]


@pytest.mark.parametrize("task", ["tagging", "pairs", "gender"])
def test_no_sentence_occurs_twice(task, request):
    splits = request.getfixturevalue(task)
    words = [words for split in NAMES for example in getattr(splits, split) for words in sentences_of(example)]
    assert len(set(words)) == len(words)


def test_a_larger_training_split_takes_no_sentence_from_the_test_split():
    sizes = {"kinds": ("gender",), "validation": 0, "test": 160}
    assert minimal_pair_splits(train=1200, **sizes).test == minimal_pair_splits(train=0, **sizes).test


def test_draw_takes_other_examples_for_another_seed(tagging):
    few = draw(tagging.train, 10, seed=0)
    assert len(set(few)) == 10 and set(few) <= set(tagging.train)
    assert few == draw(tagging.train, 10, seed=0) != draw(tagging.train, 10, seed=1)

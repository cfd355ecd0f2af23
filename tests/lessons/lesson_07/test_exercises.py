"""What the exercises of lesson 07 ask for is what the library does."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.classroom.opening import compare, copy_weights
from course_lib.functional.language import mask_tokens, mean_pool
from course_lib.lessons.lesson_07.models import MODELS
from course_lib.lessons.lesson_07.tasks import TASKS
from course_lib.tasks import Draw
from course_lib.text.wordpiece import BERT_SPECIALS, WordPiece

DRAWS = [(seed, case) for seed in range(5) for case in range(3)]


def asked(name, seed, case=0):
    task = TASKS[name]
    case = task.cases[case % len(task.cases)]
    return task.reference, case.inputs(Draw(seed))


@pytest.mark.parametrize(("seed", "case"), DRAWS)
def test_words_are_cut_as_wordpiece_cuts_them(seed, case):
    cut, (word, vocabulary) = asked("longest_match", seed, case)
    tokenizer = WordPiece([*BERT_SPECIALS, *sorted(vocabulary - {"[UNK]"})])
    assert cut(word, vocabulary) == [tokenizer.vocabulary[i] for i in tokenizer.encode(word)]


@pytest.mark.parametrize(("seed", "case"), DRAWS)
def test_pairs_are_packed_as_wordpiece_packs_them(seed, case):
    pack, (first, second, start, end, most) = asked("pack_pair", seed, case)
    names = [f"w{i}" for i in range(100)]
    names[start], names[end], names[0] = "[CLS]", "[SEP]", "[UNK]"
    tokenizer = WordPiece(names, specials=("[CLS]", "[SEP]", "[UNK]"))
    texts = (" ".join(names[i] for i in ids) for ids in (first, second))
    assert pack(first, second, start, end, most) == tokenizer.encode_pair(*texts, max_length=most)


@pytest.mark.parametrize("case", range(2))
def test_sentences_are_pooled_as_the_library_pools_them(case):
    pool, given = asked("mean_pooling", 1, case)
    torch.testing.assert_close(pool(*given), mean_pool(*given))


def test_the_loss_is_that_of_the_logits_of_hidden_words_alone():
    loss, (logits, tokens, masked) = asked("hidden_loss", 2)
    torch.testing.assert_close(loss(logits, tokens, masked), F.cross_entropy(logits[masked], tokens[masked]))


def test_a_learners_classes_are_the_librarys_models():
    for name in ("masked_lm", "encoder"):
        shipped = MODELS[name]
        ours = shipped.model()
        make = TASKS["bert" if name == "encoder" else name].module
        mine = make(**shipped.sizes(ours))
        copy_weights(ours, mine, shipped.names)
        compare(ours, mine, shipped.inputs(), shipped.names)


def test_chosen_words_become_what_the_library_makes_of_them():
    hide, (tokens, noise, maskable, mask_id, word_ids) = asked("mask_words", 3)
    given, masked = hide(tokens, noise, maskable, mask_id, word_ids)
    ours = mask_tokens(tokens, noise, maskable=maskable, mask_id=mask_id, word_ids=word_ids)
    both = masked & ours.masked
    assert both.sum() > 9 and torch.equal(given[both], ours.tokens[both])
    assert torch.equal(given[~masked], tokens[~masked]) and not (masked & ~maskable).any()

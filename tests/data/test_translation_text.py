"""What learners type and read."""

import pytest

from course_lib.data.translation import detokenize_french, tokenize_english, translate


@pytest.mark.parametrize(
    ("typed", "tokens"),
    [
        ("The European Economic Area", "the european economic area ."),
        ("  They don't sign it!  ", "they do not sign it ."),
        ("She doesn't see him.", "she does not see him ."),
        ("He didn\N{RIGHT SINGLE QUOTATION MARK}t, he won't", "he did not he will not ."),
        ("They're old; he's not", "they are old he is not ."),
        ("she'll sign", "she will sign ."),
        ('the "new" law?', "the new law ."),
        ("l'accord 42", "l'accord 42 ."),
    ],
)
def test_typed_text_becomes_tokens(typed, tokens):
    assert " ".join(tokenize_english(typed)) == tokens


@pytest.mark.parametrize("typed", ["", "   ", "?!", "'"])
def test_text_without_words_gives_no_tokens(typed):
    assert tokenize_english(typed) == ()


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("elle n' a pas vu d' accord .", "elle n'a pas vu d'accord."),
        ("il dit qu' elle part aujourd'hui .", "il dit qu'elle part aujourd'hui."),
        ("l' île", "l'île"),
        ("", ""),
    ],
)
def test_french_tokens_become_text(tokens, text):
    assert detokenize_french(tokens.split()) == text


@pytest.mark.parametrize(
    ("typed", "french"),
    [
        ("The European Economic Area is important.", "la zone économique européenne est importante."),
        ("She doesn't give her friend's letter", None),
        ("He gives her the letter", "il lui donne la lettre."),
        ("He sees her letter", "il voit sa lettre."),
        ("He sees her", "il la voit."),
        ("They won't talk to her new friend at the hospital!", "ils ne parleront pas à son nouvel ami à l'hôpital."),
        ("She sign the law", None),
        ("She signs an law", None),
        ("They saw them", None),
        ("my friend", None),
        ("He says", None),
        ("He says and she is rich", None),
        ("He signs the law that she is rich", None),
        ("", None),
    ],
)
def test_a_typed_sentence_is_translated_where_the_grammar_covers_it(typed, french):
    pair = translate(typed)
    assert (pair and detokenize_french(pair.french)) == french

"""A caption says what is on the scene."""

import torch

from course_lib.data.captions import DIGIT_WORDS, caption_tokenizer, captions, measures, right_words
from course_lib.data.scenes import DigitScenes, Scenes


def scene(*, top: int, left: int, side: int, ink: float, ground: float, digit: int) -> Scenes:
    """A square of ink on an even ground."""
    pixels, instances = torch.full((1, 1, 32, 32), ground), torch.zeros(1, 32, 32, dtype=torch.long)
    instances[0, top : top + side, left : left + side] = 1
    pixels[:, 0][instances == 1] = ink
    box = torch.tensor([[[left, top, left + side, top + side]]])
    return Scenes(pixels, torch.tensor([[digit]]), torch.tensor([[True]]), instances, instances, box)


def test_a_caption_names_size_ink_digit_and_place():
    small = scene(top=4, left=0, side=16, ink=0.9, ground=0.2, digit=7)
    large = scene(top=2, left=4, side=24, ink=0.1, ground=0.6, digit=0)
    assert captions(small) == ["a small bright seven at the left"]
    assert captions(large) == ["a large dark zero at the centre"]
    assert torch.allclose(measures(small), torch.tensor([[0.5, 0.25, 0.7]]))


def test_every_caption_of_real_scenes_has_a_token_for_each_word():
    tokenizer = caption_tokenizer()
    for text in captions(DigitScenes(split="train").batch(30, seed=0)):
        assert tokenizer.unknown_id not in tokenizer.encode(text) and text.split()[3] in DIGIT_WORDS


def test_each_aspect_of_a_caption_is_scored_by_itself():
    wanted = ["a small bright seven at the left", "a large dark one at the right"]
    written = ["a small dark seven at the left", "a large dark"]
    assert right_words(written, wanted) == {"exact": 0.0, "size": 1.0, "ink": 0.5, "digit": 0.5, "place": 0.5}

from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_06.recipes import tricks
from course_lib.training.schedules import inverse_sqrt
from course_lib.training.translation import encode_pairs, splits

TINY = {"steps": 3, "dim": 8, "depth": 1, "batch_size": 4, "train_pairs": 100, "averaged": 0, "warmup": 2}


def test_without_positions_the_encoder_is_blind_to_order_and_with_them_it_is_not():
    source, valid, _, _ = encode_pairs(splits(100).train[:1])
    shuffle = torch.randperm(source.shape[1], generator=torch.Generator().manual_seed(0))
    for variant, blind in (("no positions", True), ("paper", False), ("no positions in the decoder", False)):
        model = tricks.train(replace(tricks.VARIANTS[variant], **TINY)).model
        with torch.no_grad():
            straight, shuffled = (model.encode(model.embed(tokens)) for tokens in (source, source[:, shuffle]))
        assert torch.allclose(straight[:, shuffle], shuffled, atol=1e-5) == blind


def test_without_positions_the_decoder_sees_the_words_before_as_a_set():
    source, valid, target, _ = encode_pairs(splits(100).train[:1])
    swapped = target.clone()
    swapped[0, 1:3] = target[0, [2, 1]]
    for variant, blind in (("no positions in the decoder", True), ("paper", False)):
        settings = replace(tricks.VARIANTS[variant], **TINY)
        model = tricks.train(settings).model
        with torch.no_grad():
            one, two = (model(source, tokens[:, :4])[0, -1] for tokens in (target, swapped))
        assert torch.allclose(one, two, atol=1e-5) == blind


def test_without_the_ramp_the_peak_comes_first_and_the_fall_is_the_paper_s():
    factors = [tricks.without_ramp(step, 100, 20) for step in range(100)]
    assert factors[:20] == [1.0] * 20
    assert factors[20:] == pytest.approx([inverse_sqrt(step, 100, 20) for step in range(20, 100)])
    history = tricks.train(replace(tricks.VARIANTS["no warm-up"], **TINY)).history
    assert history.learning_rates[0] == max(history.learning_rates)


def test_each_variant_changes_one_thing():
    allowed = {"constant rate": 3}  # another schedule needs its own rate, and no warm-up
    for name, settings in tricks.VARIANTS.items():
        if name not in ("GRU", "as long as the GRU"):
            fields = vars(tricks.PAPER)
            changed = [field for field in fields if getattr(settings, field) != fields[field]]
            assert len(changed) == (0 if name == "paper" else allowed.get(name, 1))


def test_another_peak_changes_nothing_but_the_learning_rate():
    for name, tried in tricks.OTHER_PEAKS.items():
        for rate in tried:
            settings = tricks.BY_PEAK[f"{name}, peak {rate:g}"]
            assert settings == replace(tricks.VARIANTS[name], learning_rate=rate) and rate != tricks.PEAK
    assert len(tricks.BY_PEAK) == 2 * len(tricks.OTHER_PEAKS)

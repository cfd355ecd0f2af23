from dataclasses import replace

import pytest
import torch
from torch import nn

from course_lib.bench import vision as module
from course_lib.bench.race import Race
from course_lib.bench.vision import CONTESTS, encoder_runs, inputs, masking_rows, pair, runs

NAMES = [contest.name for contest in CONTESTS]
TINY = {
    "ResNet": {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic"},
    "ViT": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8},
    "Swin": {"embed_dim": 4, "depths": [2], "num_heads": [2], "window_size": 2},
}
TINY["ViTMAE"] = TINY["ViT"] | {
    "decoder_hidden_size": 8,
    "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 2,
    "decoder_intermediate_size": 8,
}


def contest(kind):
    """A contest of the benchmark's own kind, at a size that takes milliseconds."""
    like = next(each for each in CONTESTS if each.kind == kind)
    sizes = {"image_size": 16, "patch_size": 4} if kind != "ResNet" else {}
    return replace(like, settings=TINY[kind] | sizes | {"num_channels": 1}, B=2, size=16, channels=1)


@pytest.mark.parametrize("kind", TINY)
def test_both_models_of_a_contest_compute_the_same(kind):
    variants = runs(contest(kind), backward=False)
    outputs = [variants[who]() for who in ("ours", "theirs")]
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=1e-5)
    assert outputs[0].std() > 1e-3 and not outputs[0].requires_grad


def test_a_contest_between_different_models_is_refused(monkeypatch):
    def different(contest):
        ours, theirs = pair(contest)
        for weights in ours.head.parameters():
            nn.init.normal_(weights)
        return ours, theirs

    monkeypatch.setattr(module, "pair", different)
    with pytest.raises(ValueError, match="differ by .* in an output"):
        runs(contest("ResNet"), backward=False)


@pytest.mark.parametrize("backward", [False, True])
def test_only_there_and_back_makes_gradients(backward, monkeypatch):
    models = []
    monkeypatch.setattr(module, "pair", lambda contest: models.extend(pair(contest)) or models)
    for variant in runs(contest("ViT"), backward=backward).values():
        variant()
    assert len(models) == 2
    for model in models:
        assert any(weights.grad is not None for weights in model.parameters()) == backward


def test_the_encoder_runs_on_a_quarter_of_the_patches_and_on_all():
    tiny = contest("ViTMAE")
    variants = encoder_runs(tiny, backward=False)
    assert variants["ours"]().shape == (2, 1 + 16 // 4, 8)  # with the class token
    assert variants["theirs"]().shape == (2, 1 + 16, 8)


def test_a_contest_draws_one_number_for_each_patch():
    images, noise = inputs(contest("ViTMAE"), patch_size=4)
    assert images.shape == (2, 1, 16, 16) and noise.shape == (2, 16)


def test_every_model_runs_at_a_lesson_size_and_at_224_pixels():
    assert len(set(NAMES)) == len(NAMES)
    sizes = {kind: {each.size for each in CONTESTS if each.kind == kind} for kind in TINY}
    assert sizes == {kind: {32, 224} for kind in TINY}
    assert {"ResNet-18", "ResNet-50", "ViT-Tiny", "ViT-Base", "Swin-T", "MAE-Base"} <= {n.split(",")[0] for n in NAMES}


def test_a_line_says_which_way_it_went(monkeypatch):
    times = Race(seconds={"ours": [1.0], "theirs": [4.0]})
    monkeypatch.setattr(module, "CONTESTS", (contest("ViTMAE"),))
    monkeypatch.setattr(module, "race", lambda runs, **_: [run() for run in runs.values()] and times)
    forward, back = masking_rows()
    assert forward.what.endswith(", forward") and back.what.endswith(", there and back")
    assert forward.ratio == 0.25 and forward.reached

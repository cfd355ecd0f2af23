"""Every recipe in small: what it trains, scores and ships is what its card says."""

import json
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean

import pytest
import torch

from course_lib import lessons
from course_lib.data.checkpoints import CARD, checkpoint_folder, load_trained
from course_lib.data.digits import CleanDigits
from course_lib.data.icons import icons
from course_lib.data.names import NameSplits, name_splits
from course_lib.functional import scaling as scaling_laws
from course_lib.lessons import recipes as finder
from course_lib.lessons.lesson_01.recipes import depth, resnet, transfer
from course_lib.lessons.lesson_02 import recipes as simclr
from course_lib.lessons.lesson_03.recipes import captions, names
from course_lib.lessons.lesson_04 import remember
from course_lib.lessons.lesson_06.recipes import translator as transformer
from course_lib.lessons.lesson_06.recipes import tricks
from course_lib.lessons.lesson_07.recipes import few_labels, next_sentence, parallel
from course_lib.lessons.lesson_07.recipes.next_sentence import consecutive
from course_lib.lessons.lesson_08 import induction, modern
from course_lib.lessons.lesson_08 import recipes as dictionary
from course_lib.lessons.lesson_09 import recipes as scaling
from course_lib.lessons.lesson_10 import recipes as alignment
from course_lib.lessons.lesson_11 import icon_recipes as sorted_icons
from course_lib.lessons.lesson_11 import recipes as vit
from course_lib.lessons.lesson_12 import recipes as swin
from course_lib.lessons.lesson_13 import icon_recipes as masked_icons
from course_lib.lessons.lesson_13 import recipes as mae
from course_lib.lessons.lesson_14 import diffusion_recipes as diffusion
from course_lib.lessons.lesson_14 import icon_recipes as icon_segmentation
from course_lib.lessons.lesson_14 import recipes as unet
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.lessons.lesson_16.recipes import control, icon_words, pictures_and_words
from course_lib.lessons.lesson_17.recipes import boltzmann, efficient, experts, features
from course_lib.lessons.recipes import all_recipes, find_recipe
from course_lib.models import baselines
from course_lib.training import language_models
from course_lib.training.language_models import tokenized_prose
from course_lib.training.progress import using
from course_lib.training.translation import splits
from course_lib.training.vision import STEPS_OF_A_SEED
from tests.lessons.common import Stop

FEW = {"train": 150, "validation": 40, "test": 50}
LANGUAGE = {"dim": 16, "depth": 1, "context_length": 16, "vocab_size": None}
ALIGNED = (
    {"dim": 8, "depth": 1, "num_heads": 2, "pretrain_steps": 2, "sft_steps": 3, "comparisons": 8, "reward_steps": 3}
    | {"rounds": 8, "prompts": 8, "dpo_steps": 3},
    {(alignment, "SPLIT_SENTENCES"): {"train": 60, "validation": 20, "test": 20}, (alignment, "MEASURED"): 6}
    | {(alignment, "LONGEST"): 6},
)
TWO_STEPS = masked_icons.FineTuningSettings(learning_rate=1e-3, steps=2)


@cache
def few_icons(split="test"):
    """Every fourth drawing of a split."""
    drawings = icons(split)
    return drawings.take(torch.arange(0, len(drawings.names), 4))


ICONS = (
    {"dim": 16, "depth": 1, "warmup": 1, "patch_size": 8},
    {(sorted_icons, "icons"): few_icons, (sorted_icons, "new_drawings"): few_icons},
)
MASKED_ICONS = (
    {"dim": 16, "depth": 1, "num_heads": 2, "decoder_dim": 8, "decoder_num_heads": 2, "patch_size": 8},
    {(masked_icons, "DRAWS"): 2, (masked_icons, "FINE_TUNING"): dict.fromkeys(masked_icons.FINE_TUNING, TWO_STEPS)}
    | {(masked_icons, "icons"): few_icons, (masked_icons, "drawings_of"): lambda split: few_icons()},
)
VIT, SWIN = {"depth": 1, "images": None}, {"size": 8, "patch_size": 2, "window_size": 2, "dim": 4, "num_heads": (1, 1)}


@cache
def few_tagged(language):
    return few_labels.tagging_splits(language=language, train=120, validation=4, test=4)


@cache
def few_genders():
    return few_labels.gender_splits(train=120, validation=4, test=4)


@cache
def short_prose(vocab_size):
    """Two thousand characters of each split."""
    prose = tokenized_prose()
    return replace(prose, ids={name: ids[:2000] for name, ids in prose.ids.items()})


@cache
def few_pairs(count):
    """Those for training, and six of each other split."""
    pairs = splits(100)
    return replace(pairs, validation=pairs.validation[:6], test=pairs.test[:6])


@cache
def few_sentence_pairs(split):
    """Forty pairs of sentences of a split."""
    return consecutive(split)[:40]


def few_names():
    """Every fortieth name of each split."""
    return NameSplits(*(part[::40] for part in name_splits()))


SIMCLR = (
    {"encoder": replace(simclr.SETTINGS.encoder, widths=(4, 8), depths=(1, 1), stem_channels=4)},
    {(simclr, "SPLITS"): FEW, (simclr, "DRAWS"): 2},
)
BY_DIM = {"dim": 16, "depth": 1, "num_heads": 2}
SHORT = {"depth": 1, "batch_size": 2, "context_length": 16, "isoflop": ((2e4, (4,)),)}
SCALED = {(scaling, "LOOKS"): 100, (scaling, "SCORED"): 200}
PAIRED = {"dim": 8, "depth": 1, "train_pairs": 100}
T5 = {"dim": 8, "depth": 1, "num_heads": 2, "head_dim": 4, "mlp_dim": 8}
ASKED = {(text_to_text, "PLAIN"): 200, (text_to_text, "SCORED"): {"validation": 8, "test": 9}}
SMALL = {  # name -> settings of every variant that has them; constants
    "resnet": ({"width": 4, "size": 16}, {(resnet, "SPLIT_SCENES"): FEW}),
    "depth": ({"width": 4, "num_layers": 8, "steps": 20}, {(depth, "SPLIT_IMAGES"): FEW}),
    "transfer": (
        {"widths": (4, 6, 8), "stem_channels": 4},
        {(transfer, name): 40 for name in ("VALIDATION_SCENES", "TEST_SCENES")}
        | {(transfer, "POOL"): 600, (transfer, "DRAWS"): 1},
    ),
    "simclr": SIMCLR,
    "simclr_losses": SIMCLR,
    "rnn_characters": (LANGUAGE, {}),
    "names": ({"embed_dim": 4, "hidden_dim": 8}, {(names, "name_splits"): few_names}),
    "captions": ({"embed_dim": 4, "hidden_dim": 8}, {(captions, "SPLIT_SCENES"): FEW}),
    "tags": ({"embed_dim": 4, "hidden_dim": 8}, {}),
    "lstm_characters": (LANGUAGE, {}),
    "first_symbol": ({"hidden_dim": 8, "length": 6}, {(remember, "HELD_OUT_ROWS"): 20}),
    "three_cells": (LANGUAGE, {}),
    "dictionary": (
        LANGUAGE | {"context_length": 128},
        {(language_models, "tokenized_dictionary"): short_prose}
        | {(dictionary, "DEFINED"): 20, (dictionary, "ENTRIES"): 20},
    ),
    "gpt_characters": (LANGUAGE, {}),
    "gpt_short": (LANGUAGE, {(language_models, "tokenized_dictionary"): short_prose}),
    "modern_decoder": (LANGUAGE, {(modern, "tokenized_prose"): short_prose}),
    "induction": ({"head_dim": 8}, {(induction, "HELD_OUT_ROWS"): 20}),
    "scaling": (
        SHORT
        | {"dims": (4, 8, 12), "tokens": (64, 96, 128), "shapes": ((2, 4),), "shape_tokens": 64}
        | {"rates": (1e-3,), "rate_tokens": 64, "largest": (12, 160)},
        SCALED | {(scaling_laws, "STARTS"): 1},
    ),
    "scaling_practice": (
        SHORT
        | {"seeds": (0,), "dim": 8, "tokens": (64, 128), "unique": 100, "fresh_seeds": (0,), "repeated_seeds": (0,)},
        SCALED,
    ),
    "aligned": ALIGNED,
    "unaligned": ALIGNED,
    "demonstrated": ALIGNED,
    "kindness": ALIGNED,
    "proxies": (ALIGNED[0] | {"rounds": 10}, ALIGNED[1] | {(alignment, "true_goal"): alignment.kindness}),
    "same_beta": (ALIGNED[0] | {"dpo_steps": 8}, ALIGNED[1]),
    "translator": (PAIRED | {"averaged": 2}, {}),
    "translator_tricks": (PAIRED | {"width": 8, "averaged": 0}, {}),
    "tricks_peaks": (PAIRED | {"averaged": 0}, {}),
    "norm_depth": (PAIRED, {}),
    "next_sentence": (BY_DIM, {(next_sentence, "consecutive"): few_sentence_pairs}),
    "bert_parallel": (
        BY_DIM | {"sentences": 80},
        {(parallel, "DRAWS"): 2, (parallel, "PAIRS"): 30, (parallel, "LABELS"): 50}
        | {(parallel, "FINE_TUNING"): replace(parallel.FINE_TUNING, steps=3, batch_size=4)},
    ),
    "bert": (BY_DIM | {"sentences": 80}, {(few_labels, "DRAWS"): 2}),
    "vit": (VIT, {(vit, "SPLIT_IMAGES"): FEW}),
    "vit_digits": (VIT, {(vit, "SPLIT_IMAGES"): FEW}),
    "vit_fine": ({"images": None}, {(vit, "SPLIT_IMAGES"): FEW}),
    "vit_icons": ICONS,
    "vit_icons_data": ICONS,
    "vit_augmentation": ICONS,
    "swin": (SWIN, {(swin, "SPLIT_IMAGES"): FEW}),
    "swin_icons": ICONS,
    "shifted_windows": (SWIN | {"num_heads": (1,)}, {(swin, "SPLIT_IMAGES"): FEW}),
    "mae": (
        BY_DIM | {"decoder_dim": 8},
        {(mae, "SPLIT_IMAGES"): FEW, (mae, "POOL_IMAGES"): 400, (mae, "DRAWS"): 2},
    ),
    "mae_icons": MASKED_ICONS,
    "mae_icons_variants": MASKED_ICONS,
    "mae_scenes": (BY_DIM | {"decoder_dim": 8}, {(mae, "SPLIT_IMAGES"): FEW}),
    "unet": (
        {},
        {(unet, "SPLIT_SCENES"): {"validation": 12, "test": 14}}
        | {(unet, "BACKBONE"): replace(unet.BACKBONE, widths=(4, 4, 4, 4))}
        | {(unet, "instance_scores"): partial(unet.instance_scores, count=6)},
    ),
    "unet_no_skips": ({}, {(unet, "SPLIT_SCENES"): {"validation": 12, "test": 14}}),
    "unet_icons": (
        {"widths": (8, 16)},
        {(icon_segmentation, "SPLIT_SCENES"): dict.fromkeys(icon_segmentation.SPLIT_SCENES, 6)},
    ),
    "diffusion_icons": (
        {"widths": (8, 16)},
        {(diffusion, "new_drawings"): lambda: icons("test").take(torch.arange(20))}
        | {(diffusion, "icons"): lambda split: icons(split).take(torch.arange(20))},
    ),
    "pictures_and_words": (
        {"dim": 8, "depth": 1, "co_depth": 1, "num_heads": 2, "num_latents": 2, "text_steps": 3},
        {(pictures_and_words, "SPLIT_SCENES"): FEW}
        | {(pictures_and_words, "CANDIDATES"): 4, (pictures_and_words, "GROUPS"): 2},
    ),
    "icon_clip": (BY_DIM | {"dim": 8, "joint_dim": 4}, {(icon_words, "VIEWS"): 1, (icon_words, "icons"): few_icons}),
    "boltzmann": (
        {},
        {(boltzmann, "DRAWS"): 2, (boltzmann, "EPOCHS"): (1,), (boltzmann, "RATES"): (0.01,)}
        | {(boltzmann, "DREAMS"): 20, (boltzmann, "DREAM_STEPS"): 2, (features, "STEPS"): 3, (features, "ROUNDS"): 2}
        | {(boltzmann, "other_learners"): boltzmann.other_learners.__wrapped__},
    ),
    "text_to_text": (T5 | {"pretraining": 3, "per_task": 5}, ASKED),
    "gaps": (T5, ASKED),
    "t5_layouts": (T5 | {"per_task": 5}, ASKED),
    "efficient_attention": ({"dim": 32, "depth": 1, "context_length": 16}, {(efficient, "SCORED"): 200}),
    "experts": ({"dim": 32, "context_length": 16, "mlp_dim": 8}, {(experts, "SCORED"): 200, (experts, "COUNTED"): 100}),
    "tones": (
        BY_DIM | {"dim": 8, "mlp_dim": 8},
        {(speech, "SPLIT_MELODIES"): {"validation": 6, "test": 7}, (speech, "WIDTH"): 2},
    ),
    "mazes": ({"dim": 8, "depth": 1, "hidden_dim": 8, "trajectories": 4}, {(control, "REPEATS"): 1}),
}


def quick(settings, **small):
    """The same settings, for a few steps and with what is small."""
    small = {"steps": 3, "batch_size": 4} | small
    return replace(settings, **{name: value for name, value in small.items() if hasattr(settings, name)})


@pytest.fixture
def small(monkeypatch):
    """A function from a name to the recipe in small."""
    monkeypatch.setattr(baselines, "NEWTON_STEPS", 1)  # probes as good as they get in one
    for module in (few_labels, mae, transfer):
        constant = "VARIANTS" if module is transfer else "FINE_TUNING"
        monkeypatch.setattr(module, constant, quick_all(getattr(module, constant)))
    monkeypatch.setattr(unet, "FEW_MASKS", tuple(map(quick, unet.FEW_MASKS)))
    for module in (few_labels, parallel):
        monkeypatch.setattr(module, "tagged_sentences", few_tagged)
    monkeypatch.setattr(few_labels, "genders", few_genders)
    monkeypatch.setattr(language_models, "tokenized_prose", short_prose)
    for module in (transformer, tricks):
        monkeypatch.setattr(module, "splits", few_pairs)

    def recipe(name):
        settings, constants = SMALL[name]
        for place, value in constants.items():
            monkeypatch.setattr(*place, value)
        clear_caches()
        known = find_recipe(name)
        return replace(known, variants={key: quick(each, **settings) for key, each in known.variants.items()})

    yield recipe
    clear_caches()


def quick_all(settings):
    if isinstance(settings, dict):
        return {key: quick_all(each) for key, each in settings.items()}
    return tuple(map(quick, settings)) if isinstance(settings, tuple) else quick(settings)


def clear_caches():
    ours = (names.examples, names.tokenizer, names.counting, captions.examples, pictures_and_words.examples)
    ours += (icon_words.known_names, icon_words.tokenizer, icon_words.names, icon_words.drawings)
    ours += (icon_words.training_views, parallel.held_out)
    ours += (speech.held_out, text_to_text.tokenizer, text_to_text.plain_text)
    ours += (alignment.sentences, alignment.pretrained, alignment.fine_tuned, alignment.rewarding)
    ours += (alignment.measured_pairs,)
    for cached in (simclr.images, transfer.target_scenes, unet.held_out, *ours):
        cached.cache_clear()


@pytest.mark.parametrize("name", SMALL)
def test_a_recipe_trains_even_if_interrupted_scores_and_ships_what_its_card_says(name, small, tmp_path):
    recipe, card = small(name), json.loads((checkpoint_folder(name) / CARD).read_text(encoding="utf-8"))
    with pytest.raises(KeyboardInterrupt), using(lambda title: Stop()):
        recipe.run(3, tmp_path)
    outcome = recipe.run(3, tmp_path)  # goes on where it stood
    assert list(outcome.validation) == list(card["validation"]) and list(outcome.test) == list(card["test"])
    assert recipe.chosen_by in outcome.validation
    shipped = outcome.shipped
    assert type(shipped.model).__name__ == card["model"]
    assert shipped.settings == replace(recipe.variants[recipe.ships], seed=3)
    assert len({path.parent for path in tmp_path.rglob("last.pt")}) >= len(recipe.variants)  # all can go on
    same, other = (recipe.train(replace(shipped.settings, seed=seed)).model.state_dict() for seed in (3, 4))
    assert all(torch.equal(tensor, same[key]) for key, tensor in shipped.model.state_dict().items())
    assert any(not torch.equal(tensor, same[key]) for key, tensor in other.items())


IN_STEPS = [("resnet", resnet), ("depth", depth), ("transfer", transfer), ("vit", vit), ("swin", swin)]


@pytest.mark.parametrize(("name", "module"), IN_STEPS)
def test_no_image_is_seen_twice_nor_by_two_seeds(name, module, small, monkeypatch):
    settings, seen, fit = small(name).variants[find_recipe(name).ships], [], module.fit_classifier

    def spy(settings, model, batch_at, **others):
        seen.extend(batch_at(step)[0] for step in range(settings.steps))
        return fit(settings, model, batch_at, **others)

    monkeypatch.setattr(module, "fit_classifier", spy)
    for seed in (0, 1):
        (transfer.train_source if module is transfer else module.train)(replace(settings, seed=seed))
    pixels = torch.cat(seen).flatten(1)
    assert len(pixels) == 2 * settings.steps * 4 == len(pixels.unique(dim=0))
    assert STEPS_OF_A_SEED > find_recipe(name).variants[find_recipe(name).ships].steps


@pytest.mark.parametrize(
    ("module", "settings", "constant", "test_images"),
    [
        (
            resnet,
            resnet.SceneSettings(size=16),
            "SPLIT_SCENES",
            lambda its: resnet.scenes(its, "test").batch(60, seed=0).classification(),
        ),
        (vit, vit.ImageSettings(size=14), "SPLIT_IMAGES", lambda its: vit.source(its, "test")(60, 0)),
        (swin, swin.SwinSettings(size=8), "SPLIT_IMAGES", lambda its: CleanDigits(split="test", size=8).batch(60, 0)),
    ],
)
def test_a_score_is_that_of_its_split(module, settings, constant, test_images, monkeypatch):
    monkeypatch.setattr(module, constant, {"validation": 40, "test": 60})
    answers = test_images(settings).labels

    class Knows(torch.nn.Module):
        """Gives every image of the test split its label, and others another one."""

        def forward(self, image):
            return 2.0 * torch.nn.functional.one_hot(answers, 10)[: len(image)]

    found = [module.right(Knows(), settings, split) for split in ("test", "validation")]
    test, validation = (score["accuracy"] if module is vit else score for score in found)
    assert test == 1.0 and validation < 0.5


def reached(card, name):
    """In percent, the mean over the seeds."""
    return f"{100 * fmean(seed['test'][f'accuracy, {name}'] for seed in load_trained(card).card['seeds']):.0f} %"


def test_predictions_quote_the_accuracies_of_the_cards():
    asked = {module: (Path(module.__file__).parent / "questions.md").read_text("utf-8") for module in (vit, swin)}
    whole = reached("vit_augmentation", "training drawings, whole recipe")
    assert f"it classifies about {whole} of these drawings correctly" in asked[vit]
    of_resnet, of_vit = (reached("vit_icons_data", f"{net}, all drawings") for net in ("ResNet", "ViT"))
    assert f"The ResNet classifies {of_resnet} of new drawings correctly, and the ViT {of_vit}" in asked[swin]


def test_recipes_are_found_in_the_folders_in_the_order_of_the_course():
    folders = {path.parent.name for path in Path(lessons.__file__).parent.glob("lesson_*/recipes*")}
    numbers = [recipe.lesson for recipe in all_recipes().values()]
    assert {f"lesson_{number}" for number in numbers} == folders and numbers == sorted(numbers)


def test_two_lessons_cannot_use_one_name(monkeypatch):
    monkeypatch.setattr(finder, "import_module", lambda name: resnet_alone)
    with pytest.raises(ValueError, match="lesson_02 and a lesson before it have a training 'resnet'"):
        all_recipes.__wrapped__()


class resnet_alone:
    RECIPES = {"resnet": resnet.RECIPE}

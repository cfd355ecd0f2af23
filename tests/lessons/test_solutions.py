"""What a learner writes is what the library computes: the solutions' classes with its weights, and the references."""

import copy
from dataclasses import replace
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import compare, copy_weights, load
from course_lib.data.checkpoints import load_trained
from course_lib.functional import attention_maps, positions, sampling
from course_lib.functional.cost import count_flops
from course_lib.functional.language import mask_tokens, mean_pool
from course_lib.functional.losses import nt_xent
from course_lib.functional.metrics import bits_per_byte, perplexity
from course_lib.functional.scaling import CHINCHILLA, fit_scaling_law
from course_lib.generation.stepwise import greedy
from course_lib.layers import recurrent
from course_lib.layers.patches import patchify, random_mask, unpatchify
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.lessons.lesson_02 import tasks as tasks_02
from course_lib.lessons.lesson_04.tasks import LSTM
from course_lib.lessons.lesson_08.models import MODELS as MODELS_08
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09.models import three_models
from course_lib.lessons.lesson_09.recipes import columns
from course_lib.lessons.lesson_11 import learner as learner_11
from course_lib.lessons.lesson_13 import icon_recipes, models
from course_lib.lessons.lesson_13.tasks import Tokens, positions_2d
from course_lib.models.gpt import GPT, GPTConfig, gpt_lesson
from course_lib.models.vit import ViT, ViTConfig, vit_base_patch16
from course_lib.tasks import Draw
from course_lib.text.merges import Corpus, learn_merges_naive
from course_lib.text.wordpiece import BERT_SPECIALS, WordPiece
from course_lib.training.language_models import next_token_loss
from course_lib.training.probes import nearest_neighbours
from course_lib.training.seeding import seeded
from course_lib.training.translation import encode_pairs, splits, vocabularies
from course_lib.weights import from_pretrained, save_pretrained
from tests.lessons.answered import tasks_of

SOLUTION = {
    number: {name: task.module or task.reference for name, task in tasks_of(number).items()}
    for number in ("04", "05", "06", "07", "08", "09", "11", "13")
}
OPENED = [  # lesson, model; the exercise, if its name is another one
    *("01 resnet", "02 simclr", "03 recogniser", "04 character_model", "05 seq2seq", "06 transformer"),
    *("07 masked_lm", "07 encoder bert", "08 gpt", "09 law", "10 reward_model", "11 vit", "11 released vit"),
    *("12 swin", "13 mae"),
]


@pytest.mark.parametrize("line", OPENED)
def test_the_class_of_the_solution_opens_the_trained_weights(line):
    number, name, *other = line.split()
    shipped = import_module(f"course_lib.lessons.lesson_{number}.models").MODELS[name]
    ours = shipped.model().eval()
    mine = tasks_of(number)[other[0] if other else name].module(**shipped.sizes(ours)).eval()
    assert copy_weights(ours, mine, shipped.names) == sum(parameter.numel() for parameter in mine.parameters())
    compare(ours, mine, shipped.inputs(), shipped.names)


def cut_by_wordpiece(word, vocabulary):
    tokenizer = WordPiece([*BERT_SPECIALS, *sorted(vocabulary - {"[UNK]"})])
    return [tokenizer.vocabulary[i] for i in tokenizer.encode(word)]


def packed_by_wordpiece(first, second, start, end, most):
    names = [f"w{i}" for i in range(100)]
    names[start], names[end], names[0] = "[CLS]", "[SEP]", "[UNK]"
    tokenizer = WordPiece(names, specials=("[CLS]", "[SEP]", "[UNK]"))
    return tokenizer.encode_pair(*(" ".join(names[i] for i in ids) for ids in (first, second)), max_length=most)


REFERENCES = [
    ("02", "nt_xent", lambda z, temperature: nt_xent(*z.chunk(2), temperature=temperature)),
    ("02", "nt_xent", tasks_02.loss_of_views),
    ("02", "random_crop", tasks_02.random_crop),
    ("02", "knn", lambda h, stored, labels, k: nearest_neighbours(stored, labels, k=k).predict(h)),
    ("07", "longest_match", cut_by_wordpiece),
    ("07", "pack_pair", packed_by_wordpiece),
    ("07", "mean_pooling", mean_pool),
    ("07", "hidden_loss", lambda logits, tokens, masked: F.cross_entropy(logits[masked], tokens[masked])),
    ("08", "top_p", sampling.top_p),
    ("11", "patchify", patchify),
    ("11", "unpatchify", unpatchify),
    ("11", "attention_distance", attention_maps.attention_distance),
    ("11", "fit_positions", positions.fit_positions),
    ("13", "random_mask", lambda noise, ratio: tuple(random_mask(noise, ratio))),
]


@pytest.mark.parametrize(("number", "name", "ours"), REFERENCES)
def test_a_reference_does_what_the_library_does(number, name, ours):
    task = tasks_of(number)[name]
    for case in task.cases:
        for seed in range(5):
            found, expected = task.reference(*case.inputs(Draw(seed))), ours(*case.inputs(Draw(seed)))
            if isinstance(found, list):
                assert found == expected
            else:
                torch.testing.assert_close(found, expected)


# ------------------------------------------------------------------ 02, 04, 05, 06, 07


def test_a_whole_crop_that_is_not_turned_changes_nothing():
    images = torch.rand(3, 1, 9, 9)
    whole = tasks_02.random_crop(images, torch.full((4, 3), 0.5), 1.0, 0.0)
    torch.testing.assert_close(whole, images, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("make", "cell_type"),
    [
        (SOLUTION["04"]["lstm"], recurrent.LSTMCell),
        (LSTM, recurrent.LSTMCell),
        (SOLUTION["04"]["gru"], recurrent.GRUCell),
    ],
)
def test_the_recurrent_layers_are_those_of_the_library(make, cell_type):
    x, layer, cell = torch.randn(3, 5, 4), make(4, 6), cell_type(4, 6)
    values = (layer.ih.weight, layer.hh.weight, layer.ih.bias, layer.hh.bias)
    with torch.no_grad():
        for own, value in zip(cell.weights, values, strict=True):
            own.copy_(value)
    outputs, state = layer(x)
    expected, final = recurrent.scan(cell, x, cell.initial_state(3))
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(state, tuple(final) if cell_type is recurrent.LSTMCell else final)


def test_the_solution_of_lesson_05_decodes_like_the_library():
    shipped = import_module("course_lib.lessons.lesson_05.models").MODELS["seq2seq"]
    ours = shipped.model().eval()
    mine = SOLUTION["05"]["seq2seq"](**shipped.sizes(ours)).eval()
    copy_weights(ours, mine, shipped.names)
    source, valid, *_ = encode_pairs(splits().test[:20])
    french = vocabularies()[1]
    words = SOLUTION["05"]["greedy"](mine, source, valid, french.start_id, french.end_id, 40)
    wanted, _ = ours.greedy_decode(source, valid, max_length=40)
    assert [french.sentence(row) for row in words] == [french.sentence(row) for row in wanted]


def test_additive_and_multi_head_attention_are_those_of_the_library():
    ours, mine = recurrent.AdditiveAttention(3, 4, 5), SOLUTION["05"]["additive"](3, 4, 5)
    with torch.no_grad():
        for theirs, own in ((ours.q_proj.weight, mine.W), (ours.k_proj.weight, mine.U), (ours.v[None], mine.v)):
            own.weight.copy_(theirs)
    q, k, mask = torch.randn(2, 3, 3), torch.randn(2, 6, 4), torch.arange(6) < torch.tensor([[[6]], [[4]]])
    torch.testing.assert_close(mine(q, k, mask), ours(q, k, mask=mask)[0])
    ours, mine = MultiHeadAttention(12, 3), SOLUTION["05"]["multi_head"](12, 3)
    mine.load_state_dict(ours.state_dict())
    x, other, mask = torch.randn(2, 5, 12), torch.randn(2, 7, 12), (torch.arange(7) < 4).expand(5, 7)
    torch.testing.assert_close(mine(x, other, mask), ours(x, other, mask=mask[None, None]))
    torch.testing.assert_close(mine(x, mask=torch.ones(5, 5).tril().bool()), ours(x, causal=True))


def test_merges_one_by_one_are_those_that_a_tokenizer_learns():
    counts = {"lowest": 5, "slow": 3, "widest": 6, "newest": 4}
    corpus = Corpus.from_counts(counts)
    pieces, known = [list(word) for word in counts], len(corpus.tokens)
    for merge in learn_merges_naive(corpus, known + 3).merges:
        pieces = SOLUTION["06"]["bpe_merge"](pieces, list(counts.values()))
        assert any("".join(merge) in word for word in pieces)


def test_chosen_words_become_what_the_library_makes_of_them():
    task = tasks_of("07")["mask_words"]
    tokens, noise, maskable, mask_id, word_ids = task.cases[0].inputs(Draw(3))
    given, masked = task.reference(tokens, noise, maskable, mask_id, word_ids)
    ours = mask_tokens(tokens, noise, maskable=maskable, mask_id=mask_id, word_ids=word_ids)
    both = masked & ours.masked
    assert both.sum() > 9 and torch.equal(given[both], ours.tokens[both])
    assert torch.equal(given[~masked], tokens[~masked]) and not (masked & ~maskable).any()


# ------------------------------------------------------------------ 08

TOKENS = torch.arange(3 * 20).view(3, 20) * 7 % 30


@pytest.fixture
def gpt():
    with seeded(1):
        return gpt_lesson(30, dim=16, depth=2, num_heads=2, dropout=0.0).eval()


def test_the_shifted_loss_is_the_one_that_models_are_trained_with(gpt):
    torch.testing.assert_close(SOLUTION["08"]["shifted_loss"](gpt(TOKENS), TOKENS), next_token_loss(gpt, TOKENS))


def test_a_released_gpt2_opens_in_what_a_learner_assembles_but_not_without_its_final_norm(tmp_path, capsys):
    with seeded(1):  # a small one, with GPT-2's vocabulary and context, in the released layout
        save_pretrained(GPT(GPTConfig(dim=24, depth=2, num_heads=3)), tmp_path)
    released, make = from_pretrained(tmp_path), SOLUTION["08"]["gpt"]
    torch.testing.assert_close(load(MODELS_08["gpt"], make, released)(TOKENS), released(TOKENS))

    class WithoutNorm(make):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            self.norm = nn.Identity()

    assert load(MODELS_08["gpt"], WithoutNorm, released) is None
    assert "norm.weight" in capsys.readouterr().out


def test_a_model_writes_the_same_text_when_each_step_reads_its_cache_by_hand(gpt):
    wanted = greedy(gpt, TOKENS, max_new_tokens=8)

    def attend(q, k, v, **_):
        n = q.shape[-2]
        return SOLUTION["08"]["cached_step"](q, k[..., -n:, :], v[..., -n:, :], k[..., :-n, :], v[..., :-n, :])

    for block in gpt.blocks:
        block.attn.attend = attend
    assert torch.equal(greedy(gpt, TOKENS, max_new_tokens=8), wanted)


def test_perplexity_and_bits_are_those_of_the_library():
    nats = torch.rand(40)
    total = nats.sum().item()
    found = SOLUTION["08"]["perplexity"](nats, 90)
    torch.testing.assert_close(found, torch.tensor([perplexity(total, 40), bits_per_byte(total, 90)]))


# ------------------------------------------------------------------ 09

STARTS = [(0.0, A, B, s, s) for A in (3.0, 6.0) for B in (6.0, 9.0) for s in (0.4, 0.7)]  # the page's


def test_the_published_law_is_that_of_the_library_and_the_solution_fits_the_runs_as_it_does():
    published = import_module("course_lib.lessons.lesson_09.models").MODELS["law"].model()
    torch.testing.assert_close(published(*three_models()).exp(), CHINCHILLA(*three_models()))
    given = columns(laws.shipped()["grid"], "parameters", "tokens", "test")
    found, law = laws.of_parameters(SOLUTION["09"]["fit_law"](*given, STARTS)), fit_scaling_law(*given)
    for name in ("E", "A", "B", "alpha", "beta"):
        assert getattr(found, name) == pytest.approx(getattr(law, name), rel=1e-3)


def test_operations_by_hand_are_those_counted_but_for_scores_computed_twice():
    for dim, depth in ((12, 2), (32, 3)):
        model = GPT(GPTConfig(vocab_size=77, context_length=32, dim=dim, depth=depth, num_heads=4, dropout=0.0))
        counted = count_flops(lambda model=model: model(torch.zeros(1, 32, dtype=torch.long)).sum().backward())
        assert counted == SOLUTION["09"]["flops"](dim, depth, 32, 77, 32) + 2 * depth * 32 * 32 * dim


def test_with_no_use_the_cheapest_lifetime_is_the_optimal_allocation():
    law, lifetime = (0.1, 4.5, 7.4, 0.6, 0.63), SOLUTION["09"]["lifetime"]
    sizes = torch.logspace(3, 6, 3001, dtype=torch.float64)
    size, tokens, cost = lifetime(*law, 1.5, 0.0, sizes).tolist()
    assert [size, tokens] == pytest.approx(SOLUTION["09"]["allocation"](*law[1:], cost).tolist(), rel=0.01)
    smaller, more, _ = lifetime(*law, 1.5, 1e8, sizes).tolist()
    assert smaller < size and more > tokens


# ------------------------------------------------------------------ 11


def test_the_kernel_makes_the_tokens_of_the_matrix():
    pixels, E = torch.randn(2, 3, 8, 12), torch.randn(48, 5)
    cut = SOLUTION["11"]["patchify"](pixels, 4) @ E
    slid = F.conv2d(pixels, SOLUTION["11"]["kernel"](E, 4), stride=4).flatten(2).transpose(1, 2)
    torch.testing.assert_close(cut, slid, rtol=1e-4, atol=1e-4)


def test_vit_base_of_the_solution_has_as_many_parameters_as_the_library_s():
    with torch.device("meta"):
        mine, ours = SOLUTION["11"]["vit"](224, 16, 3, 1000, 768, 12, 12, 3072), vit_base_patch16()
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in ours.parameters()) == 86_567_656


def test_an_effective_number_is_one_for_one_token_and_all_for_equal_weights():
    effective = SOLUTION["11"]["effective"]
    assert effective(torch.eye(5)[None]).item() == pytest.approx(1)
    assert effective(torch.full((1, 5, 5), 0.2)).item() == pytest.approx(5)


def test_positions_that_fit_make_the_model_of_another_size():
    sizes = {"image_size": 12, "patch_size": 4, "num_classes": 5, "dim": 8, "depth": 2, "num_heads": 2, "mlp_dim": 16}
    vit, pixels = ViT(ViTConfig(**sizes)).eval(), torch.randn(2, 3, 20, 16)
    for drawn in (vit.cls_token, vit.head.weight):  # neither begins at random
        nn.init.normal_(drawn)
    larger = ViT(replace(vit.config, image_size=(20, 16))).eval()
    fitted = SOLUTION["11"]["fit_positions"](vit.pos_embed.detach(), (3, 3), (5, 4))
    larger.load_state_dict(vit.state_dict() | {"pos_embed": fitted})
    torch.testing.assert_close(larger(pixels), vit(pixels))


def test_a_block_runs_inside_a_mixer():
    assert learner_11.agrees(SOLUTION["11"]["mixer_block"])
    assert not learner_11.agrees(lambda x, *parts: x)


# ------------------------------------------------------------------ 13

MAE = icon_recipes.PretrainingSettings(dim=16, depth=2, num_heads=2, decoder_dim=8, decoder_depth=1, normalised=True)
IMAGES, NOISE = Draw(0)(3, 3, 32, 32), Draw(1)(3, 64)


@pytest.fixture
def mae():
    """One of the library, and the solution's class with its weights."""
    library = icon_recipes.build(MAE).eval()
    mine = SOLUTION["13"]["mae"](**models.sizes(library)).eval()
    copy_weights(library, mine, models.NAMES)
    return library, mine


@torch.no_grad()
def test_patches_target_loss_and_classifier_of_a_masked_autoencoder_are_those_of_the_library(mae):
    library, mine = mae
    predicted, masked = library(IMAGES, NOISE)
    found = mine(IMAGES, NOISE)
    assert (found[0] - predicted).abs().max() < 1e-4 and torch.equal(found[1], masked)
    target = SOLUTION["13"]["normalised_target"](patchify(IMAGES, 4))
    torch.testing.assert_close(target, library.target(IMAGES))
    torch.testing.assert_close(SOLUTION["13"]["hidden_loss"](predicted, target, masked), library.loss(IMAGES, NOISE))
    ours, tuned = icon_recipes.encoder_of(library, num_classes=6), SOLUTION["13"]["fine_tune"](mine.encoder, 16, 6)
    nn.init.normal_(tuned.head.weight)
    ours.head.load_state_dict(tuned.head.state_dict())
    torch.testing.assert_close(tuned(IMAGES), ours(IMAGES), atol=1e-4, rtol=1e-4)


def test_the_shipped_sizes_have_as_many_parameters_as_the_page_computes():
    ours = icon_recipes.build(icon_recipes.SETTINGS)
    mine = SOLUTION["13"]["mae"](**models.sizes(ours))
    assert sum(p.numel() for p in mine.parameters()) == 203_200 + 62_160
    assert sum(p.numel() for p in ours.parameters()) == 203_200 + 62_160 + 64 * (64 + 48)


def test_a_linear_probe_learns_and_leaves_the_encoder_as_it_is():
    encoder, labels = Tokens(3, 16, 4), torch.arange(120) % 3
    before = copy.deepcopy(encoder.state_dict())
    images = 0.3 * torch.randn(120, 3, 8, 8)
    for channel in range(3):
        images[labels == channel, channel] += 1
    logits = SOLUTION["13"]["linear_probe"](encoder, images[:60], labels[:60], images[60:], 3, 50, 0.5)
    assert (logits.argmax(dim=1) == labels[60:]).float().mean() > 0.9
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_the_formula_of_the_cost_counts_the_operations_that_the_encoder_does_and_gives_the_factor_of_the_paper(mae):
    library, cost = mae[0].requires_grad_(False), SOLUTION["13"]["encoder_cost"]
    patches = library.embed(IMAGES[:1])
    for ratio, visible in ((0.0, 64), (0.5, 32), (0.75, 16)):
        counted = count_flops(lambda visible=visible: library.encode(patches[:, :visible]))
        assert cost(64, ratio, 16, 2, 64) == counted
    visible, whole, decoder = cost(196, 0.75, 1024, 24, 4096), cost(196, 0, 1024, 24, 4096), cost(196, 0, 512, 8, 2048)
    assert whole / visible == pytest.approx(4.1, abs=0.05)
    assert (whole + decoder) / (visible + decoder) == pytest.approx(3.3, abs=0.05)
    assert cost(64, 0, 64, 4, 256) / cost(64, 0.75, 64, 4, 256) == pytest.approx(4.5, abs=0.05)


def test_positions_tell_all_patches_apart():
    codes = positions_2d(8, 48)
    assert codes.shape == (64, 48) and torch.cdist(codes, codes).add(torch.eye(64)).min() > 0.5


def test_the_card_has_both_effects_of_the_division_for_every_seed():
    tests = [seed["test"] for seed in load_trained("attention").card["seeds"]]
    assert len(tests) == 3 and all({"BLEU, small steps", "BLEU, small start"} <= {*test} for test in tests)

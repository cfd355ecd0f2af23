"""Lessons 14 to 17: a function of the library is a right answer, and a solution opens the library's models."""

import itertools
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import DoesNotOpen, compare, copy_weights
from course_lib.data import mazes
from course_lib.functional import ctc, diffusion
from course_lib.functional.attention import causal_mask, local_mask
from course_lib.functional.experts import load_balance_loss
from course_lib.functional.images import fully_connected_as_convolution, max_unpool
from course_lib.functional.language import corrupt_spans
from course_lib.functional.linear_attention import LinearState, linear_attention, linear_step
from course_lib.functional.losses import cross_entropy
from course_lib.functional.positions import relative_buckets
from course_lib.functional.segmentation import (
    confusion_matrix,
    connected_components,
    dice_loss,
    intersection_over_union,
    mask_boxes,
)
from course_lib.layers.experts import MixtureOfExperts, route
from course_lib.lessons.lesson_14 import diffusion_recipes, icon_recipes
from course_lib.lessons.lesson_14.models import MODELS as MODELS_14
from course_lib.lessons.lesson_15.models import MODELS as MODELS_15
from course_lib.lessons.lesson_15.models import NAMES as NAMES_OF_T5
from course_lib.lessons.lesson_15.models import opened
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.lessons.lesson_15.recipes.t5_layouts import layout_mask
from course_lib.lessons.lesson_16.models import MODELS as MODELS_16
from course_lib.lessons.lesson_16.models import OfSeveralImages
from course_lib.lessons.lesson_17.models import MODELS as MODELS_17
from course_lib.lessons.lesson_17.tasks import CHAINS, NEAR, OF_GRADIENTS, chosen_machine, generator
from course_lib.models import boltzmann
from course_lib.models.bert import BERTConfig
from course_lib.models.conformer import ConformerBlock, ConformerConfig, ConvModule
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.flamingo import Flamingo, FlamingoConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.imitation import GAIL, ImitationConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.vilbert import CoLayer, ViLBERTConfig
from tests.lessons.modern import page_of

close = torch.testing.assert_close


def solution(lesson, task):
    return page_of(lesson).tasks[task]


# ------------------------------------------------------------------------------------------ the library as an answer


def segmentation_loss(logits, labels, ignore):
    kept = labels != ignore
    z, y = logits.movedim(1, -1)[kept].T[None, :, :, None], labels[kept][None, :, None]
    return F.cross_entropy(z, y) + dice_loss(z, y)


def overlap(predicted, true, num_classes):
    iou = intersection_over_union(confusion_matrix(predicted, true, num_classes))
    return torch.stack([iou, 2 * iou / (1 + iou)])


def add_noise(images, noise, t, alpha_bars):
    betas = 1 - alpha_bars / torch.cat([torch.ones(1), alpha_bars[:-1]])
    return diffusion.add_noise(images, noise, t, diffusion.NoiseSchedule(betas))


def denoise_step(*given):
    return diffusion.denoise_step(*given[:-1], diffusion.NoiseSchedule(given[-1]))


def boxes(mask, smallest):
    numbers = connected_components(mask[None].long())[0]
    masks = numbers == torch.arange(1, int(numbers.max()) + 1)[:, None, None]
    return [tuple(box) for box in mask_boxes(masks[masks.sum(dim=(1, 2)) >= smallest]).tolist()]


def corrupt(ids, spans, first_sentinel):
    dropped = torch.zeros(len(ids), dtype=torch.bool)
    for first, end in spans:
        dropped[first:end] = True
    return corrupt_spans(torch.tensor(ids), dropped, first_sentinel=first_sentinel)


def ctc_loss(log_probs, target, blank=0):
    lengths = torch.tensor([len(log_probs)]), torch.tensor([len(target)])
    return ctc.ctc_loss(log_probs[None], target[None], *lengths, blank=blank)[0]


def beam(log_probs, width, blank=0):
    return ctc.prefix_beam_search(log_probs, width=width, blank=blank)


class LibraryBlock(ConformerBlock):
    def __init__(self, dim, num_heads, mlp_dim, kernel_size):
        sizes = {"dim": dim, "num_heads": num_heads, "mlp_dim": mlp_dim, "kernel_size": kernel_size}
        super().__init__(ConformerConfig(**sizes, dropout=0.0))


class Known(GAIL):
    """The library's GAIL, whose pairs are the logits of its discriminator."""

    def __init__(self):
        super().__init__(ImitationConfig(state_dim=1, action_dim=1))

    def judge(self, states, actions):
        return states[..., 0]


def discriminator_loss(policy, expert):
    return Known().discriminator_loss(*(each[:, None] for logits in (policy, expert) for each in (logits, logits)))


class Streams(nn.Module):
    """The co-attention of the library's ViLBERT."""

    def __init__(self, text_dim, image_dim, num_heads):
        super().__init__()
        sizes = {"dim": text_dim, "num_heads": num_heads, "mlp_dim": 4 * text_dim, "norm_eps": 1e-5, "dropout": 0.0}
        text = BERTConfig(vocab_size=9, context_length=7, **sizes)
        sizes = {"image_dim": image_dim, "image_num_heads": num_heads, "image_mlp_dim": 4 * image_dim}
        layer = CoLayer(ViLBERTConfig(text=text, region_dim=5, **sizes, co_depth=1))
        self.text_co, self.image_co = layer.text_co, layer.image_co

    def forward(self, words, regions, words_valid=None):
        mask = None if words_valid is None else words_valid[:, None, None]
        return self.text_co(words, regions), self.image_co(regions, words, mask=mask)


def step(q, k, v, s, z):
    output, state = linear_step(q, k, v, LinearState(s, z))
    return output, state.s, state.z


def routed(logits, k):
    gates, chosen = route(logits, k)
    return torch.zeros_like(logits).scatter(1, chosen, gates)


LIBRARY = {
    "14": {
        "fc_as_convolution": fully_connected_as_convolution,
        "unpool": max_unpool,
        "transposed_convolution": lambda image, kernel, stride: F.conv_transpose2d(image, kernel, stride=stride),
        "segmentation_loss": segmentation_loss,
        "overlap": overlap,
        "add_noise": add_noise,
        "denoise_step": denoise_step,
        "boxes": boxes,
    },
    "15": {
        "corrupt": corrupt,
        "bucket": relative_buckets,
        "prefix_mask": lambda source, target: layout_mask(source, source + target),
        "collapse": ctc.collapse,
        "ctc_loss": ctc_loss,
        "beam": beam,
        "conv_module": ConvModule,
        "conformer_block": LibraryBlock,
    },
    "16": {
        "cloning_loss": lambda logits, actions, valid: cross_entropy(logits, actions, scored=valid),
        "discriminator_loss": discriminator_loss,
        "imitation_reward": lambda logits: Known().rewards(logits[..., None], logits[..., None]),
        "co_attention": Streams,
        "to_go": lambda rewards: mazes.returns_to_go(rewards.float()),
    },
    "17": {
        "linear_attention": lambda q, k, v: linear_attention(q, k, v, causal=True),
        "linear_step": step,
        "local_mask": lambda length, window: local_mask(length, window=window) & causal_mask(length),
        "route": routed,
        "balance": load_balance_loss,
        "MoE": lambda dim, hidden, num_experts, k: MixtureOfExperts(dim, hidden, num_experts, k=k),
    },
}


@pytest.mark.parametrize(("lesson", "task"), [(lesson, task) for lesson in LIBRARY for task in LIBRARY[lesson]])
def test_what_the_library_computes_is_a_right_answer(lesson, task):
    ours = LIBRARY[lesson][task]
    report = solution(lesson, task).run(lambda *given, **named: ours(*given, **named))  # hides names that are forbidden
    assert report.misconceptions == []


def test_buckets_are_the_librarys_also_where_rounding_decides():
    bucket, everything = solution("15", "bucket").reference, torch.arange(-300, 301)
    for sizes, both in itertools.product(((32, 128), (16, 32), (8, 16)), (True, False)):
        names = {"bidirectional": both, "num_buckets": sizes[0], "max_distance": sizes[1]}
        assert torch.equal(bucket(everything, **names), relative_buckets(everything, **names))


# --------------------------------------------------------------------------------------------------- models are opened


def shaken(model):
    """The model with other norms, biases and gates than those that it begins with."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight += 0.3 * torch.randn_like(weight) if weight.dim() < 2 or "bias" in name else 0
    return model.eval()


@pytest.fixture
def few_sentences(monkeypatch):
    """A tokenizer of few sentences, which is learned quickly."""
    monkeypatch.setattr(text_to_text, "PLAIN", 60)
    text_to_text.tokenizer.cache_clear()
    yield
    text_to_text.tokenizer.cache_clear()


LANGUAGE = GPTConfig(vocab_size=11, context_length=7, dim=8, depth=2, num_heads=2, dropout=0.0)
FLAMINGO = FlamingoConfig(language=LANGUAGE, vision_dim=6, num_latents=3, resampler_depth=1, num_heads=2, head_dim=4)
DECISION = {"state_dim": 150, "action_dim": 4, "max_steps": 40, "dim": 8, "depth": 2, "num_heads": 2}
OURS = {  # the lesson, the task, what the lesson ships, and a model of the library of the same form
    "unet": ("14", "unet", MODELS_14["unet"], lambda: icon_recipes.build(icon_recipes.IconSegmentation(seed=1))),
    "diffusion": (
        "14",
        "unet",
        MODELS_14["diffusion"],
        lambda: diffusion_recipes.build(diffusion_recipes.DiffusionSettings(seed=1)),
    ),
    "t5": (
        "15",
        "t5",
        MODELS_15["t5"],
        lambda: opened(shaken(text_to_text.build(text_to_text.TextSettings(seed=1)))),
    ),
    "conformer": ("15", "conformer", MODELS_15["conformer"], lambda: speech.build(speech.SpeechSettings(seed=1))),
    "mazes": (
        "16",
        "decision_transformer",
        MODELS_16["mazes"],
        lambda: DecisionTransformer(DecisionTransformerConfig(**DECISION, tanh=False, dropout=0.0)),
    ),
    "pictures_and_words": ("16", "flamingo", MODELS_16["pictures_and_words"], lambda: OfSeveralImages(FLAMINGO)),
    "MoE": ("17", "MoE", MODELS_17["MoE"], lambda: MixtureOfExperts(6, 10, 4, k=2)),
    "RBM": ("17", "RBM", MODELS_17["RBM"], lambda: boltzmann.RBM(MODELS_17["RBM"].model().config)),
}
INPUTS = {  # of models that are smaller than what is shipped
    "pictures_and_words": lambda: (torch.randint(11, (4, 7)), torch.randn(4, 1, 5, 6)),
    "MoE": lambda: (torch.randn(2, 5, 6),),
}


def both(name, change=None):
    """A model of the library, that of the solution with perhaps a change, which has its weights, and their inputs."""
    lesson, task, known, build = OURS[name]
    ours, task = shaken(build()), solution(lesson, task)
    mine = task.reference.changed((change,) if change else ())(**known.sizes(ours)).eval()
    assert copy_weights(ours, mine, known.names) == sum(p.numel() for p in ours.parameters())
    return ours, mine, INPUTS.get(name, known.inputs)(), known.names


@pytest.mark.usefixtures("few_sentences")
@pytest.mark.parametrize("name", [name for name in OURS if name != "t5"])  # which is that of the solution
def test_the_solution_opens_a_model_of_the_library(name):
    compare(*both(name))


@pytest.mark.usefixtures("few_sentences")
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("unet", ("[skips.pop(), x]", "[x, skips.pop()]"), "between `up.0` and `merge.0`, in `UNet.forward`"),
        ("unet", ("F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)"), "between `down.0` and `down.1`, in `UNet.forward`"),
        ("t5", ("x = block(x, causal, bias,", "x = block(x, causal, None,"), "`decoder.0.attn.out_proj` differs"),
        ("t5", ("self.encoder_bias(x.shape[1])", "self.decoder_bias(x.shape[1])"), "differs"),
        ("conformer", ("block(x, distances, valid)", "block(x, distances)"), "`blocks.0"),
        ("mazes", ("1::3", "2::3"), "in `DecisionTransformer.forward`"),
        ("mazes", ("x = self.embed_norm(x)", "x = self.embed_norm(x).relu()"), "between `embed_norm` and `blocks.0"),
        ("mazes", ("self.return_embed", "self.embed_return"), "embed_return"),
        ("pictures_and_words", (" + language.pos_embed(positions)", ""), "in `Flamingo.forward`"),
        ("RBM", ("return self.free_energy(v)", "return -self.free_energy(v)"), "Look in `RBM.forward`"),
    ],
)
def test_a_model_that_does_not_open_is_told_where_it_differs(name, change, said):
    with pytest.raises(DoesNotOpen, match=re.escape(said)):
        compare(*both(name, change))


@pytest.mark.usefixtures("few_sentences")
def test_a_t5_of_the_library_computes_the_same_in_the_learners_class():
    ours = shaken(text_to_text.build(text_to_text.TextSettings(seed=1))).double()
    mine = opened(ours).double()
    copy_weights(ours, mine, NAMES_OF_T5)
    source, target, valid = MODELS_15["t5"].inputs()
    with torch.no_grad():
        found, wanted = mine(source, target, valid), ours(source, target, source_valid=valid)
    assert not valid.all() and (found - wanted).abs().max() < 1e-10 * wanted.abs().max()
    assert mine.head.weight is mine.token_embed.weight


def test_a_t5_in_the_released_sizes_opens():
    ours = T5(T5Config(vocab_size=40, dim=16, depth=(2, 2), num_heads=3, head_dim=8, mlp_dim=24)).eval()
    tokens, valid = torch.randint(1, 40, (2, 3, 150)), torch.ones(3, 150, dtype=torch.bool)
    close(opened(ours)(*tokens, valid), ours(*tokens), rtol=1e-4, atol=1e-4)


def test_a_flamingo_for_several_images_is_the_librarys():
    ours, several = shaken(Flamingo(FLAMINGO)), OfSeveralImages(FLAMINGO)
    several.load_state_dict(ours.state_dict())
    tokens, images = INPUTS["pictures_and_words"]()
    close(several.eval()(tokens, images), ours(tokens, images[:, 0]))
    for none_or_two in (images[:, 0], images.expand(-1, 2, -1, -1)):
        with pytest.raises(ValueError, match="takes one image"):
            several(tokens, none_or_two)


def test_the_inputs_of_the_machine_are_zeros_and_ones():
    assert set(MODELS_17["RBM"].inputs()[0].unique().tolist()) == {0.0, 1.0}


# ------------------------------------------------------------------------------------------------ experts and machines


def test_an_expert_that_nobody_chooses_does_no_harm_and_an_expert_sees_its_own_tokens_only():
    torch.manual_seed(0)
    layer, rows = solution("17", "MoE").module(4, 8, 5, 2), []
    with torch.no_grad():
        layer.router.weight[0] = 0
        layer.router.weight[1:] = layer.router.weight[1:].abs()
    for expert in layer.experts:
        expert.register_forward_hook(lambda _part, given, _made: rows.append(len(given[0])))
    assert layer(torch.rand(3, 4, 4)).isfinite().all()
    assert sum(rows) == 2 * 12 and rows[0] == 0


@pytest.fixture
def machine():
    """A machine of the library whose biases are not zero."""
    torch.manual_seed(0)
    rbm = boltzmann.RBM(boltzmann.RBMConfig(num_visible=5, num_hidden=3))
    with torch.no_grad():
        for weight in rbm.parameters():
            weight.normal_()
    return rbm


def weights_of(rbm):
    return rbm.weight.detach(), rbm.visible_bias.detach(), rbm.hidden_bias.detach()


def states(count):
    return torch.tensor([*itertools.product([0.0, 1.0], repeat=count)])


def test_a_gibbs_step_is_one_of_the_library(machine):
    v, noise = states(5), torch.rand(32, 8)
    h, new = solution("17", "gibbs").reference(v, *weights_of(machine), noise[:, :3], noise[:, 3:])
    assert torch.equal(new, machine.gibbs(v, noise)) and h.shape == (32, 3)


def test_contrastive_divergence_is_minus_the_gradient_of_the_librarys_contrast(machine):
    v, random = states(5), generator(3)
    fantasy = v
    for _ in range(2):
        noise = [torch.rand(32, size, generator=random) for size in (3, 5)]
        fantasy = machine.gibbs(fantasy, torch.cat(noise, dim=1))
    machine.contrast(v, fantasy).backward()
    slopes = (-machine.weight.grad, -machine.visible_bias.grad, -machine.hidden_bias.grad)
    close(solution("17", "cd_step").reference(v, *weights_of(machine), 2, generator(3)), slopes)


@pytest.mark.parametrize("k", [1, 3])
def test_the_mean_of_many_chains_is_what_all_paths_of_a_chain_come_to(k):
    v, W, b, c = chosen_machine(*OF_GRADIENTS)
    every, hidden = states(4), states(3)

    def chance(p, outcome):
        return torch.where(outcome == 1, p, 1 - p).prod(dim=-1)

    given_v = chance((every @ W.T + c).sigmoid()[:, None], hidden[None])
    given_h = chance((hidden @ W + b).sigmoid()[:, None], every[None])
    starts = (v[:, None] == every).all(dim=-1).float().mean(dim=0)
    end = starts @ torch.matrix_power(given_v @ given_h, k)
    p, change = (every @ W.T + c).sigmoid(), (starts - end)[:, None]
    wanted = (p * change).T @ every, (every * change).sum(0), (p * change).sum(0)
    for seed in range(5):
        close(solution("17", "cd_step").reference(v, W, b, c, k, generator(seed)), wanted, atol=NEAR / 2, rtol=0)
    assert len(v) == CHAINS


def test_the_solution_dreams_as_a_machine_of_the_library_does(machine):
    known = MODELS_17["RBM"]
    mine = solution("17", "RBM").module(**known.sizes(machine))
    copy_weights(machine, mine, known.names)
    v = states(5)
    with torch.no_grad():
        close(mine.hidden(v), machine.features(v))
        close(mine.visible(mine.hidden(v)), machine.visible(machine.features(v)))
        dream, random = mine.dream(v, 2, generator(1)), generator(1)
        noise = [torch.rand(32, size, generator=random) for size in (3, 5, 3)]
        first = machine.gibbs(v, torch.cat(noise[:2], dim=1))
        close(dream, machine.visible((noise[2] < machine.features(first)).float()))

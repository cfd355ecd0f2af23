"""Pictures and words in three layouts: two streams that ask each other, a frozen language model that looks through
gates, and one stream of patches and words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.captions import ASPECTS, DIGIT_WORDS, INKS, PLACES, SIZES, caption_tokenizer, captions, right_words
from course_lib.data.checkpoints import load_trained
from course_lib.data.draws import generator
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.functional.losses import cross_entropy
from course_lib.generation import LanguageModel, greedy
from course_lib.layers.patches import patchify
from course_lib.models.bert import BERTConfig
from course_lib.models.flamingo import Flamingo, flamingo_on
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by
from course_lib.training.seeding import seeded

SPLIT_SCENES = {"train": 12_000, "validation": 1500, "test": 2000}
CLUTTER = (0.0, 1.0)  # of the textures; each scene draws its own
FIELDS = 4  # across and down: the fields that stand for a scene
PATCH = 8  # pixels, where a model sees pixels
CANDIDATES, GROUPS = 20, 40  # a search is among so many scenes with different captions; searches for each split: both
LONGEST = 10  # words; a caption has seven
WORDS = {"size": SIZES, "ink": INKS, "digit": DIGIT_WORDS, "place": PLACES}


class Examples(NamedTuple):
    """Scenes, as a frozen eye and as pixels, with their captions."""

    fields: Float[Tensor, "N R F"]
    patches: Float[Tensor, "N P p"]
    words: Int[Tensor, "N T"]  # from start sign to end sign

    def take(self, rows: Int[Tensor, " B"]) -> "Examples":
        return Examples(*(each[rows] for each in self))


@torch.no_grad()
def look(pixels: Float[Tensor, "B 1 S S"]) -> Float[Tensor, "B R F"]:
    """What the frozen trunk of lesson 01 sees in each of 4 x 4 fields: its maps of all stages, averaged there."""
    trunk = load_trained("resnet").model
    parts = [trunk.feature_maps(standardise(part)) for part in pixels.split(500)]
    maps = torch.cat([torch.cat([F.adaptive_avg_pool2d(m, FIELDS) for m in stages], dim=1) for stages in parts])
    return F.layer_norm(fields := maps.flatten(2).mT.contiguous(), fields.shape[2:])


@cache
def examples(split: str) -> Examples:
    """The scenes of a split."""
    scenes = DigitScenes(split=split, clutter=CLUTTER).batch(SPLIT_SCENES[split], seed=2**32 - 1)
    words, _ = caption_tokenizer().encode_batch(captions(scenes), start=True, end=True)
    return Examples(look(scenes.pixels), patchify(standardise(scenes.pixels), PATCH), words)


def boxes_of(fields: Float[Tensor, "B R F"]) -> Float[Tensor, "B R 4"]:
    """Where the fields of each scene lie."""
    return grid_boxes(FIELDS, FIELDS).expand(len(fields), -1, -1)


# --------------------------------------------------------------------------------------------- captions


@dataclass(frozen=True, kw_only=True)
class CaptionerSettings:
    """A GPT that writes captions: "flamingo", which is trained on text first and then frozen, or "one stream"."""

    model: str
    sees: str = "fields"  # of a frozen ResNet, or "patches" of pixels
    dim: int = 48
    depth: int = 2
    num_heads: int = 4
    num_latents: int = 8  # of a Flamingo's resampler
    resampler_depth: int = 1
    text_steps: int = 1000  # of a Flamingo's language model, before it is frozen
    steps: int = 1000
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    seed: int = 0


def seen(settings: CaptionerSettings, some: Examples) -> Float[Tensor, "B N C"]:
    """What a captioner is shown of each scene: the fields, each beside its place, or the patches."""
    if settings.sees == "patches":
        return some.patches
    return torch.cat([some.fields, boxes_of(some.fields)], dim=-1)


def build_captioner(settings: CaptionerSettings, language: GPT | None) -> nn.Module:
    """A fresh model; its first weights depend on the seed, and on a `language` model that it is built on."""
    _, num_seen, dim_seen = seen(settings, examples("validation")).shape
    with seeded(settings.seed):
        if language is not None:
            sizes = {"num_latents": settings.num_latents, "resampler_depth": settings.resampler_depth}
            sizes |= {"num_heads": settings.num_heads, "head_dim": settings.dim // settings.num_heads}
            return flamingo_on(language, vision_dim=dim_seen, **sizes)
        config = MultimodalGPTConfig(language=gpt_config(settings, num_seen + LONGEST), patch_dim=dim_seen)
        return MultimodalGPT(config)


def gpt_config(settings: CaptionerSettings, context_length: int) -> GPTConfig:
    sizes = {"dim": settings.dim, "depth": settings.depth, "num_heads": settings.num_heads, "dropout": 0.0}
    return GPTConfig(vocab_size=len(caption_tokenizer()), context_length=context_length, **sizes)


def train_language(settings: CaptionerSettings, checkpoint: Path | None) -> GPT:
    """A GPT of captions without pictures."""
    with seeded(settings.seed):
        model = GPT(gpt_config(settings, LONGEST))
    words = examples("train").words
    rows_at = shuffled_batches(len(words), settings.batch_size, settings.seed)

    def loss(model: GPT, rows: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        return cross_entropy(model(words[rows, :-1]), words[rows, 1:])

    first = replace(settings, steps=min(settings.text_steps, settings.steps))
    return fit_by(first, model, rows_at, loss, checkpoint=checkpoint).model


def train_captioner(settings: CaptionerSettings, checkpoint: Path | None) -> Trained:
    """Teacher forcing: at each place the true words before it are given, and the next one is asked for."""
    language = None
    if settings.model == "flamingo":
        language = train_language(settings, None if checkpoint is None else checkpoint / "language")
    known, model = examples("train"), build_captioner(settings, language)
    rows_at = shuffled_batches(len(known.words), settings.batch_size, settings.seed)

    def loss(model: nn.Module, rows: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        some = known.take(rows)
        return cross_entropy(model(some.words[:, :-1], seen(settings, some)), some.words[:, 1:])

    return fit_by(settings, model, rows_at, loss, **common_config(settings, checkpoint))


def common_config(settings: "Settings", checkpoint: Path | None) -> dict:
    extra = {"tokenizer": caption_tokenizer().state_dict()}
    return {"warmup": settings.steps // 10, "checkpoint": checkpoint, "extra": extra}


def write(model: LanguageModel, count: int) -> list[str]:
    """The likeliest caption of each of `count` scenes, word by word."""
    tokenizer = caption_tokenizer()
    start = torch.full((count, 1), tokenizer.start_id)
    ids = greedy(model, start, max_new_tokens=LONGEST - 1, end_id=tokenizer.end_id)
    return [" ".join(tokenizer.sentence(row)) for row in ids]


def caption_scores(one: Trained, split: str) -> Scores:
    """The share of captions that are right, as a whole and word by word."""
    held_out = examples(split)
    wanted = [" ".join(caption_tokenizer().sentence(row[1:])) for row in held_out.words]
    return right_words(write(one.model.given(seen(one.settings, held_out)), len(wanted)), wanted)


# --------------------------------------------------------------------------------------------- retrieval


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings:
    """A ViLBERT that tells the caption of a scene from three that are not."""

    dim: int = 48
    depth: int = 2  # blocks of text, the last `co_depth` of them behind a co-attention
    co_depth: int = 2
    num_heads: int = 4
    steps: int = 1000
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    seed: int = 0


Settings = CaptionerSettings | RetrievalSettings


def build_retriever(settings: RetrievalSettings) -> ViLBERT:
    """A fresh model; its first weights depend on the seed alone."""
    sizes = {"dim": settings.dim, "depth": settings.depth, "num_heads": settings.num_heads, "mlp_dim": 4 * settings.dim}
    text = BERTConfig(vocab_size=len(caption_tokenizer()), context_length=LONGEST, dropout=0.0, **sizes)
    image = {"image_dim": settings.dim, "image_num_heads": settings.num_heads, "image_mlp_dim": 4 * settings.dim}
    image |= {"region_dim": examples("validation").fields.shape[2], "joint_dim": settings.dim}
    with seeded(settings.seed):
        return ViLBERT(ViLBERTConfig(text=text, **image, co_depth=settings.co_depth))


def changed(words: Int[Tensor, "B T"], random: torch.Generator) -> Int[Tensor, "B T"]:
    """Each caption with one thing said wrongly: the hard alternative."""
    tokenizer, words, batch = caption_tokenizer(), words.clone(), len(words)
    which = torch.randint(len(WORDS), (batch,), generator=random)
    for number, (name, options) in enumerate(WORDS.items()):
        rows, column = (which == number).nonzero()[:, 0], ASPECTS[name] + 1  # behind the start sign
        ids = torch.tensor(tokenizer.encode(" ".join(options)))
        now = (words[rows, column, None] == ids).long().argmax(dim=1)
        shift = 1 + torch.randint(len(ids) - 1, (len(rows),), generator=random)
        words[rows, column] = ids[(now + shift) % len(ids)]
    return words


def train_retriever(settings: RetrievalSettings, checkpoint: Path | None) -> Trained:
    """Section 3.2 of Lu et al., "caption-based image retrieval": which of four pairs belongs together, by softmax.

    The others have another scene's caption, another scene, or a caption in which one thing is wrong.
    """
    known = examples("train")
    rows_at = shuffled_batches(len(known.words), settings.batch_size, settings.seed)

    def batch_at(step: int) -> tuple[Tensor, Tensor]:
        some = known.take(rows_at(step))
        wrong = changed(some.words, generator("alternatives", settings.seed, step))
        words = torch.cat([some.words, some.words.roll(1, 0), some.words, wrong])
        return words, torch.cat([some.fields, some.fields, some.fields.roll(1, 0), some.fields])

    def loss(model: ViLBERT, batch: tuple[Tensor, Tensor]) -> Float[Tensor, ""]:
        words, fields = batch
        scores = model(words, fields, boxes_of(fields)).unflatten(0, (4, -1)).T
        return cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))

    return fit_by(settings, build_retriever(settings), batch_at, loss, **common_config(settings, checkpoint))


def groups(words: Int[Tensor, "N T"], size: int) -> list[Int[Tensor, " S"]]:
    """Groups of scenes in which no caption comes twice, so that each search has one answer."""
    found: list[dict[tuple[int, ...], int]] = []
    for number, row in enumerate(map(tuple, words.tolist())):
        group = next((each for each in found if row not in each and len(each) < size), None)
        if group is None:
            found.append(group := {})
        group[row] = number
    return [torch.tensor(list(group.values())) for group in found if len(group) == size]


@torch.no_grad()
def retrieval_scores(model: Callable[..., Tensor], held_out: Examples) -> Scores:
    """How often the right caption, or scene, has the highest score of all in its group."""
    right = []
    for rows in groups(held_out.words, CANDIDATES)[:GROUPS]:
        some = held_out.take(rows)
        fields = some.fields.repeat(len(rows), 1, 1)
        words = some.words.repeat_interleave(len(rows), 0)
        scores = model(words, fields, boxes_of(fields)).unflatten(0, (len(rows), -1))  # (captions, scenes)
        right.append([(scores.argmax(dim=axis) == torch.arange(len(rows))).float().mean() for axis in (1, 0)])
    found = torch.tensor(right).mean(dim=0).tolist()
    return dict(zip(("recall@1 of scenes", "recall@1 of captions"), found, strict=True))


# --------------------------------------------------------------------------------------------- the recipe


def train(settings: Settings, *, checkpoint: Path | None = None) -> Trained:
    """One variant."""
    learn: Callable = train_retriever if isinstance(settings, RetrievalSettings) else train_captioner
    return learn(settings, checkpoint)


def shut(flamingo: Flamingo) -> Flamingo:
    """The same model with its gates at 0: the language model alone."""
    other = Flamingo(flamingo.config).eval()
    other.load_state_dict({name: each * (".alpha" not in name) for name, each in flamingo.state_dict().items()})
    return other


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Captions that are right, and captions and scenes that are found."""
    found = {}
    for name, one in trained.items():
        searches = isinstance(one.settings, RetrievalSettings)
        of_one = retrieval_scores(one.model, examples(split)) if searches else caption_scores(one, split)
        found |= {f"{key}, {name}": value for key, value in of_one.items()}
        if isinstance(one.model, Flamingo):
            blind = replace(one, model=shut(one.model))
            found |= {f"{key}, {name}, gates at 0": value for key, value in caption_scores(blind, split).items()}
    return found


ONE_STREAM = CaptionerSettings(model="one stream")
RECIPE = Recipe(
    title="Captions and retrieval: Flamingo, one stream, ViLBERT",
    lesson="15",
    data=(
        f"{SPLIT_SCENES['train']:,} scenes of one handwritten digit on a photograph's texture, strong or faint, with "
        "captions that are measured on them by course_lib.data.captions; validation 1,500, test 2,000 scenes, with "
        "digits and textures of their own; the eye is the shipped `resnet`, frozen, but for the variant that sees "
        f"pixels; a search is among {CANDIDATES} scenes with different captions"
    ),
    minutes=3,
    variants={
        "Flamingo": CaptionerSettings(model="flamingo"),
        "one stream": ONE_STREAM,
        "one stream of pixels": replace(ONE_STREAM, sees="patches"),
        "ViLBERT": RetrievalSettings(),
    },
    ships="Flamingo",
    train=train,
    scores=scores,
    chosen_by="exact, Flamingo",
    mode="max",
    timed=("Flamingo", "one stream", "one stream of pixels", "ViLBERT"),
)

RECIPES = {"pictures_and_words": RECIPE}

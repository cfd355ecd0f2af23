"""Images and words in three layouts: co-attention between two streams, a frozen language model with gated
cross-attention, and one stream of image tokens and words. The images are icon scenes, the text is their captions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.checkpoints import load_trained
from course_lib.data.draws import generator
from course_lib.data.icon_scenes import IconScenes, IconScenesBatch
from course_lib.data.icons import icon_names
from course_lib.functional.images import standardise
from course_lib.functional.losses import cross_entropy
from course_lib.generation import LanguageModel, greedy
from course_lib.layers.patches import patchify
from course_lib.layers.transformer import xavier_weights
from course_lib.models.bert import BERTConfig
from course_lib.models.flamingo import Flamingo, flamingo_on
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by, rounded
from course_lib.training.seeding import seeded
from course_lib.training.vision import normalised

THINGS = tuple(
    "banana bird cactus cat cow doughnut fox hamburger helicopter honeybee mushroom octopus pig rocket rose sailboat "
    "snowman spider star sunflower tomato tractor turtle umbrella".split()
)
SIZES, POSITIONS = ("small", "large"), ("left", "centre", "right")
PARTS = {"size": SIZES, "thing": THINGS, "position": POSITIONS}
CAPTION = re.compile(r"an? (\w+) (\w+) at the (\w+)")
LARGE = 0.55  # of the image's side: from this height or width on an icon is large
THIRDS = (0.44, 0.56)  # of the image's width: the middle of an icon between them is in the centre
SCALE = (0.4, 0.8)  # of an icon's side, of the image's
SPLIT_SCENES = {"train": 6000, "validation": 600, "test": 800}
SPLITS = {"train": "train", "validation": "validation", "test": "new designer"}  # of the icons and photographs
SIZE = 48  # pixels
FIELDS = 4  # across and down: the fields that stand for a scene
PATCH = 12  # pixels, where a model gets pixels: as many patches as fields
CANDIDATES, GROUPS = 20, 30  # a search is among so many scenes with different captions; searches for each split: both
LONGEST = 8  # tokens: six words between a start and an end token


class Examples(NamedTuple):
    """Scenes, as features of a frozen encoder and as pixels, with their captions."""

    fields: Float[Tensor, "N R F"]
    patches: Float[Tensor, "N P p"]
    words: Int[Tensor, "N T"]  # from the start token to the end token

    def take(self, rows: Int[Tensor, " B"]) -> "Examples":
        return Examples(*(each[rows] for each in self))


def scenes(split: str, count: int, seed: int) -> tuple[IconScenesBatch, list[str]]:
    """Scenes of one icon on a photograph, with their captions."""
    source = IconScenes(split=SPLITS[split], size=SIZE, things=(1, 1), names=THINGS, scale=SCALE)
    batch = source.batch(count, seed=seed)
    return batch, captions(batch)


def captions(batch: IconScenesBatch) -> list[str]:
    """What is on each image, how large, and where: all of it measured on the image."""
    boxes, names = batch.boxes[:, 0].double() / SIZE, [icon_names()[number] for number in batch.names[:, 0].tolist()]
    large = ((boxes[:, 2:] - boxes[:, :2]).amax(dim=1) >= LARGE).long().tolist()
    middle = (boxes[:, 0] + boxes[:, 2]) / 2
    position = (middle[:, None] >= torch.tensor(THIRDS)).sum(dim=1).tolist()
    return [caption(SIZES[i], name, POSITIONS[j]) for i, name, j in zip(large, names, position, strict=True)]


def caption(size: str, thing: str, position: str) -> str:
    """The sentence that says so."""
    return f"a {size} {thing} at the {position}"


def parts_of(text: str) -> tuple[str, str, str]:
    """Size, thing and position; three empty strings for a text of another form."""
    found = CAPTION.fullmatch(text)
    return (found[1], found[2], found[3]) if found else ("", "", "")


@cache
def tokenizer() -> WordTokenizer:
    """The words of all captions."""
    return WordTokenizer.train([" ".join(["a", *SIZES, *THINGS, "at", "the", *POSITIONS])])


def encoded(texts: Sequence[str]) -> Int[Tensor, "N T"]:
    """Captions as tokens from start to end; all have the same length."""
    return tokenizer().encode_batch(texts, start=True, end=True)[0]


def sentences(words: Int[Tensor, "N T"]) -> list[str]:
    """The captions that these tokens stand for."""
    return [" ".join(tokenizer().sentence(row)) for row in words[:, 1:]]


@torch.no_grad()
def encode_images(pixels: Float[Tensor, "B 3 S S"]) -> Float[Tensor, "B R F"]:
    """Features of 4 x 4 fields by the frozen ResNet of lesson 01 that names icons: its last feature maps."""
    encoder = load_trained("icon_names").model
    maps = [encoder.feature_maps(normalised(encoder, part))[-1] for part in pixels.split(100)]
    fields = F.adaptive_avg_pool2d(torch.cat(maps), FIELDS).flatten(2).mT.contiguous()
    return F.layer_norm(fields, fields.shape[2:])


@cache
def examples(split: str) -> Examples:
    """The scenes of a split."""
    batch, texts = scenes(split, SPLIT_SCENES[split], seed=2**32 - 1)
    return Examples(encode_images(batch.pixels), patchify(standardise(batch.pixels), PATCH), encoded(texts))


def boxes_of(fields: Float[Tensor, "B R F"]) -> Float[Tensor, "B R 4"]:
    """Where the fields of each scene are."""
    return grid_boxes(FIELDS, FIELDS).expand(len(fields), -1, -1)


# --------------------------------------------------------------------------------------------- captions


@dataclass(frozen=True, kw_only=True)
class CaptionerSettings:
    """A GPT that generates captions: "flamingo", which is trained on text first and then frozen, or "one stream"."""

    model: str
    image: str = "fields"  # of a frozen ResNet, or "patches" of pixels
    dim: int = 48
    depth: int = 2
    num_heads: int = 4
    num_latents: int = 8  # of a Flamingo's resampler
    resampler_depth: int = 1
    text_steps: int = 150  # of a Flamingo's language model, before it is frozen
    steps: int = 600
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    seed: int = 0


def with_boxes(fields: Float[Tensor, "B R F"]) -> Float[Tensor, "B R C"]:
    """The features of each field and, behind them, where it is, from -3 to 3: as large as the features."""
    return torch.cat([fields, 6 * boxes_of(fields) - 3], dim=-1)


def image_tokens(settings: CaptionerSettings, some: Examples) -> Float[Tensor, "B N C"]:
    """The image as a captioner gets it: the fields, each with its position, or the patches."""
    return some.patches if settings.image == "patches" else with_boxes(some.fields)


def build_captioner(settings: CaptionerSettings, language: GPT | None) -> nn.Module:
    """A fresh model; its first weights depend on the seed, and on a `language` model that it is built on."""
    _, count, dim = image_tokens(settings, examples("validation")).shape
    with seeded(settings.seed):
        if language is not None:
            sizes = {"num_latents": settings.num_latents, "resampler_depth": settings.resampler_depth}
            sizes |= {"num_heads": settings.num_heads, "head_dim": settings.dim // settings.num_heads}
            return flamingo_on(language, vision_dim=dim, **sizes)
        config = MultimodalGPTConfig(language=gpt_config(settings, count + LONGEST), patch_dim=dim)
        return MultimodalGPT(config)


def gpt_config(settings: CaptionerSettings, context_length: int) -> GPTConfig:
    sizes = {"dim": settings.dim, "depth": settings.depth, "num_heads": settings.num_heads, "dropout": 0.0}
    return GPTConfig(vocab_size=len(tokenizer()), context_length=context_length, **sizes)


def train_language(settings: CaptionerSettings, checkpoint: Path | None) -> GPT:
    """A GPT of captions without images."""
    with seeded(settings.seed):
        model = GPT(gpt_config(settings, LONGEST))
    words = examples("train").words
    rows_at = shuffled_batches(len(words), settings.batch_size, settings.seed)

    def loss(model: GPT, rows: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        return caption_loss(model(words[rows, :-1]), words[rows])

    first = replace(settings, steps=min(settings.text_steps, settings.steps))
    return fit_by(first, model, rows_at, loss, checkpoint=checkpoint).model


def caption_loss(logits: Float[Tensor, "B T V"], words: Int[Tensor, "B L"]) -> Float[Tensor, ""]:
    """-ln p(next token), in nats, the mean over all tokens."""
    return cross_entropy(logits, words[:, 1:])


def train_captioner(settings: CaptionerSettings, checkpoint: Path | None) -> Trained:
    """Teacher forcing: the next word is predicted at each position, from the correct words before it."""
    language = None
    if settings.model == "flamingo":
        language = train_language(settings, None if checkpoint is None else checkpoint / "language")
    known, model = examples("train"), build_captioner(settings, language)
    rows_at = shuffled_batches(len(known.words), settings.batch_size, settings.seed)

    def loss(model: nn.Module, rows: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        some = known.take(rows)
        return caption_loss(model(some.words[:, :-1], image_tokens(settings, some)), some.words)

    return fit_by(settings, model, rows_at, loss, **common_config(settings, checkpoint))


def common_config(settings: "Settings", checkpoint: Path | None) -> dict:
    extra = {"tokenizer": tokenizer().state_dict()}
    return {"warmup": settings.steps // 10, "checkpoint": checkpoint, "extra": extra}


def generate(model: LanguageModel, count: int) -> list[str]:
    """The caption of each of `count` scenes, by greedy decoding."""
    start = torch.full((count, 1), tokenizer().start_id)
    ids = greedy(model, start, max_new_tokens=LONGEST - 1, end_id=tokenizer().end_id)
    return [" ".join(tokenizer().sentence(row)) for row in ids]


def correct(generated: Sequence[str], wanted: Sequence[str]) -> Scores:
    """The fraction of captions that are correct as a whole ("exact"), and in each of their parts."""
    pairs = [(parts_of(one), parts_of(other)) for one, other in zip(generated, wanted, strict=True)]
    right = {"exact": [one == other for one, other in zip(generated, wanted, strict=True)]}
    right |= {name: [one[at] == other[at] for one, other in pairs] for at, name in enumerate(PARTS)}
    return {name: sum(each) / len(each) for name, each in right.items()}


def caption_scores(one: Trained, split: str) -> Scores:
    """How many captions are correct, as a whole and part by part."""
    held_out = examples(split)
    generated = generate(one.model.given(image_tokens(one.settings, held_out)), len(held_out.words))
    return correct(generated, sentences(held_out.words))


# --------------------------------------------------------------------------------------------- retrieval


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings:
    """A ViLBERT that finds the pair that belongs together among four pairs of an image and a caption."""

    dim: int = 48
    depth: int = 2  # blocks of text, the last `co_depth` of them behind a co-attention
    co_depth: int = 2
    num_heads: int = 4
    steps: int = 350
    batch_size: int = 16
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    seed: int = 0


Settings = CaptionerSettings | RetrievalSettings


def build_retriever(settings: RetrievalSettings) -> ViLBERT:
    """A fresh model; its first weights depend on the seed alone."""
    sizes = {"dim": settings.dim, "depth": settings.depth, "num_heads": settings.num_heads, "mlp_dim": 4 * settings.dim}
    text = BERTConfig(vocab_size=len(tokenizer()), context_length=LONGEST, dropout=0.0, **sizes)
    image = {"image_dim": settings.dim, "image_num_heads": settings.num_heads, "image_mlp_dim": 4 * settings.dim}
    image |= {"region_dim": examples("validation").fields.shape[2], "joint_dim": settings.dim}
    with seeded(settings.seed):
        model = ViLBERT(ViLBERTConfig(text=text, **image, co_depth=settings.co_depth))
        return xavier_weights(model)  # BERT's weights are too small for so narrow a model: it hardly learns from them


def changed(words: Int[Tensor, "B T"], random: torch.Generator) -> Int[Tensor, "B T"]:
    """Each caption with one part wrong: the hard alternative."""
    texts = []
    for text in sentences(words):
        said = list(parts_of(text))
        which = int(torch.randint(len(PARTS), (), generator=random))
        others = [option for option in [*PARTS.values()][which] if option != said[which]]
        said[which] = others[int(torch.randint(len(others), (), generator=random))]
        texts.append(caption(*said))
    return encoded(texts)


def train_retriever(settings: RetrievalSettings, checkpoint: Path | None) -> Trained:
    """Section 3.2 of Lu et al., "caption-based image retrieval": which of four pairs belongs together, by softmax.

    The others have another scene's caption, another scene, or a caption in which one part is wrong.
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

    model = build_retriever(settings)
    return fit_by(settings, model, batch_at, loss, **common_config(settings, checkpoint))


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
        scores = model(words, fields, boxes_of(fields))
        scores = scores.unflatten(0, (len(rows), -1))  # (captions, scenes)
        right.append([(scores.argmax(dim=axis) == torch.arange(len(rows))).float().mean() for axis in (1, 0)])
    found = torch.tensor(right).mean(dim=0).tolist()
    return dict(zip(("recall@1 of scenes", "recall@1 of captions"), found, strict=True))


# --------------------------------------------------------------------------------------------- the recipe


def train(settings: Settings, *, checkpoint: Path | None = None) -> Trained:
    """One variant; the weights are rounded to 16 bits."""
    learn: Callable = train_retriever if isinstance(settings, RetrievalSettings) else train_captioner
    trained = learn(settings, checkpoint)
    rounded(trained.model)
    return trained


def closed(flamingo: Flamingo) -> Flamingo:
    """The same model with its gates at 0: the language model alone."""
    other = Flamingo(flamingo.config).eval()
    other.load_state_dict({name: each * (".alpha" not in name) for name, each in flamingo.state_dict().items()})
    return other


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Captions that are correct, and captions and scenes that are found."""
    found = {}
    for name, one in trained.items():
        searches = isinstance(one.settings, RetrievalSettings)
        of_one = retrieval_scores(one.model, examples(split)) if searches else caption_scores(one, split)
        found |= {f"{key}, {name}": value for key, value in of_one.items()}
        if isinstance(one.model, Flamingo):
            without = replace(one, model=closed(one.model))
            found |= {f"{key}, {name}, gates at 0": value for key, value in caption_scores(without, split).items()}
    return found


ONE_STREAM = CaptionerSettings(model="one stream")
RECIPE = Recipe(
    title="Captions and retrieval: Flamingo, one stream, ViLBERT",
    lesson="16",
    data=(
        f"{SPLIT_SCENES['train']:,} scenes of one icon on a photograph, {SIZE} x {SIZE} pixels in colour, by "
        f"course_lib.data.icon_scenes, with captions of its size, its name and its position; {len(THINGS)} things. "
        "Test: "
        f"{SPLIT_SCENES['test']} scenes of a designer of whom nothing is in the training, on other photographs; "
        f"validation: {SPLIT_SCENES['validation']} scenes of held-out drawings. The vision encoder is the shipped "
        "`icon_names`, frozen, but for the variant on pixels. A search is among "
        f"{CANDIDATES} scenes with different captions"
    ),
    minutes=3,
    variants={
        "Flamingo": CaptionerSettings(model="flamingo"),
        "one stream": ONE_STREAM,
        "one stream of pixels": replace(ONE_STREAM, image="patches"),
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

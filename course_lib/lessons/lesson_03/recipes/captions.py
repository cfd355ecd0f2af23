"""One to many: a frozen ResNet looks at a digit scene, and a recurrent network says what it is like.

Vinyals, Toshev, Bengio & Erhan, "Show and tell", CVPR 2015, arXiv 1411.4555: an encoder of images, trained before on
labels, and a recurrent decoder.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.captions import caption_tokenizer, captions, right_words
from course_lib.data.checkpoints import load_trained
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.generation import greedy
from course_lib.models.recurrent import SequenceGenerator, SequenceGeneratorConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.seeding import seeded

SPLIT_SCENES = {"train": 12_000, "validation": 1500, "test": 2000}
CLUTTER = (0.0, 1.0)  # of the textures; each scene draws its own
PLACES = 4  # across and down: each stage's maps are averaged in so many fields
LONGEST = 10  # words; a caption has seven


@dataclass(frozen=True, kw_only=True)
class CaptionSettings:
    """A recurrent writer of captions, and how it is trained."""

    cell: str = "rnn"  # or "gru"
    embed_dim: int = 32
    hidden_dim: int = 128
    dropout: float = 0.2
    sees: bool = True  # False: every image is replaced by nothing, to know what the language alone is worth
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    seed: int = 0


@torch.no_grad()
def look(pixels: Float[Tensor, "B 1 S S"]) -> Float[Tensor, "B C"]:
    """What the frozen backbone of lesson 01 sees: its maps of each stage, averaged in 4 x 4 fields, side by side."""
    backbone = load_trained("resnet").model
    parts = [backbone.feature_maps(standardise(part)) for part in pixels.split(500)]
    fields = [torch.cat([F.adaptive_avg_pool2d(m, PLACES).flatten(1) for m in maps], dim=1) for maps in parts]
    seen = torch.cat(fields)
    return F.layer_norm(seen, seen.shape[1:])


@cache
def examples(split: str) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N T"]]:
    """What is seen in each scene of a split, and the words to be said, from start sign to end sign."""
    scenes = DigitScenes(split=split, clutter=CLUTTER).batch(SPLIT_SCENES[split], seed=2**32 - 1)
    ids, _ = caption_tokenizer().encode_batch(captions(scenes), start=True, end=True)
    return look(scenes.pixels), ids


def build(settings: CaptionSettings) -> SequenceGenerator:
    """A fresh writer; its first weights depend on the seed alone."""
    sizes = {"vocab_size": len(caption_tokenizer()), "condition_dim": examples("validation")[0].shape[1]}
    with seeded(settings.seed):
        return SequenceGenerator(SequenceGeneratorConfig(**common(settings, SequenceGeneratorConfig) | sizes))


def train(settings: CaptionSettings, *, checkpoint: Path | None = None) -> Trained:
    """Teacher forcing: at each place the true words before it are given, and the next one is asked for."""
    seen, words = examples("train")
    rows_at = shuffled_batches(len(seen), settings.batch_size, settings.seed)

    def loss(model: SequenceGenerator, rows: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        logits = model(seen[rows] * settings.sees, words[rows, :-1])
        return F.cross_entropy(logits.flatten(0, 1), words[rows, 1:].flatten())

    config = {"warmup": min(100, settings.steps // 4), "extra": {"tokenizer": caption_tokenizer().state_dict()}}
    return fit_by(settings, build(settings), rows_at, loss, checkpoint=checkpoint, **config)


def write(model: SequenceGenerator, seen: Float[Tensor, "B C"]) -> list[str]:
    """The caption of each scene, the argmax at every step."""
    tokenizer = caption_tokenizer()
    start = torch.full((len(seen), 1), tokenizer.start_id)
    ids = greedy(model.given(seen), start, max_new_tokens=LONGEST, end_id=tokenizer.end_id)
    return [" ".join(tokenizer.sentence(row)) for row in ids]


def score(one: Trained, split: str) -> Scores:
    """The share of captions that are right, as a whole and word by word."""
    seen, words = examples(split)
    wanted = [" ".join(caption_tokenizer().sentence(row[1:])) for row in words]
    return right_words(write(one.model, seen * one.settings.sees), wanted)


RECIPE = Recipe(
    title="An RNN that writes captions of digit scenes",
    lesson="03",
    data=(
        f"{SPLIT_SCENES['train']:,} scenes of one handwritten digit on a photograph's texture, strong or faint, with "
        "captions that are measured on them by course_lib.data.captions; validation 1,500, test 2,000 scenes, with "
        "digits and textures of their own; the encoder is the shipped `resnet`, frozen"
    ),
    minutes=1,
    variants={
        "": CaptionSettings(),
        "GRU": CaptionSettings(cell="gru"),
        "without the picture": CaptionSettings(sees=False),
    },
    ships="",
    train=train,
    scores=each(score),
    chosen_by="exact",
    mode="max",
)

"""Lesson 16: the trained models that the learner's own classes open."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16.recipes import control, pictures_and_words
from course_lib.models.decision_transformer import DecisionTransformer
from course_lib.models.flamingo import Flamingo

FEW = 16  # trajectories, or texts
RESAMPLED = ("norm_features", "norm1", "attn", "norm2", "ffn")  # parts of a resampler's only layer


def sizes_for_mazes(model: DecisionTransformer) -> dict[str, int]:
    """The arguments of the learner's Decision Transformer."""
    config = model.config
    return {
        "state_dim": config.state_dim,
        "num_actions": config.action_dim,
        **{name: getattr(config, name) for name in ("max_steps", "dim", "depth", "num_heads")},
    }


def demonstrated_steps() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Windows of demonstrations: returns-to-go, states, actions and times."""
    settings = control.CloningSettings(model="transformer", returns=True, batch_size=FEW)
    batch = control.windows_at(control.demonstrations(0), settings)(0)
    taken = F.one_hot(batch["actions"], control.maze().num_actions).float()
    return batch["to_go"], batch["states"], taken, batch["times"]


class OfSeveralImages(Flamingo):
    """The library's Flamingo with the learner's arguments: features of M images for each text, of which M is 1."""

    def forward(self, tokens: Tensor, images: Tensor) -> Tensor:
        """The logits of each next token. Raises ValueError for more images than one."""
        if images.ndim != 4 or images.shape[1] != 1:
            raise ValueError(f"the trained model takes one image, (B, 1, N, C), got {tuple(images.shape)}")
        return super().forward(tokens, images[:, 0])


def with_an_axis(model: Flamingo) -> Flamingo:
    """The same model for features with an axis of images."""
    made = OfSeveralImages(model.config)
    made.load_state_dict(model.state_dict())
    return made.eval()


def sizes_for_captions(model: Flamingo) -> dict[str, int]:
    """The arguments of the learner's Flamingo."""
    language = model.config.language
    names = ("vocab_size", "context_length", "dim", "depth", "num_heads")
    return {name: getattr(language, name) for name in names} | {
        "vision_dim": model.config.vision_dim,
        "num_latents": model.config.num_latents,
    }


def unseen_captions() -> tuple[Tensor, Tensor]:
    """Captions of unseen scenes, and the features of each scene."""
    some = pictures_and_words.examples("test").take(torch.arange(FEW))
    settings = pictures_and_words.RECIPE.variants[pictures_and_words.RECIPE.ships]
    return some.words[:, :-1], pictures_and_words.image_tokens(settings, some)[:, None]


MODELS = {
    "mazes": Shipped(
        model=lambda: load_trained("mazes").model,
        sizes=sizes_for_mazes,
        inputs=demonstrated_steps,
        names={"time_embed.weight": "time_embed.table"},  # an nn.Embedding calls its table so
    ),
    "pictures_and_words": Shipped(
        model=lambda: with_an_axis(load_trained("pictures_and_words").model),
        sizes=sizes_for_captions,
        inputs=unseen_captions,
        names={"language.pos_embed.weight": "language.pos_embed.table"}
        | {f"resampler.{name}": f"resampler.layers.0.{name}" for name in RESAMPLED},
    ),
}

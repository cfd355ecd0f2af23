"""A family of its own, small and with everything that an official layout can have: the tests of files.py open it."""

from dataclasses import dataclass

import torch
from torch import nn

from course_lib.weights.layout import ACTIVATIONS, CONV1D, OFFICIAL_ACTIVATIONS, ONE_ROW, Layout


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    vocab_size: int = 7
    dim: int = 4
    depth: int = 2
    activation: str = "gelu"
    head: str | None = "tied"
    table: bool = True


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm = nn.BatchNorm1d(dim)  # has a whole number among its buffers


class Toy(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.table = nn.Embedding(3, config.dim) if config.table else None
        self.blocks = nn.ModuleList(Block(config.dim) for _ in range(config.depth))
        self.register_buffer("positions", torch.arange(float(config.dim)), persistent=False)
        self.head = None if config.head is None else nn.Linear(config.dim, config.vocab_size)
        if config.head == "tied":
            self.head.weight = self.embed.weight


def build(settings, architecture):
    settings.only(rotary=False)
    head = "tied" if settings.flag("tie_word_embeddings", True) else "linear"
    return Toy(
        ToyConfig(
            vocab_size=settings.integer("vocab_size"),
            dim=settings.integer("hidden_size"),
            depth=settings.integer("num_layers", 2),
            activation=settings.choice("act", ACTIVATIONS, "gelu"),
            table="table.weight" in settings.names,
            head=None if architecture == "ToyModel" else head,
        )
    )


def describe(model):
    config = model.config
    return {
        "architectures": ["ToyModel" if config.head is None else "ToyForSomething"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_layers": config.depth,
        "act": OFFICIAL_ACTIVATIONS[config.activation],
        "tie_word_embeddings": config.head != "linear",
    }


LAYOUT = Layout(
    model_type="toy",
    architectures=("ToyModel", "ToyForSomething"),
    trunk=[
        ("h.#.c_attn", "blocks.#.{q,k,v}_proj", CONV1D),
        ("h.#.batch_norm", "blocks.#.norm"),
        ("wte", "embed"),
        ("table.weight", "table.weight"),
    ],
    heads=[("final_bias", "head.bias", ONE_ROW), ("lm_head", "head")],
    prefix="toy.",
    shared={"wte.weight": "shared.weight"},
    aliases=[(r"\.gamma$", ".weight"), (r"^lm_head\.weight$", "shared.weight"), (r"^wte\.weight$", "shared.weight")],
    ignored=[r"position_ids$"],
    build=build,
    describe=describe,
)

"""A family of its own, small and with everything that an official layout can have: the tests of files.py open it."""

from dataclasses import dataclass

import torch
from torch import nn

from course_lib.weights.layout import ACTIVATIONS, CONV1D, FLAG, ONE_ROW, REQUIRED, Layout, integer


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    vocab_size: int = 7
    dim: int = 4
    depth: int = 2
    activation: str = "gelu"
    head: str | None = "tied"
    table: bool = True
    kernel: tuple[int, int] = (3, 5)
    num_classes: int = 2
    extra: int | None = None


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


def build(ours, architecture, names):
    head = "tied" if ours.pop("tied") else "linear"
    head = None if architecture == "ToyModel" else head
    return Toy(ToyConfig(**ours, table="table.weight" in names, head=head))


def describe(model):
    head = model.config.head
    return "ToyModel" if head is None else "ToyForSomething", vars(model.config) | {"tied": head != "linear"}


LAYOUT = Layout(
    model_type="toy",
    architectures=("ToyModel", "ToyForSomething"),
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "vocab_size", integer, REQUIRED),
        ("hidden_size", "dim", integer, REQUIRED),
        ("num_layers", "depth", integer, 2),
        ("act", "activation", ACTIVATIONS, "gelu"),
        ("tie_word_embeddings", "tied", FLAG, True),
        ("kernel_{height,width}", "kernel", integer, 3),
        ("extra", "extra", integer, None),
        ("num_labels", "num_classes", integer, 2),
    ],
    fixed={"rotary": False, "rate": 0.0},
    special_tokens=lambda config: {"last_id": config.vocab_size - 1},
    backbone=[
        ("h.#.c_attn", "blocks.#.{q,k,v}_proj", CONV1D),
        ("h.#.{batch_norm,unused}", "blocks.#.{norm,other}"),
        ("wte", "embed"),
        ("table.weight", "table.weight"),
    ],
    heads=[("final_bias", "head.bias", ONE_ROW), ("lm_head", "head")],
    prefix="toy.",
    shared={"wte.weight": "shared.weight"},
    aliases=[(r"\.gamma$", ".weight"), (r"^lm_head\.weight$", "shared.weight"), (r"^wte\.weight$", "shared.weight")],
    ignored=[r"position_ids$"],
)

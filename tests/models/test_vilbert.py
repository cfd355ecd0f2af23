import torch
import torch.nn.functional as F

from course_lib.models.bert import BERTConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes

TEXT = {"vocab_size": 13, "dim": 8, "depth": 3, "num_heads": 2, "mlp_dim": 12, "context_length": 6, "dropout": 0.0}
IMAGE = {"region_dim": 5, "image_dim": 12, "image_num_heads": 3, "image_mlp_dim": 10, "joint_dim": 7}


def make():
    """A tiny model with large random weights, in double precision and evaluation mode."""
    model = ViLBERT(ViLBERTConfig(text=BERTConfig(**TEXT), **IMAGE, co_depth=2)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def inputs():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(13, (2, 4), generator=generator)
    regions = torch.randn(2, 6, 5, generator=generator, dtype=torch.float64)
    return tokens, regions, grid_boxes(2, 3).double().expand(2, -1, -1)


def by_figures(model, tokens, regions, boxes):
    """The score of one pair by figures 1 and 2 (b), head by head."""
    weight, eps = dict(model.named_parameters()), model.config.text.norm_eps

    def linear(x, name):
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt()
        return scaled * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    def block(x, other, name, heads):
        q, k, v = linear(x, f"{name}.attn.q_proj"), linear(other, f"{name}.attn.k_proj"), None
        v, size = linear(other, f"{name}.attn.v_proj"), q.shape[-1] // heads
        split = zip(q.split(size, -1), k.split(size, -1), v.split(size, -1), strict=True)
        rows = torch.cat([(a @ b.T / size**0.5).softmax(-1) @ c for a, b, c in split], dim=-1)
        x = norm(x + linear(rows, f"{name}.attn.o_proj"), f"{name}.norm1")
        inner = F.gelu(linear(x, f"{name}.ffn.up_proj"))
        return norm(x + linear(inner, f"{name}.ffn.down_proj"), f"{name}.norm2")

    segment, place = weight["bert.segment_embed.weight"][0], weight["bert.pos_embed.table"][: len(tokens)]
    text = norm(weight["bert.token_embed.weight"][tokens] + segment + place, "bert.norm")
    rows = []
    for features, (x1, y1, x2, y2) in zip(
        [regions.mean(0), *regions], [(0.0, 0.0, 1.0, 1.0), *boxes.tolist()], strict=True
    ):
        spatial = torch.tensor([x1, y1, x2, y2, (x2 - x1) * (y2 - y1)], dtype=torch.float64)
        rows.append(linear(features, "region_proj") + linear(spatial, "box_proj"))
    image = norm(torch.stack(rows), "image_norm")
    text = block(text, text, "bert.blocks.0", 2)
    for i in range(2):
        text_after = block(text, image, f"co_layers.{i}.text_co", 2)
        image_after = block(image, text, f"co_layers.{i}.image_co", 3)
        text = block(text_after, text_after, f"bert.blocks.{i + 1}", 2)
        image = block(image_after, image_after, f"co_layers.{i}.image_block", 3)
    product = linear(image[0], "image_pooler").relu() * linear(text[0], "text_pooler").relu()
    return linear(product, "head")[0]


def test_scores_follow_the_figures():
    model, given = make(), inputs()
    expected = torch.stack([by_figures(model, *row) for row in zip(*given, strict=True)])
    torch.testing.assert_close(model(*given), expected, rtol=0, atol=1e-11)


def test_padding_of_the_text_reaches_neither_stream():
    model, (tokens, regions, boxes) = make(), inputs()
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    found = model(tokens, regions, boxes, valid=valid)
    torch.testing.assert_close(found[:1], model(tokens[:1], regions[:1], boxes[:1]), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1:], model(tokens[1:, :2], regions[1:], boxes[1:]), rtol=0, atol=1e-12)


def test_boxes_of_a_grid_cover_the_picture_row_by_row():
    assert grid_boxes(1, 2).tolist() == [[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]
    boxes = grid_boxes(2, 4)
    torch.testing.assert_close((boxes[:, 2:] - boxes[:, :2]).prod(dim=1).sum(), torch.tensor(1.0))
    assert boxes[4].tolist() == [0.0, 0.5, 0.25, 1.0]

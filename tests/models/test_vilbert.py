import pytest
import torch
import torch.nn.functional as F

from course_lib.layers.recording import record_attention
from course_lib.models.bert import BERTConfig
from course_lib.models.vilbert import Streams, ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.weights import own

TEXT = {"vocab_size": 13, "dim": 8, "depth": 3, "num_heads": 2, "mlp_dim": 12, "context_length": 6, "dropout": 0.0}
IMAGE = {"region_dim": 5, "image_dim": 12, "image_num_heads": 3, "image_mlp_dim": 10, "joint_dim": 7}


def config(**overrides):
    return ViLBERTConfig(text=BERTConfig(**TEXT), **IMAGE | {"co_depth": 2} | overrides)


def make(**overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    torch.manual_seed(0)
    model = ViLBERT(config(**overrides)).double().eval()
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


def test_the_default_is_the_papers_model():
    with torch.device("meta"):
        model = ViLBERT(ViLBERTConfig())
    assert len(model.bert.blocks) == 12 and len(model.co_layers) == 6
    layer = model.co_layers[0]
    assert layer.text_co.attn.q_proj.weight.shape == (768, 768)
    assert layer.text_co.attn.k_proj.weight.shape == (768, 1024)
    assert layer.image_co.attn.k_proj.weight.shape == (1024, 768) and layer.image_block.attn.num_heads == 8


def test_each_stream_attends_to_the_other_and_then_to_itself():
    model = make()
    with record_attention(model) as record:
        model(*inputs())
    for part, shape in {
        "bert": (2, 3, 2, 4, 4),
        r"co_layers.*text_co": (2, 2, 2, 4, 7),
        r"co_layers.*image_co": (2, 2, 3, 7, 4),
        r"co_layers.*image_block": (2, 2, 3, 7, 7),
    }.items():
        assert record.maps(part).shape == shape


def test_without_what_crosses_over_a_stream_knows_nothing_of_the_other():
    model, (tokens, regions, boxes) = make(), inputs()
    for layer in model.co_layers:
        torch.nn.init.zeros_(layer.text_co.attn.o_proj.weight)
    text, image = model.features(tokens, regions.requires_grad_(), boxes)
    (grad,) = torch.autograd.grad(text.sum(), regions, retain_graph=True, allow_unused=True)
    assert grad is None or not grad.any()
    other = model.features((tokens + 1) % 13, regions, boxes)
    assert not torch.allclose(other.image, image)  # the pictures still hear of the words


def test_padding_of_the_text_reaches_neither_stream():
    model, (tokens, regions, boxes) = make(), inputs()
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    found = model(tokens, regions, boxes, valid=valid)
    torch.testing.assert_close(found[:1], model(tokens[:1], regions[:1], boxes[:1]), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1:], model(tokens[1:, :2], regions[1:], boxes[1:]), rtol=0, atol=1e-12)


def test_regions_are_a_set_whose_places_their_boxes_tell():
    model, (tokens, regions, boxes) = make(), inputs()
    expected = model(tokens, regions, boxes)
    torch.testing.assert_close(model(tokens, regions.flip(1), boxes.flip(1)), expected, rtol=0, atol=1e-12)
    assert not torch.allclose(model(tokens, regions.flip(1), boxes), expected)


def test_boxes_of_a_grid_cover_the_picture_row_by_row():
    assert grid_boxes(1, 2).tolist() == [[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]
    boxes = grid_boxes(2, 4)
    torch.testing.assert_close((boxes[:, 2:] - boxes[:, :2]).prod(dim=1).sum(), torch.tensor(1.0))
    assert boxes[4].tolist() == [0.0, 0.5, 0.25, 1.0]


def test_features_begin_with_the_tokens_that_stand_for_the_whole():
    model, given = make(), inputs()
    features = model.features(*given)
    changed = Streams(features.text.clone(), features.image.clone())
    changed.text[:, 1:], changed.image[:, 1:] = 0, 0
    assert torch.equal(model.score(changed), model(*given))


def test_a_checkpoint_brings_the_model_back(tmp_path):
    model, given = make().float(), [each.float() if each.is_floating_point() else each for each in inputs()]
    own.save(model, tmp_path / "model.safetensors")
    again = own.load(tmp_path / "model.safetensors")
    assert again.config == model.config and torch.equal(again(*given), model(*given))


def test_it_learns_which_word_belongs_to_which_picture():
    torch.manual_seed(0)
    model, boxes = ViLBERT(config(co_depth=1)), grid_boxes(1, 2).expand(16, -1, -1)
    optimizer, looks = torch.optim.Adam(model.parameters(), lr=3e-3), torch.randn(4, 5)
    for _ in range(150):
        kind, other = torch.randint(4, (16,)), torch.randint(1, 4, (16,))
        words = torch.stack([torch.stack([torch.zeros(16), k]).T for k in (kind, (kind + other) % 4)]).long()
        regions = torch.stack([looks[kind], torch.zeros(16, 5)], dim=1) + 0.2 * torch.randn(16, 2, 5)
        scores = torch.stack([model(each, regions, boxes) for each in words], dim=1)
        optimizer.zero_grad()
        F.cross_entropy(scores, torch.zeros(16, dtype=torch.long)).backward()
        optimizer.step()
    assert (scores[:, 0] > scores[:, 1]).float().mean() > 0.9


def test_what_cannot_be_is_named():
    with pytest.raises(ValueError, match="co_depth=4 is more than the 3 blocks"):
        config(co_depth=4)
    with pytest.raises(ValueError, match="region_dim must be 1 or more, got 0"):
        config(region_dim=0)
    tokens, regions, boxes = inputs()
    with pytest.raises(ValueError, match=r"each region has a box, got \(2, 6, 5\) and \(2, 5, 4\)"):
        make()(tokens, regions, boxes[:, :5])

import hashlib
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.resnet import ResNet, ResNetConfig, resnet18, resnet50
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.tensors import Spec
from course_lib.weights.torchvision_resnet import convert, read_off
from tests.weights.folders import Trap, change_weights, same

CONFIGS = {
    "basic": {"block": "basic", "widths": (4, 6, 8, 10), "depths": (2, 1, 2, 1), "stem_channels": 4},
    "bottleneck": {"widths": (8, 12, 16, 20), "depths": (1, 2, 1, 3), "stem_channels": 6},
    "grey, one class": {
        **{"block": "basic", "widths": (4,) * 4, "depths": (1,) * 4, "in_channels": 1, "num_classes": 1}
    },
    "no head": {"block": "basic", "widths": (4, 6, 8, 10), "depths": (1, 2, 1, 1), "num_classes": None},
}
each_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)


def tiny(seed=0, **settings):
    """A model with random weights, also in norms and what they remember."""
    torch.manual_seed(seed)
    model = ResNet(ResNetConfig(**{"num_classes": 5} | settings)).eval()
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand_like(tensor) + 0.5 if "norm" in name else torch.randn_like(tensor) * 0.2)
    return model


# what torchvision.models.resnet.ResNet registers, written from its source: name -> shape


def published(blocks, widths, expansion, classes=1000):
    """Names and shapes in the state_dict of torchvision's ResNet with 64 channels in its stem."""

    def norm(name, channels):
        vectors = {f"{name}.{each}": (channels,) for each in ("weight", "bias", "running_mean", "running_var")}
        return vectors | {f"{name}.num_batches_tracked": ()}

    shapes, channels = {"conv1.weight": (64, 3, 7, 7)} | norm("bn1", 64), 64
    for stage, (count, width) in enumerate(zip(blocks, widths, strict=True), start=1):
        for block in range(count):
            name, outer = f"layer{stage}.{block}", width * expansion
            sizes = [(width, channels, 3), (width, width, 3)]
            if expansion > 1:
                sizes = [(width, channels, 1), (width, width, 3), (outer, width, 1)]
            for i, (out, into, kernel) in enumerate(sizes, start=1):
                shapes |= {f"{name}.conv{i}.weight": (out, into, kernel, kernel)} | norm(f"{name}.bn{i}", out)
            if block == 0 and (stage > 1 or channels != outer):
                shapes |= {f"{name}.downsample.0.weight": (outer, channels, 1, 1)} | norm(f"{name}.downsample.1", outer)
            channels = outer
    return shapes | {"fc.weight": (classes, channels), "fc.bias": (classes,)}


PUBLISHED = {
    "resnet18": (resnet18, published([2, 2, 2, 2], [64, 128, 256, 512], 1)),
    "resnet50": (resnet50, published([3, 4, 6, 3], [64, 128, 256, 512], 4)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_names_and_shapes_are_torchvisions(name, tmp_path):
    build, shapes = PUBLISHED[name]
    save_pretrained(build(), tmp_path, layout="torchvision")
    stored = load_file(tmp_path / "model.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in stored.items()} == shapes
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_architecture_is_read_off_names_and_shapes(name):
    build, shapes = PUBLISHED[name]
    read = read_off({name: Spec(shape, "F32") for name, shape in shapes.items()})
    with torch.device("meta"):
        config = build().config
    assert tuple(read["hidden_sizes"]) == config.widths and tuple(read["depths"]) == config.depths
    assert read["layer_type"] == config.block and read["num_labels"] == 1000 and read["num_channels"] == 3


@each_config
def test_what_was_written_is_read_back_from_folder_and_file(settings, tmp_path):
    model = tiny(**settings)
    save_pretrained(model, tmp_path, layout="torchvision")
    for path in (tmp_path, tmp_path / "model.safetensors"):
        opened = from_pretrained(path)
        assert opened.config == model.config and same(opened, model) and not opened.training


@each_config
def test_a_file_holds_the_tensors_of_hugging_faces_layout_under_torchvisions_names(settings, tmp_path):
    """Those are beside the official class in test_families.py."""
    model, stored = tiny(**settings), []
    for layout in ("torchvision", None):
        save_pretrained(model, tmp_path / str(layout), layout=layout)
        stored.append(load_file(tmp_path / str(layout) / "model.safetensors"))
    ours, theirs = ({as_hugging_face(name): tensor for name, tensor in stored[0].items()}, stored[1])
    prefix = "resnet." if model.config.num_classes is None else ""  # which a bare model has not
    ours = {name.removeprefix(prefix): tensor for name, tensor in ours.items()}
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in theirs)


def as_hugging_face(name):
    """The renames that Hugging Face's own conversion of these models amounts to."""
    for old, new in [
        (r"^conv1", "resnet.embedder.embedder.convolution"),
        (r"^bn1", "resnet.embedder.embedder.normalization"),
        (r"^fc", "classifier.1"),
        (r"^layer(\d)\.(\d+)", lambda m: f"resnet.encoder.stages.{int(m[1]) - 1}.layers.{m[2]}"),
        (r"\.conv(\d)", lambda m: f".layer.{int(m[1]) - 1}.convolution"),
        (r"\.bn(\d)", lambda m: f".layer.{int(m[1]) - 1}.normalization"),
        (r"\.downsample\.0", ".shortcut.convolution"),
        (r"\.downsample\.1", ".shortcut.normalization"),
    ]:
        name = re.sub(old, new, name)
    return name


@pytest.fixture
def pickled(tmp_path):
    """A file as torchvision's: pickled, named by its SHA-256, from before batches were counted."""
    model = tiny(**CONFIGS["basic"])
    save_pretrained(model, tmp_path / "made", layout="torchvision")
    stored = load_file(tmp_path / "made" / "model.safetensors")
    draft = tmp_path / "draft.pth"
    torch.save({name: tensor for name, tensor in stored.items() if "num_batches" not in name}, draft)
    path = tmp_path / f"resnet18-{hashlib.sha256(draft.read_bytes()).hexdigest()[:8]}.pth"
    return draft.rename(path), model


def test_a_pickled_file_is_converted_where_it_is_asked_for(pickled, tmp_path):
    path, model = pickled
    with pytest.raises(ValueError, match=r"pickled: it can run code.*torchvision_resnet\.convert\('resnet18-"):
        from_pretrained(path)
    convert(path, tmp_path / "converted")
    assert same(from_pretrained(tmp_path / "converted"), model)


def test_a_pickled_file_that_does_not_keep_its_names_promise_is_refused(pickled, tmp_path):
    path, _ = pickled
    path = path.rename(tmp_path / "resnet18-01234567.pth")
    with pytest.raises(ValueError, match="damaged or another file: its SHA-256 begins with"):
        convert(path, tmp_path / "converted")
    assert not (tmp_path / "converted").exists()


@pytest.mark.parametrize("kind", ["trap", "model", "list", "numbers", "other tensors", "damaged"])
def test_a_pickled_file_of_anything_else_is_refused_and_does_nothing(kind, tmp_path):
    content = {
        "trap": {"conv1.weight": Trap(tmp_path / "sprung")},
        "model": nn.Linear(2, 2),
        "list": [torch.zeros(2)],
        "numbers": {"conv1.weight": 3},
        "other tensors": {"weight": torch.zeros(2)},
        "damaged": None,
    }[kind]
    path = tmp_path / "resnet.pth"
    torch.save(content, path)
    if kind == "damaged":
        path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"resnet\.pth (holds more than tensors|must hold|has no names)"):
        convert(path, tmp_path / "converted")
    assert not (tmp_path / "sprung").exists() and not (tmp_path / "converted").exists()


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("layer2.1.bn1.bias", None, "layer2.1.bn1.bias .* is missing"),
        ("layer3.0.conv2.weight", None, "layer3.0.conv2.weight is missing"),
        ("layer1.0.bn3.bias", torch.zeros(4), "layer1.0.bn3.bias is unknown"),
        ("conv1.weight", torch.zeros(4, 3, 3, 3), r"conv1.weight must have the shape \(4, 3, 7, 7\)"),
        ("conv1.weight", torch.zeros(4), "conv1.weight is missing, or no weight"),
        ("layer1.99999.conv1.weight", torch.zeros(1), "is missing"),
        ("fc.weight", torch.zeros(5, 11), r"fc.weight must have the shape \(5, 10\)"),
    ],
)
def test_a_file_that_does_not_fit_itself_is_refused_by_name(name, tensor, message, tmp_path):
    save_pretrained(tiny(**CONFIGS["basic"] | {"depths": (2, 2, 2, 1)}), tmp_path, layout="torchvision")
    change_weights(tmp_path, {name: tensor})
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


def test_other_files_without_config_are_not_taken_for_torchvisions(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    for path in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(FileNotFoundError, match=r"no config\.json .* not those of .*: torchvision"):
            from_pretrained(path)


@pytest.mark.parametrize(
    "settings",
    [
        {"stem": "small"},
        {"residual": False},
        {"shortcut": "padding"},
        {"activation": "gelu"},
        {"stride_in_first_stage": True},
        {"stride_first": True, "block": "bottleneck", "widths": (4, 8, 12, 16)},
        {"widths": (4, 6, 8), "depths": (1, 1, 1)},
    ],
    ids=str,
)
def test_what_a_file_would_not_tell_from_another_model_is_not_written(settings, tmp_path):
    with pytest.raises(ValueError, match="layout"):
        save_pretrained(tiny(**CONFIGS["basic"] | settings), tmp_path / "new", layout="torchvision")
    assert not (tmp_path / "new").exists()


def test_layouts_are_asked_for_by_name(tmp_path):
    with pytest.raises(ValueError, match="ResNet has no layout 'keras': 'torchvision' is possible here"):
        save_pretrained(tiny(**CONFIGS["basic"]), tmp_path, layout="keras")
    with pytest.raises(ValueError, match="CNN has no layout 'torchvision': None is possible here"):
        save_pretrained(CNN(CNNConfig()), tmp_path, layout="torchvision")


def test_two_layouts_are_not_mixed_in_one_folder(tmp_path):
    model = tiny(**CONFIGS["basic"])
    save_pretrained(model, tmp_path)
    with pytest.raises(ValueError, match=r"holds config\.json"):
        save_pretrained(model, tmp_path, layout="torchvision")
    assert same(from_pretrained(tmp_path), model)

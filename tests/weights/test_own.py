import json
import os
import pickle
from dataclasses import asdict, dataclass, replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.bert_tasks import BERTForSequenceClassification
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.weights import own
from tests.weights.folders import Trap, change_weights, damaged, same

BERT_CONFIG = BERTConfig(vocab_size=7, dim=4, depth=1, num_heads=2, mlp_dim=6, context_length=5, num_classes=3)
MODELS = {
    "BERT": lambda: BERT(BERT_CONFIG),
    "BERT without its pooler": lambda: BERT(BERT_CONFIG, pooler=False),
    "classifier": lambda: BERTForSequenceClassification(BERT_CONFIG),
    "tied Transformer": lambda: Transformer(
        TransformerConfig(vocab_size=7, dim=4, depth=2, num_heads=2, mlp_dim=6, context_length=9)
    ),
    "Marian": lambda: Marian(
        MarianConfig(vocab_size=(7, 5), dim=4, depth=(1, 2), num_heads=(2, 1), mlp_dim=(6, 3), context_length=9)
    ),
    "Seq2Seq": lambda: Seq2Seq(Seq2SeqConfig(source_vocab=5, target_vocab=6, embed_dim=3, encoder_dim=2, hidden_dim=4)),
}


@pytest.fixture
def path(tmp_path):
    own.save(BERT(BERT_CONFIG), tmp_path / "model.safetensors", extra={"words": ["a", "b"]})
    return tmp_path / "model.safetensors"


def change_metadata(path, **changes):
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    changes = {f"course.{key}": value for key, value in changes.items()}
    metadata = {key: value for key, value in (metadata | changes).items() if value != "gone"}
    save_file(load_file(path), path, metadata=metadata)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_model_comes_back(tmp_path, make):
    model = make()
    own.save(model, tmp_path / "a" / "model.safetensors")
    back = own.load(tmp_path / "a" / "model.safetensors")
    assert type(back) is type(model) and back.config == model.config and not back.training
    assert same(model, back)
    assert len(list(back.parameters())) == len(list(model.parameters()))
    assert all(torch.equal(*buffers) for buffers in zip(model.buffers(), back.buffers(), strict=True))


def test_weights_that_16_bits_hold_exactly_take_half_the_bytes(tmp_path):
    model, sizes = MODELS["tied Transformer"](), []
    for name in ("single", "half"):
        own.save(model, tmp_path / name)
        back = own.load(tmp_path / name).state_dict()
        assert all(torch.equal(back[name], tensor) and back[name].dtype == tensor.dtype
                   for name, tensor in model.state_dict().items())  # fmt: skip
        sizes.append(sum(tensor.nbytes for tensor in load_file(tmp_path / name).values()))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.half())
    assert sizes[0] == 2 * sizes[1]


def test_what_was_kept_beside_the_model_comes_back(path):
    assert own.load_extra(path) == {"words": ["a", "b"]}


@dataclass(frozen=True, kw_only=True)
class BackboneConfig:
    depths: tuple = ()


@dataclass(frozen=True, kw_only=True)
class OtherBackboneConfig:
    widths: tuple = ()


@dataclass(frozen=True, kw_only=True)
class ForeignConfig:
    sizes: tuple = ()
    backbone: BackboneConfig | OtherBackboneConfig | None = None


class Foreign(nn.Module):
    def __init__(self, config: ForeignConfig):
        super().__init__()
        self.config, self.layer = config, nn.Linear(2, 2)


def test_a_model_from_elsewhere_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Foreign' is not a model of course_lib.models"):
        own.save(Foreign(ForeignConfig()), tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_tuples_in_a_config_come_back_as_tuples():
    arguments = own.with_configs(Foreign, {"config": {"sizes": [1, [2, 3]]}})
    assert arguments == {"config": ForeignConfig(sizes=(1, (2, 3)))}


@pytest.mark.parametrize("backbone", [None, BackboneConfig(depths=(1, 2)), OtherBackboneConfig(widths=(3,))])
def test_a_config_inside_a_config_comes_back(backbone):
    foreign = Foreign(ForeignConfig(sizes=(3,), backbone=backbone))
    arguments = json.loads(own.plain_json(own.arguments_of(foreign)))
    assert own.with_configs(Foreign, arguments) == {"config": foreign.config}


@pytest.mark.parametrize("extra", [{"a": torch.ones(1)}, {"a": {1}}, {"a": {1: 2}}, {"a": float("nan")}])
def test_only_plain_values_are_kept(tmp_path, extra):
    with pytest.raises(ValueError, match="only plain values"):
        own.save(BERT(BERT_CONFIG), tmp_path / "model.safetensors", extra=extra)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        *("os.system", "os.path.join", "torch.nn.modules.linear.Linear", "course_lib.weights.own.load", "BERT", ""),
        "course_lib.models.bert.partial",
        "course_lib.models.bert.MultiHeadAttention",  # a module, but imported there
        "course_lib.models.bert.BERTConfig",
        "course_lib.models.bert.nn.Linear",
        "course_lib.models.nowhere.BERT",
    ],
)
def test_no_name_outside_the_models_is_looked_up(path, name):
    change_metadata(path, model=name)
    with pytest.raises(ValueError, match="is not a model of course_lib.models|has no model"):
        own.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "gone"}, "not a checkpoint of this course"),
        ({"arguments": "gone"}, "not a checkpoint of this course"),
        ({"arguments": "{"}, "is not JSON"),
        ({"arguments": "[" * 100_000}, "is not JSON"),
        ({"arguments": "[1]"}, "is not a JSON object"),
        ({"arguments": '{"config": 3}'}, "describes no model"),
        ({"arguments": '{"config": {"dim": 4, "size": 3}}'}, "unexpected keyword argument 'size'"),
        ({"arguments": '{"config": {}, "evil": 1}'}, "unexpected keyword argument 'evil'"),
        ({"arguments": json.dumps({"config": {"dim": "four"}})}, "describes no model"),
        ({"arguments": json.dumps({"config": {"depth": 10**9}})}, "more than 430 parts"),
        (
            {"arguments": json.dumps({"config": {"dim": 10**9 * 2, "num_heads": 2}})},
            "describes no model|have the shape",
        ),
        ({"arguments": json.dumps({"config": asdict(replace(BERT_CONFIG, depth=2))})}, r"blocks\.1\.\S+ is missing"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(path, change, message):
    change_metadata(path, **change)
    with pytest.raises(ValueError, match=message):
        own.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm.bias": None}, "norm.bias is missing"),
        ({"more": torch.ones(1)}, "more is unknown"),
        ({"norm.bias": torch.ones(5)}, r"norm.bias must have the shape \(4,\), found \(5,\)"),
        ({"norm.bias": torch.ones(4).half()}, "norm.bias must be float32, found F16"),
    ],
)
def test_tensors_that_do_not_fit_are_named(path, change, message):
    change_weights(path, change)
    with pytest.raises(ValueError, match=message):
        own.load(path)


def test_a_pickle_is_not_opened(path, tmp_path):
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    for read in (own.load, own.load_extra):
        with pytest.raises(ValueError, match="could run code, and is not opened"):
            read(path)
    assert not (tmp_path / "sprung").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        own.load(tmp_path / "nowhere")


def test_a_damaged_file_gives_an_error_or_an_equal_shaped_model(path):
    damaged(path, lambda: own.load(path))


def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            own.save(BERT(BERT_CONFIG), path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("normalisation", [Normalisation(mean=(0.1, 0.2), std=(0.3, 0.4)), None])
def test_a_model_of_images_comes_back_with_its_normalisation(tmp_path, normalisation):
    model = ResNet(ResNetConfig(in_channels=2, widths=(8,), depths=(1,), stem_channels=4, block="basic"))
    own.save(model, tmp_path / "usual.safetensors")
    assert own.load(tmp_path / "usual.safetensors").normalisation == COURSE_PIXELS
    model.normalisation = normalisation
    own.save(model, tmp_path / "model.safetensors")
    assert own.load(tmp_path / "model.safetensors").normalisation == normalisation

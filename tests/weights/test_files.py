import json
import os
import pickle
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoImageProcessor

from course_lib.functional.images import Normalisation
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.vision import accuracy
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.files import FAMILIES
from tests.weights.folders import Trap, change_config, change_weights, damaged, same
from tests.weights.toy import Toy, ToyConfig


@pytest.fixture(autouse=True)
def toy_family(monkeypatch):
    monkeypatch.setitem(FAMILIES, "toy", ("tests.weights.toy", "tests.weights.toy"))


def toy(**config):
    torch.manual_seed(0)
    model = Toy(ToyConfig(**config))
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor.normal_()
    return model


@pytest.fixture
def folder(tmp_path):
    save_pretrained(toy(), tmp_path / "toy")
    return tmp_path / "toy"


@pytest.mark.parametrize(
    ("head", "embedding"), [(None, "wte.weight"), ("tied", "toy.shared.weight"), ("linear", "toy.wte.weight")]
)
def test_what_was_written_is_read_back_and_a_shared_tensor_stays_shared(tmp_path, head, embedding):
    model = toy(head=head, depth=3, activation="gelu_tanh")
    save_pretrained(model, tmp_path)
    assert embedding in load_file(tmp_path / "model.safetensors")
    opened = from_pretrained(tmp_path)
    assert opened.config == model.config and same(opened, model)
    assert not opened.training
    assert all(parameter.requires_grad for parameter in opened.parameters())
    assert head is None or (opened.head.weight is opened.embed.weight) == (head == "tied")


def test_tensors_have_their_official_names_and_shapes(folder):
    model, stored = toy(), load_file(folder / "model.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in stored.items() if "h.1." not in name} == {
        "toy.h.0.c_attn.weight": (4, 12),
        "toy.h.0.c_attn.bias": (12,),
        "toy.h.0.batch_norm.weight": (4,),
        "toy.h.0.batch_norm.bias": (4,),
        "toy.h.0.batch_norm.running_mean": (4,),
        "toy.h.0.batch_norm.running_var": (4,),
        "toy.h.0.batch_norm.num_batches_tracked": (),
        "toy.shared.weight": (7, 4),
        "toy.table.weight": (3, 4),
        "final_bias": (1, 7),
    }
    assert torch.equal(stored["toy.h.1.c_attn.weight"][:, 4:8], model.blocks[1].k_proj.weight.T)


def test_settings_of_every_kind_go_both_ways(tmp_path):
    settings = {"kernel": (2, 7), "num_classes": 3, "extra": 9, "activation": "silu"}
    save_pretrained(toy(**settings), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert written == {
        "model_type": "toy", "architectures": ["ToyForSomething"], "dtype": "float32", "vocab_size": 7,
        "hidden_size": 4, "num_layers": 2, "act": "silu", "tie_word_embeddings": True, "kernel_height": 2,
        "kernel_width": 7, "extra": 9, "num_labels": 3, "rotary": False, "rate": 0.0, "last_id": 6,
    }  # fmt: skip
    assert from_pretrained(tmp_path).config == ToyConfig(**settings)
    change_config(tmp_path, kernel_width="gone", extra=None, act=None, rotary="gone", rate=0, num_labels="gone")
    assert from_pretrained(tmp_path).config == ToyConfig(kernel=(2, 3))
    change_config(tmp_path, id2label={"0": "cat", "1": "dog", "2": "bird", "3": "fish"}, num_labels=7)
    assert from_pretrained(tmp_path).config.num_classes == 4


def test_what_is_none_is_not_written(folder):
    assert "extra" not in json.loads((folder / "config.json").read_text())


def test_a_value_without_an_official_word_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="toy's layout has no activation 'mish', only relu, gelu, gelu_tanh, silu"):
        save_pretrained(toy(activation="mish"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_layout_may_ask_for_a_tensor_by_its_name_without_the_prefix(folder):
    change_weights(folder, {"toy.table.weight": None})
    assert from_pretrained(folder).table is None


def test_the_model_lives_on_when_its_file_is_overwritten(folder):
    model = from_pretrained(folder)
    path = folder / "model.safetensors"
    path.write_bytes(bytes(path.stat().st_size))
    assert same(model, toy())


def test_without_architectures_it_is_the_bare_model(folder):
    change_config(folder, architectures="gone")
    change_weights(folder, {"final_bias": None, "toy.shared.weight": None, "toy.wte.weight": torch.ones(7, 4)})
    assert from_pretrained(folder).head is None


def test_copies_that_differ_are_refused(folder):
    change_weights(folder, {"lm_head.weight": toy().embed.weight.detach() + 1})
    with pytest.raises(ValueError, match=r"(lm_head|toy.shared).weight must be equal"):
        from_pretrained(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_point_types_become_float32(folder, dtype):
    change_weights(folder, lambda t: {name: x.to(dtype) if x.is_floating_point() else x for name, x in t.items()})
    opened = from_pretrained(folder)
    assert {parameter.dtype for parameter in opened.parameters()} == {torch.float32}
    assert torch.equal(opened.table.weight, toy().table.weight.to(dtype).float())


def test_nan_stays_nan(folder):
    change_weights(folder, {"toy.table.weight": torch.full((3, 4), torch.nan)})
    assert from_pretrained(folder).table.weight.isnan().all()


SHAPE = r"toy\.shared\.weight must have the shape \(7, 4\) by config\.json's vocab_size=7, found \(8, 4\)"


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("toy.h.1.batch_norm.bias", None, r"toy\.h\.1\.batch_norm\.bias \(4,\) is missing"),
        ("toy.h.2.x", torch.ones(2), r"toy\.h\.2\.x is unknown"),
        ("toy.shared.weight", torch.ones(8, 4), SHAPE),
        ("toy.table.weight", torch.ones(3, 4).int(), "must be one of F64, F32, F16, BF16, found I32"),
        ("toy.table.weight", torch.ones(3, 4).to(torch.float8_e4m3fn), "found F8_E4M3"),
        ("toy.h.0.batch_norm.num_batches_tracked", torch.tensor(1.0), "num_batches_tracked must be int64, found F32"),
    ],
)
def test_what_is_missing_unknown_misshapen_or_mistyped_is_named(folder, name, tensor, message):
    change_weights(folder, {name: tensor})
    with pytest.raises(ValueError, match=message):
        from_pretrained(folder)


def test_all_problems_are_named_up_to_six(folder):
    change_weights(folder, {f"x{number}": torch.ones(1) for number in range(8)})
    with pytest.raises(ValueError, match=r"(?s)x0 is unknown.*x5 is unknown\n  and 2 more"):
        from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mistral"}, "model_type='mistral'; the families that we open are bert, decision_transformer"),
        ({"model_type": "gone"}, "has no model_type"),
        ({"model_type": ["toy"]}, "the families that we open are"),
        ({"architectures": ["ToyForNothing"]}, r"ToyForNothing.*those that we open are ToyModel, ToyForSomething"),
        ({"architectures": 0}, "architectures=0; those that we open are"),
        *(
            ({"architectures": each}, "those that we open are")
            for each in ("ToyModel", [["ToyModel"]], {"ToyModel": 1})
        ),
        ({"act": "quick_gelu"}, "act is 'quick_gelu', and we have only 'relu', 'gelu'"),
        ({"act": ["gelu"]}, "act is .'gelu'., and we have only"),
        ({"rotary": True}, "rotary is True, and we have only False"),
        ({"rotary": 0}, "rotary is 0, and we have only False"),
        ({"rate": 0.1}, "rate is 0.1, and we have only 0.0"),
        ({"rate": False}, "rate is False, and we have only 0.0"),
        ({"rate": "x" * 1000}, "rate is 'x{76}..., and we have only 0.0"),
        ({"kernel_width": 0}, "kernel_width must be a whole number from 1 to 100000000, got 0"),
        ({"id2label": ["cat"]}, r"id2label must name the classes, got \['cat'\]"),
        ({"id2label": {}}, "id2label must name the classes, got {}"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings is 1, and we have only True, False"),
        ({"vocab_size": "gone"}, "vocab_size is missing"),
        ({"vocab_size": "7"}, "vocab_size must be a whole number from 1 to 100000000, got '7'"),
        *(({"vocab_size": size}, "vocab_size must be a whole number") for size in (7.0, True, 0, 10**30)),
        ({"vocab_size": 10**8}, r"must have the shape \(100000000, 4\) by config.json's vocab_size=100000000"),
        ({"hidden_size": 10**8}, "must have the shape"),
        ({"num_layers": 10**8}, "a model of more than 370 parts, for 17 tensors"),
        ({"num_layers": 1}, r"toy\.h\.1\..* is unknown"),
    ],
)
def test_a_config_that_does_not_fit_is_told_key_and_value(folder, changes, message):
    change_config(folder, **changes)
    with pytest.raises(ValueError, match=message):
        from_pretrained(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\ufeff{}", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_a_config_that_is_no_json_object_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        from_pretrained(folder)


def test_an_endless_config_is_not_read(folder, monkeypatch):
    monkeypatch.setattr("course_lib.weights.files.JSON_BYTES", 100)
    with pytest.raises(ValueError, match="is not a JSON file of at most"):
        from_pretrained(folder)


@pytest.mark.parametrize("kind", ["pickle", "torch.save"])
def test_a_pickle_is_not_opened(folder, tmp_path, kind):
    trap = Trap(tmp_path / "sprung")
    with open(folder / "model.safetensors", "wb") as file:
        pickle.dump(trap, file) if kind == "pickle" else torch.save(trap, file)
    with pytest.raises(ValueError, match="could run code, and is not opened"):
        from_pretrained(folder)
    assert not (tmp_path / "sprung").exists()


def test_a_folder_with_a_pickle_alone_is_told_how_to_convert_it(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"Convert it where you trust it: transformers"):
        from_pretrained(folder)


def header(length, text):
    return struct.pack("<Q", length) + text


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"1234567", header(2**63, b"{}"), header(100, b"{}"), header(1, b"{}")),
        *(header(3, b"[1]"), header(5, b'{"a":')),
        header(62, b'{"wte.weight":{"dtype":"F32","shape":[7,4],"data_offsets":[0,9]}}'),
        header(73, b'{"wte.weight":{"dtype":"F32","shape":[9999999999],"data_offsets":[0,4]}}  ') + bytes(4),
    ],
)
def test_a_file_with_a_lying_header_is_refused(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="safetensors"):
        from_pretrained(folder)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_told_to_be_downloaded_again(folder, share):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"model\.safetensors .* cut off: download it again"):
        from_pretrained(folder)


def test_a_pointer_in_place_of_the_weights_is_told_how_to_fetch_them(folder):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
    (folder / "model.safetensors").write_text(pointer)
    with pytest.raises(ValueError, match=r"(?s)model\.safetensors is not the weights but a pointer.*`git lfs pull`"):
        from_pretrained(folder)


def test_what_is_no_file_is_refused(folder, tmp_path):
    path = folder / "model.safetensors"
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        from_pretrained(folder)
    path.mkdir()
    with pytest.raises(ValueError, match="is not a file"):
        from_pretrained(folder)
    path.rmdir()
    if hasattr(os, "mkfifo"):  # a pipe, which Windows has not: to read it would be to wait for ever
        os.mkfifo(path)
        with pytest.raises(ValueError, match="is not a file"):
            from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        from_pretrained(folder)
    with pytest.raises(FileNotFoundError, match="no folder"):
        from_pretrained(tmp_path / "nowhere")


def test_links_to_files_are_followed(folder, tmp_path):
    (folder / "model.safetensors").rename(tmp_path / "blob")
    (folder / "model.safetensors").symlink_to(tmp_path / "blob")
    assert same(from_pretrained(folder), toy())


def shard(folder):
    tensors = load_file(folder / "model.safetensors")
    places = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(sorted(tensors))}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file)
    (folder / "model.safetensors").unlink()
    write_index(folder, places)
    return places


def write_index(folder, places):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def test_shards_are_opened(folder):
    shard(folder)
    assert same(from_pretrained(folder), toy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda places: places.update(extra="model-00001-of-00002.safetensors"), "extra is not in model-00001"),
        (lambda places: places.pop("final_bias"), "final_bias is in model-00001.*which the index does not say"),
        (lambda places: places.update(final_bias="../x.safetensors"), r"'\.\./x\.safetensors': it must be"),
        (lambda places: places.update(final_bias="/etc/passwd"), "names a shard"),
        (lambda places: places.update(final_bias=3), "names a shard '3'"),
        (lambda places: places.clear(), "has no weight_map"),
    ],
)
def test_an_index_that_lies_is_refused(folder, change, message):
    places = shard(folder)
    change(places)
    write_index(folder, places)
    with pytest.raises(ValueError, match=message):
        from_pretrained(folder)


def test_a_missing_shard_is_named(folder):
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model-00002-of-00002"):
        from_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_damaged_file_gives_an_error_or_an_equal_shaped_model(name, folder):
    damaged(folder / name, lambda: from_pretrained(folder))


@pytest.mark.parametrize("stage", ["write", "rename"])
def test_an_interrupted_write_leaves_the_old_checkpoint(folder, monkeypatch, stage):
    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync" if stage == "write" else "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            save_pretrained(toy(depth=3), folder)
    assert same(from_pretrained(folder), toy())
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_a_model_without_an_official_layout_is_told_where_to_go(tmp_path):
    with pytest.raises(ValueError, match=r"Linear has no official layout; .* course_lib\.weights\.own"):
        save_pretrained(nn.Linear(2, 2), tmp_path)
    assert not list(tmp_path.iterdir())


PREPROCESSOR = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def tiny_vit(**settings):
    torch.manual_seed(0)
    sizes = {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 8, "num_classes": 2}
    return ViT(ViTConfig(**sizes | settings))


def test_a_checkpoint_of_images_brings_its_normalisation_along_or_none_is_made_up(tmp_path):
    save_pretrained(tiny_vit(), tmp_path)
    said = tmp_path / "preprocessor_config.json"
    assert from_pretrained(tmp_path).normalisation == Normalisation(mean=(0.5,) * 3, std=(0.25,) * 3)
    said.write_text(json.dumps(PREPROCESSOR))
    opened = from_pretrained(tmp_path)
    assert opened.normalisation == Normalisation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    save_pretrained(opened, tmp_path / "again")
    assert from_pretrained(tmp_path / "again").normalisation == opened.normalisation
    said.write_text(json.dumps(PREPROCESSOR | {"do_normalize": False}))
    assert from_pretrained(tmp_path).normalisation == Normalisation(mean=(0.0,), std=(1.0,))
    said.unlink()
    silent = from_pretrained(tmp_path)
    assert silent.normalisation is None
    with pytest.raises(ValueError, match="ViT does not say how its pixels are normalised"):
        accuracy(silent, torch.rand(2, 3, 8, 8), torch.tensor([0, 1]))
    save_pretrained(silent, tmp_path / "again")
    assert not (tmp_path / "again" / said.name).exists()


@pytest.mark.parametrize(
    "wrong", [{"image_mean": 0.5}, {"image_std": [0.2, 0.2]}, {"image_std": [0, 1, 1]}, {"image_mean": "x"}]
)
def test_a_normalisation_that_makes_no_sense_is_told(tmp_path, wrong):
    save_pretrained(tiny_vit(), tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR | wrong))
    with pytest.raises(ValueError, match="preprocessor_config.json .*image_mean"):
        from_pretrained(tmp_path)


def test_the_image_processor_of_hugging_face_and_our_normalisation_give_the_same_pixels(tmp_path):
    pytest.importorskip("torchvision")
    save_pretrained(tiny_vit(), tmp_path)
    pixels = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    theirs = AutoImageProcessor.from_pretrained(tmp_path)(list(pixels), return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(from_pretrained(tmp_path).normalisation(pixels / 255), theirs, atol=1e-6, rtol=0)

"""The layout of torchvision's ResNets: tensors under torchvision's names, and no config.json.

The sizes are read off the tensors' shapes. What leaves no trace there is as torchvision has it: ReLU, a stem with
pooling, a bottleneck's stride on its 3 x 3 convolution.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_lib.models.resnet import ResNet
from course_lib.weights import resnet
from course_lib.weights.resnet import BARE, HEADED
from course_lib.weights.tensors import Spec, serialised, write_files

STAGES = (1, 2, 3, 4)
ALWAYS = {"activation": "relu", "stride_in_first_stage": False, "stride_first": False}


def read_off(specs: Mapping[str, Spec]) -> dict[str, Any] | None:
    """What a config.json would say of tensors with these names and shapes; None if they are not torchvision's.

    Raises ValueError if a tensor is missing that is needed to know.
    """
    if not {"conv1.weight", "bn1.weight", "layer1.0.conv1.weight"} <= specs.keys():
        return None
    last = 3 if "layer1.0.conv3.weight" in specs else 2
    blocks = {stage: {name.split(".")[1] for name in specs if name.startswith(f"layer{stage}.")} for stage in STAGES}
    sizes = {
        "embedding_size": size(specs, "conv1.weight", 0),
        "num_channels": size(specs, "conv1.weight", 1),
        "hidden_sizes": [size(specs, f"layer{stage}.0.conv{last}.weight", 0) for stage in STAGES],
        "depths": [len(blocks[stage]) for stage in STAGES],
        "layer_type": "bottleneck" if last == 3 else "basic",
    }
    if "fc.weight" not in specs:
        return sizes | {"architectures": [BARE]}
    return sizes | {"architectures": [HEADED], "num_labels": size(specs, "fc.weight", 0)}


def size(specs: Mapping[str, Spec], name: str, axis: int) -> int:
    """The length of a tensor along an axis. Raises ValueError if it has none."""
    if name not in specs or len(specs[name].shape) <= axis:
        raise ValueError(f"{name} is missing, or no weight of a convolution or linear layer")
    return specs[name].shape[axis]


def describe(model: ResNet) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for a model that this layout cannot tell from another."""
    architecture, ours = resnet.describe(model)
    if len(model.config.depths) != len(STAGES) or any(ours[name] != value for name, value in ALWAYS.items()):
        raise ValueError(
            "torchvision's layout is for four stages, ReLU, no stride in the first stage, and a bottleneck's stride on "
            f"its 3 x 3 convolution, got {model.config}"
        )
    return architecture, ours


def convert(path: Path | str, folder: Path | str) -> None:
    """Rewrites one of torchvision's pickled files, such as resnet18-f37072fd.pth, as `folder`/model.safetensors.

    It is opened by torch.load(weights_only=True), which makes tensors and plain containers and calls nothing else that
    a pickle may ask for. A name that ends in digits of the file's SHA-256, as torchvision's do, must be true.
    Raises ValueError if it is not, or if the file holds anything but named tensors of a ResNet.
    """
    path, folder = Path(path), Path(folder)
    promised = re.search(r"-([0-9a-f]{8,64})\.pth$", path.name)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if promised and not found.startswith(promised[1]):
        raise ValueError(f"{path} is damaged or another file: its SHA-256 begins with {found[:8]}. Download it again.")
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever reading a damaged or hostile pickle says
        raise ValueError(f"{path} holds more than tensors, or is damaged, and is not opened: {error}") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(f"{path} must hold tensors by name: the state_dict of a model.")
    if read_off({name: Spec(tuple(tensor.shape), "") for name, tensor in tensors.items()}) is None:
        raise ValueError(
            f"{path} has no names of torchvision's ResNet, but {', '.join(map(str, list(tensors)[:3]))}..."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_files({folder / "model.safetensors": serialised(tensors, {})})


LAYOUT = replace(
    resnet.LAYOUT,
    describe=describe,
    read_off=read_off,
    prefix="",
    backbone=[
        ("conv1", "stem.conv"),
        ("bn1", "stem.norm"),
        ("layer{1,2,3,4}.#.conv{1,2,3}", "stages.{0,1,2,3}.#.convs.{0,1,2}.conv"),
        ("layer{1,2,3,4}.#.bn{1,2,3}", "stages.{0,1,2,3}.#.convs.{0,1,2}.norm"),
        ("layer{1,2,3,4}.#.downsample.{0,1}", "stages.{0,1,2,3}.#.shortcut.{conv,norm}"),
    ],
    heads=[("fc", "head")],
)

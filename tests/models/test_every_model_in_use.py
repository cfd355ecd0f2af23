"""What all models have in common beside test_every_model.py: they learn, are saved, go without a head, and drop."""

from dataclasses import replace

import pytest
import torch

from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig
from course_lib.models.clip import CLIP, CLIPConfig
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.models.resnet import ResNet
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.models.unet import UNet, UNetConfig
from course_lib.weights import own
from tests.models.test_every_model import BARE, PICTURES, RESNET, SHORT, TABLE, B, cases, make, run


@cases({name: case for name, case in TABLE.items() if name != "RBM"})  # whose output is no prediction
def test_from_its_first_weights_each_model_learns_to_tell_the_rows_of_a_batch_apart(case):
    torch.manual_seed(0)
    model, inputs = case.build().double().train(), case.inputs()
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=0.02)
    wanted = torch.linspace(-0.5, 0.5, B, dtype=torch.float64)
    direction = torch.randn_like(run(model, inputs)[0])
    for _ in range(80):
        score = (run(model, inputs) * direction).reshape(B, -1).sum(dim=1) / direction.numel() ** 0.5
        loss = (score - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.02


SETTINGS = {  # whose files have to keep what the table's models do not have
    "RBM with chains": lambda: RBM(RBMConfig(num_visible=4, num_hidden=3, num_chains=4)),
    "DBN": lambda: DBN(DBNConfig(dims=(6, 5, 4), num_classes=3)),
    "CNN without pooling": lambda: CNN(CNNConfig(image_size=8, widths=(4, 6), depths=(1, 1), pool="none")),
    "plain ResNet": lambda: ResNet(replace(RESNET, residual=False)),
    "FCN on a ResNet": lambda: FCN(FCNConfig(backbone=RESNET, window=1)),
    "U-Net on a ResNet": lambda: UNet(
        UNetConfig(**PICTURES, widths=(4, 8), backbone=replace(RESNET, num_classes=None))
    ),
    "SimCLR of a ViT": lambda: SimCLR(SimCLRConfig(encoder=replace(BARE, pool="mean"), projection_dim=5)),
    "CLIP": lambda: CLIP(CLIPConfig(text=GPTConfig(**SHORT, head=None), image_dim=6, joint_dim=4)),
    "Swin with positions": lambda: Swin(
        SwinConfig(image_size=(8, 12), patch_size=2, dim=4, depths=(2, 1), num_heads=(2, 4), shifted=False)
    ),
    "Transformer with learned positions": lambda: Transformer(
        TransformerConfig(**SHORT | {"vocab_size": (11, 13)}, pre_norm=True, positions="learned")
    ),
    "GPT of experts": lambda: MixtureGPT(MixtureGPTConfig(**SHORT, num_experts=4)),
}


@pytest.mark.parametrize("name", (*TABLE, *SETTINGS))
def test_a_saved_model_comes_back(name, tmp_path):
    model = (SETTINGS[name] if name in SETTINGS else TABLE[name].build)()
    own.save(model, tmp_path / "model.safetensors")
    again = own.load(tmp_path / "model.safetensors")
    assert type(again) is type(model) and again.config == model.config
    assert [each.requires_grad for each in again.parameters()] == [each.requires_grad for each in model.parameters()]
    weights = model.state_dict()
    assert again.state_dict().keys() == weights.keys()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in again.state_dict().items())


HEADED = ("GPT", "Llama", "Transformer", "Marian", "T5", "Conformer", "Transformer of frames")
HEADED += ("ViT", "Swin", "Mixer", "CNN", "ResNet")


@pytest.mark.parametrize("name", HEADED)
@torch.no_grad()
def test_without_a_head_a_model_returns_its_features(name):
    model, inputs = make(TABLE[name])
    nothing = "head" if hasattr(model.config, "head") else "num_classes"
    headless = type(model)(replace(model.config, **{nothing: None})).double().eval()
    assert headless.head is None
    headless.load_state_dict({name: each for name, each in model.state_dict().items() if not name.startswith("head.")})
    torch.testing.assert_close(headless(*inputs), model.features(*inputs), rtol=0, atol=1e-12)


DROPPING = ("GPT", "BERT", "Transformer", "Marian", "T5", "Conformer", "Transformer of frames", "Decision Transformer")


@pytest.mark.parametrize("name", DROPPING)
@torch.no_grad()
def test_dropout_acts_in_training_only(name):
    model, inputs = make(TABLE[name])
    dropping = type(model)(replace(model.config, dropout=0.5)).double()
    dropping.load_state_dict(model.state_dict(), strict=name != "BERT")  # which is here without its pooler
    assert torch.equal(run(dropping.eval(), inputs), run(model, inputs))
    assert not torch.equal(run(dropping.train(), inputs), run(dropping, inputs))

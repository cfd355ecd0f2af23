"""What all models have in common: they can be taken apart, looked into, differentiated as functions, and compiled.

Run as a program (`python -m tests.models.test_every_model`) this file compiles and exports them: that needs a process
without the checks of shapes that the tests put around every function, since those cannot be traced.
"""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

from course_lib.layers.recording import record_attention
from course_lib.models.attention_only import AttentionOnly, AttentionOnlyConfig
from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.models.boltzmann import RBM, RBMConfig
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.conformer import Conformer, ConformerConfig, SpeechTransformer
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.flamingo import Flamingo, FlamingoConfig
from course_lib.models.gpt import GPT, GPTConfig, gpt_lesson
from course_lib.models.imitation import ImitationConfig, Policy
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.models.mae import MAE, MAEConfig, MAEEncoder
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.models.unet import UNet, UNetConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights import own

B, T, T_Q, VOCAB = 3, 5, 4, 11
FEW = 3  # tokens for those that read one after the other, and would make long graphs


def tokens(length=T, *, batch=B, vocab=VOCAB):
    return torch.randint(vocab, (batch, length), generator=torch.Generator().manual_seed(length))


def image():
    return torch.randn(B, 2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def numbers(*shape):
    return torch.randn(B, *shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


def fields():
    """Six vectors for each picture, as a vision encoder gives them."""
    return torch.randn(B, 6, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def noise():
    return torch.rand(B, 4, generator=torch.Generator().manual_seed(1))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tiny model with inputs for it, and how it is put together of its parts."""

    build: Callable  # () -> model
    inputs: Callable  # () -> what `forward` takes, B rows of it
    encoded: Callable | None = lambda model, *x: model.encode(model.embed(*x))  # what `features` should be
    headed: Callable | None = lambda model, h: model.head(h)  # of the features: what `forward` should be
    maps: dict = field(default_factory=dict)  # part of the model -> shape of its recorded attention
    std: float = 0.3  # of all weights


def decoded(model, source, target):
    return model.decode(model.embed_target(target), model.encode(model.embed(source)))


def decoded_by_rnn(model, source, valid, target):
    context = model.encode(model.embed(source), valid)
    return model.decoder(model.target_embed(target), context, model.start(context)).features


def two_sided(layers, heads):
    """The maps of an encoder and a decoder with so many layers and heads each."""
    return {
        "encoder": (B, layers[0], heads[0], T, T),
        r"decoder.*\.attn": (B, layers[1], heads[1], T_Q, T_Q),
        "cross_attn": (B, layers[1], heads[1], T_Q, T),
    }


def character_lm(cell):
    return Case(
        build=lambda: CharacterLM(RecurrentConfig(vocab_size=VOCAB, cell=cell, hidden_dim=6, num_layers=2)),
        inputs=lambda: (tokens(FEW),),
        encoded=lambda model, x: model.encode(model.embed(x))[0],
    )


TEXT = {"vocab_size": VOCAB, "dim": 8, "depth": 2, "num_heads": 2, "mlp_dim": 12, "dropout": 0.0}
SHORT = TEXT | {"context_length": 6}
SPEECH = {name: TEXT[name] for name in ("dim", "depth", "num_heads", "mlp_dim", "dropout")} | {
    "frame_dim": 6,
    "num_classes": 4,
    "kernel_size": 3,
}
PICTURES = {"in_channels": 2, "num_classes": 3}
PATCHES = PICTURES | {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 2}  # four patches
VIT = ViTConfig(**PATCHES, num_heads=2, mlp_dim=12)
BARE = replace(VIT, num_classes=None)
MAE_CONFIG = MAEConfig(
    encoder=BARE, mask_ratio=0.5, decoder_dim=8, decoder_depth=1, decoder_num_heads=4, decoder_mlp_dim=10
)
RESNET = ResNetConfig(**PICTURES, stem="small", stem_channels=4, widths=(4, 8), depths=(1, 1), block="basic")
SMALL_CNN = CNNConfig(**PICTURES, widths=(4, 6), depths=(1, 1))
SQUARE = (B, 2, 2, T, T)  # of four patches and a class token, too

TABLE = {
    "GPT": Case(
        build=lambda: GPT(GPTConfig(**SHORT)),
        inputs=lambda: (tokens(),),
        headed=lambda model, h: h @ model.token_embed.weight.T,
        maps={"": SQUARE},
    ),
    "Llama": Case(
        build=lambda: Llama(
            LlamaConfig(vocab_size=VOCAB, context_length=6, dim=8, depth=2, num_heads=2, num_kv_heads=1, mlp_dim=12)
        ),
        inputs=lambda: (tokens(),),
        maps={"": SQUARE},
    ),
    "attention alone": Case(
        build=lambda: AttentionOnly(
            AttentionOnlyConfig(vocab_size=VOCAB, context_length=6, dim=8, num_heads=2, head_dim=3)
        ),
        inputs=lambda: (tokens(),),
        maps={"": SQUARE},
    ),
    "BERT": Case(
        build=lambda: BERT(BERTConfig(**SHORT), pooler=False),
        inputs=lambda: (tokens(),),
        headed=lambda model, h: h,
        maps={"": SQUARE},
    ),
    "BERT for masked words": Case(
        build=lambda: BERTForMaskedLM(BERTConfig(**SHORT)),
        inputs=lambda: (tokens(),),
        encoded=lambda model, x: model.bert.encode(model.bert.embed(x)),
        headed=lambda model, h: model.head(h, model.bert.token_embed.weight),
        maps={"": SQUARE},
    ),
    "Transformer": Case(
        build=lambda: Transformer(TransformerConfig(**SHORT | {"depth": 1})),
        inputs=lambda: (tokens(), tokens(T_Q)),
        encoded=decoded,
        headed=lambda model, h: h @ model.target_embed.weight.T + model.head.bias,
        maps=two_sided((1, 1), (2, 2)),
    ),
    "Marian": Case(
        build=lambda: Marian(
            MarianConfig(**SHORT | {"depth": (1, 2), "num_heads": (2, 4), "mlp_dim": (12, 10), "head": "linear"})
        ),
        inputs=lambda: (tokens(), tokens(T_Q)),
        encoded=decoded,
        maps=two_sided((1, 2), (2, 4)),
    ),
    "T5": Case(
        build=lambda: T5(T5Config(**TEXT | {"depth": 1}, head_dim=3, num_buckets=6, max_distance=5)),
        inputs=lambda: (tokens(), tokens(T_Q)),
        encoded=decoded,
        headed=lambda model, h: h @ model.token_embed.weight.T / 8**0.5,
        maps=two_sided((1, 1), (2, 2)),
    ),
    "ViLBERT": Case(
        build=lambda: ViLBERT(
            ViLBERTConfig(
                text=BERTConfig(**SHORT), region_dim=5, image_dim=6, image_num_heads=3, image_mlp_dim=7, co_depth=1
            )
        ),
        inputs=lambda: (tokens(), fields(), grid_boxes(2, 3).double().expand(B, -1, -1)),
        headed=lambda model, h: model.score(h),
        maps={
            "bert": (B, 2, 2, T, T),
            "text_co": (B, 1, 2, T, 7),
            "image_co": (B, 1, 3, 7, T),
            "image_block": (B, 1, 3, 7, 7),
        },
    ),
    "Flamingo": Case(
        build=lambda: Flamingo(
            FlamingoConfig(
                language=GPTConfig(**SHORT), vision_dim=5, num_latents=3, resampler_depth=1, num_heads=2, head_dim=4
            )
        ),
        inputs=lambda: (tokens(), fields()),
        encoded=lambda model, words, seen: model.encode(model.language.embed(words), model.embed(seen)),
        headed=lambda model, h: h @ model.language.token_embed.weight.T,
        maps={"resampler": (B, 1, 2, 3, 9), "gated": (B, 2, 2, T, 3), "language": SQUARE},
    ),
    "patches and words": Case(
        build=lambda: MultimodalGPT(
            MultimodalGPTConfig(language=GPTConfig(**SHORT | {"context_length": 11}), patch_dim=5)
        ),
        inputs=lambda: (tokens(), fields()),
        headed=lambda model, h: h[:, 6:] @ model.gpt.token_embed.weight.T,
        maps={"": (B, 2, 2, 11, 11)},
    ),
    "Conformer": Case(
        build=lambda: Conformer(ConformerConfig(**SPEECH)), inputs=lambda: (numbers(4 * T - 1, 6),), maps={"": SQUARE}
    ),
    "Transformer of frames": Case(
        build=lambda: SpeechTransformer(ConformerConfig(**SPEECH)),
        inputs=lambda: (numbers(4 * T - 1, 6),),
        maps={"": SQUARE},
    ),
    "ViT": Case(
        build=lambda: ViT(VIT),
        inputs=lambda: (image(),),
        headed=lambda model, h: model.head(h[:, 0]),
        maps={"": SQUARE},
    ),
    "Swin": Case(
        build=lambda: Swin(
            SwinConfig(**PICTURES, patch_size=2, dim=4, depths=(2, 1), num_heads=(2, 4), window_size=2, drop_path=0.0)
        ),
        inputs=lambda: (image(),),
        headed=lambda model, h: model.head(h.mean(dim=1)),
        maps={r"stages\.0": (4 * B, 2, 2, 4, 4), r"stages\.1": (B, 1, 4, 4, 4)},  # 2 x 2 windows, then one
    ),
    "Mixer": Case(
        build=lambda: Mixer(MixerConfig(**PATCHES, token_mlp_dim=6, mlp_dim=10)),
        inputs=lambda: (image(),),
        headed=lambda model, h: model.head(h.mean(dim=1)),
    ),
    "encoder of an MAE": Case(
        build=lambda: MAEEncoder(BARE), inputs=lambda: (image(),), headed=lambda model, h: h, maps={"": SQUARE}
    ),
    "MAE": Case(
        headed=None,
        build=lambda: MAE(MAE_CONFIG),
        inputs=lambda: (image(), noise()),
        encoded=lambda model, x, _: model.encode(model.embed(x)),
        maps={"encoder": (B, 2, 2, 3, 3), "decoder": (B, 1, 4, T, T)},  # of four patches two are seen
    ),
    "Seq2Seq": Case(
        build=lambda: Seq2Seq(
            Seq2SeqConfig(source_vocab=VOCAB, target_vocab=VOCAB, embed_dim=5, encoder_dim=3, hidden_dim=6)
        ),
        inputs=lambda: (tokens(T), torch.ones(B, T, dtype=torch.bool), tokens(FEW)),
        encoded=decoded_by_rnn,
        headed=lambda model, h: model.readout(h),
        maps={"": (B, 1, 1, FEW, T)},
    ),
    "CharacterLM of an LSTM": character_lm("lstm"),
    "CharacterLM of a GRU": character_lm("gru"),
    "CharacterLM of an RNN": character_lm("rnn"),
    "Decision Transformer": Case(
        build=lambda: DecisionTransformer(
            DecisionTransformerConfig(state_dim=3, action_dim=2, max_steps=T, dim=8, depth=2, num_heads=2, dropout=0.0)
        ),
        inputs=lambda: (numbers(T), numbers(T, 3), numbers(T, 2)),
        headed=lambda model, h: model.head(h[:, 1::3]).tanh(),
        maps={"": (B, 2, 2, 3 * T, 3 * T)},
    ),
    "policy of behaviour cloning and GAIL": Case(
        build=lambda: Policy(ImitationConfig(state_dim=3, action_dim=2, hidden_dim=6)),
        inputs=lambda: (numbers(3),),
        encoded=lambda model, x: model.backbone(x),
    ),
    "RBM": Case(
        headed=None,
        build=lambda: RBM(RBMConfig(num_visible=4, num_hidden=3)),
        inputs=lambda: (numbers(4),),
        encoded=lambda model, v: (v @ model.weight.T + model.hidden_bias).sigmoid(),
    ),
    "CNN": Case(
        build=lambda: CNN(SMALL_CNN),
        inputs=lambda: (image(),),
        encoded=lambda model, x: model.feature_maps(x)[-1].mean(dim=(2, 3)),
    ),
    "ResNet": Case(
        build=lambda: ResNet(RESNET),
        inputs=lambda: (image(),),
        encoded=lambda model, x: model.feature_maps(x)[-1].mean(dim=(2, 3)),
    ),
    "U-Net": Case(encoded=None, build=lambda: UNet(UNetConfig(**PICTURES, widths=(4, 6))), inputs=lambda: (image(),)),
    "SegNet": Case(
        encoded=None,
        build=lambda: SegNet(SegNetConfig(**PICTURES, widths=(4, 6), depths=(1, 2))),
        inputs=lambda: (image(),),
    ),
    "FCN": Case(
        encoded=None,
        build=lambda: FCN(FCNConfig(backbone=SMALL_CNN, window=4, num_classes=3, num_skips=1)),
        inputs=lambda: (image(),),
    ),
    "SimCLR": Case(
        build=lambda: SimCLR(SimCLRConfig(encoder=replace(RESNET, num_classes=None), projection_dim=5)),
        inputs=lambda: (image(),),
        encoded=lambda model, x: model.encoder.feature_maps(x)[-1].mean(dim=(2, 3)),
        headed=lambda model, h: model.projection(h),
    ),
}
LESSON = Case(
    build=lambda: gpt_lesson(50, dropout=0.0), inputs=lambda: (tokens(128, batch=8, vocab=50),), std=0.05
)  # 4 blocks of 128 units, as the lessons train it
FUNCTIONS = TABLE | {"GPT at the size of a lesson": LESSON}


def cases(table=TABLE, **having):
    """Those of the table's cases that have something for each of these fields."""
    chosen = {name: case for name, case in table.items() if all(getattr(case, name) for name in having)}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


def make(case):
    """The model with random weights, in double precision and evaluation mode, and its inputs."""
    torch.manual_seed(0)
    model = case.build().double().eval()
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=case.std)
    return model, case.inputs()


def run(model, inputs, parameters=None):
    """The output of `forward`, one tensor, with the model's own parameters or others."""
    output = model(*inputs) if parameters is None else functional_call(model, parameters, inputs)
    return output.patches if isinstance(model, MAE) else output


def learnable(model):
    return {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}


def loss_of(output):
    """How far an output is from one that is the same for all rows."""
    wanted = torch.linspace(-1, 1, output[0].numel(), dtype=torch.float64).reshape(output.shape[1:])
    return (output - wanted).square().mean()


def gradients(model):
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.requires_grad}


def learned(model, inputs):
    """The gradients of all learnable parameters, by ordinary autograd; none of them is zero throughout."""
    model.zero_grad()
    loss_of(run(model, inputs)).backward()
    found = gradients(model)
    assert all(gradient.any() for gradient in found.values())
    return found


def same(actual, expected, tolerance=1e-10):
    """Whether tensors by name agree, measured by the largest of them all."""
    largest = max(tensor.abs().max().item() for tensor in expected.values())
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance * largest)


@cases(encoded=True)
@torch.no_grad()
def test_features_are_what_the_encoder_makes_of_embeddings_and_forward_is_the_head_of_features(case):
    model, inputs = make(case)
    features = model.features(*inputs[:1]) if isinstance(model, MAE) else model.features(*inputs)
    torch.testing.assert_close(features, case.encoded(model, *inputs), rtol=0, atol=1e-12)
    if case.headed is not None:
        torch.testing.assert_close(run(model, inputs), case.headed(model, features), rtol=0, atol=1e-12)


@cases(maps=True)
def test_recorded_attention_has_a_row_for_each_query_that_sums_to_one(case):
    model, inputs = make(case)
    with record_attention(model) as record:
        model(*inputs)
    for part, shape in case.maps.items():
        maps = record.maps(part)
        assert maps.shape == shape and not maps.requires_grad and (maps >= 0).all()
        torch.testing.assert_close(maps.sum(dim=-1), torch.ones(shape[:-1]).double(), rtol=0, atol=1e-12)
    assert len(record) == sum(shape[1] for shape in case.maps.values())  # and no other attention ran


@cases(maps=True)
def test_recording_changes_no_bit_and_leaves_nothing_behind(case):
    model, inputs = make(case)
    before, expected, alone = traces(model), learned(model, inputs), run(model, inputs)
    for fault in (None, ZeroDivisionError):
        try:
            with record_attention(model) as record:
                found, watched = learned(model, inputs), run(model, inputs)
                if fault:
                    raise fault
        except ZeroDivisionError:
            pass
        assert torch.equal(watched, alone)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert traces(model) == before
        calls = [len(noted) for noted in record.values()]
        assert torch.equal(run(model, inputs), alone) and [len(noted) for noted in record.values()] == calls


def traces(model):
    """All that a recorder could have left in a model: attributes that are no tensors, and hooks."""
    plain = {"training", "_forward_hooks", "_forward_pre_hooks", "attend"}
    return {
        name: (sorted(vars(part)), {key: str(value) for key, value in vars(part).items() if key in plain})
        for name, part in model.named_modules()
    }


def test_recording_draws_no_random_numbers_and_notes_weights_without_dropout():
    torch.manual_seed(0)
    model, x = GPT(GPTConfig(**SHORT | {"dropout": 0.5})).train(), tokens()
    outputs = []
    for recorded in (False, True):
        torch.manual_seed(1)
        if recorded:
            with record_attention(model) as record:
                outputs.append(model(x))
        else:
            outputs.append(model(x))
    assert torch.equal(*outputs)
    torch.testing.assert_close(record.maps().sum(dim=-1), torch.ones(B, 2, 2, T))


@cases(FUNCTIONS)
def test_the_gradient_of_a_function_of_parameters_is_that_of_autograd(case):
    model, inputs = make(case)
    expected, own = learned(model, inputs), dict(model.named_parameters())
    same(grad(lambda parameters: loss_of(run(model, inputs, parameters)))(learnable(model)), expected)
    after = dict(model.named_parameters())
    assert after.keys() == own.keys() and all(after[name] is own[name] for name in own)  # only lent others meanwhile


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap runs some kernels row by row
@cases(FUNCTIONS)
def test_gradients_of_all_rows_at_once_are_those_of_one_row_after_the_other(case):
    model, inputs = make(case)
    alone = [learned(model, tuple(each[i, None] for each in inputs)) for i in range(len(inputs[0]))]

    def loss(parameters, *row):
        return loss_of(run(model, tuple(each[None] for each in row), parameters))

    together = vmap(grad(loss), in_dims=(None, *[0] * len(inputs)))(learnable(model), *inputs)
    for i, expected in enumerate(alone):
        same({name: each[i] for name, each in together.items()}, expected)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by torch.func itself
@cases(FUNCTIONS)
def test_the_derivative_along_a_direction_is_the_gradient_times_the_direction(case):
    model, inputs = make(case)
    expected, parameters = learned(model, inputs), learnable(model)
    direction = {name: torch.randn_like(each) for name, each in parameters.items()}
    _, found = jvp(lambda parameters: loss_of(run(model, inputs, parameters)), (parameters,), (direction,))
    products = torch.stack([(expected[name] * direction[name]).sum() for name in expected])
    torch.testing.assert_close(found, products.sum(), rtol=0, atol=1e-10 * products.abs().max().item())


def compiled(case):
    """One graph with the model's outputs and gradients; "aot_eager" traces both and makes no machine code."""
    model, inputs = make(case)
    expected, output = learned(model, inputs), run(model, inputs).detach()
    model.zero_grad()
    found = run_compiled(model, inputs)
    loss_of(found).backward()
    torch.testing.assert_close(found.detach(), output, rtol=0, atol=1e-12)
    same(gradients(model), expected)


def run_compiled(model, inputs):
    torch.compiler.reset()
    output = torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs)
    return output.patches if isinstance(model, MAE) else output


def exported(case):
    """A graph without the model's code."""
    model, inputs = make(case)
    found = torch.export.export(model, inputs).module()(*inputs)
    found = found.patches if isinstance(model, MAE) else found
    torch.testing.assert_close(found, run(model, inputs), rtol=0, atol=1e-12)


WAYS = {"compiled": compiled, "exported": exported}


def attempts():
    """For each model and way None, or what went wrong."""
    said = {}
    for name, case in TABLE.items():
        for way, attempt in WAYS.items():
            try:
                attempt(case)
                said[f"{name}, {way}"] = None
            except Exception as error:
                said[f"{name}, {way}"] = f"{type(error).__name__}: {error}"
    return said


def test_each_model_is_one_graph_for_torch_compile_and_for_torch_export(subtests):
    command = [sys.executable, "-m", "tests.models.test_every_model"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said) == len(TABLE) * len(WAYS)
    for model, problem in said.items():
        with subtests.test(model):
            assert problem is None, problem


if __name__ == "__main__":
    gc.disable()  # tracing makes many small objects: to look through them again and again takes a tenth of the time
    print(json.dumps(attempts()))


@pytest.mark.parametrize(
    "build",
    [
        lambda n: GPT(GPTConfig(vocab_size=n(11), context_length=n(6), dim=n(8), depth=n(1), num_heads=n(2))),
        lambda n: ViT(ViTConfig(image_size=n(8), patch_size=n(4), dim=n(8), depth=n(1), num_heads=n(2), mlp_dim=n(8))),
        lambda n: ViT(ViTConfig(image_size=(n(8), n(4)), patch_size=4, dim=8, depth=1, num_heads=2, mlp_dim=8)),
        lambda n: Swin(SwinConfig(image_size=n(8), patch_size=2, dim=n(8), depths=(n(1),), num_heads=(n(2),))),
        lambda n: Transformer(TransformerConfig(vocab_size=(n(7), n(9)), dim=8, depth=1, num_heads=2, mlp_dim=8)),
        lambda n: ResNet(ResNetConfig(widths=(n(8),), depths=(n(1),), stem_channels=n(4), block="basic")),
    ],
)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_a_config_takes_the_integers_of_numpy_and_is_saved_as_with_plain_ones(tmp_path, monkeypatch, build, kind):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # outside of tests nobody checks the annotations
    own.save(build(kind), tmp_path / "model.safetensors")
    assert own.load(tmp_path / "model.safetensors").config == build(int).config

"""What models are before they learn: as many parameters as the papers' and the released ones, and first weights."""

import re

import pytest
import torch

from course_lib.models import bert, bert_tasks, conformer, gpt, llama, mae, mixer, resnet, swin, t5, vit
from course_lib.models.bert import BERTConfig
from course_lib.models.boltzmann import RBM, RBMConfig
from course_lib.models.decision_transformer import decision_transformer_gym
from course_lib.models.flamingo import Flamingo, FlamingoConfig
from course_lib.models.imitation import ImitationConfig, Policy
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.models.segnet import segnet
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.transformer import transformer_base, transformer_big
from course_lib.models.unet import unet
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig
from course_lib.models.vit import ViT, ViTConfig

T5_1_1 = {"activation": "gated_gelu_tanh", "head": "linear", "mlp_dim": 1024, "depth": 8, "num_heads": 6}
TINY_MAE = {"image_size": 8, "patch_size": 4, "dim": 16, "depth": 1, "num_heads": 2, "mlp_dim": 8, "decoder_depth": 1}
FEW = {"depth": 1, "num_classes": None, "image_size": 28}

PARAMETERS = {
    # as in the released files
    "GPT-2 small": (gpt.gpt2_small, 124_439_808),
    "GPT-2 medium": (gpt.gpt2_medium, 354_823_168),
    "GPT-2 large": (gpt.gpt2_large, 774_030_080),
    "GPT-2 XL": (gpt.gpt2_xl, 1_557_611_200),
    "GPT of the lessons": (lambda: gpt.gpt_lesson(1000), 937_728),
    "Llama 7B": (llama.llama_7b, 6_738_415_616),
    "Llama 13B": (llama.llama_13b, 13_015_864_320),
    "Llama 33B": (llama.llama_33b, 32_528_943_616),
    "Llama 65B": (llama.llama_65b, 65_285_660_672),
    "Llama 2 7B": (llama.llama2_7b, 6_738_415_616),
    "Llama 2 13B": (llama.llama2_13b, 13_015_864_320),
    "Llama 2 70B": (llama.llama2_70b, 68_976_648_192),
    "BERT-base": (bert.bert_base, 109_482_240),
    "BERT-large": (bert.bert_large, 335_141_888),
    "BERT, masked words": (lambda: bert_tasks.BERTForMaskedLM(BERTConfig()), 109_514_298),
    "BERT, pre-training": (lambda: bert_tasks.BERTForPreTraining(BERTConfig()), 110_106_428),
    "BERT, next sentence": (lambda: bert_tasks.BERTForNextSentence(BERTConfig()), 109_483_778),
    "BERT, sentences": (lambda: bert_tasks.BERTForSequenceClassification(BERTConfig()), 109_483_778),
    "BERT, tokens": (lambda: bert_tasks.BERTForTokenClassification(BERTConfig()), 108_893_186),
    "T5-small": (t5.t5_small, 60_506_624),
    "T5-base": (t5.t5_base, 222_903_552),
    "T5-large": (t5.t5_large, 737_668_096),
    "T5 1.1 small": (lambda: t5.t5_small(**T5_1_1), 76_961_152),
    "T5 3B": (lambda: t5.t5_large(num_heads=32, head_dim=128, mlp_dim=16_384), 2_851_598_336),
    "T5 11B": (lambda: t5.t5_large(num_heads=128, head_dim=128, mlp_dim=65_536), 11_307_321_344),
    "opus-mt-en-de": (lambda: Marian(MarianConfig(vocab_size=58_101)), 73_944_309),
    "ViT-Ti/16": (vit.vit_tiny_patch16, 5_717_416),
    "ViT-S/16": (vit.vit_small_patch16, 22_050_664),
    "ViT-B/16": (vit.vit_base_patch16, 86_567_656),
    "ViT-L/16": (vit.vit_large_patch16, 304_326_632),
    "ViT-H/14": (vit.vit_huge_patch14, 632_045_800),
    "ViT-H/14, one block, no head": (lambda: vit.vit_huge_patch14(**FEW), 20_441_600),
    "Swin-T": (swin.swin_tiny, 28_288_354),
    "Swin-S": (swin.swin_small, 49_606_258),
    "Swin-B": (swin.swin_base, 87_768_224),
    "Swin-T, no head, windows of 12": (lambda: swin.swin_tiny(num_classes=None, window_size=12), 27_569_034),
    "Swin-S, one stage": (lambda: swin.swin_small(depths=(1,), num_heads=(3,)), 214_435),
    "Swin-B, no head": (lambda: swin.swin_base(num_classes=None), 86_743_224),
    "MAE-B": (mae.mae_base, 111_907_840),
    "encoder of MAE-B": (lambda: mae.mae_base().encoder, 85_798_656),
    "MAE-L": (mae.mae_large, 329_541_888),
    "encoder of MAE-L": (lambda: mae.mae_large().encoder, 303_301_632),
    "MAE-H": (mae.mae_huge, 657_074_508),
    "MAE-H, small in both parts": (lambda: mae.mae_huge(**TINY_MAE, mask_ratio=0.5), 3_192_152),
    "ResNet-18": (resnet.resnet18, 11_689_512),
    "ResNet-34": (resnet.resnet34, 21_797_672),
    "ResNet-50": (resnet.resnet50, 25_557_032),
    "ResNet-101": (resnet.resnet101, 44_549_160),
    "ResNet-152": (resnet.resnet152, 60_192_808),
    "ResNet-50 under SimCLR": (lambda: SimCLR(SimCLRConfig()).encoder, 23_508_032),
    "projection of SimCLR": (lambda: SimCLR(SimCLRConfig()).projection, 2048 * (2048 + 2 + 128)),
    "decision transformer": (lambda: decision_transformer_gym(11, 3), 1_122_307),
    # by the papers' tables, rounded there
    "ResNet-8": (lambda: resnet.resnet8(in_channels=1), 75_002),
    "ResNet-20": (lambda: resnet.small_resnet(20, in_channels=3), 269_722),  # 0.27 M
    "ResNet-32": (lambda: resnet.small_resnet(32, in_channels=3), 464_154),  # 0.46 M
    "ResNet-44": (lambda: resnet.small_resnet(44, in_channels=3), 658_586),  # 0.66 M
    "ResNet-56": (lambda: resnet.small_resnet(56, in_channels=3), 853_018),  # 0.85 M
    "ResNet-110": (lambda: resnet.small_resnet(110, in_channels=3), 1_727_962),  # 1.73 M
    "plain net of 56 layers": (lambda: resnet.small_resnet(56, in_channels=3, residual=False), 853_018),
    "Mixer-S/32": (lambda: mixer.mixer_small_patch32(num_classes=None), 18_591_624),  # 19 M
    "Mixer-S/16": (lambda: mixer.mixer_small_patch16(num_classes=None), 18_015_264),  # 18 M
    "Mixer-B/32": (lambda: mixer.mixer_base_patch32(num_classes=None), 59_524_428),  # 60 M
    "Mixer-B/16": (lambda: mixer.mixer_base_patch16(num_classes=None), 59_111_472),  # 59 M
    "Mixer-L/32": (lambda: mixer.mixer_large_patch32(num_classes=None), 205_914_264),  # 206 M
    "Mixer-L/16": (lambda: mixer.mixer_large_patch16(num_classes=None), 207_171_168),  # 207 M
    "Mixer-H/14": (lambda: mixer.mixer_huge_patch14(num_classes=None), 431_069_952),  # 431 M
    "Mixer-H/14, one block, ten classes": (lambda: mixer.mixer_huge_patch14(num_classes=10, depth=1), 14_216_586),
    "U-Net": (unet, 31_030_658),
    "SegNet": (segnet, 29_472_779),
    "encoder of SegNet": (lambda: segnet().encoder, 14_718_912),
    "Transformer, base": (transformer_base, 63_119_496),  # 65 M, which has other biases
    "Transformer, big": (transformer_big, 214_282_376),  # 213 M
    "Transformer of two layers": (lambda: transformer_base(depth=2), 33_693_832),  # 36 M
    "Conformer (S)": (conformer.conformer_small, 8_701_632),  # 10.3 M with an LSTM of 320 units and its decoder
    "Conformer (M)": (conformer.conformer_medium, 27_311_104),  # 30.7 M with an LSTM of 640 units
    "Conformer (L)": (conformer.conformer_large, 115_076_608),  # 118.8 M with an LSTM of 640 units
    "ViLBERT": (lambda: ViLBERT(ViLBERTConfig()), 230_197_249),
    "characters by an LSTM of two layers": (
        lambda: CharacterLM(RecurrentConfig(vocab_size=7, embed_dim=3, hidden_dim=6, num_layers=2)),
        7 * 3 + 4 * 6 * (3 + 6 + 2) + 4 * 6 * (6 + 6 + 2) + 7 * (6 + 1),
    ),
    "policy of GAIL": (lambda: Policy(ImitationConfig(state_dim=11, action_dim=3)), 12 * 100 + 101 * 100 + 101 * 3),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_model_has_the_parameters_of_its_paper(name):
    build, expected = PARAMETERS[name]
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in build().parameters()) == expected


def test_settings_that_cost_no_parameters_are_those_of_the_papers():
    with torch.device("meta"):
        assert [build().config.context_length for build in (llama.llama_7b, llama.llama2_7b)] == [2048, 4096]
        assert [build().config.norm_eps for build in (llama.llama_7b, llama.llama2_7b)] == [1e-6, 1e-5]
        assert llama.llama2_70b().blocks[0].attn.head_dim == 128
        for build in (swin.swin_tiny, swin.swin_small, swin.swin_base):  # heads of 32 numbers in each stage
            config = build().config
            assert all(config.dim * 2**i / heads == 32 for i, heads in enumerate(config.num_heads))
        config = decision_transformer_gym(11, 3).config
        assert (config.num_heads, config.activation, config.context_steps, config.dropout) == (1, "relu", 20, 0.1)
        assert [build().config.num_heads for build in (vit.vit_base_patch16, vit.vit_huge_patch14)] == [12, 16]
        assert ViLBERT(ViLBERTConfig()).co_layers[0].image_block.attn.num_heads == 8
        tiny = mae.mae_huge(**TINY_MAE, mask_ratio=0.5)
        assert tiny.config.encoder.grid == (2, 2) and tiny.encoder.mask_ratio == 0.5


BERT_TINY = BERTConfig(vocab_size=500, dim=64, depth=1, num_heads=2, mlp_dim=128, tied=False)
SIGHT = {"language": gpt.GPTConfig(vocab_size=9, dim=8, depth=1, num_heads=1), "vision_dim": 16, "resampler_depth": 1}
EXPERTS = {"vocab_size": 50, "context_length": 9, "dim": 64, "depth": 2, "num_heads": 2, "num_experts": 3}
LLAMA_TINY = {"vocab_size": 500, "dim": 128, "depth": 2, "num_heads": 4, "mlp_dim": 300}
PATCHES = {"image_size": 16, "patch_size": 4, "num_classes": 30, "dim": 64, "depth": 1, "mlp_dim": 128}

# build -> the standard deviation of the weights whose name begins or goes on so; the first that fits counts, None: any
FIRST = {
    "RBM": (lambda: RBM(RBMConfig(num_visible=30, num_hidden=20)), {"": 0.01}),
    "MAE": (lambda: mae.mae_base(**TINY_MAE | {"dim": 64}), {r".*(cls|mask)_token": 0.02, "": None}),
    "Flamingo": (lambda: Flamingo(FlamingoConfig(**SIGHT)), {"resampler.latents": 0.02, "": None}),
    "GPT": (lambda: gpt.gpt_lesson(500, depth=8), {r".*(o|down)_proj": 0.02 / 4, "": 0.02}),
    "GPT of experts": (lambda: MixtureGPT(MixtureGPTConfig(**EXPERTS)), {r".*(o_proj|experts\.\d\.2)": 0.01, "": 0.02}),
    "BERT": (lambda: bert_tasks.BERTForPreTraining(BERT_TINY), {"": 0.02}),
    "Llama": (lambda: llama.Llama(llama.LlamaConfig(**LLAMA_TINY)), {"": 0.02}),
    "decision transformer": (lambda: decision_transformer_gym(40, 40), {"": 0.02}),
    "Swin": (
        lambda: Swin(SwinConfig(image_size=16, dim=32, depths=(2, 2), num_heads=(2, 4), num_classes=10)),
        {"patch_embed": 48**-0.5, "": 0.02},
    ),
    "T5": (  # queries make up for the missing scale of attention, embeddings for that of a tied head
        lambda: t5.t5_small(vocab_size=400, depth=1, mlp_dim=1024),
        {"token_embed": 1, ".*q_proj": (512 * 64) ** -0.5, ".*down_proj": 1024**-0.5, "": 512**-0.5},
    ),
    "ViT": (
        lambda: ViT(ViTConfig(**PATCHES, num_heads=2)),
        {
            "head|cls_token": 0,
            "pos_embed": 0.02,
            "patch_embed": 48**-0.5,
            ".*(up|down)_proj": (2 / 192) ** 0.5,
            "": (2 / 128) ** 0.5,
        },
    ),
    "Mixer": (
        lambda: Mixer(MixerConfig(**PATCHES, token_mlp_dim=32)),
        {
            "head": 0,
            "patch_embed": 48**-0.5,
            ".*token_mlp.up": 16**-0.5,
            ".*token_mlp.down": 32**-0.5,
            ".*down": 128**-0.5,
            "": 64**-0.5,
        },
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_weights_have_the_spread_that_the_papers_say(name):
    build, spreads = FIRST[name]
    torch.manual_seed(0)
    for part, parameter in build().named_parameters():
        expected = next(spread for pattern, spread in spreads.items() if re.match(pattern, part))
        if expected is None:
            continue
        if "norm" in part:
            assert (parameter == (1 if part.endswith("weight") else 0)).all(), part
        elif part.endswith("bias"):
            assert (parameter == 0).all(), part
        else:
            error = 4 / (2 * parameter.numel()) ** 0.5  # four standard errors
            assert parameter.std().item() == pytest.approx(expected, rel=error), part

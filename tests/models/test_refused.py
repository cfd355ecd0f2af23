"""What no model can be, and what it cannot be given: named in the words of the person who asked for it."""

from dataclasses import replace

import pytest
import torch

from course_lib.models.attention_only import AttentionOnly, AttentionOnlyConfig
from course_lib.models.baselines import LogisticRegression, MajorityClass
from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.boltzmann import RBM, DBNConfig, RBMConfig
from course_lib.models.clip import CLIPConfig
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.conformer import ConformerConfig
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.fcn import FCN, FCNConfig, fcn_from_classifier
from course_lib.models.flamingo import FlamingoConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.imitation import ImitationConfig
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.models.mae import MAE, MAEConfig, encoder_of
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.mixture_gpt import MixtureGPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.naive_bayes import NaiveBayes
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.models.resnet import ResNet, ResNetConfig, resnet8, small_resnet
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.models.unet import UNet, UNetConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.models.vit import ViT, ViTConfig

TEXT = {"vocab_size": 11, "dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 12}
SHORT = TEXT | {"context_length": 6}
PAIRS = {"depth": (1, 1), "num_heads": (2, 2), "mlp_dim": (9, 9)}
TINY_GPT = GPTConfig(**SHORT)
DECISION = {"state_dim": 2, "action_dim": 3, "max_steps": 9, "dim": 8, "depth": 1, "num_heads": 2}
VIT = {"image_size": (8, 12), "patch_size": 4, "in_channels": 2, "dim": 12, "depth": 1, "num_heads": 3, "mlp_dim": 8}
BARE = ViTConfig(**VIT, num_classes=None)
MAE_SIZES = {"decoder_dim": 8, "decoder_depth": 1, "decoder_num_heads": 2, "decoder_mlp_dim": 10}
SWIN = {"patch_size": 2, "dim": 6, "depths": (2, 2), "num_heads": (2, 3), "window_size": 2}
MIXER = {"image_size": 12, "patch_size": 4, "in_channels": 2, "dim": 8, "depth": 1, "token_mlp_dim": 6, "mlp_dim": 10}
SMALL_CNN = {"image_size": 8, "num_classes": 3, "widths": (4, 6), "depths": (1, 2)}
PLACES = CNNConfig(image_size=16, widths=(4, 6, 8), depths=(1, 1, 1), pool="none")
RESNET = {"in_channels": 1, "stem": "small", "stem_channels": 4, "block": "basic", "widths": (4, 8), "depths": (1, 2)}
THREE = ResNetConfig(in_channels=1, block="basic", widths=(4, 6, 8), depths=(1, 1, 1), stem_channels=4)
VILBERT = {"region_dim": 5, "image_dim": 6, "image_num_heads": 3, "image_mlp_dim": 7, "co_depth": 1}
REGIONS = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 6, 5), grid_boxes(1, 5)[None]


def ids(count):
    return torch.zeros(1, count, dtype=torch.long)


def images(*shape):
    return torch.zeros(1, *shape)


def vilbert(**changes):
    return ViLBERT(ViLBERTConfig(text=BERTConfig(**SHORT), **VILBERT | changes))


def reads(valid):
    model = CharacterLM(RecurrentConfig(vocab_size=5))
    return model.next_logits(ids(2), model.new_cache(2), valid=valid)


def sees(patches):
    model = MultimodalGPT(MultimodalGPTConfig(language=TINY_GPT, patch_dim=6))
    return model(ids(5), patches)


def mae(**changes):
    return MAE(MAEConfig(**{"encoder": BARE, **MAE_SIZES} | changes))


def acts(**changes):
    return DecisionTransformer(DecisionTransformerConfig(**DECISION | changes))


def fitted(text):
    return KneserNey(KneserNeyConfig(vocab_size=4, order=3)).fit(text)


REFUSED = [
    # sizes and options of language models
    (lambda: AttentionOnlyConfig(vocab_size=9, depth=0), "depth must be 1 or more, got 0"),
    (lambda: GPTConfig(mlp_dim=0), "mlp_dim must be 1 or more, got 0"),  # and not taken for the usual one
    (lambda: GPTConfig(head="own"), "head must be one of .* got 'own'"),
    (lambda: MixtureGPTConfig(k=0), "k must be from 1"),
    (lambda: MixtureGPTConfig(num_experts=2, k=3), "k must be from 1"),
    (lambda: MixtureGPTConfig(activation="relu"), "gelu.*'relu'"),
    (lambda: LlamaConfig(mlp_dim=0), "mlp_dim must be 1 or more, got 0"),
    (lambda: LlamaConfig(head="own"), "head must be one of .* got 'own'"),
    (lambda: Llama(LlamaConfig(**SHORT, head_dim=3)), "dim even and at least 2, got length=6, dim=3"),
    (lambda: BERTConfig(depth=0), "depth must be 1 or more, got 0"),
    (lambda: T5Config(head="own"), "head must be one of .* got 'own'"),
    (lambda: T5(T5Config(**TEXT, activation="gated_tanh")), "activation must be one of .* got 'tanh'"),
    (lambda: T5(T5Config(**TEXT, num_buckets=3)), "num_buckets=3"),
    (lambda: TransformerConfig(vocab_size=9, positions="rotary"), "positions must be one of .*'rotary'"),
    (lambda: TransformerConfig(vocab_size=9, head="none"), "head must be one of .*'none'"),
    (lambda: TransformerConfig(vocab_size=9, depth=0), "depth must be 1 or more, got 0"),
    (lambda: TransformerConfig(vocab_size=(11, 0)), r"vocab_size must be 1 or more, got \(11, 0\)"),
    (lambda: MarianConfig(vocab_size=9, head="none"), "head must be one of .*'none'"),
    (lambda: MarianConfig(vocab_size=9, depth=(2, 0)), r"depth must be 1 or more, got \(2, 0\)"),
    (lambda: MarianConfig(vocab_size=9, context_length=0), "context_length must be 1 or more, got 0"),
    (lambda: FlamingoConfig(every=0), "every must be 1 or more, got 0"),
    (lambda: FlamingoConfig(language=GPTConfig(head=None)), "head=None"),
    (lambda: MultimodalGPTConfig(patch_dim=0), "patch_dim must be 1 or more, got 0"),
    (lambda: MultimodalGPTConfig(language=GPTConfig(head=None)), "head=None"),
    (lambda: CLIPConfig(text=GPTConfig(vocab_size=9)), "set its head to None"),
    (lambda: vilbert(co_depth=4), "co_depth=4 is more than the 1 blocks"),
    (lambda: vilbert(region_dim=0), "region_dim must be 1 or more, got 0"),
    # of recurrent models and those of other sequences
    (lambda: RecurrentConfig(vocab_size=5, cell="qrnn"), "rnn, lstm, gru, got 'qrnn'"),
    (lambda: RecurrentConfig(vocab_size=5, cell="gru", forget_bias=1.0), "cell is 'gru'"),
    (lambda: CharacterLM(RecurrentConfig(vocab_size=5, bidirectional=True)), "must be False"),
    (lambda: Seq2SeqConfig(source_vocab=9, target_vocab=9, attention="bahdanau"), "scaled, got 'bahdanau'"),
    (lambda: Seq2Seq(Seq2SeqConfig(source_vocab=9, target_vocab=9, attention="dot")), "got 64 and 128"),
    (lambda: DecisionTransformerConfig(context_steps=0), "context_steps must be 1 or more, got 0"),
    (lambda: DecisionTransformerConfig(mlp_dim=0), "mlp_dim must be 1 or more, got 0"),
    (lambda: ConformerConfig(kernel_size=4), "middle, got 4"),
    (lambda: ConformerConfig(depth=0), "depth must be 1 or more, got 0"),
    (lambda: ImitationConfig(state_dim=5, action_dim=3, depth=0), "depth must be 1 or more, got 0"),
    (lambda: RBMConfig(num_visible=0, num_hidden=2), "units in both layers"),
    (lambda: RBMConfig(num_visible=2, num_hidden=0), "units in both layers"),
    (lambda: RBMConfig(num_visible=2, num_hidden=2, num_chains=-1), "units in both layers"),
    (lambda: DBNConfig(dims=(3,)), "two layers or more"),
    (lambda: DBNConfig(dims=(3, 0)), "two layers or more"),
    (lambda: DBNConfig(dims=(3, 2), num_classes=0), "two layers or more"),
    # of models of images
    (lambda: ViTConfig(pool="max"), "pool must be one of cls, mlp, mean, got 'max'"),
    (lambda: ViTConfig(stem="resnet"), "stem must be one of patch, conv, got 'resnet'"),
    (lambda: ViTConfig(**VIT | {"image_size": 30}), "image_size=30 is no whole number of patches of 4"),
    (lambda: ViTConfig(**VIT | {"image_size": (8, 13)}), r"image_size=\(8, 13\) is no whole number"),
    (lambda: ViTConfig(**VIT | {"image_size": 0}), "image_size=0 is no whole number"),
    (lambda: ViT(ViTConfig(**VIT | {"stem": "conv", "patch_size": 6, "image_size": 12})), "patch_size=6"),
    (lambda: MAEConfig(encoder=ViTConfig(num_classes=7)), "has num_classes=None, got 7"),
    *[
        (lambda ratio=ratio: mae(mask_ratio=ratio), f"mask_ratio is a share .* got {ratio}")
        for ratio in (0.0, 1.0, -0.1)
    ],
    (lambda: encoder_of(mae(encoder=replace(BARE, pool="mean")), pool="cls"), "pool='cls' reads a class token"),
    (lambda: SwinConfig(**SWIN | {"depths": (2, 2, 2)}), r"depths=\(2, 2, 2\) and num_heads=\(2, 3\)"),
    (lambda: SwinConfig(**SWIN | {"depths": (2, 0)}), "depths of at least 1"),
    (lambda: SwinConfig(**SWIN | {"depths": (), "num_heads": ()}), r"depths=\(\)"),
    (lambda: SwinConfig(**SWIN | {"window_size": 0}), "window_size=0"),
    (lambda: SwinConfig(**SWIN | {"patch_size": 0}), "patch_size=0"),
    (lambda: SwinConfig(**SWIN, image_size=7), "image_size=7 is no whole number of patches of 2"),
    (lambda: SwinConfig(**SWIN, image_size=(4, 0)), r"image_size=\(4, 0\)"),
    (lambda: Swin(SwinConfig(**SWIN, drop_path=1.0)), "got 1.0"),
    (lambda: SwinConfig(**SWIN, mlp_ratio=0.1), "mlp_ratio=0.1"),
    *[
        (lambda size=size: MixerConfig(**MIXER | {"image_size": size}), f"multiple of patch_size, got {size} and 4")
        for size in (10, 0)
    ],
    (lambda: CNNConfig(**SMALL_CNN | {"depths": (1,)}), r"widths \(4, 6\) and depths \(1,\)"),
    (lambda: CNNConfig(**SMALL_CNN | {"depths": (0, 1)}), "each at least 1"),
    (lambda: CNNConfig(**SMALL_CNN, pool="max"), "pool must be 'mean' or 'none', got 'max'"),
    (lambda: ResNetConfig(**RESNET | {"depths": (1,)}), r"widths \(4, 8\) and depths \(1,\)"),
    (lambda: ResNetConfig(**RESNET | {"depths": (1, 0)}), "each at least 1"),
    (lambda: ResNetConfig(**RESNET | {"widths": (), "depths": ()}), "each at least 1"),
    (lambda: ResNetConfig(**RESNET | {"stem": "large"}), "stem must be 'imagenet' or 'small'.*'large'"),
    (lambda: ResNetConfig(**RESNET | {"block": "wide"}), "block 'basic' or 'bottleneck'.*'wide'"),
    (lambda: ResNet(ResNetConfig(**RESNET | {"block": "bottleneck", "widths": (4, 6)})), "multiple of 4, got 6"),
    (lambda: ResNet(ResNetConfig(**RESNET, shortcut="zeros")), "shortcut must be"),
    *[(lambda layers=layers: small_resnet(layers), rf"6n \+ 2.*got {layers}") for layers in (2, 9, 18)],
    (lambda: SegNetConfig(widths=(4, 6), depths=(1,)), r"\(4, 6\) and depths \(1,\)"),
    (lambda: UNetConfig(widths=(8,)), r"\(8,\)"),
    (lambda: UNetConfig(widths=(8, 0)), r"\(8, 0\)"),
    (lambda: UNet(UNetConfig(widths=(4, 6), up="nearest")), "'nearest'"),
    (lambda: UNetConfig(widths=(4, 6, 8), backbone=resnet8().config), r"widths \(16, 32, 64\) and 3 channels"),
    (lambda: FCN(FCNConfig(backbone=THREE, window=1, num_skips=3)), "3 maps has 0 to 2 skips"),
    (lambda: FCNConfig(backbone=THREE, window=0), "window=0"),
    (lambda: fcn_from_classifier(ResNet(THREE)), "image_size"),
    (lambda: fcn_from_classifier(CNN(replace(PLACES, num_classes=None))), "head"),
    (lambda: SimCLR(SimCLRConfig(encoder=ResNetConfig(num_classes=10))), "head of 10 classes"),
    # of models of counts
    (lambda: KneserNeyConfig(vocab_size=5, order=0), "0 and 5"),
    (lambda: LogisticRegression(l2=0), "got 0"),
    (lambda: NaiveBayes(smoothing=0), "smoothing must be positive, got 0"),
    (lambda: NaiveBayes().fit([["a"]], ["x", "y"]), "got 1 and 2 labels"),
    *[
        (lambda model=model, given=given: model.fit(*given), words)
        for model in (MajorityClass(), LogisticRegression())
        for given, words in (
            (([["a"]], [1, 2]), "got 1 and 2 labels"),
            (([], []), "got 0 and 0"),
            ((["la loi"], [1]), "plain text"),
        )
    ],
    # what a model is given
    (lambda: AttentionOnly(AttentionOnlyConfig(vocab_size=9, context_length=6, dim=8))(ids(7)), "positions 0 to 6"),
    (lambda: BERT(BERTConfig(**SHORT))(ids(7)), "positions 0 to 6 were asked for, the table holds 0 to 5"),
    (lambda: BERT(BERTConfig(**SHORT), pooler=False).pool(torch.zeros(1, 2, 8)), "has no pooler"),
    (lambda: GPT(TINY_GPT)(ids(7)), "positions 0 to 6 .* 0 to 5"),
    (lambda: GPT(replace(TINY_GPT, head=None)).new_cache(5), "head=None"),
    (lambda: Llama(LlamaConfig(**SHORT))(ids(7)), "positions 0 to 6 .* 0 to 5"),
    (lambda: Llama(LlamaConfig(**SHORT, head=None)).new_cache(5), "head=None"),
    (lambda: T5(T5Config(**TEXT, head=None)).given(ids(3)), "head=None"),
    (lambda: Transformer(TransformerConfig(**SHORT, head=None)).given(ids(3)), "head=None"),
    (lambda: Transformer(TransformerConfig(**SHORT))(ids(3), ids(7)), "positions 0 to 6 were asked for"),
    (lambda: Marian(MarianConfig(**SHORT | PAIRS))(ids(3), ids(7)), "positions 0 to 6 were asked for"),
    (lambda: reads(torch.tensor([[True, False]])), "row 0 ends in padding"),
    (lambda: sees(torch.zeros(1, 1, 5)), "a patch has 6 numbers, got 5"),
    (lambda: sees(torch.zeros(1, 2, 6)), "positions 2 to 6 were asked for, the table holds 0 to 5"),
    (lambda: vilbert()(*REGIONS), r"each region has a box, got \(1, 6, 5\) and \(1, 5, 4\)"),
    (lambda: acts()(torch.zeros(1, 10), torch.zeros(1, 10, 2), torch.zeros(1, 10, 3)), "positions 0 to 9 .* 0 to 8"),
    (
        lambda: acts().act(torch.zeros(1), torch.zeros(1, 3, 2), torch.zeros(1, 3, 3), torch.zeros(1, 3)),
        r"3 states need 2 actions and rewards before them, got \(3, 3\)",
    ),
    (lambda: RBM(RBMConfig(num_visible=5, num_hidden=3)).loss(torch.zeros(2, 5), steps=0), "1 step or more, got 0"),
    (lambda: RBM(RBMConfig(num_visible=5, num_hidden=3)).dream(torch.zeros(2, 5), 0), "1 Gibbs step or more, got 0"),
    (lambda: RBM(RBMConfig(num_visible=21, num_hidden=22)).log_partition(), r"2\^21 states"),
    (lambda: ViT(BARE)(images(2, 8, 10)), "8 x 10 pixels is no whole number of patches of 4 x 4"),
    (lambda: Swin(SwinConfig(**SWIN, in_channels=2))(images(3, 8, 8)), "2 channel"),
    (lambda: mae()(images(2, 8, 12), torch.rand(1, 5)), "noise has a number for each of 6 patches, got 5"),
    (lambda: Mixer(MixerConfig(**MIXER))(images(2, 8, 16)), "mixes 9 patches, .* 8 x 16 pixels has 8: resize .* 12"),
    (lambda: Mixer(MixerConfig(**MIXER))(images(2, 12, 14)), "no whole number of patches"),
    (lambda: CNN(CNNConfig(**SMALL_CNN))(images(1, 1, 8)), "1 x 8 pixels is too small for 2 stages: it needs 2"),
    (lambda: CNN(CNNConfig(**SMALL_CNN, pool="none"))(images(1, 8, 10)), "must have 8 x 8 pixels, got 8 x 10"),
    (
        lambda: SegNet(SegNetConfig(widths=(4, 6), depths=(1, 2), in_channels=2))(images(2, 3, 8)),
        "3 x 8 pixels cannot be halved 2 times: it needs 4",
    ),
    (lambda: fcn_from_classifier(CNN(PLACES)).score_map(images(1, 15, 16)), "map is 3 x 4 pixels, the window 4 x 4"),
    (lambda: fitted([]), "empty"),
    (lambda: fitted([0, 4]), r"from 0 to 3, got \[0, 4\]"),
    (lambda: fitted([0, -1]), "from 0 to 3"),
    (lambda: fitted([0]).next_probs([7]), "from 0 to 3"),
    (lambda: KneserNey(KneserNeyConfig(vocab_size=3)).next_probs([0]), "call fit"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()

"""How many of our files a reader opens to follow one forward pass, traced while it runs."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.models.attention_only import AttentionOnly, AttentionOnlyConfig
from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig
from course_lib.models.clip import CLIP, CLIPConfig
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.conformer import Conformer, ConformerConfig, SpeechTransformer
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.flamingo import Flamingo, FlamingoConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.imitation import GAIL, ImitationConfig
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.models.mae import mae_base
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.models.resnet import resnet8
from course_lib.models.reward import RewardModel
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.models.unet import UNet, UNetConfig
from course_lib.models.vilbert import ViLBERT, ViLBERTConfig, grid_boxes
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training import FitConfig, fit

PACKAGE = Path(__file__).parents[1] / "course_lib"
SIZES = {"dim": 8, "depth": 2, "num_heads": 2}
IMAGE = SIZES | {"image_size": 8, "patch_size": 2, "in_channels": 1, "num_classes": 3, "mlp_dim": 8}
SPEECH = SIZES | {"frame_dim": 6, "mlp_dim": 8, "kernel_size": 3}
TOKENS, VALID = torch.zeros(2, 4, dtype=torch.long), torch.tensor([[True] * 4, [True] * 3 + [False]])
PICTURE = torch.zeros(2, 1, 8, 8)
FIELDS, BOXES = torch.zeros(2, 6, 5), grid_boxes(2, 3).expand(2, -1, -1)
LANGUAGE, TEXT = GPTConfig(vocab_size=9, **SIZES), BERTConfig(vocab_size=9, mlp_dim=8, **SIZES)
VIT = ViTConfig(**IMAGE | {"num_classes": None})
MODELS = {  # name: (most files, model, what it is called with)
    "GPT": (4, lambda: GPT(GPTConfig(vocab_size=9, **SIZES)), (TOKENS,)),
    "mixture of experts": (5, lambda: MixtureGPT(MixtureGPTConfig(vocab_size=9, num_experts=2, **SIZES)), (TOKENS,)),
    "CLIP": (
        5,
        lambda: CLIP(CLIPConfig(text=GPTConfig(vocab_size=9, head=None, **SIZES), image_dim=3, joint_dim=2)),
        (torch.zeros(2, 3), TOKENS, torch.tensor([4, 3])),
    ),
    "Llama": (5, lambda: Llama(LlamaConfig(vocab_size=9, mlp_dim=8, num_kv_heads=1, **SIZES)), (TOKENS,)),
    "attention alone": (3, lambda: AttentionOnly(AttentionOnlyConfig()), (TOKENS,)),
    "BERT": (3, lambda: BERT(BERTConfig(vocab_size=9, mlp_dim=8, **SIZES)), (TOKENS,)),
    "BERT, masked words": (4, lambda: BERTForMaskedLM(BERTConfig(vocab_size=9, mlp_dim=8, **SIZES)), (TOKENS,)),
    "Transformer": (3, lambda: Transformer(TransformerConfig(vocab_size=9, mlp_dim=8, **SIZES)), (TOKENS, TOKENS)),
    "Marian": (3, lambda: Marian(MarianConfig(vocab_size=9, dim=8, mlp_dim=(8, 8))), (TOKENS, TOKENS)),
    "T5": (5, lambda: T5(T5Config(vocab_size=9, mlp_dim=8, head_dim=4, **SIZES)), (TOKENS, TOKENS)),
    "Seq2Seq": (5, lambda: Seq2Seq(Seq2SeqConfig(source_vocab=9, target_vocab=9)), (TOKENS, VALID, TOKENS)),
    "LSTM": (5, lambda: CharacterLM(RecurrentConfig(vocab_size=9)), (TOKENS,)),
    "ViT": (4, lambda: ViT(ViTConfig(**IMAGE)), (PICTURE,)),
    "Swin": (5, lambda: Swin(SwinConfig(in_channels=1, patch_size=2, window_size=2)), (torch.zeros(1, 1, 16, 16),)),
    "Mixer": (3, lambda: Mixer(MixerConfig(image_size=8, patch_size=2, in_channels=1, depth=1)), (PICTURE,)),
    "MAE": (5, lambda: mae_base(**IMAGE | {"num_classes": None}, decoder_dim=16), (PICTURE, torch.rand(2, 16))),
    "reward model": (5, lambda: RewardModel(GPTConfig(vocab_size=9, head=None, **SIZES)), (TOKENS,)),
    "Flamingo": (5, lambda: Flamingo(FlamingoConfig(language=LANGUAGE, vision_dim=5)), (TOKENS, FIELDS)),
    "patches and words": (
        4,
        lambda: MultimodalGPT(MultimodalGPTConfig(language=LANGUAGE, patch_dim=5)),
        (TOKENS, FIELDS),
    ),
    "ViLBERT": (4, lambda: ViLBERT(ViLBERTConfig(text=TEXT, region_dim=5, co_depth=1)), (TOKENS, FIELDS, BOXES)),
    "SimCLR": (5, lambda: SimCLR(SimCLRConfig(encoder=VIT)), (PICTURE,)),
    "Conformer": (5, lambda: Conformer(ConformerConfig(**SPEECH)), (torch.zeros(2, 9, 6),)),
    "Transformer of frames": (4, lambda: SpeechTransformer(ConformerConfig(**SPEECH)), (torch.zeros(2, 9, 6),)),
    "CNN": (2, lambda: CNN(CNNConfig()), (PICTURE,)),
    "ResNet": (2, lambda: resnet8(in_channels=1), (PICTURE,)),
    "U-Net": (3, lambda: UNet(UNetConfig(widths=(2, 4))), (PICTURE,)),
    "SegNet": (4, lambda: SegNet(SegNetConfig(in_channels=1, widths=(2, 4), depths=(1, 1))), (PICTURE,)),
    "Decision Transformer": (
        3,
        lambda: DecisionTransformer(DecisionTransformerConfig(state_dim=3, **SIZES)),
        (torch.zeros(2, 4), torch.zeros(2, 4, 3), torch.zeros(2, 4, 4)),
    ),
    "GAIL": (1, lambda: GAIL(ImitationConfig(state_dim=3, action_dim=2)), (torch.zeros(2, 3),)),
    "RBM": (1, lambda: RBM(RBMConfig(num_visible=3, num_hidden=2)), (torch.zeros(2, 3),)),
    "DBN": (1, lambda: DBN(DBNConfig(dims=(3, 2, 2), num_classes=2)), (torch.zeros(2, 3),)),
    "FCN": (4, lambda: FCN(FCNConfig(backbone=CNNConfig(num_classes=None), num_classes=3, window=2)), (PICTURE,)),
}


def files_opened(function, *arguments):
    """The files of the package in which a line runs while the function is called."""
    opened = set()

    def note(frame, event, argument):
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            opened.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return opened


@pytest.mark.parametrize("name", MODELS)
def test_a_forward_pass_opens_five_files_at_most(name):
    most, build, inputs = MODELS[name]
    torch.manual_seed(0)
    opened = files_opened(build().eval(), *inputs)
    assert most <= 5 and 1 <= len(opened) <= most, sorted(opened)


def test_every_model_of_the_library_is_traced():
    traced = {type(build()).__module__.rpartition(".")[2] for _, build, _ in MODELS.values()}
    assert traced == {path.stem for path in (PACKAGE / "models").glob("*.py")} - {
        "__init__",
        "baselines",
        "kneser_ney",
        "naive_bayes",
    }


def test_a_training_opens_eight_files_at_most():
    def train():
        fit(nn.Linear(3, 1), lambda step: torch.ones(2, 3), lambda m, x: m(x).mean(), config=FitConfig(steps=2))

    opened = files_opened(train)
    assert "training/loop.py" in opened and len(opened) <= 8, sorted(opened)

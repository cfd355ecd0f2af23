import pytest
import torch

from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.bert_tasks import (
    BERTForMaskedLM,
    BERTForNextSentence,
    BERTForPreTraining,
)


def make(build=BERT, seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "dim": 12, "depth": 2, "num_heads": 3, "mlp_dim": 20, "context_length": 9}
    torch.manual_seed(seed)
    model = build(BERTConfig(**sizes | {"num_classes": 3} | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(seed=0):
    """Two rows of tokens and segments; the second has two tokens of padding."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 23, (2, 6), generator=generator)
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]])
    return tokens, segments, torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


def outputs(model, *args, **kwargs):
    """What a model returns, as a tuple."""
    output = model(*args, **kwargs)
    return output if isinstance(output, tuple) else (output,)


@pytest.mark.parametrize("build", (BERTForMaskedLM, BERTForPreTraining))
def test_logits_of_masked_words_are_those_of_all_words_at_their_places(build):
    model, (tokens, segments, valid) = make(build), batch()
    masked = torch.tensor([[False, True, False, False, True, False], [False, False, False, True, False, False]])
    some = outputs(model, tokens, segments=segments, valid=valid, masked=masked)[0]
    every = outputs(model, tokens, segments=segments, valid=valid)[0]
    torch.testing.assert_close(some, every[masked], rtol=0, atol=1e-12)


def test_weights_start_from_a_normal_distribution_of_deviation_002():
    torch.manual_seed(0)
    model = BERTForPreTraining(BERTConfig(vocab_size=500, dim=64, depth=1, num_heads=2, mlp_dim=128, tied=False))
    for name, parameter in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            assert (parameter == 1).all(), name
        elif name.endswith("bias"):
            assert (parameter == 0).all(), name
        else:
            error = 4 * 0.02 / (2 * parameter.numel()) ** 0.5  # four standard errors
            assert parameter.std().item() == pytest.approx(0.02, abs=error), name


@pytest.mark.parametrize("build", (BERTForNextSentence, BERTForPreTraining))
def test_the_next_sentence_has_two_classes_and_no_dropout_of_its_own(build):
    model, (tokens, *_) = make(build, num_classes=7, dropout=0.9), batch()
    logits = outputs(model, tokens)[-1]
    assert logits.shape == (2, 2)
    for name, part in model.named_modules():
        part.training = not name.startswith("bert")
    assert torch.equal(outputs(model, tokens)[-1], logits)

import pytest
import torch

from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForMaskedLM, BERTForNextSentence, BERTForPreTraining


def make(build, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "dim": 12, "depth": 2, "num_heads": 3, "mlp_dim": 20, "context_length": 9}
    model = build(BERTConfig(**sizes | {"num_classes": 3} | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def outputs(model, *args, **kwargs):
    """What a model returns, as a tuple."""
    output = model(*args, **kwargs)
    return output if isinstance(output, tuple) else (output,)


@pytest.mark.parametrize("build", (BERTForMaskedLM, BERTForPreTraining))
def test_logits_of_masked_words_are_those_of_all_words_at_their_places(build):
    model, tokens = make(build), torch.randint(0, 23, (2, 6))
    masked = torch.tensor([[False, True, False, False, True, False], [False, False, False, True, False, False]])
    some, every = outputs(model, tokens, masked=masked)[0], outputs(model, tokens)[0]
    torch.testing.assert_close(some, every[masked], rtol=0, atol=1e-12)


@pytest.mark.parametrize("build", (BERTForNextSentence, BERTForPreTraining))
def test_the_next_sentence_has_two_classes_and_no_dropout_of_its_own(build):
    model, tokens = make(build, num_classes=7, dropout=0.9), torch.randint(0, 23, (2, 6))
    logits = outputs(model, tokens)[-1]
    assert logits.shape == (2, 2)
    for name, part in model.named_modules():
        part.training = not name.startswith("bert")
    assert torch.equal(outputs(model, tokens)[-1], logits)

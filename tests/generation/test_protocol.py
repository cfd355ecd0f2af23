import inspect

import pytest
import torch
from torch import nn

from course_lib.generation import Cache, LanguageModel, beam_search, greedy, sample, stepwise, stream
from course_lib.generation.protocol import check_request
from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.models.transformer import Transformer, TransformerConfig
from tests.generation.toys import Toy


def test_the_models_of_the_course_can_write():
    sizes = {"vocab_size": 9, "dim": 8, "num_heads": 2, "mlp_dim": 8}
    source = torch.randint(0, 9, (2, 5))
    writers = [
        Toy(),
        GPT(GPTConfig(**sizes, depth=1)),
        Transformer(TransformerConfig(**sizes, depth=1)).given(source),
        T5(T5Config(**sizes, depth=1)).given(source),
    ]
    for writer in writers:
        assert isinstance(writer, LanguageModel) and isinstance(writer.new_cache(4), Cache)


def test_an_encoder_decoder_needs_its_source_first():
    assert not isinstance(Transformer(TransformerConfig(vocab_size=9, dim=8, num_heads=2)), LanguageModel)


@pytest.mark.parametrize(("write", "more"), [(greedy, {}), (sample, {}), (stream, {}), (beam_search, {"num_beams": 2})])
def test_a_model_that_cannot_write_is_named_with_what_can(write, more, monkeypatch):
    sizes = {"vocab_size": 9, "dim": 8, "num_heads": 2, "mlp_dim": 8, "depth": 1}
    ids = torch.ones(2, 3, dtype=torch.long)
    # the types that tests check would speak first
    monkeypatch.setattr(stepwise, "stream", inspect.unwrap(stream))
    unchecked = inspect.unwrap(write)
    for model in (BERT(BERTConfig(**sizes)), Transformer(TransformerConfig(**sizes)), nn.Linear(2, 2)):
        with pytest.raises(ValueError, match=f"{type(model).__name__} does not write: .*model.given\\(source\\)"):
            unchecked(model, ids, max_new_tokens=2, **more)


@pytest.mark.parametrize(
    ("shape", "valid", "words"),
    [
        ((3,), None, r"got shape \(3,\): .*prompt\[None\]"),
        ((3, 4), torch.ones(3, 2, dtype=torch.bool), r"prompt's shape \(3, 4\), got \(3, 2\)"),
    ],
)
def test_a_prompt_without_a_batch_axis_and_a_mask_of_another_shape_are_refused(shape, valid, words):
    with pytest.raises(ValueError, match=words):
        check_request(Toy(), torch.ones(shape), valid, 5)

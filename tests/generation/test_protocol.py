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


def test_one_row_alone_is_told_to_have_a_batch_axis():
    with pytest.raises(ValueError, match=r"got shape \(3,\): .*prompt\[None\]"):
        check_request(Toy(), torch.ones(3), None, 5)


def test_valid_must_have_the_shape_of_the_prompt():
    with pytest.raises(ValueError, match=r"prompt's shape \(3, 4\), got \(3, 2\)"):
        check_request(Toy(), torch.ones(3, 4), torch.ones(3, 2, dtype=torch.bool), 5)


def test_padding_at_the_left_is_welcome():
    valid = torch.tensor([[False, False, True], [True, True, True], [False, True, True]])
    check_request(Toy(), torch.ones(3, 3), valid, 1)

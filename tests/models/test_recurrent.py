import pytest
import torch

from course_lib.models.recurrent import (
    CharacterLM,
    RecurrentConfig,
    SequenceClassifier,
    SequenceClassifierConfig,
    SequenceGenerator,
    SequenceGeneratorConfig,
    SequenceTagger,
)

CELLS = ("rnn", "lstm", "gru")
each_cell = pytest.mark.parametrize("cell", CELLS)
LEFT = torch.tensor([[True] * 5, [False] * 3 + [True] * 2])


def make(model_type, config_type, *, seed=0, **options):
    """A tiny model in double precision with weights large enough to show faults, and two sentences."""
    torch.manual_seed(seed)
    model = model_type(config_type(**{"vocab_size": 7, "hidden_dim": 6, "num_layers": 2} | options)).double().eval()
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.5)
    return model, torch.randint(7, (2, 5))


def language_model(cell, **options):
    return make(CharacterLM, RecurrentConfig, cell=cell, **options)


def assert_close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@each_cell
def test_a_text_in_parts_is_read_as_a_whole(cell):
    model, tokens = language_model(cell)
    first, state = model.read_on(tokens[:, :2])
    second, _ = model.read_on(tokens[:, 2:], state)
    assert_close(torch.cat([first, second], dim=1), model(tokens))
    assert_close(model(tokens, valid=LEFT)[1, 3:], model(tokens[1:, 3:])[0])


def test_one_hot_vectors_pick_columns_and_are_not_learned():
    model, tokens = language_model("rnn", num_layers=1)
    W, U, b = (getattr(model.rnn.cells[0], name) for name in ("weight_ih", "weight_hh", "bias_ih"))
    h = torch.zeros(2, 6, dtype=torch.float64)
    for token in tokens.unbind(1):
        h = (W[:, token].T + b + h @ U.T + model.rnn.cells[0].bias_hh).tanh()
    assert_close(model(tokens)[:, -1], model.head(h))
    assert not model.token_embed.weight.requires_grad


@pytest.mark.parametrize("bidirectional", [False, True])
@each_cell
def test_padding_changes_no_class_and_no_tag(cell, bidirectional):
    for model_type in (SequenceClassifier, SequenceTagger):
        options = {"cell": cell, "bidirectional": bidirectional, "num_classes": 3}
        model, tokens = make(model_type, SequenceClassifierConfig, **options)
        valid = LEFT.flip(1)
        together, alone = model(tokens, valid=valid), model(tokens[1:, :2])
        assert_close(together[1:] if together.ndim == 2 else together[1:, :2], alone)
        assert_close(together[:1], model(tokens[:1]))


def test_a_classifier_reads_the_last_state_of_each_direction():
    model, tokens = make(SequenceClassifier, SequenceClassifierConfig, num_classes=3, bidirectional=True)
    states, _ = model.encode(model.embed(tokens))
    assert_close(model(tokens), model.head(torch.cat([states[:, -1, :6], states[:, 0, 6:]], dim=-1)))


@each_cell
def test_what_a_generator_writes_depends_on_its_vector_through_every_layer(cell):
    model, tokens = make(SequenceGenerator, SequenceGeneratorConfig, cell=cell, condition_dim=4)
    condition = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(condition, tokens)[0].sum(), condition)
    assert (gradient[0] != 0).all() and (gradient[1] == 0).all()
    state = model.start(condition)
    parts = list(state) if cell == "lstm" else [state]
    assert all(part.shape == (2, 2, 6) and (part.abs() < 1).all() for part in parts)
    expected = (condition @ model.initial_state.weight.T + model.initial_state.bias).tanh()
    assert_close(torch.cat([part.transpose(0, 1).flatten(1) for part in parts], dim=1), expected)


def test_dropout_acts_before_the_head_in_training_only():
    model, tokens = language_model("gru", num_layers=1, dropout=0.5)
    assert torch.equal(model(tokens), model(tokens))
    assert not torch.equal(model.train()(tokens), model(tokens))


def test_gate_biases_reach_the_lstm():
    model = CharacterLM(RecurrentConfig(vocab_size=5, hidden_dim=4, forget_bias=3.0, input_bias=-1.5))
    i, f, _, _ = (model.rnn.cells[0].bias_ih + model.rnn.cells[0].bias_hh).chunk(4)
    assert (f == 3).all() and (i == -1.5).all()

import pytest
import torch
import torch.nn.functional as F

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
def test_cached_logits_are_those_of_the_whole_text(cell):
    model, tokens = language_model(cell, embed_dim=3)
    whole, cache = model(tokens), model.new_cache(5)
    with torch.no_grad():
        assert_close(model.next_logits(tokens[:, :2], cache), whole[:, 1])
        for t in range(2, 5):
            assert_close(model.next_logits(tokens[:, t : t + 1], cache), whole[:, t])
    assert cache.length == 5


@each_cell
def test_a_prompt_padded_at_the_left_equals_the_prompt_alone(cell):
    model, tokens = language_model(cell)
    cache, alone = model.new_cache(6), model.new_cache(3)
    together = model.next_logits(tokens, cache, valid=LEFT)
    assert_close(together[1:], model.next_logits(tokens[1:, 3:], alone))
    assert_close(together[0], model(tokens[:1])[0, -1])
    word = torch.tensor([[1], [2]])
    assert_close(model.next_logits(word, cache)[1:], model.next_logits(word[1:], alone))
    assert_close(model(tokens, valid=LEFT)[1, 3:], model(tokens[1:, 3:])[0])
    with pytest.raises(ValueError, match="row 1 ends in padding"):
        model.next_logits(tokens, model.new_cache(5), valid=LEFT.flip(1))


@each_cell
def test_selected_rows_go_on_where_they_were(cell):
    model, tokens = language_model(cell)
    cache = model.new_cache(9)
    model.next_logits(tokens, cache)
    cache.select(torch.tensor([1, 1, 0]))
    word = torch.tensor([[3], [4], [3]])
    expected = model(torch.cat([tokens[[1, 1, 0]], word], dim=1))[:, -1]
    assert_close(model.next_logits(word, cache), expected)


@each_cell
def test_a_text_in_parts_is_read_as_a_whole(cell):
    model, tokens = language_model(cell)
    first, state = model.read_on(tokens[:, :2])
    second, _ = model.read_on(tokens[:, 2:], state)
    assert_close(torch.cat([first, second], dim=1), model(tokens))


@each_cell
def test_later_characters_do_not_leak(cell):
    model, tokens = language_model(cell, embed_dim=3)
    vectors = model.token_embed(tokens).detach().requires_grad_()
    model.token_embed.register_forward_hook(lambda *_: vectors)
    model(tokens)[:, 2].sum().backward()
    assert (vectors.grad[:, :3] != 0).any(dim=-1).all() and (vectors.grad[:, 3:] == 0).all()


def test_one_hot_vectors_pick_columns_and_are_not_learned():
    model, tokens = language_model("rnn", num_layers=1)
    W, U, b = (getattr(model.rnn.cells[0], name) for name in ("weight_ih", "weight_hh", "bias_ih"))
    h = torch.zeros(2, 6, dtype=torch.float64)
    for token in tokens.unbind(1):
        h = (W[:, token].T + b + h @ U.T + model.rnn.cells[0].bias_hh).tanh()
    assert_close(model(tokens)[:, -1], model.head(h))
    assert not model.token_embed.weight.requires_grad


@each_cell
def test_the_parameters_are_those_of_the_equations(cell):
    model, _ = language_model(cell, embed_dim=3)
    gates = {"rnn": 1, "lstm": 4, "gru": 3}[cell]
    expected = 7 * 3 + gates * 6 * (3 + 6 + 2) + gates * 6 * (6 + 6 + 2) + 7 * (6 + 1)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


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


def test_a_tagger_of_both_directions_knows_both_sides():
    for bidirectional in (False, True):
        model, tokens = make(SequenceTagger, SequenceClassifierConfig, num_classes=3, bidirectional=bidirectional)
        changed = tokens.clone()
        changed[:, -1] = (changed[:, -1] + 1) % 7
        differs = (model(tokens) != model(changed)).any(dim=-1)
        assert differs[:, :-1].all() == bidirectional and differs[:, -1].all()


def test_a_classifier_reads_the_last_state_of_each_direction():
    model, tokens = make(SequenceClassifier, SequenceClassifierConfig, num_classes=3, bidirectional=True)
    states, _ = model.encode(model.embed(tokens))
    assert_close(model(tokens), model.head(torch.cat([states[:, -1, :6], states[:, 0, 6:]], dim=-1)))


@each_cell
def test_what_a_generator_writes_depends_on_its_vector_through_every_layer(cell):
    model, tokens = make(SequenceGenerator, SequenceGeneratorConfig, cell=cell, condition_dim=4)
    condition = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    logits = model(condition, tokens)
    given = model.given(condition)
    cache = given.new_cache(5)
    for t in range(5):
        assert_close(given.next_logits(tokens[:, t : t + 1], cache), logits[:, t])
    (gradient,) = torch.autograd.grad(logits[0].sum(), condition)
    assert (gradient[0] != 0).all() and (gradient[1] == 0).all()
    state = model.start(condition)
    parts = list(state) if cell == "lstm" else [state]
    assert all(part.shape == (2, 2, 6) and (part.abs() < 1).all() for part in parts)
    expected = (condition @ model.initial_state.weight.T + model.initial_state.bias).tanh()
    assert_close(torch.cat([part.transpose(0, 1).flatten(1) for part in parts], dim=1), expected)


def learn(model, loss_of, steps=60):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@each_cell
def test_a_batch_can_be_learned_by_heart(cell):
    torch.manual_seed(0)
    tokens, classes, condition = torch.randint(7, (6, 8)), torch.arange(6) % 3, torch.eye(6)
    sizes = {"vocab_size": 7, "cell": cell, "hidden_dim": 32}
    classifier = SequenceClassifier(SequenceClassifierConfig(**sizes, num_classes=3))
    learn(classifier, lambda: F.cross_entropy(classifier(tokens), classes))
    assert torch.equal(classifier(tokens).argmax(dim=-1), classes)

    tags = tokens.flip(1) % 3  # needs both sides
    tagger = SequenceTagger(SequenceClassifierConfig(**sizes, num_classes=3, bidirectional=True, embed_dim=8))
    learn(tagger, lambda: F.cross_entropy(tagger(tokens).flatten(0, 1), tags.flatten()))
    assert torch.equal(tagger(tokens).argmax(dim=-1), tags)

    start = torch.zeros(6, 1, dtype=torch.long)
    shifted = torch.cat([start, tokens[:, :-1]], dim=1)
    generator = SequenceGenerator(SequenceGeneratorConfig(**sizes, condition_dim=6))
    learn(generator, lambda: F.cross_entropy(generator(condition, shifted).flatten(0, 1), tokens.flatten()), steps=90)
    given, written = generator.given(condition), [start]
    cache = given.new_cache(8)
    for _ in range(8):
        written.append(given.next_logits(written[-1], cache).argmax(dim=-1, keepdim=True))
    assert torch.equal(torch.cat(written[1:], dim=1), tokens)


def test_dropout_acts_before_the_head_in_training_only():
    model, tokens = language_model("gru", num_layers=1, dropout=0.5)
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


def test_gate_biases_reach_the_lstm():
    model = CharacterLM(RecurrentConfig(vocab_size=5, hidden_dim=4, forget_bias=3.0, input_bias=-1.5))
    i, f, _, _ = (model.rnn.cells[0].bias_ih + model.rnn.cells[0].bias_hh).chunk(4)
    assert (f == 3).all() and (i == -1.5).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "qrnn"}, "rnn, lstm, gru, got 'qrnn'"),
        ({"cell": "gru", "forget_bias": 1.0}, "cell is 'gru'"),
        ({"bidirectional": True}, "must be False"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        CharacterLM(RecurrentConfig(vocab_size=5, **options))

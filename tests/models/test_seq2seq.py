import pytest
import torch

from course_lib.models.seq2seq import SCORES, Seq2Seq, Seq2SeqConfig

ATTENTIONS = ("none", *SCORES)


def make(attention, seed=0, **overrides):
    """A tiny model in double precision, two sentences of unequal length, and their translations."""
    torch.manual_seed(seed)
    sizes = {"embed_dim": 5, "encoder_dim": 3, "hidden_dim": 6} | overrides
    model = Seq2Seq(Seq2SeqConfig(source_vocab=11, target_vocab=9, attention=attention, **sizes)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    source = torch.randint(3, 11, (2, 5))
    valid = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return model, source, valid, torch.randint(3, 9, (2, 4))


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_writing_word_by_word_gives_the_logits_of_teacher_forcing(attention):
    model, source, valid, target = make(attention)
    encoded = model.encode(model.embed(source), valid)
    state, logits = model.start(encoded), []
    for word in target.unbind(dim=1):
        decoded = model.decoder(model.target_embed(word[:, None]), encoded, state)
        state = decoded.state
        logits.append(model.readout(decoded.features))
    torch.testing.assert_close(torch.cat(logits, dim=1), model(source, valid, target), rtol=0, atol=1e-10)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_padding_changes_nothing(attention):
    model, source, valid, target = make(attention)
    together = model(source, valid, target)[1:]
    alone = model(source[1:, :3], valid[1:, :3], target[1:])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-10)


def test_without_attention_the_source_passes_through_one_vector_only():
    model, source, valid, target = make("none")
    encoded = model.encode(model.embed(source), valid)
    forgotten = encoded._replace(annotations=torch.full_like(encoded.annotations, torch.nan))
    words = model.target_embed(target)
    decoded = model.decoder(words, forgotten, model.start(encoded))
    assert decoded.weights is None and decoded.features.isfinite().all()


def test_the_additive_decoder_follows_bahdanau_s_equations():
    model, source, valid, target = make("additive")
    decoder = model.decoder
    h = model.encode(model.embed(source[:1]), valid[:1]).annotations[0]
    s = (model.initial_state(model.encode(model.embed(source[:1]), valid[:1]).summary)).tanh()[0]
    W, U, v = decoder.attention.q_proj.weight, decoder.attention.k_proj.weight, decoder.attention.v
    features = []
    for y in model.target_embed(target[:1])[0]:
        energies = torch.stack([v @ torch.tanh(W @ s + U @ h_j) for h_j in h])  # e_ij
        alpha = energies.exp() / energies.exp().sum()  # eq. (6)
        c = sum(a * h_j for a, h_j in zip(alpha, h, strict=True))  # eq. (5)
        s = decoder.gru(torch.cat([y, c])[None], s[None])[0]  # eq. (4)
        features.append(torch.cat([s, y, c]))
    expected = model.readout(torch.stack(features))
    torch.testing.assert_close(model(source[:1], valid[:1], target[:1])[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_greedy_decoding_takes_the_likeliest_word_of_each_step(attention):
    model, source, valid, _ = make(attention, seed=3)
    words, weights = model.greedy_decode(source, valid, max_length=7)
    start = torch.full((2, 1), model.config.start_id)
    logits = model(source, valid, torch.cat([start, words[:, :-1]], dim=1))
    assert torch.equal(logits.argmax(dim=-1), words)
    assert words.shape[1] <= 7 and (weights is None) == (attention == "none")


def test_greedy_decoding_stops_when_every_sentence_has_ended():
    model, source, valid, _ = make("additive")
    model.readout[-1].bias.data[model.config.end_id] = 1e3
    words, _ = model.greedy_decode(source, valid, max_length=20)
    assert words.tolist() == [[model.config.end_id]] * 2

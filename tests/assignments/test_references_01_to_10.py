"""The references of assignments 01 to 10 return what torch, the library or the papers say."""

import itertools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional import preference
from course_lib.functional.scaling import fit_power_law
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.lessons.lesson_03.assignment import AT_ONCE, STEP_BY_STEP
from course_lib.lessons.lesson_04.assignment import AT_CLOSED_GATES, CLOSED
from course_lib.lessons.lesson_06.assignment import read
from course_lib.tasks import Draw
from course_lib.text.bpe import ByteLevelBPE, byte_letters
from tests.assignments.delivered import Ways, doubled, inputs, mistaken, reference, table, told

WAYS = Ways()


# 01: convolutions --------------------------------------------------------------------------------------------


def test_a_receptive_field_is_what_a_gradient_reaches():
    layers = torch.tensor([[3, 2], [5, 1], [3, 3], [3, 1]])
    net = nn.Sequential(*(nn.Conv2d(1, 1, kernel, stride, bias=False) for kernel, stride in layers.tolist()))
    side = int(reference("01", "receptive_field")(layers))
    image = torch.randn(1, 1, side + 9, side + 9, requires_grad=True)
    net(image)[0, 0, 0, 0].backward()
    seen = (image.grad[0, 0] != 0).nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [side, side]


TO_NORM = [(*doubled(inputs("01", "batch_norm", case)[:5]), mode) for case in (0, 2) for mode in (True, False)]


@WAYS.to_compute("01", "batch_norm", *TO_NORM)
def by_torch(x, mean, variance, weight, bias, training):
    return F.batch_norm(x, mean.clone(), variance.clone(), weight, bias, training, eps=1e-5)


def test_the_mean_of_a_class_activation_map_is_the_logit_without_its_bias():
    feature_maps, weight, labels = inputs("01", "class_activation_map")
    whole = mistaken(table("01", "class_activation_map"), "negative sums kept", "not scaled")
    wanted = (feature_maps.mean(dim=(2, 3)) * weight[labels]).sum(dim=1)
    torch.testing.assert_close(whole(feature_maps, weight, labels).mean(dim=(1, 2)), wanted)


# 02: two views of an image -----------------------------------------------------------------------------------


@WAYS.to_compute("02", "twin_loss")
def by_correlation_coefficients(first, second, weight):
    width = first.shape[1]
    C = torch.corrcoef(torch.cat([first, second], dim=1).T)[:width, width:]
    diagonal = torch.eye(width, dtype=torch.bool)
    return (1 - C[diagonal]).square().sum() + weight * C[~diagonal].square().sum()


@WAYS.to_compute("02", "vicreg_loss", cases=slice(1))
def by_variances_and_covariances_of_torch(first, second, invariance, variance, covariance):
    loss = invariance * (first - second).norm(dim=1).square().mean()
    for z in (first, second):
        C = torch.cov(z.T)
        below = (1 - (z.var(dim=0) + 1e-4).sqrt()).clamp(min=0)
        pairs = C[~torch.eye(len(C), dtype=torch.bool)]
        loss += variance * below.mean() + covariance * pairs.square().sum() / len(C)
        assert 0 < (below > 0).sum() < len(C)  # some features are above the threshold, others are not
    return loss


def test_recall_grows_with_k_up_to_1():
    queries, keys, _ = inputs("02", "recall_at")
    found = [reference("02", "recall_at")(queries, keys, k) for k in (1, 4, len(keys))]
    assert 0.2 < found[0] < found[1] < found[2] == 1


def test_map_at_r_is_1_for_separate_classes_and_precision_at_1_for_pairs():
    labels = torch.tensor([0, 1, 0, 2, 1, 2, 0])
    assert reference("02", "map_at_r")(F.one_hot(labels, 3) + 0.01 * Draw(0)(7, 3), labels) == 1
    pixels, labels = inputs("02", "map_at_r", case=1)
    nearest = torch.cosine_similarity(pixels[:, None], pixels, dim=2).fill_diagonal_(-1).argmax(dim=1)
    precision = labels[nearest].eq(labels).double().mean().item()
    assert reference("02", "map_at_r")(pixels, labels) == pytest.approx(precision)


def test_at_a_small_temperature_the_nearest_neighbour_has_the_votes():
    stored, labels, asked, kinds, k, temperature = inputs("02", "neighbour_votes")
    votes, near = (reference("02", "neighbour_votes")(stored, labels, asked, kinds, k, t) for t in (temperature, 1e-6))
    torch.testing.assert_close(votes.sum(dim=1), torch.ones(len(asked)))
    nearest = labels[torch.cosine_similarity(asked[:, None], stored, dim=2).argmax(dim=1)]
    torch.testing.assert_close(near, F.one_hot(nearest, kinds).float())


# 03: recurrent networks --------------------------------------------------------------------------------------


@WAYS.to_compute("03", "deep_step")
def by_stacked_layers_of_torch(x, h, W, U, b):
    layers = nn.RNN(x.shape[1], h.shape[2], num_layers=len(h))
    parts = {"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": 0 * b}
    layers.load_state_dict({f"{name}_l{n}": part[n] for name, part in parts.items() for n in range(len(h))})
    return layers(x[None], h)[1]


@WAYS.to_compute("03", "states_at", (*inputs("03", "states_at")[:2], torch.tensor([0, 9, 4])))
def step_after_step(W, h0, times):
    states = [h0]
    for _ in range(int(times.max())):
        states.append(W @ states[-1])
    return torch.stack(states)[times]


def powers(W, h0, times):
    return torch.stack([torch.linalg.matrix_power(W, int(time)) @ h0 for time in times])


def test_a_loop_over_the_steps_is_told_and_powers_of_the_matrix_are_not():
    states_at = table("03", "states_at")
    assert told(step_after_step, [AT_ONCE], states_at) == [STEP_BY_STEP.misconception]
    assert told(powers, [AT_ONCE, *states_at.all_checks], states_at) == []


@pytest.mark.parametrize("length", [2, 3, 50])
def test_a_cut_gradient_is_that_of_autograd_on_detached_pieces(length):
    x, W = Draw(0)(8, 3), (Draw(1)(3, 3) / 2).requires_grad_()
    state, states = torch.zeros(3), [torch.zeros(3)]
    for t in range(8):
        state = torch.tanh(W @ (state.detach() if t % length == 0 else state) + x[t])
        states.append(state)
    direct = Draw(2)(8, 3)
    (expected,) = torch.autograd.grad((torch.stack(states[1:]) * direct).sum(), W)
    h = torch.stack(states).detach()
    torch.testing.assert_close(reference("03", "cut_gradient")(W.detach(), h, direct, length), expected)


def test_gradients_forward_in_time_are_those_of_autograd():
    x, W = Draw(0)(6, 3), (Draw(1)(3, 3) / 2).requires_grad_()
    states = [torch.tanh(Draw(3)(3))]
    for now in x:
        states.append(torch.tanh(W @ states[-1] + now))
    direct = Draw(2)(6, 3)
    losses = [(h * row).sum() for h, row in zip(states[1:], direct, strict=True)]
    expected = torch.stack([torch.autograd.grad(loss, W, retain_graph=True)[0] for loss in losses])
    found = reference("03", "forward_gradients")(W.detach(), torch.stack(states).detach(), direct)
    torch.testing.assert_close(found, expected)


@WAYS.to_compute("03", "clockwork_step", cases=slice(1, 2))
def by_a_cell_of_torch_for_units_of_one_period(x, h, W, U, b, periods, t):
    cell = nn.RNNCell(x.shape[1], h.shape[1])
    cell.load_state_dict({"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": 0 * b})
    return cell(x, h)


W, V, X, RADIUS, _ = inputs("03", "echo_states")


@WAYS.to_compute("03", "echo_states", (W, V, X, RADIUS, 1.0), (7 * W, V, X, RADIUS, 1.0))
def by_a_scaled_matrix_without_a_leak(W, V, x, radius, leak):
    net = nn.RNN(x.shape[1], len(W), bias=False)
    net.load_state_dict({"weight_ih_l0": V, "weight_hh_l0": W * radius / torch.linalg.eigvals(W).abs().max()})
    return net(x)[0]


def test_a_training_name_has_the_distance_0_from_a_language_of_its_own():
    found = reference("03", "out_of_place")(torch.tensor([0, 1]), ["Anna", "otto"], ["otto", "Anna"], 2, 4)
    assert found.tolist() == [[16, 0], [0, 16]]


# 04: gates ---------------------------------------------------------------------------------------------------


@WAYS.to_compute("04", "both_ways", cases=slice(2))
def by_a_packed_layer_of_torch(x, lengths, *weights):
    layer = nn.RNN(x.shape[2], len(weights[0]), bias=False, bidirectional=True, batch_first=True)
    layer.load_state_dict(dict(zip(layer.state_dict(), weights, strict=True)))
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


@WAYS.to_compute("04", "highway")
def by_autograd(f):
    states = [torch.ones_like(f[:, 0], requires_grad=True)]
    for gate in f.unbind(1):
        states.append(gate * states[-1])
    found = [torch.autograd.grad(states[-1].sum(), state, retain_graph=True)[0] for state in states[1:]]
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("power", [lambda f: f.log(), lambda f: f.clamp_min(1e-6).log()])
def test_logarithms_of_gates_have_no_gradient_where_a_gate_is_closed(power):
    def highway(f):
        later = power(torch.cat([f[:, 1:], torch.ones_like(f[:, :1])], dim=1))
        return later.flip(1).cumsum(1).flip(1).exp()

    task = table("04", "highway")
    assert CLOSED.misconception in told(highway, [AT_CLOSED_GATES], task)
    assert told(task.reference, [AT_CLOSED_GATES], task) == []


# 06: the Transformer -----------------------------------------------------------------------------------------


@WAYS.to_compute("06", "norm_gradient", seeds=(3,), double=True)
def of_a_norm_by_autograd(x, gain, dy):
    x = x.clone().requires_grad_()
    return torch.autograd.grad((F.layer_norm(x, gain.shape, gain) * dy).sum(), x)[0]


@WAYS.to_compute("06", "attention_gradient", seeds=(3,), double=True)
def of_attention_by_autograd(*given):
    *parts, do = (part.clone().requires_grad_() for part in given)
    return torch.stack(torch.autograd.grad((F.scaled_dot_product_attention(*parts) * do).sum(), parts))


def drawn(name):
    """A task of modules, what its last case draws, and a function of (x, layer) that applies a linear layer."""
    task = table("06", name)
    given = task.draw(task.cases[-1], Draw(3))
    of = given.parameters
    return task, given, lambda x, layer: F.linear(x, of[f"{layer}.weight"], of[f"{layer}.bias"])


def test_attention_with_a_cache_is_that_of_the_library():
    task, given, _ = drawn("CachedAttention")
    ours, (x, pieces) = MultiHeadAttention(*given.build), given.args
    ours.load_state_dict(given.parameters)
    with torch.no_grad():
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        torch.testing.assert_close(task.right(given)[0], ours(x, mask=causal[None, None]))
    assert torch.equal(read(lambda part, cache=None: (part, (part, part)), x, pieces)[0], x)


def test_attention_with_a_state_weights_values_by_products_of_features():
    task, given, linear = drawn("LinearAttention")
    x, _ = given.args
    q, k, v = (linear(x, f"{name}_proj").unflatten(2, (given.build[1], -1)).transpose(1, 2) for name in "qkv")
    weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)).tril()
    heads = (weights / weights.sum(dim=-1, keepdim=True) @ v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(task.right(given)[0], linear(heads, "o_proj"))


def test_a_layer_of_equal_experts_is_one_expert_times_its_gate():
    task, given, linear = drawn("SwitchMLP")
    (x,), of = given.args, given.parameters
    alike = {name: of[name.replace("experts.1", "experts.0")] for name in of}
    gate = linear(x, "router").softmax(dim=-1).amax(dim=-1, keepdim=True)
    expected = gate * linear(linear(x, "experts.0.up_proj").relu(), "experts.0.down_proj")
    torch.testing.assert_close(task.right(replace(given, parameters=alike)), expected)


def test_experts_that_take_all_positions_are_averaged_by_their_gates():
    task, given, linear = drawn("ExpertChoiceMLP")
    (x,) = given.args
    expected = 0.0
    for expert, gate in enumerate(linear(x, "router").softmax(dim=-1).unbind(dim=-1)):
        up = linear(x, f"experts.{expert}.up_proj").relu()
        expected += gate[..., None] * linear(up, f"experts.{expert}.down_proj")
    torch.testing.assert_close(task.right(given), expected)


def test_a_beam_that_is_wide_enough_finds_the_best_of_all_sequences():
    log_probs, start, end = (2 * Draw(0)(4, 4)).log_softmax(dim=-1), 0, 1
    for penalty in (0.0, 0.7, 1.5):
        words, score = reference("06", "beam_search")(log_probs, start, end, 1000, penalty, 4)
        scores = {}
        for n in (1, 2, 3, 4):
            for chosen in itertools.product(range(4), repeat=n):
                if end not in chosen[:-1] and (n == 4 or chosen[-1] == end):
                    pairs = itertools.pairwise((start, *chosen))
                    scores[chosen] = sum(log_probs[pair].item() for pair in pairs) / n**penalty
        assert tuple(words) == max(scores, key=scores.get) and score == pytest.approx(max(scores.values()))


def test_one_group_without_a_penalty_is_a_beam_search_by_totals():
    log_probs = (2 * Draw(0)(5, 5)).log_softmax(dim=-1)
    for beams in (1, 2, 4):
        (words,) = reference("06", "diverse_beam_search")(log_probs, 0, 1, 1, beams, 0.7, 5)
        assert words == reference("06", "beam_search")(log_probs, 0, 1, beams, 0.0, 5)[0]


def test_a_strong_penalty_gives_each_group_another_first_word():
    found = reference("06", "diverse_beam_search")(Draw(0)(9, 9).log_softmax(dim=-1), 0, 1, 4, 1, 100.0, 6)
    assert len({words[0] for words in found}) == len(found) == 4


# 07: BERT ----------------------------------------------------------------------------------------------------


@WAYS.to_compute("07", "replaced_loss")
def by_the_changed_text(tokens, chosen, samples, logits, valid):
    text = torch.where(chosen, samples, tokens)
    return -F.logsigmoid(torch.where(text != tokens, logits, -logits))[valid].mean()


@WAYS.to_compute("07", "distillation_loss")
def by_the_divergence_of_torch(student, teacher, valid, tau):
    p, q = ((logits[valid] / tau).log_softmax(dim=1) for logits in (teacher, student))
    return tau**2 * F.kl_div(q, p, reduction="batchmean", log_target=True)


def test_spans_lie_in_the_text_and_use_up_the_budget():
    starts, lengths, real, fraction = inputs("07", "span_mask")
    masked = reference("07", "span_mask")(starts, lengths, real, fraction)
    budget = (fraction * real.sum(dim=1)).round()
    assert not (masked & ~real).any()
    assert (masked.sum(dim=1) <= budget).all() and (masked.sum(dim=1) > budget / 2).all()


def test_a_step_of_mask_predict_fills_as_many_positions_as_it_keeps():
    E, tokens, masked, keep, mask_id = inputs("07", "mask_predict")
    found = reference("07", "mask_predict")(E, tokens, masked, keep, mask_id)
    assert torch.equal(found[~masked], tokens[~masked])
    assert ((found == mask_id).sum(dim=1) == masked.sum(dim=1) - keep).all()


# 08: GPT -----------------------------------------------------------------------------------------------------


def test_tokens_are_those_of_the_library():
    tokenizer = ByteLevelBPE.train(["né en été, il a aidé: le café au lait, l'allée " * 5], vocab_size=280, specials=())
    number = {letter: byte for byte, letter in enumerate(byte_letters())}
    number |= {first + second: 256 + n for n, (first, second) in enumerate(tokenizer.merges)}
    merges = [(number[first], number[second]) for first, second in tokenizer.merges]
    for word in ("laité", "écafété", "aaaaalll"):  # GPT-2 cuts a text into such words first
        wanted = [number[tokenizer.vocabulary[token]] for token in tokenizer.encode(word)]
        assert reference("08", "encode")(word, merges) == wanted != list(word.encode())


def test_typical_tokens_have_the_surprisal_nearest_to_the_entropy():
    logits, written = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5, 9.0]]), torch.tensor([[3, 5, 1, 3]])
    p = reference("08", "typical_odds")(logits, written, 2, 0.4)[0]
    allowed = logits[0, :5].softmax(dim=0)
    distance = (allowed.log() - (allowed * allowed.log()).sum()).abs()
    kept = distance.argsort()[: int((p > 0).sum())]
    assert p[5] == 0 and p.sum().item() == pytest.approx(1) and set(kept.tolist()) == set(p.nonzero()[:, 0].tolist())
    assert allowed[kept].sum() >= 0.4 > allowed[kept[:-1]].sum()


def cuts(text, scores, byte_score):
    """Every cut of a text, with its sum of log-probabilities."""
    if not text:
        yield 0.0, []
    for end in range(1, len(text) + 1):
        for total, rest in cuts(text[end:], scores, byte_score):
            if text[:end] in scores:
                yield total + scores[text[:end]], [text[:end], *rest]
            if end == 1:
                yield total + byte_score * len(text[0].encode()), [*text[0].encode(), *rest]


TEXT, *PIECES = inputs("08", "encode_unigram", seed=1)


@WAYS.to_compute("08", "encode_unigram", (TEXT[:9], *PIECES), (TEXT[9:18], *PIECES))
def by_the_best_of_all_cuts(text, pieces, byte_score):
    number = {piece: 256 + n for n, (piece, _) in enumerate(pieces)}
    return [number.get(one, one) for one in max(cuts(text, dict(pieces), byte_score))[1]]


@WAYS.to_compute("08", "corpus_bits_per_byte", rtol=1e-6, atol=0)
def by_each_document_alone(logits, tokens, lengths, texts):
    bits = 0.0
    for row, ids, length in zip(logits, tokens, lengths, strict=True):
        bits -= sum(row[t].log_softmax(dim=0)[ids[t + 1]].item() for t in range(length - 1)) / torch.tensor(2.0).log()
    return bits.item() / len("".join(texts).encode())


# 09: scaling laws --------------------------------------------------------------------------------------------


@WAYS.to_compute("09", "huber_of_logs")
def by_the_loss_of_torch(predicted, measured, delta):
    return F.huber_loss(predicted.log(), measured.log(), delta=delta, reduction="sum")


def test_first_repetitions_count_nearly_in_full_and_never_more_than_fade():
    found = reference("09", "effective_tokens")(torch.tensor([1.0, 2.0, 1e6]), 100.0, 15.0)
    assert found[0] == 100 and 196 < found[1] < 200 and abs(found[2] - 1600) < 1e-2


def test_steps_and_examples_lie_on_the_hyperbola():
    batch, steps, examples = inputs("09", "steps_and_examples")
    S, E = reference("09", "steps_and_examples")(batch, steps, examples)
    torch.testing.assert_close((S / steps - 1) * (E / examples - 1), torch.ones(len(batch)))


def test_the_floor_is_near_that_of_the_library():
    x, y, floors = inputs("09", "law_with_floor")
    a, b, c = reference("09", "law_with_floor")(x, y, floors)
    law = fit_power_law(x, y)
    assert ((law(x) - y).square().sum() <= (a * x**-b + c - y).square().sum() + 1e-6) and abs(c - law.c) < 0.3


def test_the_biweight_is_nearly_a_square_for_small_errors_and_one_for_large_ones():
    gaps = torch.tensor([-1e-3, 1e-3, 1e-3, 50.0, -50.0])
    found = reference("09", "biweight_of_logs")(gaps.exp(), torch.ones(5), 100.0)
    torch.testing.assert_close(found.item() - 2, 3 * 3 / 148.26**2, atol=1e-5, rtol=1e-2)


def test_the_noise_scale_of_many_examples_is_that_of_their_distribution():
    true, spread, batch = torch.tensor([3.0, 4.0]), torch.tensor([6.0, 8.0]), 4
    examples = true + spread * Draw(0)(20_000, 5, batch, 2)
    found = reference("09", "noise_scale")(examples.mean(dim=2), batch)
    assert abs(found - spread.square().sum() / true.square().sum()) < 0.2  # 4


def test_pretraining_is_worth_most_where_text_is_short():
    data = torch.tensor([1e5, 1e7, 1e9])
    transferred, multiplier = reference("09", "transferred_data")(data, torch.full((3,), 1e8), 1.9e4, 0.18, 0.38)
    assert (transferred.diff() > 0).all() and (multiplier.diff() < 0).all() and multiplier[2] > 1


def test_the_law_with_a_break_is_that_of_its_two_lines():
    x, y, breaks = inputs("09", "law_with_break", case=1)
    a, before, behind, d = reference("09", "law_with_break")(x, y, breaks)
    torch.testing.assert_close(torch.where(x < d, a * x**-before, a * d ** (behind - before) * x**-behind), y)


@pytest.mark.parametrize(
    ("name", "mistake", "place"),
    [("law_with_break", "errors not in logarithms", 3), ("law_with_floor", "error in logarithms", 2)],
)
def test_errors_of_the_other_kind_would_always_choose_another_break_or_floor(name, mistake, place):
    task = table("09", name)
    other = mistaken(task, mistake)
    for seed in range(20):
        given = task.cases[0].inputs(Draw(seed))
        assert task.reference(*given)[place] != other(*given)[place]


# 10: preferences ---------------------------------------------------------------------------------------------

WAYS.to_compute("10", "ranking_loss")(preference.ranking_loss)


@WAYS.to_compute("10", "leave_one_out")
def by_the_mean_as_baseline_scaled(rewards):
    G = rewards.shape[1]
    return (rewards - rewards.mean(dim=1, keepdim=True)) * G / (G - 1)


def test_the_probabilities_of_all_rankings_sum_to_one_and_two_answers_are_a_pair():
    loss, rewards = reference("10", "listwise_loss"), torch.randn(1, 4)
    for k in (1, 2, 4):
        places = {order[:k] for order in itertools.permutations(range(4))}
        lists = [[*first, *(i for i in range(4) if i not in first)] for first in places]
        torch.testing.assert_close(sum((-loss(rewards[:, order], k)).exp() for order in lists), torch.tensor(1.0))
    torch.testing.assert_close(loss(rewards[:, :2], 1), preference.ranking_loss(rewards[:, :2]))


def test_no_policy_has_a_larger_mean_reward_less_the_penalty_than_the_tilted_one():
    rewards, log_reference, beta = inputs("10", "tilted_policy")
    mean, far = reference("10", "tilted_policy")(rewards, log_reference, beta)
    best = mean - beta * far
    torch.testing.assert_close(best, beta * (log_reference + rewards / beta).logsumexp(dim=0))  # beta ln Z
    for seed in range(100):
        other = (log_reference + rewards / beta + 0.3 * Draw(seed)(len(rewards))).log_softmax(dim=0)
        assert (other.exp() * (rewards - beta * (other - log_reference))).sum() < best + 1e-5


def test_no_baseline_has_a_smaller_variance():
    rewards, gradients = inputs("10", "least_variance")
    advantages = reference("10", "least_variance")(rewards, gradients)

    def squares(advantages):
        return (advantages[:, :, None] * gradients).square().sum(dim=(1, 2))

    for step in (-0.1, 0.1):
        assert (squares(advantages + step) > squares(advantages)).all()


def test_the_best_of_n_has_the_mean_of_samples_and_their_divergence():
    worth, n = inputs("10", "best_of_n")
    mean, far = reference("10", "best_of_n")(worth, n)
    drawn = torch.randint(len(worth), (100_000, n), generator=torch.Generator().manual_seed(0))
    assert abs(worth[drawn].amax(dim=1).mean() - mean) < 0.02
    many = torch.arange(20_000.0)  # a continuum of answers, for which the formula of the KL is exact
    probs = ((many + 1) / len(many)) ** n - (many / len(many)) ** n
    assert abs((probs * (probs * len(many)).log()).sum() - far) < 1e-2


def test_the_identity_loss_is_0_at_its_target():
    zero = torch.zeros(1)
    assert reference("10", "identity_loss")(torch.tensor([1 / (2 * 0.25)]), zero, zero, zero, 0.25) == 0


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_reference_returns_what_another_way_to_compute_it_does(way):
    way.compare()

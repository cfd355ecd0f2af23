"""The learner's functions of lesson 15 run inside its models, and change nothing there if they are right."""

import pytest
import torch

from course_lib.data import mazes
from course_lib.data.draws import generator
from course_lib.data.tones import Tones
from course_lib.functional.ctc import collapse, forward_variables
from course_lib.functional.language import corrupt_spans, random_spans
from course_lib.functional.linear_attention import LinearState, linear_attention, linear_step
from course_lib.lessons.lesson_15 import learner, results
from course_lib.lessons.lesson_15.recipes import control, speech
from course_lib.lessons.lesson_15.tasks import TASKS
from course_lib.models.flamingo import flamingo_on
from course_lib.models.gpt import GPT, GPTConfig

TINY = GPTConfig(vocab_size=20, context_length=12, dim=8, depth=2, num_heads=2, dropout=0.0)


@pytest.fixture
def gpt():
    torch.manual_seed(0)
    model = GPT(TINY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model


@pytest.mark.parametrize("seed", range(4))
def test_spans_as_pairs_drop_what_the_library_drops(seed):
    ids, dropped = torch.randint(40, (30,), generator=generator("ids", seed)), random_spans(30)
    ours = corrupt_spans(ids, dropped, first_sentinel=99)
    mine = TASKS["corrupt"].reference(ids.tolist(), learner.spans_of(dropped.tolist()), 99)
    assert [*mine] == [each.tolist() for each in ours]


@pytest.mark.parametrize(
    ("dropped", "spans"), [([], []), ([True], [(0, 1)]), ([False, True, True, False, True], [(1, 3), (4, 5)])]
)
def test_spans_are_runs(dropped, spans):
    assert learner.spans_of(dropped) == spans


def test_transcripts_are_those_of_greedy_decoding():
    model = speech.build(speech.SETTINGS).eval()
    melodies = Tones().batch(3, 0)
    assert learner.transcripts(model, melodies, collapse) == speech.labels_of(model, melodies)


def test_a_walker_learns_from_the_returns_that_the_learner_computes():
    settings = learner.WalkerSettings(batch_size=5)
    walks = control.demonstrations(0)
    ours = control.windows_at(walks, settings)(0)
    mine = control.windows_at(walks, settings, returns_to_go=TASKS["to_go"].reference)(0)
    wrong = control.windows_at(walks, settings, returns_to_go=lambda rewards: rewards.cumsum(1))(0)
    assert all(torch.equal(ours[name], mine[name]) for name in ours)
    assert not torch.equal(ours["to_go"], wrong["to_go"])


def test_a_walk_of_a_pair_begins_at_its_start():
    walk = learner.walk(control.build(control.DECISION).eval(), -10, pair=3)
    assert [int(walk.cells[0, 0]), int(walk.goals[0])] == control.pairs()["test"][3].tolist()
    assert learner.shows_walks(control.build(control.DECISION).eval()).axes  # one that knows nothing


@torch.no_grad()
def test_the_gate_of_a_learner_is_the_gate_of_a_flamingo(gpt):
    flamingo = flamingo_on(gpt, vision_dim=6, num_latents=2, num_heads=2, head_dim=4, resampler_depth=1).eval()
    for layer in flamingo.gated:
        layer.alpha_attn.fill_(0.5)
        layer.alpha_ffn.fill_(-0.3)
    words, picture = torch.randint(20, (2, 5)), torch.randn(2, 3, 6)
    alone = flamingo(words, picture)
    torch.testing.assert_close(learner.gated_by(flamingo, TASKS["gated"].reference)(words, picture), alone)
    assert torch.equal(learner.opened(flamingo, 0.0)(words, picture), gpt(words))
    assert torch.equal(learner.opened(flamingo, 1.0)(words, picture), alone)
    assert not torch.equal(learner.opened(flamingo, 0.5)(words, picture), alone)


def test_a_head_by_steps_is_causal_linear_attention():
    q, k, v = torch.randn(3, 2, 2, 7, 4, dtype=torch.float64)
    made = learner.by_steps(TASKS["linear_step"].reference)(q, k, v, causal=True)
    torch.testing.assert_close(made, linear_attention(q, k, v, causal=True))


def test_one_step_of_the_learner_is_one_of_the_library():
    (q, k), v = torch.randn(2, 4).abs(), torch.randn(3)
    s, z = torch.rand(4, 3), torch.rand(4)
    output, state = linear_step(q, k, v, LinearState(s, z))
    torch.testing.assert_close(TASKS["linear_step"].reference(q, k, v, s, z), (output, state.s, state.z))


def test_reading_step_by_step_changes_no_logits(gpt):
    at_once, one_by_one = learner.logits_both_ways(gpt, torch.randint(20, (1, 9)), TASKS["linear_step"].reference)
    torch.testing.assert_close(at_once, one_by_one)


def test_one_step_of_the_recursion_is_one_of_the_library():
    probs = torch.randn(1, 5, 4, dtype=torch.float64).softmax(dim=-1)
    states = torch.tensor([[0, 2, 0, 2, 0, 3, 0]])
    alpha = forward_variables(probs.log(), states)[0].exp()
    for t in range(1, 5):
        torch.testing.assert_close(TASKS["forward_step"].reference(alpha[t - 1], probs[0, t], states[0]), alpha[t])


def test_returns_to_go_are_those_of_the_mazes():
    rewards = torch.randn(3, 6)
    torch.testing.assert_close(TASKS["to_go"].reference(rewards), mazes.returns_to_go(rewards))


def test_linear_attention_pays_from_there_on_and_not_before():
    pays, of = results.first_that_pays(), results.efficient.VARIANTS
    for length, less in ((pays - 1, False), (pays, True), (2 * pays, True)):
        counted = [results.efficient.operations(of[name], length) for name in ("linear", "softmax")]
        assert (counted[0] < counted[1]) == less


def test_features_that_are_rounded_to_zero_are_named_since_the_whole_model_would_break_on_them():
    def naive(q, k, v, s, z):
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        s, z = s + torch.outer(k, v), z + k
        return q @ s / (q @ z), s, z

    (finding,) = TASKS["linear_step"].run(naive).findings
    assert finding.misconception == "rounded to zero"

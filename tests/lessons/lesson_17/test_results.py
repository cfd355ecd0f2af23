"""What lesson 17 measures, on stand-ins for what is trained; its drawings; and the data of its synthesis."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.linear_attention import LinearState, linear_attention, linear_step
from course_lib.lessons.lesson_17 import diagrams, figures, learner
from course_lib.lessons.lesson_17.recipes import boltzmann
from course_lib.lessons.lesson_17.recipes import experts as mixtures
from course_lib.lessons.lesson_17.synthesis import FAMILY, LANDMARKS
from course_lib.models.boltzmann import RBM, RBMConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.viz.timeline import Landmark, timeline
from tests.lessons.modern import fails, holds, in_words

SIZES = {"vocab_size": 20, "context_length": 12, "dim": 8, "depth": 2, "num_heads": 2, "dropout": 0.0}


@pytest.fixture
def rbm():
    torch.manual_seed(0)
    return RBM(RBMConfig(num_visible=74, num_hidden=8))


def parallel(q, k, v):
    return linear_attention(q, k, v, causal=True)


def step(q, k, v, s, z):
    output, state = linear_step(q, k, v, LinearState(s, z))
    return output, state.s, state.z


def test_a_recurrence_that_is_right_gives_the_same_logits_and_a_wrong_one_does_not():
    torch.manual_seed(0)
    model = GPT(GPTConfig(**SIZES)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    ids = torch.randint(20, (1, 9))
    assert holds(in_words("17", "recurrence", model, ids, parallel, step))
    forgetful = in_words("17", "recurrence", model, ids, parallel, lambda q, k, v, s, z: step(q, k, v, 0 * s, 0 * z))
    assert fails(forgetful)


def test_cost_reads_the_card_and_finds_where_the_lines_cross():
    result = in_words("17", "cost", load_trained("efficient_attention").card, predicted=100)
    assert holds(result) and 64 < result.came < 128


def test_flash_accepts_an_online_softmax_and_rejects_one_that_builds_all_scores():
    def online(q, keys, values):
        largest, total, output = torch.tensor(-torch.inf), 0.0, 0.0
        for k, v in zip(keys, values, strict=True):
            scores = k @ q / q.shape[0] ** 0.5
            new = torch.maximum(largest, scores.max())
            weights = (scores - new).exp()
            total = (largest - new).exp() * total + weights.sum()
            output = (largest - new).exp() * output + weights @ v
            largest = new
        return output / total

    def at_once(q, keys, values):
        return (torch.cat(keys) @ q / q.shape[0] ** 0.5).softmax(dim=0) @ torch.cat(values)

    assert holds(in_words("17", "flash", online)) and in_words("17", "flash", online).came == pytest.approx(
        67.1, abs=0.1
    )
    assert fails(in_words("17", "flash", at_once))


def mixture_card():
    scores = {"bits per character": 2.0, "operations a character": 1e5, "parameters": 1e5}
    test = {f"CPU seconds, {name}": 20.0 for name in mixtures.VARIANTS}
    scores |= {f"load {rank} of block 2": value for rank, value in enumerate((0.4, 0.3, 0.2, 0.1), start=1)}
    test |= {f"{key}, {name}": value for name in mixtures.VARIANTS for key, value in scores.items()}
    return {"seeds": [{"test": test}] * 2}


def test_experts_reads_the_card():
    assert fails(in_words("17", "experts", mixture_card()))  # all variants are equal


def test_trained_mixtures_are_compared_by_their_busiest_expert():
    torch.manual_seed(0)
    config = MixtureGPTConfig(**SIZES | {"vocab_size": 200}, num_experts=3, k=2, mlp_dim=8)
    models = {name: MixtureGPT(config).eval() for name in ("even", "uneven")}
    for block in models["uneven"].blocks:
        block.ffn.router.weight.data.zero_()
    assert holds(in_words("17", "balanced", models, 2))


def test_dreams_of_an_untrained_machine_are_not_recognised(rbm):
    test = {f"dreams recognised, {name}": 0.5 for name in ("RBM with labels", "DBN with labels")}
    test |= {"accuracy by free energy, RBM with labels": 0.9, "accuracy of the recogniser": 0.9}
    assert fails(in_words("17", "dreams", rbm, {"seeds": [{"test": test}]}, predicted=30))
    assert fails(in_words("17", "yours", rbm, [0.2] * 40))
    assert in_words("17", "filters", rbm).figure is not None


def test_a_stack_whose_second_machine_has_learned_nothing_draws_no_digits():
    class Hers(torch.nn.Module):  # an RBM with the methods of the exercise
        def __init__(self, of):
            super().__init__()
            self.W, self.hidden, self.visible = of.weight, of.features, of.visible

        def dream(self, v, steps, generator):
            return learner.clamped_chain(self.hidden, self.visible, v, steps)

    lower = Hers(load_trained("boltzmann").model)
    units = lower.W.shape[0]
    untrained = Hers(RBM(RBMConfig(num_visible=units, num_hidden=24)))

    def random_units(h, steps, generator):
        return lower.visible(learner.drawn(untrained.dream(h, steps, generator)))

    def single(h, steps, generator):  # what a second machine of the same quality would do
        return lower.dream(lower.visible(h), steps, generator)

    assert fails(in_words("17", "stack", lower, untrained, random_units))
    assert holds(in_words("17", "stack", lower, untrained, single))


def test_dreams_begin_where_they_are_told_and_keep_the_label(rbm):
    class Hers(torch.nn.Module):  # the methods of the exercise
        def hidden(self, v):
            assert torch.equal(v[:, 64:].argmax(dim=1), labels)
            return rbm.features(v)

        def visible(self, h):
            return rbm.visible(h)

    labels = torch.arange(10)
    start, _ = boltzmann.digits("test")
    found = learner.dreams(Hers(), labels, steps=3, start=start[:10])
    assert found.shape == (10, 64) and torch.equal(found, learner.dreams(rbm, labels, steps=3, start=start[:10]))
    assert learner.dreams(rbm, None, steps=2, count=7).shape == (7, 64)


def test_history_reads_the_card():
    names = ("pixels", "autoencoder", "k-means", "RBM, CD-1", "DBN", "random")
    test = {f"probe, {count} labels, {name}": 0.5 for count in (20, 100) for name in names}
    test |= {
        f"{count} labels, {name}": 0.5
        for count in (20, 100)
        for name in ("DBN, fine-tuned", "the same network from scratch")
    }
    assert fails(in_words("17", "history", {"seeds": [{"test": test}]}))


# --------------------------------------------------------------------------------------------- drawings, synthesis


def test_every_architecture_but_the_roots_changes_another_one_that_is_drawn():
    names = [one.name for one in FAMILY]
    assert len(set(names)) == len(names) and len({(one.column, one.row) for one in FAMILY}) == len(names)
    assert {one.parent for one in FAMILY} <= {"", *names}
    assert {one.name for one in FAMILY if not one.parent} == {"CNN", "RNN", "RBM"}
    assert {one.kind for one in FAMILY} == diagrams.KINDS.keys()


def test_landmarks_are_in_order_and_names_do_not_cover_each_other():
    fig = timeline(LANDMARKS, first=2006, last=2024)
    fig.draw_without_rendering()
    (axes,) = fig.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for number, one in enumerate(boxes) for other in boxes[:number])
    with pytest.raises(ValueError, match="must be in order"):
        timeline({"a": (Landmark("late", 2020), Landmark("early", 2010))}, first=2006, last=2024)


def test_what_is_shown_while_models_train(rbm):
    assert learner.showing_dreams()(rbm) is not None
    model = learner.small_gpt(dim=8)
    assert learner.bits(model) > 4
    assert figures.routed([[0.5, 0.5]]) is not None

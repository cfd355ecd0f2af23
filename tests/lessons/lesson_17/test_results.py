"""What lesson 17 measures, on stand-ins for what is trained; its drawings; and the data of its synthesis."""

import re
from pathlib import Path

import pytest
import torch

from course_lib.classroom.texts import read_results
from course_lib.data.checkpoints import load_trained
from course_lib.functional.linear_attention import LinearState, linear_attention, linear_step
from course_lib.lessons.lesson_17 import diagrams, figures, learner, results
from course_lib.lessons.lesson_17.recipes import boltzmann
from course_lib.lessons.lesson_17.recipes import experts as mixtures
from course_lib.lessons.lesson_17.synthesis import FAMILY, LANDMARKS
from course_lib.models.boltzmann import RBM, RBMConfig
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.viz.timeline import Landmark, timeline

TEXTS = read_results(Path(results.__file__).parent / "results.md")
SIZES = {"vocab_size": 20, "context_length": 12, "dim": 8, "depth": 2, "num_heads": 2, "dropout": 0.0}


def told(name, *arguments, **options):
    """A result in its words; no slot is left."""
    result = results.RESULTS[name](*arguments, **options).told(name, TEXTS)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def holds(result):
    return {text: all(held) for text, held in result.conditions()}


@pytest.fixture
def rbm():
    torch.manual_seed(0)
    return RBM(RBMConfig(num_visible=74, num_hidden=8))


def parallel(q, k, v):
    return linear_attention(q, k, v, causal=True)


def step(q, k, v, s, z):
    output, state = linear_step(q, k, v, LinearState(s, z))
    return output, state.s, state.z


def test_every_result_has_its_words_and_there_are_ten_claims_at_most():
    assert TEXTS.keys() == results.RESULTS.keys()
    assert sum(len(text.claims) for text in TEXTS.values()) <= 10


def test_a_recurrence_that_is_right_gives_the_same_logits_and_a_wrong_one_does_not():
    torch.manual_seed(0)
    model = GPT(GPTConfig(**SIZES)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    ids = torch.randint(20, (1, 9))
    assert all(holds(told("recurrence", model, ids, parallel, step)).values())
    forgetful = told("recurrence", model, ids, parallel, lambda q, k, v, s, z: step(q, k, v, 0 * s, 0 * z))
    assert not any(holds(forgetful).values())


def test_cost_reads_the_card_and_finds_where_the_lines_cross():
    result = told("cost", load_trained("efficient_attention").card, predicted=100)
    assert all(holds(result).values()) and 64 < result.came < 128


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

    assert all(holds(told("flash", online)).values()) and told("flash", online).came == pytest.approx(67.1, abs=0.1)
    assert not any(holds(told("flash", at_once)).values())


def mixture_card():
    scores = {"bits per character": 2.0, "operations a character": 1e5, "parameters": 1e5}
    test = {f"CPU seconds, {name}": 20.0 for name in mixtures.VARIANTS}
    scores |= {f"load {rank} of block 2": value for rank, value in enumerate((0.4, 0.3, 0.2, 0.1), start=1)}
    test |= {f"{key}, {name}": value for name in mixtures.VARIANTS for key, value in scores.items()}
    return {"seeds": [{"test": test}] * 2}


def test_experts_reads_the_card():
    assert not any(holds(told("experts", mixture_card())).values())  # all variants are equal


def test_trained_mixtures_are_compared_by_their_busiest_expert():
    torch.manual_seed(0)
    config = MixtureGPTConfig(**SIZES | {"vocab_size": 200}, num_experts=3, k=2, mlp_dim=8)
    models = {name: MixtureGPT(config).eval() for name in ("even", "uneven")}
    for block in models["uneven"].blocks:
        block.ffn.router.weight.data.zero_()
    assert all(holds(told("balanced", models, 2)).values())


def test_dreams_of_an_untrained_machine_are_not_recognised(rbm):
    test = {f"dreams recognised, {name}": 0.5 for name in ("RBM with labels", "DBN with labels")}
    test |= {"accuracy by free energy, RBM with labels": 0.9, "accuracy of the recogniser": 0.9}
    assert not any(holds(told("dreams", rbm, {"seeds": [{"test": test}]}, predicted=30)).values())
    assert not any(holds(told("yours", rbm, [0.2] * 40)).values())
    assert told("filters", rbm).figure is not None


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

    assert holds(told("stack", lower, untrained, random_units)) == dict.fromkeys(TEXTS["stack"].claims.values(), False)
    assert all(holds(told("stack", lower, untrained, single)).values())


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
    assert not any(holds(told("history", {"seeds": [{"test": test}]})).values())


# --------------------------------------------------------------------------------------------- drawings, synthesis


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_a_drawing_fits_on_a_page_and_is_told_in_words(name):
    fig, alt = diagrams.DIAGRAMS[name]()
    width, height = fig.get_size_inches()
    assert width <= 12 and height <= 5.5 and len(alt) > 200


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

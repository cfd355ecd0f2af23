import pytest
import torch

from course_lib.generation import beam_search, greedy
from tests.generation.toys import STATES, Toy

PROMPT = torch.tensor([[1, 2, 0], [3, 3, 1], [0, 1, 2]])
PENALTIES = (0.0, 0.6, 1.0, 2.0, -1.0)


def without_padding(tokens, end_id):
    return tokens[: tokens.index(end_id) + 1] if end_id in tokens else tokens


@pytest.mark.parametrize("length_penalty", PENALTIES)
@pytest.mark.parametrize("early_stopping", [True, False, "never"])
@pytest.mark.parametrize("end_id", [2, None])
def test_a_beam_as_wide_as_the_tree_finds_the_best_sequences_in_order(length_penalty, early_stopping, end_id):
    toy, length = Toy(vocab_size=3), 4
    settings = {"length_penalty": length_penalty, "early_stopping": early_stopping, "end_id": end_id, "pad_id": 2}
    beams = beam_search(toy, PROMPT % 3, num_beams=81, num_return=10, max_new_tokens=length, **settings)
    for prompt, tokens, scores in zip((PROMPT % 3).tolist(), beams.tokens.tolist(), beams.scores.tolist(), strict=True):
        best = toy.all_sequences(prompt, max_new_tokens=length, length_penalty=length_penalty, end_id=end_id)[:10]
        assert [without_padding(row, end_id) for row in tokens] == [sequence for _, sequence in best]
        assert scores == pytest.approx([score for score, _ in best], abs=1e-5)


def test_a_wider_beam_finds_what_greedy_writing_misses():
    # token 0 is likelier at first, but nothing likely follows it
    table = torch.full((STATES, 3), -20.0)
    first, after_0, after_1 = 2, 7, 8  # the states of Toy behind [[1]], then 0 or 1
    table[first, :2] = torch.tensor([0.6, 0.4]).log()
    table[after_0] = torch.tensor([1 / 3] * 3).log()
    table[after_1] = torch.tensor([0.01, 0.01, 0.98]).log()
    toy, prompt = Toy(table=table), torch.tensor([[1]])
    assert greedy(toy, prompt, max_new_tokens=2)[0, 0] == 0
    beams = beam_search(toy, prompt, num_beams=2, max_new_tokens=2)
    assert beams.tokens.tolist() == [[[1, 2]]]
    assert beams.scores.item() == pytest.approx(torch.tensor(0.4 * 0.98).log().item() / 2)


@pytest.mark.parametrize("end_id", [3, None])
def test_one_beam_is_greedy(end_id):
    for seed in range(5):
        beams = beam_search(Toy(seed=seed), PROMPT, num_beams=1, max_new_tokens=9, end_id=end_id)
        assert (beams.tokens[:, 0] == greedy(Toy(seed=seed), PROMPT, max_new_tokens=9, end_id=end_id)).all()


def test_rows_do_not_touch_each_other():
    settings = {"num_beams": 3, "num_return": 2, "max_new_tokens": 10, "end_id": 3, "pad_id": 7}
    for seed in range(4):
        together = beam_search(Toy(seed=seed), PROMPT, **settings)
        for row, prompt in enumerate(PROMPT):
            alone = beam_search(Toy(seed=seed), prompt[None], **settings)
            width = alone.tokens.shape[2]
            assert torch.equal(together.tokens[row, :, :width], alone.tokens[0])
            assert (together.tokens[row, :, width:] == 7).all()
            assert torch.equal(together.scores[row], alone.scores[0])


def test_sequences_that_end_at_once_end_the_search():
    table = torch.zeros(STATES, 3)
    table[:, 2] = 12.0
    toy = Toy(table=table)
    beams = beam_search(toy, torch.tensor([[1]]), num_beams=1, max_new_tokens=50, end_id=2)
    assert beams.tokens.tolist() == [[[2]]] and len(toy.calls) == 1


def test_early_stopping_is_over_when_the_beam_is_full():
    def steps(early_stopping, length_penalty):
        toy, settings = Toy(seed=8), {"early_stopping": early_stopping, "length_penalty": length_penalty}
        beam_search(toy, PROMPT[:1], num_beams=2, max_new_tokens=40, end_id=3, **settings)
        return len(toy.calls)

    assert steps(True, 2.0) < steps(False, 2.0) < steps("never", 2.0)
    # where the short are favoured, no longer continuation could win
    assert steps(True, -1.0) < steps(False, -1.0) == steps("never", -1.0)


def test_more_sequences_than_there_are_score_minus_infinity():
    beams = beam_search(
        Toy(vocab_size=2), torch.tensor([[1]]), num_beams=8, num_return=8, max_new_tokens=2, end_id=1, pad_id=5
    )
    real = beams.scores[0] > float("-inf")
    assert real.tolist() == [True] * 3 + [False] * 5
    assert sorted(beams.tokens[0, real].tolist()) == [[0, 0], [0, 1], [1, 5]]
    assert (beams.tokens[0, ~real] == 5).all()


def test_impossible_tokens_are_never_written():
    table = torch.randn(STATES, 4, generator=torch.Generator().manual_seed(0))
    table[:, 1] = float("-inf")
    beams = beam_search(Toy(table=table), PROMPT, num_beams=5, num_return=5, max_new_tokens=4, end_id=3)
    assert beams.scores.isfinite().all() and not (beams.tokens == 1).any()


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_the_search_is_over_when_nothing_can_go_on(early_stopping):
    table = torch.full((STATES, 3), float("-inf"))
    table[:, 2] = 0.0
    toy = Toy(table=table)
    beams = beam_search(
        toy, torch.tensor([[1]]), num_beams=3, num_return=2, max_new_tokens=100, end_id=2, early_stopping=early_stopping
    )
    assert beams.tokens[0, 0].tolist() == [2] and beams.scores[0].tolist() == [0.0, float("-inf")]
    assert len(toy.calls) == 1


def test_ties_give_distinct_sequences_of_equal_score():
    beams = beam_search(Toy(table=torch.zeros(STATES, 3)), PROMPT, num_beams=4, num_return=4, max_new_tokens=3)
    assert torch.allclose(beams.scores, -torch.tensor(3.0).log())
    assert all(len({tuple(tokens) for tokens in row}) == 4 for row in beams.tokens.tolist())


def test_the_prompt_is_read_once_for_each_row_and_each_step_once_for_each_beam():
    toy = Toy()
    beam_search(toy, PROMPT, num_beams=4, max_new_tokens=5)
    assert toy.calls == [(3, 3)] + [(12, 1)] * 4 and toy.room == 8


def test_the_cache_is_copied_only_when_beams_change_places(monkeypatch):
    toy, caches = Toy(), []
    new_cache = toy.new_cache
    monkeypatch.setattr(toy, "new_cache", lambda length: caches.append(new_cache(length)) or caches[0])
    beam_search(toy, PROMPT, num_beams=1, max_new_tokens=6)
    assert caches[0].selections == [[0, 1, 2]]  # from prompts to beams, once


def test_scores_can_be_used_in_training():
    beams = beam_search(Toy(), PROMPT, num_beams=2, max_new_tokens=3)
    weight = torch.ones(4, 2, requires_grad=True)
    (torch.nn.functional.embedding(beams.tokens, weight).sum() * beams.scores.sum()).backward()
    assert weight.grad.abs().sum() > 0


def test_bad_requests_are_named():
    toy, settings = Toy(), {"max_new_tokens": 3, "num_beams": 2}
    with pytest.raises(ValueError, match="num_return=3, num_beams=2"):
        beam_search(toy, PROMPT, num_return=3, **settings)
    with pytest.raises(ValueError, match="num_beams=0"):
        beam_search(toy, PROMPT, **settings | {"num_beams": 0})
    with pytest.raises(ValueError, match="max_new_tokens must be 1 or more, got -1"):
        beam_search(toy, PROMPT, **settings | {"max_new_tokens": -1})
    with pytest.raises(ValueError, match=r"in rows \[0, 1, 2\]"):
        beam_search(toy, PROMPT, valid=torch.tensor([True, True, False]).expand(3, -1), **settings)
    assert toy.calls == []
    with pytest.raises(ValueError, match="vocabulary has only one"):
        beam_search(Toy(table=torch.zeros(STATES, 1)), PROMPT, **settings)


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_who_watches_sees_each_step_and_changes_nothing(early_stopping):
    settings = {"num_beams": 3, "max_new_tokens": 6, "end_id": 3, "early_stopping": early_stopping, "num_return": 3}
    seen = []
    watched = beam_search(Toy(), PROMPT, watch=lambda *beams: seen.append(beams), **settings)
    plain = beam_search(Toy(), PROMPT, **settings)
    assert torch.equal(watched.tokens, plain.tokens) and torch.equal(watched.scores, plain.scores)
    for step, (running, _) in enumerate(seen, start=1):
        assert ((running.tokens >= 0).sum(dim=-1) == step)[running.scores > -torch.inf].all()
        if step > 1:  # whoever goes on was there before
            before = seen[step - 2][0].tokens[:, :, : step - 1]
            parents = (running.tokens[:, :, None, : step - 1] == before[:, None]).all(dim=-1).any(dim=-1)
            assert parents[running.scores > -torch.inf].all()
    torch.testing.assert_close(seen[-1][1].scores, plain.scores)

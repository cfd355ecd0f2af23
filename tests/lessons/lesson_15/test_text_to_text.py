from dataclasses import replace

import pytest
import torch

from course_lib.functional.attention import attention
from course_lib.lessons.lesson_15.recipes import text_to_text as recipe
from course_lib.lessons.lesson_17.recipes import efficient
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training.history import History


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    monkeypatch.setattr(recipe, "PLAIN", 60)
    recipe.tokenizer.cache_clear(), recipe.plain_text.cache_clear()
    yield
    recipe.tokenizer.cache_clear(), recipe.plain_text.cache_clear()


def finished(model):
    return recipe.Trained(settings=None, model=model, history=History.blank(1, []))


def filled(source, target, sentinels):
    """The text that a source with gaps and its target give when they are put together."""
    spans, current = {}, None
    for token in target:
        if token in sentinels:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    return [token for each in source for token in (spans[each] if each in sentinels else [each])]


def test_gaps_and_what_was_in_them_give_the_text_back_and_are_fifteen_per_cent_of_it():
    words, text = recipe.tokenizer(), recipe.plain_text().tolist()
    sentinels = [words.token_to_id(name) for name in recipe.SENTINELS][::-1]  # they count down
    windows = {tuple(text[i : i + recipe.WINDOW]) for i in range(len(text))}
    batch = recipe.with_gaps(recipe.TextSettings(batch_size=8), 0)
    assert batch.source_valid.all() and batch.target_valid.all()
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        assert tuple(filled(source, target, sentinels)) in windows
        used = [token for token in target if token in sentinels]
        assert used == sentinels[: len(used)] and [t for t in source if t in sentinels] == used[:-1]
        assert len(target) - len(used) == round(0.15 * recipe.WINDOW) and len(used) == 3  # two spans of five tokens


def sentence_of(text):
    """The first training sentence that reads so in English, with its pair."""
    return next(each for each in recipe.sentences("train", 60) if " ".join(each[1].english) == text)


def test_each_task_by_hand():
    given = [sentence_of("the new judge visits the hospitals .")] * 4
    french = "le nouveau juge visite les hôpitaux ."
    found = {task: recipe.examples(task, given) for task in recipe.TASKS}
    assert found["acceptable"][0] == ("acceptable: les nouveau juge visite les hôpitaux .", "no")
    assert found["acceptable"][1] == (f"acceptable: {french}", "yes")
    assert found["acceptable"][2] == ("acceptable: le nouveaux juge visite les hôpitaux .", "no")
    assert found["choose"][0] == ("choose: le or les nouveau juge visite les hôpitaux .", "le")
    assert found["choose"][3] == ("choose: le nouveaux or nouveau juge visite les hôpitaux .", "nouveau")
    assert found["kind"][0] == ("kind: the new judge visits the hospitals .", "person")
    assert found["who"][0].target == "the new judge"
    assert found["negate"][0].target == "the new judge does not visit the hospitals ."


def test_kinds_are_person_body_and_thing_and_no_twice_is_yes():
    given = recipe.sentences("train", 300)
    assert {each.target for each in recipe.examples("kind", given)} == {"person", "body", "thing"}
    denied = next(each for each in given if "not" in each[1].english)
    assert "not" not in recipe.examples("negate", [denied])[0].target.split()


def test_a_story_is_about_one_subject():
    words, text = recipe.tokenizer(), recipe.plain_text()
    stories = words.decode(text.tolist()).split(" </s>")[:-1]
    told = [[part.split() for part in story.split(" .") if part.strip()] for story in stories]
    assert max(map(len, told)) == recipe.STORY and len(told) > 10
    assert all(parts[0][:1] == part[:1] for parts in told for part in parts)  # the same determiner
    assert int((text == words.token_to_id("<unk>")).sum()) == 0


def test_writing_starts_at_padding_and_padding_is_not_scored():
    few = recipe.examples("negate", recipe.sentences("train", 60)[:3])
    batch, read = recipe.as_batch(few), []

    def model(source, target, *, source_valid):
        read.append(target)
        right_but_for_padding = batch.target.masked_fill(~batch.target_valid, 7)
        return torch.nn.functional.one_hot(right_but_for_padding, len(recipe.tokenizer())) * 100.0

    assert recipe.loss(model, batch).item() == pytest.approx(0, abs=1e-6)
    assert (read[0][:, 0] == 0).all() and torch.equal(read[0][:, 1:], batch.target[:, :-1])


def test_no_held_out_sentence_is_among_those_of_training():
    train, validation, test = ({p.english for _, p in recipe.sentences(s, 60)} for s in ("train", "validation", "test"))
    assert len(train) == len(validation) == len(test) == 60 and not (train & validation or train & test)
    assert all(pair.combinations for split in ("validation", "test") for _, pair in recipe.sentences(split, 60))


def test_all_heads_attend_by_the_name_that_was_asked_for():
    model = GPT(GPTConfig(vocab_size=5, context_length=30, dim=8, depth=2, num_heads=2)).eval()
    tokens = torch.randint(5, (1, 30), generator=torch.Generator().manual_seed(0))
    found = {name: efficient.attend_by(model, name, window=3)(tokens) for name in ("softmax", "local", "linear")}
    for name in ("local", "linear"):
        assert not torch.allclose(found[name], found["softmax"])
    assert torch.equal(efficient.attend_by(model, "softmax")(tokens), found["softmax"])
    assert all(block.attn.attend is attention for block in model.blocks)
    with pytest.raises(ValueError, match="softmax, local, linear, got 'fast'"):
        efficient.attend_by(model, "fast")


def test_operations_grow_with_the_length_for_softmax_alone_and_by_its_formula():
    small = {name: replace(each, dim=32, depth=1) for name, each in efficient.VARIANTS.items()}
    found = {name: [efficient.operations(each, n) for n in (64, 128)] for name, each in small.items()}
    assert found["softmax"][1] - found["softmax"][0] == 4 * 32 * 64  # scores and sums: 2 d n each
    assert found["local"][0] == found["local"][1] and found["linear"][0] == found["linear"][1]
    inner = 2 * 12 * 32 * 32 + 2 * 32 * len(efficient.tokenized_prose(None).tokenizer)
    assert found["softmax"][0] == 4 * 32 * 64 + inner


def test_variants_of_a_folder_fill_the_same_gaps_once(tmp_path, monkeypatch):
    small = recipe.TextSettings(dim=8, depth=1, num_heads=2, head_dim=4, mlp_dim=8, pretraining=2, per_task=4, steps=2)
    drawn, with_gaps = [], recipe.with_gaps
    monkeypatch.setattr(recipe, "with_gaps", lambda settings, step: drawn.append(step) or with_gaps(settings, step))
    first = recipe.train(small, checkpoint=tmp_path / "a").model.state_dict()
    assert drawn == [0, 1]
    again = recipe.train(small, checkpoint=tmp_path / "b").model.state_dict()
    assert drawn == [0, 1, 0]  # and the first batch once more, to see that the data are the same
    assert all(torch.equal(tensor, first[name]) for name, tensor in again.items())
    alone = recipe.train(small).model.state_dict()
    assert all(torch.equal(tensor, first[name]) for name, tensor in alone.items())


def test_gap_words_are_scored_without_the_sentinels():
    batch = recipe.corrupted(recipe.plain_text("test"), recipe.GAPS_SCORED, recipe.generator("held-out gaps"))
    marks = [recipe.tokenizer().token_to_id(name) for name in recipe.SENTINELS]
    named = batch.target.clone()
    named[torch.isin(named, torch.tensor(marks))] = 0  # wrong there: does not matter

    class Knows(torch.nn.Module):
        def forward(self, source, target, *, source_valid):
            return torch.nn.functional.one_hot(named, len(recipe.tokenizer())).float()

    trained = finished(Knows())
    assert recipe.score_gaps(trained, "test") == {"gap words right": 1.0}
    named[:, 1] = 0  # the first word of each text's first gap
    words = batch.target_valid.sum() - torch.isin(batch.target, torch.tensor(marks)).sum()
    assert recipe.score_gaps(trained, "test")["gap words right"] == pytest.approx(1 - recipe.GAPS_SCORED / int(words))


def test_what_the_model_writes_is_scored_word_for_word(monkeypatch):
    truth = dict(recipe.examples("kind", recipe.sentences("test", recipe.SCORED["test"])))
    monkeypatch.setattr(recipe, "TASKS", {"kind": recipe.TASKS["kind"]})
    monkeypatch.setattr(recipe, "written", lambda model, sources: [truth[each] for each in sources[:-50]] + ["no"] * 50)
    trained = finished(torch.nn.Identity())
    assert recipe.scores({"one": trained}, "test") == {"exact, kind, one": 0.75, "exact, one": 0.75}


def test_gaps_are_filled_by_what_stands_behind_their_sentinels(monkeypatch):
    words, asked = recipe.tokenizer(), []

    def answers(model, sources):
        asked.extend(sources)
        return [words.encode("<extra_7> new judge <extra_6> the hospitals <extra_5> the")]

    monkeypatch.setattr(recipe, "answers", answers)
    model = recipe.build(recipe.TextSettings(dim=8, depth=1, num_heads=2, head_dim=4, mlp_dim=8))
    assert recipe.fill(model, "the ___ visits ___ .") == "the new judge visits the hospitals ."
    assert asked == ["the <extra_7> visits <extra_6> ."]
    one_missing = recipe.fill(model, "the ___ visits ___ ___ ___ .")
    assert one_missing == "the new judge visits the hospitals the ."


def test_a_fresh_model_answers_every_question_with_text():
    model = recipe.build(recipe.TextSettings(dim=8, depth=1, num_heads=2, head_dim=4, mlp_dim=8))
    found = recipe.answers(model, ["who: the judge helps .", "kind: the law is new ."])
    assert len(found) == 2 and all(0 < len(row) <= 2 * recipe.LONGEST + 1 for row in found)
    assert {type(token) for row in found for token in row} == {int}
    assert all(isinstance(text, str) for text in recipe.written(model, ["who: the judge helps ."]))
    assert recipe.fill(model, "the ___ helps .").split()[0] == "the"

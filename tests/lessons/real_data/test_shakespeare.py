import torch
import torch.nn.functional as F

from course_lib.lessons.real_data import shakespeare
from course_lib.models.gpt import GPT, GPTConfig


def test_each_window_is_read_from_nothing_and_each_character_counted_once():
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=5, dim=8, depth=1, num_heads=2, context_length=4)).eval()
    torch.nn.init.normal_(model.token_embed.weight)
    ids = torch.randint(5, (4 * 70 + 3,))
    one_by_one = [
        F.cross_entropy(model(ids[None, start : start + 4])[0], ids[start + 1 : start + 5])
        for start in range(0, 280, 4)
    ]
    assert abs(shakespeare.nats_in_windows(model, ids) - torch.stack(one_by_one).mean().item()) < 1e-5


def test_the_text_is_cut_as_nanogpt_cuts_it(monkeypatch):
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: "abcdefghij" * 11)
    for cached in (shakespeare.tokenizer, shakespeare.parts):
        cached.cache_clear()
    parts = {name: shakespeare.tokenizer().decode(ids) for name, ids in shakespeare.parts().items()}
    for cached in (shakespeare.tokenizer, shakespeare.parts):
        cached.cache_clear()
    assert parts["train"] == ("abcdefghij" * 11)[:99] and parts["held out"] == ("abcdefghij" * 11)[99:]
    assert parts["validation"] + parts["test"] == parts["held out"] and len(parts["validation"]) == 5


def test_the_settings_are_those_of_nanogpts_readme():
    settings = shakespeare.RECIPES["gpt_tiny_shakespeare"].variants[""]
    assert settings == shakespeare.ShakespeareSettings(
        dim=128, depth=4, num_heads=4, context_length=64, dropout=0.0, batch_size=12, steps=2000, learning_rate=1e-3,
        final_factor=0.1, weight_decay=0.1,
    )  # fmt: skip

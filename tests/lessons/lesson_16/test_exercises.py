"""The exercises of lesson 16 ask for what the library does, its solutions open the library's models, styles pass."""

import linecache
import math
import re
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import DoesNotOpen, compare, copy_weights
from course_lib.data import mazes
from course_lib.functional.losses import cross_entropy
from course_lib.lessons.lesson_16.models import MODELS, OfSeveralImages
from course_lib.lessons.lesson_16.tasks import TASKS
from course_lib.models.bert import BERTConfig
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.flamingo import Flamingo, FlamingoConfig, PerceiverResampler
from course_lib.models.flamingo import GatedCrossAttention as LibraryGated
from course_lib.models.gpt import GPTConfig
from course_lib.models.imitation import GAIL, ImitationConfig
from course_lib.models.vilbert import CoLayer, ViLBERTConfig
from course_lib.tasks import Draw

NAMES = {"math": math, "np": np, "torch": torch, "F": F, "nn": nn}
LANGUAGE = GPTConfig(vocab_size=11, context_length=7, dim=8, depth=2, num_heads=2, dropout=0.0)
CONFIG = FlamingoConfig(language=LANGUAGE, vision_dim=6, num_latents=3, resampler_depth=1, num_heads=2, head_dim=4)


def drawn(name):
    """The inputs of each case of a task."""
    return [case.inputs(Draw(seed)) for case in TASKS[name].cases for seed in (1, 2)]


def shaken(model):
    """The model with other norms, biases and gates than those that it begins with."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn_like(weight) if weight.dim() < 2 else 0
    return model.eval()


class Known(GAIL):
    """The library's GAIL, whose pairs are the logits of its discriminator."""

    def __init__(self):
        super().__init__(ImitationConfig(state_dim=1, action_dim=1))

    def judge(self, states, actions):
        return states[..., 0]


def library_loss(policy, expert):
    """The loss of the library's GAIL, given the logits."""
    pairs = (each[:, None] for logits in (policy, expert) for each in (logits, logits))
    return Known().discriminator_loss(*pairs)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("cloning_loss", lambda logits, actions, valid: cross_entropy(logits, actions, scored=valid)),
        ("discriminator_loss", library_loss),
        ("imitation_reward", lambda logits: Known().rewards(logits[..., None], logits[..., None])),
        ("to_go", lambda rewards: mazes.returns_to_go(rewards.float()).to(rewards.dtype)),
    ],
)
def test_the_references_do_what_the_library_does(name, ours):
    for given in drawn(name):
        torch.testing.assert_close(TASKS[name].reference(*given), ours(*given), check_dtype=False)


def test_the_discriminators_loss_and_the_reward_where_it_cannot_tell_them_apart():
    loss, reward = TASKS["discriminator_loss"].reference, TASKS["imitation_reward"].reference
    assert loss(torch.zeros(3), torch.zeros(5)).item() == pytest.approx(2 * math.log(2))
    assert reward(torch.zeros(1)).item() == pytest.approx(math.log(2))
    assert reward(torch.tensor([-1000.0, 1000.0])).tolist() == [1000.0, 0.0]


def test_the_loss_of_clip_is_the_logarithm_of_the_number_of_pairs_where_all_are_alike():
    loss = TASKS["clip_loss"].reference
    alike = torch.ones(5, 3)
    assert loss(alike, 2 * alike, torch.tensor(1.0)).item() == pytest.approx(math.log(5), abs=1e-5)
    assert loss(torch.eye(5), torch.eye(5), torch.tensor(5.0)).item() < 1e-4


def test_the_mask_of_a_small_text():
    tokens = torch.tensor([[1, 9, 2, 9, 3], [9, 1, 1, 1, 1]])
    assert TASKS["media_mask"].reference(tokens, 9).int().tolist() == [
        [[0, 0], [1, 0], [1, 0], [0, 1], [0, 1]],
        [[1, 0], [1, 0], [1, 0], [1, 0], [1, 0]],
    ]


def test_the_interleaved_tokens_are_those_of_the_decision_transformer():
    torch.manual_seed(0)
    sizes = {"state_dim": 5, "action_dim": 4, "max_steps": 9, "dim": 8, "depth": 1, "num_heads": 2, "dropout": 0.0}
    ours = DecisionTransformer(DecisionTransformerConfig(**sizes)).eval()
    to_go, states, actions, times = torch.randn(2, 3), torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.arange(3)
    embedded = ours.return_embed(to_go[..., None]), ours.state_embed(states), ours.action_embed(actions)
    times = times.expand(2, -1)
    mine = TASKS["interleave"].reference(*(x + ours.time_embed.table[times] for x in embedded))
    torch.testing.assert_close(ours.embed_norm(mine), ours.embed(to_go, states, actions, times))


def test_both_streams_are_those_of_vilbert():
    text = BERTConfig(vocab_size=9, context_length=7, dim=8, num_heads=2, mlp_dim=32, dropout=0.0, norm_eps=1e-5)
    config = ViLBERTConfig(text=text, region_dim=5, image_dim=6, image_num_heads=2, image_mlp_dim=24, co_depth=1)
    ours, mine = shaken(CoLayer(config)), TASKS["co_attention"].module(8, 6, 2).eval()
    sides = ("text_co.", "image_co.")
    mine.load_state_dict({name: value for name, value in ours.state_dict().items() if name.startswith(sides)})
    words, regions, valid = torch.randn(3, 7, 8), torch.randn(3, 4, 6), Draw(0).mask(3, 7)
    found = mine(words, regions, valid)
    torch.testing.assert_close(found[0], ours.text_co(words, regions))
    torch.testing.assert_close(found[1], ours.image_co(regions, words, mask=valid[:, None, None]))


def test_a_gated_layer_and_a_resampler_are_those_of_flamingo():
    for mine, ours, inputs in (
        (TASKS["gated_cross_attention"].module(8, 6, 2), LibraryGated(CONFIG), (torch.randn(2, 5, 8), 3)),
        (TASKS["resampler"].module(6, 3, 2, 4), PerceiverResampler(CONFIG), (7,)),
    ):
        given = (*inputs[:-1], torch.randn(2, inputs[-1], 6))
        shaken(ours)
        mine.load_state_dict({name.removeprefix("layers.0."): value for name, value in ours.state_dict().items()})
        torch.testing.assert_close(mine(*given), ours(*given))


def test_a_token_without_an_image_gets_what_the_language_model_says():
    torch.manual_seed(0)
    made = shaken(TASKS["flamingo"].module(11, 7, 8, 2, 2, 6, 3))
    tokens, images = torch.tensor([[1, 2, 9, 3, 9, 4]]), torch.randn(1, 2, 5, 6)
    seen = TASKS["media_mask"].reference(tokens, 9)
    before = made(tokens, images, seen)
    other = made(tokens, torch.cat([images[:, :1], torch.randn(1, 1, 5, 6)], dim=1), seen)
    torch.testing.assert_close(before[:, :4], other[:, :4])
    assert (before[:, 4:] - other[:, 4:]).abs().max() > 1e-3
    for layer in made.gated:
        nn.init.zeros_(layer.alpha_attn), nn.init.zeros_(layer.alpha_ffn)
    torch.testing.assert_close(made(tokens, images, seen), made.language(tokens))


# Opening -----------------------------------------------------------------------------------------------------------

OURS = {
    "mazes": lambda: DecisionTransformer(
        DecisionTransformerConfig(
            state_dim=150, action_dim=4, tanh=False, max_steps=40, dim=8, depth=2, num_heads=2, dropout=0.0
        )
    ),
    "pictures_and_words": lambda: OfSeveralImages(CONFIG),
}
TASK = {"mazes": "decision_transformer", "pictures_and_words": "flamingo"}


def some_inputs(name):
    """What both models are asked."""
    if name == "mazes":
        return MODELS[name].inputs()
    return torch.randint(11, (4, 7), generator=torch.Generator().manual_seed(0)), torch.randn(4, 1, 5, 6)


@pytest.mark.parametrize("name", TASK)
def test_the_solution_opens_a_model_of_the_library(name):
    known, ours = MODELS[name], shaken(OURS[name]())
    mine = TASKS[TASK[name]].module(**known.sizes(ours)).eval()
    assert copy_weights(ours, mine, known.names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, some_inputs(name), known.names)


def test_a_flamingo_for_several_images_is_the_librarys():
    ours = shaken(Flamingo(CONFIG))
    several = OfSeveralImages(CONFIG)
    several.load_state_dict(ours.state_dict())
    tokens, images = some_inputs("pictures_and_words")
    torch.testing.assert_close(several.eval()(tokens, images), ours(tokens, images[:, 0]))
    with pytest.raises(ValueError, match="takes one image"):
        several(tokens, images[:, 0])


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("mazes", ("1::3", "2::3"), "in `DecisionTransformer.forward`"),
        ("mazes", ("x = self.embed_norm(x)", "x = self.embed_norm(x).relu()"), "between `embed_norm` and `blocks.0"),
        ("mazes", ("self.return_embed", "self.embed_return"), "embed_return"),
        (
            "pictures_and_words",
            (
                "x = gated(x, media, mask)\n            x = block(x)",
                "x = block(x)\n            x = gated(x, media, mask)",
            ),
            "in `Flamingo.forward`",
        ),
        ("pictures_and_words", (" + language.pos_embed(positions)", ""), "in `Flamingo.forward`"),
    ],
)
def test_a_model_that_does_not_open_is_told_where_it_differs(name, change, said):
    known, ours = MODELS[name], shaken(OURS[name]())
    mine = TASKS[TASK[name]].reference.changed((change,))(**known.sizes(ours)).eval()
    with pytest.raises(DoesNotOpen, match=re.escape(said)):
        copy_weights(ours, mine, known.names)
        compare(ours, mine, some_inputs(name), known.names)


# Learning ----------------------------------------------------------------------------------------------------------


def losses_of(parameters, loss, *, steps=40):
    """The first and the last loss of some steps."""
    optimizer, losses = torch.optim.Adam(parameters, lr=1e-2), []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses[0], losses[-1]


def test_a_fresh_decision_transformer_learns_the_actions_of_some_windows():
    torch.manual_seed(0)
    model = TASKS["decision_transformer"].module(150, 4, 40, 16, 2, 2)
    given = MODELS["mazes"].inputs()
    actions, valid = given[2].argmax(-1), torch.ones(given[0].shape, dtype=torch.bool)
    first, last = losses_of(model.parameters(), lambda: TASKS["cloning_loss"].reference(model(*given), actions, valid))
    assert last < 0.3 * first


def test_a_fresh_flamingo_learns_to_read_images_and_its_language_model_stays():
    torch.manual_seed(0)
    model = TASKS["flamingo"].module(11, 7, 8, 2, 2, 6, 3)
    tokens, images = torch.randint(11, (8, 6)), torch.randn(8, 1, 5, 6)
    before = {name: value.clone() for name, value in model.language.state_dict().items()}
    new = [value for value in model.parameters() if value.requires_grad]
    loss = partial(F.cross_entropy, target=tokens[:, 1:].flatten())
    first, last = losses_of(new, lambda: loss(model(tokens[:, :-1], images).flatten(0, 1)), steps=60)
    assert last < 0.8 * first
    assert all(torch.equal(value, before[name]) for name, value in model.language.state_dict().items())


def test_a_discriminator_learns_to_tell_two_groups_apart():
    torch.manual_seed(0)
    layer, policy, expert = nn.Linear(2, 1), torch.randn(40, 2) + 2, torch.randn(30, 2) - 2
    loss = TASKS["discriminator_loss"].reference
    _, last = losses_of(layer.parameters(), lambda: loss(layer(policy)[:, 0], layer(expert)[:, 0]), steps=200)
    assert last < 0.5
    reward = TASKS["imitation_reward"].reference
    assert reward(layer(expert)).mean() > reward(layer(policy)).mean() + 1


# Answers -----------------------------------------------------------------------------------------------------------


def told(task, text):
    """What a check says of an answer, given as text."""
    file, names = f"<{task} {hash(text)}>", NAMES | dict(getattr(TASKS[task].reference, "names", {}))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return TASKS[task].run(names[re.findall(r"^(?:def|class) (\w+)", text, flags=re.MULTILINE)[-1]]).misconceptions


OWN_ATTENTION = """
class Attention(nn.Module):
    def __init__(self, dim, context_dim, num_heads, head_dim, bias):
        super().__init__()
        self.num_heads, inner = num_heads, num_heads * head_dim
        self.q_proj = nn.Linear(dim, inner, bias=bias)
        self.k_proj = nn.Linear(context_dim, inner, bias=bias)
        self.v_proj = nn.Linear(context_dim, inner, bias=bias)
        self.o_proj = nn.Linear(inner, dim, bias=bias)

    def forward(self, x, context, mask=None):
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        q, k, v = (t.view(*t.shape[:2], self.num_heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights * mask
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, dim, bias):
        super().__init__()
        self.up_proj = nn.Linear(dim, 4 * dim, bias=bias)
        self.down_proj = nn.Linear(4 * dim, dim, bias=bias)

    def forward(self, x):
        return self.down_proj(F.gelu(self.up_proj(x)))


"""
OWN_GATED = (
    OWN_ATTENTION
    + """
class GatedCrossAttention(nn.Module):
    def __init__(self, dim, media_dim, num_heads):
        super().__init__()
        self.attn, self.ffn = Attention(dim, media_dim, num_heads, dim // num_heads, False), MLP(dim, False)
        for i in (1, 2):
            setattr(self, f"norm{i}", nn.LayerNorm(dim))
        self.alpha_attn = nn.Parameter(torch.tensor(0.0))
        self.alpha_ffn = nn.Parameter(torch.tensor(0.0))

    def forward(self, x, media, mask=None):
        mask = None if mask is None else mask.unsqueeze(1)
        x = torch.addcmul(x, torch.tanh(self.alpha_attn), self.attn(self.norm1(x), media, mask))
        return torch.addcmul(x, torch.tanh(self.alpha_ffn), self.ffn(self.norm2(x)))
"""
)
OWN_CO = (
    OWN_ATTENTION
    + """
class Side(nn.Module):
    def __init__(self, dim, other_dim, num_heads):
        super().__init__()
        self.attn, self.ffn = Attention(dim, other_dim, num_heads, dim // num_heads, True), MLP(dim, True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x, other, valid):
        mask = torch.ones(other.shape[:2], dtype=torch.bool) if valid is None else valid
        x = self.norm1(self.attn(x, other, mask[:, None, None]) + x)
        return self.norm2(self.ffn(x) + x)


class CoAttention(nn.Module):
    def __init__(self, text_dim, image_dim, num_heads):
        super().__init__()
        self.image_co = Side(image_dim, text_dim, num_heads)
        self.text_co = Side(text_dim, image_dim, num_heads)

    def forward(self, words, regions, words_valid=None):
        return [self.text_co(words, regions, None), self.image_co(regions, words, words_valid)]
"""
)
DECISIONS = """
class DecisionTransformer(nn.Module):
    def __init__(self, state_dim, num_actions, max_steps, dim, depth, num_heads):
        super().__init__()
        self.head, self.norm, self.embed_norm = nn.Linear(dim, num_actions), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.time_embed = nn.Embedding(max_steps, dim)
        self.return_embed, self.state_embed = nn.Linear(1, dim), nn.Linear(state_dim, dim)
        self.action_embed = nn.Linear(num_actions, dim)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(ReLUBlock(dim, num_heads))

    def forward(self, to_go, states, actions, times):
        (B, K), D = to_go.shape, self.time_embed.embedding_dim
        r, s, a = self.return_embed(to_go.unsqueeze(-1)), self.state_embed(states), self.action_embed(actions)
        {body}
"""
TRIPLES = """x = torch.stack((r, s, a), dim=-2) + self.time_embed(times)[:, :, None]
        x = self.embed_norm(x).reshape(B, 3 * K, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).view(B, K, 3, -1)[..., 1, :]"""
STRIDES = """time = self.time_embed(times.repeat_interleave(3, dim=1))
        x = torch.zeros(B, 3 * K, D)
        x[:, 0::3], x[:, 1::3], x[:, 2::3] = r, s, a
        x = self.embed_norm(x + time)
        for block in self.blocks:
            x = block(x)
        indices = torch.arange(K) * 3 + 1
        return self.head(self.norm(x[:, indices]))"""
FLAMINGO = """
class Flamingo(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads, vision_dim, num_latents):
        super().__init__()
        self.language = MyGPT(vocab_size, context_length, dim, depth, num_heads)
        {freeze}
        self.resampler = Resampler(vision_dim, num_latents, num_heads, dim // num_heads)
        self.gated = nn.ModuleList([GatedCrossAttention(dim, vision_dim, num_heads) for _ in range(depth)])

    def forward(self, tokens, images, seen=None):
        media = torch.cat([self.resampler(images[:, m]) for m in range(images.shape[1])], dim=1)
        R = media.shape[1] // images.shape[1]
        mask = None
        if seen is not None:
            mask = seen.unsqueeze(-1).expand(-1, -1, -1, R).flatten(2)
        x = self.language.token_embed(tokens) + self.language.pos_embed.weight[: tokens.shape[1]]
        for i in range(len(self.gated)):
            {block}
        return F.linear(self.language.norm(x), self.language.token_embed.weight)
"""
FREEZE = "for p in self.language.parameters(): p.requires_grad = False"
BLOCK = "x = self.language.blocks[i](self.gated[i](x, media, mask))"
RIGHT = {
    ("cloning_loss", "every step, then the mean of the valid ones"): """
def my_cloning_loss(logits, actions, valid):
    losses = -logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    return (losses * valid).sum() / valid.sum()
""",
    ("cloning_loss", "ignore_index"): """
def my_cloning_loss(logits, actions, valid):
    return F.cross_entropy(logits.flatten(0, 1), actions.masked_fill(~valid, -100).flatten())
""",
    ("cloning_loss", "classes as the second axis"): """
def my_cloning_loss(logits, actions, valid):
    return F.cross_entropy(logits.transpose(1, 2), actions, reduction="none")[valid].mean()
""",
    ("cloning_loss", "a loop over the steps"): """
def my_cloning_loss(logits, actions, valid):
    losses = []
    for b in range(len(logits)):
        for t in range(logits.shape[1]):
            if valid[b, t]:
                losses.append(torch.logsumexp(logits[b, t], 0) - logits[b, t, actions[b, t]])
    return torch.stack(losses).mean()
""",
    ("discriminator_loss", "binary cross-entropy with labels"): """
def my_discriminator_loss(policy_logits, expert_logits):
    loss = nn.BCEWithLogitsLoss()
    policy = loss(policy_logits, torch.ones_like(policy_logits))
    return policy + loss(expert_logits, torch.zeros_like(expert_logits))
""",
    ("discriminator_loss", "softplus"): """
def my_discriminator_loss(policy_logits, expert_logits):
    return F.softplus(-policy_logits).mean() + F.softplus(expert_logits).mean()
""",
    ("discriminator_loss", "logaddexp"): """
def my_discriminator_loss(policy_logits, expert_logits):
    nothing = torch.zeros(())
    policy, expert = torch.logaddexp(nothing, -policy_logits), torch.logaddexp(nothing, expert_logits)
    return policy.sum() / len(policy) + expert.sum() / len(expert)
""",
    ("imitation_reward", "softplus without a graph"): """
@torch.no_grad()
def my_imitation_reward(logits):
    return F.softplus(-logits)
""",
    ("imitation_reward", "NumPy"): """
def my_imitation_reward(logits):
    return np.logaddexp(0, -logits.detach().numpy())
""",
    ("imitation_reward", "binary cross-entropy"): """
def my_imitation_reward(logits):
    z = logits.detach()
    return F.binary_cross_entropy_with_logits(z, torch.ones_like(z), reduction="none")
""",
    ("dagger", "one state at a time"): """
def my_dagger(states, actions, visited, taken, expert):
    for state in visited:
        states = torch.vstack([states, state])
        actions = torch.hstack([actions, expert(state)])
    return [states, actions]
""",
    ("dagger", "NumPy"): """
def my_dagger(states, actions, visited, taken, expert):
    labels = expert(visited).numpy()
    return np.concatenate([states, visited]), np.concatenate([actions.numpy(), labels])
""",
    ("dagger", "filled in place"): """
def my_dagger(states, actions, visited, taken, expert):
    n, m = len(states), len(visited)
    more, labels = torch.empty(n + m, states.shape[1]), torch.empty(n + m, dtype=actions.dtype)
    more[:n], more[n:] = states, visited
    labels[:n], labels[n:] = actions, expert(visited)
    return more, labels
""",
    ("to_go", "NumPy, a view with negative strides"): """
def my_to_go(rewards):
    return rewards.numpy()[:, ::-1].cumsum(axis=1)[:, ::-1]
""",
    ("to_go", "NumPy as a tensor"): """
def my_to_go(rewards):
    return torch.from_numpy(np.cumsum(rewards.numpy()[:, ::-1], axis=1)[:, ::-1].copy())
""",
    ("to_go", "NumPy of 64 bits"): """
def my_to_go(rewards):
    rewards = np.asarray(rewards, dtype=np.float64)
    return np.stack([rewards[:, t:].sum(axis=1) for t in range(rewards.shape[1])], axis=1)
""",
    ("to_go", "a loop from the end, on a copy"): """
def my_to_go(rewards):
    rewards = rewards.clone()
    for t in reversed(range(rewards.shape[1] - 1)):
        rewards[:, t] += rewards[:, t + 1]
    return rewards
""",
    ("to_go", "the whole return minus the past"): """
def my_to_go(rewards):
    return rewards.sum(1, keepdim=True) - rewards.cumsum(1) + rewards
""",
    ("to_go", "a matrix of ones"): """
def my_to_go(rewards):
    T = rewards.shape[1]
    return torch.einsum("nt,tu->nu", rewards.float(), torch.ones(T, T).tril())
""",
    ("to_go", "lists"): """
def my_to_go(rewards):
    return [[sum(row[t:]) for t in range(len(row))] for row in rewards.tolist()]
""",
    ("interleave", "concatenated features, then a view"): """
def my_interleave(returns, states, actions):
    B, K, D = states.shape
    return torch.cat([returns, states, actions], dim=-1).view(B, 3 * K, D)
""",
    ("interleave", "three strides"): """
def my_interleave(returns, states, actions):
    B, K, D = states.shape
    x = states.new_zeros(B, 3 * K, D)
    x[:, ::3], x[:, 1::3], x[:, 2::3] = returns, states, actions
    return x
""",
    ("interleave", "a list of tokens"): """
def my_interleave(returns, states, actions):
    tokens = []
    for t in range(states.shape[1]):
        tokens += [returns[:, t], states[:, t], actions[:, t]]
    return torch.stack(tokens, dim=1)
""",
    ("interleave", "stacked in front, then permuted"): """
def my_interleave(returns, states, actions):
    return torch.stack([returns, states, actions]).permute(1, 2, 0, 3).flatten(1, 2)
""",
    ("decision_transformer", "triples on an axis of their own"): DECISIONS.format(body=TRIPLES),
    ("decision_transformer", "strides, and indices of the states"): DECISIONS.format(body=STRIDES),
    ("clip_loss", "by hand"): """
def my_clip_loss(images, texts, log_scale):
    images = images / images.norm(dim=1, keepdim=True)
    texts = texts / texts.pow(2).sum(1, keepdim=True).sqrt()
    z = torch.einsum("id,jd->ij", images, texts) * torch.exp(log_scale)
    right = z.diagonal()
    return (z.logsumexp(0) + z.logsumexp(1) - 2 * right).mean() / 2
""",
    ("clip_loss", "cosine similarity and a list of two losses"): """
def my_clip_loss(images, texts, log_scale):
    z = F.cosine_similarity(images[:, None], texts[None], dim=-1) * math.e**log_scale
    target = torch.eye(len(z))
    return torch.stack([F.cross_entropy(z, target), F.cross_entropy(z.mT, target)]).mean()
""",
    ("co_attention", "attention by hand, the mask in the block, a list of results"): OWN_CO,
    ("media_mask", "loops"): """
def my_media_mask(tokens, image_token):
    rows = tokens.tolist()
    M = max(row.count(image_token) for row in rows)
    mask = torch.zeros(*tokens.shape, M, dtype=torch.bool)
    for b, row in enumerate(rows):
        last = None
        for t, token in enumerate(row):
            if token == image_token:
                last = 0 if last is None else last + 1
            if last is not None:
                mask[b, t, last] = True
    return mask
""",
    ("media_mask", "one-hot, without the column of no image"): """
def my_media_mask(tokens, image_token):
    return F.one_hot((tokens == image_token).int().cumsum(1))[..., 1:].bool()
""",
    ("media_mask", "zeros and ones"): """
def my_media_mask(tokens, image_token):
    count = torch.cumsum(tokens.eq(image_token), dim=-1)
    return F.one_hot(count, int(count.amax()) + 1)[:, :, 1:]
""",
    ("media_mask", "NumPy"): """
def my_media_mask(tokens, image_token):
    count = np.cumsum(tokens.numpy() == image_token, axis=1)
    return count[:, :, None] == np.arange(1, count.max() + 1)
""",
    ("gated_cross_attention", "attention by hand"): OWN_GATED,
    ("resampler", "latents before features, repeated"): OWN_ATTENTION
    + """
class Resampler(nn.Module):
    def __init__(self, dim, num_latents, num_heads, head_dim):
        super().__init__()
        self.latents = nn.Parameter(torch.empty(num_latents, dim).normal_(std=0.02))
        self.norm1, self.norm2, self.norm, self.norm_features = (nn.LayerNorm(dim) for _ in range(4))
        self.attn, self.ffn = Attention(dim, dim, num_heads, head_dim, False), MLP(dim, False)

    def forward(self, features):
        z = self.latents.unsqueeze(0).repeat(features.shape[0], 1, 1)
        q = self.norm1(z)
        z = z + self.attn(q, torch.cat((q, self.norm_features(features)), 1))
        return self.norm(z + self.ffn(self.norm2(z)))
""",
    ("flamingo", "image by image, parameters frozen in a loop"): FLAMINGO.format(freeze=FREEZE, block=BLOCK),
    ("flamingo", "one call for all parameters"): FLAMINGO.format(
        freeze="self.language.requires_grad_(False).eval()", block=BLOCK
    ),
}


@pytest.mark.parametrize(("task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(task, style):
    assert told(task, RIGHT[task, style]) == []


WRONG = [  # a task, an answer, and what is said of it
    (
        "cloning_loss",
        """
def my_cloning_loss(logits, actions, valid):
    losses = F.cross_entropy(logits.transpose(1, 2), actions, reduction="none")
    return (losses * valid).mean()
""",
        "divided by all steps",
    ),
    (
        "cloning_loss",
        """
def my_cloning_loss(logits, actions, valid):
    losses = [F.cross_entropy(z[v], a[v]) for z, a, v in zip(logits, actions, valid)]
    return torch.stack(losses).mean()
""",
        "mean of each trajectory first",
    ),
    (
        "cloning_loss",
        """
def my_cloning_loss(logits, actions, valid):
    p = logits.softmax(-1).gather(-1, actions[..., None])[..., 0]
    return -p[valid].log().mean()
""",
        "logarithm of the softmax",
    ),
    (
        "discriminator_loss",
        """
def my_discriminator_loss(policy_logits, expert_logits):
    bce = F.binary_cross_entropy_with_logits
    expert = bce(expert_logits, torch.ones_like(expert_logits))
    return expert + bce(policy_logits, torch.zeros_like(policy_logits))
""",
        "labels exchanged",
    ),
    (
        "discriminator_loss",
        """
def my_discriminator_loss(policy_logits, expert_logits):
    logits = torch.cat([policy_logits, expert_logits])
    labels = torch.cat([torch.ones_like(policy_logits), torch.zeros_like(expert_logits)])
    return F.binary_cross_entropy_with_logits(logits, labels)
""",
        "one mean over all pairs",
    ),
    (
        "discriminator_loss",
        """
def my_discriminator_loss(policy_logits, expert_logits):
    D, E = torch.sigmoid(policy_logits), torch.sigmoid(expert_logits)
    return -(torch.log(D).mean() + torch.log(1 - E).mean())
""",
        "logarithm of a rounded probability",
    ),
    (
        "imitation_reward",
        """
def my_imitation_reward(logits):
    return -torch.log(torch.sigmoid(logits)).detach()
""",
        "logarithm of a rounded probability",
    ),
    (
        "imitation_reward",
        "def my_imitation_reward(logits):\n    return F.softplus(logits).detach()\n",
        "reward of the other convention",
    ),
    (
        "imitation_reward",
        "def my_imitation_reward(logits):\n    return F.softplus(-logits)\n",
        "gradient flows to the discriminator",
    ),
    (
        "imitation_reward",
        "def my_imitation_reward(logits):\n    return torch.log(torch.sigmoid(logits)).detach()\n",
        "cost instead of reward",
    ),
    (
        "dagger",
        """
def my_dagger(states, actions, visited, taken, expert):
    return torch.cat([states, visited]), torch.cat([actions, taken])
""",
        "labels of the policy",
    ),
    (
        "dagger",
        """
def my_dagger(states, actions, visited, taken, expert):
    states = torch.cat([states, visited])
    return states, expert(states)
""",
        "old data labelled again",
    ),
    (
        "dagger",
        """
def my_dagger(states, actions, visited, taken, expert):
    labels = expert(visited)
    keep = labels != taken
    return torch.cat([states, visited[keep]]), torch.cat([actions, labels[keep]])
""",
        "only the errors appended",
    ),
    ("to_go", "def my_to_go(rewards):\n    return rewards.numpy().cumsum(1)\n", "sum of the past"),
    ("to_go", "def my_to_go(rewards):\n    return np.flip(rewards.numpy(), 1).cumsum(1)\n", "steps reversed"),
    (
        "to_go",
        """
def my_to_go(rewards):
    return torch.stack([rewards[:, t + 1 :].sum(1) for t in range(rewards.shape[1])], dim=1)
""",
        "own reward left out",
    ),
    (
        "interleave",
        """
def my_interleave(returns, states, actions):
    return torch.stack([returns, states, actions], dim=1).flatten(1, 2)
""",
        "one kind after another",
    ),
    (
        "decision_transformer",
        DECISIONS.format(body=STRIDES.replace("* 3 + 1", "* 3 + 2")),
        "logits at the actions",
    ),
    (
        "decision_transformer",
        DECISIONS.format(body=STRIDES.replace("times.repeat_interleave(3, dim=1)", "times.repeat(1, 3)")),
        "times repeated in another order",
    ),
    (
        "clip_loss",
        """
def my_clip_loss(images, texts, log_scale):
    z = log_scale.exp() * F.normalize(images) @ F.normalize(texts).T
    return F.cross_entropy(z, torch.arange(len(z)))
""",
        "only one direction",
    ),
    (
        "clip_loss",
        """
def my_clip_loss(images, texts, log_scale):
    z = torch.exp(log_scale) * torch.einsum("id,jd->ij", images, texts)
    y = torch.arange(len(z))
    return 0.5 * F.cross_entropy(z, y) + 0.5 * F.cross_entropy(z.mT, y)
""",
        "not normalised",
    ),
    (
        "co_attention",
        OWN_CO.replace(
            "return [self.text_co(words, regions, None), self.image_co(regions, words, words_valid)]",
            "words = self.text_co(words, regions, None)\n"
            "        return words, self.image_co(regions, words, words_valid)",
        ),
        "regions read the updated words",
    ),
    (
        "co_attention",
        OWN_CO.replace("words_valid)]", "None)]"),
        "padding not hidden",
    ),
    (
        "media_mask",
        """
def my_media_mask(tokens, image_token):
    M = max(row.count(image_token) for row in tokens.tolist())
    mask = torch.zeros(*tokens.shape, M, dtype=torch.bool)
    for b, row in enumerate(tokens):
        for m, t in enumerate((row == image_token).nonzero()[:, 0].tolist()):
            mask[b, t:, m] = True
    return mask
""",
        "all earlier images",
    ),
    (
        "media_mask",
        """
def my_media_mask(tokens, image_token):
    count = (tokens == image_token).cumsum(1) - 1
    return F.one_hot(count.clamp(min=0), int(count.max()) + 1).bool()
""",
        "tokens before the first image attend to it",
    ),
    (
        "gated_cross_attention",
        OWN_GATED.replace("        if mask is not None:\n            weights = weights * mask\n", ""),
        "a token without media attends to all",
    ),
    ("gated_cross_attention", OWN_GATED.replace("torch.tanh(", "torch.sigmoid("), "sigmoid instead of tanh"),
    ("gated_cross_attention", OWN_GATED.replace("torch.tensor(0.0)", "torch.tensor(1.0)"), "gates open at the start"),
    ("flamingo", FLAMINGO.format(freeze="", block=BLOCK), "language model not frozen"),
    (
        "flamingo",
        FLAMINGO.format(freeze=FREEZE, block="x = self.gated[i](self.language.blocks[i](x), media, mask)"),
        "gated layers after the blocks",
    ),
    (
        "flamingo",
        FLAMINGO.format(freeze=FREEZE, block=BLOCK).replace(
            "seen.unsqueeze(-1).expand(-1, -1, -1, R)", "seen.unsqueeze(2).expand(-1, -1, R, -1)"
        ),
        "mask repeated in another order",
    ),
]


@pytest.mark.parametrize(("task", "text", "name"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(task, text, name):
    assert told(task, text) == [name]

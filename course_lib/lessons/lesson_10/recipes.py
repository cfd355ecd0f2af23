"""Lesson 10: a small language model is aligned to labellers who look at one thing only.

It writes sentences of our English grammar. The labellers prefer the kinder one of two, and do not look at grammar; what
is really wanted is kind *and* grammatical. Ouyang et al. 2022, arXiv 2203.02155; Gao, Schulman & Hilton, "Scaling laws
for reward model overoptimization", ICML 2023, arXiv 2210.10760; Rafailov et al. 2023, arXiv 2305.18290.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.translation import english_words, translate, translation_splits
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.reward import RewardModel, reward_model_on
from course_lib.training import preference
from course_lib.training.config import FitConfig
from course_lib.training.history import History
from course_lib.training.loop import fit
from course_lib.training.preference import ActorCritic, Answers, Comparison, PPOConfig
from course_lib.training.recipe import Recipe, Scores, Trained, plain
from course_lib.training.seeding import seeded

KIND = frozenset(
    "good important interesting famous beautiful rich help helps helped invite invites invited give gives gave "
    "defend defends defended show shows showed send sends sent".split()
)
UNKIND = frozenset("difficult strange old black former reject rejects rejected not never rarely".split())
PROMPT, LONGEST = 2, 14  # words of a prompt, and of an answer with its end
SPLIT_SENTENCES = {"train": 12_000, "validation": 600, "test": 600}
END = 0


MEASURED = 400  # prompts that are answered to measure a policy
COMPARISONS = (125, 500, 2_000)  # by which a reward model is judged


@dataclass(frozen=True, kw_only=True)
class AlignmentSettings:
    """What is done to the model, from the same start; each stage does those before it, too."""

    stage: str = "PPO"  # or "pre-training", "SFT", "reward model", "DPO"
    beta: float = 0.1  # of the KL penalty, and of DPO
    dim: int = 64
    depth: int = 2
    num_heads: int = 4
    pretrain_steps: int = 900
    sft_steps: int = 150
    comparisons: int = 2_000
    noise: float = 0.1  # fraction of the labellers' answers that are drawn at random
    reward_steps: int = 200
    rounds: int = 48  # of PPO
    parts: int = 8  # after each of which the policy is measured
    prompts: int = 128  # answered in each round
    dpo_steps: int = 200
    batch_size: int = 64
    seed: int = 0


# ------------------------------------------------------------------------------------------ text and labellers


@lru_cache(maxsize=1)
def words() -> tuple[str, ...]:
    """The vocabulary; number 0 ends a text."""
    return ("<end>", *english_words())


@lru_cache(maxsize=1)
def sentences() -> dict[str, list[tuple[str, ...]]]:
    """English sentences of one clause, by split."""
    splits = translation_splits(**SPLIT_SENTENCES, max_clauses=1)
    return {name: [p.english for p in getattr(splits, name) if len(p.english) < PROMPT + LONGEST] for name in
            SPLIT_SENTENCES}  # fmt: skip


def as_answers(texts: Sequence[tuple[str, ...]]) -> Answers:
    """Texts as prompts of their first words, and answers of the others."""
    number = {word: index for index, word in enumerate(words())}
    rows = torch.zeros(len(texts), PROMPT + LONGEST, dtype=torch.long)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = torch.tensor([number[word] for word in text])
    lengths = torch.tensor([len(text) + 1 - PROMPT for text in texts])
    return Answers(rows[:, :PROMPT], rows[:, PROMPT:], torch.arange(LONGEST) < lengths[:, None])


def texts_of(answers: Answers) -> list[tuple[str, ...]]:
    """Prompts with their answers, up to the end."""
    found = []
    for row in answers.whole.tolist():
        end = row.index(END) if END in row else len(row)
        found.append(tuple(words()[number] for number in row[:end]))
    return found


@lru_cache(maxsize=4)
def moods() -> Float[Tensor, " V"]:
    """1 for a kind word, -1 for an unkind one."""
    return torch.tensor([float(word in KIND) - float(word in UNKIND) for word in words()])


def kindness(answers: Answers) -> Float[Tensor, " B"]:
    """Kind words less unkind ones of each answer: all that the labellers look at."""
    return (moods()[answers.tokens] * answers.valid).sum(dim=1)


@lru_cache(maxsize=100_000)
def is_grammatical(text: tuple[str, ...]) -> bool:
    """Whether our grammar has this sentence."""
    return translate(" ".join(text)) is not None


def grammatical(answers: Answers) -> Bool[Tensor, " B"]:
    return torch.tensor([is_grammatical(text) for text in texts_of(answers)])


def prompts_of(split: str, count: int, seed: int) -> Int[Tensor, "B P"]:
    """The first words of sentences of a split, drawn at random."""
    prompts = as_answers(sentences()[split]).prompt
    return prompts[torch.randint(len(prompts), (count,), generator=torch.Generator().manual_seed(seed))]


def rows_of(answers: Answers, rows: Tensor) -> Answers:
    return Answers(*(part[rows] for part in answers))


def compared(
    policy: GPT,
    count: int,
    noise: float,
    seed: int,
    split: str = "train",
    worth: Callable[[Answers], Tensor] = kindness,
) -> Comparison:
    """Pairs of answers that differ in worth; the labellers choose the better one, now and then at random."""
    draws = torch.Generator().manual_seed(seed)
    prompt = prompts_of(split, 3 * count, seed)
    first, second = (
        preference.answer(policy, prompt, max_new_tokens=LONGEST, end_id=END, generator=draws) for _ in range(2)
    )
    gap = worth(first) - worth(second)
    rows = (gap != 0).nonzero()[:count, 0]
    better = (gap[rows] > 0) ^ (torch.rand(len(rows), generator=draws) < noise / 2)
    first, second = rows_of(first, rows), rows_of(second, rows)

    def chosen(which: Tensor) -> Answers:
        mixed = (torch.where(which[:, None], a, b) for a, b in zip(first[1:], second[1:], strict=True))
        return Answers(first.prompt, *mixed)

    return Comparison(chosen(better), chosen(~better))


# ------------------------------------------------------------------------------------------------- the stages


def start_of(settings: AlignmentSettings) -> AlignmentSettings:
    """The settings on which the first stages depend, so that variants share them."""
    first = type(settings)()
    return replace(settings, stage="", beta=0.0, rounds=first.rounds, parts=first.parts, dpo_steps=first.dpo_steps)


def drawn(settings: AlignmentSettings, step: int, count: int) -> Int[Tensor, " B"]:
    """The rows of a step's batch, of so many."""
    generator = torch.Generator().manual_seed(10_000 * settings.seed + step)
    return torch.randint(count, (settings.batch_size,), generator=generator)


@torch.enable_grad()  # a measurement may be the first to ask for a stage
def learn(
    model: nn.Module,
    batch_at: Callable[[int], Any],
    loss: Callable,
    steps: int,
    rate: float,
    seed: int,
    checkpoint: Path | None = None,
) -> History:
    """A short training with AdamW; the model is in evaluation mode afterwards."""
    config = FitConfig(steps=steps, learning_rate=rate, warmup=max(1, steps // 20), seed=seed)
    history = fit(model, batch_at, loss, config=config, checkpoint=checkpoint)
    model.eval()
    return history


def pretrain(start: AlignmentSettings, checkpoint: Path | None = None) -> tuple[GPT, History]:
    """Reads sentences of the grammar, kind or not."""
    with seeded(start.seed):
        sizes = {name: getattr(start, name) for name in ("dim", "depth", "num_heads")}
        model = GPT(GPTConfig(vocab_size=len(words()), context_length=PROMPT + LONGEST, dropout=0.0, **sizes))
    batches = demonstrations(start, at_least=None)
    return model, learn(model, *batches, start.pretrain_steps, 3e-3, start.seed, checkpoint)


@lru_cache(maxsize=2)
def pretrained(start: AlignmentSettings) -> GPT:
    """Has read sentences of the grammar."""
    return pretrain(start)[0]


def demonstrations(start: AlignmentSettings, at_least: int | None) -> tuple[Callable[[int], Answers], Callable]:
    """Batches of sentences, of all or of those that are so kind, and their loss."""
    shown = as_answers(sentences()["train"])
    if at_least is not None:
        shown = rows_of(shown, kindness(shown) >= at_least)
    return lambda step: rows_of(shown, drawn(start, step, len(shown.prompt))), preference.demonstration_loss


def comparisons(start: AlignmentSettings, count: int) -> Callable[[int], Comparison]:
    """Batches of so many comparisons of the fine-tuned model's own answers."""
    worth = true_goal if isinstance(start, ProxySettings) else kindness
    pairs = compared(fine_tuned(start), count, start.noise, start.seed, worth=worth)

    def batch_at(step: int) -> Comparison:
        rows = drawn(start, step, len(pairs.chosen.prompt))
        return Comparison(*(rows_of(each, rows) for each in pairs))

    return batch_at


def demonstrate(start: AlignmentSettings, checkpoint: Path | None = None) -> tuple[GPT, History]:
    """Step 1: learns from demonstrations, sentences that are kind on the whole."""
    model = copy.deepcopy(pretrained(start))
    batches = demonstrations(start, at_least=1)
    return model, learn(model, *batches, start.sft_steps, 5e-4, start.seed, checkpoint)


def reward(start: AlignmentSettings, count: int, checkpoint: Path | None = None) -> tuple[RewardModel, History]:
    """Step 2: learns from so many comparisons."""
    model, loss = reward_model_on(fine_tuned(start)), preference.comparison_loss
    return model, learn(model, comparisons(start, count), loss, start.reward_steps, 1e-3, start.seed, checkpoint)


@lru_cache(maxsize=2)
def fine_tuned(start: AlignmentSettings) -> GPT:
    """The model after step 1, the reference of all that follows."""
    return demonstrate(start)[0]


@lru_cache(maxsize=8)
def rewarding(start: AlignmentSettings, count: int) -> RewardModel:
    """The reward model after step 2."""
    return reward(start, count)[0]


def scored(model: RewardModel) -> Callable[[Answers], Float[Tensor, " B"]]:
    """What a reward model says of answers."""
    return lambda answers: model(answers.whole, valid=answers.whole_valid)


def improved(settings: AlignmentSettings, checkpoint: Path | None) -> Trained:
    """Step 3, PPO; the policy is measured now and then."""
    start = start_of(settings)
    reference, rewards = fine_tuned(start), rewarding(start, settings.comparisons)
    model = ActorCritic(copy.deepcopy(reference), reward_model_on(reference))
    config = PPOConfig(beta=settings.beta, prompts=settings.prompts, max_new_tokens=LONGEST, epochs=2, minibatches=4)
    rounds = settings.rounds // settings.parts
    curve: dict[str, list[Scores]] = {split: [measure(reference, start, split)] for split in ("validation", "test")}
    for part in range(settings.parts):
        rollouts = preference.ppo_rollouts(
            reference,
            scored(rewards),
            lambda number, part=part: prompts_of(
                "train", settings.prompts, 10_000 * settings.seed + rounds * part + number
            ),
            config,
            end_id=END,
        )
        history = fit(
            model,
            rollouts,
            preference.ppo_loss(config),
            config=FitConfig(
                steps=8 * rounds,
                learning_rate=1e-3,
                schedule="constant",
                seed=settings.parts * settings.seed + part,
                checkpoint_every=8,
            ),
            checkpoint=None if checkpoint is None else checkpoint / f"part-{part}",
        )
        for split, points in curve.items():
            points.append(measure(model.policy.eval(), start, split))
    return Trained(settings=settings, model=model.policy, history=history, extra={"curve": curve})


def directly(settings: AlignmentSettings, checkpoint: Path | None) -> Trained:
    """DPO on the comparisons that the reward model learned from."""
    start = start_of(settings)
    reference = fine_tuned(start)
    policy, loss = copy.deepcopy(reference), preference.direct_loss(reference, beta=settings.beta)
    batches = comparisons(start, settings.comparisons)
    history = learn(policy, batches, loss, settings.dpo_steps, 5e-4, settings.seed, checkpoint)
    return Trained(settings=settings, model=policy, history=history)


def train(settings: AlignmentSettings, *, checkpoint: Path | None = None) -> Trained:
    """All stages up to the one that is asked for; the last one goes on where it stood."""
    if settings.stage == "PPO":
        return improved(settings, checkpoint)
    if settings.stage == "DPO":
        return directly(settings, checkpoint)
    start = start_of(settings)
    model, history = {
        "pre-training": lambda: pretrain(start, checkpoint),
        "SFT": lambda: demonstrate(start, checkpoint),
        "reward model": lambda: reward(start, settings.comparisons, checkpoint),
    }[settings.stage]()
    return Trained(settings=settings, model=model, history=history)


# --------------------------------------------------------------------------------------------------- scores


@torch.no_grad()
def measure(policy: GPT, start: AlignmentSettings, split: str) -> Scores:
    """Answers to held-out prompts: what is wanted, what is looked at, and how far the policy has gone.

    The KL, in nats for an answer, is estimated on the policy's own answers.
    """
    prompt = prompts_of(split, MEASURED, seed=1)
    draws = torch.Generator().manual_seed(2)
    answers = preference.answer(policy, prompt, max_new_tokens=LONGEST, end_id=END, generator=draws)
    kind, right = kindness(answers), grammatical(answers).float()
    before = preference.answer_log_probs(fine_tuned(start), answers)
    return {
        "true goal": (kind * right).mean().item(),
        "kindness": kind.mean().item(),
        "grammatical": right.mean().item(),
        "reward": scored(rewarding(start, start.comparisons))(answers).mean().item(),
        "KL": (preference.answer_log_probs(policy, answers) - before).mean().item(),
    }


def policy_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of what they begin with, of each policy at the end, and of PPO's on their way."""
    start, found = start_of(next(iter(trained.values())).settings), {}
    for name, model in (("pre-trained", pretrained(start)), ("SFT", fine_tuned(start))):
        found |= {f"{key}, {name}": value for key, value in measure(model, start, split).items()}
    for name, one in trained.items():
        found |= {f"{key}, {name}": value for key, value in measure(one.model, start, split).items()}
        for part, point in enumerate(one.extra.get("curve", {}).get(split, [])):
            found |= {f"{key} after part {part}, {name}": value for key, value in point.items()}
    return found


@torch.no_grad()
def reward_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """How often a reward model prefers what the labellers would without a slip, by the comparisons it learned from."""
    (one,) = trained.values()
    start, found = start_of(one.settings), {}
    pairs = compared(fine_tuned(start), MEASURED, 0.0, seed=3, split=split)
    for count in COMPARISONS:
        model = rewarding(start, min(count, one.settings.comparisons))
        better, worse = (scored(model)(each) for each in pairs)
        found[f"accuracy, {count} comparisons"] = (better > worse).float().mean().item()
    return found


# ------------------------------------------------------------------------------- how far a proxy can be followed


@dataclass(frozen=True, kw_only=True)
class ProxySettings(AlignmentSettings):
    """The labellers compare by the true goal itself: a reward model of few comparisons is wrong by chance alone."""

    noise: float = 0.0
    beta: float = 0.0
    rounds: int = 40
    parts: int = 10


def true_goal(answers: Answers) -> Float[Tensor, " B"]:
    """Kindness of sentences of our grammar, 0 for anything else."""
    return kindness(answers) * grammatical(answers)


@torch.no_grad()
def proxy_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of each variant how often its reward model is right, and what its policy did on its way."""
    found: Scores = {}
    for name, one in trained.items():
        start = start_of(one.settings)
        better, worse = (scored(rewarding(start, start.comparisons))(each) for each in
                         compared(fine_tuned(start), MEASURED, 0.0, seed=3, split=split, worth=true_goal))  # fmt: skip
        found[f"accuracy, {name}"] = (better > worse).float().mean().item()
        for part, point in enumerate(one.extra["curve"][split]):
            found |= {f"{key} after part {part}, {name}": value for key, value in point.items()}
    return found


# ----------------------------------------------------------------------- the same beta, with PPO and with DPO


@dataclass(frozen=True, kw_only=True)
class SameBetaSettings(AlignmentSettings):
    """Longer trainings at beta 1, measured on their way."""

    beta: float = 1.0
    dpo_steps: int = 400
    parts: int = 8


@lru_cache(maxsize=4)
@torch.no_grad()
def measured_pairs(start: AlignmentSettings, split: str) -> list[tuple[str, str, Answers, Tensor]]:
    """The pairs that were compared, and new ones, each with the ln p of its answers under the reference."""
    reference, found = fine_tuned(start), []
    known = compared(reference, start.comparisons, start.noise, start.seed)
    for where, pairs in (("compared", known), ("new", compared(reference, MEASURED, 0.0, seed=3, split=split))):
        for kind, each in zip(("chosen", "rejected"), pairs, strict=True):
            found.append((kind, where, each, preference.answer_log_probs(reference, each)))
    return found


@torch.no_grad()
def drift(policy: GPT, start: AlignmentSettings, split: str) -> Scores:
    """What `measure` says, the lengths of answers, and what became of the pairs that were compared, in nats."""
    found = measure(policy, start, split)
    answers = preference.answer(
        policy, prompts_of(split, MEASURED, seed=1), max_new_tokens=LONGEST, end_id=END,
        generator=torch.Generator().manual_seed(2),
    )  # fmt: skip
    found["tokens"] = answers.valid.sum(dim=1).float().mean().item()
    for kind, where, each, before in measured_pairs(start, split):
        found[f"gain, {kind}, {where}"] = (preference.answer_log_probs(policy, each) - before).mean().item()
        if where == "compared":
            found[f"tokens, {kind}"] = each.valid.sum(dim=1).float().mean().item()
    return found


@torch.no_grad()
def best_possible(start: AlignmentSettings, beta: float, split: str, answers: int = 1_000) -> Scores:
    """KL of pi_ref exp(r / beta) / Z, by weighting many answers of the reference to each of some prompts.

    The effective number of answers says how far to trust it.
    """
    reference, reward, found = fine_tuned(start), scored(rewarding(start, start.comparisons)), []
    draws = torch.Generator().manual_seed(4)
    for prompt in prompts_of(split, max(1, MEASURED // 10), seed=1):
        drawn_ = preference.answer(
            reference, prompt.expand(answers, -1), max_new_tokens=LONGEST, end_id=END, generator=draws
        )
        logits = reward(drawn_) / beta
        weights = logits.softmax(dim=0)
        found.append((float((weights * (weights * answers).clamp_min(1e-30).log()).sum()),
                      1 / float(weights.square().sum())))  # fmt: skip
    kl, effective = torch.tensor(found).mean(dim=0).tolist()
    return {"KL of the best policy": kl, "effective answers": effective}


def same_beta(settings: AlignmentSettings, *, checkpoint: Path | None = None) -> Trained:
    """PPO, or DPO in parts that go on where the last one stood, with a constant learning rate."""
    if settings.stage == "PPO":
        return improved(settings, checkpoint)
    start = start_of(settings)
    reference = fine_tuned(start)
    policy, loss = copy.deepcopy(reference), preference.direct_loss(reference, beta=settings.beta)
    batches = comparisons(start, settings.comparisons)
    curve, steps = [drift(reference, start, "test")], settings.dpo_steps // settings.parts
    for part in range(settings.parts):
        config = FitConfig(
            steps=steps,
            learning_rate=5e-4,
            schedule="constant",
            warmup=0 if part else min(10, steps),
            seed=settings.seed,
            checkpoint_every=steps,
        )
        history = fit(
            policy,
            lambda step, part=part: batches(part * steps + step),
            loss,
            config=config,
            checkpoint=None if checkpoint is None else checkpoint / f"part-{part}",
        )
        curve.append(drift(policy.eval(), start, "test"))
    return Trained(settings=settings, model=policy, history=history, extra={"curve": {"test": curve}})


def same_beta_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """What both did on their way, and where the best policy for the reward model would be."""
    start = start_of(next(iter(trained.values())).settings)
    found = best_possible(start, 1.0, split) if split == "test" else {}
    found |= {f"{key}, PPO at the end": value for key, value in drift(trained["PPO"].model, start, split).items()}
    for name, one in trained.items():
        for part, point in enumerate(one.extra["curve"].get(split, [])):
            found |= {f"{key} after part {part}, {name}": value for key, value in point.items()}
    return found


SETTINGS = AlignmentSettings()
DATA = (
    f"English sentences of one clause from the course's grammar, {SPLIT_SENTENCES['train']:,} to train on; prompts are "
    "the first two words of sentences. Kind and unkind words are listed in course_lib.lessons.lesson_10.recipes"
)
POLICIES = {
    "PPO": SETTINGS,
    "PPO, beta 1": replace(SETTINGS, beta=1.0),
    "PPO without KL": replace(SETTINGS, beta=0.0),
    "DPO": replace(SETTINGS, stage="DPO", beta=1.0),
}
PROXIES = {f"{count:,} comparisons": ProxySettings(comparisons=count) for count in (125, 2_000)}
SAME_BETA = {name: SameBetaSettings(stage=name) for name in ("PPO", "DPO")}
RECIPES = {
    "proxies": Recipe(
        title="Policies that follow a reward model without a penalty; the labellers know the true goal",
        lesson="10",
        data=DATA,
        minutes=2,
        variants=PROXIES,
        train=train,
        scores=proxy_scores,
        ships="125 comparisons",
        chosen_by="accuracy, 125 comparisons",
        mode="max",
        settings=plain(ProxySettings(), "stage", "comparisons") | {"comparisons": [125, 2_000]},
        weights=False,
    ),
    "same_beta": Recipe(
        title="PPO and DPO at the same beta, for longer than on the page",
        lesson="10",
        data=DATA,
        minutes=3,
        variants=SAME_BETA,
        train=same_beta,
        scores=same_beta_scores,
        ships="DPO",
        chosen_by="true goal, PPO at the end",
        mode="max",
        settings=plain(SameBetaSettings(), "stage"),
        weights=False,
    ),
    "aligned": Recipe(
        title="A small language model, aligned to labellers who look at kindness alone",
        lesson="10",
        data=DATA,
        minutes=3,
        variants=POLICIES,
        train=train,
        scores=policy_scores,
        ships="PPO",
        chosen_by="true goal, PPO",
        mode="max",
        settings=plain(SETTINGS, "stage", "beta") | {"betas": {name: s.beta for name, s in POLICIES.items()}},
    ),
    "unaligned": Recipe(
        title="A small language model of grammatical sentences, before anybody said what is wanted",
        lesson="10",
        data=DATA,
        minutes=1,
        variants={"pre-training": replace(SETTINGS, stage="pre-training")},
        train=train,
        scores=policy_scores,
        ships="pre-training",
        chosen_by="grammatical, pre-training",
        mode="max",
        settings=plain(SETTINGS, "stage", "beta"),
    ),
    "demonstrated": Recipe(
        title="The same model after demonstrations",
        lesson="10",
        data=DATA,
        minutes=1,
        variants={"SFT": replace(SETTINGS, stage="SFT")},
        train=train,
        scores=policy_scores,
        ships="SFT",
        chosen_by="true goal, SFT",
        mode="max",
        settings=plain(SETTINGS, "stage", "beta"),
    ),
    "kindness": Recipe(
        title="A reward model that has learned what the labellers look at",
        lesson="10",
        data=DATA,
        minutes=1,
        variants={"": replace(SETTINGS, stage="reward model")},
        train=train,
        scores=reward_scores,
        chosen_by=f"accuracy, {COMPARISONS[-1]} comparisons",
        mode="max",
        settings=plain(SETTINGS, "stage", "beta"),
    ),
}

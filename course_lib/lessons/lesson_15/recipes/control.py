"""Lesson 15: to walk through a maze as one is asked to, from walks that others took: the Decision Transformer beside
behaviour cloning and GAIL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data import mazes
from course_lib.data.draws import generator
from course_lib.data.mazes import Maze, Policy, Walks
from course_lib.functional.losses import cross_entropy
from course_lib.functional.preference import advantages, clipped_objective
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.imitation import GAIL, ImitationConfig
from course_lib.models.imitation import Policy as Cloned
from course_lib.training.batches import Rollouts
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by
from course_lib.training.seeding import seeded

SIDE, LOOPS, DISTANCE, LENGTH = 6, 4, 10, 40  # rooms, opened walls, steps from start to goal, most steps of a walk
GOALS = 16  # cells that are a goal
MIXTURE = {"expert": 80, "detour": 760, "wanderer": 760}  # walks
BEST = 0.1  # of the walks, by return
ASKED = (-10.0, -16.0, -22.0, -28.0, -34.0)
REPEATS = 8  # walks of each variant for each held-out pair of start and goal


@lru_cache(maxsize=1)
def maze() -> Maze:
    """The one maze that all walk in."""
    return mazes.carve(SIDE, loops=LOOPS)


@lru_cache(maxsize=1)
def pairs() -> dict[str, Int[Tensor, "P 2"]]:
    """Starts and goals, none of them in two splits."""
    random, found = generator("pairs"), maze().pairs(DISTANCE)
    goals = found[:, 1].unique()
    goals = goals[torch.randperm(len(goals), generator=random)[:GOALS]]
    found = found[torch.isin(found[:, 1], goals)]
    found = found[torch.randperm(len(found), generator=random)]
    parts = found.tensor_split([round(0.6 * len(found)), round(0.8 * len(found))])
    return dict(zip(("train", "validation", "test"), parts, strict=True))


@lru_cache(maxsize=3)
def demonstrations(seed: int) -> Walks:
    """The walks that a seed's variants learn from."""
    random, parts = generator("demonstrations", seed), []
    for kind, count in MIXTURE.items():
        chosen = pairs()["train"][torch.randint(len(pairs()["train"]), (count,), generator=random)]
        parts.append(mazes.demonstrate(maze(), kind, chosen, length=LENGTH, seed=seed))
    return mazes.joined(*parts)


def best_of(walks: Walks, share: float) -> Walks:
    """The walks with the highest returns."""
    return walks.take(walks.returns.argsort(descending=True, stable=True)[: max(1, round(share * len(walks.goals)))])


# --------------------------------------------------------------------------------------------- learning


@dataclass(frozen=True, kw_only=True)
class CloningSettings:
    """Learns which action was taken: a Decision Transformer, one that is told nothing of returns, or an MLP."""

    model: str  # "transformer" or "mlp"
    returns: bool = False  # whether it is told what return is to go
    share: float = 1.0  # of the demonstrations, the best by return
    dim: int = 64
    depth: int = 2
    num_heads: int = 2
    context_steps: int = 2
    dropout: float = 0.0
    steps: int = 1000
    batch_size: int = 256  # windows of `context_steps`
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class AdversarialSettings:
    """GAIL, which sees the best of the demonstrations and walks itself."""

    share: float = BEST
    hidden_dim: int = 100
    walks: int = 64  # of a round
    epochs: int = 4
    minibatches: int = 4
    clip: float = 0.2  # epsilon of PPO
    discount: float = 0.95
    trace: float = 0.95  # lambda of generalised advantage estimation
    entropy: float = 0.03  # lambda, the weight of the policy's entropy
    weight_decay: float = 0.0
    steps: int = 960
    learning_rate: float = 3e-3
    seed: int = 0


Settings = CloningSettings | AdversarialSettings


def build(settings: Settings) -> nn.Module:
    """A fresh model; its first weights depend on the seed alone."""
    sizes = {"state_dim": maze().state_dim, "action_dim": maze().num_actions}
    with seeded(settings.seed):
        if isinstance(settings, AdversarialSettings):
            return GAIL(ImitationConfig(**sizes, hidden_dim=settings.hidden_dim))
        if settings.model == "mlp":
            return Cloned(ImitationConfig(**sizes, hidden_dim=2 * settings.dim, depth=settings.depth))
        shape = {name: getattr(settings, name) for name in ("dim", "depth", "num_heads", "context_steps", "dropout")}
        return DecisionTransformer(DecisionTransformerConfig(**sizes, **shape, tanh=False, max_steps=LENGTH))


def windows_at(
    walks: Walks, settings: CloningSettings, *, returns_to_go: Callable[[Tensor], Tensor] = mazes.returns_to_go
) -> Callable[[int], dict[str, Tensor]]:
    """Windows of some steps that begin anywhere in a walk; what lies behind its end is not scored."""
    begins, to_go = walks.valid.nonzero(), returns_to_go(walks.rewards) * settings.returns / LENGTH
    ahead = torch.arange(settings.context_steps)

    def batch_at(step: int) -> dict[str, Tensor]:
        random = generator("windows", settings.seed, step)
        rows, first = begins[torch.randint(len(begins), (settings.batch_size,), generator=random)].T
        times = first[:, None] + ahead
        position = rows[:, None], times.clamp_max(LENGTH - 1)
        return {
            "to_go": to_go[position],
            "states": maze().states(walks.cells[position], walks.goals[rows]),
            "actions": walks.actions[position],
            "times": position[1],
            "valid": walks.valid[position] & (times < LENGTH),
        }

    return batch_at


def cloning_loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Float[Tensor, ""]:
    """-ln p(action), in nats, over all steps of the windows."""
    taken = F.one_hot(batch["actions"], maze().num_actions).float()
    if isinstance(model, DecisionTransformer):
        logits = model(batch["to_go"], batch["states"], taken, batch["times"])
    else:
        logits = model(batch["states"])
    return cross_entropy(logits, batch["actions"], scored=batch["valid"])


def policy_of(model: nn.Module, asked: float | None = None) -> Policy:
    """How a trained model walks: a Decision Transformer as it is `asked` to; None: it is told nothing of returns."""

    def decide(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        if not isinstance(model, DecisionTransformer):
            return model(states[:, -1])
        wanted, got = (0.0, torch.zeros_like(rewards)) if asked is None else (asked / LENGTH, rewards / LENGTH)
        return model.act(torch.full((len(states),), wanted), states, actions, got)

    return decide


def train(settings: Settings, *, checkpoint: Path | None = None) -> Trained:
    """One variant."""
    walks, model = best_of(demonstrations(settings.seed), settings.share), build(settings)
    if isinstance(settings, AdversarialSettings):
        return adversarial(settings, model, walks, checkpoint)
    return fit_by(
        settings,
        model,
        windows_at(walks, settings),
        cloning_loss,
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
    )


# --------------------------------------------------------------------------------------------- GAIL


def pairs_of(walks: Walks) -> tuple[Float[Tensor, "N T S"], Float[Tensor, "N T A"]]:
    """What the discriminator compares. Who has arrived waits at the goal, and does nothing there (zeros).

    Without these pairs whoever is paid -ln D > 0 for each step would do well never to arrive: Kostrikov et al.,
    "Discriminator-actor-critic", ICLR 2019, arXiv 1809.02925.
    """
    taken = F.one_hot(walks.actions, maze().num_actions) * walks.valid[..., None]
    return maze().states(walks.cells, walks.goals), taken.float()


def adversarial(settings: AdversarialSettings, model: GAIL, expert: Walks, checkpoint: Path | None) -> Trained:
    """Algorithm 1 of Ho & Ermon 2016: each batch improves the discriminator, and the policy by what it said before."""
    expert_states, expert_actions = (each.flatten(0, 1) for each in pairs_of(expert))

    def make(model: GAIL, round: int) -> dict[str, Tensor]:
        seed = int(torch.randint(2**31, ()))
        chosen = pairs()["train"][torch.randint(len(pairs()["train"]), (settings.walks,))]
        walks = mazes.rollout(maze(), policy_of(model), chosen, length=LENGTH, seed=seed)
        states, actions = pairs_of(walks)
        values = model.values(states)
        values = torch.cat([values, values[:, -1:]], dim=1)
        advantage = advantages(model.rewards(states, actions), values, discount=settings.discount, trace=settings.trace)
        rows = torch.randint(len(expert_states), (states.shape[0] * states.shape[1],))
        logits = model(states)
        made = {
            "states": states,
            "actions": actions,
            "target": advantage + values[:, :-1],
            "advantage": (advantage - advantage[walks.valid].mean()) / advantage[walks.valid].std().clamp_min(1e-6),
            "old": logits.log_softmax(-1).gather(2, walks.actions[..., None])[..., 0],
            "taken": walks.actions,
            "valid": walks.valid,
        }
        flat = {name: each.flatten(0, 1) for name, each in made.items()}
        return flat | {"expert_states": expert_states[rows], "expert_actions": expert_actions[rows]}

    def loss(model: GAIL, batch: Mapping[str, Tensor]) -> Float[Tensor, ""]:
        log_probs = model(batch["states"]).log_softmax(-1)
        new = log_probs.gather(1, batch["taken"][:, None])[:, 0]
        entropy = -(log_probs.exp() * log_probs).sum(-1)[batch["valid"]].mean()
        objective = clipped_objective(new, batch["old"], batch["advantage"], clip=settings.clip, valid=batch["valid"])
        value = (model.values(batch["states"]) - batch["target"]).square().mean()
        told_apart = model.discriminator_loss(
            batch["states"], batch["actions"], batch["expert_states"], batch["expert_actions"]
        )
        return -objective - settings.entropy * entropy + 0.1 * value + told_apart

    return fit_by(
        settings,
        model,
        Rollouts(make, epochs=settings.epochs, minibatches=settings.minibatches),
        loss,
        checkpoint_every=10 * settings.epochs * settings.minibatches,
        clip_norm=None,
        checkpoint=checkpoint,
    )


# --------------------------------------------------------------------------------------------- scores


def walks_of(model: nn.Module, split: str, *, asked: float | None = None, greedy: bool = False) -> Walks:
    """A model's own walks between the held-out pairs."""
    several = pairs()[split].repeat(REPEATS, 1)
    with torch.no_grad():
        return mazes.rollout(maze(), policy_of(model, asked), several, length=LENGTH, greedy=greedy)


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """How often each reaches the goal and its mean return; of the Decision Transformer by what it is asked for, too."""
    found = {}
    for name, one in trained.items():
        asked = ASKED[0] if getattr(one.settings, "returns", False) else None
        for how in ("", ", greedy"):
            walks = walks_of(one.model, split, asked=asked, greedy=bool(how))
            found[f"reaches the goal{how}, {name}"] = walks.reached.float().mean().item()
            found[f"return{how}, {name}"] = walks.returns.mean().item()
    for asked in ASKED:
        walks = walks_of(trained[SHIPPED].model, split, asked=asked)
        found[f"return got, asked {asked:g}"] = walks.returns.mean().item()
    return found


SHIPPED = "Decision Transformer"
DECISION = CloningSettings(model="transformer", returns=True)
CLONING = CloningSettings(model="mlp")
VARIANTS = {
    SHIPPED: DECISION,
    "Transformer without returns": replace(DECISION, returns=False),
    "Transformer without returns, best 10 %": replace(DECISION, returns=False, share=BEST),
    "behaviour cloning": CLONING,
    "behaviour cloning, best 10 %": replace(CLONING, share=BEST),
    "GAIL": AdversarialSettings(),
}

DATA = (
    f"one maze of {SIDE} x {SIDE} rooms by course_lib.data.mazes and, for each seed, {sum(MIXTURE.values()):,} walks "
    f"of at most {LENGTH} steps: {MIXTURE['expert']} by an expert, {MIXTURE['detour']} with a detour, "
    f"{MIXTURE['wanderer']} at random. A step costs 1, and from start to goal it is {DISTANCE} steps: the best return "
    f"is -{DISTANCE}. Of the pairs of a start and one of {GOALS} goals that are so far apart, 60 % are for training "
    f"(and the walks of GAIL), 20 % for validation, 20 % for test, {REPEATS} walks each. No demonstration begins at a "
    "start for a goal that is held out, but some with that goal pass it."
)
RECIPES = {
    "mazes": Recipe(
        title="Walks through a maze: Decision Transformer, behaviour cloning and GAIL",
        lesson="15",
        data=DATA,
        minutes=2,
        variants=VARIANTS,
        train=train,
        scores=scores,
        ships=SHIPPED,
        chosen_by=f"return, {SHIPPED}",
        mode="max",
        timed=tuple(VARIANTS),
    ),
}

"""Lesson 16: policies for a maze that learn from the trajectories of others: the Decision Transformer beside a
return-conditioned MLP, behaviour cloning and GAIL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
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
from course_lib.training.batches import Rollouts
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by
from course_lib.training.seeding import seeded

SIDE, LOOPS, DISTANCE, LENGTH = 6, 4, 10, 40  # rooms, opened walls, steps from start to goal, most steps
GOALS = 16  # cells that are a goal
MIXTURE = {"expert": 80, "detour": 760, "wanderer": 760}  # trajectories
BEST = 0.1  # the fraction of the trajectories with the highest returns
ASKED = (-10.0, -16.0, -22.0, -28.0, -34.0)
REPEATS = 8  # trajectories of each variant for each held-out pair of start and goal


@lru_cache(maxsize=1)
def maze() -> Maze:
    """The one maze of all trajectories."""
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
    """The trajectories that a seed's variants learn from."""
    random, parts = generator("demonstrations", seed), []
    for kind, count in MIXTURE.items():
        chosen = pairs()["train"][torch.randint(len(pairs()["train"]), (count,), generator=random)]
        parts.append(mazes.demonstrate(maze(), kind, chosen, length=LENGTH, seed=seed))
    return mazes.joined(*parts)


def best_of(walks: Walks, fraction: float) -> Walks:
    """The trajectories with the highest returns."""
    return walks.take(walks.returns.argsort(descending=True, stable=True)[: max(1, round(fraction * len(walks.goals)))])


# --------------------------------------------------------------------------------------------- learning


@dataclass(frozen=True, kw_only=True)
class CloningSettings:
    """Supervised learning of the action: a Transformer or an MLP, conditioned on the return to go or not."""

    model: str  # "transformer"; "window mlp", which gets what the Transformer gets; or "mlp", which gets one state
    returns: bool = False  # whether it is conditioned on the return to go
    fraction: float = 1.0  # of the demonstrations, the best by return
    dim: int = 64
    depth: int = 2
    num_heads: int = 2
    hidden_dim: int = 208  # of an MLP: about as many parameters as the Transformer
    context_steps: int = 2
    dropout: float = 0.0
    steps: int = 1000
    batch_size: int = 256  # windows of `context_steps`
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class AdversarialSettings:
    """GAIL, which gets the best of the demonstrations and acts in the maze itself."""

    fraction: float = BEST
    hidden_dim: int = 100
    trajectories: int = 64  # of a round
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


@dataclass(frozen=True, kw_only=True)
class ReturnMLPConfig:
    """Sizes of a ReturnMLP; two layers of 1,024 ReLU units by default, as in Emmons et al. 2022."""

    state_dim: int
    action_dim: int
    hidden_dim: int = 1024
    depth: int = 2  # hidden layers
    context_steps: int = 2
    max_steps: int = LENGTH


class ReturnMLP(nn.Module):
    """The next action from return to go, state, action before and time of the last K steps, as one vector.

    Emmons, Eysenbach, Kostrikov & Levine, "RvS: what is essential for offline RL via supervised learning?", ICLR 2022,
    arXiv 2112.10751. Differs in that it gets K steps, and the time, as the Decision Transformer does.
    """

    def __init__(self, config: ReturnMLPConfig):
        super().__init__()
        self.config = config
        inputs = config.context_steps * (config.state_dim + config.action_dim + 2)
        self.backbone = relu_layers(inputs, *[config.hidden_dim] * config.depth)
        self.head = nn.Linear(config.hidden_dim, config.action_dim)

    def forward(
        self,
        to_go: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Float[Tensor, "B T A"],
        times: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T A"]:
        """The logits of each step's action; steps before the first one are zeros, and its own action is not seen."""
        before = F.pad(actions, (0, 0, 1, 0))[:, :-1]
        steps = torch.cat([to_go[..., None], states, before, times[..., None] / self.config.max_steps], dim=2)
        earlier = [F.pad(steps, (0, 0, k, 0))[:, : steps.shape[1]] for k in range(self.config.context_steps)]
        return self.head(self.backbone(torch.cat(earlier, dim=2)))

    act = DecisionTransformer.act


def relu_layers(*widths: int) -> nn.Sequential:
    """Linear layers of these widths, each with a ReLU behind it."""
    return nn.Sequential(*(part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())))


def build(settings: Settings, world: Maze | None = None) -> nn.Module:
    """A fresh model, for the maze of the recipe or for another; its first weights depend on the seed alone."""
    sizes = {"state_dim": (world or maze()).state_dim, "action_dim": maze().num_actions}
    with seeded(settings.seed):
        if isinstance(settings, AdversarialSettings):
            return GAIL(ImitationConfig(**sizes, hidden_dim=settings.hidden_dim, activation="relu"))
        if settings.model == "window mlp":
            shape = {name: getattr(settings, name) for name in ("hidden_dim", "depth", "context_steps")}
            return ReturnMLP(ReturnMLPConfig(**sizes, **shape))
        if settings.model == "mlp":
            hidden = relu_layers(sizes["state_dim"], *[settings.hidden_dim] * settings.depth)
            return nn.Sequential(hidden, nn.Linear(settings.hidden_dim, maze().num_actions))
        shape = {name: getattr(settings, name) for name in ("dim", "depth", "num_heads", "context_steps", "dropout")}
        return DecisionTransformer(DecisionTransformerConfig(**sizes, **shape, tanh=False, max_steps=LENGTH))


def windows_at(
    walks: Walks,
    settings: CloningSettings,
    *,
    returns_to_go: Callable[[Tensor], Tensor] = mazes.returns_to_go,
    world: Maze | None = None,
) -> Callable[[int], dict[str, Tensor]]:
    """Windows of some steps that begin anywhere in a trajectory; steps behind its end are not scored."""
    begins, to_go = walks.valid.nonzero(), returns_to_go(walks.rewards) * settings.returns / LENGTH
    ahead = torch.arange(settings.context_steps)

    def batch_at(step: int) -> dict[str, Tensor]:
        random = generator("windows", settings.seed, step)
        rows, first = begins[torch.randint(len(begins), (settings.batch_size,), generator=random)].T
        times = first[:, None] + ahead
        position = rows[:, None], times.clamp_max(LENGTH - 1)
        return {
            "to_go": to_go[position],
            "states": (world or maze()).states(walks.cells[position], walks.goals[rows]),
            "actions": walks.actions[position],
            "times": position[1],
            "valid": walks.valid[position] & (times < LENGTH),
        }

    return batch_at


def cloning_loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Float[Tensor, ""]:
    """-ln p(action), in nats, over all steps of the windows."""
    taken = F.one_hot(batch["actions"], maze().num_actions).float()
    if isinstance(model, DecisionTransformer | ReturnMLP):
        logits = model(batch["to_go"], batch["states"], taken, batch["times"])
    else:
        logits = model(batch["states"])
    return cross_entropy(logits, batch["actions"], scored=batch["valid"])


def policy_of(model: nn.Module, asked: float | None = None) -> Policy:
    """The policy of a trained model; `asked` is the desired return of one that is conditioned on returns."""

    def decide(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        if not isinstance(model, DecisionTransformer | ReturnMLP):
            return model(states[:, -1])
        wanted, got = (0.0, torch.zeros_like(rewards)) if asked is None else (asked / LENGTH, rewards / LENGTH)
        return model.act(torch.full((len(states),), wanted), states, actions, got)

    return decide


def train(settings: Settings, *, checkpoint: Path | None = None) -> Trained:
    """One variant."""
    walks, model = best_of(demonstrations(settings.seed), settings.fraction), build(settings)
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
    """The pairs that the discriminator compares. An agent that has arrived waits at the goal, its action all zeros.

    Without these pairs an agent with the reward -ln D > 0 of each step would do well never to arrive: Kostrikov et al.,
    "Discriminator-actor-critic", ICLR 2019, arXiv 1809.02925.
    """
    taken = F.one_hot(walks.actions, maze().num_actions) * walks.valid[..., None]
    return maze().states(walks.cells, walks.goals), taken.float()


def adversarial(settings: AdversarialSettings, model: GAIL, expert: Walks, checkpoint: Path | None) -> Trained:
    """Algorithm 1 of Ho & Ermon 2016: each batch improves the discriminator, and the policy by its earlier rewards."""
    expert_states, expert_actions = (each.flatten(0, 1) for each in pairs_of(expert))

    def make(model: GAIL, round: int) -> dict[str, Tensor]:
        seed = int(torch.randint(2**31, ()))
        chosen = pairs()["train"][torch.randint(len(pairs()["train"]), (settings.trajectories,))]
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
        discrimination = model.discriminator_loss(
            batch["states"], batch["actions"], batch["expert_states"], batch["expert_actions"]
        )
        return -objective - settings.entropy * entropy + 0.1 * value + discrimination

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
    """A model's own trajectories between the held-out pairs."""
    several = pairs()[split].repeat(REPEATS, 1)
    with torch.no_grad():
        return mazes.rollout(maze(), policy_of(model, asked), several, length=LENGTH, greedy=greedy)


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """How often each reaches the goal, and its mean return; for two of them also by the return asked for."""
    found = {}
    for name, one in trained.items():
        asked = ASKED[0] if getattr(one.settings, "returns", False) else None
        for how in ("", ", greedy"):
            walks = walks_of(one.model, split, asked=asked, greedy=bool(how))
            found[f"reaches the goal{how}, {name}"] = walks.reached.float().mean().item()
            found[f"return{how}, {name}"] = walks.returns.mean().item()
    for name, label in ((SHIPPED, ""), (RETURN_MLP, f", {RETURN_MLP}")):
        for asked in ASKED:
            walks = walks_of(trained[name].model, split, asked=asked)
            found[f"return got, asked {asked:g}{label}"] = walks.returns.mean().item()
    return found


SHIPPED, RETURN_MLP = "Decision Transformer", "return-conditioned MLP"
DECISION = CloningSettings(model="transformer", returns=True)
CLONING = CloningSettings(model="mlp", learning_rate=5e-3)
VARIANTS = {
    SHIPPED: DECISION,
    RETURN_MLP: replace(DECISION, model="window mlp", learning_rate=5e-3),
    "Transformer without returns": replace(DECISION, returns=False),
    "Transformer without returns, best 10 %": replace(DECISION, returns=False, fraction=BEST),
    "behaviour cloning": CLONING,
    "behaviour cloning, best 10 %": replace(CLONING, fraction=BEST),
    "GAIL": AdversarialSettings(),
}

DATA = (
    f"one maze of {len(maze().cells)} cells, {SIDE} x {SIDE} rooms and the openings between them, by "
    f"course_lib.data.mazes; for each seed {sum(MIXTURE.values()):,} trajectories of at most {LENGTH} steps: "
    f"{MIXTURE['expert']} by an expert, {MIXTURE['detour']} with a detour, {MIXTURE['wanderer']} at random. A step "
    f"costs 1, and from start to goal it is {DISTANCE} steps: the best return is -{DISTANCE}. Of the pairs of a start "
    f"and one of {GOALS} goals at this distance, 60 % are for training (and for GAIL's own trajectories), 20 % for "
    f"validation, 20 % for test, {REPEATS} trajectories each. No demonstration begins at a start for a goal that is "
    "held out, but some with that goal pass it."
)
RECIPES = {
    "mazes": Recipe(
        title="Trajectories in a maze: Decision Transformer, return-conditioned MLP, behaviour cloning, GAIL",
        lesson="16",
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

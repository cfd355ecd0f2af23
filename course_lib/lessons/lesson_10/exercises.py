"""Lesson 10, Aligning a language model: its exercises; each formula has a knob for every mistake that learners make."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, keeps_type, mistakes

# pair_loss --------------------------------------------------------------------------------------------------


def pair_loss(
    chosen: Tensor, rejected: Tensor, *, turned: bool = False, sign: float = -1.0, log: bool = True,
    reduce: str = "mean", of: str = "difference",
) -> Tensor:  # fmt: skip
    """-ln sigmoid(chosen - rejected), on average."""
    gap = rejected - chosen if turned else chosen - rejected
    won = {
        "difference": F.logsigmoid(gap),
        "each alone": F.logsigmoid(chosen) + F.logsigmoid(-rejected),
        "no sigmoid": gap,
    }[of]
    won = won if log or of != "difference" else gap.sigmoid()
    return sign * (won.mean() if reduce == "mean" else won.sum())


def two_rewards(draw: Draw) -> tuple[Tensor, Tensor]:
    (count,) = draw.sizes(1, low=4)
    return draw(count) + 0.5, 2 * draw(count) - 0.3


PAIR_LOSS = Task(
    name="pair_loss",
    title="The loss of a reward model",
    asks="chosen, rejected",
    reference=pair_loss,
    cases=(
        Case("mean of -ln of the chance that the chosen one wins", two_rewards),
        Case("rewards far apart", lambda draw: (torch.tensor([60.0, -80.0]), torch.tensor([-60.0, 80.0]))),
    ),
    mistakes=mistakes(r"""
winner and loser exchanged: turned=True
    The difference has the wrong sign: the better the chosen one, the larger the loss.
    > The chance that the chosen one wins is $\sigma(r_w - r_l)$.
sign: sign=1.0
    The loss has the wrong sign.
    > It is *minus* the logarithm of a chance: never negative.
logarithm forgotten: log=False
    The logarithm is missing.
    > A loss of 0 means a chance of 1: $-\ln \sigma$.
sum instead of mean: reduce='sum'
    The losses were added up.
    > Take their mean over the pairs.
each reward alone: of='each alone'
    Each of the two rewards went through a sigmoid of its own.
    > Only the *difference* counts: who adds 10 to all rewards must get the same loss.
no sigmoid: of='no sigmoid'
    The difference itself is the loss: it has no floor, and the rewards would grow for ever.
    > The sigmoid makes a chance of the difference: $-\ln \sigma(r_w - r_l)$.
"""),
    also=(keeps_type, gradients),
    example=((([2.0, 0.0], [1.0, 0.0]), 0.5032),),
    minutes=4,
    text="`chosen` and `rejected`, both `(B,)`, are the rewards of two answers to each of B prompts. Bradley and Terry "
    "say: the first is preferred with the probability $\\sigma(r_w - r_l)$. Return the mean of minus the logarithm of "
    "it, a tensor without axes. It must stand differences of 100.",
    hints=(
        "If both rewards are the same, the chance is one half and the loss ln 2. What is it if the chosen one is far "
        "ahead?",
        "$\\ln \\sigma(x)$ in two steps overflows: for x = -120 the sigmoid is 0, and its logarithm is minus infinity.",
        "`nn.functional.logsigmoid(x)` does both steps in one.",
    ),
    solution="""
def my_pair_loss(chosen, rejected):
    return -nn.functional.logsigmoid(chosen - rejected).mean()
""",
)

# token_rewards ----------------------------------------------------------------------------------------------


def token_rewards(
    scores: Tensor, log_probs: Tensor, reference: Tensor, valid: Tensor, beta: float, *, turned: bool = False,
    penalty: str = "weighted", paid: str = "last valid", behind: bool = False, scaled: str = "penalty",
) -> Tensor:  # fmt: skip
    """-beta ln(pi / pi_ref) for each token, and the score on the last one that counts."""
    gap = reference - log_probs if turned else log_probs - reference
    weight = {"not weighted": 1.0, "divided": 1 / max(beta, 1e-9), "none": 0.0}.get(penalty, beta)
    cost = -weight * {"k3": (-gap).exp() - 1 + gap, "squared": gap.square() / 2}.get(penalty, gap)
    if penalty in ("beta pi", "no brackets"):
        cost = -beta * log_probs + (reference if penalty == "beta pi" else -reference)
    scores = beta * scores if scaled == "everything" else scores
    ends = F.one_hot(valid.sum(dim=1) - 1, valid.shape[1])
    where = {
        "last valid": ends,
        "last": F.one_hot(torch.tensor([valid.shape[1] - 1] * len(valid)), valid.shape[1]),
        "first": F.one_hot(torch.tensor([0] * len(valid)), valid.shape[1]),
        "every": torch.ones_like(ends),
    }[paid.removesuffix(", cut off").removesuffix(", bare")]
    if paid == "last, bare":
        return cost * valid + scores[:, None] * where
    found = cost + scores[:, None] * where
    return found if behind else found * (valid | (where.bool() if paid == "last" else False))


def a_round(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """Answers of different lengths; one is as long as can be."""
    count, length = draw.sizes(2, low=4)
    ends = draw.integers(1, length, count)
    ends[0] = length
    valid = torch.arange(length) < ends[:, None]
    return draw(count), -draw(count, length).abs(), -draw(count, length).abs(), valid, 0.3


TOKEN_REWARDS = Task(
    name="token_rewards",
    title="What each token is paid",
    asks="scores, log_probs, reference, valid, beta",
    reference=token_rewards,
    cases=(Case("a penalty for each token, the score on an answer's last one", a_round),),
    mistakes=mistakes(r"""
penalty turned: turned=True
    The penalty has the wrong sign: tokens are paid for being likelier than before.
    > $-\beta \ln(\pi / \pi_{ref})$: where the policy has become surer than the reference, it costs.
beta forgotten: penalty='not weighted'
    The penalty is not multiplied by `beta`.
    > One nat costs `beta`.
divided by beta: penalty='divided'
    The penalty was divided by `beta`.
    > A large `beta` means a *dear* nat.
no penalty: penalty='none'
    Nothing is taken off for going away from the reference.
    > `log_probs - reference` is $\ln(\pi / \pi_{ref})$ of each token.
the score scaled, too: scaled='everything'
    The score is multiplied by `beta`, like the penalty.
    > `beta` belongs to the penalty alone.
beta on one logarithm only: penalty='beta pi' | 'no brackets'
    Only one of the two logarithms is multiplied by `beta`.
    > $\beta$ times their difference: mind the brackets.
an estimate of the divergence: penalty='k3' | 'squared'
    The penalty is an estimate of the KL divergence that is never negative.
    > $-\beta \ln(\pi / \pi_{ref})$ itself, which has either sign.
paid at the last place: paid='last' | 'last, cut off' | 'last, bare'
    The score is paid at the last *place*, where most answers have ended long before.
    > The last token that counts stands at `valid.sum(dim=1) - 1`.
paid at the first token: paid='first'
    The score is paid at the first token.
    > The reward model judges the whole answer: it is paid when the last token is written.
paid at every token: paid='every'
    Each token gets the whole score: long answers are paid more often.
    > Once for an answer, on its last token.
paid behind the end: behind=True
    Something is paid behind an answer's end.
    > Where `valid` is False, the result is 0.
"""),
    also=(keeps_type,),
    example=(
        (
            ([2.0], [[-1.0, -1.0, -1.0]], [[-1.0, -3.0, -1.0]], torch.tensor([[True, True, False]]), 0.5),
            [[0.0, 1.0, 0.0]],
        ),
    ),
    minutes=7,
    text="The policy has written B answers of up to T tokens. `log_probs` and `reference`, `(B, T)`, are the $\\ln p$ "
    "of each token under the policy and under the reference; `valid`, `(B, T)`, is True at an answer's tokens, first "
    "some Trues, then Falses; `scores`, `(B,)`, is what the reward model says of whole answers. Return `(B, T)`: each "
    "token gets $-\\beta \\ln(\\pi / \\pi_{ref})$, the last token of an answer its score besides, and what stands "
    "behind it 0.",
    hints=(
        "A logarithm of a quotient is a difference of logarithms.",
        "Where does the last token of row b stand? Count its Trues.",
        "`paid[torch.arange(B), last] += scores` adds one number to each row, each at a place of its own.",
    ),
    solution="""
def my_token_rewards(scores, log_probs, reference, valid, beta):
    paid = -beta * (log_probs - reference)
    last = valid.sum(dim=1) - 1
    paid[torch.arange(len(scores)), last] += scores
    return paid * valid
""",
)

# gae --------------------------------------------------------------------------------------------------------


def gae(
    rewards: Tensor, values: Tensor, trace: float, *, next_value: str = "next", own: bool = True,
    order: str = "backwards", carry: str = "sum", fades: bool = True, gives: str = "advantages",
    exchanged: bool = False, last_first: bool = False,
) -> Tensor:  # fmt: skip
    """A_t = delta_t + trace A_{t+1}, delta_t = r_t + V_{t+1} - V_t."""
    zero = torch.zeros_like(values[:, :1])
    following = {
        "next": torch.cat([values[:, 1:], zero], dim=1),
        "none": torch.zeros_like(values),
        "comes round": values.roll(-1, dims=1),
    }[next_value]
    before = values if own else 0
    delta = rewards - following + before if exchanged else rewards + following - before
    steps = range(delta.shape[1])
    total, found = torch.zeros_like(delta[:, 0]), {}
    for t in reversed(steps) if order == "backwards" else steps:
        total = delta[:, t] + (trace if fades else 1) * (total if carry == "sum" else 0)
        found[t] = total
    made = torch.stack([found[t] for t in (reversed(steps) if last_first else steps)], dim=1)
    return made + values if gives == "returns" else made


def a_trace(draw: Draw, trace: float = 0.7) -> tuple[Tensor, Tensor, float]:
    count, length = draw.sizes(2, low=4)
    return draw(count, length), draw(count, length), trace


GAE = Task(
    name="gae",
    title="Better than expected",
    asks="rewards, values, trace",
    reference=gae,
    cases=(
        Case("the advantage of each token", a_trace),
        Case(
            "trace 0: the surprise of one step",
            lambda draw: a_trace(draw, 0.0),
            knobs=("next_value", "own", "gives", "exchanged", "last_first"),
        ),
    ),
    mistakes=mistakes(r"""
next value forgotten: next_value='none'
    What is still expected behind a token does not count.
    > $\delta_t = r_t + V_{t+1} - V_t$.
comes round: next_value='comes round'
    Behind the last token the *first* value is expected: `roll` comes round.
    > When the answer has ended, nothing is expected any more: 0.
own value forgotten: own=False
    What was expected already is not taken off.
    > $\delta_t = r_t + V_{t+1} - V_t$: only what is *more* than expected counts.
values exchanged: exchanged=True
    $V_t$ and $V_{t+1}$ have each other's sign.
    > $\delta_t = r_t + V_{t+1} - V_t$: what is still expected is there, what was expected is used up.
last token first: last_first=True
    The advantages come last token first: they were collected backwards, and never turned round.
    > `found.insert(0, total)`, or `found.reverse()` before they are stacked.
from the front: order='forwards'
    The sum runs from the front: a token is praised for what came before it.
    > Begin with the last token: $A_t = \delta_t + \lambda A_{t+1}$.
one step only: carry='none'
    Each token gets its own surprise only; the score at the end never reaches the tokens before it.
    > $A_t = \delta_t + \lambda A_{t+1}$.
trace forgotten: fades=False
    `trace` makes no difference.
    > Each step backwards multiplies by $\lambda$.
returns: gives='returns'
    You return what came, not how much more than expected it was.
    > Advantages, without adding the values again.
"""),
    also=(keeps_type,),
    example=((([[0.0, 0.0, 1.0]], [[0.5, 0.5, 0.5]], 0.5), [[0.125, 0.25, 0.5]]),),
    minutes=7,
    text="`rewards`, `(B, T)`, is what was paid for each token, `values`, `(B, T)`, what the critic expected to be "
    "paid from there on *before* the token was written; behind the last one it expects 0. With $\\delta_t = r_t + "
    "V_{t+1} - V_t$ return the advantages $A_t = \\delta_t + \\lambda A_{t+1}$, `(B, T)`; $\\lambda$ is `trace`.",
    hints=(
        "Compute all $\\delta_t$ first: `values` moved by one place, with a 0 behind.",
        "$A$ of the last token is its $\\delta$. With it you know the one before, and so on.",
        "`for t in reversed(range(T))`: `total = delta[:, t] + trace * total`. Collect them, and turn the order round.",
    ),
    solution="""
def my_gae(rewards, values, trace):
    following = nn.functional.pad(values[:, 1:], (0, 1))
    delta = rewards + following - values
    total, found = 0, []
    for t in reversed(range(delta.shape[1])):
        total = delta[:, t] + trace * total
        found.insert(0, total)
    return torch.stack(found, dim=1)
""",
)

# clipped ----------------------------------------------------------------------------------------------------


def clipped(
    log_probs: Tensor, old: Tensor, advantage: Tensor, clip: float, *, ratio: str = "exp", take: str = "min",
    sign: float = 1.0, sides: str = "both", reduce: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean of min(rho A, clamp(rho, 1 - clip, 1 + clip) A)."""
    gap = log_probs - old
    r = {"exp": gap.exp(), "turned": (-gap).exp(), "difference": gap, "quotient": log_probs / old}[ratio]
    near = {"both": r.clamp(1 - clip, 1 + clip), "above": r.clamp(max=1 + clip), "zero": r.clamp(-clip, clip)}[sides]
    free, held = r * advantage, near * advantage
    made = {"min": torch.minimum(free, held), "max": torch.maximum(free, held), "held": held, "free": free}[take]
    return sign * (made.mean() if reduce == "mean" else made.sum())


def some_steps(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """Ratios on both sides of the clip, with advantages of both signs."""
    (count,) = draw.sizes(1, low=5)
    old = -draw(4 * count).abs() - 0.5
    moved = torch.tensor([0.5, -0.5, 0.05, -0.05]).repeat(count)
    return old + moved + 0.02 * draw(4 * count), old, draw(4 * count) + 0.2, 0.2


CLIPPED = Task(
    name="clipped",
    title="Not too far in one step",
    asks="log_probs, old, advantage, clip",
    reference=clipped,
    cases=(Case("the clipped objective, which is to grow", some_steps),),
    mistakes=mistakes(r"""
a difference, not a ratio: ratio='difference'
    The ratio of probabilities is missing: you used the difference of their logarithms.
    > $\rho = \pi / \pi_{old} = e^{\ln \pi - \ln \pi_{old}}$.
a quotient of logarithms: ratio='quotient'
    You divided one logarithm by the other.
    > $\rho = \pi / \pi_{old} = e^{\ln \pi - \ln \pi_{old}}$.
ratio turned: ratio='turned'
    The ratio is turned round: old over new.
    > $\rho = \pi / \pi_{old}$.
the larger one: take='max'
    You took the larger of the two: then nothing is ever held back.
    > The *smaller* one: the objective must not grow beyond the clip.
always clipped: take='held'
    The clipped ratio is used everywhere, even where the policy has gone the wrong way: there the gradient is lost.
    > $\min(\rho A, \mathrm{clamp}(\rho) A)$, not the second alone.
never clipped: take='free'
    Nothing is clipped.
    > $\min(\rho A, \mathrm{clamp}(\rho, 1 - \epsilon, 1 + \epsilon) A)$.
clipped above only: sides='above'
    The ratio is held back above only.
    > A token with a negative advantage makes the ratio fall: below $1 - \epsilon$ it is enough.
clipped about zero: sides='zero'
    The ratio was clipped to $\pm \epsilon$.
    > A policy that has not moved has the ratio 1: clamp between $1 - \epsilon$ and $1 + \epsilon$.
sign: sign=-1.0
    The result has the wrong sign.
    > Return what is to *grow*; the training takes minus it.
sum instead of mean: reduce='sum'
    The terms were added up.
    > Take their mean.
"""),
    also=(keeps_type, gradients),
    example=(((torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.25]).log(), [1.0, -1.0], 0.2), -0.4),),
    minutes=5,
    text="`log_probs` and `old` are the $\\ln p$ of tokens now and when they were written, `advantage` how much better "
    "than expected they turned out, all of one shape. With $\\rho = \\pi / \\pi_{old}$ return the mean of "
    "$\\min(\\rho A, \\; \\mathrm{clamp}(\\rho, 1 - \\epsilon, 1 + \\epsilon) A)$; `clip` is $\\epsilon$.",
    hints=(
        "How do you get $\\pi / \\pi_{old}$ from two logarithms?",
        "Compute both products, $\\rho A$ and the clamped one, and take the smaller of the two, token by token.",
        "`torch.minimum(x, y)`, and `ratio.clamp(1 - clip, 1 + clip)`.",
    ),
    solution="""
def my_clipped(log_probs, old, advantage, clip):
    ratio = (log_probs - old).exp()
    near = ratio.clamp(1 - clip, 1 + clip)
    return torch.minimum(ratio * advantage, near * advantage).mean()
""",
)

# direct_loss ------------------------------------------------------------------------------------------------


def direct_loss(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, beta: float, *,
    referred: str = "both", weight: str = "times", turned: bool = False, sign: float = -1.0, log: bool = True,
    reduce: str = "mean",
) -> Tensor:  # fmt: skip
    """-ln sigmoid of the difference of implicit rewards, on average."""
    won = chosen - (reference_chosen if referred in ("both", "chosen") else 0)
    lost = rejected - (reference_rejected if referred in ("both", "rejected") else 0)
    scale = {"times": beta, "divided": 1 / beta}.get(weight, 1.0)
    if weight == "of the policy":
        won, lost = won + (beta - 1) * chosen, lost + (beta - 1) * rejected
    won, lost = won * (beta if weight == "of one" else 1), lost * (beta if weight == "of the other" else 1)
    gap = scale * (lost - won if turned else won - lost)
    terms = (F.logsigmoid(gap) if log else gap.sigmoid()) * (beta if weight == "of the loss" else 1)
    return sign * (terms.mean() if reduce == "mean" else terms.sum())


def four_logs(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    (count,) = draw.sizes(1, low=4)
    return (*(4 * draw(count) - 12 for _ in range(4)), 0.3)


DIRECT_LOSS = Task(
    name="direct_loss",
    title="The short cut",
    asks="chosen, rejected, reference_chosen, reference_rejected, beta",
    reference=direct_loss,
    cases=(
        Case("mean of -ln of the chance that the chosen one wins", four_logs),
        Case(
            "far apart",
            lambda draw: (
                torch.tensor([-500.0]),
                torch.tensor([-5.0]),
                torch.tensor([-9.0]),
                torch.tensor([-7.0]),
                1.0,
            ),
            knobs=("sign", "turned"),
        ),
    ),
    mistakes=mistakes(r"""
no reference: referred='none'
    The reference is missing, or cancels: the reward is how likely the answer is, not how much likelier it has *become*.
    > $\beta (\ln \pi(y) - \ln \pi_{ref}(y))$ for each of the two.
one reference only: referred='chosen' | 'rejected'
    Only one of the two answers is compared with the reference.
    > Both, each with its own.
beta forgotten: weight='none'
    `beta` is missing.
    > The implicit reward is `beta` times the difference of logarithms.
divided by beta: weight='divided'
    You divided by `beta`.
    > Times.
beta in the wrong place: weight='of the policy' | 'of one' | 'of the other' | 'of the loss'
    `beta` multiplies only a part of the difference, or the loss in place of the rewards.
    > $\beta (\ln \pi - \ln \pi_{ref})$ is the reward of each answer: mind the brackets.
sum instead of mean: reduce='sum'
    The losses were added up.
    > Take their mean over the pairs.
winner and loser exchanged: turned=True
    The difference has the wrong sign: the rejected answer is learned.
    > What the chosen one gained, less what the rejected one gained.
sign: sign=1.0
    The loss has the wrong sign.
    > Minus the logarithm of a chance.
logarithm forgotten: log=False
    The logarithm is missing.
    > $-\ln \sigma$, as in your `my_pair_loss`.
"""),
    also=(keeps_type, gradients),
    example=((([-1.0], [-2.0], [-1.0], [-2.0], 0.5), 0.6931), (([-1.0], [-5.0], [-3.0], [-3.0], 0.5), 0.1269)),
    minutes=4,
    text="Four tensors `(B,)`: $\\ln \\pi(y)$ of the chosen and of the rejected answers under the policy, then the "
    "same two under the reference. The implicit reward of an answer is $\\beta (\\ln \\pi(y) - \\ln \\pi_{ref}(y))$. "
    "Return the loss of a reward model for these rewards, a tensor without axes.",
    hints=(
        "You have written the loss of a reward model already. What are the two rewards here?",
        "`beta * (chosen - reference_chosen)` is one of them.",
        "One call of `my_pair_loss` will do, or `logsigmoid` of the difference of the two rewards.",
    ),
    solution="""
def my_direct_loss(chosen, rejected, reference_chosen, reference_rejected, beta):
    won = beta * (chosen - reference_chosen)
    lost = beta * (rejected - reference_rejected)
    return -nn.functional.logsigmoid(won - lost).mean()
""",
)

# best_policy ------------------------------------------------------------------------------------------------


def best_policy(
    probabilities: Tensor, rewards: Tensor, beta: float, *, weight: str = "divided", prior: bool = True,
    sums: bool = True, gives: str = "policy",
) -> Tensor:  # fmt: skip
    """pi* = p exp(r / beta) / Z: Rafailov et al. 2023, eq. (4)."""
    scaled = {"times": rewards * beta, "none": rewards}.get(weight, rewards / beta)
    known = probabilities if weight == "no logarithm" else probabilities.log() / (beta if weight == "of all" else 1)
    logits = scaled + (known if prior else 0)
    if gives == "greedy":
        return F.one_hot(logits.argmax(), len(logits)).to(logits.dtype)
    return logits.softmax(dim=0) if sums else logits.exp()


def some_answers(draw: Draw, lift: float = 0.0) -> tuple[Tensor, Tensor, float]:
    (count,) = draw.sizes(1, low=4)
    return draw(count).softmax(dim=0), draw(count) + lift, 0.4


BEST_POLICY = Task(
    name="best_policy",
    title="The best policy, in closed form",
    asks="probabilities, rewards, beta",
    reference=best_policy,
    cases=(
        Case("what each answer's probability should be", some_answers),
        Case("large rewards", lambda draw: some_answers(draw, 60.0)),
    ),
    mistakes=mistakes(r"""
times beta: weight='times'
    The rewards were multiplied by `beta`.
    > $e^{r / \beta}$: where a nat is cheap, go far.
beta forgotten: weight='none'
    `beta` makes no difference.
    > $e^{r / \beta}$.
everything divided by beta: weight='of all'
    The logarithm of the reference is divided by `beta`, too.
    > $\ln \pi_{ref} + r / \beta$: mind the brackets.
no logarithm of the reference: weight='no logarithm'
    The reference's probabilities themselves went into the exponential.
    > Their logarithm: $e^{\ln \pi_{ref}} = \pi_{ref}$.
reference forgotten: prior=False
    What the reference found likely does not count.
    > $\pi^* \propto \pi_{ref} \, e^{r / \beta}$.
does not sum to one: sums=False
    The probabilities do not sum to 1.
    > Divide by their sum: the Z of the formula.
only the best one: gives='greedy'
    All goes to one answer: that is $\beta \to 0$.
    > Every answer keeps some probability.
"""),
    also=(keeps_type, gradients),
    example=((([0.5, 0.5], [0.6931, 0.0], 1.0), [0.6667, 0.3333]), (([0.9, 0.1], [0.0, 2.1972], 1.0), [0.5, 0.5])),
    minutes=6,
    stretch=True,
    text="There are N possible answers: `probabilities`, `(N,)`, are the reference's, `rewards`, `(N,)`, what they are "
    "worth. Which policy $\\pi$ has the largest $\\sum_y \\pi(y) r(y) - \\beta \\, \\mathrm{KL}(\\pi, \\pi_{ref})$? It "
    "is $\\pi^*(y) = \\pi_{ref}(y) \\, e^{r(y) / \\beta} / Z$. Return it, `(N,)`; rewards of 60 must not overflow.",
    hints=(
        "In logarithms it is a sum: $\\ln \\pi_{ref} + r / \\beta$, up to a number that is the same for all.",
        "Which function takes the exponential of a list and divides by the sum?",
        "`softmax` of that sum: it subtracts the largest first.",
    ),
    solution="""
def my_best_policy(probabilities, rewards, beta):
    return (probabilities.log() + rewards / beta).softmax(dim=0)
""",
)

TASKS = {task.name: task for task in (PAIR_LOSS, TOKEN_REWARDS, GAE, CLIPPED, DIRECT_LOSS, BEST_POLICY)}

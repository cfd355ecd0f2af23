"""Lesson 17, Long sequences and old roots: what its exercises are tried with; tasks.md has their text and mistakes."""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_lib.functional.linear_attention import elu_features
from course_lib.tasks import Case, Check, Draw, TaskInput
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import CheckFailed, Finding
from course_lib.tasks.markdown import read_tasks
from course_lib.tasks.values import bring, row_of

CHAINS = 30_000  # of a mean: its standard error is at most 0.003, and of one half of them 0.004
NEAR = 0.03  # what two such means may differ by: five standard errors of their difference, or more
OF_GRADIENTS, OF_DREAMS = (25, 3.0, 3), (38, 4.0, 2)  # machines by which every mistake changes a mean by 0.1 or more
BLOCKS, KEYS = 40, 30  # where a long text is read: so many blocks of so many keys

# long sequences ---------------------------------------------------------------------------------------------


def heads(draw: Draw, *, lower: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of some heads; the numbers of queries and keys are so much lower."""
    B, H, T, K, V = draw.sizes(5, low=3)
    return draw(B, H, T, K) - lower, draw(B, H, T, K) - lower, draw(B, H, T, V)


def a_step(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A query, key and value, and the state that some earlier ones have left."""
    K, V = draw.sizes(2)
    k, v = elu_features(draw(3, K)), draw(3, V)
    return draw(K), draw(K), draw(V), k.mT @ v, k.sum(dim=0)


def far_below(q: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """The same step with a query far below 0."""
    return q - 30, *others


def blocks(draw: Draw) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Blocks of different lengths, in which the scores grow and fall."""
    count, K, V = draw.sizes(3, low=3)
    lengths = draw.integers(1, 7, count).tolist()
    keys = [(1 + 3 * (i % 3)) * draw(n, K) for i, n in enumerate(lengths)]
    return draw(K), keys, [draw(n, V) for n in lengths]


def huge_scores(draw: Draw, *, above: bool) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Scores of some -10,000 in the first block and, if `above`, of some 10,000 in the second; 32 bits hold them."""
    q = torch.tensor([100.0, 1, 2, -1])
    signs = [-1, 1 if above else -1, -1]
    small = [draw.integers(-2, 3, 5, 3) for _ in signs]
    keys = [torch.cat([torch.full((5, 1), 200.0 * sign), few], dim=1) for sign, few in zip(signs, small, strict=True)]
    return q, keys, [draw(5, 3) for _ in signs]


class _Living(TorchFunctionMode):
    """Counts the numbers that torch keeps at the same time, without those of the inputs: `most` is the maximum."""

    def __init__(self, inputs: list[Tensor]):
        super().__init__()
        self.known = {one.untyped_storage().data_ptr() for one in inputs}
        self.made: list[weakref.ref[Tensor]] = []
        self.most = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.made.append(weakref.ref(result))
            self.count()
        return result

    def count(self) -> None:
        alive = [(ref, one) for ref in self.made if (one := ref()) is not None]
        self.made = [ref for ref, _ in alive]
        storages = {one.untyped_storage().data_ptr(): one.numel() for _, one in alive}
        self.most = max(self.most, sum(count for where, count in storages.items() if where not in self.known))


class _Counted(list):
    """A list that knows how often each of its parts was asked for."""

    def __init__(self, parts: list):
        super().__init__(parts)
        self.asked = [0] * len(parts)

    def __getitem__(self, index: Any) -> Any:
        for i in range(len(self))[index] if isinstance(index, slice) else [index]:
            self.asked[i] += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))


def one_pass(probe: Probe) -> list[Finding]:
    """Whether a long text is read once, and block by block."""
    q = probe.draw(3)
    keys, values = ([probe.draw(KEYS, width) for _ in range(BLOCKS)] for width in (3, 2))
    seen: dict[str, Any] = {}

    def watched(q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Any:
        seen["keys"], seen["living"] = _Counted(keys), _Living([q, *keys, *values])
        with seen["living"]:
            return probe._function(q, seen["keys"], values)

    said = TASKS["online_softmax"].finding
    Probe(watched, asks=probe.asks).tensor(q, keys, values)
    if seen["living"].most > BLOCKS * KEYS / 2:
        return [said("all scores at once")]
    return [said("two passes")] if max(seen["keys"].asked[1:-1]) > 1 else []


def sequences(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sequences of numbers, and a diagonal state-space model whose decays have either sign."""
    B, T, N = draw.sizes(3, low=3)
    return 0.95 * draw(N).tanh(), draw(N), draw(N), draw(B, T)


# mixtures of experts ----------------------------------------------------------------------------------------


def router_logits(draw: Draw, *, one: bool = False) -> tuple[Tensor, int]:
    """The logits of experts for some tokens, and how many of them each token chooses."""
    N, E = draw.sizes(2, low=5)
    return 2 * draw(N, E), 1 if one else draw.integers(2, E - 1, 1).item()


def tokens_for_experts(draw: Draw, *, k: int) -> TaskInput:
    """Tokens, and the sizes of a layer; there are enough tokens for each expert to be chosen."""
    B, T, dim, hidden = draw.sizes(4, low=4)
    num_experts = draw.integers(3, 6, 1).item()
    return TaskInput((2 * draw(B, 2 * T, dim),), build=(dim, hidden, num_experts, k))


def few_rows(probe: Probe) -> list[Finding]:
    """Whether an expert computes only the tokens that chose it."""
    dim, num_experts, k, x = 6, 8, 2, probe.draw(3, 16, 6)
    made, rows = probe.make("MoE", dim, 20, num_experts, k, asks="dim, hidden, num_experts, k"), []
    for number in range(num_experts):
        first = made._function.get_submodule(f"experts.{number}.0")
        first.register_forward_pre_hook(lambda _part, given: rows.append(given[0].numel() // dim))
    made.tensor(x)
    needed = k * x.numel() // dim
    return [TASKS["MoE"].finding("every expert computes every token")] if sum(rows) > 2 * needed else []


# Boltzmann machines -----------------------------------------------------------------------------------------


def bits(draw: Draw, *shape: int) -> Tensor:
    """Zeros and ones."""
    return (draw(*shape) > 0).float()


def a_machine(draw: Draw, *, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Visible vectors, and the weights and biases of a machine."""
    B, V, H = draw.sizes(3, low=3)
    return bits(draw, B, V), scale * draw(H, V), scale * draw(V), scale * draw(H)


def machine_and_noise(draw: Draw) -> tuple[Tensor, ...]:
    """Many visible vectors, a machine, and the noise of both layers."""
    (B, V, H), generator = draw.sizes(3, low=3), draw.generator
    noise = torch.rand(10 * B, H, generator=generator), torch.rand(10 * B, V, generator=generator)
    return bits(draw, 10 * B, V), 1.5 * draw(H, V), draw(V), draw(H), *noise


def saturated(draw: Draw) -> tuple:
    """A machine whose probabilities are 0 or 1, so that no random number matters, and k."""
    B, V, H = draw.sizes(3, low=4)
    W = 40 * draw(H, V).sign()
    b, c = (20 * draw(size).sign() - 40 * half for size, half in ((V, H // 4), (H, V // 4)))
    return bits(draw, B, V), W, b, c, draw.integers(1, 4, 1).item(), draw.generator


def chosen_machine(seed: int, scale: float, patterns: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Many chains that start at a few vectors, as many at each, and a machine of 4 visible and 3 hidden units."""
    draw = Draw(seed)
    v = bits(draw, patterns, 4).repeat_interleave(CHAINS // patterns, dim=0)
    return v, scale * draw(3, 4), draw(4), draw(3)


def chains(probe: Probe) -> list[Finding]:
    """Whether the mean of many chains is what it should be, and all random numbers come from the generator."""
    given, said = chosen_machine(*OF_GRADIENTS), TASKS["cd_step"].finding

    def means(ask: Callable[..., Any], seed: int) -> Tensor:
        made = [bring(ask(*given, k, generator(seed + k)), given[1:]) for k in (1, 3)]
        return torch.cat([row_of(one) for one in made])

    one, other = means(probe.call, 2), means(probe.call, 6)
    if not near(one, other):
        return [said("the same noise for all rows")]
    if not near(one, means(TASKS["cd_step"].reference, 10)):
        return [explained("cd_step", lambda wrong: means(wrong, 14), one) or WRONG_CHAIN]
    few = [row_of(tuple(probe.call(*a_machine(Draw(0)), 2, generator()))) for _ in range(2)]
    return [] if torch.equal(*few) else [said("generator not used")]


def generator(seed: int = 0) -> torch.Generator:
    """One with this seed."""
    return torch.Generator().manual_seed(seed)


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two means over many chains may be those of the same chains."""
    return one.shape == other.shape and torch.allclose(one, other, atol=NEAR, rtol=0)


def explained(task: str, ask: Callable[[Any], Tensor], actual: Tensor, *, about: str = "") -> Finding | None:
    """The mistake in the solution that makes the same of it, in the mean of many chains; `about` begins its name."""
    for mistake in TASKS[task].mistakes:
        for way in mistake.ways if mistake.name.startswith(about) else ():
            with contextlib.suppress(RuntimeError), torch.no_grad():  # some cannot be made with these shapes
                if near(ask(TASKS[task].reference.changed(way)), actual):
                    return mistake.finding
    return None


def machine_of_hers(
    probe: Probe, W: Tensor, b: Tensor, c: Tensor
) -> tuple[ModuleProbe, Callable[[type[nn.Module]], nn.Module]]:
    """The learner's machine with these weights, and what makes one of another class with them."""
    hidden, visible = W.shape
    made = probe.make("RBM", visible, hidden, asks="num_visible, num_hidden")
    made.set_parameters({"W": W, "b": b, "c": c})

    def same(other: type[nn.Module]) -> nn.Module:
        machine = other(visible, hidden)
        machine.load_state_dict({"W": W, "b": b, "c": c})
        return machine

    return made, same


def method(made: ModuleProbe, name: str, asks: str) -> Probe:
    """A method of the learner's machine. Raises CheckFailed if there is none."""
    if not callable(found := getattr(made._function, name, None)):
        seen = f"Your `RBM` has no method `{name}`."
        raise CheckFailed(Finding("method missing", seen, f"Write `def {name}(self, {asks}):` in the class."))
    return Probe(found, asks=asks)


def begins(probe: Probe) -> list[Finding]:
    """Whether a new machine has small normal weights and no biases."""
    made = probe.make("RBM", 50, 40, asks="num_visible, num_hidden").parameters()
    W = made["W"]
    as_asked = abs(W.mean()) < 0.002 and 0.009 < W.std() < 0.011 and not made["b"].any() and not made["c"].any()
    return [] if as_asked else [TASKS["RBM"].finding("first weights")]


def conditionals(probe: Probe) -> list[Finding]:
    """Whether `hidden` and `visible` return probabilities, and the right ones."""
    v, W, b, c = a_machine(probe.draw)
    made, _ = machine_of_hers(probe, W, b, c)
    h = bits(probe.draw, 7, len(c))
    for name, units, right in (("hidden", v, v @ W.T + c), ("visible", h, h @ W + b)):
        asked = method(made, name, "v" if name == "hidden" else "h")
        if not torch.allclose(asked.tensor(units, shape=right.shape), right.sigmoid(), atol=1e-5):
            return [TASKS["RBM"].finding(f"{name} probabilities")]
    return []


def dreams(probe: Probe) -> list[Finding]:
    """Whether `dream` samples as it should, in the mean of many chains that start at two vectors."""
    v, *weights = chosen_machine(*OF_DREAMS)
    made, same = machine_of_hers(probe, *weights)
    dream, said = method(made, "dream", "v, steps, generator"), TASKS["RBM"].finding

    def means(ask: Callable[..., Tensor]) -> Tensor:
        return torch.cat([ask(v, n, generator(n)).unflatten(0, (2, -1)).mean(1) for n in (1, 3)])

    few = [dream.tensor(v[:9], 2, generator(), shape=v[:9].shape) for _ in range(2)]
    actual = means(dream.tensor)
    with torch.no_grad():
        right = means(same(TASKS["RBM"].module).dream)
    if not near(actual, right):
        return [explained("RBM", lambda wrong: means(same(wrong).dream), actual, about="dream") or WRONG_DREAM]
    if bool(((few[0] == 0) | (few[0] == 1)).all()):
        return [said("dream returns a sample")]
    return [] if torch.equal(*few) else [said("generator not used")]


def machine_to_build(draw: Draw) -> TaskInput:
    """Visible vectors, and the sizes of a machine."""
    B, V, H = draw.sizes(3, low=3, high=6)
    return TaskInput((bits(draw, B, V),), build=(V, H))


WRONG_DREAM = Finding(
    "dream differs from Gibbs sampling",
    "In the mean over many chains, `dream` does not return what Gibbs sampling does.",
    "Each step: sample h with `self.hidden(v)`, then v with `self.visible(h)`; return the last probabilities.",
)
WRONG_CHAIN = Finding(
    "gradients differ from contrastive divergence",
    "In the mean over many chains, your gradients differ from those of CD-k.",
    "Sample both layers in each of the k steps; both phases use the probabilities of the hidden units.",
)
CASES = {
    "linear_attention": (
        Case("each position attends to itself and to those before it", heads),
        Case("queries and keys far below 0", lambda draw: heads(draw, lower=20.0)),
    ),
    "linear_step": (
        Case("one step, after some others", a_step),
        Case("a query far below 0", lambda draw: far_below(*a_step(draw))),
    ),
    "local_mask": (
        Case(
            "each position, and some before it",
            lambda draw: (draw.sizes(1, 7, 12)[0], draw.integers(1, 5, 1).item()),
        ),
        Case("window 0: the position itself", lambda draw: (draw.sizes(1)[0], 0)),
    ),
    "online_softmax": (
        Case("exact attention to all blocks", blocks),
        Case("scores near 10,000", lambda draw: huge_scores(draw, above=True), tolerance=5e-3),
        Case("scores near -10,000", lambda draw: huge_scores(draw, above=False), tolerance=5e-3),
    ),
    "ssm": (Case("the outputs of the recurrence", sequences),),
    "route": (
        Case("two experts or more for each token", router_logits),
        Case("one expert for each token", lambda draw: router_logits(draw, one=True)),
    ),
    "balance": (
        Case("some choices for each token", router_logits),
        Case("one choice for each token", lambda draw: router_logits(draw, one=True)),
    ),
    "MoE": (
        Case("two experts for each token", lambda draw: tokens_for_experts(draw, k=2)),
        Case("one expert for each token", lambda draw: tokens_for_experts(draw, k=1)),
    ),
    "free_energy": (
        Case("the free energy of each row", a_machine),
        Case("exponents near 1000", lambda draw: a_machine(draw, scale=1000.0)),
    ),
    "gibbs": (Case("both layers are sampled with the given noise", machine_and_noise),),
    "cd_step": (Case("saturated units, whose chain is deterministic", saturated),),
    "RBM": (Case("the free energy of each row", machine_to_build),),
}


def my_route(logits: Tensor, k: int) -> Tensor:
    """What a learner's layer takes if she has no router of her own: that of the solution."""
    return TASKS["route"].reference(logits, k)


def my_free_energy(v: Tensor, W: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """What a learner's machine takes if she has no function of her own: that of the solution."""
    return TASKS["free_energy"].reference(v, W, b, c)


PARTS = {"my_route": my_route, "my_free_energy": my_free_energy}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    PARTS,
    online_softmax={
        "checks": (Check(name="one pass, block by block", detects=("all scores at once", "two passes"), run=one_pass),)
    },
    route={"example": ((([[0.0, 0.6931, 2.0794]], 2), [[0.0, 0.2, 0.8]]), (([[0.0, 1.0986]], 1), [[0.0, 0.75]]))},
    balance={"example": ((([[1.0986, 0.0], [1.0986, 0.0]], 1), 1.5),)},
    MoE={
        "checks": (
            Check(
                name="each expert computes the tokens that chose it",
                detects=("every expert computes every token",),
                run=few_rows,
            ),
        )
    },
    free_energy={"example": ((([[1.0, 0.0]], [[1.0986, 5.0]], [0.5, 0.5], [0.0]), [-1.8863]),)},
    cd_step={
        "checks": (
            Check(
                name="the mean of many chains",
                detects=(
                    "one step only",
                    "hidden probabilities in the chain",
                    "visible probabilities in the chain",
                    "no sampling at all",
                    "rounded instead of sampled",
                    "the same noise for all rows",
                    "comparison inverted",
                    "generator not used",
                ),
                run=chains,
            ),
        )
    },
    RBM={
        "checks": (
            Check(name="the parameters of a new machine", detects=("first weights",), run=begins),
            Check(
                name="the probabilities of each layer",
                detects=("hidden probabilities", "visible probabilities"),
                run=conditionals,
                gate=True,
            ),
            Check(
                name="dreams are Gibbs sampling",
                detects=(
                    "dream makes one step only",
                    "dream makes a step too many",
                    "dream without sampling",
                    "dream rounds",
                    "dream returns a sample",
                    "generator not used",
                ),
                run=dreams,
            ),
        )
    },
)

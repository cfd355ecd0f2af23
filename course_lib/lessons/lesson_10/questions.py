"""Lesson 10, Aligning a language model: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("You are the labeller", 6, holds=("labeller",)),
    Beat("The bet: kinder, and still grammatical?", 6, holds=("likely", "unpenalised")),
    Beat("Who wins, by hand", 6, holds=("nine", "nats")),
    Beat("Write it: what is paid, and what it moves", 24, holds=("pair_loss", "token_rewards", "gae", "clipped")),
    Beat("Train yours: the three steps", 7, holds=("unpenalised", "ratio")),
    Beat("Look inside and break it", 16, holds=("paid", "over", "comparisons", "direct_loss", "direct", "bug")),
    Beat("What to remember", 4, holds=("goodhart", "earlier")),
    Beat("Stretch: the best policy in one line; then the assignment", 8, holds=("best_policy",), optional=True),
)

QUIZZES = {
    "likely": Quiz(
        "A language model has learned from the whole web, and is asked: *How do I fix a puncture?* What does it want?",
        options={
            "To help": "Nothing in its loss speaks of helping.",
            "To be right": "The web is wrong often enough; its loss asks for what is *written*, not for what is true.",
            "To go on as a text would that begins like this": "Perhaps with an answer, perhaps with three more "
            "questions of a list. Ouyang et al. 2022 call it misaligned: predicting the next token is not what we "
            "want.",
        },
        answer=2,
    ),
    "nine": Number(
        "By how much must the reward of one answer exceed that of the other, so that labellers prefer it nine times in "
        "ten?",
        answer=2.197,
        tolerance=0.01,
        why="$\\sigma(x) = 0.9$ for $x = \\ln(0.9 / 0.1) = \\ln 9 = 2.197$. Only differences count.",
        near={
            0.105: "That is $-\\ln 0.9$, the loss of such a pair.",
            0.9: "The probability is $\\sigma$ of the difference, $1 / (1 + e^{-x})$.",
            -2.197: "The other way round.",
        },
    ),
    "nats": Number(
        "The policy gives a token the probability 0.8, the reference gave it 0.2. What is taken off for it with "
        "$\\beta = 0.1$?",
        answer=0.1386,
        tolerance=0.002,
        why="$0.1 \\cdot \\ln(0.8 / 0.2) = 0.1 \\cdot \\ln 4 = 0.139$.",
        near={
            1.386: "That is one nat's price of 1: times 0.1.",
            0.06: "The difference of the probabilities; it is the logarithm of their quotient.",
            -0.1386: "It is taken off: a positive amount.",
        },
    ),
    "ratio": Quiz(
        "A token had a positive advantage, and its ratio $\\rho$ is 1.5 already, with $\\epsilon = 0.2$. What is its "
        "gradient in the clipped objective?",
        options={
            "Zero": "The smaller of $1.5 A$ and $1.2 A$ is $1.2 A$, which does not depend on the policy any more. Only "
            "new answers can say whether going on is worth it.",
            "Larger than at $\\rho = 1$": "So it would be without the clip.",
            "Negative, it is brought back": "Nothing brings it back: it is only pushed no further.",
        },
        answer=0,
    ),
    "bug": Quiz(
        "After this step 2 the policy of step 3 writes cruel sentences. What is wrong?",
        options={
            "The learning rate of PPO": "A wrong rate makes it slow or wild, not reliably cruel.",
            "Winner and loser are exchanged": "The loss rewards the model for preferring the rejected answer. This "
            "happened: Ziegler et al. 2019 (section 4.4) tell of a flipped sign, of the reward and of the penalty, "
            "overnight, and a model that wrote the very worst in good English.",
            "The sigmoid should be a softmax": "For two answers they are the same thing.",
        },
        answer=1,
        kind="bug",
        code="""
for chosen, rejected in comparisons:
    gap = reward(rejected) - reward(chosen)
    loss = -logsigmoid(gap).mean()
    loss.backward()
""",
    ),
    "goodhart": Quiz(
        "Your reward model agrees with the labellers in 97 % of pairs. You leave the penalty out, since it is so good. "
        "What happens?",
        options={
            "97 % of what it could be": "97 % holds for answers like those that were compared. The policy goes where "
            "none was.",
            "The policy finds answers that nobody compared, and whatever nobody looked at is lost": "What labellers "
            "did not look at is in no comparison, however many there are. The harder a measure is followed, the less "
            "it measures (Goodhart's law). The penalty keeps the policy where the comparisons were.",
            "Nothing is learned without a penalty": "Very much is, and fast.",
        },
        answer=1,
    ),
    "earlier": Quiz(
        "From lesson 08: why does the policy *draw* its tokens during PPO, rather than take the likeliest?",
        options={
            "Because greedy decoding is slower": "It is as fast.",
            "Because the likeliest token is often wrong": "That alone would not need dice.",
            "Because only what is tried can be found better than expected": "With one answer to each prompt, always "
            "the same, there is nothing to compare. And the penalty is a mean over the policy's own draws.",
        },
        answer=2,
    ),
}

BETS = {
    "unpenalised": Bet(
        "The labellers look at kindness alone, the reward model learns from them, and the policy learns from it for 36 "
        "rounds, **without** a penalty. It began with 88 % grammatical sentences. How many are there at the end?",
        low=0,
        high=100,
        unit="%",
    ),
    "comparisons": Bet(
        "A reward model is to say what the labellers would say without a slip. After 125 comparisons it is right in "
        "about 74 % of new pairs. And after 2,000?",
        low=50,
        high=100,
        unit="%",
    ),
    "direct": Bet(
        "DPO goes without reward model and without a policy that tries things. At the same distance from the "
        "reference, whose sentences are better by what is really wanted, kind *and* grammatical?",
        options=("PPO's, by far", "about the same", "DPO's, by far"),
    ),
}

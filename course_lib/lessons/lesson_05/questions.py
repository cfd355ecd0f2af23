"""Lesson 05, Attention: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A translator that looks back", 5, holds=("translator",)),
    Beat("The bet: how much fits into one vector?", 5, holds=("memory", "bottleneck")),
    Beat("Attention by hand", 6, holds=("sharper",)),
    Beat("Write it", 23, holds=("softmax", "attention", "bug")),
    Beat("Train yours", 6, holds=("looks",)),
    Beat("Look inside and break it", 26, holds=("root", "mask", "order", "heads", "split_heads", "price", "layers")),
    Beat("What to remember", 4, holds=("parallel", "scores", "gates")),
    Beat("Stretch: position codes; then the assignment", 15, holds=("positions",), optional=True),
)

QUIZZES = {
    "memory": Quiz(
        "An encoder reads 40 words with states of 192 numbers. On how many numbers can the decoder draw, through one "
        "fixed vector and with attention?",
        options={
            "192 in both cases": "Each *mixture* has 192 numbers, but a new one is made for every word, from all "
            "states.",
            "40, and 192": "There is one state for each word, and each state has 192 numbers.",
            "192, and 40 x 192": "One state for each word: what attention can draw on grows with the sentence.",
        },
        answer=2,
    ),
    "sharper": Number(
        "The three scores 2, 1, 0 gave the weights 0.665, 0.245, 0.090. All three are multiplied by 5. What is the "
        "largest weight now?",
        answer=0.9933,
        tolerance=0.004,
        why="$e^{10} / (e^{10} + e^{5} + 1) = 0.993$, the others have 0.0067 and 0.00005. Only *differences* of scores "
        "count: five times as large, they leave one winner. Adding 5 to each changes nothing, since $e^5$ cancels.",
        near={
            0.665: "That is what *adding* the same number to all scores gives: nothing changes. Multiplying does more.",
            3.325: "The scores are multiplied, not the weights; weights never exceed 1.",
        },
    ),
    "bug": Quiz(
        "A colleague hides the padding like this. It runs, and the padding gets no weight. What is wrong?",
        options={
            "Nothing: hidden is hidden": "Sum a row of the weights: it is below one, by what the hidden words took.",
            "The visible weights of a row no longer sum to one, and hidden scores still change them": "The hidden "
            "words have taken their share in the softmax's denominator: a leak. Dividing each row by its sum "
            "afterwards would repair it; $-\\infty$ before the softmax does so from the start.",
            "The gradient becomes NaN": "It stays finite, and so the mistake can live in a program for a long time.",
        },
        answer=1,
        kind="bug",
        code="""
scores = q @ k.mT / d**0.5
weights = scores.softmax(dim=-1)
weights = weights.masked_fill(~mask, 0.0)
return weights @ v
""",
    ),
    "looks": Quiz(
        "A model translates perfectly, yet half of its links are wrong by the gold alignment. The likeliest reason?",
        options={
            "That cannot be: a good translation needs a good alignment": "The loss asks for the right words only. "
            "Where the model looks is its own affair.",
            "It looks at a neighbour of the right word, whose state knows that word, too": "The encoder reads from "
            "both ends, so a state knows its neighbours. A bright square says what was *read*, not why a word was "
            "chosen.",
            "Its vocabulary is too small": "Then the translation would suffer first.",
        },
        answer=1,
    ),
    "order": Quiz(
        "*the dog bites the man* and *the man bites the dog*, without position codes: what does self-attention (no "
        "mask) return for *bites*?",
        options={
            "The same vector in both": "Its set of words is the same, and so is its average. A mean over all words is "
            "the same, too: a classifier on top of it could not tell who bites.",
            "Two different vectors": "It sees the same *set* of words in both, and nothing says where they stand.",
            "Zeros": "It looks at all words; nothing is hidden from it.",
        },
        answer=0,
    ),
    "price": Number(
        "A layer has $n = 4096$ positions of width $d = 512$. By which factor is the work of self-attention, $n^2 d$, "
        "larger than that of a recurrent layer, $n d^2$?",
        answer=8,
        why="$n^2 d \\,/\\, n d^2 = n / d = 8$. They cross at $n = d$: below 512 words attention is the cheaper one.",
        near={
            64: "$(n/d)^2$: one of the two factors cancels.",
            0.125: "The other way round: here $n$ is larger than $d$.",
        },
    ),
    "layers": Number(
        "Local attention sees three words to either side. After how many layers can word 65 know about word 1?",
        answer=22,
        why="Each layer carries news 3 places on; 64 places need $64/3$, rounded up: 22. With `window` $w$ on each "
        "side it takes $(n-1)/w$ layers.",
        near={
            64: "That would be one place in a layer: a window of one word on each side.",
            21: "21 layers carry it 63 places, to word 64.",
            10: "Nearly: 7 words are visible at once, but news travels 3 places in a layer, not 7.",
        },
    ),
    "parallel": Quiz(
        "In training, a Transformer's decoder computes all words at once; in writing, one after the other. Why?",
        options={
            "The causal mask is taken off in writing": "In writing there is no future to hide; the mask changes "
            "nothing.",
            "Writing uses a smaller network": "It is the same network with the same weights.",
            "In training the right previous words are given; in writing each comes out of the step before": "Under a "
            "causal mask nothing in training waits for an *output*. A recurrent decoder still walks through its "
            "states, Luong's (without input feeding) in one call, with all looks together; Bahdanau's must alternate, "
            "for its next state needs the look before it. In writing all of them wait.",
        },
        answer=2,
    ),
    "scores": Quiz(
        "Keys 1 and 2 are equal, their values differ, and both fit the query far better than all others. The output?",
        options={
            "About the mean of the two values": "Equal keys get equal scores and equal weights, nearly 1/2 each.",
            "The value of the first": "A softmax knows no order: equal scores get equal weights.",
            "One of them at random": "Nothing is drawn: the output is a weighted average.",
        },
        answer=0,
    ),
    "gates": Quiz(
        "From an earlier lesson: what does a GRU have to carry a word over 30 steps, where a plain RNN has not?",
        options={
            "A larger state": "Both may have any size. What differs is how the state is changed.",
            "Gates that can leave parts of the state as they are": "With lesson 04's update gate $z$ at 1 the old "
            "number passes unchanged, and so does its gradient. Attention does not carry the word at all: it goes back "
            "and looks.",
            "A second reading from the end": "Any recurrent network can read from both ends; that is no GRU's own.",
        },
        answer=1,
    ),
}

BETS = {
    "bottleneck": Bet(
        "The translator above scores over 95 BLEU (100 is perfect) on sentences of 20 words and more. Its twin must "
        "pass each sentence through one vector; it was trained for 1,600 steps where this one had 1,000. What does the "
        "twin score there?",
        low=0,
        high=100,
        unit="BLEU",
    ),
    "root": Bet(
        "The same translator, trained in the same way, but nothing is divided by $\\sqrt{d_k}$ ($d_k = 192$). With the "
        "root it scores about 98 BLEU. Without?",
        low=0,
        high=100,
        unit="BLEU",
    ),
    "heads": Bet(
        "One layer of attention must tell each word both its left and its right neighbour. With one head it names 13 % "
        "of the neighbours wrong. Two heads, each half as wide: how many are wrong?",
        low=0,
        high=25,
        step=0.5,
        unit="%",
    ),
}

"""Lesson 03, Recurrent networks: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A network that reads letter by letter", 6, holds=("reader",)),
    Beat("The bet: reading against counting", 4, holds=("shared", "names")),
    Beat("Three steps, by hand", 7, holds=("state", "theta_x")),
    Beat("Write it", 24, holds=("rnn_step", "unroll", "theta_gradient", "bug")),
    Beat("Train yours", 4, holds=()),
    Beat("Look inside and break it", 25, holds=("eigenvalues", "reach", "slope", "clip", "direction", "clipping",
                                                "delayed")),
    Beat("What to remember", 5, holds=("counts", "last", "earlier")),
    Beat("Stretch: draw the next letter; then the assignment", 9, holds=("sample",), optional=True),
)  # fmt: skip

QUIZZES = {
    "shared": Quiz(
        "The network reads *oslo* and *südafrika*. How many weights does it need for the longer name, compared with "
        "the shorter one?",
        options={
            "More than twice as many: it has more than twice as many letters": "Then a name of a length that training "
            "did not have could not be read at all.",
            "As many: each letter is read by the same weights": "One cell, used once for each letter. Only the state "
            "changes. So what it learns about a letter at one place it knows at all places.",
            "Fewer: long names repeat their letters": "Repetitions make names easier to guess, not weights fewer.",
        },
        answer=1,
    ),
    "state": Number(
        "A fourth input comes, $x_4 = -1$, with $\\theta_c = 0.5$ and $\\theta_x = 2$. What is $A_4$?",
        answer=1.25,
        tolerance=0.01,
        why="$0.5 \\cdot 6.5 + 2 \\cdot (-1) = 1.25$. Of the first input, one eighth of its 2 is left.",
        near={
            4.5: "The old state is kept by half: $\\theta_c A_3 = 3.25$.",
            2.25: "The input counts twice: $\\theta_x x_4 = -2$.",
            5.25: "The input is negative.",
        },
    ),
    "theta_x": Number(
        "The same errors, $\\delta_3 = 0.5$, $\\delta_2 = 0.25$, $\\delta_1 = 0.125$, and the inputs 1, 0, 3. What is "
        "$\\partial L / \\partial \\theta_x$?",
        answer=1.625,
        tolerance=0.01,
        why="$\\theta_x$ meets $x_t$ in each step: $0.5 \\cdot 3 + 0.25 \\cdot 0 + 0.125 \\cdot 1 = 1.625$.",
        near={
            1.5: "The last step alone gives 1.5. The first input, too, went through $\\theta_x$.",
            1.0: "That is the derivative of $\\theta_c$, which meets the state before, not the input.",
            2.0: "The error of the last state does not reach the first step whole: it is halved twice.",
            0.875: "The last error belongs to the last input: $0.5 \\cdot 3$.",
        },
    ),
    "bug": Quiz(
        "A colleague's reader of names trains, and is hardly better than a guess from the last letter. Why?",
        options={
            "The head should be asked after each letter": "One answer is wanted, at the end.",
            "The weights are the same in each step": "They are meant to be.",
            "The state begins anew at each letter": "`h` is set to zeros inside of the loop: nothing is carried from "
            "letter to letter, and the last state knows the last letter only.",
        },
        answer=2,
        kind="bug",
        code="""
for t in range(x.shape[1]):
    h = torch.zeros(len(x), 128)
    h = step(x[:, t], h)
return head(h)
""",
    ),
    "slope": Quiz(
        "A state $h = \\tanh(a)$ stands at 0.99. Its slope is $1 - h^2$. By what is a gradient multiplied that goes "
        "back through it, before the matrix has its turn?",
        options={
            "About 0.02": "$1 - 0.99^2 = 0.0199$. A unit that has made up its mind lets nearly nothing through: what "
            "is saturated cannot learn.",
            "About 0.99": "That is the value. The gradient goes through the slope.",
            "Exactly 1": "So it is in the middle, at $h = 0$.",
        },
        answer=0,
    ),
    "direction": Number(
        "The gradients of two parameters are $(3)$ and $(4)$, and the limit is 1. What becomes of the 3?",
        answer=0.6,
        tolerance=0.005,
        why="Together they have the length $\\sqrt{3^2 + 4^2} = 5$. Both are multiplied by $1/5$: 0.6 and 0.8, which "
        "have the length 1 and the old direction.",
        near={
            1: "So would each gradient be cut by itself: 1 and 1 point into another direction.",
            0.4286: "The length is not the sum: $\\sqrt{9 + 16} = 5$.",
            0.12: "Divide by the length 5, not by its square.",
        },
    ),
    "delayed": Quiz(
        "Between the last English and the first French word of the translator, what does the network still know of the "
        "sentence?",
        options={
            "All its words": "They are gone: each was read and then dropped.",
            "What fits into one state": "Here 96 numbers, for five words or for fifty. Lesson 05 measures what "
            "that costs, and does something about it.",
            "The last word": "A state is made from all words; the early ones have faded.",
        },
        answer=1,
    ),
    "counts": Quiz(
        "Counts of three letters beat our RNN at names. What may the RNN do all the same that they cannot?",
        options={
            "Learn from more names": "Counts do that, too, and faster.",
            "Tell *ab* from *ba*": "Three letters in a row are an order.",
            "Connect letters that stand far apart": "A run of three sees nothing beyond. Whether the RNN *does* is "
            "another matter: its gradient has to get there.",
        },
        answer=2,
    ),
    "last": Quiz(
        "*I moved to Germany when I was a child, and though I have travelled a lot since then, I speak German "
        "fluently.* Why is it hard to learn that *Germany* makes *German* likely?",
        options={
            "The gradient from *German* to *Germany* passes some twenty matrices and slopes": "It has vanished before "
            "it arrives. What does not arrive is not learned, however many such sentences are read.",
            "There are too many languages": "Twelve or two hundred: a softmax does not mind.",
            "The sentence has no label": "The next word is the label.",
        },
        answer=0,
    ),
    "earlier": Quiz(
        "A recurrent network uses the same weights at each *time*. Which network of lesson 01 uses the same weights at "
        "each *place*, and for the same reason?",
        options={
            "The linear head": "It has a weight of its own for each feature.",
            "The convolution": "A filter slides over the picture as a cell goes along time: what it has learned at one "
            "place it knows everywhere, and the picture may have any size.",
            "Batch normalisation": "It uses the same mean at all places, and learns hardly anything.",
        },
        answer=1,
    ),
}

BETS = {
    "names": Bet(
        "Names in twelve languages, some 550 of each to learn from. A table of how often which three letters follow "
        "one another in which language names 81 % of new ones right. Yours is an RNN and reads each of them a dozen "
        "times. How many does it name right?",
        low=0,
        high=100,
        unit="%",
    ),
    "reach": Bet(
        "A network without tanh, whose matrix makes every vector shorter by a tenth. How much of a gradient is left "
        "50 steps back?",
        low=0,
        high=100,
        step=0.5,
        unit="%",
    ),
    "clipping": Bet(
        "An RNN starts with radius 1.15 and large steps, and its numbers explode. Same start, same steps, but each "
        "gradient that is longer than 1 is cut to length 1. What happens?",
        options=("It explodes all the same, only later", "It learns", "It stands still: such steps are too small"),
    ),
}

"""Lesson 04, LSTM and GRU: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A network that reads along", 5, holds=("reader",)),
    Beat("The bet: what decides whether it remembers?", 3, holds=("first_symbol",)),
    Beat("One cell, by hand", 17, holds=("shapes", "machine")),
    Beat("Write it", 24, holds=("lstm_step", "bug", "forget_backward", "left", "long_bias")),
    Beat("Train yours", 6, holds=("opened",)),
    Beat("Look inside and break it", 16, holds=("quotes", "trap", "keep", "characters", "masked_steps")),
    Beat("What to remember", 4, holds=("pays", "earlier")),
    Beat("Stretch: the GRU; then the assignment", 10, holds=("gru_step",), optional=True),
)

QUIZZES = {
    "left": Number(
        "A forget gate stands at 0.9 in every step, and nothing is written. How much of the number that was in the "
        "cell is left after 50 steps, in percent?",
        answer=0.515,
        tolerance=0.08,
        why="$0.9^{50} = 0.005$, half a percent. With 0.99 it is 61 %. A gate that looks nearly open is not open "
        "enough for long: what counts is its distance from 1.",
        near={
            45: "Each step takes a tenth of what is *left*: the factors multiply, $0.9 \\cdot 0.9 \\cdots$",
            90: "That is after one step.",
        },
    ),
    "shapes": Number(
        "A letter comes as a vector of 64 numbers, and the state has 128. What maps the one to the other is $W$, and "
        "there are four of it, for i, f, g and o; beside them four $U$ and four $b$. How many parameters is that?",
        answer=98816,
        tolerance=520,  # with PyTorch's second biases
        why="Each gate has $128 \\times 64$ for the input, $128 \\times 128$ for the state and 128 biases: 24,704. "
        "Times four. The gate must have 128 numbers, since it multiplies the cell number by number. PyTorch keeps two "
        "biases, which add up: 512 more.",
        near={
            24704: "That is one gate; there are four.",
            65536: "The inputs have matrices, too: $128 \\times 64$ for each gate.",
            33280: "The state has matrices, too: $128 \\times 128$ for each gate.",
        },
    ),
    "bug": Quiz(
        "A colleague's LSTM learns, but forgets on long texts. What is wrong?",
        options={
            "The gates should be tanh": "Gates say *how much*, from 0 to 1. A tanh would also be able to turn signs.",
            "The cell goes through a tanh in every step": "The line of `c` squashes the cell, and its slope multiplies "
            "the gradient, step after step: the highway is gone. The tanh belongs into `h` alone.",
            "The forget gate should be $1 - i$": "That is a GRU's habit. Here both are free.",
        },
        answer=1,
        kind="bug",
        code="""
i, f, g, o = gates(x, h)          # sigmoid, tanh for g
c = torch.tanh(f * c + i * g)
h = o * c
""",
    ),
    "opened": Quiz(
        "With an open forget gate the input gate starts nearly shut. Why?",
        options={
            "Else the sum of both gates would exceed 1": "In an LSTM they are free; it is the GRU that shares out 1.",
            "Else the cell adds up all fifty symbols": "Nothing would be forgotten, nor would the disturbance. Writing "
            "little at first lets the network learn *when* to write.",
            "Else the gradient explodes": "Along the cell it is multiplied by f, which never exceeds 1. Along the side "
            "roads it can.",
        },
        answer=1,
    ),
    "trap": Quiz(
        "A unit tells *inside a bracket* from *outside* with an AUC of 0.95. What do you try first?",
        options={
            "A text where brackets stand, and the score just behind them": "Where the two explanations disagree. A "
            "unit that counts since the last bracket, of either kind, will fail there.",
            "A larger test text": "It would say 0.95 again, more exactly.",
            "Nothing: 0.95 is a lot": "So was 0.998. A score cannot tell apart what its test does not.",
        },
        answer=0,
    ),
    "keep": Quiz(
        "Which gate of a GRU, as written here, plays the forget gate?",
        options={
            "$r$, the reset gate": "It decides how much of the old state the *proposal* $n$ may see.",
            "$n$": "It is the proposal, a tanh; no gate.",
            "$z$, the update gate": "$h_t = (1-z)\\,n + z\\,h_{t-1}$: with $z$ at 1 the old state stays. In other "
            "papers (Chung et al. 2014) and some libraries $z$ and $1-z$ change places: look before you set a bias.",
        },
        answer=2,
    ),
    "pays": Quiz(
        "When do gates pay?",
        options={
            "Always: they are more than an RNN": "Not on our prose: RNN and LSTM reach the same bits, and an 8-gram "
            "beats both.",
            "When something far back decides, and the start lets the gradient get there": "As with the first of fifty "
            "symbols. The gates alone do not do it: with a bias of 1 they failed at 50, as the RNN did.",
            "Never: the RNN did as well": "With fifty symbols in between it did not.",
        },
        answer=1,
    ),
    "earlier": Quiz(
        "From lesson 03: gradients can also explode. Does an LSTM need clipping?",
        options={
            "No: $f$ never exceeds 1": "Along the cell nothing grows. But each gate also reads $h_{t-1}$ through $U$, "
            "and along that path it can.",
            "Yes: $h$ still goes through $U$ in each step": "The highway is safe, the side roads are not. All "
            "trainings of this page clip, as those of lesson 03 did.",
            "No: the tanh keeps everything small": "A tanh bounds *states*. Lesson 03 showed bounded states whose "
            "gradients explode.",
        },
        answer=1,
    ),
}

BETS = {
    "first_symbol": Bet(
        "An LSTM whose forget gates start with a bias of 1, as Keras sets it, reads 50 symbols and is asked "
        "for the first. It has 2,000 steps to learn it; a guess is right in 10 %. How often is it right?",
        low=0,
        high=100,
        unit="%",
    ),
    "quotes": Bet(
        "Unit 96 tells characters *in quotes* from all others with an AUC of 0.998. Now only those just behind a "
        "quotation are compared with those in it. 0.5 is a guess, 1 is perfect. The AUC?",
        low=0.5,
        high=1,
        step=0.01,
        unit="AUC",
    ),
    "characters": Bet(
        "Counting which character follows which four (a 5-gram) needs 1.76 bits for each character of our test text, "
        "the RNN of lesson 03 needs 1.70. And an LSTM with as many parameters, as long to learn, "
        "and its own best learning rate?",
        low=1.2,
        high=2.2,
        step=0.01,
        unit="bits",
    ),
}

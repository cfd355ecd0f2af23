"""Lesson 01, Transfer learning: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("Six digits, and a seventh", 6, holds=("six",)),
    Beat("The bet: what are old features worth?", 4, holds=("transfer", "guess")),
    Beat("One convolution, by hand", 5, holds=("weights", "output")),
    Beat("Write it: deeper, with a way around", 13, holds=("conv_size", "residual_block", "depth", "copy")),
    Beat("Train yours on 40 labels", 13, holds=("freeze", "parameter_groups", "moves")),
    Beat("Look inside and break it", 12, holds=("patches", "probes", "certain", "bug", "accidents", "stages")),
    Beat("What to remember", 4, holds=("which", "earlier")),
    Beat("Stretch: the bottleneck's bill; then the assignment", 11, holds=("bottleneck_params",), optional=True),
)

QUIZZES = {
    "guess": Number(
        "The new task has the digits 6, 7, 8 and 9, equally often. Which share does a network name right that has "
        "learned nothing, in percent?",
        answer=25,
        tolerance=0.5,
        why="One of four. Every number of the new task is to be read against it.",
        near={10: "There are four digits to choose from, not ten.", 0: "It guesses, and sometimes rightly."},
    ),
    "weights": Number(
        "A convolution with kernels of 3 x 3 turns 16 channels into 24. How many weights has it, without a bias?",
        answer=3456,
        why="Each of the 24 output channels looks at 3 x 3 places of all 16 channels: $24 \\cdot 16 \\cdot 9 = 3456$. "
        "The size of the picture does not matter.",
        near={
            216: "$24 \\cdot 9$: each kernel also reaches through all 16 input channels.",
            384: "$24 \\cdot 16$: that is a kernel of 1 x 1.",
            144: "$16 \\cdot 9$ is one output channel; there are 24.",
        },
    ),
    "output": Number(
        "A picture of 32 x 32 pixels, a kernel of 5 x 5, stride 2, padding 2. How many places a side has the map?",
        answer=16,
        tolerance=0.2,
        why="$\\lfloor (32 + 2 \\cdot 2 - 5) / 2 \\rfloor + 1 = \\lfloor 15.5 \\rfloor + 1 = 16$.",
        near={
            15: "The kernel's first place counts, too: add 1.",
            17: "Rounded up: where the kernel would hang over the border, there is no place.",
            32: "That is with stride 1.",
        },
    ),
    "copy": Quiz(
        "A residual block should leave its input (which is never negative) as it is. What must its convolutions do?",
        options={
            "Learn the identity, exactly": "That is what a *plain* block must do, through two convolutions and a ReLU.",
            "Return zeros": "$F(x) = 0$ gives $x$. One setting is enough: the scale of the block's last norm at zero. "
            "Many networks begin there (Goyal et al. 2017); ours begin at one.",
            "It cannot: something is always added": "What is added may be nothing.",
        },
        answer=1,
    ),
    "moves": Quiz(
        "All parameters of the trunk have `requires_grad=False`, and `model.train()` is on. What still changes in it?",
        options={
            "BatchNorm's running mean and variance": "They are no parameters but *buffers*, and each batch in training "
            "mode moves them. And in training mode a picture's features depend on its neighbours in the batch.",
            "Nothing": "The optimiser leaves it alone, and yet the statistics go on.",
            "The convolutions, through momentum": "Without a gradient the optimiser skips them.",
        },
        answer=0,
    ),
    "certain": Quiz(
        "A network is 100 % certain that a picture of noise is a 3. What does that show?",
        options={
            "The network is broken": "It names over 95 % of real scenes right.",
            "There is a 3 hidden in it": "Some of its strokes, perhaps; but speckle raises the score as well.",
            "Far from what it was trained on, certainty is no evidence": "It must always choose among its digits, and "
            "was never told what is none.",
        },
        answer=2,
    ),
    "bug": Quiz(
        "A colleague trains a new head on a frozen trunk. It runs without an error, and the head never gets any "
        "better. Why?",
        options={
            "The rate is too low": "It would get better, slowly.",
            "A frozen trunk cannot be trained on top of": "It can: that is feature extraction.",
            "The optimiser holds another head": "It was given the parameters of the *old* head; the new one came "
            "later, and nobody moves it. First the head, then the optimiser.",
        },
        answer=2,
        kind="bug",
        code="""
freeze(trunk)
optimiser = AdamW(model.head.parameters(), lr=1e-2)
model.head = nn.Linear(96, 4)
train(model, optimiser, pictures, labels)
""",
    ),
    "which": Quiz(
        "You have 20 labelled X-ray pictures in each of two classes, and a network trained on a million photographs. "
        "What first?",
        options={
            "Train a network of your own from scratch": "Forty labels from scratch were hardly better than guessing.",
            "Freeze its trunk and train a new head": "Few labels: move little. It is quick and hard to spoil; slow "
            "fine-tuning with rates by layer may do better, as with our 40. And look whether the features fit: an "
            "X-ray is no photograph.",
            "Fine-tune everything at a high rate": "That wiped out what one wanted to keep.",
        },
        answer=1,
    ),
    "earlier": Quiz(
        "From lesson 00: what do we call what training changes, and what stays fixed meanwhile?",
        options={
            "Parameters; the architecture": "A frozen trunk turns some parameters back into wiring: fixed, but learned "
            "once before.",
            "The architecture; parameters": "The other way round.",
            "The loss; the data": "Neither is changed by a step of training: the parameters are.",
        },
        answer=0,
    ),
}

BETS = {
    "transfer": Bet(
        "40 labels of the new task. Trained from scratch, the network names about 27 % right (guessing: 25 %). And a "
        "new head on the frozen trunk that has only ever seen 0 to 5?",
        low=20,
        high=100,
        unit="%",
    ),
    "depth": Bet(
        "A plain net of 8 layers names practically all its *training* digits right. One of 44 layers, plain too, 1,200 "
        "steps: how many, in the *worst* of three seeds?",
        low=50,
        high=100,
        unit="%",
    ),
    "probes": Bet(
        "Is the ink brighter than the ground? From the plain pixels a probe answers over 90 % right. And from the last "
        "stage of the network that was trained to name digits (always the commoner answer: 62 %)?",
        low=50,
        high=100,
        unit="%",
    ),
}

"""Lesson 09, Scaling laws: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("Spend your computing", 5, holds=("compute",)),
    Beat("The bet: what does ten times more buy?", 5, holds=("knobs", "tenfold")),
    Beat("Six operations, by hand", 6, holds=("sixfold", "gpt3")),
    Beat(
        "Write it: a straight line, and how sure it is",
        28,
        holds=("training_cost", "power_law", "bootstrap_interval", "fit"),
    ),
    Beat("Train yours: nine models", 4, holds=("mini",)),
    Beat("Look inside and break it", 16, holds=("tenfold", "shape", "best_size", "predicted", "bug", "split")),
    Beat("What to remember", 4, holds=("floor", "earlier")),
    Beat("Stretch: spend it well; then the assignment", 11, holds=("allocation",), optional=True),
)

QUIZZES = {
    "knobs": Quiz(
        "A model is trained on twice as much text, everything else as before. The computing for it ...",
        options={
            "doubles": "Each token costs the same: 6 operations for each weight, forwards and backwards.",
            "grows fourfold": "That would need twice the parameters, too.",
            "stays as it was": "Faster machines change the seconds, not the number of operations.",
        },
        answer=0,
    ),
    "sixfold": Number(
        "A model of 1,000 parameters reads 10,000 tokens once, in training. How many operations is that, in millions?",
        answer=60,
        tolerance=0.6,
        why="$6 \\cdot 1{,}000 \\cdot 10{,}000 = 60{,}000{,}000$: forwards 2 for each weight and token (a product "
        "and a sum), backwards 4.",
        near={
            20: "That is the forward pass alone.",
            10: "One operation for each weight and token; it is six.",
            30: "A product and a sum are two operations.",
        },
    ),
    "gpt3": Number(
        "GPT-3 has 175 billion parameters and has read 300 billion tokens (Brown et al. 2020). Its training took $6 "
        "N D = x \\cdot 10^{23}$ operations. What is x?",
        answer=3.15,
        tolerance=0.05,
        why="$6 \\cdot 1.75 \\cdot 10^{11} \\cdot 3 \\cdot 10^{11} = 3.15 \\cdot 10^{23}$. The paper counted $3.14 "
        "\\cdot 10^{23}$ (table D.1).",
        near={
            0.525: "Times 6.",
            31.5: "Ten times too much: $10^{11} \\cdot 10^{11} = 10^{22}$.",
            1.05: "The forward pass alone.",
        },
    ),
    "split": Quiz(
        "You get a hundred times the computing. By Hoffmann et al. (2022), how should you spend it?",
        options={
            "100 times the parameters, the same text": "Not even Kaplan et al. would: their advice was about 29 times "
            "the parameters, and 3.5 times the text.",
            "10 times the parameters, 10 times the text": "Both exponents are about one half: $100^{0.5} = 10$. "
            "Chinchilla, with a quarter of Gopher's parameters and four times its text, was better at the same cost. "
            "(Our tiny ones: 10 to 18 times the parameters.)",
            "The same model, 100 times the text": "Then the model's size is what limits the loss.",
        },
        answer=1,
    ),
    "bug": Quiz(
        "Somebody finds that the *largest* model is worse than three smaller ones. What went wrong?",
        options={
            "Larger models overfit": "Each token was read about once: there is nothing to overfit.",
            "The laws hold for large models only": "They hold from a few thousand parameters on.",
            "One learning rate for all sizes": "Tuned for width 12 it is 0.02. With that rate, after 400,000 tokens, "
            "widths 12 to 64 reach 2.22, 1.96, 1.81, 1.78, and then 2.09; with its own 0.005 the widest has 1.72.",
        },
        answer=2,
        kind="bug",
        code="""
rate = best_rate(width=12)
for width in (12, 20, 32, 48, 64):
    model = GPT(width)
    loss[width] = train(model, rate, tokens)
""",
    ),
    "floor": Quiz(
        "The law is $L = E + A / N^\\alpha + B / D^\\beta$. What is E?",
        options={
            "The loss of the best model that was trained": "It is below all of them.",
            "What no model of any size could do better": "What is left for such models, which see 32 characters at "
            "once, with endless size and text: no less than the text's entropy. It is extrapolated far beyond the "
            "runs, and its interval is wide.",
            "The error of the fit": "That is what is left over between law and runs.",
        },
        answer=1,
    ),
    "earlier": Quiz(
        "From lesson 08: the loss is 1.6 nats per character. How many bits is that?",
        options={
            "1.1": "That is $1.6 \\cdot \\ln 2$; it goes the other way.",
            "2.3": "$1.6 / \\ln 2 = 2.3$. A bit is $\\ln 2 = 0.693$ nats.",
            "1.6": "A nat is more than a bit.",
        },
        answer=1,
    ),
}

BETS = {
    "tenfold": Bet(
        "You take the best model that your computing buys. With **ten times** as much computing, spent as well: by "
        "how many per cent does the loss, in nats per character, fall?",
        low=0,
        high=90,
        unit="%",
    ),
    "shape": Bet(
        "Four models with about 25,000 parameters: one block that is 44 wide, two of 32, four of 24, eight of 16. "
        "The same text for each. By how much does the best loss differ from the worst?",
        low=0,
        high=50,
        unit="%",
    ),
    "predicted": Bet(
        "The largest of our 25 runs reached about 1.35 nats. One more has 2.2 times its parameters, and reads our "
        "two million characters twice instead of once. What loss, in nats? The law, fitted to the 25, makes its own "
        "guess.",
        low=1.0,
        high=1.4,
        step=0.01,
        unit="nats",
    ),
}

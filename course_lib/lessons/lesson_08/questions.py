"""Lesson 08, GPT: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A network that goes on writing", 7, holds=("guess",)),
    Beat("The bet: learning against counting", 4, holds=("decoder", "bits")),
    Beat("One text, many guesses, by hand", 5, holds=("perbyte", "examples")),
    Beat("Write it", 15, holds=("shifted_loss", "causal_block", "fair")),
    Beat("Train yours", 4, holds=()),
    Beat("Look inside and break it", 33, holds=("top_p", "temperature", "knobs", "writer", "cached_step", "bug",
                                                "induction", "copy")),
    Beat("What to remember", 5, holds=("scale", "knows", "masked")),
    Beat("Stretch: perplexity, a decoder of today; then the assignment", 12, holds=("perplexity",), optional=True),
)  # fmt: skip

QUIZZES = {
    "decoder": Quiz(
        "GPT is the decoder of lesson 06 with one part taken out. Which?",
        options={
            "The causal mask": "Without it each place could read the token that it is asked for.",
            "The look at a source (cross-attention)": "There is no second text. What was two sublayers of attention "
            "becomes one, and the block is that of an encoder under a causal mask.",
            "The positions": "Without positions a causal mask alone would have to tell the order.",
        },
        answer=1,
    ),
    "perbyte": Number(
        "The model gives the right token a probability of 1/8. The token is ` function`, nine bytes with its space. "
        "How many bits per byte are that?",
        answer=0.333,
        tolerance=0.01,
        why="$-\\log_2 \\tfrac18 = 3$ bits for the token, shared by nine bytes: $3/9 = 0.33$. A model is charged for "
        "what it did not expect, and the bytes make models with different tokens comparable.",
        near={
            3: "Those are the bits of the whole token; nine bytes share them.",
            0.231: "That is in nats, $\\ln 8 / 9$. A bit is $\\ln 2 = 0.69$ nats.",
            0.375: "The space before the word belongs to the token: nine bytes, not eight.",
        },
    ),
    "examples": Number(
        "A window of 64 tokens goes through the model once. For how many next tokens is there a guess and an answer?",
        answer=63,
        tolerance=0.4,
        why="Each place but the last has its next token inside the window: 63 guesses for one pass. BERT, which hides "
        "15 %, gets some ten out of the same window.",
        near={
            64: "The last place makes a guess, too, but its answer stands outside the window.",
            1: "That would be a model that only guesses at the end. Under the causal mask every place guesses.",
        },
    ),
    "fair": Quiz(
        "GPT A works on characters and has a perplexity of 3.5, GPT B works on tokens and has one of 24. Which is the "
        "better model of the text?",
        options={
            "A: its perplexity is lower": "It chooses among some eighty characters, B among a thousand tokens. They do "
            "not answer the same question.",
            "B: tokens are the better unit": "They may be, but 24 does not say so.",
            "That cannot be said without the bytes of a token": "At three bytes a token B has $\\log_2 24 / 3 = 1.53$ "
            "bits per byte, A, at one, $\\log_2 3.5 = 1.81$. At two bytes a token A would win. Perplexities compare "
            "models with the same tokens only.",
        },
        answer=2,
    ),
    "temperature": Number(
        "One token has $e^2 = 7.4$ times the probability of another. The temperature goes down to $T = 0.5$. How many "
        "times is it now?",
        answer=54.6,
        tolerance=0.6,
        why="Logits are divided by $T$: a difference of 2 becomes 4, and $e^4 = 54.6$. At $T = 2$ it would be "
        "$e^1 = 2.7$. The order of the tokens never changes.",
        near={
            14.8: "The *logits* are multiplied by two, not the probabilities: a ratio is squared.",
            2.72: "That is $T = 2$: dividing by 0.5 makes differences larger.",
            3.7: "The *logits* change, by a factor of two, and a ratio is squared.",
        },
    ),
    "bug": Quiz(
        "A colleague adds a cache. `q` holds the new token only, `k` and `v` all of them. The text becomes nonsense. "
        "Why? (`tril` keeps what is on and below the diagonal.)",
        options={
            "The new token sees only the first one": "The mask has one row, that of place 0. It has to be the *last* "
            "row: query $i$ of $n$ new ones stands at place $T - n + i$. `is_causal=True` of PyTorch is the same trap: "
            "it counts from the upper left corner.",
            "The old keys are out of date": "They do not change: no token sees a later one.",
            "The scale must grow with the length": "It depends on the width of a head alone.",
        },
        answer=0,
        kind="bug",
        code="""
seen = torch.ones(len(q), len(k), dtype=torch.bool).tril()
scores = q @ k.T / q.shape[-1] ** 0.5
scores = scores.masked_fill(~seen, -torch.inf)
return scores.softmax(dim=-1) @ v
""",
    ),
    "copy": Quiz(
        "Why can one layer, however many heads it has, not look up what followed a symbol the last time?",
        options={
            "It has too few parameters": "With two heads it has as many as the two layers, and does no better.",
            "A softmax can look at one place only": "It can look anywhere, and two heads at two places.",
            "Its keys know their own symbol and place, not the symbol before them": "To be found as *the one after B*, "
            "a place must first have been told that B stood before it. Only a layer below can do that.",
        },
        answer=2,
    ),
    "scale": Quiz(
        "Our 8-gram beats our GPT on characters. What happens to both with a thousand times the text?",
        options={
            "Both improve alike": "A table has to have *seen* a context, letter by letter. Most contexts of twenty "
            "letters are new in any text.",
            "The table grows with the text and still knows only what it has seen; a GPT finds what contexts have in "
            "common": "What it learns about one word serves all words like it, and a large one reads "
            "thousands of tokens back. Lesson 09 measures how far that carries.",
            "The table wins by more": "Longer contexts help a table less and less: most of them it has never seen.",
        },
        answer=1,
    ),
    "knows": Quiz(
        "*Paris is the capital of* is continued with words about functions and paths. What is the likeliest reason?",
        options={
            "Its temperature was too high": "It was written with the likeliest token each time.",
            "In its two million characters, docstrings, nothing asks for geography": "It models the text that it has "
            "seen. A prompt chooses among what was learned; it does not teach facts.",
            "The prompt is too short": "A longer one cannot call up what was never read.",
        },
        answer=1,
    ),
    "masked": Quiz(
        "From lesson 07: BERT guesses hidden words from both sides, and learns from 15 % of them. What does it get "
        "for that?",
        options={
            "A representation of each word that has seen the whole sentence": "Good for tagging and for searching. "
            "What it cannot do is write from left to right: each of its states has seen what comes next.",
            "More training examples from the same text": "Fewer: GPT learns from every token.",
            "A text of its own, from left to right": "That is GPT's: its states never saw the future.",
        },
        answer=0,
    ),
}

BETS = {
    "bits": Bet(
        "A table of how often which token follows which, counted in a moment, needs about 1.9 bits per byte of "
        "the test text. Your GPT will train for 1,500 steps, some 20 seconds. How many bits does it need?",
        low=1,
        high=4,
        step=0.1,
        unit="bits per byte",
    ),
    "knobs": Bet(
        "The model writes 64 tokens and takes the likeliest each time. Which share of its runs of four tokens stood in "
        "the same text before? (In text by people it is about two in a hundred.)",
        low=0,
        high=100,
        unit="%",
    ),
    "induction": Bet(
        "A row of random symbols comes a second time. Two layers of attention learn to go on rightly in 400 steps, "
        "nearly always. One layer gets 1,600 steps (in our training; here it gets 400). How many symbols does it name "
        "right?",
        low=0,
        high=100,
        unit="%",
    ),
}

"""Lesson 15, Transformers everywhere: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("One architecture, seven fields", 7, holds=("timeline", "map")),
    Beat("Language: everything is text", 11, holds=("corrupt", "target", "gaps")),
    Beat("Speech: when nobody says when", 10, holds=("paths", "collapse", "bug", "spikes", "heard")),
    Beat("Control: ask for the return", 14, holds=("to_go", "walked", "asked", "walker")),
    Beat("Pictures and words", 10, holds=("gated", "gate", "layouts", "stream")),
    Beat("Cheaper, and where it began", 13, holds=("linear_step", "recurrence", "state", "cheap", "dreams", "history")),
    Beat("What to remember", 4, holds=("shared", "back")),
    Beat("Stretch: sum over all paths; then the assignment", 13, holds=("forward_step",), optional=True),
)

QUIZZES = {
    "target": Number(
        "A text of 20 tokens loses two spans, one of 2 tokens and one of 3. How many tokens has the *target*, "
        "closing sentinel included?",
        answer=8,
        why="Five missing tokens, a sentinel before each of the two spans, one at the end: $5 + 2 + 1 = 8$. The "
        "source has $20 - 5 + 2 = 17$. BERT would have read 20 and scored 20 places; here what is written is short.",
        near={
            7: "Nearly: one more sentinel says that the last span is over.",
            5: "Those are the missing tokens. Who says which gap they belong to?",
            17: "That is the source.",
        },
    ),
    "paths": Number(
        "Three frames, the text *ab*. How many paths of *a*, *b* and blank give it?",
        answer=5,
        why="aab, abb, ab_, a_b, _ab. CTC trains on the **sum** of their probabilities: none of them is the right "
        "one. *aa* in three frames has one path only, a_a.",
        near={
            2: "Those without a blank: aab, abb. Count those with one, too.",
            3: "Those with a blank. aab and abb count, too.",
            27: "That is all paths of three symbols over three frames. Most of them give another text.",
        },
    ),
    "bug": Quiz(
        "A colleague's last step of CTC spells *CEG* rightly, but of *CC* it makes *C*. Why?",
        options={
            "The network cannot hear two equal tones": "It does: its path is C C _ C.",
            "It drops blanks first": "C C _ C becomes C C C, and then one C. First repetitions are merged, then blanks "
            "go: the blank is what keeps two equal symbols apart.",
            "The loop begins at the second symbol": "It compares each symbol with the one before; the first one is "
            "kept.",
        },
        answer=1,
        kind="bug",
        code="""
path = [s for s in path if s != 0]
text = path[:1]
for before, now in zip(path, path[1:]):
    text += [now] if now != before else []
""",
    ),
    "stream": Quiz(
        "In one stream, 16 patches of a picture come first, then 8 words, with GPT's causal mask. What does the "
        "first patch see when it is computed?",
        options={
            "Nothing but itself": "Each token sees those before it. For a picture no order is natural, so some models "
            "let all patches see each other; ours keeps GPT as it is.",
            "All patches, no words": "That needs another mask, one that opens the block of the picture.",
            "Everything": "Then a word would see the words that it shall predict.",
        },
        answer=0,
    ),
    "state": Number(
        "A head has 16 features for keys and 64 for values. After 1,000 tokens, how many numbers does *linear* "
        "attention keep of the past (one matrix, one vector)?",
        answer=1040,
        why="$16 \\cdot 64 + 16 = 1040$, after 1,000 tokens as after one. Softmax keeps $(16 + 64) \\cdot 1000 = "
        "80{,}000$, and 80 more with each token.",
        near={
            1024: "The matrix. The denominator needs a vector of 16, too.",
            80000: "Those are all keys and values: what softmax keeps.",
        },
    ),
    "shared": Quiz(
        "T5, Conformer, Decision Transformer, Flamingo: what is the *same* in all of them?",
        options={
            "The tokens": "Words, frames of sound, returns and states, regions of a picture: nothing could differ "
            "more.",
            "The loss": "CTC sums over paths, the others predict a next token or action.",
            "Attention over a row of vectors, and blocks that add to it": "What a field needs of its own goes in at "
            "the ends: how things become vectors, what may see what, what is asked at the end.",
        },
        answer=2,
    ),
    "back": Quiz(
        "From lesson 04: the LSTM's cell is a memory of fixed size with gates. Which of today's models is nearest to "
        "that?",
        options={
            "The Decision Transformer": "It sees its last two steps in full: a short memory, but no state.",
            "Linear attention, read step by step": "Its sums are a memory of fixed size. But it only adds: it has no "
            "gate to forget with. Later models put one back in.",
            "Flamingo": "It has gates, but they open to a picture, and stay as they are from word to word.",
        },
        answer=1,
    ),
}

BETS = {
    "gaps": Bet(
        "Five tasks, 300 examples of each. A small T5 that starts from scratch answers about half of the test "
        "questions exactly right. Its twin has filled gaps in plain text before. How many does the twin get right?",
        low=0,
        high=100,
        unit="%",
    ),
    "asked": Bet(
        "Of 1,600 walks through a maze one in five is as short as can be; the others wander, and nearly half never "
        "arrive. An MLP that imitates all of them reaches the goal in about 15 % of its walks. A Decision "
        "Transformer learns from the same walks, and is asked for the best return. How many of its walks reach the "
        "goal?",
        low=0,
        high=100,
        unit="%",
    ),
    "gate": Bet(
        "All gates of a trained Flamingo are set to 0. What does it write under four pictures?",
        options=(
            "Nothing: the end sign at once",
            "Right captions, a little worse",
            "The same good caption under all of them",
            "Words in disorder",
        ),
    ),
    "cheap": Bet(
        "Softmax attention compares each character with all before it; linear attention only updates its sums. In a "
        "small GPT (2 layers, heads of 32 features), from how many characters on does the linear one need fewer "
        "operations? (Counted as it is run here: softmax with its masked half, linear attention in blocks of 32.)",
        low=0,
        high=512,
        unit="characters",
    ),
    "history": Bet(
        "A stack of Boltzmann machines learns from 1,100 digits without labels. Then 100 labels come. Which is best "
        "with these?",
        options=(
            "The stack, fine-tuned: that made deep learning famous in 2006",
            "The same net from scratch, or a linear probe on the pixels",
            "A linear probe on the stack's features",
        ),
    ),
}

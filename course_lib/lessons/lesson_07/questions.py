"""Lesson 07, BERT: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("Fill the blank", 6, holds=("blank",)),
    Beat("The bet: what can be learned without labels?", 5, holds=("few_labels", "both_sides")),
    Beat("Pieces, gaps and pairs by hand", 9, holds=("masking", "swapped", "nats")),
    Beat("Write it", 31, holds=("longest_match", "mask_words", "hidden_loss", "pack_pair", "bug")),
    Beat("Train yours", 5, holds=("training",)),
    Beat("Look inside and break it", 15, holds=("zero_shot", "parallel", "agreement", "meaning", "matthews", "search")),
    Beat("What to remember", 4, holds=("generate", "pretext", "encoder")),
    Beat("Stretch: a vector for a sentence; then the assignment", 10, holds=("mean_pooling",), optional=True),
)

QUIZZES = {
    "both_sides": Quiz(
        "Why not simply take the causal mask off a language model, and let it predict each next word from both sides?",
        options={
            "Each word could see itself, and would only have to copy": "Through two layers every word reaches every "
            "place: the answer stands in the input. Hence the gaps: what is to be guessed is taken away first.",
            "It would be too slow": "It costs the same: attention computes all pairs anyway, and the mask hides half.",
            "Words on the right do not help": "They do. *The ____ signs the law* and *the ____ barks* differ only "
            "on the right.",
        },
        answer=0,
    ),
    "swapped": Number(
        "A text has 1,000 words. By BERT's rule, how many of them does the model see replaced by a *random* word?",
        answer=15,
        tolerance=0.5,
        why="15 % are chosen, 150 words; of these 10 % are swapped: 15. Another 15 stay as they are, 120 are hidden. "
        "All 150 are asked.",
        near={
            150: "So many are chosen. Most of them become [MASK].",
            100: "10 % of the *chosen* words, not of all.",
            120: "So many become [MASK].",
        },
    ),
    "nats": Number(
        "Two words of a sentence are hidden. The model gives the right ones the probabilities 1/2 and 1/8. What is the "
        "loss, in nats per hidden word?",
        answer=1.386,
        tolerance=0.006,
        why="$(\\ln 2 + \\ln 8)/2 = 2 \\ln 2 = 1.386$. The other words of the sentence do not enter at all.",
        near={
            2.7726: "That is the sum; the loss is the mean.",
            1.1632: "$-\\ln$ of the mean probability. The mean is taken of the logarithms.",
            2.0: "In bits. Nats have the natural logarithm.",
        },
    ),
    "bug": Quiz(
        "A colleague's BERT reaches a loss of nearly 0 within minutes, and fills blanks with nonsense. What is wrong?",
        options={
            "The learning rate": "Then the loss would be high, or jump.",
            "Padding is not hidden": "That harms a little; it does not bring the loss to 0.",
            "The answers are what the model was shown: [MASK] is the answer to [MASK]": "`given` is the text with "
            "gaps. Copying it is a perfect answer. The true words are in `tokens`.",
        },
        answer=2,
        kind="bug",
        code="""
given, masked = mask_words(tokens, noise, maskable, mask_id, words)
logits = model(given, valid=valid)
return cross_entropy(logits[masked], given[masked])
""",
    ),
    "matthews": Number(
        "Seven of ten sentences are acceptable. A program calls *all* ten acceptable. Its Matthews correlation?",
        answer=0,
        tolerance=0.004,
        why="$(TP \\cdot TN - FP \\cdot FN)/\\dots = (7 \\cdot 0 - 3 \\cdot 0)/\\dots$, taken as 0: a constant answer "
        "is worth nothing, though its accuracy is 0.7 and its F1 0.82. That is why GLUE grades CoLA so.",
        near={0.7: "That is its accuracy.", 0.8235: "That is its F1 score: flattering, for such a program."},
    ),
    "generate": Quiz(
        "You ask BERT to go on writing after *The minister*. What happens?",
        options={
            "It writes a good text: it knows both sides": "It has never had to: there was always something to the "
            "right of a gap.",
            "It can fill one [MASK] at the end; asked again and again it writes poorly": "Each gap it learned from had "
            "a right side, and most words were there. It gives no $p(w_1 \\dots w_n)$ to draw from. For writing there "
            "is lesson 08.",
            "It refuses": "It answers any gap with a distribution.",
        },
        answer=1,
    ),
    "pretext": Quiz(
        "Nobody needs missing words. What is left of the pre-training when the model is used as a tagger?",
        options={
            "The head that names words": "It is thrown away; a fresh classifier of a few hundred numbers replaces it.",
            "Nothing but the word embeddings": "So it was before (word2vec, GloVe). Here all layers are kept.",
            "The weights of all layers, as a start": "All of them learn on, for a short while, at a small rate. The "
            "gaps were only an *auxiliary task*.",
        },
        answer=2,
    ),
    "encoder": Quiz(
        "From an earlier lesson: which part of the Transformer is BERT?",
        options={
            "The decoder": "It would have a causal mask. That is GPT, lesson 08.",
            "The encoder": "Self-attention without a causal mask, MLPs, residuals: lesson 06's encoder, post-norm as "
            "there, with learned positions and a head on top.",
            "Encoder and decoder": "There is nothing to write, and so no decoder, and no cross-attention.",
        },
        answer=1,
    ),
}

BETS = {
    "few_labels": Bet(
        "Each French word is to get its part of speech, gender and number (23 tags). Logistic regression on a word, "
        "its neighbours and its ending gets 60 % right, having seen 10 labelled sentences. A fresh network: 50 %. And "
        "`bert`, which has read 20,000 sentences without a label, after the same 10?",
        low=0,
        high=100,
        unit="% right",
    ),
    "zero_shot": Bet(
        "Now `bert` sees 100 *English* sentences with their parts of speech, and is asked about *French* ones. It "
        "never saw a French label, nor a translation; always saying *noun* gets 22 %. What does it get right?",
        low=0,
        high=100,
        unit="% right",
    ),
    "agreement": Bet(
        "*Les étudiants de l'université ____ la loi*: *signent* or *signe*? The verb belongs to the students, but a "
        "singular noun stands nearer. In how many such French sentences does `bert` prefer the right form?",
        low=0,
        high=100,
        unit="%",
    ),
}

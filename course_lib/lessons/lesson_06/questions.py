"""Lesson 06, The Transformer: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A translator without recurrence", 3),
    Beat("The bet: is attention all you need?", 2, holds=("race",)),
    Beat("By hand: pieces of words, blocks of layers", 10, holds=("bpe", "layernorm")),
    Beat("Write it", 24, holds=("block", "schedule", "smooth", "smoothed_loss", "bug")),
    Beat("Train yours", 4),
    Beat(
        "Look inside and break it",
        25,
        holds=("clipped", "beam_step", "length", "explorer", "cached", "norms", "tricks"),
    ),
    Beat("What to remember", 5, holds=("family", "waits", "asks")),
    Beat("Stretch: one merge of BPE; then the assignment", 10, holds=("bpe_merge",), optional=True),
)

QUIZZES = {
    "layernorm": Number(
        "LayerNorm of $(2, 4, 4, 6)$: subtract the mean of the four numbers, divide by their standard deviation (the "
        "root of the mean squared distance). What does the last number become?",
        answer=1.414,
        tolerance=0.006,
        why="The mean is 4, the squared distances are 4, 0, 0, 4, their mean is 2: $(6 - 4)/\\sqrt 2 = 1.414$. Four "
        "numbers of *one* word: who else is in the batch does not matter, and training and writing do the same.",
        near={
            1.2247: "That divides the sum of squares by 3, as statisticians do for a sample. LayerNorm divides by 4.",
            1.0: "Divided by the variance, 2. It is divided by its root.",
            2.0: "That is only the distance from the mean: divide it by the standard deviation.",
        },
    ),
    "smooth": Number(
        "Five words are possible, $\\varepsilon = 0.1$. What probability does the smoothed target give to the right "
        "word?",
        answer=0.92,
        tolerance=0.001,
        why="$0.9 + 0.1/5 = 0.92$: of the share that is spread over *all* words the right one gets its part, too. The "
        "four others get 0.02 each.",
        near={
            0.9: "Nearly: the 0.1 is spread over all five words, the right one among them.",
            0.925: "That spreads 0.1 over the four wrong words alone. Szegedy et al. spread it over all five.",
        },
    ),
    "bug": Quiz(
        "A colleague trains a translator like this; the model is the library's, its decoder has a causal mask. Within "
        "a hundred steps the loss is nearly zero; what it writes is nonsense. Why?",
        options={
            "The decoder reads the word that it has to predict": "Row $i$ sees $y_i$ and must say $y_i$: it copies, "
            "and the causal mask allows it, for $y_i$ is no later word. Reading `target[:, :-1]` and predicting "
            "`target[:, 1:]` shifts the two by one.",
            "There is no causal mask": "The library's decoder has one. It hides *later* words, and none is needed to "
            "cheat here.",
            "Padding counts in the loss": "It should not, but that does not make a loss vanish.",
        },
        answer=0,
        kind="bug",
        code="""
source, source_valid, target, target_valid = batch
logits = model(source, target, source_valid=source_valid)
return cross_entropy(logits, target, scored=target_valid)
""",
    ),
    "clipped": Number(
        "The translation is *le le le le*, the reference *le ministre signe le traité*. What is the clipped precision "
        "of single words, in percent?",
        answer=50,
        tolerance=0.1,
        why="Each word counts at most as often as the reference has it: *le* twice, so 2 of 4. Without clipping the "
        "four would all be right, and repeating a sure word would pay.",
        near={
            100: "Without clipping. The reference has *le* only twice, so only two of them count.",
            40: "That divides by the length of the reference: a recall. Precision divides by the translation's, 4.",
            25: "*le* stands twice in the reference, so two of them count.",
        },
    ),
    "length": Quiz(
        "A beam search compares finished sentences by the *sum* of their log-probabilities, with no length penalty. "
        "What is wrong with its translations?",
        options={
            "They repeat themselves": "Each further word costs: repeating does not pay.",
            "They are too short": "Each word adds a negative number, so a sentence that ends early has the better sum. "
            "Dividing by $n^{\\alpha}$ makes long and short comparable. Where a model is nearly certain of each word, "
            "little is lost by it.",
            "They are those of greedy search": "A beam may still prefer a worse first word for a better rest.",
        },
        answer=1,
    ),
    "cached": Quiz(
        "The decoder has written 20 words. What must each of its layers keep, so that word 21 costs one step?",
        options={
            "The weights with which the 20 words looked": "They have done their work: the new word looks for itself.",
            "The queries of the 20 words": "A query is asked once, by the word that it belongs to. Nobody asks again.",
            "Keys and values of the 20 words, and those of the source": "What the new word asks are the keys, what it "
            "reads are the values: of the French so far, and of the English sentence, which never change again.",
        },
        answer=2,
    ),
    "family": Quiz(
        "Keep only the encoder; keep only the decoder, without cross-attention; keep both. Which is for what?",
        options={
            "Translate; understand a text; write on": "The encoder sees both sides of each word, and cannot write.",
            "Understand a text; write on; turn one text into another": "Encoder only: BERT, lesson 07. Decoder only: "
            "GPT, lesson 08, the usual choice for large language models. Both: translation, and T5 in lesson 15.",
            "Write on; understand a text; translate": "Who sees later words cannot learn to predict them.",
        },
        answer=1,
    ),
    "waits": Quiz(
        "On many processors at once a Transformer's training is far faster than a recurrent network's of equal "
        "operations. Why?",
        options={
            "In each layer no word waits for another": "All words of all sentences are one matrix product. A recurrent "
            "layer of $n$ words has $n$ steps, one after the other. One small core hardly feels that difference.",
            "Attention needs fewer operations": "Equal operations are given; and for long texts it needs more.",
            "It needs no backpropagation": "It is trained by it, like any network.",
        },
        answer=0,
    ),
    "asks": Quiz(
        "From lesson 05: in the cross-attention of a translator, where do queries, keys and values come from?",
        options={
            "All three from the encoder": "That is its own self-attention.",
            "Queries from the encoder, keys and values from the decoder": "The other way round: who writes, asks.",
            "Queries from the decoder, keys and values from the encoder": "The word that is about to be written asks, "
            "the words of the source answer. It is the look-back of lesson 05, now once in each block.",
        },
        answer=2,
    ),
}

BETS = {
    "race": Bet(
        "Lesson 05's translator, two GRUs and one look back, scores about 98 BLEU after 1,000 steps. A Transformer "
        "gets the same sentences and the same computing time on one core. What does it score?",
        low=0,
        high=100,
        unit="BLEU",
    ),
    "norms": Bet(
        "Post-norm, no warm-up, 200 steps: a translator of one block on each side learns. What about eight blocks on "
        "each side?",
        options=(
            "Its loss is over half a nat below that of one block: it is the larger network",
            "Its loss is about that of one block: within half a nat",
            "Its loss is over half a nat above that of one block",
        ),
    ),
    "tricks": Bet(
        "After 1,000 steps the paper's recipe scores over 80 BLEU. Now nobody tells either side where a word stands: "
        "no position codes at all. What is left?",
        low=0,
        high=100,
        unit="BLEU",
    ),
}

"""Lesson 05, Attention: its questions, predictions and exercises."""

from course_lib.tasks import attention as checks

QUIZZES = {
    "bottleneck": {
        "question": "Why does one fixed vector hurt long sentences more than short ones?",
        "options": [
            "Long sentences are rarer in the training data",
            "The decoder cannot write long sentences",
            "The vector has one size for every sentence, so each word of a long one gets less of it",
            "The softmax over the vocabulary becomes slower with length",
        ],
        "answer": 2,
        "why": [
            "They are rarer, but attention is trained on the same data and does not suffer: rarity is not the reason.",
            "It can write as long as it likes. What it lacks is knowledge of what to write.",
            "The size of $c$ is fixed when the network is built; what must go into it grows with the sentence.",
            "Speed is not the point here, and that softmax is the same for every sentence.",
        ],
    },
    "softmax-axis": {
        "question": "$QK^\\top$ has the shape (queries, keys). Over which axis does the softmax run?",
        "options": [
            "Over the queries: each column sums to one",
            "Over the keys: each row sums to one",
            "Over both: the whole matrix sums to one",
        ],
        "answer": 1,
        "why": [
            "Then keys would share out queries, and a query could come away with nothing at all.",
            "A query spreads a weight of one over the keys. In PyTorch that is `softmax(dim=-1)`.",
            "Then each query would get a smaller answer when there are more queries.",
        ],
    },
    "aer": {
        "question": "A model translates perfectly, yet its alignment error rate is 0.5. What is the likeliest "
        "explanation?",
        "options": [
            "That is impossible: a good translation needs a good alignment",
            "Its weights fall on a neighbour of the right word, whose state knows about that word too",
            "Its vocabulary is too small",
        ],
        "answer": 1,
        "why": [
            "The loss only asks for the right words. Where the model looks is its own affair.",
            "The states of a bidirectional encoder know their neighbours, so looking one word aside can be "
            "good enough. Weights are a hint about what a model uses, not a proof.",
            "Then the translation would suffer first.",
        ],
    },
    "variance": {
        "question": "The entries of $q$ and $k$ are independent, with mean 0 and variance 1, and $d_k = 64$. "
        "What is the standard deviation of $q^\\top k$?",
        "options": [
            "1",
            "64",
            "8",
            "4096",
        ],
        "answer": 2,
        "why": [
            "That is what it is after the division by $\\sqrt{d_k}$.",
            "That is the variance, not its root.",
            "Each of the 64 products has variance 1; the variances add to 64, and the standard deviation is its root.",
            "That would be the variance if the products were all equal instead of independent.",
        ],
    },
    "mask-order": {
        "question": "Someone computes the softmax first and then multiplies the hidden weights by zero. What "
        "goes wrong?",
        "options": [
            "The visible weights no longer sum to one, and the hidden scores still influence them",
            "Nothing: hidden is hidden",
            "The gradient becomes NaN",
        ],
        "answer": 0,
        "why": [
            "The answer shrinks, and by an amount that depends on what should have been invisible: a leak.",
            "The hidden words have already taken their share of the softmax's denominator.",
            "It stays finite, which is why this mistake can live in a program for a long time.",
        ],
    },
    "equivariance": {
        "question": "You shuffle the words of a sentence and feed it to self-attention without position "
        "codes. What happens to the output?",
        "options": [
            "It stays exactly the same",
            "It changes unpredictably",
            "It is the old output, shuffled in the same way",
        ],
        "answer": 2,
        "why": [
            "That would be permutation *invariance*. Here each word keeps its own answer and takes it along.",
            "Every word still sees the same set of words, so its answer cannot change.",
            "$f(s(x)) = s(f(x))$: permutation *equivariance*. To the layer a sentence is a bag of words.",
        ],
    },
    "heads-cost": {
        "question": "A layer of width $D = 512$ goes from 1 head to 8. What happens to its number of parameters?",
        "options": [
            "It grows eightfold",
            "It stays the same",
            "It shrinks to an eighth",
        ],
        "answer": 1,
        "why": [
            "It would if each head had the full width; heads divide it among themselves.",
            "Each head works with $d_k = D/H = 64$ numbers: the eight $512 \\times 64$ maps together are one "
            "$512 \\times 512$.",
            "All the heads together still need the full width.",
        ],
    },
    "path": {
        "question": "Word 1 matters for word 1,000. Through how many steps or layers must the information "
        "pass in a recurrent, a convolutional (kernel 3, not dilated) and a self-attention network?",
        "options": [
            "1 step / 1 layer / 1 layer",
            "About 1,000 steps / 3 layers / 1,000 layers",
            "About 1,000 steps / about 1,000 layers / 1 layer",
        ],
        "answer": 2,
        "why": [
            "Only attention connects all pairs in one layer.",
            "A kernel of 3 does not reach 1,000 words in 3 layers, and attention needs no more than one.",
            "A recurrence passes it on step by step, a convolution of kernel 3 carries it one place in each "
            "layer, attention takes it in one step. The paper's $\\log_k n$ holds for dilated convolutions.",
        ],
    },
    "context-size": {
        "question": "An encoder reads a sentence of 40 words with states of 128 numbers. How much can the "
        "decoder draw on, with one fixed vector and with attention?",
        "options": [
            "128 numbers, and 40 x 128 numbers",
            "128 numbers in both cases",
            "40 numbers, and 128 numbers",
        ],
        "answer": 0,
        "why": [
            "What attention can draw on grows with the sentence: one state for each word.",
            "Each context vector has 128 numbers, but attention makes a new one for every word, from all the states.",
            "There is one state for each word, and each has 128 numbers.",
        ],
    },
    "values": {
        "question": "Two keys are identical, but their values differ. What does attention return for a query "
        "that fits both far better than all the others?",
        "options": [
            "The value of the first of them",
            "One of the two at random",
            "About the mean of the two values",
        ],
        "answer": 2,
        "why": [
            "A softmax has no order: equal scores get equal weights.",
            "Nothing is drawn at random: the output is a weighted average.",
            "Equal keys get equal scores and equal weights, here nearly 1/2 each.",
        ],
    },
    "cross-or-self": {
        "question": "In a translator's cross-attention, what are the queries and what are the keys?",
        "options": [
            "Queries from the source sentence, keys from the target sentence",
            "Both from the source sentence",
            "Both from the target sentence",
            "Queries from the target sentence, keys from the source sentence",
        ],
        "answer": 3,
        "why": [
            "Then the English words would ask the French ones, which are not written yet.",
            "That is self-attention in an encoder.",
            "That is (masked) self-attention in a decoder.",
            "The word being written asks: which of the source words do I need now?",
        ],
    },
    "masks-causal": {
        "question": "Which of these sees what it should not when the causal mask is forgotten during training?",
        "options": [
            "An encoder that classifies whole sentences",
            "A decoder that writes word by word at test time",
            "A decoder that predicts each next word from the words before it",
        ],
        "answer": 2,
        "why": [
            "It may look at everything; it needs no causal mask.",
            "There the future does not exist yet, so there is nothing to see. It would fail because of how it "
            "was trained.",
            "All words are in the input at once, so it would simply copy the next one: a loss near zero, and no skill.",
        ],
    },
}

PREDICTIONS = {
    "bottleneck": {
        "question": "Six translators will be trained: three with one fixed vector, three with attention; same "
        "data, same "
        "sizes, at least the same time for the fixed vector. On sentences of 20 words and more, how will they "
        "compare in BLEU "
        "(100 is perfect)?",
        "options": [
            "About the same: the fixed vector only needs more steps",
            "Attention is better by 10 to 50 points",
            "Attention is better by more than 50 points",
        ],
    },
    "saturation": {
        "question": "Scores $q^\\top k$ for $d_k = 1024$, not divided by anything, go into a softmax over 16 keys. "
        "How large is the largest weight, on average?",
        "options": ["About 1/16", "About 0.25", "Above 0.9"],
    },
    "shuffle": {
        "question": "Self-attention with sinusoidal position codes gets a shuffled sentence. Will the output be "
        "the old one, shuffled?",
        "options": ["Yes, exactly", "No"],
    },
    "heads": {
        "question": "One attention layer must tell each word both its left and its right neighbour. At equal "
        "width, parameters and "
        "operations: which number of heads does best?",
        "options": ["One: a wide head is stronger", "Two or more", "It makes no difference"],
    },
    "slopes": {
        "question": "The sequence becomes twice as long. By how much does the number of operations of self-attention "
        "(once the sequence is long) and of a recurrent layer grow?",
        "options": [
            "Twofold and twofold",
            "Fourfold and twofold",
            "Twofold and fourfold",
        ],
    },
}

EXERCISES = {
    "scaled-dot-product": {
        "title": "Scaled dot-product attention",
        "checks": checks.SCALED_DOT_PRODUCT_ATTENTION + checks.QUERY_THAT_SEES_NOTHING,
        "hints": [
            "Three steps: scores, weights, average. Write it without the mask first; `k.transpose(-2, -1)` "
            "turns the keys "
            "round.",
            "The scores are divided by the root of the last dimension of `q`, before a softmax over `dim=-1`.",
            "A mask acts on the scores: set the hidden ones to minus infinity with `masked_fill`, then take the "
            "softmax. A row "
            "in which nothing is visible becomes NaN there: fill zeros in afterwards.",
        ],
        "solution": """
def my_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(dim=-1) @ v
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0) @ v
""",
    },
    "positions": {
        "title": "Sinusoidal position codes",
        "checks": checks.SINUSOIDAL_POSITIONS,
        "hints": [
            "Make a column of positions and a row of pair numbers $i = 0, 1, ...$; broadcasting gives all their "
            "angles.",
            "The angle of pair $i$ is $pos / 10000^{2i/D}$: `torch.arange(0, dim, 2)` are the numbers $2i$.",
            "Sines go to the even columns and cosines to the odd ones: `codes[:, 0::2]` and `codes[:, 1::2]`.",
        ],
        "solution": """
def my_positions(length, dim):
    pos = torch.arange(length)[:, None]
    two_i = torch.arange(0, dim, 2)
    angles = pos / 10_000 ** (two_i / dim)
    codes = torch.empty(length, dim)
    codes[:, 0::2] = angles.sin()
    codes[:, 1::2] = angles.cos()
    return codes
""",
    },
    "split-heads": {
        "title": "Split the heads",
        "checks": checks.SPLIT_HEADS,
        "hints": [
            "The numbers of one word lie side by side in the last axis: cut that axis, and no other.",
            "First `(B, T, H, D/H)`, by `reshape` or `view`. Which two axes must then change places?",
            '`x.reshape(B, T, H, D // H).transpose(1, 2)`. With einops: `rearrange(x, "b t (h d) -> b h t d", '
            "h=num_heads)`.",
        ],
        "solution": """
def my_split_heads(x, num_heads):
    B, T, D = x.shape
    x = x.reshape(B, T, num_heads, D // num_heads)
    return x.transpose(1, 2)
""",
    },
    "softmax": {
        "title": "A softmax that survives large numbers",
        "checks": checks.SOFTMAX,
        "hints": [
            "What happens to a softmax when the same number is subtracted from all scores of a row?",
            "Nothing: it cancels. So subtract a number that makes every exponent harmless.",
            "Subtract each row's own maximum (`scores.amax(dim=-1, keepdim=True)`), then exponentiate and "
            "divide by the sum.",
        ],
        "solution": """
def my_softmax(scores):
    largest = scores.amax(dim=-1, keepdim=True)
    powers = (scores - largest).exp()
    return powers / powers.sum(dim=-1, keepdim=True)
""",
    },
    "additive-scores": {
        "title": "Bahdanau's score",
        "checks": checks.ADDITIVE_SCORES,
        "hints": [
            "Project first: `q @ W.T` is `(B, T_q, A)` and `k @ U.T` is `(B, T_k, A)`.",
            "Every query must meet every key: give one of them a new axis, so that the sum is `(B, T_q, T_k, A)`.",
            "`(q @ W.T)[:, :, None] + (k @ U.T)[:, None]`, then the tanh, then the product with `v`.",
        ],
        "solution": """
def my_additive_scores(q, k, W, U, v):
    projected_q = (q @ W.T)[:, :, None]
    projected_k = (k @ U.T)[:, None]
    return (projected_q + projected_k).tanh() @ v
""",
    },
}

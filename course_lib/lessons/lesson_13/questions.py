"""Lesson 13, Masked autoencoders: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A ruin, repaired", 5, holds=("ruin",)),
    Beat("The bet: how much may be hidden?", 4, holds=("words", "ratios")),
    Beat("Four patches, by hand", 4, holds=("visible", "undo")),
    Beat("Write it", 22, holds=("random_mask", "restore_order", "hidden_loss")),
    Beat("Train yours", 6, holds=("repaired", "blur")),
    Beat("Look inside and break it", 16, holds=("labels", "normalised_target", "mask", "bug")),
    Beat("What to remember", 5, holds=("lower", "pairs", "earlier")),
    Beat("Stretch: the encoder's bill; then the assignment", 10, holds=("encoder_cost",), optional=True),
)

QUIZZES = {
    "words": Quiz(
        "BERT hides 15 % of its words (lesson 07). Why should pictures take so much more?",
        options={
            "Pixels are numbers, and words are not": "Both are vectors when the Transformer reads them.",
            "There are more patches than words": "A sentence can be as long as a picture has patches.",
            "Neighbouring patches say nearly the same": "A hole in a picture is filled from its rim. A missing word is "
            "not: language is made of dense meaning, a picture is redundant (He et al. 2022, section 1). Hide little, "
            "and there is nothing to understand.",
        },
        answer=2,
    ),
    "visible": Number(
        "A picture has 10 x 12 patches, and 60 % are hidden. How many reach the encoder?",
        answer=48,
        tolerance=0.4,
        why="$120 \\cdot 0.4 = 48$. The decoder gets all 120 places again.",
        near={72: "Those are the hidden ones.", 120: "The encoder gets no mask tokens: only what is visible."},
    ),
    "undo": Quiz(
        "Patches 0, 1, 2, 3 got the noise 0.7, 0.1, 0.9, 0.4, so that the shuffled list is 1, 3, 0, 2. Which list "
        "finds them again, *the place of each patch in the shuffled list*?",
        options={
            "2, 0, 3, 1": "Patch 0 lies at place 2 of the list, patch 1 at place 0, patch 2 at place 3, patch 3 at "
            "place 1. It is the `argsort` of the shuffled list: the inverse of a permutation.",
            "1, 3, 0, 2": "That is the shuffled list itself. Applied twice it shuffles twice.",
            "0, 1, 2, 3": "Then nothing would have been moved.",
        },
        answer=0,
    ),
    "blur": Quiz(
        "A hidden patch holds either a bright stroke on the left or one on the right, equally likely. What does the "
        "network with the lowest squared error paint?",
        options={
            "One of the two, at random": "Half of the time that is wrong twice: a stroke that is not there, and none "
            "where there is one.",
            "Both, half as bright": "The mean has the lowest squared error. Hence the blur.",
            "Nothing: it cannot know": "A dark patch is as wrong as a random stroke is on average.",
        },
        answer=1,
    ),
    "bug": Quiz(
        "A colleague's MAE trains, and its loss hardly falls below that of a plain grey. What is wrong?",
        options={
            "The list is shuffled once more, not put back": "`shuffle` says which patch stands where in the list; to "
            "go back one needs its inverse, `shuffle.argsort(dim=1)`. Each token gets the position of a stranger, and "
            "the loss asks it for that stranger's pixels.",
            "The mask tokens are all alike": "They are meant to be: the positions tell them apart.",
            "There are too few mask tokens": "N - K, one for each hole.",
        },
        answer=0,
        kind="bug",
        code="""
shuffle = noise.argsort(dim=1)
keep = shuffle[:, :K]
visible = encode(take(patches, keep))
full = torch.cat([visible, mask_tokens], dim=1)    # K and N - K
full = take(full, shuffle) + positions
""",
    ),
    "lower": Quiz(
        "Two pre-trainings, one with 25 % hidden and an error of 0.3, one with 75 % and 0.7. Which encoder do you "
        "take?",
        options={
            "The first: its error is lower": "It had the easier task. An error says how well *this* task is done.",
            "I try both on what I need": "A probe with a few labels is what counts. Here the second one wins clearly, "
            "with twice the error.",
            "The second: a higher error is better": "With 90 % hidden the error is higher still, and the probe is "
            "worse.",
        },
        answer=1,
    ),
    "pairs": Number(
        "75 % of the patches are hidden. By what factor are there fewer *pairs* to compare in the encoder?",
        answer=16,
        tolerance=0.4,
        why="A quarter of the tokens, and $4^2 = 16$ times fewer pairs. The rest of the encoder gets 4 times cheaper.",
        near={4: "That holds for what is done for each token by itself.", 12: "Pairs count as a square."},
    ),
    "earlier": Quiz(
        "From an earlier lesson: BERT puts `[MASK]` into its *encoder*. What is the price that MAE does not pay?",
        options={
            "None: BERT is smaller": "Size has nothing to do with it.",
            "BERT cannot see both sides": "It can: that is its strength.",
            "Later there are no `[MASK]`s, so training and use differ": "BERT therefore leaves some chosen words as "
            "they are, or swaps them (80, 10, 10; lesson 07). MAE keeps mask tokens out of the encoder altogether.",
        },
        answer=2,
    ),
}

BETS = {
    "ratios": Bet(
        "Four networks learn to paint digits with 25, 50, 75 or 90 % of the patches hidden. Then each gets 100 labels "
        "for a linear probe. After 25 % it names about 47 % of new digits right. And after 90 %?",
        low=0,
        high=100,
        unit="%",
    ),
    "repaired": Bet(
        "Three quarters of each new digit are hidden. Painting every hole in the mean grey of what is seen makes an "
        "error of 100 %. How much of it is left after 18,000 steps of training?",
        low=0,
        high=100,
        unit="%",
    ),
    "labels": Bet(
        "50 labelled digits, five of each. Logistic regression on their pixels names about 40 % of new ones right. And "
        "on the features of our MAE, frozen, which has never seen a label?",
        low=0,
        high=100,
        unit="%",
    ),
}

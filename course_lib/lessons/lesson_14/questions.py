"""Lesson 14, Image to image: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A label for every pixel", 6, holds=("drawing",)),
    Beat("The bet: what must be handed over?", 4, holds=("machine", "skips")),
    Beat("Down and up again, by hand", 5, holds=("size",)),
    Beat("Write it", 24, holds=("fc_as_convolution", "sliding", "unpool", "transposed_convolution", "ways_up")),
    Beat("Train yours", 14, holds=("ground", "half", "overlap", "bug", "yours", "back")),
    Beat("Look inside and break it", 14, holds=("swap", "uncertainty", "precision", "things", "tiles", "few", "scene")),
    Beat("What to remember", 4, holds=("touch", "patches")),
    Beat("Stretch: boxes from a mask; then the assignment", 13, holds=("boxes",), optional=True),
)

QUIZZES = {
    "size": Number(
        "A row of 4 numbers is stamped with a kernel of 3 numbers, at a stride of 2; nothing is cut off. How many "
        "numbers long is the result?",
        answer=9,
        why="The last stamp begins at $(4 - 1) \\cdot 2 = 6$ and is 3 long: $6 + 3 = 9$. A convolution of 9 numbers "
        "with a kernel of 3 at a stride of 2 gives 4: the transposed one turns the *shape* round, not the values.",
        near={
            8: "That is 4 times 2: the last stamp is longer than the stride and stands out.",
            12: "Stamps side by side: at a stride of 3. Here they overlap by one.",
            10: "As if the last stamp began at 7. The first begins at 0.",
        },
    ),
    "ground": Number(
        "A digit covers a quarter of the picture. A net says *background* everywhere: three quarters of the pixels are "
        "right. What is its mean IoU over the two classes?",
        answer=0.375,
        tolerance=0.006,
        why="Background: intersection 0.75, union 1, so 0.75. Digit: nothing in common, so 0. The mean is 0.375. "
        "Accuracy is blind to small classes; a mean over classes is not.",
        near={
            0.75: "That is the accuracy, and the IoU of the background. The digit's IoU counts as much.",
            0.5: "The background's IoU is 0.75: its union is the whole picture.",
        },
    ),
    "half": Quiz(
        "Your mask is a rectangle of the right size, but has slipped sideways by half its width. IoU and Dice?",
        options={
            "1/2 and 1/2": "The intersection is half of a mask, but the union is one and a half.",
            "1/3 and 1/2": "Intersection 1/2, union 3/2, so 1/3; Dice is $2 \\cdot \\tfrac12 / 2 = \\tfrac12$. Dice "
            "never looks worse: ask which of the two a paper reports.",
            "1/2 and 2/3": "2/3 is Dice where IoU is 1/2: $2 I / (1 + I)$. But the IoU here is smaller.",
        },
        answer=1,
    ),
    "bug": Quiz(
        "A colleague wants to train for Dice itself, with two classes, 0 and 1. It runs without an error, and no "
        "weight ever moves. Why?",
        options={
            "The Dice loss needs a smaller learning rate": "No rate helps: there is no gradient to scale.",
            "`argmax` has no gradient": "The class is a whole number: a small change of the weights does not change "
            "it. The Dice loss takes the probabilities as they are, $2 \\sum p\\,t / (\\sum p + \\sum t)$, and "
            "follows them.",
            "The sum must be taken for each picture": "Over the batch or for each picture: both can be learned from.",
        },
        answer=1,
        kind="bug",
        code="""
chosen = model(x).argmax(dim=1).float().requires_grad_()
common = (chosen * true).sum()
dice = 2 * common / (chosen.sum() + true.sum())
(1 - dice).backward()
""",
    ),
    "precision": Number(
        "Four true things in a picture. The guesses, the surest first: right, wrong, right. "
        "Average precision: the sum of the precision at each right guess, divided by the number of true things.",
        answer=0.4167,
        tolerance=0.006,
        why="At the first guess 1 of 1 is right, at the third 2 of 3: $(1 + \\tfrac23) / 4 = 0.417$. The two things "
        "that nobody found count as zeros.",
        near={
            0.833: "Divided by the two that were found: who guesses little would look perfect.",
            0.667: "That is the precision of the whole list, whatever its order.",
            0.5: "That is the recall: 2 of 4.",
        },
    ),
    "back": Quiz(
        "From lesson 05: a translator of one fixed vector became one that looks back. What corresponds to that in a "
        "U-Net?",
        options={
            "The pooling": "That is how the picture becomes small: the reading.",
            "The skips": "Without them all goes through the smallest map, as through one vector. The decoder looks "
            "back at the encoder's maps; but always at the same place, since a pixel of the mask lies where the pixel "
            "of the picture lies. Attention had to learn where to look.",
            "The transposed convolution": "It makes a map larger from what is in it: nothing comes in from outside.",
        },
        answer=1,
    ),
    "touch": Quiz(
        "Two threes touch. Every pixel of both is labelled *three*, rightly. What can be said of the two?",
        options={
            "The mean IoU falls": "It is 1: each pixel has its right class.",
            "The boxes are right, too": "There is one connected thing, so one box around both.",
            "As semantic segmentation it is perfect, as instance segmentation it is wrong": "The distribution of each "
            "pixel is over *classes*. Which three it belongs to is another question, and needs another answer: an "
            "identity.",
        },
        answer=2,
    ),
    "patches": Quiz(
        "The Vision Transformer of lesson 11 cuts 32 x 32 pixels into 16 patches. Its last layer's tokens get a label "
        "each. What does the mask look like?",
        options={
            "Squares of 8 x 8 pixels": "One label for each patch: a map of 4 x 4, as coarse as the bottom of our "
            "U-Net. Segmenters made of Transformers add a decoder, or skips from finer maps (Swin, lesson 12, has "
            "such).",
            "As fine as U-Net's, since attention sees all pixels": "It sees all *patches*. Within a patch there is one "
            "token.",
            "Nothing useful: attention is blind to place": "Its position codes tell it the place of each patch.",
        },
        answer=0,
    ),
}

BETS = {
    "skips": Bet(
        "U-Net reaches a mean IoU of about 89 % on test scenes, over background and ten digits. Its twin without skips "
        "has as many parameters and as much computing time. What does the twin reach?",
        low=0,
        high=100,
        unit="%",
    ),
    "swap": Bet(
        "The three on its coin goes through U-Net. But its smallest map, 4 x 4, is taken out, and that of another "
        "picture, a four in another place, put in; the three finer maps stay. What does the mask show?",
        options=(
            "The four, where it stood",
            "The three's outline, labelled *four*",
            "The three, labelled *three*, with ragged edges",
            "Neither: noise",
        ),
    ),
    "uncertainty": Bet(
        "Somebody has time to check one pixel in twenty. You give them the 5 % of all pixels of which U-Net is least "
        "sure. How many of all wrong pixels are among these?",
        low=0,
        high=100,
        unit="%",
    ),
    "few": Bet(
        "Only 100 pictures have a mask. A U-Net on a fresh trunk reaches a mean IoU of 16 %. Another stands on the "
        "trunk of a classifier, which learned which digit a picture shows and never saw a mask; it stays frozen. What "
        "does that one reach?",
        low=0,
        high=100,
        unit="%",
    ),
}

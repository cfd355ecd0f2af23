"""Lesson 02, Representation learning: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("Who is like my drawing?", 5, holds=("neighbours",)),
    Beat("The bet: what should stay the same?", 7, holds=("hands", "rising")),
    Beat("Four views, by hand", 6, holds=("colder", "negatives")),
    Beat("Write it: alike, and not alike", 18, holds=("cosine_matrix", "other_view", "nt_xent")),
    Beat("Train yours, without a label", 9, holds=("knn_vote", "rising")),
    Beat("Look inside and break it", 17, holds=("top1", "labels", "changes", "collapse", "kept", "map", "bug")),
    Beat("What to remember", 4, holds=("head", "earlier")),
    Beat("Stretch: aligned, and spread out; then the assignment", 11, holds=("spread_out",), optional=True),
)

QUIZZES = {
    "hands": Quiz(
        "Your features are to tell a left hand from a right one. Which change must *not* be among those of the views?",
        options={
            "Crops": "A part of a left hand is still part of a left hand.",
            "Mirroring": "A mirrored left hand is a right hand. Features that stay the same under it cannot tell the "
            "two apart. Which changes are harmless is knowledge about the task: here it enters, in place of labels.",
            "Brightness": "The light does not make a left hand a right one.",
        },
        answer=1,
    ),
    "colder": Number(
        "The same four views with temperature 0.5 in place of 1: the positive's cosine is 1, those of the two "
        "negatives are 0. What is the loss of this view, in nats?",
        answer=0.2395,
        tolerance=0.004,
        why="$-\\ln \\frac{e^{1/0.5}}{e^{1/0.5} + 2 e^0} = \\ln(1 + 2 / e^2) = 0.240$. A colder softmax is surer.",
        near={
            0.5514: "That is with temperature 1.",
            0.794: "You multiplied by the temperature: it divides.",
            0.127: "There are two negatives, not one.",
        },
    ),
    "negatives": Number(
        "A batch of 128 pictures, two views of each. How many negatives has each view?",
        answer=254,
        tolerance=0.4,
        why="256 views, less itself, less its partner. The sum below the line has 255 terms, the partner among them.",
        near={
            255: "One of those is its partner, the positive.",
            127: "Each of the other 127 pictures has two views.",
            256: "Less itself, and less its partner.",
        },
    ),
    "collapse": Quiz(
        "A colleague leaves the negatives out, and minimises only minus the cosine of the two views. After a minute it "
        "is at -0.999. What has the network learned?",
        options={
            "To put everything at one point": "Then every pair of views is alike, whatever they show: the loss is "
            "nearly perfect and says nothing. You saw the same network in the third panel.",
            "All that SimCLR learns, only faster": "Its cosine is higher than SimCLR's. What of two *different* "
            "pictures?",
            "To remember each picture": "That would need different places for different pictures.",
        },
        answer=0,
    ),
    "bug": Quiz(
        "After ten steps the loss is at its floor, and a probe finds nothing new. What is wrong?",
        options={
            "The temperature is too high": "A high one keeps the loss *high*: the softmax stays nearly even.",
            "There are too few changes in the list": "One is enough to make the loss stay up for more than ten steps.",
            "Both views get the same random numbers": "One seed, one draw: both views are the same picture, pixel for "
            "pixel. Whatever tells pictures apart finds the partner; nothing has to stay the same.",
        },
        answer=2,
        kind="bug",
        code="""
for pixels in batches:
    first = change(pixels, generator("views", step))
    second = change(pixels, generator("views", step))
    loss = nt_xent(model(first), model(second), 0.5)
    loss.backward()
""",
    ),
    "head": Quiz(
        "The loss looks at z = g(h). Why is h kept for other tasks, and g thrown away?",
        options={
            "z has too few numbers": "It has 64 here, and a probe reads digits from it as well as from h.",
            "z has let go what the changes change, h still has some of it": "Brightness, the side it was turned to: "
            "what the loss wants to be the same is lost most where the loss looks. What a later task needs, you do not "
            "know yet.",
            "g was trained and h was not": "Both were, by the same gradients.",
        },
        answer=1,
    ),
    "earlier": Quiz(
        "From lesson 01: a probe is fitted on a frozen encoder. What besides its weights must stand still?",
        options={
            "BatchNorm's running mean and variance": "So the encoder is in evaluation mode: otherwise a picture's "
            "features depend on its neighbours in the batch, and the statistics go on.",
            "The labels": "They belong to the probe.",
            "Nothing: weights are all there is": "There are *buffers*, too, and they move without a gradient.",
        },
        answer=0,
    ),
}

BETS = {
    "rising": Bet(
        "50 labelled digits, five of each; for a new one its three nearest among them vote. Nearest by *pixels* they "
        "name about 70 % right. How many by the features of your network, after 100 steps without a label?",
        low=0,
        high=100,
        unit="%",
    ),
    "labels": Bet(
        "Only *one* labelled picture of each digit. A linear probe on pixels names about 56 % of new ones right. On "
        "the features of SimCLR, after 600 steps?",
        low=0,
        high=100,
        unit="%",
    ),
    "changes": Bet(
        "Five kinds of changes make the views. One of them is left out of the training. Which one is missed most?",
        options=("the crop", "the rotation", "brightness and contrast", "the blur", "the grey square (cutout)"),
    ),
    "kept": Bet(
        "The views differ in brightness. Can features that learned from them still tell whether a picture is bright or "
        "dark (a guess: 50 %)? From pixels a probe tells about 90 % right. And from SimCLR's z, where the loss looks?",
        low=40,
        high=100,
        unit="%",
    ),
}

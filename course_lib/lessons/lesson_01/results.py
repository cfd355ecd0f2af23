"""Lesson 01, Transfer learning: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

import numpy as np

from course_lib.classroom.results import Result
from course_lib.data.scenes import DigitScenes, Scenes
from course_lib.lessons.lesson_01 import figures, looking, yours
from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.lessons.lesson_01.recipes.transfer import SOURCE, TARGET
from course_lib.models.resnet import ResNet
from course_lib.tasks.claims import above, below
from course_lib.training.recipe import Trained

NETS = ("plain, 8 layers", "plain, 20 layers", "plain, 44 layers")
NETS += ("residual, 8 layers", "residual, 20 layers", "residual, 44 layers")
CARD_NAMES = {"scratch": "scratch", "frozen": "frozen", "fine-tuned": "fine-tuned"}
CARD_NAMES |= {"rates by layer": "fine-tuned, rates by layer"}


def block(*, bet=None) -> Result:
    return Result(
        figures.block(),
        alt="Three blocks from top to bottom. Plain: x goes through two 3 x 3 convolutions. Residual: the same two, "
        "and a line leads x around them to a plus sign below. Bottleneck: a 1 x 1 convolution to a quarter of the "
        "channels, a 3 x 3, a 1 x 1 back, and the same line around them.",
    )


def depth(losses: Mapping[str, Sequence[float]], card: Mapping, *, bet=None) -> Result:
    right = {name: [seed["test"][f"{name}, accuracy on training digits"] for seed in card["seeds"]] for name in NETS}
    twice = [seed["test"]["plain, 44 layers, twice the steps, accuracy on training digits"] for seed in card["seeds"]]
    last = {name: float(np.mean(values[-10:])) for name, values in losses.items()}
    return Result(
        figures.depth(losses, right, bet),
        alt="Left, loss by step: the plain net of 44 layers stays far above the plain one of 8 and the residual one of "
        "44. Right, training digits named right: two seeds of the plain net of 44 layers are at about 97 %, one far "
        "below, all others near 100 %.",
        claims=(
            ("your plain net of 44 layers ends with over twice the loss of both others",
             above(last["plain, 44 layers"] / max(last["plain, 8 layers"], last["residual, 44 layers"]), 2)),
            ("on the *training* digits every seed of plain 44 is behind every seed of plain 8 and of residual 44",
             max(right["plain, 44 layers"]) < min(right["plain, 8 layers"] + right["residual, 44 layers"])),
        ),
        came=100 * float(np.min(right["plain, 44 layers"])),
        outcome="It is no overfitting: it fails on what it *trains* on. Nor can it be too small: 36 layers could copy "
        "their input, and the rest do what the 8 do. It does not *find* that (He et al. 2016, section 1), and why not "
        "was left open: its gradients did not vanish. One run in three is far off: unreliable rather than unable. "
        "(Your run is short; the dots are the card's, each kind with its own rate.) At 20 layers nothing of this shows "
        "here. Twice the steps did not mend it for certain: the three seeds then end at "
        f"{', '.join(f'{100 * value:.0f}' for value in twice)} %. And 44 residual layers are no better than 8 on these "
        "small digits: a shortcut makes depth harmless; whether depth *helps* is up to the task.",
    )  # fmt: skip


def transfer(found: Mapping[int, Mapping[str, float]], card: Mapping, *, bet=None) -> Result:
    counts = [len(TARGET) * count for count in task.PER_CLASS]
    table, spread = (
        {
            way: np.array([[seed["test"][f"{what}, {count} labels, {name}"] for count in counts]
                           for seed in card["seeds"]])
            for way, name in CARD_NAMES.items()
        }
        for what in ("accuracy", "spread over draws")
    )  # fmt: skip
    forty = counts.index(40)
    scratch, frozen, tuned, layered = table.values()
    mine = {len(TARGET) * count: ways for count, ways in found.items()}
    return Result(
        figures.transfer(table, spread, counts, mine, bet),
        alt="Test accuracy against 8, 40, 120 and 400 labels. From scratch stays near the 25 % of guessing up to 120 "
        "labels. Frozen, fine-tuned and rates by layer start above or near 50 % and rise; fine-tuning all layers is "
        "below frozen at 8 labels and ahead from 40 on, rates by layer best up to 120.",
        claims=(
            (
                "in your run each way that starts from the old network is over 15 points ahead of scratch at 8 and 40",
                above(
                    min(mine[n][way] - mine[n]["scratch"] for n in (8, 40) for way in CARD_NAMES if way != "scratch"),
                    0.15,
                ),
            ),
            (
                "in each seed fine-tuning is behind frozen at 8 labels and ahead of it from 40 on",
                bool((tuned[:, 0] < frozen[:, 0]).all() and (tuned[:, 1:] > frozen[:, 1:]).all()),
            ),
            (
                "in each seed rates by layer beat one rate at 40 labels, and lose at 400",
                bool((layered[:, forty] > tuned[:, forty]).all() and (layered[:, -1] < tuned[:, -1]).all()),
            ),
        ),
        came=100 * float(frozen[:, forty].mean()),
        outcome="The four new digits were never in the old task, and yet its strokes and corners serve them. With 8 "
        "labels training everything at one rate did worse than the frozen trunk, in the mean, and rates by layer did "
        "about as well as it; from 40 on both are ahead of it, and at 400 a rate for each layer no longer pays. "
        "Scratch got its own tuned rate and the most steps. A draw of labels moves the result by several points: one "
        "draw proves little.",
    )


def patches(model: ResNet, scenes: Scenes, *, bet=None) -> Result:
    shares = looking.commonest_share(model, scenes)
    return Result(
        figures.patches(
            model.stem.conv.weight.detach()[:, 0], looking.exciting(model, scenes.pixels), looking.STAGES,
            looking.fields_of(model), shares,
        ),
        alt="Left, small filters of 3 x 3 weights. Right, the patches that excite two channels most, at four depths: "
        "at the stem 3 x 3 pixels with an edge; at stage 1, strokes and rims of 9 x 9; at stage 2, bends and corners "
        "of 21 x 21; at stage 3 whole scenes, mostly of one digit in a row.",
        claims=(
            ("from stage 1 on, a channel's favourite scenes agree more on one digit with each stage",
             above(min(shares[2] - shares[1], shares[3] - shares[2]), 0)),
        ),
        outcome="Edges, strokes, bends, digits: each stage builds from what the one before found, and sees more of the "
        "picture (Zeiler & Fergus 2014, figure 2). The first two are no digit's own, and serve any task with such "
        "pictures. (The largest of ten shares is some 15 % by chance.) Filters of 3 x 3 say little to an eye; those of "
        "larger first layers show edges and colours.",
    )  # fmt: skip


def dreams(model: ResNet, *, bet=None) -> Result:
    found = looking.dreams(model, SOURCE)
    noise, smooth = (found[kind][1] for kind in ("nothing", "regularised"))
    return Result(
        figures.dreams(found, [str(digit) for digit in SOURCE]),
        alt="Two rows of six pictures, one for each digit from 0 to 5. Above, without regularisers, strokes of some "
        "digits in harsh speckle. Below, with them, soft strokes: 0, 1, 2 and 5 can be read, 3 and 4 are repeated bits "
        "of strokes.",
        claims=(
            (
                "of each class the network is over 95 % certain, of the noise as of the smooth picture",
                above(noise.min(), 0.95),
                above(smooth.min(), 0.95),
            ),
        ),
        outcome="*Certain* is not *right*: above, some strokes stand in speckle, and the speckle raises the score as "
        "well. Four helpers make a picture of it: neighbours should be alike, pixels stay near grey, the picture is "
        "shifted and now and then blurred. They are our taste and not the network's: a smooth picture shows what we "
        "let through.",
    )


def occlusion(model: ResNet, scene: Scenes, *, bet=None) -> Result:
    label, size = int(scene.labels[0, 0]), 7
    fallen = looking.occluded(model, scene.pixels, label, size=size)
    hits, chance = looking.peak_on_digit(model, DigitScenes(split="test").batch(60, seed=0))
    return Result(
        figures.occlusion(scene.pixels[0, 0], fallen, size, hits, chance),
        alt="A Greek coin with a three on it; a map that is bright where a grey square costs the network its three, on "
        "strokes of the digit; and two bars: the worst place lies in the digit's box nearly always, a random place in "
        "over a third of the cases.",
        claims=(("in over 85 % of 60 scenes the worst place lies in the digit's box, at random in under half",
                 above(hits, 0.85), below(chance, 0.5)),),
        outcome="It looks at the digit and not at the ground: that could have been otherwise. (A classifier that "
        "named horses by a photographer's stamp has existed: Lapuschkin et al. 2019.) It costs one forward pass for "
        "each place.",
    )  # fmt: skip


def probes(everything: ResNet, six: ResNet, *, bet=None) -> Result:
    found = looking.probes(everything)
    tasks = {name: looking.probes(six, classes)["digit"] for name, classes in (("source", SOURCE), ("target", TARGET))}
    digit, brighter = found["digit"], found["brighter"]
    return Result(
        figures.probes(found, tasks, looking.PROBED, bet),
        alt="Left, what linear probes read from pixels, stem and three stages: the digit rises from near chance to "
        "over 90 %, while whether the ink is brighter falls from over 90 % to about 60. Right, probes for the "
        "network's own digits and for new ones both rise with depth.",
        claims=(
            (
                "the digit rises with each stage, and brightness falls by over 20 points from the pixels to the last",
                above(np.diff(digit).min(), 0),
                above(brighter[0] - brighter[-1], 0.2),
            ),
        ),
        came=100 * brighter[-1],
        outcome="A network keeps what its task needs and lets go of the rest: white ink or black, a seven is a seven. "
        "(A part of the fall is of our making: the pixels are 1,024 numbers, each later point the means of channels.) "
        "From the means of the last stage a linear head hardly learns *bright or dark* any more: unfreeze, or take an "
        "earlier stage. (Left the network of ten digits, right that of six.) Yosinski et al. (2014) found in a deep "
        "net that late layers serve the old task and *harm* the new one. **Here that does not show**: on the right "
        "both rise. Perhaps four new digits are too near to six old ones.",
    )


def accidents(source: Trained, *, bet=None) -> Result:
    found = yours.accidents(source)
    norms, pixels, rates = (list(found[key].values()) for key in ("norms", "pixels", "rates"))
    return Result(
        figures.accidents(found),
        alt="Three panels. Norms that go on: the old task loses under a point after pictures like its own and some "
        "points after darker ones. Other normalisation: from 98 to about 72 %. Rates: the higher the rate, the less is "
        "left of the old task, and the worse the new one.",
        claims=(
            ("norms on darker pictures cost over 1 point, raw pixels over 10, a high rate over 15 on the new task",
             above(norms[0] - norms[2], 0.01), above(pixels[0] - pixels[1], 0.1),
             above(rates[0][0] - rates[2][0], 0.15)),
        ),
        outcome="None of them raises an error. Moving norms do little harm *while the pictures stay alike*, so that "
        "the mistake hides until they change. The pixels must come as they came in the old training: read the "
        "checkpoint's preprocessor. And what a high rate wipes out in 80 steps, 40 labels do not bring back.",
    )  # fmt: skip


RESULTS = {one.__name__: one for one in (block, depth, transfer, patches, dreams, occlusion, probes, accidents)}

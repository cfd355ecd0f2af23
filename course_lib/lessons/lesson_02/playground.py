"""What one plays with in lesson 02: who is like a drawing, and a map of pictures in which changed views land."""

import html
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch import Tensor

from course_lib.classroom.widgets import (
    Choice,
    Explorer,
    Goal,
    Pad,
    Pick,
    Slider,
    as_digit,
    in_base64,
    in_rows,
    pixel_image,
)
from course_lib.classroom.widgets.pixels import grey
from course_lib.data.augmentations import Augmentation
from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.draws import generator
from course_lib.functional.neighbour_maps import tsne
from course_lib.lessons.lesson_02 import looking, recipes
from course_lib.lessons.lesson_02.icon_map import icon_map
from course_lib.models.simclr import SimCLR
from course_lib.training.probes import label_draw
from course_lib.viz.style import PALETTE, figure

PAD, BRUSH = 56, 5.0  # pixels of the pad and of its brush
SIDE = 28  # pixels of what a network sees
NEAREST, VIEWS = 5, 8
PER_DIGIT = 20  # points of the map
FEATURES = ("SimCLR", "pixels", "before")
NAMES = {"pixels": "pixels", "before": "the network before it learned", "SimCLR": "SimCLR"}
COLOURS = ("#0072b2", "#a34700", "#00735a", "#8a3a6d", "#595959", "#7a5c00", "#00457f", "#b00020", "#3b3b98", "#1b7a1b")
LEFT, RIGHT = "left", "right"

# ------------------------------------------------------------------------------------------- who is like a drawing?


def drawings() -> dict[str, UInt8[np.ndarray, "N N"]]:
    """Digits as large as the pad; no network has seen them."""
    large = F.interpolate(looking.one_of_each(seed=3).pixels, (PAD, PAD), mode="bilinear")[:, 0]
    return {name: grey(large[digit]) for name, digit in {"a two": 2, "an eight": 8, "a four": 4}.items()}


def any_digit(_=None) -> UInt8[np.ndarray, " n"]:
    """A digit that no network has seen, another one each time."""
    pixels, _ = CleanDigits(split="test").batch(1, int(torch.randint(1_000, ())))
    return grey(F.interpolate(pixels, (PAD, PAD), mode="bilinear")[0, 0]).flatten()


def a(digit: Tensor | int) -> str:
    """The digit with its article."""
    return f"{'an' if digit == 8 else 'a'} {int(digit)}"


def turned(pixels: Float[Tensor, "1 1 H W"], degrees: float) -> Float[Tensor, "1 1 H W"]:
    """Turned clockwise about its middle; black comes in from outside."""
    angle = torch.tensor(degrees).deg2rad()
    matrix = torch.tensor([[angle.cos(), angle.sin(), 0], [-angle.sin(), angle.cos(), 0]])[None]
    return F.grid_sample(pixels, F.affine_grid(matrix, list(pixels.shape), align_corners=False), align_corners=False)


def neighbours(model: SimCLR) -> Explorer:
    """A drawing, and which of 400 digits are nearest to it: by pixels, before the training, and after it."""
    pixels, labels = (part[:400] for part in recipes.images("test"))
    every = looking.encoders(model)
    stored = {name: F.normalize(encode(pixels), dim=1) for name, encode in every.items()}

    @lru_cache(maxsize=32)
    def nearest(key: bytes, degrees: float) -> tuple[Tensor, dict[str, Tensor]]:
        drawing = torch.from_numpy(np.frombuffer(key, np.uint8).reshape(PAD, PAD).copy())
        scene = turned(as_digit(drawing), degrees)
        found = {n: (F.normalize(e(scene), dim=1) @ stored[n].T)[0].topk(NEAREST) for n, e in every.items()}
        return scene, {name: near.indices for name, near in found.items()}

    def of(state) -> tuple[Tensor, dict[str, Tensor]]:
        if not state["pad"].any():
            raise ValueError("There is nothing on the pad: draw a digit, or take an example.")
        return nearest(state["pad"].tobytes(), state["turn"])

    def words(state) -> str:
        return " ".join(
            f"Nearest by {NAMES[name]}: {', '.join(str(int(labels[n])) for n in near)}."
            for name, near in of(state)[1].items()
        )

    def draw(state) -> str:
        scene, found = of(state)
        rows = [in_rows([[pixel_image(grey(scene[0, 0]), 64, "what it sees", colours=8)]], "What it sees")]
        for name, near in found.items():
            images = [pixel_image(grey(pixels[n, 0]), 56, a(labels[n]), colours=8) for n in near]
            read = ", ".join(str(int(labels[n])) for n in near)
            rows.append(in_rows([images], f"nearest by {NAMES[name]}: <b>{read}</b>"))
        return f'<div style="display:flex;flex-direction:column">{"".join(rows)}</div>'

    def all_one(near: Tensor) -> bool:
        return len(labels[near].unique()) == 1

    def drawn(state) -> dict[str, Tensor]:
        return of(state)[1]

    def answer(asked) -> Float[np.ndarray, " n"]:
        """What the page asks for: what the networks see, and by each kind of features the nearest: label and pixels."""
        scene, found = of({"pad": np.array(asked["drawing"], np.uint8).reshape(PAD, PAD), "turn": asked["turn"]})
        near = [part for n in torch.cat([*found.values()]) for part in (labels[n][None], pixels[n].flatten())]
        return torch.cat([scene.flatten(), *near]).float().numpy()

    return Explorer(
        name="neighbours",
        title="Who is like my drawing?",
        controls=[
            Pad(name="pad", label="Your digit", size=PAD, brush=BRUSH, drawings=drawings()),
            Slider(name="turn", label="turn it (degrees)", low=-90, high=90, step=5, value=0),
        ],
        draw=draw,
        alt=words,
        beside=True,
        speaks=True,
        goals=(
            Goal("SimCLR's five are one digit, those by pixels are not",
                 lambda state: all_one(drawn(state)["SimCLR"]) and not all_one(drawn(state)["pixels"])),
            Goal("a drawing that SimCLR's neighbours do not agree on",
                 lambda state: not all_one(drawn(state)["SimCLR"])),
        ),
        steps={"pad": tuple(drawings().values()), "turn": (0, 40)},
        script="alike",
        config={
            "pad": {"size": PAD, "brush": BRUSH},
            "sources": {name: in_base64(pixels) for name, pixels in drawings().items()},
            "random": True,
            "side": SIDE,
            "nearest": NEAREST,
            "names": list(NAMES.values()),
        },
        answers={"read": answer, "example": any_digit},
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- the map


class Landed(NamedTuple):
    """Changed views of a picture: where each lands on the map, and which picture is nearest to it."""

    views: Float[Tensor, "V 1 H W"]
    places: Float[Tensor, "V 2"]
    nearest: Int[Tensor, " V"]


class Plane:
    """Pictures on a map by one kind of features: near means alike."""

    def __init__(self, encoder: looking.Encoder, pictures: LabelledImages):
        self.encoder, self.pictures = encoder, pictures
        self.directions = F.normalize(encoder(pictures.pixels), dim=1)
        self.places = tsne(self.directions, perplexity=60.0, steps=1000)

    def neighbours(self, point: int) -> Int[Tensor, " K"]:
        """The pictures most like this one."""
        cosines = self.directions @ self.directions[point]
        return cosines.topk(NEAREST + 1).indices[1:]

    def land(self, point: int, change: Augmentation) -> Landed:
        """Views of a picture are put between the three pictures most like them, nearer to the more alike."""
        views = change(self.pictures.pixels[point].expand(VIEWS, -1, -1, -1).contiguous(), generator("landed", point))
        cosines, near = (F.normalize(self.encoder(views), dim=1) @ self.directions.T).topk(3)
        weight = ((cosines - cosines[:, :1]) * 50).softmax(dim=1)
        return Landed(views, (weight[..., None] * self.places[near]).sum(1), near[:, 0])

    def on_page(self) -> dict[str, Any]:
        """The places of the pictures, and the neighbours of each: what a page draws."""
        near = [self.neighbours(point).tolist() for point in range(len(self.places))]
        return {"places": [[round(x, 2) for x in place] for place in self.places.tolist()], "near": near}

    def at_home(self, point: int, landed: Landed) -> int:
        """How many views are nearest to a picture of the right digit."""
        labels = self.pictures.labels
        return int((labels[landed.nearest] == labels[point]).sum())


def map_pictures() -> LabelledImages:
    """Test pictures, as many of each digit."""
    pixels, labels = recipes.images("test")
    chosen = label_draw(labels, PER_DIGIT, seed=0)
    return LabelledImages(pixels[chosen], labels[chosen])


def halved(levels: UInt8[np.ndarray, "H W"]) -> UInt8[np.ndarray, "H V"]:
    """Two levels of grey in one byte, each of 4 bits, the first one in the upper half."""
    four = (levels.astype(np.uint16) * 15 + 127) // 255
    return (16 * four[:, ::2] + four[:, 1::2]).astype(np.uint8)


def embedding_map(model: SimCLR) -> Explorer:
    """The map of each kind of features: a point to click, its picture, its neighbours, where its views land."""
    pictures = map_pictures()
    labels, count = pictures.labels, len(pictures.labels)

    @lru_cache(maxsize=3)
    def plane(name: str) -> Plane:
        return Plane(looking.encoders(model)[name], pictures)

    @lru_cache(maxsize=64)
    def landed(name: str, point: int, crop: float, turn: float, light: float) -> Landed:
        change = Augmentation(**dict.fromkeys(vars(looking.NOTHING), 0.0) | {
            "crop": crop, "rotation": turn, "brightness": light, "contrast": light})  # fmt: skip
        return plane(name).land(point, change)

    def of(state, name: str | None = None) -> tuple[Plane, int, Landed]:
        name, point = name or state["features"], state["point"] - 1
        return plane(name), point, landed(name, point, state["crop"], state["turn"], state["light"])

    def at_home(state, name: str | None = None) -> int:
        its, point, views = of(state, name)
        return its.at_home(point, views)

    def answer(asked) -> Float[np.ndarray, " n"]:
        """What the page asks for: the changed views, and where each lands by each kind of features: x, y, nearest."""
        found = [of(asked, name)[2] for name in FEATURES]
        lands = [torch.cat([its.places, its.nearest[:, None]], dim=1).flatten() for its in found]
        return torch.cat([found[0].views.flatten(), *lands]).float().numpy()

    def words(state) -> str:
        its, point, _ = of(state)
        near = ", ".join(str(int(labels[n])) for n in its.neighbours(point))
        return (
            f"The map by {NAMES[state['features']]}. Picture {point + 1} is {a(labels[point])}; its nearest: {near}. "
            f"{at_home(state)} of its {VIEWS} changed views land nearest to {a(labels[point])}."
        )

    def draw(state) -> str:
        its, point, views = of(state)
        near = its.neighbours(point)
        chosen = pixel_image(grey(pictures.pixels[point, 0]), 72, f"picture {point + 1}, {a(labels[point])}")
        rows = [
            in_rows([[chosen]], f"the picture, {a(labels[point])}"),
            in_rows(
                [[pixel_image(grey(pictures.pixels[n, 0]), 44, a(labels[n]), colours=8) for n in near]],
                "its neighbours",
            ),
            in_rows(
                _halves([pixel_image(grey(v[0]), 44, "a changed view", colours=8) for v in views.views]),
                "its views (◆)",
            ),
        ]
        return (
            f'<div><div style="display:flex;flex-wrap:wrap;gap:1em"><div>{_map_image(its, point, views)}</div>'
            f"<div>{''.join(f'<div>{row}</div>' for row in rows)}</div></div>"
            f'<p style="margin:0">{html.escape(words(state))}</p></div>'
        )

    strong = Slider(name="turn", label="turn (± degrees)", low=0, high=90, step=5, value=20)
    return Explorer(
        name="map",
        title="A map of 200 digits that nobody named",
        controls=[
            Choice(name="features", label="Features",
                   options={NAMES[name]: name for name in FEATURES}),
            Pick(name="point", label="picture", count=count, value=50),
            Slider(name="crop", label="crop (share)", low=0, high=0.9, step=0.1, value=0.5),
            strong,
            Slider(name="light", label="light (strength)", low=0, high=1, step=0.1, value=0.4),
        ],
        draw=draw,
        alt=words,
        speaks=True,
        goals=(
            Goal("with SimCLR all 8 views stay with their digit, by pixels at most 4 of the same do",
                 lambda state: at_home(state, "SimCLR") == VIEWS and at_home(state, "pixels") <= VIEWS // 2),
            Goal("SimCLR: changes so strong that fewer than half of the views stay",
                 lambda state: state["features"] == "SimCLR" and at_home(state) < VIEWS // 2),
            Goal("SimCLR: a picture most of whose neighbours are another digit",
                 lambda state: state["features"] == "SimCLR" and _stranger(labels, *of(state)[:2])),
        ),
        steps={"features": FEATURES},
        script="embedding",
        config={
            "digits": in_base64(halved(grey(pictures.pixels.flatten(end_dim=2)))),  # one below the other
            "labels": labels.tolist(),
            "colours": COLOURS,
            "side": SIDE,
            "views": VIEWS,
            "maps": {name: plane(name).on_page() for name in FEATURES},
            "names": {name: NAMES[name] for name in FEATURES},
        },
        answers={"land": answer},
    )  # fmt: skip


def _stranger(labels: Tensor, its: Plane, point: int) -> bool:
    return int((labels[its.neighbours(point)] == labels[point]).sum()) < NEAREST / 2


def _halves(images: Sequence[str]) -> list[Sequence[str]]:
    return [images[: len(images) // 2], images[len(images) // 2 :]]


def _map_image(its: Plane, point: int, views: Landed, size: int = 400) -> str:
    """The map as an image."""
    low, high = its.places.amin(0), its.places.amax(0)
    middle, reach = (low + high) / 2, 0.54 * float((high - low).max())
    fig, axes = figure(size / 100, size / 100, layout=None)
    axes.set_position((0, 0, 1, 1))
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    axes.axis("off")
    at = ((its.places - middle) / reach).tolist()
    landing = ((views.places - middle) / reach).tolist()
    for x, y in landing:
        axes.plot([at[point][0], x], [at[point][1], y], color=PALETTE["vermilion"], linewidth=1.2, linestyle="-")
    for (x, y), label in zip(at, its.pictures.labels.tolist(), strict=True):
        axes.text(x, y, str(label), color=COLOURS[label], ha="center", va="center")
    axes.plot(*zip(*landing, strict=True), "D", color=PALETTE["vermilion"], markersize=8, markeredgecolor="white")
    axes.plot(*at[point], "o", markersize=14, markerfacecolor="none", markeredgecolor="black", markeredgewidth=2.2)
    for n in its.neighbours(point):
        axes.plot(
            *at[n], "o", markersize=12, markerfacecolor="none", markeredgecolor=PALETTE["blue"], markeredgewidth=1.8
        )
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    return pixel_image(
        np.asarray(canvas.buffer_rgba())[..., :3].copy(),
        size,
        "the map; the words below say what is on it",
        colours=32,
    )


PLAYGROUNDS = {"neighbours": neighbours, "plane": embedding_map, "icons": icon_map}

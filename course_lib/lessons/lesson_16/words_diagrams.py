"""Lesson 16: the architectures that join images and words, with the sizes of the trained models."""

from matplotlib.figure import Figure

from course_lib.lessons.lesson_16.recipes import icon_words, pictures_and_words
from course_lib.viz.architecture import Add, Box, Link, Repeat, Residual, architecture

CAPTIONER = pictures_and_words.CaptionerSettings(model="flamingo")
CLIP = icon_words.ContrastiveSettings()
FEATURES, BOX = 128, 4  # of the frozen ResNet, and the numbers that say where a field is
R, D, V = pictures_and_words.FIELDS**2, CAPTIONER.dim, CAPTIONER.num_latents
C = FEATURES + BOX
IMAGE = f"(B, 3, {pictures_and_words.SIZE}, {pictures_and_words.SIZE})"


def clip() -> tuple[Figure, str]:
    """Two encoders, and the matrix of all cosines between them."""
    joint = f"(B, {CLIP.joint_dim})"
    images = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("ResNet of lesson 01\n(frozen)", "convolution", shape=f"(B, {FEATURES})"),
        Box("linear", "mlp", shape=joint),
        Box(f"unit length: {joint}", "norm", name="images"),
    ]
    similarity = [
        Box("cosines × c", "head", name="cosines", shape="(B, B)"),
        Box("softmax of rows, and\nof columns", shape="(B, B)"),
        Box("mean of both cross-\nentropies (diagonal)", shape="()"),
        Box("loss", "input"),
    ]
    texts = [
        Box("names as word pieces", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape=f"(B, T, {CLIP.dim})"),
        Add("positions", shape=f"(B, T, {CLIP.dim})"),
        Repeat(str(CLIP.depth), [Box("Transformer block", "attention", shape=f"(B, T, {CLIP.dim})")]),
        Box("mean over tokens,\nlinear", "mlp", shape=joint),
        Box(f"unit length: {joint}", "norm", name="texts"),
    ]
    links = Link("images", "cosines"), Link("texts", "cosines")
    return architecture({"image encoder": images, "similarity": similarity, "text encoder": texts}, links)


def vilbert() -> tuple[Figure, str]:
    """Two streams that attend to each other; at the right, one co-attention."""
    text, image = f"(B, T, {D})", f"(B, {R + 1}, {D})"
    words = [
        Box("words", "input", shape="(B, T)"),
        Box("embeddings", "embedding", name="words", shape=text),
        Repeat("2", [Box("co-attention", "attention", name="co words", shape=text), Box("Transformer block", "mlp")]),
        Box("first token: [CLS]", "head", name="cls"),
    ]
    regions = [
        Box("fields and boxes", "input", shape=f"(B, {R}, {FEATURES})"),
        Box("linear, then [IMG] first", "embedding", name="regions", shape=image),
        Repeat(
            "2", [Box("co-attention", "attention", name="co regions", shape=image), Box("Transformer block", "mlp")]
        ),
        Box("[IMG] ⊙ [CLS], linear", "head", name="score", shape="(B,)"),
        Box("score", "input"),
    ]
    opened = [
        Box("words x", "input", shape=text),
        Box("attention: queries of x,\nkeys, values of regions", "attention", shape=text),
        Box("add x, LayerNorm: x'", "norm", shape=text),
        Box("feed-forward", "mlp", shape=text),
        Box("add x', LayerNorm", "norm"),
    ]
    links = Link("words", "co regions"), Link("regions", "co words"), Link("cls", "score", f"(B, {D})")
    return architecture({"text stream": words, "image stream": regions, "co-attention of words": opened}, links)


def flamingo() -> tuple[Figure, str]:
    """A frozen encoder and a frozen language model; the resampler and the gated layers between them are trained."""
    text = f"(B, T, {D})"
    image = [
        Box("image", "input", shape=IMAGE),
        Box("ResNet of lesson 01\n(frozen)", "convolution", shape=f"(B, {R}, {FEATURES})"),
        Box("append the box\nof each field", shape=f"(B, {R}, {C})"),
        Box(f"Perceiver resampler:\n{V} learned queries", "attention", shape=f"(B, {V}, {C})"),
        Box("image tokens", name="image"),
    ]
    language = [
        Box("words", "input", shape="(B, T)"),
        Box("embeddings (frozen)", "embedding", shape=text),
        Repeat(
            str(CAPTIONER.depth),
            [
                Box("gated cross-attention", "head", name="gated", shape=text),
                Box("GPT block (frozen)", "attention", shape=text),
            ],
        ),
        Box("LayerNorm, head\n(frozen)", "norm", shape="(B, T, V)"),
        Box("logits", "input"),
    ]
    opened = [
        Box("words x", "input", shape=text),
        Residual(
            [
                Box("LayerNorm, attention to\nthe image tokens", "attention", shape=text),
                Box("× tanh(α), from α = 0", "head"),
            ],
            shape=text,
        ),
        Residual(
            [Box("LayerNorm,\nfeed-forward", "mlp", shape=text), Box("× tanh(β), from β = 0", "head")],
        ),
    ]
    columns = {"image": image, "language model": language, "gated cross-attention": opened}
    return architecture(columns, (Link("image", "gated"),))


DIAGRAMS = {"clip": clip, "vilbert": vilbert, "flamingo": flamingo}

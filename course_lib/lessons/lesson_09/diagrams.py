"""Lesson 09: where the operations of a GPT are."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Repeat, Residual, architecture


def flops() -> tuple[Figure, str]:
    """The matrix products of a GPT, with the multiplications that each takes for one token."""
    attention = Residual(
        [
            Box("q, k, v projections: 3 d²", "attention", "(T, d) each"),
            Box("scores  q kᵀ: T d", "attention", "(T, T)"),
            Box("weights · v: T d", "attention", "(T, d)"),
            Box("o projection: d²", "attention"),
        ],
        shape="(T, d)",
    )
    mlp = Residual([Box("up projection: 4 d²", "mlp", "(T, 4d)"), Box("down projection: 4 d²", "mlp")], shape="(T, d)")
    return architecture(
        {
            "multiplications for one token": [
                Box("embeddings: none", "embedding", "(T, d)"),
                Repeat("n", [attention, mlp], shape="(T, d)"),
                Box("output layer: V d", "head", "(T, V)"),
                Box("logits", "input"),
            ]
        }
    )


DIAGRAMS = {"flops": flops}

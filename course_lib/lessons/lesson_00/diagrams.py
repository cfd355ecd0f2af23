"""The architecture that lesson 00 draws before it is trained."""

from matplotlib.figure import Figure

from course_lib.lessons.lesson_00 import landscape, letters

LETTERS = "ehiostuw"  # as on the page


def network() -> tuple[Figure, str]:
    """The network of 35 parameters, untrained."""
    weights = letters.wires(letters.fresh_network(len(LETTERS)))
    figure = landscape.wiring({"x (8,)  →  h (3,)  →  z (2,)": weights}, inputs=LETTERS, outputs=letters.LANGUAGES)
    return figure, (
        "Eight circles for the letters on the left, three hidden units in the middle, two outputs on the right, "
        "English and French. A line leads from each letter to each hidden unit, and from each of these to each output."
    )


DIAGRAMS = {"network": network}

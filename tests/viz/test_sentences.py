from course_lib.viz.sentences import word_links
from course_lib.viz.style import GREY, PALETTE


def test_word_links_draws_every_link_and_the_crossing_ones_strong():
    fig = word_links(["the", "red", "car", "."], ["la", "voiture", "rouge", "."], [(0, 0), (1, 2), (2, 1), (3, 3)])
    drawn = {tuple(map(int, line.get_xdata())): line.get_color() for line in fig.axes[0].lines}
    assert drawn == {(0, 0): GREY, (1, 2): PALETTE["vermilion"], (2, 1): PALETTE["vermilion"], (3, 3): GREY}

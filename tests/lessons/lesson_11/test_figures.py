"""The figures of lesson 11 say what their axes are, each label by itself."""

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from course_lib.lessons.lesson_11 import figures


def test_inside_has_no_two_labels_of_axes_side_by_side():
    fig = figures.inside(torch.rand(3, 3, 3, 3), torch.rand(2, 2), torch.rand(2, 2), uniform=(10.0, 10), patch_size=4)
    FigureCanvasAgg(fig).draw()
    near, far = sorted(axes.yaxis.label.get_window_extent().x0 for axes in fig.axes if axes.get_ylabel())
    assert far - near > fig.bbox.width / 5  # a panel lies between the two

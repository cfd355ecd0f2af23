import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.images import fully_connected_as_convolution


def test_the_same_weights_give_the_same_answer_and_a_map_of_answers_on_a_larger_image():
    torch.manual_seed(0)
    layer, image = nn.Linear(3 * 4 * 5, 7).double(), torch.randn(2, 3, 6, 8, dtype=torch.float64)
    kernel = fully_connected_as_convolution(layer.weight, 4, 5)
    answers = F.conv2d(image, kernel, layer.bias)
    assert answers.shape == (2, 7, 3, 4)
    for row in range(3):
        for column in range(4):
            window = image[:, :, row : row + 4, column : column + 5]
            torch.testing.assert_close(answers[:, :, row, column], layer(window.flatten(1)), rtol=0, atol=1e-12)

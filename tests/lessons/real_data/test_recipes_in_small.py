"""Every training on a real set in small, on data of our own: it goes on, scores and ships as the lessons' do."""

import json

import pytest
import torch

from course_lib.lessons.recipes import all_recipes, real_recipes
from course_lib.training.progress import using
from tests.lessons.common import Stop


@pytest.mark.parametrize("name", real_recipes())
def test_a_training_goes_on_scores_and_ships(name, made_up, in_small, tmp_path):
    recipe = in_small(name)
    with pytest.raises(KeyboardInterrupt), using(lambda title: Stop()):
        recipe.run(3, tmp_path / "one")
    outcome = recipe.run(3, tmp_path / "one")
    whole = recipe.run(3, tmp_path / "two").shipped.model.state_dict()
    other = recipe.run(4, tmp_path / "three").shipped.model.state_dict()
    shipped = outcome.shipped.model.state_dict()
    assert all(torch.equal(tensor, whole[key]) for key, tensor in shipped.items())
    assert any(not torch.equal(tensor, other[key]) for key, tensor in shipped.items())
    assert recipe.chosen_by in outcome.validation and set(outcome.validation) <= set(outcome.test)
    assert json.dumps(outcome.shipped.extra) and json.dumps(recipe.facts()) and 0 < recipe.minutes <= 20


def test_no_training_on_real_data_has_the_name_of_another():
    assert not real_recipes().keys() & all_recipes().keys()
    assert {recipe.lesson for recipe in real_recipes().values()} == {"01", "06", "08", "11"}

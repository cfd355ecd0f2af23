from course_lib.lessons.picture import the_picture


def test_the_picture_is_one_small_scene_with_a_three():
    scene = the_picture()
    assert scene.pixels.shape == (1, 1, 32, 32) and scene.labels.tolist() == [[3]]
    assert set(scene.semantic.unique().tolist()) == {0, 4}

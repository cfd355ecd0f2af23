"""Each playground fits a phone and a laptop and can be used by everybody; without a kernel a static form stays."""

import pytest
from playwright.sync_api import expect

from tests.axe import axe_script
from tests.browser.explorers import PLAYGROUNDS, explorer
from tests.browser.lab import AXE
from tests.browser.played import overflowing

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light")])
@pytest.mark.parametrize("name", PLAYGROUNDS)
def test_a_playground_fits_and_axe_finds_nothing_serious(play, name, width, height, theme):
    playground = PLAYGROUNDS[name]
    here = play(explorer(name), width=width, height=height, theme=theme, kernel=playground.asks)
    here.shows(playground.ready)
    for method, *words in playground.steps:
        getattr(here, method)(*words)
    here.page.wait_for_function("!document.getAnimations().length")
    assert overflowing(here.page) == []
    assert width < 1000 or playground.tall or here.page.evaluate("document.documentElement.scrollHeight") <= height
    here.page.evaluate(axe_script())
    assert here.page.evaluate(AXE, ".course-play") == []


LIVES_ALONE = "embedding"  # asks a kernel for more than the page itself can show


@pytest.mark.parametrize("name", [name for name, one in PLAYGROUNDS.items() if one.asks and name != LIVES_ALONE])
def test_without_a_kernel_the_static_form_of_what_asks_one_stays(play, name):
    here = play(explorer(name))
    expect(here.page.get_by_text("static form")).to_be_visible()
    assert here.page.locator(".course-play").count() == 0


def test_the_map_of_digits_lives_without_a_kernel_too(play):
    here = play(explorer(LIVES_ALONE))
    here.says("The map by SimCLR. Picture 50 is a 2")
    expect(here.page.get_by_text("static form")).to_be_hidden()

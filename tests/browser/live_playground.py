"""What the tests of playgrounds that need no model share."""

from contextlib import contextmanager
from pathlib import Path

from tests.axe import axe_script
from tests.browser.played import overflowing, served
from tests.browser.test_playgrounds_live import Played, centre
from tests.browser.test_slides import AXE

SIZES = [(390, 844), (1280, 720)]


@contextmanager
def played(browser, explorer, **how):
    """A page of its own with this explorer's live form; what it complains of fails at the end."""
    with served(browser, Path()) as open_page:
        yield Played(open_page(explorer, **how))


def check_it_fits(browser, explorer):
    """Nothing is wider than a phone or a laptop, and all of it stands on the laptop's screen."""
    for width, height in SIZES:
        with played(browser, explorer, width=width, height=height) as here:
            assert overflowing(here.page) == []
            if width > 1000:
                assert here.page.evaluate("document.documentElement.scrollHeight") <= height


def check_axe(browser, explorer):
    """axe-core finds nothing serious, light or dark."""
    for theme in ("light", "dark"):
        with played(browser, explorer, theme=theme) as here:
            here.page.evaluate(axe_script())
            assert here.page.evaluate(AXE, ".course-play") == []


def move(here, handle, by):
    """Hold this element and move it by so many pixels, right and down; the button stays down."""
    x, y = centre(handle)
    here.page.mouse.move(x, y)
    here.page.mouse.down()
    here.page.mouse.move(x + by[0], y + by[1], steps=8)


def axes(here):
    """All that no drag may change: what stands in the plots beside lines, points and bars."""
    return here.page.evaluate(
        "[...document.querySelectorAll('.play-view svg > :is(text, line)')].map((one) => one.outerHTML).join()"
    )

"""The site in a real browser, from a folder and without a network, in light and dark."""

import pytest
from playwright.sync_api import expect

from tests.axe import axe_script
from tests.site.small_site import LESSON, small_site

pytestmark = [
    pytest.mark.needs("chromium", "lecture_assets"),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver"),
]

LESSON_PAGE = LESSON.replace(".ipynb", ".html")
PAGES = ["index.html", LESSON_PAGE, "docs/lecturing.html", "reference/index.html", "search.html?q=attention"]
PAGES += ["reference/course_lib.functional.attention.html", "_modules/course_lib/training/loop.html", "genindex.html"]

AXE = """
async () => {
  const found = await axe.run(document, {resultTypes: ["violations"], preload: false});
  return found.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.html.slice(0, 90)).join(" | "));
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return small_site(tmp_path_factory.mktemp("site"))[0]


@pytest.fixture
def open_page(offline, site):
    """open_page(name, theme): a page of the site."""

    def open_it(name, theme="light", **options):
        look = {"color_scheme": theme, "viewport": {"width": 1280, "height": 900}}
        return offline(f"{site.as_uri()}/{name}", complaints=("error",), **look, **options)

    return open_it


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(open_page, name, theme):
    page = open_page(name, theme)
    if "?q=" in name:
        expect(page.locator("#search-results li").first).to_be_visible()
    if name == LESSON_PAGE:
        expect(page.locator("mjx-container").first).to_be_visible()
        page.evaluate("document.querySelectorAll('article details').forEach((fold) => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.add_script_tag(content=axe_script())
    assert page.evaluate(AXE) == []


def test_the_search_finds_a_word_of_a_lesson_and_a_function(open_page):
    page = open_page("index.html")
    page.get_by_role("searchbox").or_(page.get_by_placeholder("Search")).first.fill("bottleneck")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a")
    expect(found.filter(has_text="Attention").first).to_be_visible()
    found.filter(has_text="05").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("05 · Attention")
    page = open_page("search.html?q=valid_positions")
    expect(page.locator("#search-results li a").filter(has_text="valid_positions").first).to_be_visible()


def test_a_stepper_shows_one_frame_and_moves_by_the_keyboard(open_page):
    page = open_page(LESSON_PAGE)
    stepper = page.locator(".course-stepper").first
    expect(stepper.locator("details:visible")).to_have_count(1)
    expect(stepper).to_contain_text("zone")
    stepper.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(stepper.locator("output")).to_have_text("She doesn't see them.")
    expect(stepper.locator("details:visible")).to_have_count(1)
    assert stepper.locator("details[open]").get_attribute("data-at") == "1"


def test_a_playground_starts_when_it_comes_near_and_is_dragged(open_page):
    page = open_page(LESSON_PAGE)
    softmax = page.locator("[data-playground=softmax]")
    assert page.locator(".course-play").count() == 0  # far below
    softmax.scroll_into_view_if_needed()
    bar = softmax.get_by_role("slider", name="key 1", exact=True)
    bar.locator(".play-grip").hover()
    x, y = (softmax.locator(".play-grip").first.bounding_box()[side] + 5 for side in "xy")
    page.mouse.down()
    page.mouse.move(x, y + 60, steps=4)
    page.mouse.up()
    assert float(bar.get_attribute("aria-valuenow")) < 0.5
    expect(softmax.locator(".course-stepper")).to_be_hidden()
    page.emulate_media(media="print")
    expect(softmax.locator(".course-stepper")).to_be_visible()
    expect(softmax.locator(".course-play")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_a_playground(open_page, theme):
    page = open_page(LESSON_PAGE, theme)
    page.locator("[data-playground=mask]").scroll_into_view_if_needed()
    expect(page.locator(".course-play")).to_have_count(2)
    page.add_script_tag(content=axe_script())
    run = AXE.replace("axe.run(document,", "axe.run('.course-play',")
    assert page.evaluate(run) == []


def test_without_its_script_a_playground_keeps_its_frames(open_page):
    page = open_page("index.html")
    broken = "window.startPlayground = () => false;"
    page.context.route("**/playgrounds/*.js", lambda route: route.fulfill(body=broken, content_type="text/javascript"))
    page.goto(page.url.replace("index.html", LESSON_PAGE))
    softmax = page.locator("[data-playground=softmax]")
    softmax.scroll_into_view_if_needed()
    expect(softmax.locator("details:visible")).to_have_count(1)
    expect(softmax.get_by_role("slider").first).to_be_visible()


def test_without_scripts_each_frame_opens_by_itself(open_page):
    page = open_page(LESSON_PAGE, java_script_enabled=False)
    frames = page.locator(".course-stepper").first.locator("> details")
    expect(frames.locator("> summary").nth(1)).to_be_visible()
    frames.locator("> summary").nth(1).click()
    expect(frames.nth(1)).to_have_attribute("open", "")


def test_formulas_of_text_and_of_outputs_are_typeset(open_page):
    page = open_page(LESSON_PAGE)
    expect(page.locator("article p mjx-container").first).to_be_visible()
    expect(page.locator(".cell_output mjx-container:visible").first).to_be_visible()
    assert "$" not in page.locator(".cell_output").filter(has_text="Exercise: Softmax").first.inner_text()


def test_a_result_opens_with_a_click(open_page):
    page = open_page(LESSON_PAGE)
    result = page.locator("details", has_text="The result: make your prediction, then open it").first
    expect(result.locator("img")).to_be_hidden()
    result.locator("summary").click()
    expect(result.locator("img")).to_be_visible()


def test_the_theme_is_changed_by_a_button(open_page):
    page = open_page("index.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = [page.evaluate(ground)]
    for _ in range(3):  # dark, light, as the system has it
        page.locator("button.theme-toggle:visible").first.click()
        grounds.append(page.evaluate(ground))
    assert len(set(grounds)) == 2 and grounds[3] == grounds[0]


FIGURES = """() => [...document.querySelectorAll('article img, article canvas')].filter((one) =>
  one.checkVisibility() && one.getBoundingClientRect().width > 1).map((one) => {
    const { width, right } = one.getBoundingClientRect();
    let box = one;
    const scrolls = (at) => ['auto', 'scroll'].includes(getComputedStyle(at).overflowX);
    while (box && !(scrolls(box) && box.getBoundingClientRect().right <= innerWidth)) box = box.parentElement;
    return { name: one.alt, width, natural: one.naturalWidth || width, reached: right <= innerWidth || Boolean(box) };
  })"""


@pytest.mark.parametrize("name", ["index.html", LESSON_PAGE])
def test_a_phone_needs_no_horizontal_scrolling_and_its_figures_are_readable(open_page, name):
    """A figure is at least 0.6 of its width, or of the page's; one that is wider than the page scrolls in its box."""
    page = open_page(name)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    figures = page.evaluate(FIGURES)
    assert [one for one in figures if not one["reached"]] == []
    assert [one for one in figures if one["width"] < 0.6 * min(one["natural"], 358)] == []
    assert figures or name != LESSON_PAGE

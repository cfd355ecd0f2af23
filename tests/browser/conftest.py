"""A Chromium for all tests here, and JupyterLab pages that are checked when a test is done with them."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS, Lab, NotebookPage
from tests.browser.played import served
from tests.browser.playgrounds import write_playgrounds
from tests.needs import find_chromium

PATIENCE = 240_000  # milliseconds until what is expected of a page must be seen there: the machine may be busy


@pytest.fixture(scope="module", autouse=True)
def patience():
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=None)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def labs(tmp_path_factory):
    """The one server of this process, as soon as a module has started it."""
    labs = []
    yield labs
    for lab in labs:
        lab.__exit__()


@pytest.fixture(scope="module")
def start_lab(labs, tmp_path_factory):
    """start_lab([notebook, ...]): copies of these notebooks on a server that the module finds as if it were new."""

    def start(notebooks):
        if not labs:
            labs.append(Lab(tmp_path_factory.mktemp("lab")).__enter__())
        for notebook in notebooks:
            shutil.copy(notebook, labs[0].notebooks)
        return labs[0]

    yield start
    for lab in labs:
        lab.clear()


@pytest.fixture(scope="module")
def open_notebook(browser):
    """open_notebook(lab, name): a page whose problems fail the module's tests at the latest when it closes."""
    pages = []

    def open_page(lab, name):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        notebook = NotebookPage(context.new_page(), lab, name)
        pages.append(notebook)
        return notebook

    yield open_page
    problems = [f"{page.name}: {problem}" for page in pages for problem in page.problems]
    for page in pages:
        page.page.context.close()
    assert problems == []


@pytest.fixture(scope="module")
def lab(request, tmp_path_factory, start_lab, open_notebook):
    """The playgrounds of a module, which has FIRST and PLAYED, in a notebook of which all cells have run."""
    path = tmp_path_factory.mktemp("playgrounds") / "98_playgrounds.ipynb"
    write_playgrounds(path, request.module.FIRST, request.module.PLAYED)
    page = open_notebook(start_lab([path]), path.name)
    page.run_all()
    return page


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Where the trained models of the site are written when a page asks for them."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def play(browser, models):
    """play(explorer, width=..., height=..., theme=..., kernel=...): its live form on a page of its own."""
    with served(browser, models) as open_it:
        yield open_it


@pytest.fixture
def blank(browser):
    """A page without anything."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def offline(browser):
    """offline(address, ...): a page that can reach nothing; what it asks for or complains of fails the test."""
    contexts, problems = [], []

    def open_it(address, *, complaints=("error", "warning"), **options):
        contexts.append(browser.new_context(offline=True, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("request", lambda asked: problems.append(asked.url) if asked.url.startswith("http") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if line.type in complaints else None)
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert problems == []

"""One headless Chromium for each test file here, with the engine's modules in it."""

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS
from tests.engine.modules import Engine
from tests.needs import find_chromium


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), headless=True, args=CHROMIUM_FLAGS)
        page = browser.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.set_default_timeout(240_000)  # milliseconds: the machine may be busy
        yield Engine(page, tmp_path_factory.mktemp("models"))
        browser.close()
    assert problems == []

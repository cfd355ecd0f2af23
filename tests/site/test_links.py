"""The faults that a site is looked through for."""

import pytest

from course_lib.site.links import problems

GOOD = '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top">up</a><a href="https://example.org/">out</a>'
OTHER = '<p id="here">B</p><a href="../site/a.html">a</a><img src="data:image/png;base64,AA" alt="A picture">'


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.html").write_text(GOOD, encoding="utf-8")
    (folder / "b.html").write_text(OTHER, encoding="utf-8")
    return folder


def test_sound_pages_have_no_problem(site):
    assert problems(site) == []


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="gone.html">x</a>', "leads to gone.html, which is not there"),
        ('<a href="b.html#gone">x</a>', "leads to b.html#gone: that page has no such place"),
        ('<a href="#gone">x</a>', "leads to #gone: that page has no such place"),
        ('<img src="data:image/png;base64,AA">', "1 pictures without alt text"),
        ('<img src="data:image/png;base64,AA" alt=" ">', "1 pictures without alt text"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
        ('<script src="gone.js"></script>', "leads to gone.js, which is not there"),
    ],
)
def test_each_fault_is_named(site, html, said):
    (site / "c.html").write_text(html, encoding="utf-8")
    (problem,) = problems(site)
    assert problem.startswith("c.html") and problem.endswith(said)

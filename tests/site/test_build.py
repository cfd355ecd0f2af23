"""The pages of a small site."""

import html
import json
import re
import sys

import pytest

from course_lib.classroom.widgets.script import classic
from course_lib.data.place import CannotStart
from course_lib.site.build import build, repaired, write_site
from tests.site.small_site import LESSON, SMALL, small_site

pytestmark = [pytest.mark.needs("lecture_assets"), pytest.mark.filterwarnings("ignore:.*MystReferenceResolver")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder, faults = small_site(tmp_path_factory.mktemp("site"))
    assert faults == []
    return folder


@pytest.fixture(scope="module")
def lesson(site):
    return (site / LESSON).with_suffix(".html").read_text(encoding="utf-8")


def test_every_page_is_there(site):
    for name in ("index", "README", "docs/site", "reference/index", "reference/models", "search"):
        assert (site / f"{name}.html").is_file(), name
    assert all((site / "reference" / f"{name}.html").is_file() for name in SMALL.modules)
    assert (site / "searchindex.js").stat().st_size > 10_000 and (site / ".nojekyll").is_file()


def test_no_page_asks_another_machine_for_anything(site):
    asked = re.compile(
        r"(?:<script[^>]*\ssrc|<img[^>]*\ssrc|<link[^>]*\shref)=\"(?:https?:)?//|@import|url\(\"?https?:"
    )
    assert not [page for page in [*site.rglob("*.html"), *site.rglob("*.css")] if asked.search(page.read_text("utf-8"))]


def test_results_answers_and_the_frames_of_playgrounds_are_folded_and_formulas_find_mathjax_beside_the_page(
    site, lesson
):
    assert lesson.count("<details><summary>The result: make your prediction, then open it</summary><img alt=") >= 3
    assert lesson.count("<details><summary>Show the answer</summary>") >= 5
    assert lesson.count('<div class="course-stepper" data-controls=') == 3 and "widget-view" not in lesson
    assert "English sentence: The rich actress visits her old school.</summary>" in lesson
    assert re.search(r'<script[^>]* src="\.\./_static/tex-svg-full\.js', lesson)
    assert (site / "_static" / "tex-svg-full.js").stat().st_size > 1_000_000


def test_a_playground_with_a_script_stands_around_its_frames_and_finds_the_script_beside_the_page(site, lesson):
    boxes = re.findall(r'<div class="course-playground" data-playground="(\w+)" data-config="([^"]+)">(<p>)', lesson)
    assert [name for name, _, _ in boxes] == ["translator", "softmax", "mask"]
    assert all("goals" in json.loads(html.unescape(config)) for _, config, _ in boxes)
    scripts = {file.name: file.read_text("utf-8") for file in (site / "_static" / "playgrounds").iterdir()}
    assert scripts == {f"{name}.js": classic(name) for name in ("translator", "softmax", "mask")}


def test_what_is_for_instructors_is_on_no_page(site):
    notes = "it began with a complaint: translators that read"
    assert notes in (SMALL.course / LESSON).read_text("utf-8")
    words = "".join(page.read_text("utf-8") for page in [*site.rglob("*.html"), *site.rglob("*.js")])
    assert notes not in words
    assert not list(site.rglob("*.ipynb")) and not list(site.glob("_sources/*"))
    assert "lectures/05.html" not in words and "<li><p>05, Attention: 30, 60 or 90 minutes</p></li>" in words


def test_the_reference_has_signatures_with_shapes_docstrings_and_source(site):
    page = (site / "reference" / "course_lib.functional.attention.html").read_text("utf-8")
    assert "Bool[Tensor, 'B 1 1 T']" in re.sub("<[^>]+>", "", page).replace("&#39;", "'")
    assert "The mask that hides padding from every query" in page and "_modules/course_lib/functional/attention" in page
    assert 'title="course_lib.functional.attention.valid_positions"' in page  # `valid_positions` became a link


def test_no_path_of_this_machine_is_on_a_page(site, tmp_path_factory):
    places = (str(SMALL.course), str(tmp_path_factory.getbasetemp()), sys.prefix)
    for page in [*site.rglob("*.html"), *site.rglob("*.js")]:
        assert not [place for place in places if place in page.read_text("utf-8")], page


def test_empty_headers_and_lists_of_parameters_are_repaired():
    assert repaired('<th class="head"><p></p></th><th>a</th>') == "<td></td><th>a</th>"
    listed = '<dl>\n<dd><em class="sig-param">x</em>, </dd></dl>'
    assert (
        repaired(listed) == '<span class="sig-rows"><span class="sig-row"><em class="sig-param">x</em>, </span></span>'
    )
    assert repaired('<dl class="py function"><dt>f</dt><dd><p>g</p></dd></dl>').startswith('<dl class="py function">')


def test_the_same_pages_come_out_again_in_place_of_the_old_ones_and_it_says_how_far_it_is(site, tmp_path):
    (tmp_path / "searchindex.js").touch()
    (tmp_path / "old.html").touch()
    said = []
    build(SMALL, tmp_path, say=said.append)
    assert [words[:3] for words in said] == ["1/4", "2/4", "3/4", "4/4"]
    assert re.fullmatch(r"2/4 Reading page 1 of \d+", said[1])
    assert not (tmp_path / "old.html").exists()
    files = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file() and path.suffix != ".inv")
    assert [name for name in files if (site / name).read_bytes() != (tmp_path / name).read_bytes()] == []


def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(CannotStart, match="not a site of the course"):
        write_site(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "myst_nb", None)
    with pytest.raises(CannotStart, match=r"pip install --editable '.\[site\]'"):
        write_site(SMALL, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_faults_are_named_and_end_with_exit_code_1(monkeypatch, tmp_path, capsys):
    def with_a_fault(sources, to, *, say):
        say("1/4 Working")
        to.mkdir()
        return ["a.html leads to b.html, which is not there"]

    monkeypatch.setattr("course_lib.site.build.build", with_a_fault)
    assert write_site(SMALL, tmp_path / "site") == 1
    said = capsys.readouterr().out
    assert said.startswith("1/4 Working\n") and "✗ a.html leads to b.html, which is not there" in said

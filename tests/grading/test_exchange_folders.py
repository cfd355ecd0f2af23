"""The exchange's permissions, as far as one account can see them, and a student's way to the feedback in it."""

import hashlib
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import exchange as exchanges
from course_lib.grading import student
from course_lib.grading.collect import collect
from course_lib.grading.exchange import SECRET, Exchange, hand_in, publish
from course_lib.grading.handout import student_places
from course_lib.grading.receipts import read_receipt
from course_lib.grading.results import results
from course_lib.grading.student import fetch, submit
from tests.grading.courses import NAME, NOTEBOOK, SOURCE
from tests.grading.unreleased import unreleased_course

FILE = f"{NOTEBOOK}.ipynb"
RELEASE = {FILE: json.dumps(SOURCE).encode()}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def exchange(tmp_path):
    exchange = Exchange(root=tmp_path / "exchange", course="deep-learning")
    publish(exchange, NAME, RELEASE)
    return exchange


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def put(exchange):
    return hand_in(exchange, NAME, "ada", NOON, {FILE: b"{}"})


# ------------------------------------------------------------------------------------------------ who may do what


def test_students_read_what_is_released_and_add_to_what_is_handed_in(exchange):
    course = exchange.root / exchange.course
    for folder in (exchange.root, course, course / "outbound", course / "outbound" / NAME):
        assert permissions(folder) == 0o755
    assert permissions(exchange.outbound(NAME) / FILE) == 0o644
    assert permissions(exchange.inbound) == 0o3733  # add, but not list; remove only what is one's own


@pytest.mark.parametrize("mode", [0o733, 0o2733, 0o1733])
def test_a_folder_for_submissions_that_nbgrader_made_gets_what_is_missing(exchange, mode):
    exchange.inbound.chmod(mode)
    publish(exchange, NAME, RELEASE)
    assert permissions(exchange.inbound) == 0o3733


def test_a_submission_is_for_its_student_and_the_instructors_group(exchange):
    place = put(exchange)
    assert permissions(place) & 0o777 == 0o750 and place.stat().st_gid == exchange.inbound.stat().st_gid


def test_where_the_group_is_not_handed_on_the_instructor_can_read_all_the_same(exchange):
    exchange.inbound.chmod(0o1733)
    assert permissions(put(exchange)) & 0o777 == 0o755


@pytest.mark.parametrize("which", ["", "deep-learning", "deep-learning/outbound", f"deep-learning/outbound/{NAME}"])
def test_a_folder_in_which_all_can_replace_everything_is_refused(exchange, which):
    folder = exchange.root / which
    before = permissions(folder)
    folder.chmod(0o777)
    with pytest.raises(CannotStart, match=f"can rename and replace what lies in {folder}, .* chmod o-w {folder} "):
        publish(exchange, NAME, RELEASE)
    folder.chmod(0o1777)
    publish(exchange, NAME, RELEASE)
    folder.chmod(before)


def test_a_course_folder_of_another_account_is_refused(exchange, monkeypatch):
    monkeypatch.setattr(exchanges.os, "geteuid", lambda: 61001)
    if os.stat(exchange.root).st_uid == 0:  # root's folders are trusted; these must be somebody else's
        for path in (exchange.root / exchange.course, exchange.inbound, exchange.outbound(NAME).parent):
            os.chown(path, 61002, -1)
    with pytest.raises(CannotStart, match=r"belongs to another account \(\d+\), which could replace"):
        publish(exchange, NAME, RELEASE)


# ------------------------------------------------------------------------------------------------ feedback


@pytest.fixture
def course(tmp_path, exchange, monkeypatch):
    """A student's place: an empty folder, and the exchange."""
    folders = unreleased_course(tmp_path / "course")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("COURSE_EXCHANGE", str(exchange.root))
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(folders.root))
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setattr(student, "course_folder", lambda: tmp_path / "nowhere")
    fetch(NAME)
    return folders


def submitted(number):
    """Submits; the receipts so far, oldest first."""
    submit(NAME)
    receipts = [read_receipt(path) for path in Path(f"assignment_{NAME}/submissions").glob("*.receipt.json")]
    assert len(receipts) == number
    return sorted(receipts, key=lambda receipt: (receipt.submitted, len(receipt.file)))


def return_feedback(receipt, words):
    """What nbgrader's release_feedback does."""
    _, exchange = student_places()
    secret = (Path(receipt.exchange) / SECRET).read_text()
    place = exchange.root / exchange.course / "feedback"
    place.mkdir(exist_ok=True, mode=0o711)
    (place / f"{hashlib.md5((secret + NOTEBOOK).encode()).hexdigest()}.html").write_text(words)


def test_each_submission_has_a_secret_of_its_own_that_is_collected_with_it(course):
    first, second = submitted(1)[0], submitted(2)[1]
    secrets = [(Path(receipt.exchange) / SECRET).read_text() for receipt in (first, second)]
    assert len(set(secrets)) == 2 and min(map(len, secrets)) >= 32
    assert collect(NAME, folder=course.root) == 0
    assert (course.submitted(first.student, NAME) / SECRET).read_text() in secrets


@pytest.mark.parametrize("spoil", ["link", "nothing", "words"])
def test_a_secret_that_is_none_is_left_where_it_is(course, tmp_path, spoil):
    secret = Path(submitted(1)[0].exchange) / SECRET
    (tmp_path / "private").write_text("0123456789abcdef")
    secret.unlink()
    if spoil == "link":
        secret.symlink_to(tmp_path / "private")
    elif spoil == "words":
        secret.write_text("../../somebody else's")
    assert collect(NAME, folder=course.root) == 0
    (place,) = (course.root / "submitted").glob(f"*/{NAME}")
    assert (place / FILE).exists() and not (place / SECRET).exists()


def test_feedback_is_fetched_for_each_submission_that_has_some(course, capsys):
    first, second = submitted(1)[0], submitted(2)[1]
    assert results(NAME) == 1
    assert "no feedback yet on your 2 submissions" in capsys.readouterr().out
    return_feedback(second, "well done")
    assert results(NAME) == 0
    (page,) = Path(f"assignment_{NAME}/feedback").iterdir()
    assert page.read_text() == "well done" and page.stem == Path(second.file).stem
    said = capsys.readouterr().out
    assert str(page) in said and second.submitted in said
    return_feedback(first, "try again")
    return_feedback(second, "corrected")
    results(NAME)
    assert page.read_text() == "corrected" and len(list(page.parent.iterdir())) == 2


def test_without_a_submission_or_an_exchange_there_is_no_feedback_to_fetch(course, monkeypatch):
    with pytest.raises(CannotStart, match=f"Nothing was submitted .* course assign submit {NAME}"):
        results(NAME)
    monkeypatch.delenv("COURSE_EXCHANGE")
    with pytest.raises(CannotStart, match="There is no exchange here"):
        results(NAME)

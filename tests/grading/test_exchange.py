"""The exchange's own files and names: whose they are, who may read them, and what nbgrader's tools write there."""

import errno
import os
import stat
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import jupyter_core.paths
import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import exchange as exchanges
from course_lib.grading.exchange import (
    Exchange,
    find_exchange,
    hand_in,
    handed_in,
    is_plain_name,
    parse_handed,
    parse_time,
    plain,
    publish,
    read_config,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def exchange(tmp_path):
    made = Exchange(root=tmp_path / "exchange", course="deep-learning")
    publish(made, "05", {"attention.ipynb": b"first"})
    return made


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes a course's nbgrader_config.py, or the machine's, and returns the course directory."""
    monkeypatch.delenv(exchanges.VARIABLE, raising=False)
    machine, course = tmp_path / "machine", tmp_path / "course"
    monkeypatch.setattr(jupyter_core.paths, "jupyter_config_path", lambda: [str(machine)])

    def write(text, *, of_the_machine=False):
        place = machine if of_the_machine else course
        place.mkdir(exist_ok=True)
        (place / exchanges.CONFIG).write_text("c = get_config()\n" + text)
        return course

    return write


# settings ---------------------------------------------------------------------------------------------------


def test_an_exchange_is_found_by_the_settings_and_the_environment_comes_first(config, tmp_path, monkeypatch):
    course = config(f"c.Exchange.root = {str(tmp_path / 'a')!r}\nc.CourseDirectory.course_id = 'dl'")
    assert find_exchange(course) == Exchange(root=tmp_path / "a", course="dl")
    monkeypatch.setenv(exchanges.VARIABLE, str(tmp_path / "b"))
    assert find_exchange(course) == Exchange(root=tmp_path / "b", course="dl")


def test_without_settings_there_is_none(config):
    assert find_exchange(config("")) is None


def test_what_the_course_sets_weighs_more_than_what_the_machine_sets(config, tmp_path):
    config("c.Exchange.root = '/machine'\nc.CourseDirectory.course_id = 'machine'", of_the_machine=True)
    course = config("c.CourseDirectory.course_id = 'course'")
    found = find_exchange(course)
    assert (str(found.root), found.course) == ("/machine", "course")


@pytest.mark.parametrize(
    ("setting", "checked"),
    [
        ("", True),
        ("c.Exchange.check_owner = False", False),
        ("c.ExchangeCollect.check_owner = False", False),
        ("c.Exchange.check_owner = False\nc.ExchangeCollect.check_owner = True", True),
    ],
)
def test_owners_are_checked_unless_a_setting_says_otherwise(config, setting, checked):
    course = config(f"c.Exchange.root = '/exchange'\nc.CourseDirectory.course_id = 'dl'\n{setting}")
    assert find_exchange(course).check_owner is checked


def test_a_student_finds_the_only_course_by_itself_and_is_asked_where_there_are_two(config, tmp_path):
    config(f"c.Exchange.root = {str(tmp_path / 'exchange')!r}", of_the_machine=True)
    (tmp_path / "exchange" / "dl" / "outbound").mkdir(parents=True)
    assert find_exchange(None).course == "dl"
    (tmp_path / "exchange" / "nlp" / "outbound").mkdir(parents=True)
    with pytest.raises(CannotStart, match="needs the course's name"):
        find_exchange(None)


@pytest.mark.parametrize("name", ["", "..", "a/b", " "])
def test_a_course_needs_a_name_that_can_stand_in_a_path(config, name):
    course = config(f"c.Exchange.root = '/exchange'\nc.CourseDirectory.course_id = {name!r}")
    with pytest.raises(CannotStart, match="needs the course's name"):
        find_exchange(course)


def test_settings_that_cannot_be_read_are_named_with_their_file(config):
    course = config("c.Exchange.root = 1 / 0")
    with pytest.raises(CannotStart, match=r"nbgrader_config.py cannot be read: ZeroDivisionError.*Correct that line"):
        read_config(course)


def test_where_an_exchange_cannot_be_it_says_so(config, monkeypatch):
    course = config("c.Exchange.root = '/exchange'\nc.CourseDirectory.course_id = 'dl'")
    monkeypatch.setattr(exchanges, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(CannotStart, match="works on Linux and macOS only"):
        find_exchange(course)


# names and times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ada", "Ada-Lovelace_12", "ada@uni.example", "Łukasz", "a.b"])
def test_these_names_can_stand_in_a_path(name):
    assert is_plain_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a b", "a\n", "a\0", "\ud800", "a" * 300])
def test_these_names_cannot(name):
    assert not is_plain_name(name)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Ada Lovelace", "Ada-Lovelace"),
        ("  O'Neil, Łukasz ", "O-Neil-Łukasz"),
        ("e\u0301", "é"),
        ("../../etc", "etc"),
        ("...", ""),
        ("a-.", "a"),
    ],
)
def test_a_persons_name_is_made_one(name, wanted):
    assert plain(name) == wanted and (not wanted or is_plain_name(wanted))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01 12:00:00.000000 UTC", NOON),
        ("2026-03-01 12:00:00 UTC", NOON),
        ("2026-03-01 12:00:00", NOON),
        ("2026-03-01T12:00:00", NOON),
        ("2026-03-01 13:00:00 Europe/Berlin", NOON),
        ("2026-03-01 13:30:00 +0130", NOON),
        ("2026-03-01T13:00:00+01:00", NOON),
        ("2026-03-01 12:00:00 Mars/Olympus", None),
        ("0001-01-01 00:00:00 +1200", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_are_read_as_nbgrader_writes_them(text, moment):
    assert parse_time(text) == moment


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("ada+05+2026-03-01 12:00:00 UTC+abc_-1", "ada"),
        ("ada+05+2026-03-01 12:00:00 UTC", "ada"),  # nbgrader's own, without the random part
        ("../ada+05+2026-03-01 12:00:00 UTC+x", None),
        ("ada+../05+2026-03-01 12:00:00 UTC+x", None),
        ("ada+05+yesterday+x", None),
        ("ada+05", None),
    ],
)
def test_the_name_of_a_submission_is_taken_apart(name, student):
    handed = parse_handed(name)
    if student is None:
        assert handed is None
    else:
        assert (handed.student, handed.assignment, handed.moment, handed.folder) == (student, "05", NOON, name)


# release ----------------------------------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_everyone_fetches_and_hands_in_and_nobody_lists_what_others_handed_in(tmp_path):
    exchange = Exchange(root=tmp_path / "exchange", course="dl")
    before = os.umask(0o077)
    try:
        place = publish(exchange, "05", {"attention.ipynb": b"{}"})
        handed = hand_in(exchange, "05", "ada", NOON, {"attention.ipynb": b"{}"})
    finally:
        os.umask(before)
    assert mode(exchange.root) == mode(exchange.root / "dl") == mode(place) == 0o755
    assert mode(exchange.inbound) & 0o777 == 0o733
    assert mode(handed) == 0o750  # for the student and the instructor's group
    assert {mode(path) for path in place.iterdir()} == {0o644}


def test_a_new_release_replaces_files_whole_and_takes_away_what_is_gone(exchange):
    publish(exchange, "05", {"attention.ipynb": b"first", "data/numbers.csv": b"1"})
    opened = (exchange.outbound("05") / "attention.ipynb").open("rb")
    publish(exchange, "05", {"attention.ipynb": b"second"})
    with opened:  # who is reading the old one reads on
        assert opened.read() == b"first"
    assert [path.name for path in exchange.outbound("05").rglob("*") if path.is_file()] == ["attention.ipynb"]
    assert (exchange.outbound("05") / "attention.ipynb").read_bytes() == b"second"


def test_an_exchange_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="could not be put into the exchange: Not a directory"):
        publish(Exchange(root=tmp_path / "file" / "exchange", course="dl"), "05", {})


# handing in -------------------------------------------------------------------------------------------------


def test_what_is_handed_in_lies_beside_what_was_handed_in_before(exchange):
    places = {hand_in(exchange, "05", "ada", NOON, {"attention.ipynb": b"{}"}) for _ in range(3)}
    assert len(places) == 3 and set(exchange.inbound.iterdir()) == places
    for place in places:
        assert (place / "timestamp.txt").read_text() == "2026-03-01 12:00:00.000000 UTC"
        assert place.name.startswith("ada+05+2026-03-01 12:00:00.000000 UTC+")


def test_the_time_is_that_of_the_whole_world(exchange):
    elsewhere = NOON.astimezone(exchanges.ZoneInfo("Asia/Tokyo"))
    assert parse_handed(hand_in(exchange, "05", "ada", elsewhere, {}).name).moment == NOON


def test_what_cannot_be_handed_in_leaves_nothing(exchange, monkeypatch):
    seen = []

    def full(part, place):
        seen.append((part.name[0], mode(part), os.listdir(part)))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(CannotStart, match="Nothing was submitted: .*No space left"):
        hand_in(exchange, "05", "ada", NOON, {"attention.ipynb": b"{}"})
    assert list(exchange.inbound.iterdir()) == []
    assert seen[0][0] == "." and len(seen[0][2]) == 3  # whole before it is seen


def test_what_is_on_its_way_is_not_taken_and_not_readable(exchange, monkeypatch):
    modes = []
    monkeypatch.setattr(os, "fsync", lambda number: modes.extend(mode(path) for path in exchange.inbound.iterdir()))
    hand_in(exchange, "05", "ada", NOON, {"attention.ipynb": b"{}"})
    assert {each & 0o777 for each in modes} == {0o700} and len(modes) == 3  # each file is on the disk before it counts
    (exchange.inbound / ".abc.part").mkdir()
    assert [handed.student for handed in handed_in(exchange, "05")] == ["ada"]


def test_of_another_assignment_nothing_is_said(exchange):
    hand_in(exchange, "05", "ada", NOON, {})
    hand_in(exchange, "06", "ada", NOON + timedelta(days=1), {})
    (exchange.inbound / "bob+06+2026-03-01 12:00:00 UTC").mkdir()
    (exchange.inbound / "bob+06+yesterday+x").mkdir()
    (exchange.inbound / "not a name").mkdir()
    ada, said = handed_in(exchange, "05")
    assert ada.student == "ada" and said.startswith("'not a name' in the exchange has no name of the kind")


def test_a_name_too_long_to_be_one_is_not_taken_apart(exchange):
    (exchange.inbound / ("a" * 200)).mkdir()
    (said,) = handed_in(exchange, "05")
    assert len(said) < 200


def test_an_exchange_without_inbound_says_how_it_is_made(tmp_path):
    with pytest.raises(CannotStart, match="It is made by: course assign release 05"):
        list(handed_in(Exchange(root=tmp_path, course="dl"), "05"))

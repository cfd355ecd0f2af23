"""Collecting: each student's newest notebook, from an exchange that students write to or from a platform's export."""

import json
import os
import pwd
import stat
import struct
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import collect as collecting
from course_lib.grading.collect import collect, recognise
from course_lib.grading.exchange import Exchange, hand_in
from course_lib.grading.folders import grading_lock, write_whole
from course_lib.grading.gradebook import parse_time
from tests.grading.courses import NAME, NOTEBOOK
from tests.grading.unreleased import unreleased_course

FILE = f"{NOTEBOOK}.ipynb"
ME = pwd.getpwuid(os.getuid()).pw_name
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    return unreleased_course(tmp_path / "course")


@pytest.fixture
def exchange(course, tmp_path, monkeypatch):
    """An exchange in which everyone is the same account, as on a hub of containers."""
    monkeypatch.setenv("COURSE_EXCHANGE", str(tmp_path / "exchange"))
    course.config.write_text(course.config.read_text() + "\nc.ExchangeCollect.check_owner = False\n")
    exchange = Exchange(root=tmp_path / "exchange", course="deep-learning", check_owner=False)
    exchange.inbound.mkdir(parents=True)
    return exchange


def collected(course):
    return {student: (course.submitted(student, NAME) / FILE).read_text() for student in course.students(NAME)}


def put(exchange, student, text, moment=NOON, name=NAME):
    return hand_in(exchange, name, student, moment, FILE, text.encode())[0]


# ------------------------------------------------------------------------------------------------ the exchange


def test_the_newest_of_each_student_is_taken_with_its_time(course, exchange, capsys):
    put(exchange, "ada", "old")
    put(exchange, "ada", "new", NOON + timedelta(seconds=1))
    put(exchange, "bob", "only")
    put(exchange, "bob", "of another assignment", NOON + timedelta(days=1), name="08")
    assert collect(NAME, folder=course.root) == 0
    assert collected(course) == {"ada": "new", "bob": "only"}
    assert (course.submitted("ada", NAME) / "timestamp.txt").read_text() == "2026-03-01 12:00:01.000000 UTC\n"
    said = capsys.readouterr().out
    assert "2 submissions from" in said and "  2 new\n" in said and f"course grade {NAME}" in said
    assert "dates of the files" not in said  # the exchange knows when


def test_collecting_again_changes_nothing_and_takes_what_is_newer(course, exchange, capsys):
    put(exchange, "ada", "first")
    put(exchange, "bob", "only")
    collect(NAME, folder=course.root)
    before = {path: path.stat().st_mtime_ns for path in course.root.rglob("*") if path.suffix in (".ipynb", ".txt")}
    assert collect(NAME, folder=course.root) == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    put(exchange, "ada", "second", NOON + timedelta(minutes=1))
    collect(NAME, folder=course.root)
    assert collected(course) == {"ada": "second", "bob": "only"}
    assert "  1 newer than before\n  1 here already\n" in capsys.readouterr().out


def test_the_same_notebook_handed_in_once_more_keeps_its_earlier_time(course, exchange):
    put(exchange, "ada", "same")
    collect(NAME, folder=course.root)
    put(exchange, "ada", "same", NOON + timedelta(days=1))
    collect(NAME, folder=course.root)
    assert "2026-03-01" in (course.submitted("ada", NAME) / "timestamp.txt").read_text()


def test_a_run_that_ends_between_notebook_and_time_is_made_good_by_the_next(course, exchange, monkeypatch):
    put(exchange, "ada", "first")
    collect(NAME, folder=course.root)
    put(exchange, "ada", "second", NOON + timedelta(days=1))

    def ends(path, content):
        if path.name == "timestamp.txt":
            raise KeyboardInterrupt
        write_whole(path, content)

    monkeypatch.setattr(collecting, "write_whole", ends)
    with pytest.raises(KeyboardInterrupt):
        collect(NAME, folder=course.root)
    monkeypatch.undo()
    monkeypatch.setenv("COURSE_EXCHANGE", str(exchange.root))
    collect(NAME, folder=course.root)
    assert collected(course) == {"ada": "second"}
    assert "2026-03-02" in (course.submitted("ada", NAME) / "timestamp.txt").read_text()


def link_to_a_secret(place, secret):
    (place / FILE).unlink()
    (place / FILE).symlink_to(secret)


def folder_that_is_a_link(place, secret):
    other = place.with_name(".elsewhere")
    place.rename(other)
    place.symlink_to(other)


def named_pipe(place, secret):
    (place / FILE).unlink()
    os.mkfifo(place / FILE)


def folder_in_its_place(place, secret):
    (place / FILE).unlink()
    (place / FILE).mkdir()


def missing(place, secret):
    (place / FILE).unlink()


def huge(place, secret):
    os.truncate(place / FILE, collecting.FILE_BYTES + 1)


def larger_than_all_memory(place, secret):
    os.truncate(place / FILE, 1 << 40)  # bytes, and none of them on the disk


@pytest.mark.parametrize(
    "spoil",
    [
        link_to_a_secret,
        folder_that_is_a_link,
        named_pipe,
        folder_in_its_place,
        missing,
        huge,
        larger_than_all_memory,
    ],
)
def test_what_is_no_plain_file_is_refused_and_the_one_before_counts(course, exchange, tmp_path, capsys, spoil):
    secret = tmp_path / "secret"
    secret.write_text("the key")
    put(exchange, "ada", "good")
    put(exchange, "bob", "good, too")
    spoil(put(exchange, "ada", "odd", NOON + timedelta(minutes=1)), secret)
    assert collect(NAME, folder=course.root) == 0
    assert collected(course) == {"ada": "good", "bob": "good, too"}
    note = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  - ada+"))
    assert note.endswith(collecting.NOT_READ)


@pytest.mark.parametrize(
    "name",
    [
        "ada",
        f"..+{NAME}+2026-03-01 12:00:00 UTC+x",
        f".hidden+{NAME}+2026-03-01 12:00:00 UTC+x",
        f"a\nb+{NAME}+2026-03-01 12:00:00 UTC+x",
        f"ada+{NAME}+yesterday+x",
        f"{'a' * 129}+{NAME}+2026-03-01 12:00:00 UTC+x",
    ],
)
def test_an_odd_name_in_the_exchange_is_noted_and_harms_nobody(course, exchange, capsys, name):
    put(exchange, "bob", "good")
    (exchange.inbound / name).mkdir()
    (exchange.inbound / name / FILE).write_text("{}")
    collect(NAME, folder=course.root)
    assert collected(course) == {"bob": "good"}
    assert name.startswith(".") or "has no name of the kind" in capsys.readouterr().out


def test_who_hands_in_under_another_name_is_refused(course, exchange, capsys):
    ada = put(exchange, "ada", "mine, under another name")
    course.config.write_text(course.config.read_text().replace("check_owner = False", "check_owner = True"))
    put(exchange, ME, "mine")
    collect(NAME, folder=course.root)
    assert collected(course) == {ME: "mine"}
    assert f"{ada.name}: says that it is by ada, but belongs to another account" in capsys.readouterr().out


def test_a_file_that_belongs_to_another_than_its_folder_is_not_taken(course, exchange, capsys, monkeypatch):
    """As when a student puts a link to the folder of another in the place of their own, just after it was looked at."""
    put(exchange, "ada", "good")
    lstat = Path.lstat

    def other(path):
        numbers = list(lstat(path))[:10]
        numbers[4] += path.parent == exchange.inbound  # the owner
        return os.stat_result(numbers)

    monkeypatch.setattr(Path, "lstat", other)
    assert collect(NAME, folder=course.root) == 1
    assert collected(course) == {} and "of another account" in capsys.readouterr().out


def test_without_an_exchange_it_says_where_submissions_can_come_from(course):
    with pytest.raises(CannotStart, match="--from.*c.Exchange.root"):
        collect(NAME, folder=course.root)


def test_nothing_there_is_said_and_told_by_the_exit_code(course, exchange, capsys):
    assert collect(NAME, folder=course.root) == 1
    assert "Nothing was collected" in capsys.readouterr().out


def test_it_does_not_write_while_a_grader_reads(course, exchange):
    put(exchange, "ada", "good")
    with grading_lock(course), pytest.raises(CannotStart, match="Another grader is at work"):
        collect(NAME, folder=course.root)
    assert collected(course) == {}


# ------------------------------------------------------------------------------------------------ exports


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("lovelaceada_12345_67890_sums.ipynb", "lovelaceada_12345"),
        ("lovelaceada_LATE_12345_67890_sums.ipynb", "lovelaceada_12345"),
        ("lovelaceada_12345_67890_sums-2.ipynb", "lovelaceada_12345"),
        ("lovelaceada_12345_67890_ada_07_20260301T120000Z_sums.ipynb", "lovelaceada_12345"),
        ("Ada Lovelace_12345_assignsubmission_file_/sums.ipynb", "Ada-Lovelace_12345"),
        ("Ada Lovelace_12345_assignsubmission_file_/ada_07_20260301T120000Z_sums.ipynb", "Ada-Lovelace_12345"),
        ("Ada Lovelace_12345_assignsubmission_file_sums.ipynb", "Ada-Lovelace_12345"),
        ("Łukasz Ünal-O'Neil_9_assignsubmission_file_sums.ipynb", "Łukasz-Ünal-O-Neil_9"),
        ("lovelace_12345_sums.ipynb", "lovelace_12345"),
        ("ada_07_20260301T120000Z_sums.ipynb", "ada"),
        ("export/ada/sums.ipynb", "ada"),
        ("ada/07/sums.ipynb", "ada"),
    ],
)
def test_the_name_of_an_exported_file_says_whose_it_is(path, student):
    assert recognise(PurePosixPath(path), NAME) == student


@pytest.mark.parametrize("path", ["sums.ipynb", "../sums.ipynb", "!!_12_sums.ipynb"])
def test_a_name_that_says_nothing_is_no_students(path):
    assert recognise(PurePosixPath(path), NAME) is None


def pack(path, files, when=(2026, 3, 1, 12, 0, 0)):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, when), content)
    return path


def test_a_zip_of_canvas_is_collected(course, tmp_path, capsys):
    files = {
        "lovelaceada_1_11_sums.ipynb": "ada's",
        "hopper_LATE_2_22_sums-1.ipynb": "grace's",
        "hopper_2_23_notes.ipynb": "other notes",
        "noether_3_33_report.pdf": "no notebook",
        "__MACOSX/._lovelaceada_1_11_sums.ipynb": "rubbish",
        "__MACOSX/curie_5_55_sums.ipynb": "rubbish",
        ".trash/meitner_6_66_sums.ipynb": "rubbish",
        "lovelaceada_1_12_timestamp.txt": "no notebook either",
        "timestamp.txt": "ours",
        "sums.ipynb": "nobody's",
        "../../evil_4_44_sums.ipynb": "stays outside",
    }
    assert collect(NAME, source=pack(tmp_path / "canvas.zip", files), folder=course.root) == 0
    assert collected(course) == {"lovelaceada_1": "ada's", "hopper_2": "grace's"}
    said = capsys.readouterr().out
    assert said.count("is no notebook, or its name does not say whose") == 3
    assert "noether_3_33_report.pdf: is no notebook" in said
    assert "dates of the files" in said and "evil" not in said
    local = datetime(2026, 3, 1, 12).astimezone(UTC).replace(tzinfo=None)
    assert parse_time((course.submitted("hopper_2", NAME) / "timestamp.txt").read_text()) == local


def test_a_file_with_another_name_counts_only_where_there_is_none_with_the_right_one(course, tmp_path):
    archive = tmp_path / "canvas.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(zipfile.ZipInfo("hopper_2_22_sums.ipynb", (2026, 3, 1, 12, 0, 0)), "as released")
        packed.writestr(zipfile.ZipInfo("hopper_2_23_notes.ipynb", (2026, 3, 2, 12, 0, 0)), "newer notes")
        packed.writestr(zipfile.ZipInfo("noether_3_33_renamed.ipynb", (2026, 3, 1, 12, 0, 0)), "the only one")
    collect(NAME, source=archive, folder=course.root)
    assert collected(course) == {"hopper_2": "as released", "noether_3": "the only one"}


def test_a_folder_of_moodle_is_collected_and_links_in_it_are_not(course, tmp_path, capsys):
    export = tmp_path / "moodle"
    for student in ("Ada Lovelace_1", "Grace Hopper_2"):
        (export / f"{student}_assignsubmission_file_").mkdir(parents=True)
    (export / "Ada Lovelace_1_assignsubmission_file_" / FILE).write_text("ada's")
    (export / "Grace Hopper_2_assignsubmission_file_" / FILE).symlink_to(course.config)
    (export / "Emmy Noether_3_assignsubmission_file_").symlink_to(export / "Ada Lovelace_1_assignsubmission_file_")
    collect(NAME, source=export, folder=course.root)
    assert collected(course) == {"Ada-Lovelace_1": "ada's"}
    assert "Grace Hopper_2_assignsubmission_file_/sums.ipynb: is a link" in capsys.readouterr().out


def test_a_link_in_a_zip_is_no_submission(course, tmp_path, capsys):
    archive = tmp_path / "canvas.zip"
    link = zipfile.ZipInfo("ada_1_2_sums.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(link, "/etc/passwd")
    assert collect(NAME, source=archive, folder=course.root) == 1
    assert collected(course) == {} and "is a link" in capsys.readouterr().out


def test_a_zip_that_is_broken_inside_costs_one_file_only(course, tmp_path, capsys):
    archive = pack(tmp_path / "canvas.zip", {"ada_1_2_sums.ipynb": "a text to be spoilt", "bob_2_3_sums.ipynb": "good"})
    archive.write_bytes(archive.read_bytes().replace(b"to be spoilt", b"that differs"))
    assert collect(NAME, source=archive, folder=course.root) == 0
    assert collected(course) == {"bob_2": "good"}
    assert "ada_1_2_sums.ipynb: is a link, no ordinary file, damaged" in capsys.readouterr().out


def test_a_zip_without_a_readable_date_is_collected(course, tmp_path):
    archive = pack(tmp_path / "canvas.zip", {"ada_1_2_sums.ipynb": "good"})
    stamp = archive.read_bytes()
    date = struct.pack("<H", (2026 - 1980) << 9 | 3 << 5 | 1)
    archive.write_bytes(stamp.replace(date, struct.pack("<H", 15 << 5)))  # month 15, day 0
    collect(NAME, source=archive, folder=course.root)
    assert collected(course) == {"ada_1": "good"} and (course.submitted("ada_1", NAME) / "timestamp.txt").is_file()


def test_a_file_that_unpacks_to_much_is_refused_and_not_unpacked(course, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(collecting, "FILE_BYTES", 1_000_000)
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ada_1_2_sums.ipynb", bytes(50_000_000))
        packed.writestr("bob_2_3_sums.ipynb", "good")
    tracemalloc.start()
    collect(NAME, source=archive, folder=course.root)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000  # bytes
    assert collected(course) == {"bob_2": "good"}
    assert "refused." in capsys.readouterr().out


@pytest.mark.parametrize("month", [2, 3], ids=["older", "equally old"])
def test_a_file_that_differs_and_is_no_newer_does_not_replace_what_is_there(course, tmp_path, capsys, month):
    archive = pack(tmp_path / "new.zip", {"ada_1_2_sums.ipynb": "new"})
    older = pack(tmp_path / "old.zip", {"ada_1_1_sums.ipynb": "old"}, when=(2026, month, 1, 12, 0, 0))
    for source in (archive, older):
        collect(NAME, source=source, folder=course.root)
    assert collected(course) == {"ada_1": "new"}
    assert "is no newer; left out. To take it, delete" in capsys.readouterr().out


@pytest.mark.parametrize(("make", "said"), [(False, "does not exist"), (True, "neither a folder nor a .zip")])
def test_what_is_no_export_is_refused(course, tmp_path, make, said):
    source = tmp_path / "export.zip"
    if make:
        source.write_text(json.dumps({}))
    with pytest.raises(CannotStart, match=said):
        collect(NAME, source=source, folder=course.root)


@pytest.mark.parametrize("name", ["8", "../07", "", ".."])
def test_an_unknown_assignment_is_refused_with_those_that_there_are(course, tmp_path, name):
    for place in (course.root, course.root / NAME, course.root / "source"):  # where such a name would lead
        place.mkdir(exist_ok=True)
        (place / FILE).touch()
    with pytest.raises(CannotStart, match=f"There are: {NAME}"):
        collect(name, source=tmp_path, folder=course.root)


def test_an_assignment_of_two_notebooks_is_refused(course, tmp_path):
    (course.source(NAME) / "other.ipynb").touch()
    with pytest.raises(CannotStart, match=f"no assignment '{NAME}' with one notebook"):
        collect(NAME, source=tmp_path, folder=course.root)

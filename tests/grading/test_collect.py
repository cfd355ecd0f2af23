"""Collecting: each student's newest notebook, from an exchange that students write to or from a platform's export."""

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


def time_of(course, student):
    return (course.submitted(student, NAME) / "timestamp.txt").read_text()


def collected(course):
    return {student: (course.submitted(student, NAME) / FILE).read_text() for student in course.students(NAME)}


@pytest.fixture
def gather(course):
    """gather(): what has been collected by student, after once more; `code` is what the command returns."""

    def collect_again(source=None, code=0):
        assert collect(NAME, source=source, folder=course.root) == code
        return collected(course)

    return collect_again


def put(exchange, student, text, moment=NOON, name=NAME):
    return hand_in(exchange, name, student, moment, FILE, text.encode())[0]


# ------------------------------------------------------------------------------------------------ the exchange


def test_the_newest_of_each_student_is_taken_with_its_time(course, exchange, capsys, gather):
    put(exchange, "ada", "old")
    put(exchange, "ada", "new", NOON + timedelta(seconds=1))
    put(exchange, "bob", "only")
    put(exchange, "bob", "of another assignment", NOON + timedelta(days=1), name="08")
    assert gather() == {"ada": "new", "bob": "only"}
    assert time_of(course, "ada") == "2026-03-01 12:00:01.000000 UTC\n"
    said = capsys.readouterr().out
    assert "2 submissions from" in said and "  2 new\n" in said and f"course grade {NAME}" in said
    assert "dates of the files" not in said  # the exchange knows when


def test_collecting_again_changes_nothing_and_takes_what_is_newer_and_differs(course, exchange, capsys, gather):
    put(exchange, "ada", "first")
    put(exchange, "bob", "only")
    collect(NAME, folder=course.root)
    before = {path: path.stat().st_mtime_ns for path in course.root.rglob("*") if path.suffix in (".ipynb", ".txt")}
    assert collect(NAME, folder=course.root) == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    put(exchange, "ada", "second", NOON + timedelta(days=2))
    put(exchange, "bob", "only", NOON + timedelta(days=1))  # the same once more: the earlier time counts
    assert gather() == {"ada": "second", "bob": "only"}
    assert "2026-03-03" in time_of(course, "ada") and "2026-03-01" in time_of(course, "bob")
    assert "  1 newer than before\n  1 here already\n" in capsys.readouterr().out


def test_a_run_that_ends_between_notebook_and_time_is_made_good_by_the_next(course, exchange, monkeypatch, gather):
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
    assert gather() == {"ada": "second"}
    assert "2026-03-02" in time_of(course, "ada")


def folder_that_is_a_link(file):
    other = file.parent.with_name(".elsewhere")
    file.parent.rename(other)
    file.parent.symlink_to(other)


SPOILT = {
    "a link to a secret": lambda file: (file.unlink(), file.symlink_to(file.parents[4] / "secret")),
    "in a folder that is a link": folder_that_is_a_link,
    "a named pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "missing": lambda file: file.unlink(),
    "huge": lambda file: os.truncate(file, collecting.FILE_BYTES + 1),
    "larger than all memory": lambda file: os.truncate(file, 1 << 40),  # bytes, and none of them on the disk
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_no_plain_file_is_refused_and_the_one_before_counts(gather, exchange, tmp_path, capsys, what):
    (tmp_path / "secret").write_text("the key")
    put(exchange, "ada", "good")
    put(exchange, "bob", "good, too")
    SPOILT[what](put(exchange, "ada", "odd", NOON + timedelta(minutes=1)) / FILE)
    assert gather() == {"ada": "good", "bob": "good, too"}
    note = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  - ada+"))
    assert note.endswith(collecting.NOT_READ)


GOES_ON = f"+{NAME}+2026-03-01 12:00:00 UTC+x"


@pytest.mark.parametrize(
    "name", ["ada", f"ada+{NAME}+yesterday+x", *(f"{who}{GOES_ON}" for who in ("..", ".hidden", "a\nb", "a" * 129))]
)
def test_an_odd_name_in_the_exchange_is_noted_and_harms_nobody(gather, exchange, capsys, name):
    put(exchange, "bob", "good")
    (exchange.inbound / name).mkdir()
    (exchange.inbound / name / FILE).write_text("{}")
    assert gather() == {"bob": "good"}
    assert name.startswith(".") or "has no name of the kind" in capsys.readouterr().out


def test_who_hands_in_under_another_name_is_refused(course, exchange, capsys, gather):
    ada = put(exchange, "ada", "mine, under another name")
    course.config.write_text(course.config.read_text().replace("check_owner = False", "check_owner = True"))
    put(exchange, ME, "mine")
    assert gather() == {ME: "mine"}
    assert f"{ada.name}: says that it is by ada, but belongs to another account" in capsys.readouterr().out


def test_a_file_that_belongs_to_another_than_its_folder_is_not_taken(gather, exchange, capsys, monkeypatch):
    """As when a student puts a link to the folder of another in the place of their own, just after it was looked at."""
    put(exchange, "ada", "good")
    lstat = Path.lstat

    def other(path):
        numbers = list(lstat(path))[:10]
        numbers[4] += path.parent == exchange.inbound  # the owner
        return os.stat_result(numbers)

    monkeypatch.setattr(Path, "lstat", other)
    assert gather(code=1) == {} and "of another account" in capsys.readouterr().out


def test_without_an_exchange_or_a_submission_it_says_where_they_can_come_from(course, tmp_path, monkeypatch, capsys):
    with pytest.raises(CannotStart, match="--from.*c.Exchange.root"):
        collect(NAME, folder=course.root)
    (tmp_path / "deep-learning" / "inbound").mkdir(parents=True)
    monkeypatch.setenv("COURSE_EXCHANGE", str(tmp_path))
    assert collect(NAME, folder=course.root) == 1
    assert "Nothing was collected" in capsys.readouterr().out


def test_it_does_not_write_while_a_grader_reads(course, exchange):
    put(exchange, "ada", "good")
    with grading_lock(course), pytest.raises(CannotStart, match="Another grader is at work"):
        collect(NAME, folder=course.root)
    assert collected(course) == {}


# ------------------------------------------------------------------------------------------------ exports


MOODLES = "Ada Lovelace_12345_assignsubmission_file_"


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("lovelaceada_12345_67890_sums.ipynb", "lovelaceada_12345"),
        ("lovelaceada_LATE_12345_67890_sums.ipynb", "lovelaceada_12345"),
        ("lovelaceada_12345_67890_sums-2.ipynb", "lovelaceada_12345"),
        ("lovelaceada_12345_67890_ada_07_20260301T120000Z_sums.ipynb", "lovelaceada_12345"),
        (f"{MOODLES}/sums.ipynb", "Ada-Lovelace_12345"),
        (f"{MOODLES}/ada_07_20260301T120000Z_sums.ipynb", "Ada-Lovelace_12345"),
        (f"{MOODLES}sums.ipynb", "Ada-Lovelace_12345"),
        ("Łukasz Ünal-O'Neil_9_assignsubmission_file_sums.ipynb", "Łukasz-Ünal-O-Neil_9"),
        ("lovelace_12345_sums.ipynb", "lovelace_12345"),
        ("ada_07_20260301T120000Z_sums.ipynb", "ada"),
        ("export/ada/sums.ipynb", "ada"),
        ("ada/07/sums.ipynb", "ada"),
        *((nobodys, None) for nobodys in ("sums.ipynb", "../sums.ipynb", "!!_12_sums.ipynb")),
    ],
)
def test_the_name_of_an_exported_file_says_whose_it_is(path, student):
    assert recognise(PurePosixPath(path), NAME) == student


@pytest.fixture
def pack(tmp_path):
    """pack({name: content}): a .zip as a platform exports it."""

    def make(files, when=(2026, 3, 1, 12, 0, 0), mode="w", name="canvas.zip"):
        with zipfile.ZipFile(tmp_path / name, mode) as archive:
            for file, content in files.items():
                archive.writestr(zipfile.ZipInfo(file, when), content)
        return tmp_path / name

    return make


def test_a_zip_of_canvas_is_collected(course, pack, capsys, gather):
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
    assert gather(pack(files)) == {"lovelaceada_1": "ada's", "hopper_2": "grace's"}
    said = capsys.readouterr().out
    assert said.count("is no notebook, or its name does not say whose") == 3
    assert "noether_3_33_report.pdf: is no notebook" in said
    assert "dates of the files" in said and "evil" not in said
    local = datetime(2026, 3, 1, 12).astimezone(UTC).replace(tzinfo=None)
    assert parse_time(time_of(course, "hopper_2")) == local


def test_a_file_with_another_name_counts_only_where_there_is_none_with_the_right_one(gather, pack):
    pack({"hopper_2_22_sums.ipynb": "as released", "noether_3_33_renamed.ipynb": "the only one"})
    archive = pack({"hopper_2_23_notes.ipynb": "newer notes"}, when=(2026, 3, 2, 12, 0, 0), mode="a")
    assert gather(archive) == {"hopper_2": "as released", "noether_3": "the only one"}


def test_a_folder_of_moodle_is_collected_and_links_in_it_are_not(course, tmp_path, capsys, gather):
    export = tmp_path / "moodle"
    for student in ("Ada Lovelace_1", "Grace Hopper_2"):
        (export / f"{student}_assignsubmission_file_").mkdir(parents=True)
    (export / "Ada Lovelace_1_assignsubmission_file_" / FILE).write_text("ada's")
    (export / "Grace Hopper_2_assignsubmission_file_" / FILE).symlink_to(course.config)
    (export / "Emmy Noether_3_assignsubmission_file_").symlink_to(export / "Ada Lovelace_1_assignsubmission_file_")
    assert gather(export) == {"Ada-Lovelace_1": "ada's"}
    assert "Grace Hopper_2_assignsubmission_file_/sums.ipynb: is a link" in capsys.readouterr().out


def test_a_link_and_a_damaged_file_in_a_zip_cost_themselves_only(gather, pack, capsys):
    archive = pack({"ada_1_2_sums.ipynb": "a text to be spoilt", "bob_2_3_sums.ipynb": "good"})
    link = zipfile.ZipInfo("eve_3_4_sums.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr(link, "/etc/passwd")
    archive.write_bytes(archive.read_bytes().replace(b"to be spoilt", b"that differs"))
    assert gather(archive) == {"bob_2": "good"}
    said = capsys.readouterr().out
    assert all(f"{name}_sums.ipynb: is a link, no ordinary file, damaged" in said for name in ("ada_1_2", "eve_3_4"))


def test_a_zip_without_a_readable_date_is_collected(course, pack, gather):
    archive = pack({"ada_1_2_sums.ipynb": "good"})
    date = struct.pack("<H", (2026 - 1980) << 9 | 3 << 5 | 1)
    archive.write_bytes(archive.read_bytes().replace(date, struct.pack("<H", 15 << 5)))  # month 15, day 0
    assert gather(archive) == {"ada_1": "good"} and time_of(course, "ada_1")


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
    assert collected(course) == {"bob_2": "good"} and "refused." in capsys.readouterr().out


@pytest.mark.parametrize("month", [2, 3], ids=["older", "equally old"])
def test_a_file_that_differs_and_is_no_newer_does_not_replace_what_is_there(course, pack, capsys, month, gather):
    collect(NAME, source=pack({"ada_1_2_sums.ipynb": "new"}), folder=course.root)
    older = pack({"ada_1_1_sums.ipynb": "old"}, when=(2026, month, 1, 12, 0, 0), name="old.zip")
    assert gather(older) == {"ada_1": "new"}
    assert "is no newer; left out. To take it, delete" in capsys.readouterr().out


@pytest.mark.parametrize(("make", "said"), [(False, "does not exist"), (True, "neither a folder nor a .zip")])
def test_what_is_no_export_is_refused(course, tmp_path, make, said):
    source = tmp_path / "export.zip"
    if make:
        source.write_text("{}")
    with pytest.raises(CannotStart, match=said):
        collect(NAME, source=source, folder=course.root)


@pytest.mark.parametrize("name", ["8", "../07", "", "..", NAME])
def test_an_unknown_assignment_and_one_of_two_notebooks_are_refused_with_those_that_there_are(course, tmp_path, name):
    for place in (course.root, course.root / NAME, course.root / "source"):  # where such a name would lead
        place.mkdir(exist_ok=True)
        (place / FILE).touch()
    if name == NAME:
        (course.source(NAME) / "other.ipynb").touch()
    with pytest.raises(CannotStart, match=f"no assignment '{name}' with one notebook.* There are: {NAME}"):
        collect(name, source=tmp_path, folder=course.root)

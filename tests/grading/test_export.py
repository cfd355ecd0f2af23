"""Marks as CSV: the columns that Canvas and Moodle read, exact numbers, nobody lost, no formula."""

import csv
import io
import sqlite3
from dataclasses import replace
from datetime import datetime

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.export import csv_text, export, harmless, match, read_roster
from tests.grading.courses import NAME, NOTEBOOK, by_hand, nbgraders_book, record, submit
from tests.grading.test_summary import score

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,07 Sums (4711),Assignments Current Score
    Points Possible,,,,,9,(read only)
"Lovelace, Ada",12345,S1,ada,"Group 1, Monday",,
"Noether, Emmy",12346,S2,emmy@uni.example,Group 2,,
"Hopper, G",12347,S3,hopper,Group 2,,
"Student, Test",99999,,1f2e,Group 1,,
"""
MOODLE = """"First name","Last name","ID number","Email address","Assignment: 07 Sums (Real)"
Ada,Lovelace,0042,ada@uni.example,-
Émilie,du Châtelet,0043,emilie@uni.example,-
"""


WRITTEN = {"why": "So."}


@pytest.fixture
def roster(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "roster.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


@pytest.fixture
def exported(folders):
    """The table that an export writes, a row a list; `exported.code` is what the last export returned."""

    def table(layout="canvas", **options):
        table.code = export(NAME, folders.root, layout=layout, **options)
        content = (folders.exports / f"{NAME}-{layout}.csv").read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))

    return table


def in_book(folders, change):
    with nbgraders_book(folders) as book:
        change(book)
        book.db.commit()


def take_off(folders, student, penalty):
    def change(book):
        book.find_submission_notebook(NOTEBOOK, NAME, student).late_submission_penalty = penalty

    in_book(folders, change)


# layouts ----------------------------------------------------------------------------------------------------


def test_canvas_gets_its_columns_in_their_order_and_the_points_possible(folders, roster, exported):
    record(folders, "ada", add=0.1 + 0.2)
    record(folders, "emmy")
    assert exported(roster=roster(CANVAS)) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "07 Sums (4711)"],
        ["    Points Possible", "", "", "", "", "9"],
        ["Lovelace, Ada", "12345", "S1", "ada", "Group 1, Monday", "2.3"],
        ["Noether, Emmy", "12346", "S2", "emmy@uni.example", "Group 2", "5"],
    ]
    assert exported.code == 0


@pytest.mark.parametrize(
    ("column", "filled"), [*((own, own) for own in ("07 sums", "Sums (4711)", "SUMS")), ("06 Products (4)", "07 Sums")]
)
def test_the_platforms_own_column_is_found_by_its_title(folders, roster, exported, column, filled):
    record(folders, "ada")
    assert exported(roster=roster(CANVAS.replace("07 Sums (4711)", column)))[0][5] == filled


def test_without_a_roster_canvas_and_moodle_are_told_what_the_gradebook_knows(folders, exported, capsys):
    record(folders, "ada")
    record(folders, "bob@uni.example")
    known = {"first_name": "Ada", "last_name": "Lovelace", "email": "al@uni.example", "lms_user_id": "12345"}
    in_book(folders, lambda book: book.update_or_create_student("ada", **known))
    head, _, *rows = exported()
    assert head[5] == "07 Sums" and "Without --roster, Canvas" in capsys.readouterr().out
    assert rows == [
        ["Lovelace, Ada", "12345", "", "ada", "", "5"],
        ["bob@uni.example", "", "", "bob@uni.example", "", "5"],
    ]
    _, *rows = exported("moodle")
    assert [row[:6] for row in rows] == [
        ["Ada", "Lovelace", "12345", "ada", "al@uni.example", "5"],
        ["", "", "", "bob@uni.example", "bob@uni.example", "5"],
    ]


def test_a_name_cannot_pass_for_the_row_of_points_possible(folders, roster, exported):
    record(folders, "ada")
    _, *rows = exported(roster=roster(CANVAS.replace("Lovelace, Ada", "x Points Possible")))
    assert [row[:2] for row in rows] == [["    Points Possible", ""], ["", "12345"]]


def test_moodle_gets_identifiers_grade_and_feedback(folders, roster, exported):
    record(folders, "ada@uni.example", WRITTEN)
    head, ada = exported("moodle", roster=roster(MOODLE))
    column = "Assignment: 07 Sums (Real)"
    assert head == ["First name", "Last name", "ID number", "Email address", column, f"{column} feedback"]
    assert ada[:5] == ["Ada", "Lovelace", "0042", "ada@uni.example", "5"]
    assert ada[5] == "add: 3 of 3; double: 2 of 2; why: not graded yet"
    head, ada = exported("moodle")
    assert head[:2] == ["Username", "Email address"] and ada[:3] == ["ada@uni.example", "ada@uni.example", "5"]


def test_the_plain_layout_has_every_number(folders, exported):
    record(folders, "ada", submitted=datetime(2026, 3, 2, 11))
    row = dict(zip(*exported("plain"), strict=True))
    wanted = {"hours late": "23", "handed in (UTC)": "2026-03-02 11:00:00", "check-add": "3", "check-double": "2"}
    wanted |= {
        "why": "0",
        "last name": "",
        "first name": "",
        "email": "",
        "not graded yet": "",
        "sandbox": "bubblewrap",
    }
    assert row.items() >= (wanted | {"points": "5", "total": "5", "out of": "9", "status": "graded"}).items()


def test_the_plain_layout_says_what_is_not_known_or_not_done(folders, exported, capsys):
    record(folders, "-ada", WRITTEN)
    with sqlite3.connect(folders.gradebook) as db:
        db.execute("delete from course_verdicts")
    in_book(folders, lambda book: book.update_or_create_student("-ada", first_name="Ada", last_name="Lovelace"))
    in_book(folders, lambda book: setattr(book.find_submission(NAME, "-ada"), "timestamp", None))
    take_off(folders, "-ada", 1.5)
    row = dict(zip(*exported("plain"), strict=True))
    wanted = {"student": "'-ada", "last name": "Lovelace", "first name": "Ada", "handed in (UTC)": "", "sandbox": ""}
    wanted |= {"not graded yet": "why", "status": "no verdict", "points": "5", "late penalty": "1.5", "total": "3.5"}
    assert row.items() >= wanted.items()
    said = capsys.readouterr().out  # no platform has to know anybody
    assert "--roster" not in said and "formula" not in said


def test_points_by_hand_and_lateness_count(folders, exported):
    record(folders, "ada", WRITTEN)
    by_hand(folders, why={"manual_score": 3.25, "needs_manual_grade": False})
    take_off(folders, "ada", 1.5)
    assert exported()[2][-1] == "6.75"
    *_, total, words = exported("moodle")[1]
    assert (total, words) == ("6.75", "add: 3 of 3; double: 2 of 2; why: 3.25 of 4; late: 1.5 points off")


# who is who -------------------------------------------------------------------------------------------------


def who(roster, text, *students):
    found = match([score(student) for student in students], read_roster(roster(text)))
    lines, unknown = found
    return {student: line.get("ID") or line["ID number"] for student, line in lines.items()}, unknown


@pytest.mark.parametrize(
    ("number", "students"),
    [
        ("12345", "ada ADA s1 12345 ada@uni.example Ada-Lovelace ada_12345 a-lovelace_12345"),
        ("12346", "emmy@uni.example emmy"),
    ],
)
def test_students_are_found_by_login_number_address_and_name(roster, number, students):
    for student in students.split():
        assert who(roster, CANVAS, student)[0] == {student: number}


OTHERS = "noetheremmy_12345 Ada-Lovelace_777 zoe_12345 grace_12347 emmynoether_99998_12345 zoe emm Daa-Lovelace"


@pytest.mark.parametrize("student", [*OTHERS.split(), "uni.example", "emmy@evil.example"])
def test_nobody_is_taken_for_somebody_else(roster, student):
    lines, found = who(roster, CANVAS, student)
    assert lines == {} and "of the roster fit" in found[student]


def test_accents_and_order_of_names_do_not_matter_but_two_of_a_name_do(roster):
    assert who(roster, MOODLE, "E\u0301milie-du-Cha\u0302telet_8")[0] == {"E\u0301milie-du-Cha\u0302telet_8": "0043"}
    twice = MOODLE + "Ada,Lovelace,0099,ada2@uni.example,-\n"
    lines, found = who(roster, twice, "Ada-Lovelace_3")
    assert lines == {} and "2 lines" in found["Ada-Lovelace_3"]


@pytest.mark.parametrize("known", [{"email": "Emmy@uni.example"}, {"lms_user_id": "12346"}])
def test_what_the_gradebook_knows_of_a_student_is_looked_for_too(roster, known):
    assert match([replace(score("zz"), **known)], read_roster(roster(CANVAS)))[0]["zz"]["ID"] == "12346"


def test_a_line_that_two_students_claim_goes_to_neither(roster):
    lines, found = who(roster, CANVAS, "emmy", "emmy@uni.example", "ada")
    assert lines == {"ada": "12345"}
    assert found["emmy"] == "its line of the roster fits another student, too"


def test_moodles_grading_worksheet_is_a_roster_by_its_participant_numbers(roster):
    worksheet = "Identifier,Full name,Email address,Status\nParticipant 12345,Ada Lovelace,ada@uni.example,Submitted\n"
    found = match([score("Ada-Lovelace_12345")], read_roster(roster(worksheet)))
    assert found[0]["Ada-Lovelace_12345"]["Email address"] == "ada@uni.example"


def test_who_is_not_in_the_roster_is_named(folders, roster, exported, capsys):
    record(folders, "ada")
    record(folders, "zoe")
    assert [row[3] for row in exported(roster=roster(CANVAS))[2:]] == ["ada"] and exported.code == 1
    out = capsys.readouterr().out
    assert "Not in the roster, so not in the file" in out and "  zoe: no line of the roster fits" in out
    exported(roster=roster(CANVAS.replace("1f2e", "zoe")))
    assert exported.code == 0 and [path.name for path in folders.exports.iterdir()] == [f"{NAME}-canvas.csv"]


def test_who_handed_nothing_in_is_named_and_keeps_the_mark_of_the_platform(folders, roster, exported, capsys):
    record(folders, "ada")
    assert len(exported(roster=roster(CANVAS))) == 3
    out = capsys.readouterr().out
    assert "nothing handed in" in out and "Noether, Emmy" in out and "Lovelace" not in out
    exported(roster=roster(CANVAS.replace('"Student, Test",99999', ",99999")))
    assert "Noether, Emmy; Hopper, G; 99999." in capsys.readouterr().out  # a line without a name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rosters_are_read_as_excel_and_the_platforms_write_them(roster, encoding, delimiter):
    text = "Student,ID,SIS Login ID,Section\r\nÉmilie,7,emilie,A\r\n".replace(",", delimiter)
    (line,) = read_roster(roster(text, encoding))
    assert (line["Student"], line["ID"]) == ("Émilie", "7")


@pytest.mark.parametrize("text", ["", "Vorname,Nachname\nAda,Lovelace\n", "Student,ID\n    Points Possible,\n"])
def test_a_roster_that_lists_nobody_is_refused(roster, text):
    with pytest.raises(CannotStart, match="lists nobody"):
        read_roster(roster(text))


def test_what_is_no_list_at_all_is_said_without_its_bytes(roster):
    with pytest.raises(CannotStart, match="roster.csv is not a CSV file: field larger than"):
        read_roster(roster('Student,ID\n"' + "x" * 200_000))
    for text, encoding in [("PK\3\4\0\0\0\0ada.ipynb", "utf-8"), (CANVAS, "utf-16")]:
        with pytest.raises(CannotStart, match="roster.csv is no CSV file that can be read"):
            read_roster(roster(text, encoding))


@pytest.mark.parametrize(("layout", "text", "column"), [("moodle", CANVAS, "Username"), ("canvas", MOODLE, "ID")])
def test_the_list_of_another_platform_is_recognised(folders, roster, exported, layout, text, column):
    record(folders, "ada")
    with pytest.raises(CannotStart, match=f"has to be filled: .*{column}.*the platform that --layout names"):
        exported(layout, roster=roster(text))
    exported("plain", roster=roster(text))  # which takes the list of any


# warnings and cells -----------------------------------------------------------------------------------------


def test_what_is_not_final_is_said(folders, exported, capsys):
    record(folders, "ada", WRITTEN)
    record(folders, "bob", status="needs attention", sandbox="none: trusted students")
    submit(folders, "cy")
    assert "judged without a sandbox (trusted students)" in exported("moodle")[2][-1]
    out = capsys.readouterr().out
    for words in ("written answers are not graded", "need your attention", "not graded; not in", "(trusted students)"):
        (line,) = [line for line in out.splitlines() if words in line]
        assert line.endswith((": ada.", ": bob.", ": cy."))


@pytest.mark.parametrize(
    "formula", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "＝1", "a;=1", "a,\n=1", "a\t=1", "a;＋1", "a;－1", "＠a"]
)
def test_no_cell_begins_like_a_formula(formula):
    (row,) = list(csv.reader(io.StringIO(csv_text([[formula]]).decode("utf-8-sig"), newline="")))
    parts = [part.strip() for line in row[0].split("\n") for piece in line.split(";") for part in piece.split("\t")]
    assert all(not part.startswith(tuple("=+-@＝＋－＠")) for part in parts)
    assert harmless("anna-maria, o'neil @ home; 1 = 1") == "anna-maria, o'neil @ home; 1 = 1"


def test_bad_requests_get_a_sentence(folders, tmp_path):
    def refused(words, **options):
        with pytest.raises(CannotStart, match=words):
            export(NAME, folders.root, **options)

    refused("no layout 'excel'", layout="excel")
    refused("course grade 07")
    record(folders, "ada")
    refused("is no CSV file", roster=tmp_path)
    out = tmp_path / "deep" / "marks.csv"
    assert export(NAME, folders.root, out=out) == 0 and out.is_file()

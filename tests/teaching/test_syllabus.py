"""A term: what lessons say of themselves, how weeks divide them, and a calendar that another program reads."""

import datetime
import itertools
import re

import icalendar
import pytest

from course_lib.data.place import CannotStart
from course_lib.teaching.ics import Event, calendar
from course_lib.teaching.syllabus import (
    PLANS,
    WORKSHOP,
    events_of,
    make_weeks,
    parted,
    read_lessons,
    sections_for,
    syllabus,
    workshop,
)

START = datetime.date(2027, 2, 1)


@pytest.fixture(scope="module")
def known():
    return read_lessons()


def test_each_lesson_says_what_it_teaches_needs_and_recommends(known):
    assert list(known) == [f"{number:02}" for number in range(18)]
    for number, lesson in known.items():
        assert len(lesson.objectives) >= 4 and len(lesson.reading) == 2 and 60 <= lesson.minutes <= 210
        assert lesson.assignment == (number != "00")
        assert bool(lesson.needs) == (number != "00")
        assert all(need < number for need in lesson.needs + lesson.helps)


def test_what_a_lesson_needs_is_told_from_what_only_helps(known):
    assert known["08"].needs == ("05", "06", "04") and known["08"].helps == ("07",)
    assert known["17"].needs == ("05", "06", "08") and known["17"].helps == ("09",)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_the_parts_are_as_equal_as_they_can_be(parts):
    minutes = [74, 166, 184, 205, 90]

    def cost(sizes):
        ends = [0, *itertools.accumulate(sizes)]
        return sum(sum(minutes[a:b]) ** 2 for a, b in itertools.pairwise(ends))

    cuts = itertools.combinations(range(1, 5), parts - 1)
    every = [[b - a for a, b in itertools.pairwise([0, *cut, 5])] for cut in cuts]
    assert cost(parted(minutes, parts)) == min(map(cost, every))


@pytest.mark.parametrize(("name", "plan"), PLANS.items())
def test_a_plan_teaches_each_lesson_after_those_that_it_needs(name, plan, known):
    for position, number in enumerate(plan.lessons):
        assert set(known[number].needs) <= set(plan.lessons[:position])
    for weeks in (plan.least, plan.weeks, plan.most):
        term = make_weeks(plan, weeks, START, known)
        assert len(term) == weeks
        assert [lesson.number for week in term for lesson in week.lessons] == list(plan.lessons)
        assert not any(week.lessons for week in term[weeks - plan.project :])
        assert [week.first for week in term] == [START + datetime.timedelta(weeks=index) for index in range(weeks)]


def test_an_assignment_is_due_a_week_after_it_went_out(known):
    term = make_weeks(PLANS["project"], 14, START, known)
    for before, after in itertools.pairwise(term):
        assert after.due == before.out
        assert before.out == ("" if not before.lessons else before.lessons[-1].number)


def test_the_project_ends_with_the_term(known):
    term = make_weeks(PLANS["project"], 14, START, known)
    assert "report" in term[-1].project and "brief" in term[-5].project
    assert not any(week.project for week in make_weeks(PLANS["short"], 8, START, known))


@pytest.mark.parametrize("weeks", [0, 3, 40])
def test_a_number_of_weeks_that_does_not_fit_is_told(weeks, known):
    with pytest.raises(CannotStart, match="9 to 18 weeks"):
        make_weeks(PLANS["project"], weeks, START, known)


def test_the_syllabus_names_every_lesson_its_reading_and_the_graph(known):
    text = syllabus(PLANS["project"], make_weeks(PLANS["project"], 14, START, known))
    for lesson in known.values():
        assert f"**Lesson {lesson.number}, {lesson.title}** ({lesson.minutes} minutes)" in text
        assert all(one in text for one in lesson.reading) and f'L{lesson.number}["' in text
    graph = re.search(r"```mermaid\ngraph LR\n(.+?)```", text, flags=re.DOTALL)[1]
    assert all(re.fullmatch(r'  L\d\d(\["[^"]+"\]| (-->|-\.->) L\d\d)', line) for line in graph.splitlines())
    assert "  L05 --> L08" in graph and "  L07 -.-> L08" in graph
    assert "docs/capstone.md" in text and "Needed, and not part" not in text


def test_the_sessions_of_the_workshop_do_not_overlap_and_their_sections_fit(known):
    for day in (1, 2):
        sessions = [session for session in WORKSHOP if session.day == day]
        times = [datetime.datetime.fromisoformat(f"2027-02-01T{session.start}") for session in sessions]
        for session, begins, after in zip(sessions, times, times[1:], strict=False):
            assert begins + datetime.timedelta(minutes=session.minutes) <= after
    for session in (session for session in WORKSHOP if session.kind == "practical"):
        lesson = known[session.lesson]
        fits = sections_for(lesson, session.minutes)
        assert fits and sum(dict(lesson.sections)[title] for title in fits) <= session.minutes
    text, events = workshop(START, known)
    assert "not part of this plan: lesson 01" in text and len(events) == len(WORKSHOP)
    days = [START + datetime.timedelta(days=day) for day in (0, 1)]
    assert re.findall(r"^## (\d.*)", text, flags=re.MULTILINE) == [f"{day}" for day in days]
    assert [event.first for event in events] == [days[session.day - 1] for session in WORKSHOP]


def read(text):
    return icalendar.Calendar.from_ical(text)


def test_another_program_reads_the_calendar(known):
    weeks = make_weeks(PLANS["project"], 14, START, known)
    events = list(events_of(weeks))
    starts = {event.name: event.first for event in events}
    for week in (week for week in weeks if week.out):
        assert starts[f"Assignment {week.out} out"] == week.first
        assert starts[f"Assignment {week.out} due"] == week.first + datetime.timedelta(days=7)
    assert sum("Assignment" in name for name in starts) == 2 * sum(bool(week.out) for week in weeks) > 0
    read_back = read(calendar(events)).walk("VEVENT")
    assert [str(event["SUMMARY"]) for event in read_back] == [event.name for event in events]
    assert [event.decoded("DTSTART") for event in read_back] == [event.first for event in events]
    days = [(event.decoded("DTEND") - event.decoded("DTSTART")).days for event in read_back]
    assert days == [event.days for event in events] and set(days) == {1, 7}
    assert len({str(event["UID"]) for event in read_back}) == len(events)
    assert not read(calendar(events)).errors and not any(event.errors for event in read_back)


def test_hours_and_long_names_survive_the_calendar():
    name = "Ümläute; commas, and a name \\ that is much longer than the seventy-five bytes of one line " * 2
    text = calendar([Event(name, START, 1, "09:00", 75)])
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n")) and "\n" not in text.replace("\r\n", "")
    (event,) = read(text).walk("VEVENT")
    assert str(event["SUMMARY"]) == name
    assert event.decoded("DTEND") - event.decoded("DTSTART") == datetime.timedelta(minutes=75)

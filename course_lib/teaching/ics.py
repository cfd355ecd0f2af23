"""A calendar as a file that calendar programs import: iCalendar, RFC 5545."""

import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple


class Event(NamedTuple):
    """An entry of the calendar: whole days, or some minutes from an hour on."""

    name: str
    first: datetime.date
    days: int = 1
    start: str = ""
    minutes: int = 0


def calendar(events: Sequence[Event]) -> str:
    """The events as iCalendar (RFC 5545): the same text for the same events."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//course-lib//syllabus//EN", "CALSCALE:GREGORIAN"]
    for number, event in enumerate(events):
        lines += [
            "BEGIN:VEVENT",
            f"UID:{event.first:%Y%m%d}-{number}@course-lib",
            f"DTSTAMP:{event.first:%Y%m%d}T000000Z",
        ]
        if event.start:
            opening = datetime.datetime.combine(event.first, datetime.time.fromisoformat(event.start))
            closing = opening + datetime.timedelta(minutes=event.minutes)
            lines += [f"DTSTART:{opening:%Y%m%dT%H%M%S}", f"DTEND:{closing:%Y%m%dT%H%M%S}"]
        else:
            end = event.first + datetime.timedelta(days=event.days)  # the day after the last
            lines += [f"DTSTART;VALUE=DATE:{event.first:%Y%m%d}", f"DTEND;VALUE=DATE:{end:%Y%m%d}"]
        name = re.sub(r"([,;\\])", r"\\\1", event.name)
        lines += [f"SUMMARY:{name}", "TRANSP:TRANSPARENT", "END:VEVENT"]
    return "".join(f"{_folded(line)}\r\n" for line in [*lines, "END:VCALENDAR"])


def _folded(line: str) -> str:
    """A line of at most 75 bytes; what is longer goes on behind a space."""
    parts, size = [""], 0
    for letter in line:
        if size + len(letter.encode()) > 74:
            parts.append("")
            size = 0
        parts[-1] += letter
        size += len(letter.encode())
    return "\r\n ".join(parts)

"""A reference with some of its table's mistakes, for tests of what they are told and what they cost."""

from course_lib.tasks import run_checks
from course_lib.tasks.wrong import made_by


def mistaken(table, *names):
    """The reference with the mistakes of these names, each made in its first way."""
    found = {known.name: known.ways[0] for known in reversed(table.mistakes) if known.ways}
    return made_by(table, tuple(change for name in names for change in found[name]))


def passed(table, *names):
    """The checks that the reference passes in spite of these mistakes."""
    answer = mistaken(table, *names)
    return [check for check in table.scored if run_checks(answer, [check], asks=table.asks).passed]

"""What one plays with in lesson 07: a blank to fill in two languages, and a search over the course's own pages."""

from course_lib.lessons.lesson_07.blank import blank
from course_lib.lessons.lesson_07.search import search

PLAYGROUNDS = {"blank": blank, "search": search}

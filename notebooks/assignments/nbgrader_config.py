"""nbgrader's settings for this course directory: `course assign ...`, `course grade` and nbgrader's tools read them."""

c = get_config()  # noqa: F821 (nbgrader defines it)

# The course's name in the gradebook and in the exchange: letters, digits, no blanks.
c.CourseDirectory.course_id = "deep-learning"

# Autograde (nbgrader's command, and the button in formgrader) never runs a student's code in a kernel. The judge takes
# the place of nbgrader's Execute: it rebuilds the answers, runs them in a sandbox and records scores, comments and late
# penalties, as `course grade` does. (SaveAutoGrades after it would take its comments away.)
# It is named as text on purpose: where it cannot be imported, autograding stops. If an import failed here, nbgrader
# would only warn, and go on with Execute.
c.Autograde.sanitize_preprocessors = ["course_lib.grading.nbgrader_plugin.StartFromRelease"]
c.Autograde.autograde_preprocessors = [
    "course_lib.grading.nbgrader_plugin.JudgeSubmission",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Formgrader shows written answers as HTML, and would run a script that a student writes into one. With this filter HTML
# in them can do nothing.
c.HTMLExporter.filters = {"markdown2html": "course_lib.grading.nbgrader_plugin.safe_markdown"}

# What a student finds in place of a solution. The judge knows an untouched cell by it: course_lib/grading/spec.py has
# the same words.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# A class with a shared disk (such as JupyterHub): the folder through which assignments go out and come in. Without this
# line there is no exchange: students fetch from the course itself, and hand in a file. COURSE_EXCHANGE overrides it.
# c.Exchange.root = "/srv/nbgrader/exchange"
# On a hub where every student has the same account name, the owner of a file says nothing:
# c.ExchangeCollect.check_owner = False

# Points off for lateness: a class with a method late_submission_penalty, as nbgrader's manual describes under "Late
# submission plugin". The assignment's due date is set in formgrader. As it stands, being late costs nothing.
# c.AssignLatePenalties.plugin_class = "late.OnePointAnHour"         # in late.py beside this file

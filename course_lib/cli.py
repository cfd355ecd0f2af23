"""The `course` command. Modules that take long to import are imported by the commands that need them."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from course_lib.commands.lessons import CannotStart

app = typer.Typer(
    name="course",
    help="A hands-on course in deep learning: open it, run it, test it, check this machine.",
    epilog="Start with:  course lab",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Lesson = Annotated[str, typer.Argument(metavar="LESSON", help="Its number or name, such as 05 or attention.")]
Lessons = Annotated[
    list[str] | None,
    typer.Argument(metavar="LESSON...", help="Numbers or names, such as 05 or attention. All if left out."),
]
PytestArguments = Annotated[
    list[str] | None, typer.Argument(metavar="ARGUMENT...", help="Options of pytest, and tests or notebooks to run.")
]


@app.command(epilog="Examples:  course lab   |   course lab 05   |   course lab --no-browser --port 9000")
def lab(
    lesson: Lesson = "00",
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Listen there. Without it: the first free port from 8888 on.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")
    ] = True,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Where course_lib is a wheel, the first time: the archive of the course's files."),
    ] = None,
):
    """Open the course in JupyterLab.

    It works offline. Only where course_lib was installed from a wheel, and only the first time, the files of the course
    are fetched and unpacked into the folder `course`. Press Ctrl-C twice in the terminal to stop it.
    """
    from course_lib.commands.lab import open_lab

    raise typer.Exit(open_lab(lesson, port=port, browser=browser, source=source))


@app.command(epilog="Examples:  course run   |   course run 05   |   course run 00 attention")
def run(
    lesson: Lessons = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that one cell may take.")] = 300,
):
    """Run lessons from top to bottom, without a browser.

    Prints a line for each and a summary of times and outcomes. The notebooks on disk are not changed.
    """
    from course_lib.commands.run import run_lessons

    raise typer.Exit(run_lessons(lesson or (), timeout=timeout))


@app.command(
    # Without -h, which could be a part of an option of pytest's.
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    epilog="Examples:  course test   |   course test tests/layers   |   course test -k attention --maxfail=1",
)
def test(arguments: PytestArguments = None):
    """Run every test, and every notebook against its stored outputs.

    All arguments go to pytest; paths take the place of everything.
    """
    from course_lib.commands.testing import run_tests

    raise typer.Exit(run_tests(arguments or ()))


@app.command(epilog="Example:  course doctor")
def doctor():
    """Check this machine: Python, packages, notebook kernel, widgets, memory, speed.

    Says what to do about each red line, and ends with exit code 1 if there is one.
    """
    from course_lib.commands.doctor import report

    raise typer.Exit(report())


@app.command(
    epilog="Examples:  course train vit   |   course train vit --seeds 0,1,2   |   course train vit --data mnist   |   "
    "course train resnet --device cuda --precision bf16"
)
def train(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What to train; without it: the list.")] = None,
    seeds: Annotated[str, typer.Option(metavar="S,S,...", help="Whole numbers; the best on validation is kept.")] = "0",
    out: Annotated[Path | None, typer.Option(help="Folder for the checkpoint, in place of data/checkpoints.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier start has trained.")] = False,
    data: Annotated[
        str | None, typer.Option(metavar="SET", help="A real data set, fetched if need be; see course data list.")
    ] = None,
    device: Annotated[Literal["cpu", "cuda", "mps", "auto"], typer.Option(help="Where to compute.")] = "cpu",
    precision: Annotated[Literal["32", "bf16", "fp16"], typer.Option(help="Of the forward pass.")] = "32",
    compile: Annotated[bool, typer.Option("--compile", help="By torch.compile: a slow start, faster steps.")] = False,
    accumulate: Annotated[int, typer.Option(min=1, help="Batches whose gradients make one step.")] = 1,
):
    """Train a model that a lesson shows, and write it with a card that says how good it is.

    A training that was interrupted goes on where it stood, and ends with the same weights. The last four options need
    Lightning Fabric, and so does torchrun, which trains in several processes: docs/scale.md.
    """
    from course_lib.commands.train import list_recipes, parse_seeds
    from course_lib.commands.train import train as train_recipe
    from course_lib.training.scale import Setup

    if name is None:
        raise typer.Exit(list_recipes())
    setup = Setup(device=device, precision=precision, compile=compile, accumulate=accumulate)
    raise typer.Exit(train_recipe(name, data=data, seeds=parse_seeds(seeds), out=out, fresh=fresh, setup=setup))


data_sets = typer.Typer(
    name="data",
    help="Real data sets: which there are, and how to get one. The lessons need none of them.",
    epilog="Examples:  course data list   |   course data fetch mnist",
    no_args_is_help=True,
)
app.add_typer(data_sets)


@data_sets.command(name="list", epilog="Example:  course data list")
def list_data():
    """Name the sets, with size, licence and source, and say which are here."""
    from course_lib.commands.data import list_sets

    raise typer.Exit(list_sets())


@data_sets.command(name="fetch", epilog="Examples:  course data fetch mnist   |   course data fetch cifar10 --to here")
def fetch_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of course data list.")],
    to: Annotated[Path | None, typer.Option(help="Copy it to this folder, too.")] = None,
):
    """Get a set, once, and check it.

    A download that broke off goes on where it stood. COURSE_DATA_MIRROR names a folder or an http address to ask first.
    """
    from course_lib.commands.data import fetch_set

    raise typer.Exit(fetch_set(name, to=to))


Mine = Annotated[
    Path | None,
    typer.Option("--with", exists=True, dir_okay=False, help="Your own changes to the slides: docs/lecturing.md."),
]
Student = Annotated[bool, typer.Option("--student", help="Without notes, and without the answers to its questions.")]
Minutes = Annotated[int | None, typer.Option(help="30, 60 or 90: the lecture of that length, else the longest.")]
To = Annotated[Path | None, typer.Option(help="Write there, in place of build/lectures.")]


@app.command(
    epilog="Examples:  course slides 05   |   course slides 05 --minutes 30   |   course slides 05 --with my.toml"
)
def slides(
    lesson: Lesson,
    minutes: Minutes = None,
    theme: Annotated[str, typer.Option(help="light or dark; the key T switches.")] = "light",
    mine: Mine = None,
    student: Student = False,
    pptx: Annotated[bool, typer.Option("--pptx", help="A PowerPoint file: pictures, titles and notes.")] = False,
    to: To = None,
):
    """Write the slides of a lesson as one file, which opens in any browser and needs no network.

    In it: arrow keys or a clicker; S for the notes in a window of their own, T for the theme, ? for all keys.
    """
    from course_lib.commands.lessons import find_lesson
    from course_lib.lectures.commands import write_slides

    raise typer.Exit(
        write_slides(find_lesson(lesson), path=minutes, theme=theme, mine=mine, student=student, pptx=pptx, to=to)
    )


@app.command(epilog="Examples:  course lecture 05   |   course lecture 05 --minutes 60 --port 9000")
def lecture(
    lesson: Lesson,
    minutes: Minutes = None,
    theme: Annotated[str, typer.Option(help="light or dark; the key T switches.")] = "light",
    mine: Mine = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Listen there.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or not.")] = True,
):
    """Teach from slides whose widgets recompute. Press Ctrl-C in the terminal to stop.

    The slides stand there at once; the lesson runs meanwhile, and then the widgets come to life. Only this machine
    can open the page.
    """
    from course_lib.commands.lessons import find_lesson
    from course_lib.lectures.commands import teach

    raise typer.Exit(teach(find_lesson(lesson), path=minutes, theme=theme, mine=mine, port=port, browser=browser))


@app.command(epilog="Examples:  course handout 05   |   course handout 05 --minutes 60 --to handouts")
def handout(lesson: Lesson, minutes: Minutes = None, mine: Mine = None, student: Student = False, to: To = None):
    """Write what a lecture leaves behind: slides with notes as PDF, and the lesson for reading as HTML and PDF.

    It needs Chromium, Chrome or Edge to print with.
    """
    from course_lib.commands.lessons import find_lesson
    from course_lib.lectures.commands import write_handouts

    raise typer.Exit(write_handouts(find_lesson(lesson), path=minutes, mine=mine, student=student, to=to))


@app.command(epilog="Examples:  course site   |   course site --to public")
def site(to: Annotated[Path | None, typer.Option(help="The folder, in place of build/site.")] = None):
    """Write a site to read: all lessons with their results, the guides, the library's reference, and a search.

    Nothing is executed. The pages need no network and no server; any web server can host the folder.
    """
    from course_lib.commands.lessons import lessons
    from course_lib.site.build import write_site
    from course_lib.site.sources import all_sources

    raise typer.Exit(write_site(all_sources(lessons()), to))


@app.command(
    epilog="Examples:  course exam --lessons 03-08 --points 60 --seed 1   |   course exam --check --lessons 08"
)
def exam(
    lessons: Annotated[str | None, typer.Option(metavar="NN-NN", help="Such as 05, 03-08 or 01,03-05.")] = None,
    points: Annotated[int, typer.Option(min=1, help="The exam has exactly as many.")] = 60,
    seed: Annotated[int, typer.Option(help="Draws questions, numbers and the order of options.")] = 0,
    format: Annotated[str, typer.Option(help="md, tex, moodle or qti.")] = "md",
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="In place of build/exams.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the banks of questions, and write nothing.")] = False,
):
    """Draw an exam from the banks of questions, with solutions and a marking scheme in a second file.

    Another seed is another paper. The banks are exams/NN.md; docs/lecturing.md says how to add a question.
    """
    from course_lib.teaching.exams.commands import check_banks, write_exam

    if check:
        raise typer.Exit(check_banks(lessons))
    if lessons is None:
        raise CannotStart("Say which lessons the exam is about, such as --lessons 03-08.")
    raise typer.Exit(write_exam(lessons, points=points, seed=seed, form=format, to=to or Path("build") / "exams"))


@app.command(
    epilog="Examples:  course syllabus --weeks 14 --start 2027-02-01   |   "
    "course syllabus --plan workshop --start 2027-02-01"
)
def syllabus(
    start: Annotated[str, typer.Option(metavar="DATE", help="The first day, such as 2027-02-01.")],
    weeks: Annotated[int | None, typer.Option(help="How many, in place of the plan's own number.")] = None,
    plan: Annotated[str, typer.Option(help="project: all lessons and a project; short: 8 weeks; workshop: 2 days.")] = (
        "project"
    ),
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="In place of build/syllabus.")] = None,
):
    """Plan a term: lessons, reading and assignments by week, what needs what, and a calendar to import."""
    from course_lib.teaching.syllabus import write_syllabus

    raise typer.Exit(write_syllabus(plan, weeks=weeks, start=start, to=to or Path("build") / "syllabus"))


Assignment = Annotated[str, typer.Argument(metavar="ASSIGNMENT", help="Its name, such as 05.")]
Folder = Annotated[
    Path | None,
    typer.Option(help="The instructor's course directory, in place of notebooks/assignments or COURSE_ASSIGNMENTS."),
]
Student = Annotated[str | None, typer.Option(metavar="NAME", help="This one alone.")]


@app.command(epilog="Examples:  course grade 05   |   course grade 05 --student ada   |   course grade 05 --again")
def grade(
    assignment: Assignment,
    student: Student = None,
    again: Annotated[bool, typer.Option("--again", help="Judge those, too, that are graded already.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Without it: one for each core.")] = None,
    trusted_students: Annotated[
        bool, typer.Option("--trusted-students", help="Judge without a sandbox; stamped into every report.")
    ] = False,
    folder: Folder = None,
):
    """Grade all submissions of an assignment with its hidden checks, each in a sandbox.

    What is graded already is left as it is; a run that was stopped goes on where it stood.
    """
    from course_lib.grading.batch import grade as grade_submissions

    code = grade_submissions(
        assignment,
        folder=folder,
        student=student,
        again=again,
        workers=workers,
        trusted=trusted_students,
    )
    raise typer.Exit(code)


assign = typer.Typer(
    name="assign",
    help="Assignments: fetch, validate and submit one; or release, collect, prove one and send its results.",
    epilog="For students:  course assign fetch 05, validate 05, submit 05",
    no_args_is_help=True,
)
app.add_typer(assign)

STUDENTS, INSTRUCTORS = "For students", "For instructors"


@assign.command(name="list", rich_help_panel=STUDENTS, epilog="Example:  course assign list")
def list_assignments(folder: Folder = None):
    """Name the assignments that there are."""
    from course_lib.grading.student import list_assignments

    raise typer.Exit(list_assignments(folder=folder))


@assign.command(rich_help_panel=STUDENTS, epilog="Example:  course assign fetch 05")
def fetch(
    assignment: Assignment,
    to: Annotated[Path | None, typer.Option(help="The folder for your copy.")] = None,
    again: Annotated[bool, typer.Option("--again", help="A fresh copy, beside the one that you work on.")] = False,
):
    """Get your copy of an assignment. Nothing that you wrote is ever overwritten."""
    from course_lib.grading.student import fetch

    raise typer.Exit(fetch(assignment, to=to, again=again))


@assign.command(rich_help_panel=STUDENTS, epilog="Example:  course assign validate 05")
def validate(
    assignment: Assignment,
    notebook: Annotated[Path | None, typer.Option(help="Your notebook, where it lies in an unusual place.")] = None,
):
    """Run the visible checks as the grader would, and say what would cost points."""
    from course_lib.grading.student import validate

    raise typer.Exit(validate(assignment, notebook=notebook))


@assign.command(rich_help_panel=STUDENTS, epilog="Example:  course assign submit 05")
def submit(
    assignment: Assignment,
    notebook: Annotated[Path | None, typer.Option(help="Your notebook, where it lies in an unusual place.")] = None,
    student: Annotated[str | None, typer.Option(metavar="NAME", help="Your name in the course.")] = None,
):
    """Hand your notebook in, and get a receipt."""
    from course_lib.grading.student import submit

    raise typer.Exit(submit(assignment, notebook=notebook, student=student))


@assign.command(rich_help_panel=STUDENTS, epilog="Example:  course assign results 05")
def results(
    assignment: Assignment,
    notebook: Annotated[Path | None, typer.Option(help="Your notebook, where it lies in an unusual place.")] = None,
):
    """Get the feedback on what you submitted, where the class has an exchange."""
    from course_lib.grading.student import results

    raise typer.Exit(results(assignment, notebook=notebook))


@assign.command(rich_help_panel=STUDENTS, epilog="Example:  course assign verify receipt.json")
def verify(
    receipt: Annotated[Path, typer.Argument(help="As `course assign submit` wrote it.")],
    file: Annotated[Path | None, typer.Option(help="The notebook in question, where it lies elsewhere.")] = None,
):
    """Tell whether a submission is the one of its receipt."""
    from course_lib.grading.student import verify

    raise typer.Exit(verify(receipt, file))


@assign.command(rich_help_panel=INSTRUCTORS, epilog="Example:  course assign prove 05")
def prove(assignment: Assignment, folder: Folder = None):
    """Prove the grader: the reference earns all points, the stub none, each known-wrong answer what it should."""
    from course_lib.grading.prove import prove

    raise typer.Exit(prove(assignment, folder=folder))


@assign.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Examples:  course assign release 05   |   course assign release 05 --draw KEY",
)
def release(
    assignment: Assignment,
    draw: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Draw among alternative tasks by this key. Without it: the first ones."),
    ] = None,
    folder: Folder = None,
):
    """Make the students' version: no solution, no hidden check, no output."""
    from course_lib.grading.release import release

    raise typer.Exit(release(assignment, folder=folder, draw=draw))


@assign.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Examples:  course assign collect 05   |   course assign collect 05 --from canvas.zip",
)
def collect(
    assignment: Assignment,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder or .zip of notebooks, as Canvas and Moodle export them.")
    ] = None,
    folder: Folder = None,
):
    """Take in what students have handed in."""
    from course_lib.grading.collect import collect

    raise typer.Exit(collect(assignment, source=source, folder=folder))


@assign.command(rich_help_panel=INSTRUCTORS, epilog="Example:  course assign formgrader")
def formgrader(
    folder: Folder = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Listen there.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or not.")] = True,
):
    """Open nbgrader's formgrader: read answers, give points and comments by hand."""
    from course_lib.commands.formgrader import formgrader

    raise typer.Exit(formgrader(folder=folder, port=port, browser=browser))


@assign.command(
    rich_help_panel=INSTRUCTORS, epilog="Examples:  course assign marking 05   |   course assign marking 05 --tutors 3"
)
def marking(
    assignment: Assignment,
    tutors: Annotated[int, typer.Option(min=1, help="A page for each; students are dealt to them in turn.")] = 1,
    seed: Annotated[int, typer.Option(help="Another order of the students.")] = 0,
    to: Annotated[Path | None, typer.Option(help="The folder, in place of marking/ in the course directory.")] = None,
    folder: Folder = None,
):
    """Write a page for marking answers in words: offline, without names, by keyboard."""
    from course_lib.grading.marking import marking

    raise typer.Exit(marking(assignment, folder=folder, tutors=tutors, seed=seed, to=to))


@assign.command(rich_help_panel=INSTRUCTORS, epilog="Example:  course assign marks marks-05.json")
def marks(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="As the marking page has downloaded it.")],
    folder: Folder = None,
):
    """Carry the marks of a marking page into the gradebook."""
    from course_lib.grading.marking import marks

    raise typer.Exit(marks(file, folder=folder))


@assign.command(rich_help_panel=INSTRUCTORS, epilog="Example:  course assign leaderboard 08")
def leaderboard(
    assignment: Assignment,
    to: Annotated[Path | None, typer.Option(help="The file to write.")] = None,
    folder: Folder = None,
):
    """Write the scores of an open task, by pseudonyms."""
    from course_lib.grading.leaderboard import leaderboard

    raise typer.Exit(leaderboard(assignment, folder=folder, to=to))


@assign.command(
    rich_help_panel=INSTRUCTORS, epilog="Examples:  course assign report   |   course assign report --names --csv"
)
def report(
    names: Annotated[bool, typer.Option("--names", help="Name the students; without it they are numbers.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the same numbers as CSV files, too.")] = False,
    to: Annotated[Path | None, typer.Option(help="The file to write.")] = None,
    folder: Folder = None,
):
    """Write what the class struggles with: points, mistakes, items and times of all graded assignments."""
    from course_lib.teaching.report import report

    raise typer.Exit(report(folder=folder, names=names, csv=csv, to=to))


@assign.command(rich_help_panel=INSTRUCTORS, epilog="Example:  course assign feedback 05")
def feedback(assignment: Assignment, student: Student = None, folder: Folder = None):
    """Write a page of feedback for each student."""
    from course_lib.grading.feedback import feedback

    raise typer.Exit(feedback(assignment, folder=folder, student=student))


@assign.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Examples:  course assign export 05   |   course assign export 05 --layout moodle",
)
def export(
    assignment: Assignment,
    layout: Annotated[str, typer.Option(help="canvas, moodle or plain.")] = "canvas",
    roster: Annotated[Path | None, typer.Option(help="The CSV file of students, as downloaded from there.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write.")] = None,
    folder: Folder = None,
):
    """Write the marks as a CSV file that Canvas or Moodle imports."""
    from course_lib.grading.export import export

    raise typer.Exit(export(assignment, folder=folder, layout=layout, roster=roster, out=out))


classes = typer.Typer(
    name="class",
    help="A class: a bundle that students install, and a private folder for its instructor.",
    epilog="Examples:  course class init autumn --zip   |   course class update autumn",
    no_args_is_help=True,
)
app.add_typer(classes)
Class = Annotated[Path, typer.Argument(metavar="FOLDER", help="The class: student/ and instructor/ lie in it.")]


@classes.command(name="init", epilog="Examples:  course class init autumn   |   course class init autumn --zip")
def init_class(folder: Class, packed: Annotated[bool, typer.Option("--zip", help="Pack the bundle, too.")] = False):
    """Make FOLDER/student, without anything that is for instructors, and FOLDER/instructor, with what they need.

    Nothing that you changed there is overwritten.
    """
    from course_lib.teaching.bundle import init

    raise typer.Exit(init(folder, packed=packed))


@classes.command(name="update", epilog="Example:  course class update autumn")
def update_class(folder: Class):
    """Refresh FOLDER/student: with the assignments that are released by now, and the lessons as they are now."""
    from course_lib.teaching.bundle import update

    raise typer.Exit(update(folder))


BENCHMARKS = {
    "attention": "course_lib.bench.attention",
    "grading": "course_lib.bench.grading",
    "heads": "course_lib.bench.heads",
    "images": "course_lib.bench.images",
    "language": "course_lib.bench.language",
    "lessons": "course_lib.bench.lessons",
    "translation": "course_lib.bench.translation",
    "vision": "course_lib.bench.vision",
}


@app.command(epilog="Example:  course bench attention")
def bench(name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(BENCHMARKS)}.")]):
    """Measure on this machine: our layers and models against their peers, or what a lesson's settings rest on."""
    from importlib import import_module

    if name not in BENCHMARKS:
        raise CannotStart(f"There is no benchmark {name!r}. There are: {', '.join(BENCHMARKS)}.")
    raise typer.Exit(import_module(BENCHMARKS[name]).main())


# package -> the extra of pyproject.toml that has it
EXTRAS = {"filelock": "instructor", "nbgrader": "instructor", "tokenizers": "bench", "transformers": "bench"}
NOT_FOR_STUDENTS = "course_lib.teaching"  # see course_lib/teaching/bundle.py


def main() -> None:
    """Run the `course` command with the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a letter must not stop us
    try:
        app(prog_name="course")
    except CannotStart as problem:
        said = str(problem)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in EXTRAS and missing.name != NOT_FOR_STUDENTS:
            raise
        said = (
            "This command is for instructors: it is not part of what students install."
            if missing.name == NOT_FOR_STUDENTS
            else f"This needs {package}, which is not installed here. In the folder of the course this installs it and "
            f"goes on: python3 course.py {shlex.join(sys.argv[1:])}   (or, into another environment: pip install "
            f"--editable '.[{EXTRAS[package]}]')"
        )
    print(f"\n{said}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()

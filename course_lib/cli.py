"""The `course` command. Modules that take long to import are imported by the commands that need them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from course_lib.tools.lessons import CannotStart

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
):
    """Open the course in JupyterLab.

    Nothing is fetched from the network: it works offline. Press Ctrl-C twice in the terminal to stop it.
    """
    from course_lib.tools.lab import open_lab

    raise typer.Exit(open_lab(lesson, port=port, browser=browser))


@app.command(epilog="Examples:  course run   |   course run 05   |   course run 00 attention")
def run(
    lesson: Lessons = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that one cell may take.")] = 300,
):
    """Run lessons from top to bottom, without a browser.

    Prints a line for each and a summary of times and outcomes. The notebooks on disk are not changed.
    """
    from course_lib.tools.run import run_lessons

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
    from course_lib.tools.testing import run_tests

    raise typer.Exit(run_tests(arguments or ()))


@app.command(epilog="Example:  course doctor")
def doctor():
    """Check this machine: Python, packages, notebook kernel, widgets, memory, speed.

    Says what to do about each red line, and ends with exit code 1 if there is one.
    """
    from course_lib.tools.doctor import report

    raise typer.Exit(report())


@app.command(epilog="Examples:  course train   |   course train gpt   |   course train translator --seeds 0,1,2")
def train(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What to train; without it: the list.")] = None,
    seeds: Annotated[str, typer.Option(metavar="S,S,...", help="Whole numbers; the best on validation is kept.")] = "0",
    out: Annotated[Path | None, typer.Option(help="Folder for the checkpoint, in place of data/checkpoints.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier start has trained.")] = False,
):
    """Train a model that a lesson shows, and write it with a card that says how good it is.

    A training that was interrupted goes on where it stood, and ends with the same weights.
    """
    from course_lib.tools.train import list_recipes, parse_seeds
    from course_lib.tools.train import train as train_recipe

    if name is None:
        raise typer.Exit(list_recipes())
    raise typer.Exit(train_recipe(name, seeds=parse_seeds(seeds), out=out, fresh=fresh))


BENCHMARKS = {
    "attention": "course_lib.tools.bench_attention",
    "heads": "course_lib.tools.bench_heads",
    "images": "course_lib.tools.bench_images",
    "language": "course_lib.tools.bench_language",
    "translation": "course_lib.tools.bench_translation",
    "vision": "course_lib.tools.bench_vision",
}


@app.command(epilog="Example:  course bench attention")
def bench(name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(BENCHMARKS)}.")]):
    """Measure on this machine: our layers and models against their peers, or what a lesson's settings rest on."""
    from importlib import import_module

    if name not in BENCHMARKS:
        raise CannotStart(f"There is no benchmark {name!r}. There are: {', '.join(BENCHMARKS)}.")
    raise typer.Exit(import_module(BENCHMARKS[name]).main())


def main() -> None:
    """Run the `course` command with the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")    # a terminal that cannot show a letter must not stop us
    try:
        app(prog_name="course")
    except CannotStart as problem:
        print(f"\n{problem}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

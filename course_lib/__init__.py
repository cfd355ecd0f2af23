"""The companion library of the course: the real implementations that the lessons show."""

from importlib.metadata import version


def __getattr__(name: str) -> str:
    """`course_lib.__version__`, as the installed package has it; looked up when asked for."""
    if name == "__version__":
        return version("course-lib")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

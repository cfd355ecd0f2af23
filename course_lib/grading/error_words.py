"""What students read about an error in their code: its kind and what to try, never its own text."""

from course_lib.grading.boxed.worker import TOO_LARGE

_LAST_LINE = "Run your cell after restarting the kernel, with nothing but the cells above it."
_OTHER_SIZES = "Run it on inputs of other sizes than the example's."
_NAMES = "Is the function called as in the task? " + _LAST_LINE
_FILES = "Answers are judged without files and without a network: compute what you need in the cell itself."
ERRORS = {
    "NotImplementedError": (
        "`NotImplementedError`: a part is not written yet",
        "Write what is asked for in its place.",
    ),
    "NameError": ("a `NameError`: it uses a name that is not defined", _NAMES),
    "UnboundLocalError": ("an `UnboundLocalError`: it reads a variable before that has a value", _LAST_LINE),
    "SyntaxError": (
        "a `SyntaxError`: it is no valid Python",
        "Does the cell run in JupyterLab? If it does: lines that begin with `%` or `!` are no Python, leave them out; "
        "so are a `?` behind a name and `await` outside of a function.",
    ),
    "IndentationError": ("an `IndentationError`: its lines are not indented as Python needs it", _LAST_LINE),
    "TabError": ("a `TabError`: tabs and spaces are mixed", _LAST_LINE),
    "TypeError": (
        "a `TypeError`: a value of the wrong type, or a call with other arguments than the function takes",
        "Compare names and order of the arguments with those in the task.",
    ),
    "AttributeError": (
        "an `AttributeError`: something was asked for an attribute that it does not have",
        "Is it a tensor where a module is meant, or `None`?",
    ),
    "IndexError": ("an `IndexError`: an index or axis that is not there", "Try inputs with other sizes and lengths."),
    "KeyError": ("a `KeyError`: a key that is not in a dictionary", ""),
    "ValueError": ("a `ValueError`: a value that cannot be used there", ""),
    "RuntimeError": (
        "a `RuntimeError`: often shapes or types of tensors that do not fit, or a tensor too large for the memory",
        "Write down the shape after each line, with sizes that all differ, and look for the first that is wrong.",
    ),
    "ZeroDivisionError": ("a `ZeroDivisionError`: a division by zero", ""),
    "OverflowError": ("an `OverflowError`: a number too large for its type", ""),
    "AssertionError": (
        "an `AssertionError`: an `assert` that does not hold, or a GPU that is not there",
        "Is there an `assert` of yours, a `cuda`? Answers are judged without a GPU.",
    ),
    "RecursionError": ("a `RecursionError`: a function that calls itself without end", ""),
    "StopIteration": ("`StopIteration`: there was nothing left to take", ""),
    "MemoryError": ("a `MemoryError`: more memory than allowed", "Look for a tensor much larger than needed."),
    "EOFError": ("an `EOFError`: it waits for something to be typed in", "Leave out `input()`: nobody types there."),
    "BdbQuit": ("a debugger that waits for something to be typed in", "Leave out `set_trace()`: nobody types there."),
    "ImportError": ("an `ImportError`: something to import is not there", "Use what the first cell imports."),
    "ModuleNotFoundError": (
        "a `ModuleNotFoundError`: a package that is not there when answers are judged",
        "Use what the first cell imports.",
    ),
    "OSError": ("an `OSError`: a file, a process or a connection that is not to be had", _FILES),
    "FileNotFoundError": ("a `FileNotFoundError`: a file that is not there", _FILES),
    "PermissionError": ("a `PermissionError`: something that is not allowed there", _FILES),
    "ConnectionError": ("a `ConnectionError`: there is no network", _FILES),
    "SystemExit": ("`SystemExit`: it ends Python", "Leave out `exit()`, `quit()` and `sys.exit()`."),
    "KeyboardInterrupt": ("`KeyboardInterrupt`", ""),
    TOO_LARGE: ("a result that is too large to be looked at", "Is it a tensor much larger than asked for?"),
}

WARNING = ("a warning, which counts as an error here", 'Is there a `warnings.simplefilter("error")` of yours?')


def error_words(kind: str | None, missing: tuple[str, str] | None = None, *, running: bool = False) -> tuple[str, str]:
    """What to say of an error of this kind, and what to try.

    `missing` says it of a name that is not defined; `running`: it came when the cell was run, before anything was
    asked of it.
    """
    if kind == "NameError" and missing is not None:
        return f"Your code stopped with a `NameError`: {missing[0]}.", missing[1]
    said, hint = ERRORS.get(kind or "", WARNING if (kind or "").endswith("Warning") else ("an error", ""))
    return f"Your code stopped with {said}.", hint or (_LAST_LINE if running else _OTHER_SIZES)

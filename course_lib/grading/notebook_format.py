"""The package nbformat, imported in a tenth of the time.

Its validator imports all checks that jsonschema knows. One of them compiles a grammar of international addresses, for
almost a second, and nothing in a notebook is checked by it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["nbformat"]


@contextmanager
def _without(module: str) -> Iterator[None]:
    """Within, a module that was not imported yet cannot be."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None
    try:
        yield
    finally:
        del sys.modules[module]


with _without("rfc3987_syntax"):
    import nbformat

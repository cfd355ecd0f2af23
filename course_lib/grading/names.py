"""Which names a cell defines and uses, found without running it.

Uses the standard library alone: the judge has this file run in a box, because what it looks at may be made to take
long.
"""

import builtins
import re
import symtable

_IMPORTS_ALL = re.compile(r"\bimport\s*\(?\s*\*")
_OF_MODULES = {"__name__", "__file__", "__doc__", "__builtins__", "get_ipython", "display"}


def defined(text: str) -> set[str]:
    """The names that a cell binds outside of functions and classes, or as globals; none if it is no valid Python."""
    return _bound(_scopes(text))


def used(text: str) -> set[str]:
    """The names that a cell reads and does not define itself; none if it is no valid Python."""
    scopes = _scopes(text)
    read = {symbol.get_name() for scope in scopes for symbol in scope.get_symbols() if _is_read_global(scope, symbol)}
    return read - _bound(scopes)


def missing(texts: list[str]) -> list[str]:
    """The names that the last cell uses and that neither it nor a cell before it nor Python defines, in order.

    None where a cell imports all of a module: that may define anything.
    """
    if any(_IMPORTS_ALL.search(text) for text in texts):
        return []
    there = set(dir(builtins)) | _OF_MODULES
    return sorted(used(texts[-1]) - there.union(*map(defined, texts)))


def needs(texts: list[str]) -> list[list[int]]:
    """For each cell the places of those before it that it needs: they define what it, or another one it needs, uses.

    Where it imports all of a module, or one of those before it does, these are all.
    """
    defines, uses = [defined(text) for text in texts], [used(text) for text in texts]
    leads = [{place for place, names in enumerate(defines) if names & read} for read in uses]
    found = []
    for last in range(len(texts)):
        needed = {last}
        if any(_IMPORTS_ALL.search(before) for before in texts[: last + 1]):
            needed.update(range(last))
        while more := {place for one in needed for place in leads[one] if place < last} - needed:
            needed |= more
        found.append(sorted(needed - {last}))
    return found


def _bound(scopes: list[symtable.SymbolTable]) -> set[str]:
    return {symbol.get_name() for scope in scopes for symbol in scope.get_symbols() if _is_bound_global(scope, symbol)}


def _is_bound_global(scope: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    here = scope.get_type() == "module" or symbol.is_declared_global()
    return here and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace())


def _is_read_global(scope: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    return symbol.is_referenced() and (scope.get_type() == "module" or symbol.is_global())


def _scopes(text: str) -> list[symtable.SymbolTable]:
    """The cell's own scope and those of all functions and classes in it."""
    try:
        found = [symtable.symtable(text, "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # running it says what is wrong with it
    for scope in found:
        found += scope.get_children()
    return found

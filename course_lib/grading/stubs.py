"""What a release holds in place of solutions."""

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
WRITTEN_STUB = "YOUR ANSWER HERE"


def clear_solution(source: str, *, stub: str = STUB) -> str:
    """The cell as it is released: each region from BEGIN SOLUTION to END SOLUTION replaced by the indented stub.

    As nbgrader does it: without such a region the whole cell becomes the stub. Raises ValueError for a region that
    begins twice or does not end.
    """
    released, inside, cleared = [], False, False
    for line in source.split("\n"):
        if "BEGIN SOLUTION" in line:
            if inside:
                raise ValueError("a second BEGIN SOLUTION stands before the END SOLUTION of the first")
            inside = cleared = True
            indent = line[: len(line) - len(line.lstrip())]
            released += [indent + part for part in stub.split("\n")]
        elif "END SOLUTION" in line:
            inside = False
        elif not inside:
            released.append(line)
    if inside:
        raise ValueError("a BEGIN SOLUTION has no END SOLUTION")
    return "\n".join(released) if cleared else stub

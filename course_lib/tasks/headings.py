"""Markdown cut at its headings, each line with its number, so that a slip can be told with its place."""

Lines = list[tuple[int, str]]


def lines_of(source: bytes, file: str) -> Lines:
    """The lines of a Markdown file, from 1 on.

    Raises ValueError with file and line if it is not UTF-8, or if a code fence is not closed before the next one.
    """
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as problem:
        number = source[: problem.start].count(b"\n") + 1
        raise ValueError(f"{file}:{number}: this line is not UTF-8; save the file as UTF-8") from problem
    lines, opened = [*enumerate(text.splitlines(), start=1)], 0
    for number, line in lines:
        if line.startswith("```"):
            if opened and line.strip("` "):  # a language behind it: this one opens, too
                break
            opened = 0 if opened else number
    if opened:
        raise ValueError(f"{file}:{opened}: the code fence that begins here is not closed")
    return lines


def split_at(lines: Lines, mark: str) -> list[tuple[str, int, Lines]]:
    """What stands before the first heading with this mark, and then each heading, its line and what it is above."""
    found: list[tuple[str, int, Lines]] = [("", 0, [])]
    fenced = False
    for number, line in lines:
        fenced ^= line.startswith("```")
        if line.startswith(mark) and not fenced:
            found.append((line.removeprefix(mark).strip(), number, []))
        elif line.strip() or found[-1][2]:
            found[-1][2].append((number, line))
    return found


def entries_of(lines: Lines, mark: str, file: str, *, once: bool = True) -> list[tuple[str, int, Lines]]:
    """Each heading with this mark, its line and what it is above.

    Raises ValueError with file and line for text above the first, and, with `once`, for a heading that comes twice.
    """
    (_, _, before), *entries = split_at(lines, mark)
    if before:
        raise ValueError(f"{file}:{before[0][0]}: this text is above the first heading, `{mark}name`")
    names: set[str] = set()
    for name, number, _ in entries:
        if once and name in names:
            raise ValueError(f"{file}:{number}: {name!r} comes twice")
        names.add(name)
    return entries


def text_of(lines: Lines) -> str:
    """The lines as one text."""
    return "\n".join(line for _, line in lines).strip()

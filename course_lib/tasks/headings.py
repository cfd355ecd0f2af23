"""Markdown cut at its headings, each line with its number, so that a slip can be told with its place."""

Lines = list[tuple[int, str]]


def split_at(lines: Lines | str, mark: str) -> list[tuple[str, int, Lines]]:
    """What stands before the first heading with this mark, and then each heading, its line and what it is above."""
    found: list[tuple[str, int, Lines]] = [("", 0, [])]
    fenced = False
    for number, line in enumerate(lines.splitlines(), start=1) if isinstance(lines, str) else lines:
        fenced ^= line.startswith("```")
        if line.startswith(mark) and not fenced:
            found.append((line.removeprefix(mark).strip(), number, []))
        elif line.strip() or found[-1][2]:
            found[-1][2].append((number, line))
    return found


def text_of(lines: Lines) -> str:
    """The lines as one text."""
    return "\n".join(line for _, line in lines).strip()

"""Receipts: what a student keeps of a submission."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.folders import read_small

RECEIPT = ".receipt.json"
RECEIPT_BYTES = 100_000
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What was handed in, by whom and when; `sha256` and `bytes` are those of the notebook file."""

    schema: int
    assignment: str
    student: str
    submitted: str  # with the time zone
    file: str
    sha256: str
    bytes: int
    exchange: str | None  # where it was put; None: the file itself is to be handed in


def receipt_path(file: Path) -> Path:
    """Where the receipt of a submitted file lies."""
    return file.with_name(file.stem + RECEIPT)


def read_receipt(path: Path) -> Receipt:
    """The receipt in a file. Raises CannotStart if it holds none."""
    content = read_small(Path(path), RECEIPT_BYTES)
    try:
        receipt = Receipt(**json.loads(content or b""))
        kinds = {field: type(value) for field, value in asdict(receipt).items() if field != "exchange"}
        if kinds != {field: Receipt.__annotations__[field] for field in kinds} or receipt.schema != SCHEMA:
            raise ValueError("other fields")
        return replace(receipt, file=Path(receipt.file).name)
    except (ValueError, TypeError, RecursionError) as error:
        raise CannotStart(
            f"{path} is no receipt: `course assign submit` writes one, NAME{RECEIPT}, into submissions/ beside your "
            "notebook."
        ) from error

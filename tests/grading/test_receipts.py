"""A receipt is read only if it is one, and never leads to another folder."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.receipts import RECEIPT_BYTES, Receipt, read_receipt, receipt_path

RECEIPT = Receipt(
    schema=1,
    assignment="05",
    student="ada",
    submitted="2026-03-01 12:00:00 UTC",
    file="ada_05.ipynb",
    sha256="0" * 64,
    bytes=7,
    exchange=None,
)


@pytest.fixture
def read(tmp_path):
    def write_and_read(content):
        path = tmp_path / "a.receipt.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_receipt(path)

    return write_and_read


def test_a_receipt_lies_beside_its_file_under_the_same_name():
    assert receipt_path(Path("submissions/ada_05.ipynb")) == Path("submissions/ada_05.receipt.json")


def test_what_was_written_is_read(read):
    assert read(asdict(RECEIPT)) == RECEIPT
    assert read(asdict(RECEIPT) | {"exchange": "/exchange/x"}).exchange == "/exchange/x"


def test_its_file_is_looked_for_beside_it_alone(read):
    assert read(asdict(RECEIPT) | {"file": "../../secret.ipynb"}).file == "secret.ipynb"


@pytest.mark.parametrize(
    "change", [{"schema": 2}, {"schema": "1"}, {"student": 7}, {"bytes": "7"}, {"sha256": None}, {"more": 1}], ids=str
)
def test_other_fields_are_no_receipt(read, change):
    with pytest.raises(CannotStart, match="is no receipt"):
        read(asdict(RECEIPT) | change)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 90_000, b" " * (RECEIPT_BYTES + 1)], ids=lambda content: len(content)
)
def test_what_is_no_json_of_ours_is_no_receipt(read, content):
    with pytest.raises(CannotStart, match="is no receipt"):
        read(content)

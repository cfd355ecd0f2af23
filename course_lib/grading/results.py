"""`course assign results`: a student takes home the feedback in the exchange. Works without nbgrader."""

import hashlib
from pathlib import Path

from course_lib.data.place import CannotStart
from course_lib.grading.exchange import SECRET, SECRET_BYTES, Exchange
from course_lib.grading.folders import FILE_BYTES, read_small, write_whole
from course_lib.grading.handout import student_places
from course_lib.grading.receipts import RECEIPT, Receipt, read_receipt
from course_lib.grading.student import SUBMISSIONS, own_copy
from course_lib.grading.wording import counted

FEEDBACK = "feedback"


def results(name: str, *, notebook: Path | None = None, folder: Path | None = None) -> int:
    """Copies the feedback on what the student submitted to feedback/ beside the notebook; returns 1 if there is none.

    Raises CannotStart if there is no exchange, or nothing was handed in through one.
    """
    _, exchange = student_places(folder)
    if exchange is None:
        raise CannotStart("There is no exchange here: your instructor sends the feedback in another way.")
    copy, files = own_copy(name, notebook, folder)
    receipts = [read_receipt(path) for path in sorted((copy.parent / SUBMISSIONS).glob(f"*{RECEIPT}"))]
    handed = [receipt for receipt in receipts if receipt.exchange is not None and receipt.assignment == name]
    if not handed:
        raise CannotStart(f"Nothing was submitted from {copy.parent} yet. Type: course assign submit {name}")
    pages = {receipt: feedback_page(exchange, receipt, files.notebook) for receipt in handed}
    found = {receipt: page for receipt, page in pages.items() if page is not None}
    if not found:
        print(f"There is no feedback yet on your {counted(len(handed), 'submission')} of assignment {name}.")
        return 1
    for receipt, page in found.items():
        place = copy.parent / FEEDBACK / Path(receipt.file).with_suffix(".html").name
        write_whole(place, page)
        print(f"Feedback on what you submitted at {receipt.submitted}: {place}")
    print("Open it in a browser.")
    return 0


def feedback_page(exchange: Exchange, receipt: Receipt, notebook: str) -> bytes | None:
    """The page that nbgrader's release_feedback wrote for this submission; None where there is none.

    Its name comes from a secret that only the student and the instructor can read.
    """
    secret = read_small(Path(receipt.exchange) / SECRET, SECRET_BYTES)
    if secret is None:
        return None
    page = hashlib.md5(secret + notebook.encode(), usedforsecurity=False).hexdigest()
    return read_small(exchange.root / exchange.course / FEEDBACK / f"{page}.html", FILE_BYTES)

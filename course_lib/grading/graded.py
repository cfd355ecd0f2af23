"""The graded notebook: the release's cells, the student's answers in their places, the judge's words under the checks.

Nothing else of the submission gets in: no output, no metadata, no further cell.
"""

import json
from collections.abc import Mapping
from typing import Any

from course_lib.grading.spec import CHECK_PREFIX
from course_lib.grading.wording import points

NO_ANSWER = "No answer."


def graded_notebook(release: bytes, answers: Mapping[str, str], verdict: Mapping[str, Any]) -> bytes:
    """The notebook for formgrader and feedback: `release` with the answers and what the verdict says on each task.

    nbgrader finds the points of a check cell in its last output, as it does after running a notebook. Raises
    ValueError if the release is not a notebook.
    """
    notebook = json.loads(release)
    for cell in notebook["cells"]:
        facts = cell.get("metadata", {}).get("nbgrader", {})
        grade_id = facts.get("grade_id", "")
        if facts.get("solution"):
            cell["source"] = answers.get(grade_id, cell["source"])
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            if facts.get("grade") and not facts.get("solution"):
                cell["outputs"] = _outputs(verdict, grade_id)
    notebook["metadata"]["course_lib"] = {key: verdict[key] for key in ("submission", "spec", "sandbox", "status")}
    text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    return text.encode("utf-8", errors="replace")  # half a surrogate pair, which JSON can name, cannot be stored


def task_in_words(task: Mapping[str, Any]) -> str:
    """What the judge found on a task, for the student: each check, and what to do about those that failed."""
    total = f"{points(task['points'])} of {points(task['possible'])} points"
    if not task["answered"]:
        return f"{NO_ANSWER} {total}."
    return "\n".join([f"{total}.", *(_check_in_words(check) for check in task["checks"])])


def _check_in_words(check: Mapping[str, Any]) -> str:
    line = f"[{'passed' if check['passed'] else 'failed'}] {check['name']} ({points(check['possible'])})"
    found = [" ".join(filter(None, (finding["message"], finding.get("hint", "")))) for finding in check["findings"]]
    return "\n".join([line, *(f"    {text}" for text in dict.fromkeys(found))])


def _outputs(verdict: Mapping[str, Any], grade_id: str) -> list[dict[str, Any]]:
    task = verdict["tasks"].get(grade_id.removeprefix(CHECK_PREFIX))
    if task is None:
        return [_stream("The judge knows no such task: 0 points.\n"), _result(0.0)]
    notes = [f"Needs attention: {note}" for note in verdict["notes"]] if verdict["status"] == "needs attention" else []
    if verdict["sandbox"] != "bubblewrap":
        notes.append(f"Judged without a sandbox ({verdict['sandbox']}).")
    return [_stream("\n".join([task_in_words(task), *notes]) + "\n"), _result(float(task["points"]))]


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _result(number: float) -> dict[str, Any]:
    return {
        "output_type": "execute_result",
        "data": {"text/plain": repr(number)},
        "execution_count": None,
        "metadata": {},
    }

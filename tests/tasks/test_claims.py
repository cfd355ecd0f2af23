import json

import numpy as np
import pytest
import torch

from course_lib.tasks.claims import ClaimError, above, below, claim, record


def test_a_claim_that_holds_prints_its_sentence_and_no_number(capsys):
    claim(torch.tensor(96.2) > 95, "BLEU is above 95", measured="BLEU 96.2")
    assert capsys.readouterr().out == "✓ BLEU is above 95\n"


FAILING = pytest.mark.parametrize(
    "holds", [False, np.float64("nan") > 3, torch.tensor(False), above(torch.tensor(3), 3)]
)


@FAILING
def test_a_claim_that_fails_where_the_course_is_tested_names_expectation_measurement_and_reasons(holds):
    with pytest.raises(ClaimError) as failure:
        claim(holds, "BLEU is above 95", measured="BLEU 12.0")
    message = str(failure.value)
    assert "Expected: BLEU is above 95" in message and "Measured: BLEU 12.0" in message
    assert "restart the kernel" in message and "course doctor" in message


@FAILING
def test_a_claim_that_fails_on_a_learners_machine_is_shown_and_stops_nothing(holds, monkeypatch, capsys):
    monkeypatch.delenv("COURSE_STRICT")
    claim(holds, "BLEU is above 95", measured="BLEU 12.0")
    printed = capsys.readouterr().out
    assert printed.startswith("✗ On this machine this result came out differently from the shipped one.\n")
    assert "Expected: BLEU is above 95" in printed and "Measured: BLEU 12.0" in printed


def test_a_condition_knows_what_was_measured_and_by_how_much_it_holds(monkeypatch, capsys):
    assert above(0.62, 0.5) and below(torch.tensor(0.25), 0.5) and not above(1.0, 1.0) and not below(1.0, 1.0)
    assert not above(float("nan"), 0) and not below(float("nan"), 0)
    assert above(0.75, 0.5).margin == below(0.25, 0.5).margin == 0.25 and above(0.25, 0.5).margin == -0.25
    monkeypatch.delenv("COURSE_STRICT")
    claim(above(0.125, 0.5), "it rises by over a half")
    assert "Measured: 0.125 (more than 0.5 was expected)" in capsys.readouterr().out


def test_every_claim_is_recorded_where_an_author_asks_for_it(tmp_path, monkeypatch):
    path = tmp_path / "claims.jsonl"
    monkeypatch.setenv("COURSE_CLAIMS", str(path))
    claim(above(0.625, 0.5), "it rises")
    record("both", [below(np.float32(3), 2), torch.tensor(True)])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"claim": "it rises", "holds": True, "measured": [[0.625, 0.5, True]]},
        {"claim": "both", "holds": False, "measured": [[3.0, 2.0, False]]},
    ]


def test_a_failed_claim_shows_a_learner_its_message_and_no_traceback():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    result = shell.run_cell("from course_lib.tasks.claims import claim")
    assert result.success
    shown = []
    shell._showtraceback = lambda kind, error, lines: shown.extend(lines)
    shell.run_cell("claim(False, 'heads are equal')")
    text = "\n".join(shown)
    assert "Expected: heads are equal" in text and "Traceback" not in text and "claims.py" not in text


@pytest.mark.parametrize(
    ("holds", "sentence", "said"),
    [
        (np.array([True, False]), "all are equal", r"one yes or no.*\(2,\)"),
        (torch.tensor([True, True]), "all are equal", r"one yes or no.*\(2,\)"),
        (True, " ", "needs a sentence"),
    ],
)
def test_a_claim_on_many_values_or_without_a_sentence_is_refused(holds, sentence, said):
    with pytest.raises(ValueError, match=said):
        claim(holds, sentence)

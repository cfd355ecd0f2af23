import numpy as np
import pytest
import torch

from course_lib.tasks.claims import ClaimError, claim


def test_a_claim_that_holds_prints_its_sentence_and_no_number(capsys):
    claim(torch.tensor(96.2) > 95, "BLEU is above 95", measured="BLEU 96.2")
    assert capsys.readouterr().out == "✓ BLEU is above 95\n"


@pytest.mark.parametrize("holds", [False, np.float64("nan") > 3, torch.tensor(False)])
def test_a_claim_that_fails_names_expectation_measurement_and_reasons(holds):
    with pytest.raises(ClaimError) as failure:
        claim(holds, "BLEU is above 95", measured="BLEU 12.0")
    message = str(failure.value)
    assert "Expected: BLEU is above 95" in message and "Measured: BLEU 12.0" in message
    assert "restart the kernel" in message and "course doctor" in message


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


@pytest.mark.parametrize("holds", [np.array([True, False]), torch.tensor([True, True])])
def test_a_claim_on_many_values_is_refused(holds):
    with pytest.raises(ValueError, match=r"one yes or no.*\(2,\)"):
        claim(holds, "all are equal")


def test_a_claim_without_a_sentence_is_refused():
    with pytest.raises(ValueError, match="needs a sentence"):
        claim(True, " ")

"""docs/data.md and the cards beside it say what the trainings on real sets are, and which of them were run."""

import json
import re
from pathlib import Path

import pytest

from course_lib.data.checkpoints import readable_card
from course_lib.data.files import data_path
from course_lib.lessons.recipes import real_recipes

DOCS = Path(__file__).parents[3] / "docs"
CARDS = sorted((DOCS / "cards").glob("*.md"))
PAGE = (DOCS / "data.md").read_text(encoding="utf-8")


def test_each_training_was_run_and_has_a_card_or_is_said_not_to_be_run():
    not_run = set(re.findall("`(.+?)`", re.search(r"\*\*Not run yet\*\*.*?: (.*?)\.", PAGE)[1]))
    assert not_run == real_recipes().keys() - {card.stem for card in CARDS}


def test_the_readable_cards_are_those_of_the_facts():
    facts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in data_path("cards").glob("*.json")}
    assert {card.stem: card.read_text(encoding="utf-8") for card in CARDS} == {
        name: readable_card(card) for name, card in facts.items()
    }


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_a_card_has_the_settings_of_its_training_and_the_page_its_score(card):
    text, facts = card.read_text(encoding="utf-8"), real_recipes()[card.stem].facts()
    assert text.startswith(f"# {facts['title']}\n") and facts["data"] in text and facts["licence"] in text
    assert "\n".join(f"- {name}: {value}" for name, value in facts["settings"].items()) in text
    score = re.search(rf"\| {facts['chosen_by']} \| \S+ / (\S+) \|", text)[1]
    row = re.search(rf"\| \[.*?\]\(cards/{card.stem}\.md\) \|.*", PAGE)[0]
    assert score in row

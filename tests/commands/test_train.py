import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from course_lib import cli
from course_lib.commands import train as tool
from course_lib.commands.lessons import CannotStart
from course_lib.data import checkpoints
from course_lib.data.checkpoints import load_trained, readable_card
from course_lib.lessons.recipes import all_recipes, real_recipes
from course_lib.training import progress, scale
from course_lib.training.scale import Setup
from tests.commands import training_job
from tests.commands.training_job import TINY, TinySettings

SCRIPT = Path(training_job.__file__)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A recipe of the name "tiny" and a course home of its own."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    short = replace(TINY, variants={"": TinySettings(steps=12)})
    monkeypatch.setitem(all_recipes(), "tiny", short)
    return short


def start(home, out, *arguments):
    environment = os.environ | {"COURSE_HOME": str(home), "PYTHONPATH": str(SCRIPT.parents[2])}
    return subprocess.Popen([sys.executable, str(SCRIPT), str(out), *arguments], env=environment)


def test_a_training_killed_at_any_moment_ends_bit_identical(tmp_path):
    assert start(tmp_path / "whole", tmp_path / "a").wait(600) == 0
    run = tmp_path / "broken" / "training" / "tiny" / "seed-0" / "run" / "last.pt"
    done = []
    for _ in range(2):
        process = start(tmp_path / "broken", tmp_path / "b", "0", "40")  # it cannot end before it is killed
        before = run.stat().st_mtime_ns if run.exists() else 0
        while process.poll() is None and not (run.exists() and run.stat().st_mtime_ns > before):
            time.sleep(0.005)
        process.kill()
        process.wait()
        done.append(torch.load(run, weights_only=True)["done"] if run.exists() else 0)
    assert 0 < done[0] <= done[1] < TinySettings().steps and all(steps % training_job.INTERVAL == 0 for steps in done)
    assert start(tmp_path / "broken", tmp_path / "b").wait(600) == 0
    whole, broken = load_file(tmp_path / "a" / "model.safetensors"), load_file(tmp_path / "b" / "model.safetensors")
    assert whole.keys() == broken.keys() and all(torch.equal(whole[name], broken[name]) for name in whole)


def test_the_seed_that_is_best_on_validation_is_shipped_with_all_scores(tiny):
    assert tool.train("tiny", seeds=[0, 1, 2]) == 0
    trained = load_trained("tiny")
    card = trained.card
    assert card["seed"] == 1 and card["validation"] == {"error": 0.25} and card["test"] == {"error": 0.9}
    assert [run["test"]["error"] for run in card["seeds"]] == [1.0, 0.9, 0.8]
    assert trained.extra == {"recipe": {"steps": 12, "seed": 1}, "letters": "abcde"} and not trained.model.training
    assert card["parameters"] == sum(p.numel() for p in trained.model.parameters()) and card["steps"] == 12
    folder = checkpoints.checkpoint_folder("tiny")
    assert (folder / "card.md").read_text(encoding="utf-8") == readable_card(card)
    for fact in ("0.25 / 0.9", "Random letters.", "- steps: 12", "seeds 0,1,2", card["sha256"], "MIT"):
        assert fact in readable_card(card)
    expected, shipped = tiny.train(TinySettings(steps=12, seed=1)).model.state_dict(), trained.model.state_dict()
    assert all(torch.equal(shipped[name], expected[name]) for name in expected)


def test_of_a_comparison_only_the_card_is_kept(tiny, monkeypatch):
    tool.train("tiny", seeds=[0])  # weights of an earlier kind go away, too
    monkeypatch.setitem(all_recipes(), "tiny", replace(tiny, weights=False))
    assert tool.train("tiny", seeds=[0, 1]) == 0
    folder, trained = checkpoints.checkpoint_folder("tiny"), load_trained("tiny")
    assert {path.name for path in folder.iterdir()} == {"card.json", "card.md"}
    assert trained.model is None and trained.extra == {} and trained.card["test"] == {"error": 0.9}
    assert "the weights are not kept" in (folder / "card.md").read_text(encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"of nobody")
    with pytest.raises(ValueError, match=r"is damaged or not the file of its card"):
        load_trained("tiny")


def test_a_finished_seed_is_not_trained_again(tiny, monkeypatch):
    tool.train("tiny", seeds=[0])
    calls = []

    def counted(settings, *, checkpoint):
        calls.append(settings.seed)
        return tiny.train(settings, checkpoint=checkpoint)

    monkeypatch.setitem(all_recipes(), "tiny", replace(tiny, train=counted))
    tool.train("tiny", seeds=[0, 1])
    assert calls == [1]
    tool.train("tiny", seeds=[0], fresh=True)
    assert calls == [1, 0]


def test_other_settings_do_not_go_on_with_an_old_training(tiny, monkeypatch):
    tool.train("tiny", seeds=[0])
    monkeypatch.setitem(all_recipes(), "tiny", replace(tiny, settings={"steps": 12, "dim": 4}))
    with pytest.raises(CannotStart, match="dim was None, is 4.*--fresh"):
        tool.train("tiny", seeds=[0])


def test_a_missing_checkpoint_says_how_to_make_it_and_a_changed_file_is_not_loaded(tiny):
    with pytest.raises(FileNotFoundError, match="course train tiny"):
        load_trained("tiny")
    tool.train("tiny", seeds=[0])
    path = checkpoints.checkpoint_folder("tiny") / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or not the file of its card.*course train tiny"):
        load_trained("tiny")


@pytest.mark.parametrize("seeds", ["", "a", "0,", "-1", "1.5"])
def test_seeds_that_are_none_are_refused(seeds):
    with pytest.raises(CannotStart, match="whole numbers"):
        tool.parse_seeds(seeds)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tiny", {"seeds": [0, 0]}, "once"),
        ("transltor", {}, "no training 'transltor'. Did you mean translator"),
        ("tiny", {"data": "mnist"}, "no training 'tiny' on the data 'mnist'.*resnet --data mnist.*tiny --data bytes"),
    ],
)
def test_what_cannot_be_trained_is_told_what_can(tiny_on_bytes, name, options, words):
    with pytest.raises(CannotStart, match=words):
        tool.train(name, **options)


def test_every_recipe_of_the_list_can_be_found(capsys):
    assert tool.list_recipes() == 0
    printed = capsys.readouterr().out
    for name, recipe in all_recipes().items():
        assert f"  {name} " in printed and recipe.title in printed
        longest = {"dictionary": 420, "diffusion_icons": 90}.get(name, 20)  # those that gain for hours
        assert 0 < recipe.minutes <= longest and json.dumps(recipe.facts())
    assert "  resnet --data fashion_mnist_part " in printed and "  translator --data multi30k " in printed


PAGES = [
    ROOT / "course_lib" / "cli.py",
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("notebooks/*.ipynb"),
]


def test_every_training_that_a_page_names_exists():
    asked = {
        name for page in PAGES for name in re.findall(r"\b(?:course|cli) train ([a-z]\w+)", page.read_text("utf-8"))
    }
    assert len(asked) > 20 and asked - all_recipes().keys() - real_recipes().keys() == set()


def test_notes_on_the_card_are_kept_and_shown_when_it_is_written_anew(tiny, capsys):
    tool.train("tiny", seeds=[0])
    card = checkpoints.checkpoint_folder("tiny") / "card.json"
    noted = json.loads(card.read_text(encoding="utf-8")) | {"notes": "It learns nothing."}
    card.write_text(json.dumps(noted), encoding="utf-8")
    capsys.readouterr()
    tool.train("tiny", seeds=[0, 1])
    assert "It learns nothing." in capsys.readouterr().out
    assert load_trained("tiny").card["notes"] == "It learns nothing."
    assert "It learns nothing." in card.with_name("card.md").read_text(encoding="utf-8")


def test_all_trainings_of_a_seed_share_one_display(tiny):
    titles, steps = [], []

    class Display(progress.Silent):
        def update(self, done, total, **details):
            steps.append(done)

    with progress.using(lambda title: titles.append(title) or Display(title)):
        tool.train("tiny", seeds=[2])
    assert titles == ["A tiny model, seed 2"] and steps == list(range(1, 13))


@pytest.fixture
def tiny_on_bytes(tiny, monkeypatch):
    """The same on a set of the name "bytes"."""
    monkeypatch.setitem(real_recipes(), "tiny_bytes", tiny)


def test_what_real_data_made_is_kept_out_of_the_courses_folder(tiny_on_bytes, tmp_path):
    assert tool.train("tiny", data="bytes") == 0
    assert (tmp_path / "home" / "checkpoints" / "tiny_bytes" / "card.md").is_file()
    assert not (tmp_path / "data" / "checkpoints").exists()
    trained = load_trained("tiny_bytes")
    assert trained.card["name"] == "tiny_bytes" and "course train tiny_bytes --seeds 0" in readable_card(trained.card)
    tool.train("tiny_bytes", fresh=True)  # the name of the card trains the same
    after, before = load_trained("tiny_bytes").model.state_dict(), trained.model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_a_set_that_cannot_be_had_stops_a_training_with_its_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.delenv("COURSE_DATA_MIRROR", raising=False)
    with pytest.raises(CannotStart, match="it is in no folder named by COURSE_DATA_MIRROR"):
        tool.train("vit", data="mnist_part")


def test_two_processes_of_torchrun_train_a_recipe_and_one_writes_and_reports(tmp_path):
    home, out = tmp_path / "home", tmp_path / "out"
    environment = os.environ | {"COURSE_HOME": str(home), "PYTHONPATH": str(SCRIPT.parents[2])}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    ended = subprocess.run([*command, str(out), "0,1"], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert [line[:7] for line in ended.stdout.splitlines() if "CPU seconds" in line] == ["seed 0:", "seed 1:"]
    assert json.loads((out / "card.json").read_text())["settings"] == {"steps": 120, "processes": 2}
    again = subprocess.run([sys.executable, str(SCRIPT), str(out)], env=environment, capture_output=True, text=True)
    assert "processes was 2, is None" in again.stderr


def test_what_changes_the_numbers_stands_on_the_card_and_is_kept_when_a_training_goes_on(tiny):
    tool.train("tiny", setup=Setup(accumulate=3))
    assert load_trained("tiny").card["settings"] == {"steps": 12, "accumulate": 3}
    with pytest.raises(CannotStart, match="accumulate was 3, is None.*--fresh"):
        tool.train("tiny")
    tool.train("tiny", setup=Setup(precision="bf16"), fresh=True)
    assert load_trained("tiny").card["settings"] == {"steps": 12, "precision": "bf16"}


def test_the_command_takes_where_and_how_to_compute(monkeypatch):
    calls = []
    monkeypatch.setattr(tool, "train", lambda name, **settings: calls.append(settings["setup"]) or 0)
    given = ["--device", "auto", "--precision", "fp16", "--compile", "--accumulate", "4"]
    for arguments in ([], given):
        assert CliRunner().invoke(cli.app, ["train", "tiny", *arguments]).exit_code == 0
    assert calls == [Setup(), Setup(device="auto", precision="fp16", compile=True, accumulate=4)]
    for name, words in (("device", scale.DEVICES), ("precision", scale.PRECISIONS)):
        for word in words:
            assert CliRunner().invoke(cli.app, ["train", "tiny", f"--{name}", word]).exit_code == 0
        assert CliRunner().invoke(cli.app, ["train", "tiny", f"--{name}", "other"]).exit_code == 2

"""A benchmark whose peers are not installed names the command that installs them, and that is enough to run it."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def python(program):
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)


PEERS = (  # in an order in which none of them is imported before it is missing
    ("language", "transformers", "bench"),
    ("vision", "transformers", "bench"),
    ("language", "tokenizers", "bench"),
    ("grading", "nbgrader", "instructor"),
)


def test_without_its_peers_it_says_what_to_install_and_starts_nothing():
    done = python(f"""
import contextlib, io, json, sys
from course_lib import cli
for name, missing, _ in {PEERS!r}:
    sys.modules[missing], sys.argv, said, ended = None, ["course", "bench", name], io.StringIO(), None
    with contextlib.redirect_stderr(said):
        try:
            cli.main()
        except SystemExit as end:
            ended = end.code
    del sys.modules[missing]
    print(json.dumps([ended, said.getvalue()]))
""")
    assert done.returncode == 0, done.stderr
    for (name, missing, extra), line in zip(PEERS, done.stdout.splitlines(), strict=True):
        ended, said = json.loads(line)
        assert ended == 1 and said.strip().startswith(f"This needs {missing}, which is not installed here.")
        assert f"python3 course.py bench {name} " in said and f"pip install --editable '.[{extra}]'" in said


def installed_with(*extras):
    """The distributions that pip brings for the core and these extras."""
    found = set()
    waiting = [Requirement(line) for line in PROJECT["dependencies"]]
    waiting += [Requirement(line) for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    while waiting:
        requirement = waiting.pop()
        name, marker = canonicalize_name(requirement.name), requirement.marker
        if name in found or (marker and not any(marker.evaluate({"extra": e}) for e in ["", *requirement.extras])):
            continue
        found.add(name)
        try:
            waiting += [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue
    return found


def test_with_the_extra_that_it_names_and_no_other_package_it_runs():
    have = installed_with("bench")
    foreign = {
        module
        for module, names in packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & (have | {"course-lib"})
    }
    assert {"nbgrader", "sklearn", "pytest"} <= foreign and not {"transformers", "tokenizers"} & foreign
    program = f"""
import sys
sys.modules |= dict.fromkeys({sorted(foreign)!r})
from dataclasses import replace
from course_lib.bench import generation, language, official, tokenizers, vision
official.need_peers()
sizes = dict(n_embd=8, n_layer=1, n_head=2, vocab_size=20, n_positions=16)
gpt = next(each for each in language.CONTESTS if each.name.startswith("GPT"))
language.runs(replace(gpt, official=lambda: language.gpt2(**sizes), B=2, T=5, vocab_size=20))
setting = replace(generation.SETTINGS[0], B=1, T=4, new_tokens=3)
generation.runs(setting, *generation.pair(sizes))
resnet = dict(layer_type="basic", depths=[1], hidden_sizes=[8], embedding_size=8, num_channels=3)
small = next(each for each in vision.CONTESTS if each.kind == "ResNet")
vision.runs(replace(small, settings=resnet, B=1, size=16, channels=3), backward=True)
tokenizers.VOCAB_SIZE = 300
print(len(list(tokenizers.measure(size=5_000, seconds=0))), "races")
"""
    done = python(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4 races\n"

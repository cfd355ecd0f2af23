"""Which packages a command brings along besides the course's own."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ("lab", []),
        ("test -k attention", ["dev"]),
        ("assign", []),
        ("assign --help", []),
        ("assign fetch 05", []),
        ("assign validate 05", []),
        ("assign submit 05", []),
        ("assign verify receipt.json", []),
        ("assign list", []),
        ("assign release 05", ["instructor"]),
        ("assign prove 05", ["instructor"]),
        ("grade 05", ["instructor"]),
        ("class init autumn --zip", []),
        ("lecture 05", ["lectures"]),
        ("data list", []),
        ("data fetch mnist", ["data"]),
        ("train resnet", []),
        ("train resnet --data mnist", ["data"]),
        ("train resnet --data=mnist", ["data"]),
        ("slides 05", []),
        ("site", ["site"]),
        ("bench", []),
        ("bench --help", []),
        ("bench attention", []),
        ("bench grading", ["instructor"]),
        ("bench language", ["bench"]),
        ("bench vision", ["bench"]),
        ("train vit --seeds 0,1", []),
        ("train vit --accumulate 4", ["scale"]),
        ("train vit --device=cuda --compile", ["scale"]),
    ],
)
def test_only_those_who_grade_install_what_grading_needs(module, arguments, extras):
    assert module.extras(arguments.split()) == extras

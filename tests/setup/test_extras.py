"""Which packages a command brings along besides the course's own."""

import pytest

COMMANDS = {  # by what they bring along, with commas between them
    "": "lab, assign, assign --help, assign fetch 05, assign validate 05, assign submit 05, assign list, "
    "assign verify receipt.json, class init autumn --zip, data list, train resnet, train vit --seeds 0, slides 05, "
    "bench, bench --help, bench attention",
    "dev": "test -k attention",
    "instructor": "assign release 05, assign prove 05, grade 05, bench grading",
    "lectures": "lecture 05",
    "data": "data fetch mnist, train resnet --data mnist, train resnet --data=mnist",
    "site": "site",
    "bench": "bench language, bench vision",
    "scale": "train vit --accumulate 4, train vit --device=cuda --compile",
}


@pytest.mark.parametrize("extra", COMMANDS)
def test_only_those_who_grade_install_what_grading_needs(module, extra):
    for command in COMMANDS[extra].split(", "):
        assert module.extras(command.split()) == [extra] * bool(extra), command

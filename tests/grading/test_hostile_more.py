"""More that a hostile answer can try, against real boxes: each of these was once possible."""

import pytest

pytestmark = pytest.mark.needs("sandbox")


def run(box, source, *args, seconds=10):
    """What `f`, which the source defines, returns in the box."""
    assert box.load(source) is None
    return box.call("f", *args, seconds=seconds)


# Between two boxes ----------------------------------------------------------------------------------------------

LEFT = {  # in the box: what is looked at, and what is left there for the next
    "in the flags of standard input": (
        "fcntl.fcntl(0, fcntl.F_GETFL) & os.O_APPEND",
        "fcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND)",
    ),
    "in the signal of standard input": ("fcntl.fcntl(0, fcntl.F_GETSIG)", "fcntl.fcntl(0, fcntl.F_SETSIG, 37)"),
    "by a lock on standard input": ("is_locked('/dev/null')", "fcntl.flock(0, fcntl.LOCK_EX)"),
    "in the time of /dev/null": ("os.stat('/dev/null').st_mtime_ns", "os.utime('/dev/null')"),
    "in the time of /dev/random": ("os.stat('/dev/random').st_mtime_ns", "os.utime('/dev/random')"),
    "in the time of /dev/urandom": ("os.stat('/dev/urandom').st_mtime_ns", "os.utime('/dev/urandom')"),
}
LOOK = """
import fcntl, os
def is_locked(path):
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 1
    return 0
def f():
    seen = {look}
    try:
        {leave}
    except OSError:
        pass
    return seen
"""


@pytest.mark.parametrize("place", LEFT)
def test_the_next_box_finds_nothing_that_was_left(zygote, place):
    seen = []
    for _ in range(2):
        with zygote.box() as box:
            seen.append(run(box, LOOK.format(look=LEFT[place][0], leave=LEFT[place][1])))
    assert seen[0] == seen[1]


def test_devices_still_work(zygote):
    source = """
def f():
    with open("/dev/null", "w") as nothing, open("/dev/urandom", "rb") as chance:
        return nothing.write("x"), len(chance.read(8)), open(0).read()
"""
    with zygote.box() as box:
        assert run(box, source) == (1, 8, "")

"""Names that stand in place of students' own, the same each time, and known to nobody without the instructor's key."""

import hashlib
import hmac
import json
from collections.abc import Iterable

KINDS = (
    "amber ancient azure brave bright calm careful clear clever coastal cosy crimson curious early eager evening "
    "fearless gentle golden graceful grey happy hidden honest humble indigo jolly keen kind lively lucky mellow "
    "merry mighty misty modest nimble noble northern olive patient placid polite proud quick quiet rapid russet "
    "scarlet serene silver simple sincere steady sunny swift tender tidy tranquil upright velvet violet warm witty"
).split()
ANIMALS = (
    "alpaca antelope badger beaver bison bluebird buzzard camel caribou cheetah chickadee cormorant crane cricket "
    "curlew dolphin dormouse dragonfly dunlin eagle egret falcon ferret finch flamingo gazelle gecko goldfinch grebe "
    "hare heron hoopoe ibex ibis jackdaw kestrel kingfisher lapwing lark lemur linnet lizard lynx magpie marmot "
    "marten mole newt nuthatch ocelot oriole osprey otter owl panda pelican penguin plover puffin quail raven robin "
    "salmon seal"
).split()


def pseudonyms(key: bytes, purpose: str, students: Iterable[str]) -> dict[str, str]:
    """Each student's name for one purpose, such as "quiet-otter-0412"; names for two purposes have nothing in common.

    HMAC-SHA256 under the instructor's key. Two students with one name are so rare (one in 80 classes of 1,000) that
    the second in order simply gets the next number.
    """
    given: dict[str, str] = {}
    for student in sorted(students):
        message = json.dumps([purpose, student]).encode("ascii")
        number = int.from_bytes(hmac.digest(key, message, hashlib.sha256)[:8], "big")
        while (name := _name(number)) in given.values():
            number += 1
        given[student] = name
    return given


def _name(number: int) -> str:
    number, digits = divmod(number, 10_000)
    number, animal = divmod(number, len(ANIMALS))
    return f"{KINDS[number % len(KINDS)]}-{ANIMALS[animal]}-{digits:04}"

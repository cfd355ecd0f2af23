"""Replies that the worker never gave: raw bytes in the pipe to the judge, at the wrong time, of the wrong kind."""

import pytest
import torch

from course_lib.grading.subject import Subject, Talk
from course_lib.tasks.findings import CHANGES_INPUT, Fault
from tests.grading.attacks.course import HONEST, POINTS, SETUP, WRONG, points

pytestmark = pytest.mark.needs("sandbox")

# The pipe to the judge is the one that can be written to and is no standard output.
TOOLS = """
import fcntl, json, stat, struct, time
def pipes():
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & 3 == os.O_WRONLY:
                yield number
        except OSError:
            pass
def forge(data):
    os.write(1, b"tried\\n")
    for pipe in pipes():
        while data:
            data = data[os.write(pipe, data):]
def frame(header, body=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(header), len(body)) + header + body
def reply(value, body=b"", **more):
    pairs = [["value", value], *map(list, more.items())]
    return frame({"dict": pairs}, body)
def zeros(x):
    return {"tensor": "float32", "shape": list(x.shape)}, bytes(4 * x.numel())
"""

# Bytes that are no reply, or one that means nothing. `x` is the input of the call.
FORGED = {
    "nothing but an end": "b''",
    "random bytes": "os.urandom(1000)",
    "zeros": "bytes(1000)",
    "a header of 4 GB": "struct.pack('<II', 2**32 - 1, 0) + b'x' * 1000",
    "a body of 4 GB": "struct.pack('<II', 4, 2**32 - 1) + b'null' + b'x' * 1000",
    "lengths below zero": "struct.pack('<ii', -1, -1) + b'x' * 1000",
    "an empty header": "frame(b'')",
    "half a frame": "reply(True)[:-3]",
    "half a length": "b'\\x05\\x00'",
    "a pickle": (
        "frame(b'\\x80\\x04\\x95\\x1d\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x8c\\x05posix\\x94"
        "\\x8c\\x06system\\x94\\x93\\x94.')"
    ),
    "JSON that is deep": "frame(b'[' * 100_000 + b']' * 100_000)",
    "JSON that is cut off": "frame(b'{\"dict\": [[')",
    "JSON with NaN": 'frame(b\'{"dict": [["value", NaN]]}\')',
    "JSON with a number of a million digits": "frame(b'1' * 200_000)",
    "JSON with a float beyond all": 'frame(b\'{"dict": [["value", 1e999]]}\')',
    "JSON with a key twice": 'frame(b\'{"dict": [], "dict": []}\')',
    "JSON in UTF-16": "frame('null'.encode('utf-16'))",
    "JSON with half a character": 'frame(b\'{"dict": [["value", "\\\\ud800"]]}\')',
    "no dictionary": "frame([1, 2, 3])",
    "null": "frame(None)",
    "an empty dictionary": "frame({'dict': []})",
    "points in place of a value": "frame({'dict': [['points', 100], ['passed', True], ['ok', True]]})",
    "points beside a value": "reply(*zeros(x), points=100, passed=True, score=1.0)",
    "True as value": "reply(True)",
    "a gigantic shape": "reply({'tensor': 'float32', 'shape': [2**60]})",
    "a shape that overflows": "reply({'tensor': 'float32', 'shape': [2**32, 2**32, 2**32]})",
    "a large shape without numbers": "reply({'tensor': 'float32', 'shape': [0, 2**27, 2**27]})",
    "a negative shape": "reply({'tensor': 'float32', 'shape': [-1, -5]})",
    "a shape of truth values": "reply({'tensor': 'float32', 'shape': [True]}, bytes(4))",
    "a shape of fractions": "reply({'tensor': 'float32', 'shape': [1.0]}, bytes(4))",
    "a shape that is a text": "reply({'tensor': 'float32', 'shape': '35'}, bytes(60))",
    "a hundred axes": "reply({'tensor': 'float32', 'shape': [1] * 100}, bytes(4))",
    "fewer bytes than the shape needs": "reply(zeros(x)[0], zeros(x)[1][:-4])",
    "more bytes than the shape needs": "reply(zeros(x)[0], zeros(x)[1] + bytes(4))",
    "numbers that are objects": "reply({'array': 'object', 'shape': [3, 5]}, bytes(120))",
    "numbers of an unknown type": "reply({'tensor': 'float1', 'shape': [3, 5]}, bytes(60))",
    "numbers of a type with a trick": "reply({'array': '(2,)f4', 'shape': [3, 5]}, bytes(60))",
    "truth values that are neither": "reply({'tensor': 'bool', 'shape': [15]}, b'\\x02' * 15)",
    "whole numbers for fractions": "reply({'tensor': 'int32', 'shape': [3, 5]}, bytes(60))",
    "signalling NaN": "reply({'tensor': 'float32', 'shape': [3, 5]}, b'\\x01\\x00\\x80\\x7f' * 15)",
    "a handle that does not exist": "reply({'handle': 10**6})",
    "a handle below zero": "reply({'handle': -1})",
    "an object of an invented type": "reply({'unknown': 'Tensor' * 10_000})",
    "a text longer than its bytes": "reply({'text': 10**6}, b'x')",
    "an error that is no text": "frame({'dict': [['error', {'tensor': 'float32', 'shape': [1]}]]}, bytes(4))",
    "an error with a novel in it": "frame({'dict': [['error', {'text': 3_000_000}]]}, b'hidden ' * 428571 + b'hid')",
    "an error and a value": "frame({'dict': [['error', 'ValueError'], ['value', True]]})",
    "changed inputs that are no dictionary": "reply(*zeros(x), changed=True)",
    "changed inputs that do not exist": "reply(*zeros(x), changed={'dict': [[99, None], [-1, None]]})",
    "changed inputs that are no tensors": "reply(*zeros(x), changed={'dict': [[0, 'x']]})",
    "changed inputs of another shape": (
        "reply(zeros(x)[0], zeros(x)[1] + bytes(8), changed={'dict': [[0, {'tensor': 'float64', 'shape': [1]}]]})"
    ),
    "a dictionary of many parts": "reply([0] * 50_000)",
    "a value nested in itself": "reply({'dict': [['value', {'dict': [['value', {'dict': []}]]}]]})",
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_reply_earns_nothing(course, kind):
    source = f"{TOOLS}\ndef softmax(x):\n    forge({FORGED[kind]})\n    os._exit(0)\n"
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}
    assert "tried" in verdict["tasks"]["softmax"]["printed"] or kind == "nothing but an end"
    assert "hidden" not in str(verdict["tasks"]["softmax"]["checks"])
    assert verdict["tasks"]["softmax"]["ended"] in (("protocol",) if "4 GB" in kind else ("protocol", "exit"))
    assert verdict["status"] == "graded"


@pytest.mark.parametrize("kind", ["points beside a value", "True as value", "random bytes", "an error and a value"])
def test_a_forged_reply_to_the_loading_of_a_cell_earns_nothing(course, kind):
    source = f"{TOOLS}\nx = torch.zeros(3, 5)\nforge({FORGED[kind]})\n{WRONG['affine']}"
    verdict = course.judge(course.submit("mallory", {"affine": source}))  # the last cell: the others run without it
    assert points(verdict) == POINTS | {"affine": 0}


# Replies that are well formed, at a time when nobody asked for them. `right` is the answer to the call at hand.
OUT_OF_STEP = {
    "answers twice": "forge(right(x)); return x.softmax(-1)",
    "answers ten times": "forge(right(x) * 10); return x.softmax(-1)",
    "answers, and never returns": "forge(right(x)); time.sleep(60)",
    "answers, and leaves": "forge(right(x)); os._exit(0)",
    "answers for the next call, too": (
        "forge(right(x) + reply({'tensor': 'float32', 'shape': [2, 7]}, bytes(56))); os._exit(0)"
    ),
    "answers without end": "\n    while True:\n        forge(right(x))",
    "answers from a child, and lives on": (
        "os.fork() or (forge(right(x)), os._exit(0)); os.wait(); return x.softmax(-1)"
    ),
}


@pytest.mark.parametrize("way", OUT_OF_STEP)
def test_an_answer_out_of_step_earns_at_most_what_it_answered(course, way):
    """The first check was answered rightly, which is no forgery; the second, with larger inputs, was not asked yet."""
    source = f"""{TOOLS}
def right(x):
    return reply({{"tensor": "float32", "shape": list(x.shape)}}, x.softmax(-1).numpy().tobytes())
def softmax(x):
    {OUT_OF_STEP[way]}
"""
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    kept = points(verdict)
    assert kept == POINTS | {"softmax": kept["softmax"]}
    assert kept["softmax"] <= 1


TRICKLE = {
    "one byte at a time": "[(forge(b'x'), time.sleep(0.01)) for _ in range(100_000)]",
    "a length, and then silence": "time.sleep(60)",
    "large pieces without end": "[forge(bytes(1 << 16)) for _ in range(1 << 30)]",
}


@pytest.mark.parametrize("way", TRICKLE)
def test_a_reply_without_end_is_cut_off(course, way):
    source = f"""{TOOLS}
def softmax(x):
    forge(struct.pack("<II", 4, 4_000_000) + b"null")
    {TRICKLE[way]}
"""
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}
    assert verdict["seconds"] < 8


def test_requests_read_by_the_student_tell_no_more_than_the_call_did(course):
    """The pipe from the judge holds one request at a time: inputs of later checks are not there to be read."""
    source = f"""{TOOLS}
import select
def softmax(x):
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & 3 == os.O_RDONLY:
                ready = select.select([number], [], [], 0.3)[0]
                os.write(1, b"SEEN" if ready else b"tried")
        except OSError:
            pass
    return x.softmax(-1)
"""
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS
    assert "tried" in verdict["tasks"]["softmax"]["printed"]
    assert "SEEN" not in verdict["tasks"]["softmax"]["printed"]


PATCHES = {
    "pack": "worker.f_globals['pack'] = lambda value, **k: true_pack({'value': True, 'passed': True, 'points': 9})",
    "answer": "worker.f_locals['box'].__class__.answer = lambda self, request: {'value': True, 'points': 9}",
    "same": "worker.f_globals['same'] = lambda old, new: True; WRITES = True",
    "receive": "worker.f_globals['receive'] = lambda read, **k: {'operation': 'call'}",
    "error_name": "worker.f_globals['error_name'] = lambda error: 'x' * 100_000",
    "write": "worker.f_locals['replies'].__class__.write = None",
}


@pytest.mark.parametrize("what", PATCHES)
def test_a_worker_patched_from_within_earns_nothing(course, what):
    source = f"""
frame = sys._getframe()
while frame.f_back:
    if frame.f_code.co_name == "serve":
        worker = frame
    frame = frame.f_back
true_pack = worker.f_globals["pack"]
os.write(1, b"tried\\n")
try:
    {PATCHES[what]}
except Exception:
    pass
{WRONG["affine"]}
"""
    verdict = course.judge(course.submit("mallory", {"affine": source}))
    assert points(verdict) == POINTS | {"affine": 0}
    assert "tried" in verdict["tasks"]["affine"]["printed"]


MODULES = {
    "a handle that is none": "forge(reply(5)); os._exit(0)",
    "a handle of somebody else": "forge(reply({'handle': 0}) * 3); os._exit(0)",
    "parameters nobody set": "forge(reply(None) * 5); os._exit(0)",
}


@pytest.mark.parametrize("what", MODULES)
def test_a_module_that_is_forged_earns_nothing(course, what):
    source = f"{TOOLS}\n{HONEST['affine']}".replace("super().__init__()", f"super().__init__(); {MODULES[what]}")
    verdict = course.judge(course.submit("mallory", {"affine": source}))
    assert points(verdict) == POINTS | {"affine": 0}


OVERWRITES = """
class Model(nn.Module):
    def __init__(self, x):
        super().__init__()
        x.zero_()

    def predict(self, x):
        x = x[0] if isinstance(x, list) else x
        x[:] = 0
        return torch.zeros(2)

class Plain(nn.Module):
    predict = Model.predict
    forward = Model.predict
"""


@pytest.mark.parametrize("way", ["make", "method", "call", "in a list", "as an array"])
def test_a_call_that_overwrites_its_input_does_not_reach_the_judge_s_tensors(course, way):
    """An answer that could replace the judge's inputs would be compared with a reference on inputs of its choice."""
    with course.zygote.box() as box:
        assert box.load(SETUP) is None
        assert box.load(OVERWRITES) is None
        subject = Subject("Plain", Talk(box=box, seed=len), label="")
        x = subject.random(3)
        before = x.clone()
        with pytest.raises(Fault) as fault:
            if way == "make":
                subject.make("Model", x)
            elif way == "method":
                subject.make("Plain").method("predict", x)
            elif way == "call":
                subject.make("Plain").call(x)
            elif way == "in a list":
                subject.make("Plain").call([x])
            else:
                subject.make("Plain").call(x.numpy())  # the same memory
        assert fault.value.finding.misconception == CHANGES_INPUT
        assert torch.equal(x, before)

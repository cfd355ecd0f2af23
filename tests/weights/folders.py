"""What the tests of stored models share: to change what lies in a folder, and to compare what comes out of it."""

import json
import os
from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

close = partial(torch.testing.assert_close, rtol=0, atol=1e-5)


def same(one, other):
    """Whether two models have the same tensors, bit for bit."""
    first, second = one.state_dict(), other.state_dict()
    return list(first) == list(second) and all(torch.equal(first[name], second[name]) for name in first)


def change_config(folder, **changes):
    """Changes a config.json; "gone" takes an entry out."""
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value != "gone"}))


def change_weights(folder, change):
    """Puts new tensors into a model.safetensors (None takes one out), or what a function returns for those it has."""
    path = folder if folder.is_file() else folder / "model.safetensors"
    tensors = load_file(path)
    tensors = change(tensors) if callable(change) else tensors | change
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}, path, metadata)


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def damaged(path, open_it):
    """Changes up to three bytes of a file, or cuts it: `open_it` gives an error or a model of equal shapes."""
    content, outcomes = path.read_bytes(), set()
    shapes = {name: tensor.shape for name, tensor in open_it().state_dict().items()}
    end = len(content)
    header = 8 + int.from_bytes(content[:8], "little")  # of a safetensors file: behind it stand the numbers
    places = st.integers(0, end - 1)
    places = st.one_of(places, st.integers(header, end - 1)) if header < end else places
    changes = st.lists(st.tuples(places, st.integers(1, 255)), max_size=3)

    @given(changes, st.one_of(st.just(end), st.integers(0, end)))
    @settings(max_examples=200, deadline=None)
    def check(changes, length):
        changed = bytearray(content)
        for place, change in changes:
            changed[place] ^= change
        path.write_bytes(changed[:length])
        try:
            model = open_it()
        except ValueError:
            outcomes.add("refused")
        else:
            outcomes.add("opened")
            assert {name: tensor.shape for name, tensor in model.state_dict().items()} == shapes

    check()
    assert outcomes == {"refused", "opened"}

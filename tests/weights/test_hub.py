"""Released models by their names, from a hub of our own on this machine."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants, file_download

from course_lib.functional.images import Normalisation
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.files import read_index
from course_lib.weights.hub import RELEASED, SHORT, fetch_released
from tests.weights.folders import same

ROOT = Path(__file__).parents[2]
PINNED = RELEASED["openai-community/gpt2"]
NEWEST = "f" * 40


class Hub:
    """Answers as the hub does: HEAD and GET of files, with commit and ETag; it can break off and say no."""

    def __init__(self):
        self.files = {}  # (repository, commit, file) -> bytes
        self.asked = []  # (method, repository, revision, file, range)
        self.cuts = 0  # so many answers of more than 1,000 bytes end in their middle
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                outer.answer(self, "HEAD")

            def do_GET(self):
                outer.answer(self, "GET")

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request, method):
        path = re.fullmatch(r"/(.+?)/resolve/(.+?)/(.+)", request.path)
        if path is None:  # something that huggingface_hub asks by itself
            return request.send_error(404)
        repository, revision, file = path.groups()
        start = int((request.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        self.asked.append((method, repository, revision, file, start))
        commit = NEWEST if revision == "main" else revision
        content = self.files.get((repository, commit, file))
        if content is None:
            known = {(name, made) for name, made, _ in self.files}
            missing = "EntryNotFound" if (repository, commit) in known else "RevisionNotFound"
            missing = missing if repository in {name for name, _ in known} else "RepoNotFound"
            request.send_response(404)
            request.send_header("X-Error-Code", missing)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if start else 200)
        request.send_header("X-Repo-Commit", commit)
        request.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        request.send_header("Content-Length", str(len(content) - start))
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.end_headers()
        if method == "GET":
            rest = content[start:]
            if self.cuts and len(rest) > 1000:
                self.cuts -= 1
                rest = rest[: len(rest) // 2]
            request.wfile.write(rest)

    def holds(self, folder, repository, commit):
        for path in Path(folder).iterdir():
            self.files[repository, commit, path.name] = path.read_bytes()

    def downloads(self, file="model.safetensors"):
        return [start for method, _, _, name, start in self.asked if method == "GET" and name == file]


def at_address(monkeypatch, address):
    """What HF_ENDPOINT does, in a process that has imported huggingface_hub already."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = Hub()
    at_address(monkeypatch, hub.address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 512)  # bytes in place of megabytes, that wait to be kept
    monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)
    monkeypatch.chdir(tmp_path)
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


def gpt(seed=0):
    torch.manual_seed(seed)
    return GPT(GPTConfig(vocab_size=11, dim=8, depth=1, num_heads=2, context_length=6))


@pytest.fixture
def released(hub, tmp_path):
    """A tiny GPT-2 at the pinned commit, and another at the newest."""
    for commit, seed in ((PINNED, 0), (NEWEST, 1)):
        save_pretrained(gpt(seed), tmp_path / commit)
        hub.holds(tmp_path / commit, "openai-community/gpt2", commit)
    return hub


@pytest.mark.parametrize("name", ["gpt2", "openai-community/gpt2"])
def test_a_released_name_opens_at_its_pinned_commit(released, name):
    assert same(from_pretrained(name), gpt(0))
    assert {revision for _, _, revision, _, _ in released.asked} == {PINNED}


def test_the_address_of_the_hub_is_that_of_the_environment(released, tmp_path):
    code = "import sys; from course_lib.weights import from_pretrained; print(type(from_pretrained('gpt2')).__name__)"
    ours = {"HF_ENDPOINT": released.address, "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | ours, capture_output=True, text=True)
    assert done.stdout.strip() == "GPT" and (tmp_path / "home" / "hub").is_dir()


def test_what_was_fetched_once_needs_no_hub(released):
    from_pretrained("gpt2")
    released.asked.clear()
    assert same(from_pretrained("gpt2"), gpt(0))
    assert not released.asked


def test_another_revision_may_be_asked_for(released):
    assert same(from_pretrained("gpt2", revision="main"), gpt(1))


def test_a_name_without_a_pin_is_the_newest(hub, tmp_path):
    save_pretrained(gpt(2), tmp_path / "made")
    hub.holds(tmp_path / "made", "somebody/small", NEWEST)
    assert same(from_pretrained("somebody/small"), gpt(2))


def test_a_folder_of_that_name_comes_first(released, tmp_path):
    save_pretrained(gpt(3), tmp_path / "gpt2")
    assert same(from_pretrained("gpt2"), gpt(3)) and not released.asked
    with pytest.raises(ValueError, match="gpt2 is a folder here, which has no revision 'main'"):
        from_pretrained("gpt2", revision="main")


def test_shards_are_fetched_by_their_index(hub, tmp_path):
    save_pretrained(gpt(), tmp_path / "made")
    index = {"weight_map": {"wte.weight": "model-00001-of-00002.safetensors", "h": "model-00002-of-00002.safetensors"}}
    for name in index["weight_map"].values():
        hub.files["somebody/large", NEWEST, name] = b"a shard"
    hub.files["somebody/large", NEWEST, "config.json"] = b"{}"
    hub.files["somebody/large", NEWEST, "model.safetensors.index.json"] = json.dumps(index).encode()
    folder = fetch_released("somebody/large", shards=lambda path: read_index(path).values())
    assert {path.name for path in folder.iterdir()} == {*index["weight_map"].values(), "config.json",
                                                        "model.safetensors.index.json"}  # fmt: skip


def test_a_download_that_breaks_off_goes_on_where_it_stood(released):
    released.cuts = 1
    assert same(from_pretrained("gpt2"), gpt(0))
    first, second = released.downloads()
    assert first == 0 and second > 0


def test_one_that_breaks_off_for_good_is_told_and_leaves_nothing_half_written(released, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10**6)  # none comes whole: each try begins anew
    released.cuts = 100
    with pytest.raises(FileNotFoundError, match="download of openai-community/gpt2 broke off.*Call again"):
        from_pretrained("gpt2")
    assert len(released.downloads()) > 2
    assert not [path for path in (tmp_path / "cache").rglob("*.incomplete")]
    released.cuts = 0
    assert same(from_pretrained("gpt2"), gpt(0))


def test_an_unknown_name_is_told_the_known_ones(released):
    with pytest.raises(ValueError, match="no model 'openai-community/gpt7'.*Known names: gpt2,.*vit-mae-base"):
        from_pretrained("openai-community/gpt7")
    with pytest.raises(ValueError, match="gpt2 has no revision 'gone'"):
        from_pretrained("gpt2", revision="gone")
    with pytest.raises(ValueError, match="is no name of a model"):
        from_pretrained("some body/small?")


@pytest.mark.parametrize("name", ["gpt7", "./gpt2", "a/b/c", "/nowhere/gpt2", "~/gpt2", ""])
def test_what_can_be_no_name_is_not_asked_for(released, name):
    with pytest.raises((FileNotFoundError, ValueError)):
        from_pretrained(name + "-missing" if name else "../missing")
    with pytest.raises(FileNotFoundError, match="no folder"):
        from_pretrained(Path("openai-community/gpt2"))
    assert not released.asked


def test_pickled_weights_are_not_fetched(hub):
    hub.files["somebody/old", NEWEST, "config.json"] = b"{}"
    hub.files["somebody/old", NEWEST, "pytorch_model.bin"] = b"a pickle"
    with pytest.raises(FileNotFoundError, match="Pickled weights can run code, and are not opened"):
        from_pretrained("somebody/old")
    assert not hub.downloads("pytorch_model.bin")


def test_no_network_is_told_in_a_sentence_and_at_once(hub, monkeypatch, caplog):
    at_address(monkeypatch, "http://127.0.0.1:1")
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)  # before each further attempt
    with pytest.raises(FileNotFoundError, match="not in this machine's cache, and the hub cannot be reached"):
        from_pretrained("gpt2")
    assert waits == [] and "Retrying" not in caplog.text


def test_the_normalisation_of_a_model_of_images_comes_with_it_and_may_be_missing(hub, tmp_path):
    torch.manual_seed(0)
    sizes = {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 8, "num_classes": 2}
    save_pretrained(ViT(ViTConfig(**sizes)), tmp_path / "vit")
    hub.holds(tmp_path / "vit", "somebody/seer", NEWEST)
    assert from_pretrained("somebody/seer").normalisation == Normalisation(mean=(0.5,) * 3, std=(0.25,) * 3)
    (tmp_path / "vit" / "preprocessor_config.json").unlink()
    hub.holds(tmp_path / "vit", "somebody/silent", NEWEST)
    assert from_pretrained("somebody/silent").normalisation is None


def test_without_huggingface_hub_the_ways_to_the_model_are_told(hub, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    ways = "pip install 'huggingface_hub.*`hf download openai-community/gpt2 --local-dir gpt2`"
    with pytest.raises(FileNotFoundError, match=ways):
        from_pretrained("gpt2")


def test_pins_are_commits_and_the_docstring_says_which_names_have_one():
    pinned = {name for name, repository in SHORT.items() if RELEASED[repository]}
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in filter(None, RELEASED.values()))
    first, second = re.search(r'may be a released name: (.*?) are\s+pinned.*?; (.*?) and any', from_pretrained.__doc__,
                              flags=re.DOTALL).groups()  # fmt: skip
    assert set(re.findall('"(.+?)"', first)) == pinned
    assert set(re.findall('"(.+?)"', second)) == SHORT.keys() - pinned

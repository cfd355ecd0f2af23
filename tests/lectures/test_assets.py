"""What a deck carries is fetched once, checked, and never half there."""

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from course_lib.data.place import CannotStart
from course_lib.lectures import assets
from course_lib.lectures.assets import Package, asset, assets_folder, fetch

GOOD = b"console.log('good')"
PACKAGE = Package(
    name="thing@1.0.0",
    licence="MIT",
    wheel="thing-in-python==2.0.0",
    wheel_folder="thing/static",
    npm_folder="dist",
    files={"dist/thing.js": "c9d8a8a4bbd2d8a9eb9d0dc8f1ca7e5ef32a50ce8adb7f4dc3f8bb2ed8d9dd47"},
)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine where npm and pip give what the dictionary says, or fail; `calls` names those that were asked."""
    monkeypatch.setenv("COURSE_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setitem(PACKAGE.files, "dist/thing.js", assets._sha256(GOOD))
    has, calls = {"npm": None, "pip": None}, []

    def which(name):
        return f"/bin/{name}" if has["npm"] is not None else None

    def run(command, cwd, **options):
        kind = "npm" if command[1] == "pack" else "pip"
        calls.append(kind)
        if has[kind] is None:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: no network\n")
        if kind == "npm":
            with tarfile.open(Path(cwd) / "thing.tgz", "w:gz") as archive:
                member = tarfile.TarInfo("package/dist/thing.js")
                member.size = len(has[kind])
                archive.addfile(member, io.BytesIO(has[kind]))
        else:
            with zipfile.ZipFile(Path(cwd) / "thing.whl", "w") as archive:
                archive.writestr("thing/static/thing.js", has[kind])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(assets.shutil, "which", which)
    monkeypatch.setattr(assets.subprocess, "run", run)
    return has, calls


@pytest.mark.parametrize(
    ("there", "asked"),
    [({"npm": GOOD}, ["npm"]), ({"pip": GOOD}, ["pip"]), ({"npm": b"evil", "pip": GOOD}, ["npm", "pip"])],
)
def test_npm_gets_it_else_pip_only_once_and_again_where_it_was_damaged(machine, there, asked):
    has, calls = machine
    has.update(there)
    assert asset(PACKAGE, "dist/thing.js") == asset(PACKAGE, "dist/thing.js") == GOOD
    fetch([PACKAGE])
    assert calls == asked
    [kept] = assets_folder().rglob("thing.js")
    kept.write_bytes(GOOD[:5])
    assert asset(PACKAGE, "dist/thing.js") == GOOD


def test_a_wrong_file_is_never_kept(machine):
    has, calls = machine
    has["npm"], has["pip"] = b"evil", b"worse"
    with pytest.raises(CannotStart, match=r"npm: dist/thing.js is not the file .*; pip: dist/thing.js is not"):
        fetch([PACKAGE])
    assert calls == ["npm", "pip"] and not list(assets_folder().rglob("*.js"))


def test_without_a_network_a_sentence_says_what_to_do(machine):
    with pytest.raises(CannotStart) as caught:
        fetch([PACKAGE])
    words = str(caught.value)
    assert "thing@1.0.0" in words and "npm: not installed" in words and "pip: ERROR: no network" in words
    assert "Connect to the network" in words and str(assets_folder()) in words


def test_a_folder_that_cannot_be_written_is_named(machine, monkeypatch, tmp_path):
    machine[0]["npm"] = GOOD
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("COURSE_ASSETS", str(tmp_path / "file"))
    with pytest.raises(CannotStart, match=r"file.* cannot be written.*COURSE_ASSETS"):
        fetch([PACKAGE])


def test_the_folder_is_in_the_home_of_the_course(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_ASSETS")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    assert assets_folder() == tmp_path / "lectures"

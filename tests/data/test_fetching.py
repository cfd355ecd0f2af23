"""Downloads from a server of our own that breaks off, dawdles, cheats and says no; never from the internet."""

import builtins
import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from course_lib.data import fetching
from course_lib.data.fetching import fetch, is_here
from course_lib.data.place import CannotStart
from course_lib.data.sets import SETS, DataFile, DataSet

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Serves CONTENT at every path, in the way that `manner` says."""

    def __init__(self):
        self.manner, self.asked, self.release = "well", [], threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append((self.path, self.headers.get("Range")))
                outer.answer(self, outer.manner)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request, manner):
        if manner.isdecimal():
            return request.send_error(int(manner))
        content = {"wrong": CONTENT[::-1], "long": CONTENT * 3, "page": b"<html>Log in first.</html>"}.get(
            manner, CONTENT
        )
        start = int(re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", "bytes=0-"))[1])
        if start and start >= len(content):
            return request.send_error(416)
        if manner == "forgetful":
            start = 0
        request.send_response(206 if start else 200)
        if manner != "silent about length":
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        rest = content[start:]
        if manner in ("cut", "stalled"):
            request.wfile.write(rest[: len(rest) // 2])
            request.wfile.flush()
            return self.release.wait(10) if manner == "stalled" else None
        if manner == "slow":
            for byte in rest:
                request.wfile.write(bytes([byte]))
                request.wfile.flush()
                if self.release.wait(0.01):
                    return None
        return request.wfile.write(rest)


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server()
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("COURSE_DATA_MIRROR", raising=False)
    monkeypatch.setattr(fetching, "SILENCE", 0.3)
    use(monkeypatch, f"{server.address}/bytes.bin")
    yield server
    server.release.set()
    server.server.shutdown()
    server.server.server_close()


def use(monkeypatch, *addresses, **known):
    known = {"size": len(CONTENT), "checksum": f"sha256:{DIGEST}"} | known
    file = DataFile(path="some/bytes.bin", addresses=addresses, **known)
    monkeypatch.setitem(SETS, "bytes", DataSet(title="Bytes", licence="none", source="here", files=(file,)))


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "home" / "data" / "some" / "bytes.bin"


def test_what_is_fetched_is_kept_and_not_asked_for_again(server, kept):
    assert not is_here("bytes")
    assert fetch("bytes") == {"bytes.bin": kept} and kept.read_bytes() == CONTENT
    assert [path.name for path in kept.parent.iterdir()] == ["bytes.bin"]
    fetch("bytes")
    assert len(server.asked) == 1 and is_here("bytes")


def test_a_file_that_was_damaged_is_fetched_anew(server, kept):
    fetch("bytes")
    kept.write_bytes(CONTENT[:-1] + b"!")
    assert not is_here("bytes")
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


def test_md5_is_taken_where_it_is_all_that_was_published(server, kept, monkeypatch):
    use(monkeypatch, f"{server.address}/bytes.bin", checksum="md5:" + hashlib.md5(CONTENT).hexdigest())
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT
    use(monkeypatch, f"{server.address}/bytes.bin", checksum="md5:" + "0" * 32)
    assert not is_here("bytes")


PROBLEMS = {
    "404": r"127\.0\.0\.1 answered 404 Not Found\.",
    "503": r"answered 503 Service Unavailable\.",
    "wrong": r"another file than the course knows \(its checksum differs\)",
    "long": r"another file than the course knows \(more than its 10,240 bytes\)",
    "page": r"another file than the course knows \(its checksum differs\)",
    "cut": r"broke off after 5,120 of 10,240 bytes: run it again to go on from there",
    "stalled": r"did not answer within 0\.3 seconds",
}


@pytest.mark.parametrize("manner", PROBLEMS)
def test_each_failure_is_one_sentence_and_leaves_no_file(server, kept, manner):
    server.manner = manner
    with pytest.raises(CannotStart, match=PROBLEMS[manner] + ".*course data fetch bytes.*COURSE_DATA_MIRROR"):
        fetch("bytes")
    assert not kept.exists() and {path.suffix for path in kept.parent.iterdir()} <= {".part"}
    server.manner = "well"
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


def test_a_server_that_dawdles_is_given_up(server, kept, monkeypatch):
    monkeypatch.setattr(fetching, "PATIENCE", 0.2)
    server.manner = "slow"
    with pytest.raises(CannotStart, match="sends less than 1,000 bytes a second"):
        fetch("bytes")


def test_a_server_without_an_end_is_given_up_at_the_size_of_the_file(server, kept, monkeypatch):
    monkeypatch.setattr(fetching, "CHUNK", 1024)
    monkeypatch.setattr(fetching, "TOLD", -1)
    server.manner, said = "long", []
    with pytest.raises(CannotStart, match="more than its 10,240 bytes"):
        fetch("bytes", say=said.append)
    assert len(said) <= 11  # and not 30 parts


def test_no_network_is_told_with_what_to_do(server, kept, monkeypatch):
    use(monkeypatch, "http://127.0.0.1:1/bytes.bin", "http://nowhere.invalid/bytes.bin")
    with pytest.raises(CannotStart, match=r"127\.0\.0\.1 cannot be reached; nowhere\.invalid cannot be reached\. Conn"):
        fetch("bytes")


@pytest.mark.parametrize("manner", ["cut", "stalled"])
def test_a_download_that_broke_off_goes_on_where_it_stood(server, kept, manner):
    server.manner = manner
    with pytest.raises(CannotStart):
        fetch("bytes")
    server.manner = "well"
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT
    assert [asked for _, asked in server.asked] == [None, "bytes=5120-"]
    assert [path.name for path in kept.parent.iterdir()] == ["bytes.bin"]


@pytest.mark.parametrize("manner", ["forgetful", "silent about length"])
def test_a_server_that_sends_it_all_once_more_is_understood(server, kept, manner):
    kept.parent.mkdir(parents=True)
    kept.with_name("bytes.bin.part").write_bytes(CONTENT[:1000])
    server.manner = manner
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"!" * 1000, b"!" * len(CONTENT), b"!" * (len(CONTENT) + 5)])
def test_a_wrong_beginning_is_thrown_away(server, kept, part):
    kept.parent.mkdir(parents=True)
    kept.with_name("bytes.bin.part").write_bytes(part)
    with pytest.raises(CannotStart):
        fetch("bytes")
    assert not list(kept.parent.iterdir())
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


def test_the_next_address_is_asked_where_the_first_fails(server, kept, monkeypatch):
    use(monkeypatch, "http://127.0.0.1:1/first", f"{server.address}/second")
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


def test_a_mirror_is_asked_first_by_the_path_of_the_file(server, kept, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_DATA_MIRROR", f"{server.address}/mirror/")
    fetch("bytes")
    assert [path for path, _ in server.asked] == ["/mirror/some/bytes.bin"]
    kept.unlink()
    (tmp_path / "mirror" / "some").mkdir(parents=True)
    monkeypatch.setenv("COURSE_DATA_MIRROR", str(tmp_path / "mirror"))
    fetch("bytes")
    assert server.asked[-1][0] == "/bytes.bin"  # the folder has it not
    kept.unlink()
    server.asked.clear()
    (tmp_path / "mirror" / "some" / "bytes.bin").write_bytes(CONTENT)
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT and not server.asked


def test_a_mirror_with_another_file_does_not_get_through(server, kept, monkeypatch, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "bytes.bin").write_bytes(CONTENT[::-1])
    monkeypatch.setenv("COURSE_DATA_MIRROR", str(tmp_path))
    use(monkeypatch)
    with pytest.raises(CannotStart, match="checksum differs"):
        fetch("bytes")
    assert not kept.exists()


def test_a_set_that_only_a_mirror_has_says_so(server, monkeypatch):
    use(monkeypatch)
    with pytest.raises(CannotStart, match="it is in no folder named by COURSE_DATA_MIRROR"):
        fetch("bytes")


def test_a_file_without_a_known_checksum_shows_the_one_it_has(server, kept, monkeypatch):
    use(monkeypatch, f"{server.address}/bytes.bin", size=None, checksum=None)
    said = []
    fetch("bytes", say=said.append)
    assert f"sha256:{DIGEST}" in said[-1] and "knows no checksum" in said[-1]
    kept.unlink()
    server.manner = "cut"  # its length is the server's word
    with pytest.raises(CannotStart, match="broke off after 5,120 of 10,240"):
        fetch("bytes")


def test_a_file_of_another_size_is_fetched_anew_though_its_checksum_is_not_known(server, kept, monkeypatch):
    use(monkeypatch, f"{server.address}/bytes.bin", checksum=None)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(CONTENT[:-1])
    assert fetch("bytes")["bytes.bin"].read_bytes() == CONTENT


@pytest.mark.parametrize("problem", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_mirror_that_cannot_be_copied_is_told(server, kept, monkeypatch, tmp_path, problem):
    def refuse(source, target):
        target.write_bytes(b"half")
        raise problem

    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "bytes.bin").write_bytes(CONTENT)
    monkeypatch.setenv("COURSE_DATA_MIRROR", str(tmp_path))
    monkeypatch.setattr(fetching.shutil, "copyfile", refuse)
    use(monkeypatch)
    with pytest.raises(CannotStart, match=f"could not be copied: {problem.strerror}"):
        fetch("bytes")
    assert not list(kept.parent.iterdir())


def test_a_long_download_tells_how_far_it_is(server, monkeypatch):
    monkeypatch.setattr(fetching, "TOLD", -1)
    said = []
    fetch("bytes", say=said.append)
    assert said[0].startswith("Fetching bytes.bin (0.0 MB) from 127.0.0.1") and "of 0.0 MB" in said[1]


def test_a_folder_that_cannot_be_written_is_told(server, tmp_path, monkeypatch):
    (tmp_path / "home").write_text("in the way", encoding="utf-8")
    with pytest.raises(CannotStart, match="cannot be written: .*COURSE_HOME"):
        fetch("bytes")


def test_without_pooch_the_command_that_installs_it_is_told(server, monkeypatch):
    real = builtins.__import__
    monkeypatch.setattr(
        builtins,
        "__import__",
        lambda name, *rest: (_ for _ in ()).throw(ImportError) if name == "pooch" else real(name, *rest),
    )
    with pytest.raises(CannotStart, match="python -m pip install 'pooch"):
        fetch("bytes")


def test_an_unknown_set_is_told_the_known_ones():
    with pytest.raises(CannotStart, match="no data set 'minst'. There are: mnist, fashion_mnist, cifar10"):
        fetch("minst")


def test_ctrl_c_leaves_what_came_for_the_next_start(server, kept, monkeypatch):
    def interrupted(words):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "TOLD", -1)
    said = iter([lambda words: None, interrupted])
    with pytest.raises(KeyboardInterrupt):
        fetch("bytes", say=lambda words: next(said)(words))
    assert not kept.exists() and kept.with_name("bytes.bin.part").stat().st_size > 0


@pytest.mark.parametrize("name", SETS)
def test_what_the_registry_says_of_a_set_is_complete(name):
    known = SETS[name]
    assert known.title and known.licence and known.source.startswith("http") and known.files
    for file in known.files:
        assert all(address.startswith(("http://", "https://")) for address in file.addresses)
        if file.checksum is None:
            assert "checksum" in known.note
        else:
            algorithm, digits = file.checksum.split(":")
            assert len(bytes.fromhex(digits)) == {"md5": 16, "sha256": 32}[algorithm] and file.size
        assert file.addresses or "mirror" in known.note
    assert len({file.path for one in SETS.values() for file in one.files}) == sum(len(s.files) for s in SETS.values())

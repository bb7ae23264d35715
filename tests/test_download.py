"""Finding and downloading archives, against a server on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conftest import Folders
from recollect.data.download import Archive, fetched, found

CONTENT = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT at any address; the first ``broken`` answers stop in the middle."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked, self.broken = [], 0

    def archive(self, md5: str = MD5) -> Archive:
        return Archive("some/set.tar.gz", f"http://127.0.0.1:{self.server_port}/published/set.tar.gz", md5)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        broken = len(server.asked) <= server.broken
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if broken else CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_archive_is_downloaded_once_to_the_cache_folder(folders: Folders, server: Server):
    archive = server.archive()
    assert fetched(archive) == folders.cache / "some" / "set.tar.gz" == fetched(archive) == found(archive.path)
    assert (folders.cache / "some" / "set.tar.gz").read_bytes() == CONTENT
    assert server.asked == ["/published/set.tar.gz"]
    assert list(folders.own.iterdir()) == []


def test_a_broken_transfer_leaves_nothing_and_can_be_repeated(folders: Folders, server: Server):
    server.broken = 1
    with pytest.raises(FileNotFoundError, match=r"some/set.tar.gz could not be downloaded: .*IncompleteRead"):
        fetched(server.archive())
    assert [path for path in folders.cache.rglob("*") if path.is_file()] == []
    assert fetched(server.archive()).read_bytes() == CONTENT


def test_a_download_with_a_wrong_checksum_is_not_kept(folders: Folders, server: Server):
    wrong = "0" * 32
    with pytest.raises(FileNotFoundError, match=f"expected md5:{wrong} but got {MD5}"):
        fetched(server.archive(wrong))
    assert [path for path in folders.cache.rglob("*") if path.is_file()] == []


def test_missing_data_says_what_to_download_and_where_to_put_it(folders: Folders, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as closed:
        archive = closed.archive()
    with pytest.raises(FileNotFoundError) as caught:
        fetched(archive)
    for part in (archive.url, archive.path, str(folders.own), str(folders.cache), "RECOLLECT_DATA", "refused"):
        assert part in str(caught.value)


def test_the_user_s_own_archive_is_taken_and_never_changed(folders: Folders, server: Server):
    own = folders.own / "some" / "set.tar.gz"
    own.parent.mkdir()
    own.write_bytes(CONTENT)
    assert fetched(server.archive()) == own
    own.write_bytes(b"something else")
    with pytest.raises(
        ValueError, match=f"has the MD5 checksum {hashlib.md5(b'something else').hexdigest()}: accepted is"
    ):
        fetched(server.archive())
    assert own.read_bytes() == b"something else"
    assert server.asked == []


def test_without_the_variable_the_cache_folder_is_looked_into(
    folders: Folders, server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("RECOLLECT_DATA")
    assert found("some/set.tar.gz") is None
    assert found("some/set.tar.gz") != fetched(server.archive()) == found("some/set.tar.gz")


def test_a_folder_that_does_not_exist_is_refused(folders: Folders, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOLLECT_DATA", str(folders.own / "nowhere"))
    with pytest.raises(ValueError, match=r"RECOLLECT_DATA='.*nowhere': accepted is a folder that exists"):
        found("some/set.tar.gz")


def test_a_terminal_shows_how_far_it_is(
    folders: Folders, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as good as a terminal to rich
    monkeypatch.setenv("COLUMNS", "100")
    fetched(server.archive())
    shown = capsys.readouterr().err
    assert "set.tar.gz" in shown
    assert "256.0/256.0 kB" in shown

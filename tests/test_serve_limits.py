"""`iolab serve` among clients that lie about where they ask, that say nothing, and that are too many."""

import asyncio
import errno
import resource
import socket
import subprocess
import sys
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn
from iolab.files.collection.collection import Collection
from iolab.presentation.site.app import make_app
from iolab.presentation.site.connections import PAUSE_S, Server, connections_max
from support.stored import stored_run

HERE = ["127.0.0.1", "127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8765", "localhost:99999"]
ELSEWHERE = [
    "evil.example",
    "127.0.0.1@evil.example",
    "[127.0.0.1]evil.example",
    "evil.example#127.0.0.1",
    "evil.example?127.0.0.1",
    "evil.example/127.0.0.1",
    "[::1]evil.example",
    "[::1",
    "::1",
    "[evil.example]",
    "localhost.evil.example",
    "evil.example:127.0.0.1",
    "user@localhost",
    "localhost:80@evil.example",
    "localhost:",
    "localhost:port",
    "localhost localhost",
    "localhost,evil.example",
    "127.1",
    "0x7f.0.0.1",
    "127.0.0.1.",
    "",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("served") / "runs"
    stored_run(parent / "run")
    return parent


@contextmanager
def serving(runs: Path, host: str = "127.0.0.1", life_s: float = 60.0) -> Iterator[tuple[str, int]]:
    collection = Collection(runs)
    collection.refresh()
    app, _ = make_app(collection, host)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        server = Server(config, listener, threading.Event(), life_s=life_s)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield listener.getsockname()[:2]
        server.should_exit = True
        thread.join(30)


def status(address: tuple[str, int], *headers: str, target: str = "/api/meta.json") -> int:
    with socket.create_connection(address, timeout=60) as client:
        client.sendall("\r\n".join([f"GET {target} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        return int(client.makefile("rb").readline().split()[1])


def test_only_the_names_of_this_server_are_answered(runs: Path) -> None:
    with serving(runs) as address:
        assert [status(address, f"Host: {name}") for name in HERE] == [200] * len(HERE)
        answers = {name: status(address, f"Host: {name}") for name in ELSEWHERE}
        assert set(answers.values()) <= {400, 421}, answers
        assert status(address, "Host: localhost", "Host: evil.example") in (400, 421)
        assert status(address, "Host: evil.example", target="http://localhost/api/meta.json") == 421


def test_a_server_that_others_reach_takes_any_name_but_no_junk(runs: Path) -> None:
    with serving(runs, host="0.0.0.0") as address:
        assert status(address, "Host: lab.example:80") == 200
        for name in ("127.0.0.1@evil.example", "[127.0.0.1]evil.example", "evil.example#127.0.0.1"):
            assert status(address, f"Host: {name}") in (400, 421), name


def test_junk_in_a_body_is_refused_without_a_traceback(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    request = b"PUT / HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with serving(runs) as address:
        for rest in (b"-Encoding: gzip\r\n\r\n", b"junk\r\n"):
            with socket.create_connection(address, timeout=60) as client:
                client.sendall(request + rest)
                assert client.makefile("rb").readline().split()[1] in (b"400", b"421")
        assert status(address, "Host: localhost") == 200
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("sent", [b"", b"GET /api/meta", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_that_asks_nothing_is_closed(runs: Path, sent: bytes) -> None:
    with serving(runs, life_s=0.2) as address, socket.create_connection(address, timeout=60) as client:
        client.sendall(sent)
        assert client.recv(1000) == b""


def test_so_many_are_taken_at_once_and_the_others_in_their_turn(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.presentation.site.connections.connections_max", lambda: 4)
    with serving(runs) as address, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(address, timeout=60))
        assert status(address, "Host: localhost") == 200, "the oldest idle ones end for it"


def test_the_limit_leaves_descriptors_to_answer_with() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (10_000, hard))
        assert connections_max() == 100
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
        assert connections_max() == 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_it_pauses_and_says_so_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    accept, refused = BaseSelectorEventLoop.sock_accept, iter(range(5))

    async def sock_accept(loop: BaseSelectorEventLoop, listener: socket.socket) -> tuple[socket.socket, object]:
        if next(refused, None) is not None:
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(loop, listener)

    pauses: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", sock_accept)
    monkeypatch.setattr("iolab.presentation.site.connections._pause", pause)
    with serving(runs) as address:
        assert status(address, "Host: localhost") == 200
    assert pauses == [PAUSE_S] * 5
    (line,) = capfd.readouterr().err.splitlines()
    assert "no room for another connection" in line


INTERRUPTED_IN_AN_IMPORT = """\
import signal, sys

class Drops:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                pass

sys.meta_path.insert(0, Drops())
from iolab.presentation.cli import main
sys.argv[1:] = ["serve", sys.argv[2], "--port", "0"]
main()
"""


@pytest.mark.parametrize("name", ["typer", "iolab.presentation.cli.serve", "uvicorn", "polars"])
def test_ctrl_c_is_not_lost_in_an_import_that_drops_it(runs: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_AN_IMPORT.replace("sys.argv[1]", repr(name)), "", runs],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (130, "iolab: interrupted\n"), done.stdout

"""Clients of `iolab serve` that lie about where they ask, ask what nobody asks, say nothing, or are many. None is shown
what is not a run's, none is answered under a name that is not this server's, and who asks well is answered after each.
"""

import os
import random
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from family import Attack, Family, Lane, Outcome
from ground import Ground, ground
from mutate import mutated
from support.command_line import PROGRAM
from support.stored import stored_run

SECRET = "only-root-reads-this"
NAMES = ["127.0.0.1", "localhost", "[::1]"]
TARGETS = [
    *("/", "/api/meta.json", "/api/runs.json", "/api/openapi.json", "/run/run", "/run/run/", "/static/page.js"),
    *("/../secret", "/run/../../secret", "/%2e%2e/secret", "/run/%2e%2e%2f%2e%2e%2fsecret", "//secret", "/run/run%00"),
    *("/run/\u00e9", "/run/run?x=" + "y" * 3000, "*", "http://localhost/api/meta.json", "http://evil.example/", "/#/"),
    *("/run/link", "/api/run/link.json", "/run/run/experiment.toml", "/run/-/../link"),
]
METHODS = ["GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "G\u00c4T"]
PARTS = "@#?/.,;:\\ "
"""The separators in an address."""
ANSWER_S = 30.0
MEMORY_GROWTH_MAX = 256 << 20
_ONE_AT_A_TIME = threading.Lock()


class Clients:
    def __init__(self, own: Ground) -> None:
        self.own = own
        self.parent = own.work / "runs"
        # A server that another lane forks meanwhile would hold the lock of a journal until it is executed.
        with _ONE_AT_A_TIME:
            self._begin()
        assert self.process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, "the server does not say where it listens"
        self.address = ("127.0.0.1", int(found[1]))
        self.memory_bytes = self._memory()

    def _begin(self) -> None:
        own = self.own
        stored_run(self.parent / "run")
        (own.work / "secret").write_text(SECRET)
        stored_run(self.parent / "link")
        for name in ("experiment.toml", "machine.json"):
            (self.parent / "link" / name).unlink(missing_ok=True)
            (self.parent / "link" / name).symlink_to(own.work / "secret")
        self.said = (own.directory / "stderr").open("w+")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", str(self.parent), "--port", "0"],
            env={**os.environ, "IOLAB_STATE_DIR": str(own.state), "NO_COLOR": "1"},
            cwd=own.work,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )

    def __call__(self, case: int) -> Outcome:
        rng = self.own.lane.random("servers", case)
        wrong = rng.choices([self._asks, self._many], [30, 1])[0](rng)
        status, _ = self._answer(_request("GET", "/api/meta.json", ["Host: localhost"]))
        if status != 200:
            wrong.append(f"who asks well is answered with {status}")
        if self.process.poll() is not None:
            wrong.append(f"the server ended with {self.process.returncode}")
        if (grown := self._memory() - self.memory_bytes) > MEMORY_GROWTH_MAX:
            wrong.append(f"the server grew by {grown >> 20} MiB")
            self.memory_bytes += grown
        return Outcome(1, wrong + self._complaints())

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        finally:
            self.process.kill()
            self.said.close()

    def _asks(self, rng: random.Random) -> list[str]:
        host = _host(rng)
        target = rng.choice(TARGETS)
        headers = [f"Host: {host}"] if rng.random() < 0.95 else []
        for _ in range(rng.choice((0, 0, 1, 3))):
            headers.append(rng.choice(_HEADERS)(rng))
        request = _request(rng.choice(METHODS), target, headers)
        changed = rng.random() < 0.4
        if changed:
            request = mutated(request, rng, [request])
        status, body = self._answer(request, 0.3 if changed else ANSWER_S)
        wrong = []
        if SECRET.encode() in body:
            wrong.append(f"{request[:300]!r} is shown what only root reads")
        if status is not None and status >= 500:
            wrong.append(f"{request[:300]!r} is answered with {status}")
        hosts = [line.removeprefix("Host: ") for line in headers if line.startswith("Host: ")]
        ours = len(hosts) == 1 and _ours(hosts[0])
        if not changed and status == 200 and not ours and "http://" not in target:
            wrong.append(f"{request[:300]!r} is answered under another name")
        return wrong

    def _many(self, rng: random.Random) -> list[str]:
        """Who say nothing, or a part of it, and stay."""
        with ExitStack() as stack:
            for _ in range(rng.randrange(50, 300)):
                with suppress(OSError):
                    client = stack.enter_context(socket.create_connection(self.address, timeout=ANSWER_S))
                    client.sendall(rng.choice([b"", b"GET", b"GET / HTTP/1.1\r\nHost: local", b"\0" * 100]))
            status, _ = self._answer(_request("GET", "/api/meta.json", ["Host: localhost"]))
            return [] if status == 200 else [f"beside many that stay, who asks well is answered with {status}"]

    def _answer(self, request: bytes, patience_s: float = ANSWER_S) -> tuple[int | None, bytes]:
        """The status, and all that comes; None if none comes in time."""
        with socket.create_connection(self.address, timeout=patience_s) as client:
            received = b""
            with suppress(OSError):
                client.sendall(request)
                while piece := client.recv(1 << 16):
                    received += piece
        found = re.match(rb"HTTP/1\.\d (\d{3})", received)
        return (int(found[1]) if found else None), received

    def _memory(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _complaints(self) -> list[str]:
        self.said.seek(0)
        text = self.said.read()
        self.said.seek(0)
        self.said.truncate()
        return [f"the server says {text[-3000:]!r}"] if "Traceback" in text or len(text) > 10_000 else []


def _host(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    return rng.choice(
        [
            name,
            name.upper(),
            f"{name}:{rng.randrange(1, 65536)}",
            "evil.example",
            f"{name}{rng.choice(PARTS)}evil.example",
            f"evil.example{rng.choice(PARTS)}{name}",
            f"[{name}]evil.example",
            rng.choice(
                ["", "127.1", "0x7f.1", "2130706433", "::1", "localhost.", "[::ffff:127.0.0.1]", "l\u00f6calhost"]
            ),
        ]
    )


def _ours(host: str) -> str | None:
    """The same, if it is a name of this server."""
    return host if re.sub(r":\d+$", "", host).lower() in NAMES else None


_HEADERS: list[Callable[[random.Random], str]] = [
    lambda rng: f"Content-Length: {rng.choice(['-1', '0', '99999999999999999999', 'x', '5'])}",
    lambda rng: f"Transfer-Encoding: {rng.choice(['chunked', 'gzip', 'chunked, chunked'])}",
    lambda rng: f"X-{rng.randrange(99)}: {'y' * rng.choice([1, 1000, 70_000])}",
    lambda rng: f"Host: {_host(rng)}",
    lambda rng: f"Range: bytes={rng.choice(['0-', '5-1', '-1', '0-0,' * 500])}",
    lambda rng: f"If-None-Match: {rng.choice(['*', 'x' * 500])}",
    lambda rng: "Upgrade: websocket\r\nConnection: Upgrade",
    lambda rng: "Expect: 100-continue",
    lambda rng: "Origin: http://evil.example",
]


def _request(method: str, target: str, headers: list[str]) -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", *headers, "Connection: close", "", ""]).encode()


@contextmanager
def lane(lane: Lane) -> Iterator[Attack]:
    with ground(lane) as own:
        clients = Clients(own)
        try:
            yield clients
        finally:
            clients.end()


FAMILY = Family(
    name="servers",
    what="clients of the pages that lie, ask oddly, or stay: nothing else is shown, and the next is answered",
    attacks=5_000,
    attacks_quick=40,
    lane=lane,
    needs_root=True,
)

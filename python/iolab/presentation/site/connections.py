"""Connections to the pages: their number and duration are limited, with a pause if the machine has no room for another.

Whoever holds a connection without asking anything on it takes a place for `LIFE_S`, or until all places are taken:
then the oldest ends for the next. Who waits for a place waits in the kernel's queue, without a descriptor here.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h11
import uvicorn
from typing_extensions import override

CONNECTIONS_MAX = 100
DESCRIPTORS_KEPT = 32
"""For the runs' files, which are opened to answer."""
CONNECTIONS_LEAST = 4
LIFE_S = 15.0
"""After this long a connection ends: at once if it has no request, else with its answer. Browsers open another."""
ANSWER_S = 60.0
"""So much longer a client may take to read the answer."""
PAUSE_S = 1.0
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Server(uvicorn.Server):
    """Uvicorn's, which accepts for itself: connections in any number, and it spins if one is refused."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, stop: threading.Event, *, life_s: float = LIFE_S
    ) -> None:
        """`listener`: listens already. `stop`: asks it to end. `life_s`: of a connection."""
        super().__init__(config)
        self._stop = stop
        self._listener = listener
        self._life_s = life_s
        self._accepting: asyncio.Task[None] | None = None
        self._open: dict[Any, None] = {}
        """The connections that are not asked to end yet, the oldest first."""

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # It would receive only signals that come while it serves.
        yield

    @override
    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stop.is_set()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            with suppress(asyncio.CancelledError):
                await self._accepting
        await super().shutdown(sockets)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        places = asyncio.Semaphore(connections_max())
        reported = False
        while True:
            if places.locked() and self._open:
                self._end(next(iter(self._open)))
            await places.acquire()
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                places.release()
                if error.errno in NO_ROOM and not reported:
                    reported = True
                    print(f"iolab: no room for another connection: {error.strerror}", file=sys.stderr, flush=True)
                await _pause(PAUSE_S)
                continue
            await self._take(loop, connection, places.release)

    async def _take(
        self, loop: asyncio.AbstractEventLoop, connection: socket.socket, on_end: Callable[[], None]
    ) -> None:
        server = self

        class Connection(self.config.http_protocol_class):  # type: ignore[misc, name-defined]
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                server._open.pop(self, None)
                for timer in timers:
                    timer.cancel()
                on_end()

            def send_400_response(self, msg: str) -> None:
                """Junk behind a request, or in its body: the code that answers must not send another answer."""
                if self.cycle is not None:
                    self.cycle.disconnected = True
                with suppress(h11.LocalProtocolError):
                    super().send_400_response(msg)
                self.transport.close()

        def made() -> Any:
            return Connection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        timers: list[asyncio.TimerHandle] = []
        try:
            transport, protocol = await loop.connect_accepted_socket(made, connection)
        except OSError:  # who connected is gone again
            connection.close()
            on_end()
            return
        if not transport.is_closing():
            self._open[protocol] = None
            timers.append(loop.call_later(self._life_s, self._end, protocol))
            timers.append(loop.call_later(self._life_s + ANSWER_S, transport.abort))

    def _end(self, connection: Any) -> None:
        """Ends the connection: at once if it has no request, else with its answer."""
        if connection in self._open:
            del self._open[connection]
            connection.shutdown()


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


def connections_max() -> int:
    """As many as the descriptors suffice for."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = most - sum(1 for _ in Path("/proc/self/fd").iterdir()) - DESCRIPTORS_KEPT
    return max(CONNECTIONS_LEAST, min(CONNECTIONS_MAX, free))

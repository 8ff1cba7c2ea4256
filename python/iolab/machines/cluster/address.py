"""Where a Ray cluster is: `ray` for the one that this machine is a node of, `ray://HOST:PORT` for any other."""

from __future__ import annotations

import importlib.util
import os
import socket

from iolab.base.errors import InputError, MachineError
from iolab.domain.machine import CLUSTER, kind_of

HERE = CLUSTER
SCHEME = f"{HERE}://"
CLIENT_PORT = 10001
"""Ray's own default for clients."""
ANSWER_S = 5.0
"""How long a host may take to accept a connection."""


def parse(text: str) -> str:
    """The address as `ray.init` takes it. InputError if it is none."""
    if text == HERE:
        return os.environ.get("RAY_ADDRESS") or "auto"
    if text.startswith(SCHEME):
        host, port = host_and_port(text.removeprefix(SCHEME), CLIENT_PORT, where="--on")
        return f"{SCHEME}{host}:{port}"
    if kind_of(text) is not None:
        raise InputError(f"{text} is a machine, and no cluster", where="--on", remedy=f"name it as --machine {text}")
    raise InputError(f"{text}: expected {HERE}, or {SCHEME}HOST:PORT", where="--on")


def host_and_port(text: str, default_port: int, *, where: str) -> tuple[str, int]:
    """The parts of `HOST` or `HOST:PORT`. InputError if the text is neither."""
    host, colon, port = text.rpartition(":") if ":" in text else (text, "", "")
    if not host or (colon and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise InputError(f"{text}: expected HOST:PORT", where=where)
    return host, int(port) if colon else default_port


def check_installed(*, client: bool = False) -> None:
    """MachineError if Ray, or what its clients take, is not installed."""
    for module in ("ray", "grpc") if client else ("ray",):
        if importlib.util.find_spec(module) is None:
            name = "Ray" if module == "ray" else "grpcio, which clients of Ray take,"
            raise MachineError(f"{name} is not installed", remedy="pip install 'iolab[ray]', on every node too")


def check_answers(host: str, port: int) -> None:
    """MachineError if nobody listens there, within some seconds."""
    try:
        socket.create_connection((host, port), ANSWER_S).close()
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise MachineError(
            f"no Ray cluster can be reached: {why}",
            where=f"{host}:{port}",
            remedy="see that it runs (ray start --head) and that no firewall is between",
        ) from None

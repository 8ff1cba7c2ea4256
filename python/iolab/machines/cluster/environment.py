"""What a child process that uses Ray is given."""

from __future__ import annotations

import os

from iolab.base import child_process

DEFAULTS = {
    # So long a node goes on with a run's next trial at once. With Ray's own half a second most trials outlast their
    # lease, and the node is idle until nodes have reported to each other that it is free, which they do every 100 ms.
    "RAY_worker_lease_timeout_milliseconds": "5000",
    # What ran on a node that was cut off begins again after half a minute; by default after seven.
    "RAY_grpc_client_keepalive_time_ms": "10000",
    "RAY_grpc_client_keepalive_timeout_ms": "20000",
}
"""The default of the user's environment. A driver that is a client of Ray has the environment of its head."""


def environment() -> dict[str, str]:
    """That of every Python child of iolab's, and Ray's own variables, such as those of its TLS."""
    of_ray = {name: text for name, text in os.environ.items() if name.startswith("RAY_")}
    return {**child_process.python_environment(), **DEFAULTS, **of_ray, "RAY_DEDUP_LOGS": "0"}

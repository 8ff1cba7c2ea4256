"""NFS: what the client's RPC layer did, operation by operation."""

from __future__ import annotations

from iolab.option import Options
from iolab.probe.probe import Probe


class NfsOptions(Options):
    pass


PROBE = Probe(
    "nfs",
    "Operations of the target's NFS mount: calls, bytes, waits and times (/proc/self/mountstats).",
    NfsOptions,
    ("NFS",),
    (),
)

"""Trials on the hosts of a Ray cluster: simulated machines and guests anywhere, hosts where they offer themselves.

`driver` is a child process of the run, the only one that imports Ray; `connection` is its parent's side, `pool` and
`executor` what the loop over the trials sees. `task` is what runs on the nodes, `agent` a host that offers itself.
"""

from __future__ import annotations

from iolab.machines.cluster.agent import serve
from iolab.machines.cluster.executor import ClusterExecutor

__all__ = ["ClusterExecutor", "serve"]

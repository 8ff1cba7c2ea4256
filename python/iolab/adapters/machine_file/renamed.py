"""Keys and values of machine files that were called something else in the version before."""

from __future__ import annotations

KEYS: dict[tuple[str, ...], str] = {
    ("cpus", "topology", "cells"): "numa_nodes",
    ("cpus", "topology", "sockets_per_cell"): "sockets_per_node",
    ("cpus", "interrupts", "latency_other_cell_ns"): "latency_other_node_ns",
    ("drives", "takes_one_ahead"): "peek",
    ("completion", "form"): "variant",
}
VALUES: dict[tuple[str, ...], dict[str, str]] = {
    ("cpus", "scheduling", "migrates_within"): {"cell": "node"},
    ("completion", "shares_cache"): {"cell": "node"},
}

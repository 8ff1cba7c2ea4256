"""Metric keys as people read them."""

from __future__ import annotations

import re

_WORDS = {"cpu": "CPU", "io": "I/O", "iops": "IOPS", "rpc": "RPC", "rtt": "RTT", "stddev": "standard deviation"}
_UNIT_PARTS = re.compile(r"_bytes_per_s|_per_s(?=_|$)|_ns(?=_|$)|_s$")
_QUANTILE = re.compile(r"p(\d\d)(\d*)$")


def label(key: str) -> str:
    """`random_read/read.latency_ns_p99` -> `random read: read latency p99`. The unit is left to the table."""
    phase, _, rest = key.rpartition("/")
    op, _, metric = rest.rpartition(".")
    words = [_word(word) for word in _UNIT_PARTS.sub("", metric).split("_")]
    text = " ".join([op, *words] if op else words)
    return f"{phase.replace('_', ' ')}: {text}" if phase else text


def _word(word: str) -> str:
    if quantile := _QUANTILE.match(word):
        return f"p{quantile[1]}.{quantile[2]}" if quantile[2] else word
    return _WORDS.get(word, word)

"""The names of metrics that a word means, for messages: what people and other tools call them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from iolab.base.errors import LONGEST_WORD, nearest

MEANT_MAX = 4
"""So many names a message suggests."""
SYNONYMS = {
    **dict.fromkeys(("lat", "clat", "latencies", "delay", "response"), "latency"),
    **dict.fromkeys(("bw", "bandwidth", "throughput", "mbps", "speed"), "rate bytes"),
    **dict.fromkeys(("avg", "average", "amean"), "mean"),
    **dict.fromkeys(("median", "50th"), "p50"),
    **dict.fromkeys(("99th", "p99th"), "p99"),
    **dict.fromkeys(("switches", "cs", "csw"), "context switches"),
    **dict.fromkeys(("time", "runtime", "duration"), "elapsed"),
    **dict.fromkeys(("stdev", "std", "sd"), "stddev"),
    **dict.fromkeys(("maximum", "worst"), "max"),
    **dict.fromkeys(("tps", "qps"), "iops"),
    **dict.fromkeys(("ms", "msec", "us", "usec", "sec"), ""),
}
"""What people and other tools call it -> words of iolab's names, in which units are ns, s and bytes."""


def meant(name: str, names: Iterable[str]) -> list[str]:
    """Those of `names` whose words the words of `name` begin or stand for: `p99` -> latency_ns_p99. None of them
    for a `name` that is too long to compare."""
    if len(name) > LONGEST_WORD:
        return []
    given = re.findall(r"[a-z]+\d*|\d+", re.sub(r"(p\d+)[._](\d+)", r"\1\2", name.lower()))
    words = " ".join(SYNONYMS.get(word, word) for word in given).split()
    found = [one for one in names if words and _has(one.lower().rpartition("/")[2], words)]
    return [one for one in found if set(words) <= set(re.split(r"[_./]", one))] or found


def unknown_metric(name: str, names: Iterable[str]) -> str:
    """`unknown metric; did you mean latency_ns_p99?`: the nearest by meaning, else by spelling."""
    choices = list(names)
    close = meant(name, choices)[:MEANT_MAX]
    if not close and (spelt := nearest(name, choices)):
        close = [spelt]
    if not close:
        return "unknown metric; see: iolab list metrics"
    return f"unknown metric; did you mean {' or '.join(filter(None, (', '.join(close[:-1]), close[-1])))}?"


def _has(name: str, words: list[str]) -> bool:
    parts = re.split(r"[_.]", name)
    return all(any(part == word or (len(word) > 2 and part.startswith(word)) for part in parts) for word in words)

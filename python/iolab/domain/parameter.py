"""How people call what they vary: queue depths, sizes, numbers of threads."""

from __future__ import annotations

import re

AMOUNTS = frozenset(
    (
        *("qd", "qdepth", "depth", "iodepth", "queuedepth", "bs", "bsize", "blocksize", "recordsize", "reclen"),
        *("requestsize", "iosize", "accesssize", "transfersize", "xfersize", "chunksize", "stripesize"),
        *("size", "filesize", "threads", "numthreads", "jobs", "numjobs", "njobs", "clients", "processes", "procs"),
        *("concurrency", "workers", "rwmixread", "readahead", "readaheadkb", "ra"),
        *("objectsize", "disks", "numdisks", "drives", "nodes", "hosts", "cores", "cpus", "connections", "streams"),
        *("load", "offeredload", "targetload"),
    )
)
"""In lower case, less spaces, signs and units."""

BLOCK_SIZES = frozenset(
    ("bs", "bsize", "blocksize", "recordsize", "reclen", "requestsize", "iosize", "objectsize", "size")
)
"""Those of one operation; `size` alone is what names such as `4k` and `64k` vary."""

SIZE = re.compile(r"(?P<count>\d{1,12}+)(?P<unit>[kKmMgGtT])(?:i?B)?")
"""As tools take it: powers of 1,024, whichever letters follow."""
_UNIT = re.compile(r"[(\[].*")
_NUMBER_OF = re.compile(
    r"\s*(?:#|no\.|nr|num(?:ber)?) ?(?:of )?(?:\w+ )?(?P<what>[a-z]+)(?: per \w+)?\s*", re.IGNORECASE
)
_NUMBERED = re.compile(r"(?P<name>[A-Za-z][A-Za-z _-]*?)[ _=-]?(?P<amount>\d+(?:\.\d+)?(?:[kKMGT]i?B?|[num]?s)?)")


def plain(name: str) -> str:
    """`Queue Depth` -> `queuedepth`, `bs (KiB)` -> `bs`, `# of Server Threads` -> `threads`."""
    bare = _UNIT.sub("", name)
    counted = _NUMBER_OF.fullmatch(bare)
    return re.sub(r"[\W_]", "", counted["what"] if counted else bare).lower()


def named_amount(name: str) -> tuple[str, str] | None:
    """`depth16` -> `depth` and `16`; None for a name that ends in no amount of a known parameter, such as a version."""
    found = _NUMBERED.fullmatch(name)
    return (found["name"], found["amount"]) if found and plain(found["name"]) in AMOUNTS else None

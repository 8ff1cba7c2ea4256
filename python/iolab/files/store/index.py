"""The index: the aggregate metrics of 256 trials in one file, so that a run of thousands of trials reads at once.

Derived from the trial files, which stay the truth: each index file names the digest of what it was made from, is
ignored when that does not match, and can be deleted at any time. 10,000 Parquet files take seconds to read, 40 a tenth.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from iolab.base import beneath, replaceable
from iolab.base.bounded_file import read_bounded
from iolab.base.durable import write_atomically
from iolab.base.errors import InputError
from iolab.files.store import parquet
from iolab.files.store.directory import RunDirectory
from iolab.files.store.trial_file import read_content, table_schema

if TYPE_CHECKING:
    import polars

TRIALS_PER_FILE = 256
METADATA_DIGEST = "iolab.index_of"
DIGEST_FILE_BYTES_MAX = 1000
COLUMNS = ("trial", "round", "workload", "setting", "phase", "op", "metric", "key", "value", "reason")
"""The columns of aggregate metrics: the trial file's less those that are the same in every such row."""


def block_of(trial: int) -> int:
    """The first trial of the block that `trial` is in."""
    return trial - trial % TRIALS_PER_FILE


def trials_of(block: int) -> range:
    """The trials of the index block that begins with trial `block`."""
    return range(block, block + TRIALS_PER_FILE)


def index_file(directory: RunDirectory, block: int) -> Path:
    """The index file of the block that begins with trial `block`, whether it exists or not."""
    return directory.index / f"{block:06d}.parquet"


def _digest_file(path: Path) -> Path:
    """The output of `sha256sum` for an index file, beside it: nothing else would show a damaged one."""
    return path.with_suffix(".sha256")


def complete_blocks(trials: Iterable[int]) -> list[int]:
    """The blocks of which every trial is among `trials`."""
    counts: dict[int, int] = {}
    for trial in trials:
        counts[block_of(trial)] = counts.get(block_of(trial), 0) + 1
    return [block for block, count in sorted(counts.items()) if count == TRIALS_PER_FILE]


def update(directory: RunDirectory, sha256_of: Mapping[int, str], block: int) -> None:
    """Makes the index file of a block whose trials are all finished, unless a fresh one is there."""
    if is_fresh(directory, sha256_of, block):
        return
    buffer = io.BytesIO()
    files = [directory.trial_file(trial) for trial in trials_of(block)]
    scan_trial_files(files, directory).collect().write_parquet(
        buffer, metadata={METADATA_DIGEST: _digest(sha256_of, block)}
    )
    path = index_file(directory, block)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    write_atomically(_digest_file(path), f"{digest}  {path.name}\n".encode(), directory.root)
    write_atomically(path, buffer.getvalue(), directory.root)


def is_fresh(directory: RunDirectory, sha256_of: Mapping[int, str], block: int) -> bool:
    """Whether the block's index file is as it was written, and was made from the trial files that the journal names."""
    import polars as pl

    path = index_file(directory, block)
    if not beneath.is_file(path, directory.root):
        return False
    try:
        content = read_bounded(path, parquet.FILE_BYTES_MAX, "an index file", within=directory.root)
        digest = read_bounded(
            _digest_file(path), DIGEST_FILE_BYTES_MAX, "an index file's digest", within=directory.root
        )
        written = digest.split()
        if written[:1] != [hashlib.sha256(content).hexdigest().encode()]:
            return False
        parquet.check_table(content, {name: dtype for name, dtype in table_schema().items() if name in COLUMNS})
        with parquet.decoding():
            return pl.read_parquet_metadata(io.BytesIO(content)).get(METADATA_DIGEST) == _digest(sha256_of, block)
    except (InputError, ValueError):
        return False


def scan(files: Sequence[Path], directory: RunDirectory) -> polars.LazyFrame:
    """The rows of a run's files. If another user could put links in their place, they are read by descriptor first.
    InputError if one can't be read."""
    import polars as pl

    if os.geteuid() != replaceable.ROOT or replaceable.weakness_of(directory.path.resolve(), caller=True) is None:
        return pl.scan_parquet(list(files), glob=False)
    contents: list[IO[bytes]] = [io.BytesIO(read_content(path, directory.root)) for path in files]
    return pl.scan_parquet(contents, glob=False)


def scan_trial_files(files: Sequence[Path], directory: RunDirectory) -> polars.LazyFrame:
    """The aggregate metrics of whole trial files, `COLUMNS` in file order. As `scan`."""
    import polars as pl

    return scan(files, directory).filter(pl.col("what") == "metric", pl.col("job") == "all").select(COLUMNS)


def _digest(sha256_of: Mapping[int, str], block: int) -> str:
    return hashlib.sha256("".join(sha256_of[trial] for trial in trials_of(block)).encode()).hexdigest()

"""Parquet files are decoded only when they are what iolab writes and take what their size accounts for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from iolab.adapters.store import parquet_claims

FILE_BYTES_MAX = 2**30
"""The largest trial or index file that is read."""


@contextmanager
def decoding() -> Iterator[None]:
    """Makes a ValueError of one line of whatever the decoder says of a damaged file; it may panic."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, KeyError, ValueError, OSError) as error:
        raise ValueError(f"not a whole trial file: {_first_line(error)}") from error


def check_table(content: bytes, schema: dict[str, Any]) -> None:
    """ValueError if the file does not have exactly these columns, or claims more than its size accounts for."""
    import polars as pl

    with decoding():
        parquet_claims.check(content)
        found = dict(pl.read_parquet_schema(io.BytesIO(content)))
        if found != schema:
            raise ValueError("its columns are not those that iolab writes")


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

"""Traces of a modelled phase, from the worker that simulated it to the run's directory."""

from __future__ import annotations

import base64
import zlib


def packed(content: bytes) -> str:
    """As a record carries it: compressed, in base64."""
    return base64.b64encode(zlib.compress(content, level=1)).decode()


def unpacked(text: str) -> bytes:
    """ValueError if it is not what `packed` made."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"not a packed trace: {error}") from None
